//! Addresses that a model may connect to: public ones. Tables, no names, no IO.
//!
//! Sources: the IANA special-purpose address registries for IPv4 and IPv6, and the addresses that embed an
//! IPv4 address, each of which is judged by the embedded address (CVE-2026-31943 was a filter that forgot
//! `::ffff:a9fe:a9fe`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Reason why an address is not public; `None` = it is public.
pub fn non_public_reason(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => non_public_v4_reason(address),
        IpAddr::V6(address) => non_public_v6_reason(address),
    }
}

/// First address, prefix length, purpose.
const NON_PUBLIC_V4: [(Ipv4Addr, u32, &str); 17] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by a carrier"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local, used by cloud metadata services"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "for protocols"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "a 6to4 relay"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
    // Public by number, but answered by the host of every Azure machine.
    (Ipv4Addr::new(168, 63, 129, 16), 32, "a cloud metadata service"),
    // The metadata address of Oracle is inside 192.0.0.0/24; that of Alibaba inside 100.64.0.0/10.
    (Ipv4Addr::new(255, 255, 255, 255), 32, "broadcast"),
];

fn non_public_v4_reason(address: Ipv4Addr) -> Option<&'static str> {
    NON_PUBLIC_V4
        .iter()
        .find(|(network, prefix, _)| (u32::from(address) ^ u32::from(*network)) >> (32 - prefix) == 0)
        .map(|(_, _, description)| *description)
}

/// First address, prefix length, purpose. Outside `2000::/3` everything is refused anyway.
const NON_PUBLIC_V6: [(Ipv6Addr, u32, &str); 3] = [
    // Teredo (an IPv4 address, hidden), ORCHID, benchmarks, AMT: nothing that serves pages.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "for protocols"),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
];

fn non_public_v6_reason(address: Ipv6Addr) -> Option<&'static str> {
    if address.is_unspecified() || address.is_loopback() {
        return Some("loopback");
    }
    let segments = address.segments();
    let last_v4 = Ipv4Addr::from((u32::from(segments[6]) << 16) | u32::from(segments[7]));
    match segments {
        // v4-compatible, v4-mapped, v4-translated (RFC 2765): an IPv4 address at the end.
        [0, 0, 0, 0, 0, 0, _, _] | [0, 0, 0, 0, 0, 0xffff, _, _] | [0, 0, 0, 0, 0xffff, 0, _, _] => {
            return non_public_v4_reason(last_v4);
        }
        // NAT64, well-known prefix (RFC 6052).
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => return non_public_v4_reason(last_v4),
        // 6to4 (RFC 3056): an IPv4 address after the prefix.
        [0x2002, high, low, ..] => {
            return non_public_v4_reason(Ipv4Addr::from((u32::from(high) << 16) | u32::from(low)));
        }
        // ISATAP (RFC 5214): an IPv4 address in the interface id, under any prefix.
        [_, _, _, _, 0 | 0x200, 0x5efe, _, _] if non_public_v4_reason(last_v4).is_some() => {
            return non_public_v4_reason(last_v4);
        }
        _ => {}
    }
    if segments[0] >> 13 != 0b001 {
        return Some(match segments[0] {
            0xfc00..=0xfdff => "private",
            0xfe80..=0xfebf => "link-local",
            0xff00..=0xffff => "multicast",
            _ => "not a public range",
        });
    }
    NON_PUBLIC_V6
        .iter()
        .find(|(network, prefix, _)| (u128::from(address) ^ u128::from(*network)) >> (128 - prefix) == 0)
        .map(|(_, _, description)| *description)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_pass() {
        let refused_ones = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.255.255.254 169.254.169.254 \
            172.16.0.1 172.31.255.255 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1 198.19.255.255 198.51.100.1 \
            203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16 \
            :: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:a9fe:a9fe ::ffff:0:10.0.0.1 64:ff9b::7f00:1 \
            64:ff9b::a9fe:a9fe 64:ff9b:1::8.8.8.8 2002:7f00:1:: 2002:a9fe:a9fe::1 2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 \
            2001:10::1 2001:db8::1 3fff:1::1 100::1 5f00::1 fc00::1 fd12::1 fe80::1 febf::1 fec0::1 ff02::1 \
            2606:2800::5efe:10.0.0.1 2606:2800::200:5efe:192.168.0.1";
        for text in refused_ones.split_whitespace() {
            assert!(non_public_reason(text.parse().unwrap()).is_some(), "{text} would be dialled");
        }
        let public_ones = "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 93.184.216.34 100.63.255.255 100.128.0.1 126.255.255.255 \
            128.0.0.1 169.253.255.255 169.255.0.1 172.15.255.255 172.32.0.1 191.255.255.255 192.0.1.1 192.167.255.255 \
            192.169.0.1 198.17.255.255 198.20.0.1 223.255.255.255 168.63.129.15 168.63.129.17 \
            ::ffff:8.8.8.8 64:ff9b::808:808 2002:808:808:: 2001:200::1 2606:2800:220:1:248:1893:25c8:1946 \
            2400:cb00::1 2606:2800::5efe:8.8.8.8";
        for text in public_ones.split_whitespace() {
            assert_eq!(non_public_reason(text.parse().unwrap()), None, "{text}");
        }
    }
}
