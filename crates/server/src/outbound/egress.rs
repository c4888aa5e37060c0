//! What the operator allows beyond the public internet: networks, addresses, names, single sockets.
//!
//! A value without I/O. It never removes anything: what is public is always allowed, and what is neither public nor
//! listed here never is.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use ipnet::{IpNet, Ipv4Net};
use url::Host;

use super::address;

/// The operator's list of targets that are not public but may be reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Egress {
    networks: Vec<IpNet>,
    sockets: Vec<SocketAddr>,
    names: BTreeSet<String>,
}

/// An entry of the list that cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` is not a network (10.0.0.0/8), an address, a host name or an address with a port")]
pub struct EgressProblem {
    /// The entry as it was written.
    pub entry: String,
}

impl Egress {
    /// Reads a comma-separated list: networks, addresses, `address:port`, host names. An empty list allows nothing.
    pub fn parse(list: &str) -> Result<Self, EgressProblem> {
        let mut egress = Self::default();
        for entry in list.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
            egress.add(entry).ok_or_else(|| EgressProblem { entry: entry.to_owned() })?;
        }
        Ok(egress)
    }

    /// Also allows this machine itself, on every port.
    pub fn allow_loopback(mut self) -> Self {
        self.networks.push(Ipv4Net::new_assert(Ipv4Addr::new(127, 0, 0, 0), 8).into());
        self.networks.push(IpAddr::from(Ipv6Addr::LOCALHOST).into());
        self
    }

    /// Also allows one port of one address.
    pub fn allow_socket(mut self, socket: SocketAddr) -> Self {
        self.sockets.push(socket);
        self
    }

    /// Whether a target written as an address may be reached at this port.
    pub fn allows_socket(&self, socket: SocketAddr) -> bool {
        let ip = address::canonical(socket.ip());
        let listed = |s: &SocketAddr| s.port() == socket.port() && address::canonical(s.ip()) == ip;
        self.sockets.iter().any(listed) || self.allows_address(ip)
    }

    /// Whether this address may be reached, whatever the port.
    pub fn allows_address(&self, ip: IpAddr) -> bool {
        let ip = address::canonical(ip);
        address::is_public(ip) || self.networks.iter().any(|network| network.contains(&ip))
    }

    /// Whether this name may be reached wherever it leads.
    pub fn allows_name(&self, name: &str) -> bool {
        self.names.contains(&plain_name(name))
    }

    fn add(&mut self, entry: &str) -> Option<()> {
        let bare = entry.strip_prefix('[').and_then(|e| e.strip_suffix(']')).unwrap_or(entry);
        if let Ok(network) = entry.parse::<IpNet>() {
            self.networks.push(network);
        } else if let Ok(ip) = bare.parse::<IpAddr>() {
            self.networks.push(address::canonical(ip).into());
        } else if let Ok(socket) = entry.parse::<SocketAddr>() {
            self.sockets.push(socket);
        } else {
            match Host::parse(entry).ok()? {
                Host::Domain(name) if is_name(&name) => {
                    self.names.insert(plain_name(&name));
                }
                Host::Ipv4(ip) => self.networks.push(IpAddr::from(ip).into()),
                Host::Domain(_) | Host::Ipv6(_) => return None,
            }
        }
        Some(())
    }
}

impl FromStr for Egress {
    type Err = EgressProblem;

    fn from_str(list: &str) -> Result<Self, Self::Err> {
        Self::parse(list)
    }
}

/// One spelling of a name: lower case and without the dot that marks it as complete.
fn plain_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

fn is_name(name: &str) -> bool {
    let plain = name.strip_suffix('.').unwrap_or(name);
    !plain.is_empty()
        && plain.split('.').all(|label| !label.is_empty())
        && plain.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn an_empty_list_allows_only_what_is_public() {
        let egress = Egress::parse(" , ").unwrap();
        assert!(egress.allows_address(ip("8.8.8.8")));
        assert!(!egress.allows_address(ip("10.1.2.3")));
        assert!(!egress.allows_name("localhost"));
    }

    #[test]
    fn a_network_allows_its_addresses_also_in_mapped_form() {
        let egress = Egress::parse("10.1.0.0/16, fd12::/16").unwrap();
        assert!(egress.allows_address(ip("10.1.2.3")));
        assert!(egress.allows_address(ip("::ffff:10.1.2.3")));
        assert!(egress.allows_address(ip("fd12::9")));
        assert!(!egress.allows_address(ip("10.2.0.1")));
        assert!(!egress.allows_address(ip("64:ff9b::10.1.2.3")), "the list names the other network");
    }

    #[test]
    fn a_bare_address_allows_exactly_itself() {
        let egress = Egress::parse("192.168.1.5,[::1]").unwrap();
        assert!(egress.allows_address(ip("192.168.1.5")));
        assert!(egress.allows_address(ip("::1")));
        assert!(!egress.allows_address(ip("192.168.1.6")));
        assert!(!egress.allows_address(ip("127.0.0.1")));
    }

    #[test]
    fn a_socket_allows_one_port_of_one_address() {
        let egress = Egress::parse("127.0.0.1:9000,[::1]:9001").unwrap();
        assert!(egress.allows_socket("127.0.0.1:9000".parse().unwrap()));
        assert!(egress.allows_socket("[::ffff:127.0.0.1]:9000".parse().unwrap()));
        assert!(egress.allows_socket("[::1]:9001".parse().unwrap()));
        assert!(!egress.allows_socket("127.0.0.1:9001".parse().unwrap()));
        assert!(!egress.allows_address(ip("127.0.0.1")), "the address without its port is not listed");
    }

    #[test]
    fn a_name_is_matched_whole_without_case_and_final_dot() {
        let egress = Egress::parse("Hooks.Internal.").unwrap();
        assert!(egress.allows_name("hooks.internal"));
        assert!(egress.allows_name("HOOKS.internal."));
        assert!(!egress.allows_name("a.hooks.internal"));
        assert!(!egress.allows_name("internal"));
    }

    #[test]
    fn loopback_can_be_added_whole() {
        let egress = Egress::default().allow_loopback();
        for text in ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"] {
            assert!(egress.allows_address(ip(text)), "{text}");
        }
        assert!(!egress.allows_address(ip("10.0.0.1")));
    }

    #[test]
    fn what_is_not_an_entry_is_named() {
        for entry in ["http://x", "10.0.0.0/33", "*.internal", "name:80", "a..b", "a b", "[::1", "1.2.3.4:99999"] {
            let problem = Egress::parse(&format!("10.0.0.1,{entry}")).unwrap_err();
            assert_eq!(problem.entry, entry);
        }
    }
}
