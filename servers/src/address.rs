//! Addresses of one's own: every node listens somewhere in `127.0.0.0/8`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::Error;

/// Nodes of a ring have neighbouring addresses; blocks of this size never overlap.
pub(crate) const BLOCK: u8 = 15;

/// The address asked for, if it is a loopback one, or a free one.
pub(crate) fn choose(asked: Option<Ipv4Addr>, ports: &[u16]) -> Result<Ipv4Addr, Error> {
    match asked {
        Some(address) if address.is_loopback() => Ok(address),
        Some(other) => Err(Error::Setting(format!("{other} is not in 127.0.0.0/8"))),
        None => allocate(1, ports),
    }
}

/// The first of `count` neighbouring addresses on which the ports are free.
///
/// They are chosen by a hash of the process and a counter among four million blocks, so two runs
/// meet on one only by a rare chance, and then the check tells.
pub(crate) fn allocate(count: u8, ports: &[u16]) -> Result<Ipv4Addr, Error> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..100 {
        let first = block(process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        if neighbours(first, count).all(|address| check_free(address, ports).is_ok()) {
            return Ok(first);
        }
    }
    Err(Error::Setting("no free loopback address found in 100 tries".into()))
}

/// The block that hash and counter point to; `127.0.0.x` is left to people.
fn block(process: u32, counter: u32) -> Ipv4Addr {
    let mut hasher = DefaultHasher::new();
    (process, counter).hash(&mut hasher);
    let [a, b, c, ..] = hasher.finish().to_be_bytes();
    Ipv4Addr::new(127, a.max(1), b, 1 + (c % 15) * 16)
}

/// `count` addresses from `first` on.
pub(crate) fn neighbours(first: Ipv4Addr, count: u8) -> impl Iterator<Item = Ipv4Addr> {
    let [a, b, c, d] = first.octets();
    (0..count).map(move |step| Ipv4Addr::new(a, b, c, d.saturating_add(step)))
}

/// Checks that nobody listens on the ports of an address.
pub(crate) fn check_free(address: Ipv4Addr, ports: &[u16]) -> Result<(), Error> {
    for &port in ports {
        let socket = SocketAddr::new(IpAddr::V4(address), port);
        TcpListener::bind(socket).map_err(|error| {
            Error::Setting(format!(
                "{socket} cannot be listened on ({error}); stop who does, or choose another address"
            ))
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_of_the_greatest_size_stays_inside_its_block() {
        for counter in 0..1000 {
            let first = block(4711, counter);
            let last = neighbours(first, BLOCK).last().unwrap();
            assert!(last.is_loopback());
            assert!(last.octets()[3] < 255, "{last} is a broadcast address");
            assert_eq!(first.octets()[3] / 16, last.octets()[3] / 16, "{last} left the block");
        }
    }

    #[test]
    fn an_address_in_use_is_refused_by_name() {
        let taken = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = check_free(Ipv4Addr::LOCALHOST, &[port]).unwrap_err();
        assert!(error.to_string().contains(&format!("127.0.0.1:{port}")));
    }

    #[test]
    fn an_address_off_loopback_is_refused() {
        let error = choose(Some(Ipv4Addr::new(10, 0, 0, 1)), &[]).unwrap_err();
        assert_eq!(error.to_string(), "10.0.0.1 is not in 127.0.0.0/8");
    }
}
