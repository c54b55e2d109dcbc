package io.peristyle.ycsb;

import java.io.File;
import java.net.URISyntaxException;
import java.nio.charset.StandardCharsets;
import java.security.CodeSource;
import java.util.ArrayList;
import java.util.Arrays;
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

  /** Bytes of a number, and of what stands before a key. Buffers of Java's own take its compiler far longer than these arrays. */
  private static final int NUMBER = 4;
  private static final int HEAD = 1 + NUMBER;

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
      byte[] order = order(READ, key, 0, fields);
      if (order == null) {
        return Status.BAD_REQUEST;
      }
      byte[] answer = read(handle, order);
      if (answer.length > 1) {
        readRecord(answer, 1, result);
      }
      return STATUSES[answer[0]];
    } catch (RuntimeException e) {
      return failed(e);
    }
  }

  @Override
  public Status scan(String table, String startkey, int recordcount, Set<String> fields,
      Vector<HashMap<String, ByteIterator>> result) {
    try {
      byte[] order = order(SCAN, startkey, Math.max(recordcount, 0), fields);
      if (order == null) {
        return Status.BAD_REQUEST;
      }
      byte[] answer = read(handle, order);
      for (int place = 1; place < answer.length;) {
        HashMap<String, ByteIterator> record = new HashMap<>();
        place = readRecord(answer, place, record);
        result.add(record);
      }
      return STATUSES[answer[0]];
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
      byte[] order = order(operation, key, values);
      return order == null ? Status.BAD_REQUEST : STATUSES[write(handle, order)];
    } catch (RuntimeException e) {
      return failed(e);
    }
  }

  private static Status failed(RuntimeException e) {
    System.err.println("peristyle: " + e);
    return Status.ERROR;
  }

  /** A read, with the numbers of fields, none for all; null where one is unknown. */
  private byte[] order(byte operation, String key, int count, Set<String> fields) {
    byte[] name = key.getBytes(StandardCharsets.UTF_8);
    byte[] order = new byte[HEAD + name.length + NUMBER + (fields == null ? 0 : NUMBER * fields.size())];
    int place = putNumber(order, begin(order, operation, name), count);
    if (fields != null) {
      for (String field : fields) {
        Integer number = fieldNumbers.get(field);
        if (number == null) {
          return null;
        }
        place = putNumber(order, place, number);
      }
    }
    return order;
  }

  /** A write, with number, length and bytes of each value; null where a field is unknown. */
  private byte[] order(byte operation, String key, Map<String, ByteIterator> values) {
    byte[] name = key.getBytes(StandardCharsets.UTF_8);
    int size = HEAD + name.length;
    int count = 0;
    int[] numbers = new int[values.size()];
    byte[][] bytes = new byte[values.size()][];
    for (Map.Entry<String, ByteIterator> entry : values.entrySet()) {
      Integer number = fieldNumbers.get(entry.getKey());
      if (number == null) {
        return null;
      }
      bytes[count] = bytes(entry.getValue());
      size += 2 * NUMBER + bytes[count].length;
      numbers[count++] = number;
    }
    byte[] order = new byte[size];
    int place = begin(order, operation, name);
    for (int value = 0; value < count; value++) {
      place = putBytes(order, putNumber(order, place, numbers[value]), bytes[value]);
    }
    return order;
  }

  /** The bytes of a StringByteIterator are its characters cut to eight bits. */
  private static byte[] bytes(ByteIterator value) {
    return value instanceof StringByteIterator ? value.toString().getBytes(StandardCharsets.UTF_8) : value.toArray();
  }

  /** The operation, and length and bytes of the key; where the rest begins. */
  private static int begin(byte[] order, byte operation, byte[] key) {
    order[0] = operation;
    return putBytes(order, 1, key);
  }

  private static int putBytes(byte[] order, int place, byte[] bytes) {
    System.arraycopy(bytes, 0, order, putNumber(order, place, bytes.length), bytes.length);
    return place + NUMBER + bytes.length;
  }

  private static int putNumber(byte[] order, int place, int number) {
    order[place] = (byte) (number >> 24);
    order[place + 1] = (byte) (number >> 16);
    order[place + 2] = (byte) (number >> 8);
    order[place + 3] = (byte) number;
    return place + NUMBER;
  }

  private static int number(byte[] answer, int place) {
    return answer[place] << 24 | (answer[place + 1] & 0xff) << 16 | (answer[place + 2] & 0xff) << 8
        | answer[place + 3] & 0xff;
  }

  /** How many values, then number, length and bytes of each; where the next record begins. */
  private int readRecord(byte[] answer, int start, Map<String, ByteIterator> record) {
    int place = start + NUMBER;
    for (int left = number(answer, start); left > 0; left--) {
      String field = fieldNames[number(answer, place)];
      int from = place + 2 * NUMBER;
      place = from + number(answer, place + NUMBER);
      record.put(field, new ByteArrayByteIterator(Arrays.copyOfRange(answer, from, place)));
    }
    return place;
  }

  private static native long open(String[] properties);

  private static native String[] fields(long handle);

  private static native byte[] read(long handle, byte[] order);

  private static native int write(long handle, byte[] order);

  private static native void close(long handle);

  private static native void shutDown();
}
