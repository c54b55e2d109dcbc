import io.peristyle.ycsb.PeristyleClient;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/** What YCSB's own client never does: odd values, odd requests, and failures. The database's URI is the argument. */
public final class Contract {
  public static void main(String[] arguments) throws Exception {
    String uri = arguments[0];
    text(client(uri, "texts", "text", 1));
    binary(client(uri, "blobs", "blob", 1));
    batches(client(uri, "texts", "text", 3), client(uri, "texts", "text", 1));
    asynchronous(uri);
    panics(client(uri, "texts", "text", 1));
    unreachable();
    System.out.println("well");
  }

  private static PeristyleClient client(String uri, String table, String type, int batch) throws DBException {
    return client(uri, table, type, batch, new Properties());
  }

  private static PeristyleClient client(String uri, String table, String type, int batch, Properties properties)
      throws DBException {
    properties.setProperty("peristyle.uri", uri);
    properties.setProperty("peristyle.table", table);
    properties.setProperty("peristyle.fieldtype", type);
    properties.setProperty("peristyle.create", "true");
    properties.setProperty("peristyle.buckets", "3");
    properties.setProperty("fieldcount", "3");
    properties.setProperty("peristyle.batchsize", String.valueOf(batch));
    PeristyleClient client = new PeristyleClient();
    client.setProperties(properties);
    client.init();
    return client;
  }

  private static void text(PeristyleClient client) throws Exception {
    String odd = "\u00fc\u0000\u4e2d\ud834\udd1e\r\n' -- ";
    String key = "user\u00fc\ud834\udd1e";
    expect(Status.NOT_FOUND, client.read("t", key, null, new HashMap<>()));
    expect(Status.OK, client.insert("t", key, values("field0", odd, "field1", "")));
    Map<String, ByteIterator> found = new HashMap<>();
    expect(Status.OK, client.read("t", key, null, found));
    expect(2, found.size());
    expect(odd, found.get("field0").toString());
    expect("", found.get("field1").toString());
    found = new HashMap<>();
    expect(Status.OK, client.read("t", key, Set.of("field1"), found));
    expect(Set.of("field1"), found.keySet());
    expect(Status.OK, client.update("t", key, values("field1", "new")));
    Vector<HashMap<String, ByteIterator>> records = new Vector<>();
    expect(Status.OK, client.scan("t", key, 5, Set.of("field1"), records));
    expect("new", records.get(0).get("field1").toString());
    expect(Status.BAD_REQUEST, client.read("t", key, Set.of("nofield"), found));
    expect(Status.BAD_REQUEST, client.update("t", key, values("nofield", "x")));
    expect(Status.BAD_REQUEST, client.insert("t", key, bytes(new byte[] {(byte) 0xff})));
    expect(Status.BAD_REQUEST, client.insert("t", "", values("field0", "x")));
    expect(Status.ERROR, client.insert("t", null, values("field0", "x")));
    expect(Status.OK, client.delete("t", key));
    expect(Status.NOT_FOUND, client.read("t", key, null, new HashMap<>()));
    client.cleanup();
    expect(Status.ERROR, client.read("t", key, null, new HashMap<>()));
  }

  private static void binary(PeristyleClient client) throws Exception {
    byte[] all = new byte[256];
    for (int value = 0; value < all.length; value++) {
      all[value] = (byte) value;
    }
    expect(Status.OK, client.insert("t", "user1", bytes(all)));
    Map<String, ByteIterator> found = new HashMap<>();
    expect(Status.OK, client.read("t", "user1", null, found));
    expect(new String(all, StandardCharsets.ISO_8859_1),
        new String(found.get("field0").toArray(), StandardCharsets.ISO_8859_1));
    client.cleanup();
  }

  private static void batches(PeristyleClient batched, PeristyleClient reader) throws Exception {
    expect(Status.BATCHED_OK, batched.insert("t", "user1", values("field0", "x")));
    expect(Status.BATCHED_OK, batched.insert("t", "user2", values("field0", "x")));
    expect(Status.NOT_FOUND, reader.read("t", "user1", null, new HashMap<>()));
    expect(Status.OK, batched.insert("t", "user3", values("field0", "x")));
    expect(Status.BATCHED_OK, batched.insert("t", "user4", values("field0", "x")));
    expect(Status.BATCHED_OK, batched.insert("t", "user5", bytes(new byte[] {(byte) 0xff})));
    cleanupTells(batched, "1 of 5 writes failed");
    for (int number = 1; number <= 4; number++) {
      expect(Status.OK, reader.read("t", "user" + number, null, new HashMap<>()));
    }
    reader.cleanup();
  }

  private static void cleanupTells(PeristyleClient client, String failure) {
    try {
      client.cleanup();
      throw new AssertionError("a write that failed was not told");
    } catch (DBException e) {
      expect(true, e.getMessage().contains(failure));
    }
  }

  /** Writes that nobody waits for: all there after the cleanup, the last one of a record on top, and failures counted. */
  private static void asynchronous(String uri) throws Exception {
    Properties properties = new Properties();
    properties.setProperty("peristyle.async", "true");
    properties.setProperty("peristyle.async.inflight", "8");
    PeristyleClient writer = client(uri, "texts", "text", 1, properties);
    for (int number = 0; number < 200; number++) {
      expect(Status.BATCHED_OK, writer.insert("t", "async" + number, values("field0", "first")));
      expect(Status.BATCHED_OK, writer.update("t", "async" + number, values("field0", "last")));
    }
    expect(Status.BATCHED_OK, writer.insert("t", "async", bytes(new byte[] {(byte) 0xff})));
    cleanupTells(writer, "1 of 401 writes failed");
    PeristyleClient reader = client(uri, "texts", "text", 1);
    for (int number = 0; number < 200; number++) {
      Map<String, ByteIterator> found = new HashMap<>();
      expect(Status.OK, reader.read("t", "async" + number, null, found));
      expect("last", found.get("field0").toString());
    }
    reader.cleanup();
  }

  /** Panics of the native half, which a library that is built for tests has for these keys. */
  private static void panics(PeristyleClient client) throws Exception {
    PrintStream error = System.err;
    for (String fault : new String[] {"panic in the call", "panic on the io thread"}) {
      ByteArrayOutputStream told = new ByteArrayOutputStream();
      System.setErr(new PrintStream(told, true));
      Status status = client.read("t", fault, null, new HashMap<>());
      System.setErr(error);
      expect(Status.ERROR, status);
      expect(true, told.toString().contains("panic: a test asked for it"));
      expect(Status.OK, client.insert("t", "alive", values("field0", fault)));
      Map<String, ByteIterator> found = new HashMap<>();
      expect(Status.OK, client.read("t", "alive", null, found));
      expect(fault, found.get("field0").toString());
    }
    client.cleanup();
  }

  private static void unreachable() {
    try {
      client("cql://127.0.0.1:1/ks", "t", "text", 1);
    } catch (DBException e) {
      expect(true, e.getMessage().contains("127.0.0.1:1"));
      return;
    }
    throw new AssertionError("a database that is not there was opened");
  }

  private static HashMap<String, ByteIterator> values(String... pairs) {
    HashMap<String, ByteIterator> values = new HashMap<>();
    for (int place = 0; place < pairs.length; place += 2) {
      values.put(pairs[place], new StringByteIterator(pairs[place + 1]));
    }
    return values;
  }

  private static Map<String, ByteIterator> bytes(byte[] value) {
    return Collections.singletonMap("field0", new ByteArrayByteIterator(value));
  }

  private static void expect(Object expected, Object found) {
    if (!expected.equals(found)) {
      throw new AssertionError("expected " + expected + ", found " + found);
    }
  }
}
