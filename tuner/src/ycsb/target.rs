//! Which database a command line names.

use std::time::Duration;

use peristyle::Client;
use peristyle_ycsb::{Settings, Store};

use super::known::CASSANDRA;
use super::options::{Options, Phase};
use super::properties::Properties;
use crate::failure::{Failure, Result};
use crate::space::Point;
use crate::target::{Session, TargetUri};

/// How long opening the table may take.
const OPEN: Duration = Duration::from_secs(60);
/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(20);

/// The database that a command line names.
#[derive(Debug, Clone)]
pub(crate) struct Database {
    pub(crate) uri: TargetUri,
    settings: Settings,
}

impl Database {
    pub(crate) fn of(options: &Options, settings: &Settings) -> Result<Self> {
        let uri = TargetUri::parse(&uri(&options.properties)?)?;
        if uri.simulated().is_some() {
            return Err(Failure::input("sim:// has no records; name a database with -db"));
        }
        if options.phase == Phase::Load && uri.is_temporary() {
            eprintln!("warning: {uri} lives no longer than this load; give a folder: -db embedded:/folder");
        }
        let settings = Settings { create: settings.create || uri.is_temporary(), ..settings.clone() };
        Ok(Self { uri, settings })
    }

    /// Connects with the settings of a point, and opens the table. An engine in this process is opened once: `engine` is the
    /// client of an earlier session.
    pub(crate) fn open(&self, point: Point, engine: Option<&Client>) -> Result<(Session, Store)> {
        let session = Session::connect(&self.uri, point, engine, CONNECT)?;
        let store = session.runtime.block_on(async {
            match tokio::time::timeout(OPEN, Store::open(session.client.clone(), &self.settings)).await {
                Ok(opened) => opened.map_err(|error| error.to_string()),
                Err(_) => Err(format!("open: no answer within {} s", OPEN.as_secs())),
            }
        });
        let store = store.map_err(|why| Failure::input(format!("{}: {}", self.uri, self.uri.hide(&why))))?;
        Ok((session, store))
    }
}

/// The URI that `-db` is or stands for.
fn uri(properties: &Properties) -> Result<String> {
    let ours = || peristyle_ycsb::uri(|name| properties.get(name));
    let Some(db) = properties.get("db").map(str::trim) else { return Ok(ours()) };
    if db.contains(':') {
        let tuned = |name: &str| if name == "peristyle.uri" { Some(db) } else { properties.get(name) };
        return Ok(peristyle_ycsb::uri(tuned));
    }
    match db.rsplit('.').next().unwrap_or(db) {
        "peristyle" | "PeristyleClient" => Ok(ours()),
        "embedded" | "memory" => Ok(format!("{db}:")),
        "cassandra-cql" | "cassandra2-cql" | "scylla" | "CassandraCQLClient" | "ScyllaCQLClient" => {
            cassandra(properties)
        }
        name => Err(Failure::input(format!(
            "-db {name} is no binding that is known here; give a URI such as cql://host:9042/ycsb, hbase://gateway:9090/default or embedded:/folder, or one of peristyle, embedded, memory, cassandra-cql, scylla"
        ))),
    }
}

/// The URI for the properties of YCSB's own binding for Cassandra.
fn cassandra(properties: &Properties) -> Result<String> {
    let [hosts, port, keyspace, user, password] = CASSANDRA.map(|name| properties.get(name).map(str::trim));
    let hosts = hosts.ok_or_else(|| Failure::input("-db cassandra-cql takes its hosts from -p hosts=HOST,HOST"))?;
    let port = port.unwrap_or("9042");
    let hosts: Vec<String> = hosts.split(',').map(|host| format!("{}:{port}", host.trim())).collect();
    let login = match (user, password) {
        (Some(user), Some(password)) => format!("{}:{}@", encode(user), encode(password)),
        _ => String::new(),
    };
    Ok(format!("cql://{login}{}/{}", hosts.join(","), keyspace.unwrap_or("ycsb")))
}

fn encode(text: &str) -> String {
    // A plus sign of forms stands for a blank, which logins spell out.
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> Result<String> {
        let mut properties = Properties::default();
        for (name, value) in pairs {
            properties.set(name, value);
        }
        uri(&properties)
    }

    #[test]
    fn a_binding_stands_for_a_uri() {
        assert_eq!(of(&[]).unwrap(), "embedded:");
        assert_eq!(of(&[("db", "cql://h/ks")]).unwrap(), "cql://h/ks");
        assert_eq!(of(&[("db", "cql://h/ks"), ("peristyle.config", "t.toml")]).unwrap(), "cql://h/ks?tuned=t.toml");
        let ours = [("db", "io.peristyle.ycsb.PeristyleClient"), ("peristyle.uri", "memory:")];
        assert_eq!(of(&ours).unwrap(), "memory:");
        let login = [("cassandra.username", "a"), ("cassandra.password", "b c@d")];
        let cassandra = [("db", "site.ycsb.db.CassandraCQLClient"), ("hosts", "h1, h2"), login[0], login[1]];
        assert_eq!(of(&cassandra).unwrap(), "cql://a:b%20c%40d@h1:9042,h2:9042/ycsb");
    }

    #[test]
    fn an_unknown_binding_is_told_with_those_there_are() {
        assert!(of(&[("db", "site.ycsb.db.MongoDbClient")]).unwrap_err().to_string().contains("cassandra-cql"));
        assert!(of(&[("db", "cassandra-cql")]).unwrap_err().to_string().contains("hosts"));
    }
}
