package peristyle;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.hadoop.hbase.HRegionLocation;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.ServerName;
import org.apache.hadoop.hbase.TableName;
import org.apache.hadoop.hbase.TableNotFoundException;
import org.apache.hadoop.hbase.client.Admin;
import org.apache.hadoop.hbase.client.Connection;
import org.apache.hadoop.hbase.client.ConnectionFactory;
import org.apache.hadoop.hbase.client.RegionInfo;
import org.apache.hadoop.hbase.client.RegionLocator;
import org.apache.hadoop.hbase.regionserver.HRegion;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.util.Bytes;
import org.apache.hadoop.hbase.util.JVMClusterUtil;

/**
 * What Thrift cannot do, over a line protocol: a connection carries one command of words parted by
 * spaces, and gets {@code ok} and lines of results with fields parted by tabs, or {@code error} and
 * the reason. Bytes are written as HBase's shell does, {@code \x00} and so on.
 */
final class Control {
  private static final long LIMIT_SECONDS = 60;

  private final LocalHBaseCluster cluster;
  private final Connection connection;

  private Control(LocalHBaseCluster cluster) throws IOException {
    this.cluster = cluster;
    this.connection = ConnectionFactory.createConnection(cluster.getConfiguration());
  }

  static void listen(LocalHBaseCluster cluster, InetSocketAddress address) throws IOException {
    Control control = new Control(cluster);
    ServerSocket door = new ServerSocket(address.getPort(), 50, address.getAddress());
    thread(() -> {
      while (true) {
        try {
          Socket client = door.accept();
          thread(() -> control.serve(client));
        } catch (IOException failure) {
          failure.printStackTrace();
        }
      }
    });
  }

  private static void thread(Runnable work) {
    Thread thread = new Thread(work, "control");
    thread.setDaemon(true);
    thread.start();
  }

  private void serve(Socket client) {
    try (client;
        BufferedReader in = new BufferedReader(new InputStreamReader(client.getInputStream(), UTF_8));
        PrintStream out = new PrintStream(client.getOutputStream(), false, UTF_8)) {
      String line = in.readLine();
      if (line == null) {
        return;
      }
      try {
        List<String> results = execute(line.trim().split(" +"));
        out.println("ok");
        results.forEach(out::println);
      } catch (Exception failure) {
        String reason = String.valueOf(failure.getMessage()).split("\n")[0];
        out.println("error " + failure.getClass().getSimpleName() + ": " + reason);
      }
    } catch (IOException failure) {
      failure.printStackTrace();
    }
  }

  private List<String> execute(String[] words) throws Exception {
    if (words.length < 2) {
      return onCluster(words[0]);
    }
    if (words[0].equals("abort-region-server")) {
      regionServer(words[1]).abort("asked to");
      return List.of();
    }
    if (words[0].equals("move")) {
      try (Admin admin = connection.getAdmin()) {
        admin.move(Bytes.toBytes(words[1]), ServerName.valueOf(word(words, 2)));
      }
      return List.of();
    }
    return onTable(words[0], TableName.valueOf(words[1]), words);
  }

  private static String word(String[] words, int index) {
    if (index >= words.length) {
      throw new IllegalArgumentException(words[0] + " needs " + index + " arguments");
    }
    return words[index];
  }

  private List<String> onCluster(String command) throws Exception {
    List<String> results = new ArrayList<>();
    switch (command) {
      case "region-servers":
        for (ServerName server : cluster.getActiveMaster().getServerManager().getOnlineServersList()) {
          results.add(server.toString());
        }
        return results;
      case "add-region-server":
        JVMClusterUtil.RegionServerThread added = cluster.addRegionServer();
        added.start();
        Server.awaitUsable(cluster, added);
        results.add(added.getRegionServer().getServerName().toString());
        return results;
      case "balance":
        try (Admin admin = connection.getAdmin()) {
          results.add(String.valueOf(admin.balance()));
        }
        return results;
      default:
        throw new IllegalArgumentException("no such command: " + command);
    }
  }

  private List<String> onTable(String command, TableName table, String[] words) throws Exception {
    try (Admin admin = connection.getAdmin()) {
      if (!admin.tableExists(table)) {
        throw new TableNotFoundException(table);
      }
      switch (command) {
        case "regions":
          return regions(table);
        case "split":
          split(admin, table, Bytes.toBytesBinary(word(words, 2)));
          return List.of();
        case "flush":
          admin.flush(table);
          return List.of();
        case "compact":
          compact(table);
          return List.of();
        case "disable":
          admin.disableTable(table);
          return List.of();
        case "enable":
          admin.enableTable(table);
          return List.of();
        default:
          throw new IllegalArgumentException("no such command: " + command);
      }
    }
  }

  private HRegionServer regionServer(String name) {
    for (JVMClusterUtil.RegionServerThread thread : cluster.getLiveRegionServers()) {
      if (thread.getRegionServer().getServerName().toString().equals(name)) {
        return thread.getRegionServer();
      }
    }
    throw new IllegalArgumentException("no such region server: " + name);
  }

  private List<String> regions(TableName table) throws IOException {
    List<String> results = new ArrayList<>();
    try (RegionLocator locator = connection.getRegionLocator(table)) {
      for (HRegionLocation location : locator.getAllRegionLocations()) {
        RegionInfo region = location.getRegion();
        ServerName server = location.getServerName();
        results.add(String.join("\t", region.getEncodedName(), Bytes.toStringBinary(region.getStartKey()),
            Bytes.toStringBinary(region.getEndKey()), server == null ? "" : server.toString()));
      }
    }
    return results;
  }

  private static void split(Admin admin, TableName table, byte[] key) throws Exception {
    for (RegionInfo region : admin.getRegions(table)) {
      if (region.containsRow(key)) {
        admin.splitRegionAsync(region.getRegionName(), key).get(LIMIT_SECONDS, TimeUnit.SECONDS);
        return;
      }
    }
    throw new IllegalArgumentException("no region has this key");
  }

  /** Asked for over RPC, a compaction would go on after the answer. */
  private void compact(TableName table) throws IOException {
    for (JVMClusterUtil.RegionServerThread server : cluster.getLiveRegionServers()) {
      for (HRegion region : server.getRegionServer().getRegions(table)) {
        region.compact(true);
      }
    }
  }
}
