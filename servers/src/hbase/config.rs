//! What HBase is told: `hbase-site.xml`, the JVM's arguments, the logger.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::certificates::Certificates;
use crate::jvm::Jvm;
use crate::{Error, cache};

/// The settings of one HBase.
#[derive(Clone, Debug)]
pub(super) struct Config {
    pub(super) region_servers: u32,
    pub(super) zookeeper_port: u16,
    pub(super) control_port: u16,
    pub(super) write_ahead_log: bool,
    pub(super) jvm: Jvm,
    pub(super) settings: BTreeMap<String, String>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            region_servers: 3,
            zookeeper_port: 2181,
            control_port: 9099,
            write_ahead_log: true,
            jvm: Jvm::new(512),
            settings: BTreeMap::new(),
        }
    }
}

/// The files of an HBase, all in its run folder.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(super) fn new(folder: &Path) -> Files {
        Files { folder: folder.to_owned() }
    }

    pub(super) fn site(&self) -> PathBuf {
        self.folder.join("hbase-site.xml")
    }

    pub(super) fn certificates(&self) -> PathBuf {
        self.folder.join("tls")
    }

    pub(super) fn logs(&self) -> PathBuf {
        self.folder.join("start")
    }

    pub(super) fn gateway_logs(&self, port: u16) -> PathBuf {
        self.folder.join(format!("gateway-{port}"))
    }

    fn logger(&self) -> PathBuf {
        self.folder.join("log4j.properties")
    }

    fn temporary(&self) -> PathBuf {
        self.folder.join("temporary")
    }
}

impl Config {
    /// Writes all configuration files.
    pub(super) fn write(
        &self,
        files: &Files,
        address: Ipv4Addr,
        certificates: Option<&Certificates>,
    ) -> Result<(), Error> {
        cache::make_folder(&files.temporary())?;
        cache::write(&files.logger(), LOGGER)?;
        let mut site = self.site(files, address);
        if let Some(certificates) = certificates {
            site.insert("peristyle.certificate".into(), certificates.server().display().to_string());
        }
        cache::write(&files.site(), &xml(&site))
    }

    fn site(&self, files: &Files, address: Ipv4Addr) -> BTreeMap<String, String> {
        let mut site: BTreeMap<String, String> =
            FIXED.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let mut set = |key: &str, value: String| site.insert(key.into(), value);
        for key in ADDRESSES {
            set(key, address.to_string());
        }
        let within = |name: &str| files.folder.join(name).display().to_string();
        set("hbase.rootdir", format!("file://{}", within("hbase")));
        set("hbase.tmp.dir", within("temporary"));
        set("hadoop.tmp.dir", within("temporary"));
        set("hbase.zookeeper.property.dataDir", within("zookeeper"));
        set("hbase.zookeeper.property.clientPort", self.zookeeper_port.to_string());
        set("peristyle.control.port", self.control_port.to_string());
        set("hbase.regionservers", self.region_servers.to_string());
        set("hbase.master.wait.on.regionservers.mintostart", self.region_servers.to_string());
        set("hbase.master.wait.on.regionservers.maxtostart", self.region_servers.to_string());
        set("hbase.regionserver.hlog.enabled", self.write_ahead_log.to_string());
        if !self.jvm.bench {
            set("hbase.regionserver.handler.count", "10".into());
            // Chunks of 2 MiB for every region that is written to: tables of many regions would fill the heap.
            set("hbase.hregion.memstore.mslab.enabled", "false".into());
        }
        site.extend(self.settings.clone());
        site
    }

    /// What the JVM is told for HBase and for its gateways.
    pub(super) fn jvm_arguments(files: &Files) -> Vec<String> {
        let mut arguments: Vec<String> = JVM.iter().map(|&argument| argument.into()).collect();
        arguments.push(format!("-Djava.io.tmpdir={}", files.temporary().display()));
        arguments.push(format!("-Dlog4j.configuration=file:{}", files.logger().display()));
        arguments
    }
}

fn xml(site: &BTreeMap<String, String>) -> String {
    let mut text = "<configuration>\n".to_owned();
    for (key, value) in site {
        let (key, value) = (escape(key), escape(value));
        // Writing to a string does not fail.
        let _ = writeln!(text, "  <property><name>{key}</name><value>{value}</value></property>");
    }
    text + "</configuration>\n"
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}

/// Everything listens on, and is known by, the one address.
const ADDRESSES: [&str; 5] = [
    "hbase.zookeeper.quorum",
    "hbase.master.hostname",
    "hbase.master.ipc.address",
    "hbase.regionserver.hostname",
    "hbase.regionserver.ipc.address",
];

/// A small, quick server. Its ports are free ones but for those that people connect to, it has no
/// web pages, and it does not wait for servers that nobody will start.
const FIXED: [(&str, &str); 16] = [
    ("hbase.cluster.distributed", "false"),
    // A local disk has no hflush; without a checksum file beside it, a write reaches the system.
    ("hbase.unsafe.stream.capability.enforce", "false"),
    ("hbase.wal.provider", "filesystem"),
    ("hbase.master.port", "0"),
    ("hbase.regionserver.port", "0"),
    ("hbase.master.info.port", "-1"),
    ("hbase.regionserver.info.port", "-1"),
    ("hbase.thrift.info.port", "-1"),
    ("hbase.master.wait.on.regionservers.interval", "100"),
    ("hbase.regionserver.msginterval", "500"),
    ("hbase.server.thread.wakefrequency", "1000"),
    ("hbase.zookeeper.property.tickTime", "1000"),
    // The launcher ends the servers in order, so nothing else may.
    ("hbase.shutdown.hook", "false"),
    ("fs.automatic.close", "false"),
    // A busy machine must not make a server believe that it is dead.
    ("zookeeper.session.timeout", "20000"),
    ("hbase.master.start.timeout.localHBaseCluster", "90000"),
];

/// What `bin/hbase` tells a JVM from Java 11 on, and a `ZooKeeper` without fsync or large files.
const JVM: [&str; 15] = [
    "--add-modules=jdk.unsupported",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.reflect=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/java.util=ALL-UNNAMED",
    "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
    "--add-opens=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.misc=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    "-Dorg.apache.hbase.thirdparty.io.netty.tryReflectionSetAccessible=true",
    "-Djava.net.preferIPv4Stack=true",
    "-Dzookeeper.forceSync=no",
    "-Dzookeeper.preAllocSize=1024",
];

const LOGGER: &str = "log4j.rootLogger=INFO, out
log4j.appender.out=org.apache.log4j.ConsoleAppender
log4j.appender.out.layout=org.apache.log4j.PatternLayout
log4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss.SSS} %-5p %c{1}: %m%n
";

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 9, 8, 1);

    #[test]
    fn a_setting_of_the_caller_replaces_the_default() {
        let mut config = Config::default();
        config.settings.insert("hbase.regionserver.msginterval".into(), "9".into());
        let site = config.site(&Files::new(Path::new("/run")), ADDRESS);
        assert_eq!(site["hbase.regionserver.msginterval"], "9");
        assert_eq!(site["hbase.zookeeper.quorum"], "127.9.8.1");
        assert_eq!(site["hbase.rootdir"], "file:///run/hbase");
    }

    #[test]
    fn values_are_escaped_in_the_file() {
        let site = BTreeMap::from([("key".to_owned(), "a<b&c".to_owned())]);
        assert!(xml(&site).contains("<name>key</name><value>a&lt;b&amp;c</value>"));
    }
}
