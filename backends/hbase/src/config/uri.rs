//! A configuration in one line.

use peristyle_core::setting::{choice, decode, duration, number};
use peristyle_core::{Error, Result};

use super::{Api, DEFAULT_PORT, HBaseConfig, Protocol, Transport};

/// The parameters, in the order in which they are listed to people.
const PARAMETERS: [&str; 13] = [
    "api",
    "transport",
    "protocol",
    "pool",
    "connect_timeout",
    "request_timeout",
    "schema_timeout",
    "idle_timeout",
    "max_request_bytes",
    "schema_gateways",
    "colocated",
    "tls",
    "tls_ca",
];

pub(super) fn parse(uri: &str) -> Result<HBaseConfig> {
    let rest = uri.strip_prefix("hbase://").ok_or_else(|| {
        let scheme = uri.split("//").next().unwrap_or_default();
        Error::invalid(format!("{scheme:?} does not start with hbase://"))
    })?;
    let (location, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (hosts, namespace) = location.split_once('/').unwrap_or((location, ""));
    let mut config = HBaseConfig::new(host_list(hosts)?);
    if !namespace.is_empty() {
        config.namespace = decode("namespace", namespace)?;
    }
    let parameters = query.split('&').filter(|parameter| !parameter.is_empty());
    let pairs = parameters.map(|parameter| parameter.split_once('=').unwrap_or((parameter, "")));
    let mut pairs: Vec<(&str, &str)> = pairs.collect();
    // The transport sets the default of another parameter.
    pairs.sort_by_key(|(name, _)| *name != "transport");
    for (name, value) in pairs {
        config = set(config, name, &decode(name, value)?)?;
    }
    config.validate()?;
    Ok(config)
}

fn set(mut config: HBaseConfig, name: &str, value: &str) -> Result<HBaseConfig> {
    match name {
        "api" => config.api = choice(name, value, &[("thrift2", Api::Thrift2), ("thrift1", Api::Thrift1)])?,
        "transport" => {
            let transports =
                [("buffered", Transport::Buffered), ("framed", Transport::Framed), ("http", Transport::Http)];
            config = config.transport(choice(name, value, &transports)?);
        }
        "protocol" => {
            config.protocol = choice(name, value, &[("binary", Protocol::Binary), ("compact", Protocol::Compact)])?;
        }
        "pool" => config.pool = number(name, value, "a number above 0")?,
        "connect_timeout" => config.connect_timeout = duration(name, value)?,
        "request_timeout" => config.request_timeout = duration(name, value)?,
        "schema_timeout" => config.schema_timeout = duration(name, value)?,
        "idle_timeout" => config.idle_timeout = duration(name, value)?,
        "colocated" => config.colocated = value.split(',').map(pair).collect::<Result<_>>()?,
        "tls" => config.tls = choice(name, value, &[("true", true), ("false", false)])?,
        "tls_ca" => config.tls_ca = Some(value.into()),
        "max_request_bytes" => config.max_request_bytes = number(name, value, "a number of bytes")?,
        "schema_gateways" => {
            config.schema_gateways = host_list(value)?.into_iter().map(with_port).collect();
        }
        _ => {
            let known = PARAMETERS.join(", ");
            return Err(Error::invalid(format!("unknown parameter {name:?} in the URI; there are {known}")));
        }
    }
    Ok(config)
}

/// A region server and the gateway that sits with it.
fn pair(value: &str) -> Result<(String, String)> {
    match value.split_once('=') {
        Some((server, gateway)) if !server.is_empty() => Ok((server.to_owned(), with_port(gateway))),
        _ => {
            Err(Error::invalid(format!("colocated={value}: write region servers and gateways as rs1=gw1:9090,rs2=gw2")))
        }
    }
}

/// Hosts with commas; refuses ports that are none, the rest is for name resolution to judge.
fn host_list(hosts: &str) -> Result<Vec<&str>> {
    let check = |host: &str| match port(host).map(str::parse::<u16>) {
        Some(Err(_)) => Err(Error::invalid(format!(
            "host {host:?}: the port is not a number from 1 to 65535 (IPv6 addresses go in brackets)"
        ))),
        _ => Ok(()),
    };
    let hosts: Vec<&str> = hosts.split(',').filter(|host| !host.is_empty()).collect();
    hosts.iter().copied().try_for_each(check).map(|()| hosts)
}

fn port(host: &str) -> Option<&str> {
    match host.rsplit_once(']') {
        Some((_, rest)) => rest.strip_prefix(':'),
        None => host.split_once(':').map(|(_, port)| port),
    }
}

/// The host with the default port where it has none.
pub(super) fn with_port(host: &str) -> String {
    if port(host).is_some() { host.to_owned() } else { format!("{host}:{DEFAULT_PORT}") }
}
