//! Which addresses are public: our own table of the IANA special-purpose registries.
//!
//! Decides by the address alone, never by a name, a port or configuration; what an operator allows beyond it is the
//! business of [`super::Egress`]. Anything that the table does not know to be public is not.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

/// Blocks of the IPv4 registry that are not for the public internet, with the document that says so.
#[rustfmt::skip] // a row a line
const V4: &[(Ipv4Net, &str)] = &[
    (v4([0, 0, 0, 0], 8), "this network, RFC 791"),
    (v4([10, 0, 0, 0], 8), "private use, RFC 1918"),
    (v4([100, 64, 0, 0], 10), "shared address space, RFC 6598"),
    (v4([127, 0, 0, 0], 8), "loopback, RFC 1122"),
    (v4([169, 254, 0, 0], 16), "link local, RFC 3927"),
    (v4([172, 16, 0, 0], 12), "private use, RFC 1918"),
    (v4([192, 0, 0, 0], 24), "protocol assignments, RFC 6890"),
    (v4([192, 0, 2, 0], 24), "documentation, RFC 5737"),
    (v4([192, 88, 99, 0], 24), "former 6to4 relay anycast, RFC 7526"),
    (v4([192, 168, 0, 0], 16), "private use, RFC 1918"),
    (v4([198, 18, 0, 0], 15), "benchmarking, RFC 2544"),
    (v4([198, 51, 100, 0], 24), "documentation, RFC 5737"),
    (v4([203, 0, 113, 0], 24), "documentation, RFC 5737"),
    (v4([224, 0, 0, 0], 4), "multicast, RFC 5771"),
    (v4([240, 0, 0, 0], 4), "reserved and broadcast, RFC 1112 and RFC 919"),
    // Link-local 169.254.169.254 and shared 100.100.100.200, where most clouds answer, are covered above.
    (v4([168, 63, 129, 16], 32), "cloud metadata on a public address"),
];

/// Blocks of the IPv6 registry that are not for the public internet.
#[rustfmt::skip] // a row a line
const V6: &[(Ipv6Net, &str)] = &[
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 128), "unspecified, RFC 4291"),
    (v6([0, 0, 0, 0, 0, 0, 0, 1], 128), "loopback, RFC 4291"),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 96), "IPv4-compatible, RFC 4291"),
    (v6([0, 0, 0, 0, 0xffff, 0, 0, 0], 96), "IPv4-translated, RFC 2765"),
    (v6([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48), "local-use translation, RFC 8215"),
    (v6([0x100, 0, 0, 0, 0, 0, 0, 0], 64), "discard only, RFC 6666"),
    (v6([0x100, 0, 0, 1, 0, 0, 0, 0], 64), "dummy prefix, RFC 9780"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 32), "Teredo, RFC 4380"),
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), "protocol assignments, RFC 2928"),
    (v6([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), "documentation, RFC 3849"),
    (v6([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), "documentation, RFC 9637"),
    (v6([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16), "segment routing, RFC 9602"),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), "unique local, RFC 4193"),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), "link local, RFC 4291"),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), "former site local, RFC 3879"),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), "multicast, RFC 4291"),
];

/// The only part of IPv6 that is handed out for the public internet (RFC 4291, section 2.4).
const V6_GLOBAL: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);
const V6_TRANSLATED: Ipv6Net = v6([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96);
const V6_6TO4: Ipv6Net = v6([0x2002, 0, 0, 0, 0, 0, 0, 0], 16);

const fn v4(octets: [u8; 4], prefix: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::from_octets(octets), prefix)
}

const fn v6(segments: [u16; 8], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::from_segments(segments), prefix)
}

/// The address that is really dialled: an IPv4 address written as an IPv4-mapped IPv6 one is that IPv4 address.
pub fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Whether the address belongs to the public internet.
pub fn is_public(address: IpAddr) -> bool {
    not_public(address).is_none()
}

/// Why the address does not belong to the public internet; `None` when it does.
pub fn not_public(address: IpAddr) -> Option<&'static str> {
    match canonical(address) {
        IpAddr::V4(address) => not_public_v4(address),
        IpAddr::V6(address) => not_public_v6(address),
    }
}

fn not_public_v4(address: Ipv4Addr) -> Option<&'static str> {
    V4.iter().find(|(network, _)| network.contains(&address)).map(|(_, why)| *why)
}

fn not_public_v6(address: Ipv6Addr) -> Option<&'static str> {
    if let Some((_, why)) = V6.iter().find(|(network, _)| network.contains(&address)) {
        return Some(why);
    }
    let octets = address.octets();
    // A translator or relay on the way turns these into the IPv4 address inside, so that one is judged.
    if V6_TRANSLATED.contains(&address) {
        return not_public_v4(Ipv4Addr::new(octets[12], octets[13], octets[14], octets[15]));
    }
    if V6_6TO4.contains(&address) {
        return not_public_v4(Ipv4Addr::new(octets[2], octets[3], octets[4], octets[5]));
    }
    (!V6_GLOBAL.contains(&address)).then_some("outside global unicast, RFC 4291")
}

#[cfg(test)]
mod tests {
    use url::{Host, Url};

    use super::*;

    fn literal(host: &str) -> IpAddr {
        match Url::parse(&format!("http://{host}/")).unwrap().host().unwrap().to_owned() {
            Host::Ipv4(address) => address.into(),
            Host::Ipv6(address) => address.into(),
            Host::Domain(name) => panic!("{host} is the name {name}"),
        }
    }

    #[test]
    fn addresses_of_the_public_internet_are_public() {
        for host in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.1",
            "169.253.255.255",
            "172.15.255.255",
            "172.32.0.0",
            "192.0.1.1",
            "192.167.255.255",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "[2606:4700:4700::1111]",
            "[2a00:1450:4001:82b::200e]",
            "[2001:200::1]",
            "[::ffff:8.8.8.8]",
            "[64:ff9b::8.8.8.8]",
            "[2002:808:808::1]",
        ] {
            assert_eq!(not_public(literal(host)), None, "{host}");
        }
    }

    #[test]
    fn addresses_of_every_special_block_are_not_public() {
        for (network, why) in V4 {
            assert!(!is_public(network.network().into()), "first of {network}: {why}");
            assert!(!is_public(network.broadcast().into()), "last of {network}: {why}");
        }
        for (network, why) in V6 {
            assert!(!is_public(network.network().into()), "first of {network}: {why}");
            assert!(!is_public(network.broadcast().into()), "last of {network}: {why}");
        }
    }

    #[test]
    fn special_addresses_are_not_public_in_any_spelling() {
        for host in [
            "127.0.0.1",
            "2130706433",
            "0x7f.1",
            "0x7f000001",
            "0177.0.0.1",
            "127.1",
            "0",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[::127.0.0.1]",
            "[::8.8.8.8]",
            "[::ffff:0:7f00:1]",
            "[64:ff9b::127.0.0.1]",
            "[64:ff9b::a9fe:a9fe]",
            "[64:ff9b:1::8.8.8.8]",
            "[2002:7f00:1::]",
            "[2002:a9fe:a9fe::1]",
            "[2001:0:808:808:0:0:80ff:fffe]",
            "169.254.169.254",
            "[fd00:ec2::254]",
            "100.100.100.200",
            "168.63.129.16",
            "255.255.255.255",
            "[fe80::1]",
            "[ff02::1]",
            "[4000::1]",
        ] {
            assert!(!is_public(literal(host)), "{host}");
        }
    }
}
