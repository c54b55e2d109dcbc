package io.peristyle.ycsb;

import java.io.File;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * Drives Peristyle from YCSB. All threads of a process share one client and its connections; each has its own batch of inserts.
 *
 * <p>Properties: {@code peristyle.uri} (default {@code embedded:}), {@code peristyle.table} (default YCSB's {@code table}),
 * {@code peristyle.create}, {@code peristyle.buckets}, {@code peristyle.fieldtype}, {@code peristyle.batchsize} and
 * {@code peristyle.config}.
 */
public class PeristyleClient extends DB {
  /** Slow servers, apart from those that refuse. YCSB has no status of its own for them. */
  public static final Status TIMEOUT = new Status("TIMEOUT", "No answer came in time.");

  /** By the number that the native half gives. */
  private static final Status[] STATUSES = {
    Status.OK,
    Status.BATCHED_OK,
    Status.NOT_FOUND,
    Status.ERROR,
    Status.UNEXPECTED_STATE,
    Status.BAD_REQUEST,
    Status.FORBIDDEN,
    Status.NOT_IMPLEMENTED,
    Status.SERVICE_UNAVAILABLE,
    TIMEOUT,
  };

  static {
    loadLibrary();
    Runtime.getRuntime().addShutdownHook(new Thread(PeristyleClient::shutDown));
  }

  private long handle;
  private String[] fieldNames;
  private Map<String, Integer> fieldNumbers;

  /** The library of {@code -Dperistyle.library}, else the one beside the jar or the classes, else one in the system's paths. */
  private static void loadLibrary() {
    String given = System.getProperty("peristyle.library");
    if (given != null) {
      System.load(new File(given).getAbsolutePath());
      return;
    }
    CodeSource source = PeristyleClient.class.getProtectionDomain().getCodeSource();
    try {
      File home = new File(source.getLocation().toURI());
      File folder = home.isDirectory() ? home : home.getParentFile();
      File library = new File(folder, System.mapLibraryName("peristyle_ycsb_jni"));
      if (library.isFile()) {
        System.load(library.getAbsolutePath());
        return;
      }
    } catch (URISyntaxException | IllegalArgumentException | NullPointerException e) {
      // Classes that come from no folder: the system's paths are left.
    }
    System.loadLibrary("peristyle_ycsb_jni");
  }

  @Override
  public void init() throws DBException {
    List<String> pairs = new ArrayList<>();
    for (String name : getProperties().stringPropertyNames()) {
      pairs.add(name);
      pairs.add(getProperties().getProperty(name));
    }
    try {
      handle = open(pairs.toArray(new String[0]));
      fieldNames = fields(handle);
    } catch (RuntimeException e) {
      throw new DBException(e.getMessage(), e);
    }
    fieldNumbers = new HashMap<>();
    for (int number = 0; number < fieldNames.length; number++) {
      fieldNumbers.put(fieldNames[number], number);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      close(handle);
    } catch (RuntimeException e) {
      throw new DBException(e.getMessage(), e);
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      int[] numbers = numbers(fields);
      if (numbers == null) {
        return Status.BAD_REQUEST;
      }
      ByteBuffer answer = ByteBuffer.wrap(read(handle, key, numbers));
      Status status = STATUSES[answer.get()];
      if (answer.hasRemaining()) {
        readRecord(answer, result);
      }
      return status;
    } catch (RuntimeException e) {
      return failed(e);
    }
  }

  @Override
  public Status scan(String table, String startkey, int recordcount, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    try {
      int[] numbers = numbers(fields);
      if (numbers == null) {
        return Status.BAD_REQUEST;
      }
      ByteBuffer answer = ByteBuffer.wrap(scan(handle, startkey, recordcount, numbers));
      Status status = STATUSES[answer.get()];
      while (answer.hasRemaining()) {
        HashMap<String, ByteIterator> record = new HashMap<>();
        readRecord(answer, record);
        result.add(record);
      }
      return status;
    } catch (RuntimeException e) {
      return failed(e);
    }
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    try {
      byte[] record = record(values);
      return record == null ? Status.BAD_REQUEST : STATUSES[update(handle, key, record)];
    } catch (RuntimeException e) {
      return failed(e);
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    try {
      byte[] record = record(values);
      return record == null ? Status.BAD_REQUEST : STATUSES[insert(handle, key, record)];
    } catch (RuntimeException e) {
      return failed(e);
    }
  }

  @Override
  public Status delete(String table, String key) {
    try {
      return STATUSES[delete(handle, key)];
    } catch (RuntimeException e) {
      return failed(e);
    }
  }

  private static Status failed(RuntimeException e) {
    System.err.println("peristyle: " + e);
    return Status.ERROR;
  }

  /** The numbers of fields, empty for all; null where one is unknown. */
  private int[] numbers(Set<String> fields) {
    if (fields == null) {
      return new int[0];
    }
    int[] numbers = new int[fields.size()];
    int next = 0;
    for (String field : fields) {
      Integer number = fieldNumbers.get(field);
      if (number == null) {
        return null;
      }
      numbers[next++] = number;
    }
    return numbers;
  }

  /** Number, length and bytes of each value; null where a field is unknown. */
  private byte[] record(Map<String, ByteIterator> values) {
    int size = 0;
    Map<Integer, byte[]> numbered = new HashMap<>();
    for (Map.Entry<String, ByteIterator> entry : values.entrySet()) {
      Integer number = fieldNumbers.get(entry.getKey());
      if (number == null) {
        return null;
      }
      ByteIterator value = entry.getValue();
      // The bytes of a StringByteIterator are its characters cut to eight bits.
      byte[] bytes = value instanceof StringByteIterator
          ? value.toString().getBytes(StandardCharsets.UTF_8)
          : value.toArray();
      numbered.put(number, bytes);
      size += 8 + bytes.length;
    }
    ByteBuffer buffer = ByteBuffer.allocate(size);
    for (Map.Entry<Integer, byte[]> entry : numbered.entrySet()) {
      buffer.putInt(entry.getKey()).putInt(entry.getValue().length).put(entry.getValue());
    }
    return buffer.array();
  }

  /** How many values, then number, length and bytes of each. */
  private void readRecord(ByteBuffer answer, Map<String, ByteIterator> record) {
    for (int left = answer.getInt(); left > 0; left--) {
      String field = fieldNames[answer.getInt()];
      byte[] value = new byte[answer.getInt()];
      answer.get(value);
      record.put(field, new ByteArrayByteIterator(value));
    }
  }

  private static native long open(String[] properties);

  private static native String[] fields(long handle);

  private static native byte[] read(long handle, String key, int[] fields);

  private static native byte[] scan(long handle, String start, int count, int[] fields);

  private static native int update(long handle, String key, byte[] record);

  private static native int insert(long handle, String key, byte[] record);

  private static native int delete(long handle, String key);

  private static native void close(long handle);

  private static native void shutDown();
}
