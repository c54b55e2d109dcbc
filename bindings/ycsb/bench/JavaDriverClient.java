import com.datastax.driver.core.BoundStatement;
import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ColumnDefinitions;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import site.ycsb.ByteArrayByteIterator;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;

/**
 * The least that YCSB needs of the Java driver: one session for all threads, prepared statements, and a call that waits, as in
 * YCSB's own binding for Cassandra, which is not on Maven Central. What that one does beside it, it does without.
 */
public final class JavaDriverClient extends DB {
  private static final Map<String, PreparedStatement> PREPARED = new ConcurrentHashMap<>();
  private static Cluster cluster;
  private static Session session;
  private static int clients;

  @Override
  public void init() throws DBException {
    synchronized (JavaDriverClient.class) {
      if (clients++ > 0) {
        return;
      }
      int port = Integer.parseInt(getProperties().getProperty("port", "9042"));
      cluster = Cluster.builder().withPort(port).addContactPoints(getProperties().getProperty("hosts").split(",")).build();
      session = cluster.connect(getProperties().getProperty("cassandra.keyspace", "ycsb"));
    }
  }

  @Override
  public void cleanup() {
    synchronized (JavaDriverClient.class) {
      if (--clients == 0) {
        cluster.close();
      }
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    String columns = fields == null ? "*" : String.join(", ", new TreeSet<>(fields));
    ResultSet found = session.execute(prepared("SELECT " + columns + " FROM " + table + " WHERE y_id = ?").bind(key));
    Row row = found.one();
    if (row == null) {
      return Status.NOT_FOUND;
    }
    for (ColumnDefinitions.Definition column : row.getColumnDefinitions()) {
      result.put(column.getName(), new ByteArrayByteIterator(row.getBytesUnsafe(column.getName()).array()));
    }
    return Status.OK;
  }

  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    Set<String> fields = new TreeSet<>(values.keySet());
    String places = String.join(", ", Collections.nCopies(fields.size(), "?"));
    String text = "INSERT INTO " + table + " (y_id, " + String.join(", ", fields) + ") VALUES (?, " + places + ")";
    BoundStatement statement = prepared(text).bind().setString(0, key);
    int place = 1;
    for (String field : fields) {
      statement.setString(place++, values.get(field).toString());
    }
    session.execute(statement);
    return Status.OK;
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return update(table, key, values);
  }

  @Override
  public Status scan(String table, String start, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return Status.NOT_IMPLEMENTED;
  }

  @Override
  public Status delete(String table, String key) {
    return Status.NOT_IMPLEMENTED;
  }

  private static PreparedStatement prepared(String text) {
    return PREPARED.computeIfAbsent(text, absent -> session.prepare(absent).setConsistencyLevel(ConsistencyLevel.ONE));
  }
}
