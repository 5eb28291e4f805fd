//! A note with the address of a data folder's server, which other commands read as long as it runs.

use crate::data_dir;
use serde::{Deserialize, Serialize};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The note. It is only as good as the lock of the store: after `kill -9` it is still there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerNote {
    /// `http://127.0.0.1:8787`.
    pub(crate) url: String,
    /// The process.
    pub(crate) pid: u32,
    /// Certificate of a server with TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) certificate: Option<PathBuf>,
}

/// Takes the note away when the server ends.
pub(crate) struct NoteGuard(PathBuf);

impl Drop for NoteGuard {
    fn drop(&mut self) {
        // A note that remains is unusable, and is replaced by the next start.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl ServerNote {
    /// The note of a server with this address.
    pub(crate) fn of(scheme: &str, address: SocketAddr, certificate: Option<PathBuf>) -> Self {
        // Commands read the note in other folders.
        let certificate = certificate.map(|file| std::path::absolute(&file).unwrap_or(file));
        Self { url: url(scheme, address), pid: std::process::id(), certificate }
    }

    pub(crate) fn write(&self, folder: &Path) -> io::Result<NoteGuard> {
        let path = folder.join(data_dir::SERVER_FILE);
        std::fs::write(&path, serde_json::to_string(self)? + "\n")?;
        Ok(NoteGuard(path))
    }

    pub(crate) fn read(folder: &Path) -> Option<Self> {
        serde_json::from_str(&std::fs::read_to_string(folder.join(data_dir::SERVER_FILE)).ok()?).ok()
    }
}

/// The URL for a browser on this machine: a wildcard address is replaced by a loopback one.
pub(crate) fn url(scheme: &str, address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        ip => ip,
    };
    format!("{scheme}://{}", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_address_is_shown_as_a_loopback_url() {
        for (address, expected) in [
            ("127.0.0.1:8787", "http://127.0.0.1:8787"),
            ("0.0.0.0:80", "http://127.0.0.1:80"),
            ("[::]:80", "http://[::1]:80"),
            ("192.0.2.1:80", "http://192.0.2.1:80"),
        ] {
            assert_eq!(url("http", address.parse().unwrap()), expected);
        }
    }
}
