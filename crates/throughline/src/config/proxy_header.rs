//! `[server.trusted_proxy]`: a proxy in front has signed people in and names them in a header.

use super::error::ConfigError;
use super::file::ConfigFile;
use super::serving::{AuthMode, InvalidValue, error_at};
use serde::Deserialize;
use std::net::IpAddr;
use toml::Spanned;

/// `[server.trusted_proxy]` of the file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrustedProxySection {
    /// Header with the name of the person, such as `X-Forwarded-User`.
    pub header: Spanned<String>,
    /// Addresses of the proxy: `10.0.0.7`, `10.0.0.0/24`, `::1`. From other addresses the headers mean nothing.
    pub from: Spanned<Vec<Spanned<String>>>,
    /// Creates users for people whom the server does not have yet. Default false.
    #[serde(default)]
    pub create: bool,
    /// Header with the person's groups, separated by commas.
    pub groups_header: Option<Spanned<String>>,
    /// Groups whose members are admins; others are not. Default: `throughline users` decides.
    #[serde(default)]
    pub admin_groups: Vec<String>,
    /// Groups whose members may sign in. Default: all people.
    #[serde(default)]
    pub allowed_groups: Vec<String>,
    /// Scopes of people who are no admins: `chat`, `tools`, `agents`. Default `chat` and `tools`.
    pub person_scopes: Option<Vec<PersonScope>>,
    /// Name of the server's first user, `local`, at the proxy.
    pub first_person: Option<String>,
}

/// Scope of people who come without a key and are no admins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PersonScope {
    /// Start and follow turns; read and change the person's conversations.
    Chat,
    /// Run tools without a model.
    Tools,
    /// Create and change the person's agents, with any tool and rules.
    Agents,
}

impl PersonScope {
    /// Scopes of people if the configuration sets none.
    pub const DEFAULT: [Self; 2] = [PersonScope::Chat, PersonScope::Tools];
}

/// `[server.trusted_proxy]`, decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedProxySettings {
    /// Header with the name of the person, in lower case.
    pub header: String,
    /// Addresses of the proxy.
    pub from: Vec<AddressRange>,
    /// Creates users for people whom the server does not have yet.
    pub create: bool,
    /// Header with the person's groups, in lower case.
    pub groups_header: Option<String>,
    /// Groups whose members are admins.
    pub admin_groups: Vec<String>,
    /// Groups whose members may sign in; empty = all people.
    pub allowed_groups: Vec<String>,
    /// Scopes of people who are no admins.
    pub person_scopes: Vec<PersonScope>,
    /// Name of the server's first user at the proxy.
    pub first_person: Option<String>,
}

/// Addresses with a common beginning: `10.0.0.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressRange {
    address: IpAddr,
    bits: u32,
}

impl AddressRange {
    /// Parses one address, or `ADDRESS/BITS`.
    pub fn parse(text: &str) -> Option<Self> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().ok()?.to_canonical();
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = match bits {
            Some(bits) if !bits.is_empty() && bits.bytes().all(|byte| byte.is_ascii_digit()) => {
                bits.parse().ok().filter(|bits| (1..=width).contains(bits))?
            }
            Some(_) => return None,
            None => width,
        };
        Some(Self { address, bits })
    }

    /// True if the address is in the range. An IPv4 address inside an IPv6 address is the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let differ = match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            (IpAddr::V6(own), IpAddr::V6(other)) => (own.to_bits() ^ other.to_bits()).leading_zeros(),
            _ => return false,
        };
        differ >= self.bits
    }
}

/// Headers that mean something else to the server or to its proxy.
const TAKEN_HEADERS: [&str; 8] =
    ["authorization", "x-api-key", "api-key", "host", "origin", "cookie", "content-type", "x-request-id"];

pub(super) fn resolve_trusted_proxy(
    file: &ConfigFile,
    section: &TrustedProxySection,
    auth: AuthMode,
) -> Result<TrustedProxySettings, ConfigError> {
    if auth == AuthMode::Off {
        let message =
            "with `auth = \"off\"` all requests belong to one user, so a proxy cannot name another one";
        return Err(file.error(&section.header, message).help("auth = \"keys\" (the default)"));
    }
    let header_of = |text: &Spanned<String>| {
        parse_header(text.get_ref()).map_err(|invalid| error_at(file, text, invalid))
    };
    let header = header_of(&section.header)?;
    let groups_header = section.groups_header.as_ref().map(header_of).transpose()?;
    if groups_header.as_ref() == Some(&header) {
        let message = "the user name and the groups need separate headers";
        return Err(file.error(&section.header, message).help("groups_header = \"X-Forwarded-Groups\""));
    }
    if groups_header.is_none() && !(section.admin_groups.is_empty() && section.allowed_groups.is_empty()) {
        let message = "`admin_groups` and `allowed_groups` have no effect without `groups_header`";
        return Err(file.error(&section.header, message).help("groups_header = \"X-Forwarded-Groups\""));
    }
    if section.from.get_ref().is_empty() {
        let message = "without the addresses of the proxy, the header would be trusted from any client";
        return Err(file.error(&section.from, message).help("from = [\"127.0.0.1\"]"));
    }
    let range = |text: &Spanned<String>| {
        AddressRange::parse(text.get_ref()).ok_or_else(|| {
            let message = format!("`{}` is not an IP address or CIDR range", text.get_ref());
            file.error(text, message).help(
                "use an IP address, or a CIDR range with a prefix of 1 to 32 bits (IPv6: 128): \"127.0.0.1\", \
                 \"10.0.0.0/24\", \"fd00::/64\"",
            )
        })
    };
    Ok(TrustedProxySettings {
        header,
        from: section.from.get_ref().iter().map(range).collect::<Result<_, _>>()?,
        create: section.create,
        groups_header,
        admin_groups: section.admin_groups.clone(),
        allowed_groups: section.allowed_groups.clone(),
        person_scopes: section.person_scopes.clone().unwrap_or_else(|| PersonScope::DEFAULT.to_vec()),
        first_person: section.first_person.clone(),
    })
}

fn parse_header(text: &str) -> Result<String, InvalidValue> {
    let name = text.to_ascii_lowercase();
    let is_token = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_token && !TAKEN_HEADERS.contains(&name.as_str()) {
        return Ok(name);
    }
    Err(InvalidValue {
        message: format!("`{text}` cannot be used as the user name header"),
        help: "use a header of letters, digits and `-` that only the proxy sets: \"X-Forwarded-User\"",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_range_contains_only_its_addresses() {
        for (range, inside, outside) in [
            ("127.0.0.1", "127.0.0.1", "127.0.0.2"),
            ("127.0.0.1/32", "::ffff:127.0.0.1", "::1"),
            ("10.1.2.3/24", "10.1.2.255", "10.1.3.0"),
            ("10.0.0.0/9", "10.127.255.255", "10.128.0.0"),
            ("::1", "::1", "127.0.0.1"),
            ("fd00::/64", "fd00::1", "fd00:0:0:1::1"),
        ] {
            let parsed = AddressRange::parse(range).unwrap();
            assert!(parsed.contains(inside.parse().unwrap()), "{range} {inside}");
            assert!(!parsed.contains(outside.parse().unwrap()), "{range} {outside}");
        }
        for text in
            ["", "x", "10.0.0.0/0", "::/0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/+8", "10.0.0.0/8/8", "*"]
        {
            assert_eq!(AddressRange::parse(text), None, "{text}");
        }
    }
}
