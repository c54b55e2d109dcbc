package peristyle;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.thrift.ThriftServer;

/**
 * A Thrift gateway. Its specification is words joined by colons: {@code thrift1} or {@code thrift2},
 * the port, then any of {@code framed}, {@code compact}, {@code http}.
 *
 * <p>As a process of its own, its arguments are the path of hbase-site.xml and the specification.
 */
public final class Gateway {
  private Gateway() {}

  public static void main(String[] arguments) throws Exception {
    Configuration conf = Server.configuration(arguments[0]);
    start(conf, arguments[1]).join();
  }

  /** The address all servers of this HBase listen on. */
  static String address(Configuration conf) {
    return conf.get("hbase.zookeeper.quorum");
  }

  /** Starts the gateway and returns when it accepts connections. */
  static Thread start(Configuration shared, String specification) throws Exception {
    List<String> words = Arrays.asList(specification.split(":"));
    int port = Integer.parseInt(words.get(1));
    List<String> arguments = new ArrayList<>(
        Arrays.asList("--bind", address(shared), "--port", words.get(1), "--infoport", "-1"));
    for (String option : Arrays.asList("framed", "compact")) {
      if (words.contains(option)) {
        arguments.add("--" + option);
      }
    }
    Configuration conf = new Configuration(shared);
    conf.setBoolean("hbase.regionserver.thrift.http", words.contains("http"));
    ThriftServer server = words.get(0).equals("thrift1")
        ? new ThriftServer(conf)
        : new org.apache.hadoop.hbase.thrift2.ThriftServer(conf);
    Thread thread = new Thread(() -> serve(server, arguments), "gateway-" + specification);
    thread.start();
    awaitConnection(new InetSocketAddress(address(shared), port));
    return thread;
  }

  private static void serve(ThriftServer server, List<String> arguments) {
    try {
      server.run(arguments.toArray(new String[0]));
    } catch (Throwable failure) {
      failure.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  private static void awaitConnection(InetSocketAddress address) throws InterruptedException {
    while (true) {
      try (Socket socket = new Socket()) {
        socket.connect(address, 1000);
        return;
      } catch (IOException notYet) {
        Thread.sleep(10);
      }
    }
  }
}
