package peristyle;

import java.io.File;
import java.net.InetSocketAddress;
import java.util.Arrays;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.hbase.HBaseConfiguration;
import org.apache.hadoop.hbase.LocalHBaseCluster;
import org.apache.hadoop.hbase.master.HMaster;
import org.apache.hadoop.hbase.regionserver.HRegionServer;
import org.apache.hadoop.hbase.util.JVMClusterUtil;
import org.apache.hadoop.metrics2.lib.DefaultMetricsSystem;
import org.apache.zookeeper.server.NIOServerCnxnFactory;
import org.apache.zookeeper.server.ZooKeeperServer;

/**
 * A whole HBase in one process: ZooKeeper, a master, region servers, and Thrift gateways.
 *
 * <p>Arguments: the path of hbase-site.xml, then one specification for each gateway. The control port
 * opens last, so whoever it answers finds everything up.
 */
public final class Server {
  private static final int MAX_CONNECTIONS = 300;

  private static volatile boolean stopping;

  private Server() {}

  public static void main(String[] arguments) {
    try {
      run(arguments[0], Arrays.asList(arguments).subList(1, arguments.length));
    } catch (Throwable failure) {
      failure.printStackTrace();
    }
    if (!stopping) {
      // Threads of HBase that are no daemons would keep a failed process alive.
      Runtime.getRuntime().halt(1);
    }
  }

  private static void run(String site, List<String> gateways) throws Exception {
    Configuration conf = configuration(site);
    ZooKeeperServer zooKeeper = startZooKeeper(conf);
    LocalHBaseCluster cluster = startCluster(conf);
    for (String gateway : gateways) {
      Gateway.start(conf, gateway);
    }
    Runtime.getRuntime().addShutdownHook(new Thread(() -> shutDown(cluster, zooKeeper)));
    Control.listen(cluster, new InetSocketAddress(Gateway.address(conf), conf.getInt("peristyle.control.port", 0)));
    cluster.getMasters().get(0).join();
    System.out.println("the master has ended");
  }

  static Configuration configuration(String site) {
    Configuration conf = HBaseConfiguration.create();
    conf.addResource(new Path("file://" + site));
    // Several servers of one kind in a process would register their metrics twice.
    DefaultMetricsSystem.setMiniClusterMode(true);
    return conf;
  }

  private static ZooKeeperServer startZooKeeper(Configuration conf) throws Exception {
    File data = new File(conf.get("hbase.zookeeper.property.dataDir"));
    ZooKeeperServer server = new ZooKeeperServer(data, data, conf.getInt("hbase.zookeeper.property.tickTime", 1000));
    NIOServerCnxnFactory door = new NIOServerCnxnFactory();
    int port = conf.getInt("hbase.zookeeper.property.clientPort", 0);
    door.configure(new InetSocketAddress(Gateway.address(conf), port), MAX_CONNECTIONS);
    door.startup(server);
    // This process alone connects its master and region servers, so sessions on disk belong to dead
    // ones. Without this, a restart after a kill would wait until they expire.
    for (long session : server.getZKDatabase().getSessions()) {
      server.closeSession(session);
    }
    return server;
  }

  private static LocalHBaseCluster startCluster(Configuration conf) throws Exception {
    int regionServers = conf.getInt("hbase.regionservers", 1);
    LocalHBaseCluster cluster =
        new LocalHBaseCluster(conf, 1, 0, regionServers, HMaster.class, HRegionServer.class);
    cluster.startup();
    Thread master = cluster.getMasters().get(0);
    await(master, () -> cluster.getActiveMaster() != null && cluster.getActiveMaster().isInitialized());
    for (JVMClusterUtil.RegionServerThread server : cluster.getRegionServers()) {
      awaitUsable(cluster, server);
    }
    return cluster;
  }

  /**
   * Waits until regions can be moved to a server. The master, from its first report on, takes it for
   * a destination, and before that quietly chooses another.
   */
  static void awaitUsable(LocalHBaseCluster cluster, JVMClusterUtil.RegionServerThread server)
      throws InterruptedException {
    await(server, () -> server.getRegionServer().isOnline()
        && cluster.getActiveMaster().getServerManager().createDestinationServersList()
            .contains(server.getRegionServer().getServerName()));
  }

  private interface Condition {
    boolean holds();
  }

  private static void await(Thread thread, Condition condition) throws InterruptedException {
    while (!condition.holds()) {
      if (!thread.isAlive()) {
        throw new IllegalStateException(thread.getName() + " ended while starting");
      }
      Thread.sleep(10);
    }
  }

  private static void shutDown(LocalHBaseCluster cluster, ZooKeeperServer zooKeeper) {
    stopping = true;
    cluster.shutdown();
    cluster.join();
    zooKeeper.shutdown();
    // Other hooks wait for threads that have ended with the cluster.
    Runtime.getRuntime().halt(0);
  }
}
