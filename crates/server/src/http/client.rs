//! Which address a request comes from: the connection's, or the one that proxies name who are trusted to.
//!
//! Everybody may send `X-Forwarded-For`. It counts only as far as those who wrote into it are trusted, from the right:
//! each proxy appends the address that it was reached from.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Most proxies in a row that are believed.
const HOPS: usize = 32;

/// The address at the other end of a connection; an extension of its requests.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

/// The address of who asks; an extension of a request once that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Client(pub(super) IpAddr);

/// The right-most address that is not itself a trusted proxy's.
pub(super) fn address(peer: IpAddr, headers: &HeaderMap, trusted: &[IpNet]) -> IpAddr {
    let is_trusted = |ip: &IpAddr| trusted.iter().any(|net| net.contains(ip));
    let mut client = peer.to_canonical();
    let lines = headers.get_all(X_FORWARDED_FOR).iter().rev();
    let entries = lines.flat_map(|line| line.to_str().unwrap_or_default().rsplit(',')).map(entry);
    for next in entries.take(HOPS) {
        match next {
            Some(next) if is_trusted(&client) => client = next,
            _ => break,
        }
    }
    client
}

/// An address, with or without a port.
fn entry(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let ip = text.parse().or_else(|_| text.parse::<SocketAddr>().map(|socket| socket.ip()));
    ip.ok().map(|ip: IpAddr| ip.to_canonical())
}

/// What counts as one client: an IPv4 address, or the /64 that one IPv6 host usually has to itself.
pub fn neighbourhood(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & (u128::MAX << 64))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, lines: &[&str]) -> String {
        let trusted: Vec<IpNet> = ["10.0.0.0/8", "fd00::/8"].iter().map(|net| net.parse().unwrap()).collect();
        let headers = lines.iter().map(|line| (X_FORWARDED_FOR, line.parse().unwrap())).collect();
        address(peer.parse().unwrap(), &headers, &trusted).to_string()
    }

    #[test]
    fn a_stranger_is_not_believed() {
        assert_eq!(client("203.0.113.9", &["198.51.100.1"]), "203.0.113.9");
        assert_eq!(client("203.0.113.9", &[]), "203.0.113.9");
    }

    #[test]
    fn a_trusted_proxy_names_the_client() {
        assert_eq!(client("10.0.0.1", &["198.51.100.1"]), "198.51.100.1");
        assert_eq!(client("::ffff:10.0.0.1", &["198.51.100.1:4711"]), "198.51.100.1");
        assert_eq!(client("fd00::1", &["[2001:db8::7]:4711"]), "2001:db8::7");
        assert_eq!(client("10.0.0.1", &[]), "10.0.0.1");
    }

    #[test]
    fn what_lies_beyond_the_first_stranger_is_hearsay() {
        assert_eq!(client("10.0.0.1", &["192.0.2.66, 198.51.100.1, 10.0.0.2"]), "198.51.100.1");
        assert_eq!(client("10.0.0.1", &["192.0.2.66", "198.51.100.1", "10.0.0.2"]), "198.51.100.1");
    }

    #[test]
    fn where_all_are_trusted_it_is_the_first_of_them() {
        assert_eq!(client("10.0.0.1", &["10.0.0.3, 10.0.0.2"]), "10.0.0.3");
    }

    #[test]
    fn a_malformed_entry_ends_the_walk() {
        for bad in ["unknown", "", "_hidden", "198.51.100.1.9", "\u{e9}"] {
            assert_eq!(client("10.0.0.1", &["198.51.100.1", bad, "10.0.0.2"]), "10.0.0.2", "{bad}");
        }
    }

    #[test]
    fn the_walk_is_bounded() {
        let long = vec!["10.0.0.2"; 1000].join(", ");
        assert_eq!(client("10.0.0.1", &["198.51.100.1", &long]), "10.0.0.2");
    }

    #[test]
    fn an_ipv6_client_is_its_network() {
        let of = |text: &str| neighbourhood(text.parse().unwrap()).to_string();
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::");
        assert_eq!(of("192.0.2.7"), "192.0.2.7");
    }
}
