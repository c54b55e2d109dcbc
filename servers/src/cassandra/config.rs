//! What a node is told: `cassandra.yaml`, the JVM's arguments, the logger.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

use crate::certificates::Certificates;
use crate::jvm::Jvm;
use crate::{Error, cache};

/// The ports a node listens on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ports {
    pub(crate) cql: u16,
    pub(crate) storage: u16,
}

impl Ports {
    pub(crate) fn all(self) -> [u16; 2] {
        [self.cql, self.storage]
    }
}

/// The settings of one node.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) ports: Ports,
    pub(crate) jvm: Jvm,
    pub(crate) durable: bool,
    pub(crate) password_auth: bool,
    pub(crate) tls: Tls,
    /// Data center and rack.
    pub(crate) place: Option<(String, String)>,
    pub(crate) seed: Option<Ipv4Addr>,
    pub(crate) settings: BTreeMap<String, String>,
}

/// How clients connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tls {
    Off,
    Server,
    Mutual,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            ports: Ports { cql: 9042, storage: 7000 },
            jvm: Jvm::new(1024),
            durable: false,
            password_auth: false,
            tls: Tls::Off,
            place: None,
            seed: None,
            settings: BTreeMap::new(),
        }
    }
}

/// The files of a node, all in its run folder.
#[derive(Debug)]
pub(crate) struct Files {
    folder: PathBuf,
}

impl Files {
    pub(crate) fn new(folder: &Path) -> Files {
        Files { folder: folder.to_owned() }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    pub(crate) fn certificates(&self) -> PathBuf {
        self.folder.join("tls")
    }

    pub(crate) fn logs(&self) -> PathBuf {
        self.folder.join("start")
    }

    fn yaml(&self) -> PathBuf {
        self.folder.join("cassandra.yaml")
    }

    fn logger(&self) -> PathBuf {
        self.folder.join("logback.xml")
    }

    fn place(&self) -> PathBuf {
        self.folder.join("rackdc.properties")
    }
}

impl Config {
    /// Writes all configuration files.
    pub(crate) fn write(
        &self,
        files: &Files,
        address: Ipv4Addr,
        certificates: Option<&Certificates>,
    ) -> Result<(), Error> {
        let mut yaml = String::new();
        for (key, value) in self.yaml(address, certificates) {
            // Writing to a string does not fail.
            let _ = writeln!(yaml, "{key}: {value}");
        }
        cache::write(&files.yaml(), &yaml)?;
        cache::write(&files.logger(), LOGGER)?;
        if let Some((center, rack)) = &self.place {
            cache::write(&files.place(), &format!("dc={center}\nrack={rack}\n"))?;
        }
        Ok(())
    }

    fn yaml(&self, address: Ipv4Addr, certificates: Option<&Certificates>) -> BTreeMap<String, String> {
        let mut yaml: BTreeMap<String, String> =
            FIXED.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        let mut set = |key: &str, value: String| yaml.insert(key.into(), value);
        let Ports { cql, storage } = self.ports;
        let seed = self.seed.unwrap_or(address);
        set("listen_address", address.to_string());
        set("rpc_address", address.to_string());
        set("native_transport_port", cql.to_string());
        set("storage_port", storage.to_string());
        set("seed_provider", seeds(seed, storage));
        if self.durable {
            set("commitlog_sync", "batch".into());
        } else {
            set("commitlog_sync", "periodic".into());
            set("commitlog_sync_period", "10s".into());
        }
        let placed = self.place.is_some();
        let snitch = if placed { "GossipingPropertyFileSnitch" } else { "SimpleSnitch" };
        set("endpoint_snitch", snitch.into());
        if self.password_auth {
            set("authenticator", "PasswordAuthenticator".into());
            set("authorizer", "CassandraAuthorizer".into());
            set("role_manager", "CassandraRoleManager".into());
        }
        if let Some(certificates) = certificates {
            set("client_encryption_options", self.encryption(certificates));
        }
        yaml.extend(self.settings.clone());
        yaml
    }

    /// Cassandra reads PEM files as they are since 4.1, so no Java key store is needed.
    fn encryption(&self, certificates: &Certificates) -> String {
        let mut options = format!(
            "{{enabled: true, optional: false, \
             ssl_context_factory: {{class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}}, \
             keystore: '{}'",
            certificates.server().display()
        );
        if self.tls == Tls::Mutual {
            let authority = certificates.authority().display();
            // Writing to a string does not fail.
            let _ = write!(options, ", require_client_auth: true, truststore: '{authority}'");
        }
        options + "}"
    }

    /// What the JVM is told for Cassandra.
    pub(crate) fn jvm_arguments(&self, files: &Files) -> Vec<String> {
        let mut arguments: Vec<String> = JVM.iter().map(|&argument| argument.into()).collect();
        if !self.durable {
            arguments.extend(THROWAWAY.map(String::from));
        }
        let mut file = |key: &str, path: PathBuf| {
            arguments.push(format!("-D{key}=file://{}", path.display()));
        };
        file("cassandra.config", files.yaml());
        file("logback.configurationFile", files.logger());
        if self.place.is_some() {
            file("cassandra-rackdc.properties", files.place());
        }
        arguments.push(format!("-Dcassandra.storagedir={}", files.data().display()));
        arguments
    }
}

fn seeds(seed: Ipv4Addr, port: u16) -> String {
    format!(
        "[{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, \
         parameters: [{{seeds: '{seed}:{port}'}}]}}]"
    )
}

/// Settings that all nodes share: a small, quick server with every feature of the language on.
const FIXED: [(&str, &str); 13] = [
    ("cluster_name", "peristyle"),
    ("num_tokens", "16"),
    ("partitioner", "org.apache.cassandra.dht.Murmur3Partitioner"),
    ("auto_bootstrap", "false"),
    ("auto_snapshot", "false"),
    ("block_for_peers_timeout_in_secs", "-1"),
    ("commitlog_segment_size", "8MiB"),
    ("concurrent_compactors", "1"),
    ("key_cache_size", "16MiB"),
    ("file_cache_size", "64MiB"),
    ("user_defined_functions_enabled", "true"),
    ("materialized_views_enabled", "true"),
    ("sasi_indexes_enabled", "true"),
];

/// What the JVM needs for Cassandra on Java 17, and no waiting for a cluster that is not there.
const JVM: [&str; 14] = [
    "-Xss512k",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-opens=java.base/java.io=ALL-UNNAMED",
    "-Dcassandra-foreground=yes",
    "-Dcassandra.memtable.row_overhead_size=200",
    "-Dcassandra.skip_wait_for_gossip_to_settle=0",
    "-Dcassandra.ring_delay_ms=100",
    "-Dcassandra.superuser_setup_delay_ms=0",
    "-Dcassandra.auth_bcrypt_gensalt_log2_rounds=4",
    "-Dcassandra.shutdown_announce_in_ms=0",
    "-Dcassandra.test.messagingService.nonGracefulShutdown=true",
    "-Dcassandra.test.ignore_sigar=true",
    "-Dcassandra.disable_tcactive_openssl=true",
];

/// No fsync and no flush of schema changes: quicker, and nothing survives a kill.
const THROWAWAY: [&str; 3] = [
    "-Dcassandra.unsafesystem=true",
    "-Dcassandra.skip_sync=true",
    "-Dcassandra.test.flush_local_schema_changes=false",
];

const LOGGER: &str = r#"<configuration>
  <appender name="STDOUT" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d{HH:mm:ss.SSS} %-5level %logger{0}: %msg%n</pattern></encoder>
  </appender>
  <root level="INFO"><appender-ref ref="STDOUT"/></root>
</configuration>
"#;

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 9, 8, 1);

    #[test]
    fn a_setting_of_the_caller_replaces_the_default() {
        let mut config = Config::default();
        config.settings.insert("num_tokens".into(), "4".into());
        let yaml = config.yaml(ADDRESS, None);
        assert_eq!(yaml.get("num_tokens").unwrap(), "4");
        assert_eq!(yaml.get("rpc_address").unwrap(), "127.9.8.1");
    }

    #[test]
    fn a_node_is_its_own_seed_unless_told_otherwise() {
        let mut config = Config::default();
        assert!(config.yaml(ADDRESS, None)["seed_provider"].contains("'127.9.8.1:7000'"));
        config.seed = Some(Ipv4Addr::new(127, 9, 8, 7));
        assert!(config.yaml(ADDRESS, None)["seed_provider"].contains("'127.9.8.7:7000'"));
    }

    #[test]
    fn only_a_durable_node_keeps_its_fsyncs() {
        let files = Files::new(Path::new("/run"));
        let arguments = |durable| {
            let config = Config { durable, ..Config::default() };
            config.jvm_arguments(&files).join(" ")
        };
        assert!(arguments(false).contains("skip_sync"));
        assert!(!arguments(true).contains("skip_sync"));
    }
}
