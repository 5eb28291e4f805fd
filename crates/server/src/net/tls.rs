//! HTTPS without a proxy in front: certificate and key from files, read again when they change.

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::SystemTime;
use throughline::config::TlsSection;
use tokio_rustls::TlsAcceptor;

/// Reason why certificate and key cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read, or is no PEM.
    #[error("{what} `{path}` cannot be read: {why}")]
    Unreadable {
        /// `the certificate`, `the private key`.
        what: &'static str,
        /// The file.
        path: String,
        /// The reason.
        why: String,
    },
    /// Certificate and key do not match, or their kind is not supported.
    #[error("the certificate `{cert}` and its key cannot be used: {why}")]
    Unusable {
        /// The certificate's file.
        cert: String,
        /// The reason.
        why: String,
    },
}

/// Configuration for new connections, replaced when the certificate changes. Existing connections keep theirs.
pub(crate) struct TlsReloader {
    files: TlsSection,
    current: RwLock<CurrentTls>,
}

struct CurrentTls {
    acceptor: TlsAcceptor,
    file_times: FileTimes,
}

/// Times of the last change of certificate and key.
type FileTimes = (Option<SystemTime>, Option<SystemTime>);

impl TlsReloader {
    pub(crate) fn load(files: &TlsSection) -> Result<Self, TlsError> {
        let file_times = file_times(files);
        let current = RwLock::new(CurrentTls { acceptor: build_acceptor(files)?, file_times });
        Ok(Self { files: files.clone(), current })
    }

    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current.read().unwrap_or_else(PoisonError::into_inner).acceptor.clone()
    }

    /// Reads both again if one has changed. If they cannot be used, the ones before stay.
    pub(crate) fn refresh(&self) -> Result<(), TlsError> {
        let now = file_times(&self.files);
        if self.current.read().unwrap_or_else(PoisonError::into_inner).file_times == now {
            return Ok(());
        }
        let read = build_acceptor(&self.files);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        // Logged once for each change and not every second.
        current.file_times = now;
        current.acceptor = read?;
        tracing::info!(cert = %self.files.cert.display(), "certificate reloaded");
        Ok(())
    }
}

fn file_times(files: &TlsSection) -> FileTimes {
    let modified_at = |path: &Path| std::fs::metadata(path).and_then(|meta| meta.modified()).ok();
    (modified_at(&files.cert), modified_at(&files.key))
}

fn build_acceptor(files: &TlsSection) -> Result<TlsAcceptor, TlsError> {
    let unreadable = |what: &'static str, path: &Path| {
        let path = path.display().to_string();
        move |error: rustls::pki_types::pem::Error| TlsError::Unreadable {
            what,
            path,
            why: error.to_string(),
        }
    };
    let certificates = CertificateDer::pem_file_iter(&files.cert)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(unreadable("the certificate", &files.cert))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(unreadable("the private key", &files.key))?;
    let unusable = |error: rustls::Error| TlsError::Unusable {
        cert: files.cert.display().to_string(),
        why: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .with_no_client_auth()
        .with_single_cert(certificates, key)
        .map_err(unusable)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
