package peristyle;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hbase.thrift.ThriftServer;

/**
 * A Thrift gateway. Its specification is words joined by colons: {@code thrift1} or {@code thrift2},
 * the port, then any of {@code framed}, {@code compact}, {@code http}, {@code https}.
 *
 * <p>As a process of its own, its arguments are the path of hbase-site.xml and the specification.
 */
public final class Gateway {
  /** A key store has to have one; the key is as open as the PEM file it comes from. */
  private static final String PASSWORD = "peristyle";

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
    conf.setBoolean("hbase.regionserver.thrift.http", words.contains("http") || words.contains("https"));
    if (words.contains("https")) {
      encrypt(conf, Path.of(conf.get("peristyle.certificate")));
    }
    ThriftServer server = words.get(0).equals("thrift1")
        ? new ThriftServer(conf)
        : new org.apache.hadoop.hbase.thrift2.ThriftServer(conf);
    Thread thread = new Thread(() -> serve(server, arguments), "gateway-" + specification);
    thread.start();
    awaitConnection(new InetSocketAddress(address(shared), port));
    return thread;
  }

  /** HBase reads Java's key stores only, so one is made of the PEM file. */
  private static void encrypt(Configuration conf, Path pem) throws Exception {
    String text = Files.readString(pem);
    String footer = "-----END PRIVATE KEY-----";
    int end = text.indexOf(footer) + footer.length();
    byte[] key = Base64.getMimeDecoder().decode(text.substring(0, end).replaceAll("-----[A-Z ]+-----", ""));
    Certificate certificate = CertificateFactory.getInstance("X.509")
        .generateCertificate(new ByteArrayInputStream(text.substring(end).getBytes()));
    PrivateKey parsed = KeyFactory.getInstance(certificate.getPublicKey().getAlgorithm())
        .generatePrivate(new PKCS8EncodedKeySpec(key));
    KeyStore store = KeyStore.getInstance("PKCS12");
    store.load(null, null);
    store.setKeyEntry("server", parsed, PASSWORD.toCharArray(), new Certificate[] {certificate});
    Path file = Files.createTempFile("gateway", ".p12");
    try (OutputStream out = Files.newOutputStream(file)) {
      store.store(out, PASSWORD.toCharArray());
    }
    conf.setBoolean("hbase.thrift.ssl.enabled", true);
    conf.set("hbase.thrift.ssl.keystore.store", file.toString());
    conf.set("hbase.thrift.ssl.keystore.type", "PKCS12");
    conf.set("hbase.thrift.ssl.keystore.password", PASSWORD);
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
