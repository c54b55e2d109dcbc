package io.peristyle.ycsb;

import java.io.File;
import java.net.URISyntaxException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Collections;
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
 * Drives Peristyle from YCSB. All threads of a process share one client and its connections; each has its own writes.
 *
 * <p>Properties: {@code peristyle.uri} (default {@code embedded:}), {@code peristyle.table} (default YCSB's {@code table}),
 * {@code peristyle.create}, {@code peristyle.buckets}, {@code peristyle.fieldtype}, {@code peristyle.batchsize},
 * {@code peristyle.async}, {@code peristyle.async.inflight} and {@code peristyle.config}.
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

  /** What the native half is asked for: an order is one array, since each call into it costs. */
  private static final byte READ = 0;
  private static final byte SCAN = 1;
  private static final byte UPDATE = 2;
  private static final byte INSERT = 3;
  private static final byte DELETE = 4;

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
      ByteBuffer order = order(READ, key, 0, fields);
      if (order == null) {
        return Status.BAD_REQUEST;
      }
      ByteBuffer answer = ByteBuffer.wrap(read(handle, order.array()));
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
      ByteBuffer order = order(SCAN, startkey, Math.max(recordcount, 0), fields);
      if (order == null) {
        return Status.BAD_REQUEST;
      }
      ByteBuffer answer = ByteBuffer.wrap(read(handle, order.array()));
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
    return write(UPDATE, key, values);
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return write(INSERT, key, values);
  }

  @Override
  public Status delete(String table, String key) {
    return write(DELETE, key, Collections.emptyMap());
  }

  private Status write(byte operation, String key, Map<String, ByteIterator> values) {
    try {
      ByteBuffer order = order(operation, key, values);
      return order == null ? Status.BAD_REQUEST : STATUSES[write(handle, order.array())];
    } catch (RuntimeException e) {
      return failed(e);
    }
  }

  private static Status failed(RuntimeException e) {
    System.err.println("peristyle: " + e);
    return Status.ERROR;
  }

  /** A read, with the numbers of fields, none for all; null where one is unknown. */
  private ByteBuffer order(byte operation, String key, int count, Set<String> fields) {
    ByteBuffer order = order(operation, key, 4 + (fields == null ? 0 : 4 * fields.size()));
    order.putInt(count);
    if (fields != null) {
      for (String field : fields) {
        Integer number = fieldNumbers.get(field);
        if (number == null) {
          return null;
        }
        order.putInt(number);
      }
    }
    return order;
  }

  /** A write, with number, length and bytes of each value; null where a field is unknown. */
  private ByteBuffer order(byte operation, String key, Map<String, ByteIterator> values) {
    int size = 0;
    int count = 0;
    int[] numbers = new int[values.size()];
    byte[][] bytes = new byte[values.size()][];
    for (Map.Entry<String, ByteIterator> entry : values.entrySet()) {
      Integer number = fieldNumbers.get(entry.getKey());
      if (number == null) {
        return null;
      }
      ByteIterator value = entry.getValue();
      // The bytes of a StringByteIterator are its characters cut to eight bits.
      bytes[count] = value instanceof StringByteIterator
          ? value.toString().getBytes(StandardCharsets.UTF_8)
          : value.toArray();
      size += 8 + bytes[count].length;
      numbers[count++] = number;
    }
    ByteBuffer order = order(operation, key, size);
    for (int place = 0; place < count; place++) {
      order.putInt(numbers[place]).putInt(bytes[place].length).put(bytes[place]);
    }
    return order;
  }

  /** The operation, and length and bytes of the key, with room for the rest. */
  private static ByteBuffer order(byte operation, String key, int rest) {
    byte[] bytes = key.getBytes(StandardCharsets.UTF_8);
    return ByteBuffer.allocate(5 + bytes.length + rest).put(operation).putInt(bytes.length).put(bytes);
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

  private static native byte[] read(long handle, byte[] order);

  private static native int write(long handle, byte[] order);

  private static native void close(long handle);

  private static native void shutDown();
}
