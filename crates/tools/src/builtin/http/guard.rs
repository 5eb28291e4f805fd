//! From a URL that a model chose to checked addresses; exactly these are then dialled.
//!
//! Checks addresses, not strings: only the parsed URL and the resolver's answer count. A name is resolved
//! once per hop; resolving it again to connect would let the answer change in between (CVE-2026-41488).

use super::address::non_public_reason;
use async_trait::async_trait;
use std::io;
use std::net::{IpAddr, SocketAddr};
use url::{Host, Url};

/// Most addresses of one name that are tried.
const ADDRESSES_MAX: usize = 16;

/// Turns names into addresses; replaced in tests.
#[async_trait]
pub trait HostResolver: Send + Sync {
    /// All addresses of a name.
    ///
    /// # Errors
    /// The name cannot be resolved.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl HostResolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|address| address.ip()).collect())
    }
}

/// Ports that may be dialled: 80 and 443, and those that are allowed explicitly.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedPorts {
    /// Allowed on top of 80 and 443.
    pub extra: Vec<u16>,
}

impl AllowedPorts {
    fn allows(&self, port: u16) -> bool {
        matches!(port, 80 | 443) || self.extra.contains(&port)
    }
}

/// A host that need not be public, because the configuration names it: `10.0.0.5`, `[::1]:8080`, `nas.local:5000`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateHost {
    /// As a URL writes it.
    host: String,
    /// `None` = any port.
    port: Option<u16>,
}

impl PrivateHost {
    /// Reads `HOST` or `HOST:PORT`.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("`{text}` is no host; write HOST or HOST:PORT");
        // A port that is written must not get lost for being the usual one.
        let has_port = text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()) && !port.is_empty()
        });
        let url = Url::parse(&format!("http://{text}/")).map_err(|_| invalid())?;
        let is_bare = url.path() == "/" && url.query().is_none() && url.username().is_empty();
        let host =
            url.host_str().filter(|_| is_bare && !text.contains(['/', '@', '#', '?'])).ok_or_else(invalid)?;
        Ok(Self { host: bare_host(host), port: url.port_or_known_default().filter(|_| has_port) })
    }

    fn matches(&self, url: &Url) -> bool {
        url.host_str().is_some_and(|host| bare_host(host) == self.host)
            && (self.port.is_none() || self.port == url.port_or_known_default())
    }
}

/// Reason why a URL can never be dialled, as far as its text alone shows: an address that is not public, or
/// this machine.
pub fn private_by_address(url: &Url, private: &[PrivateHost]) -> Option<String> {
    if private.iter().any(|host| host.matches(url)) {
        return None;
    }
    let address = match url.host()? {
        Host::Ipv4(address) => IpAddr::V4(address),
        Host::Ipv6(address) => IpAddr::V6(address),
        Host::Domain(name) => {
            let bare = bare_host(name);
            let is_here = bare == "localhost" || bare.ends_with(".localhost");
            return is_here.then(|| format!("`{name}` is this machine, not a public address"));
        }
    };
    non_public_reason(address).map(|what| format!("{address} is not public ({what})"))
}

fn bare_host(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Checks where a URL leads and gives the addresses to dial, all of them public.
///
/// # Errors
/// Why it is not fetched, for the model.
pub async fn resolve_public_addresses(
    url: &Url,
    ports: &AllowedPorts,
    resolver: &dyn HostResolver,
) -> Result<Vec<SocketAddr>, String> {
    resolve_allowed_addresses(url, ports, &[], resolver).await
}

/// Like [`resolve_public_addresses`], but hosts of `private` may have any address, on the ports in their
/// names.
///
/// # Errors
///
/// The reason for the refusal, for the model.
pub async fn resolve_allowed_addresses(
    url: &Url,
    ports: &AllowedPorts,
    private: &[PrivateHost],
    resolver: &dyn HostResolver,
) -> Result<Vec<SocketAddr>, String> {
    let is_private = private.iter().any(|host| host.matches(url));
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("only http and https are fetched, not `{}`", url.scheme()));
    }
    // Part of the URL that only serves to look like a host, or a secret that would end up in the log.
    if !url.username().is_empty() || url.password().is_some() {
        return Err("addresses with a user name or password are not fetched".to_owned());
    }
    let port = url.port_or_known_default().unwrap_or(0);
    if !ports.allows(port) && !is_private {
        return Err(format!("port {port} is not allowed"));
    }
    let (name, addresses) = match url.host() {
        None => return Err("the address has no host".to_owned()),
        Some(Host::Ipv4(address)) => (address.to_string(), vec![IpAddr::V4(address)]),
        Some(Host::Ipv6(address)) => (address.to_string(), vec![IpAddr::V6(address)]),
        Some(Host::Domain(name)) => {
            let bare = name.trim_end_matches('.').to_ascii_lowercase();
            // RFC 6761 §6.3: loopback by definition, even if a resolver answers differently.
            if !is_private && (bare == "localhost" || bare.ends_with(".localhost") || bare.is_empty()) {
                return Err(format!("`{name}` is this machine"));
            }
            let addresses = resolver
                .resolve(name)
                .await
                .map_err(|error| format!("the name `{name}` cannot be resolved: {error}"))?;
            (name.to_owned(), addresses)
        }
    };
    if addresses.is_empty() {
        return Err(format!("the name `{name}` has no address"));
    }
    // One bad address among good ones is enough: which one is dialled would be chance.
    let bad = addresses.iter().find_map(|address| Some((address, non_public_reason(*address)?)));
    if let Some((address, what)) = bad.filter(|_| !is_private) {
        return Err(format!("`{name}` resolves to {address}, which is not public ({what})"));
    }
    Ok(addresses.into_iter().take(ADDRESSES_MAX).map(|address| SocketAddr::new(address, port)).collect())
}
