//! A configuration in one line.

use std::fmt;

use peristyle_core::setting::{choice, decode, duration, number};
use peristyle_core::{Error, Result};
use serde::{Deserialize, Deserializer};

use super::{BatchGrouping, Compression, CqlConfig, DEFAULT_PORT, PoolPer, Secret, TlsVerify};

/// The parameters, in the order in which they are listed to people.
const PARAMETERS: [&str; 20] = [
    "user",
    "password",
    "datacenter",
    "consistency",
    "serial_consistency",
    "pool",
    "pool_per",
    "compression",
    "connect_timeout",
    "request_timeout",
    "schema_timeout",
    "page_size",
    "batch_grouping",
    "max_expiry",
    "keyspace",
    "tls",
    "tls_ca",
    "tls_cert",
    "tls_key",
    "tls_verify",
];

pub(super) fn parse(uri: &str) -> Result<CqlConfig> {
    let rest = uri
        .strip_prefix("cql://")
        .ok_or_else(|| Error::invalid(format!("{:?} does not start with cql://", scheme(uri))))?;
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, keyspace) = location.split_once('/').unwrap_or((location, ""));
    let (login, hosts) = match authority.rsplit_once('@') {
        Some((login, hosts)) => (Some(login), hosts),
        None => (None, authority),
    };
    let hosts = hosts.split(',').filter(|host| !host.is_empty()).map(check_host).collect::<Result<Vec<_>>>()?;
    let mut config = CqlConfig::new(hosts);
    if let Some(login) = login {
        let (user, password) = login.split_once(':').unwrap_or((login, ""));
        config = config.login(decode("user", user)?, decode("password", password)?);
    }
    if !keyspace.is_empty() {
        config.keyspace = Some(decode("keyspace", keyspace)?);
    }
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        set(&mut config, name, &decode(name, value)?)?;
    }
    config.validate()?;
    Ok(config)
}

fn set(config: &mut CqlConfig, name: &str, value: &str) -> Result<()> {
    match name {
        "user" => config.user = Some(value.to_owned()),
        "password" => config.password = Some(Secret::from(value)),
        "datacenter" => config.datacenter = Some(value.to_owned()),
        "consistency" => config.consistency = value.parse()?,
        "serial_consistency" => config.serial_consistency = value.parse()?,
        "pool" => config.pool = number(name, value, "a number above 0")?,
        "pool_per" => config.pool_per = choice(name, value, &[("host", PoolPer::Host), ("shard", PoolPer::Shard)])?,
        "compression" => config.compression = choice(name, value, &COMPRESSIONS)?,
        "connect_timeout" => config.connect_timeout = duration(name, value)?,
        "request_timeout" => config.request_timeout = duration(name, value)?,
        "schema_timeout" => config.schema_timeout = duration(name, value)?,
        "page_size" => config.page_size = number(name, value, "1 to 65535 rows")?,
        "batch_grouping" => config.batch_grouping = choice(name, value, &GROUPINGS)?,
        "max_expiry" => config.max_expiry = number(name, value, "seconds since 1970")?,
        "keyspace" => config.keyspace = Some(value.to_owned()),
        "tls" => config.tls = choice(name, value, &[("true", true), ("false", false)])?,
        "tls_ca" => config.tls_ca = Some(value.into()),
        "tls_cert" => config.tls_cert = Some(value.into()),
        "tls_key" => config.tls_key = Some(value.into()),
        "tls_verify" => config.tls_verify = choice(name, value, &VERIFICATIONS)?,
        _ => {
            let known = PARAMETERS.join(", ");
            return Err(Error::invalid(format!("unknown parameter {name:?} in the URI; there are {known}")));
        }
    }
    Ok(())
}

const COMPRESSIONS: [(&str, Compression); 3] =
    [("none", Compression::None), ("lz4", Compression::Lz4), ("snappy", Compression::Snappy)];

const GROUPINGS: [(&str, BatchGrouping); 2] =
    [("partition", BatchGrouping::Partition), ("mixed", BatchGrouping::Mixed)];

/// The words of TOML, and `true` and `false`.
const VERIFICATIONS: [(&str, TlsVerify); 5] = [
    ("full", TlsVerify::Full),
    ("authority", TlsVerify::Authority),
    ("nothing", TlsVerify::Nothing),
    ("true", TlsVerify::Full),
    ("false", TlsVerify::Nothing),
];

fn scheme(uri: &str) -> &str {
    uri.split("//").next().unwrap_or_default()
}

/// Refuses ports that are none; the rest is for name resolution to judge.
fn check_host(host: &str) -> Result<&str> {
    let port = match host.rsplit_once(']') {
        Some((_, rest)) => rest.strip_prefix(':'),
        None => host.split_once(':').map(|(_, port)| port),
    };
    match port.map(str::parse::<u16>) {
        Some(Err(_)) => Err(Error::invalid(format!(
            "host {host:?}: the port is not a number from 1 to 65535 (IPv6 addresses go in brackets)"
        ))),
        _ => Ok(host),
    }
}

/// The host with the default port where it has none.
pub(super) fn with_port(host: &str) -> String {
    let bare = match host.strip_prefix('[') {
        Some(_) => host.ends_with(']'),
        None => !host.contains(':'),
    };
    if bare { format!("{host}:{DEFAULT_PORT}") } else { host.to_owned() }
}

/// Hosts of TOML: a list.
pub(super) fn hosts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let hosts = Vec::<String>::deserialize(deserializer)?;
    let check = |host: &String| check_host(host).map(with_port).map_err(|error| custom(&error));
    hosts.iter().map(check).collect()
}

fn custom<E: serde::de::Error>(error: &dyn fmt::Display) -> E {
    E::custom(error)
}
