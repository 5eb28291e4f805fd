//! HTTP client for the server on this machine. Over TLS it accepts exactly the certificate that the server
//! uses, regardless of its name: the address is a loopback one, and a certificate has the public name.

use super::server_note::ServerNote;
use crate::messages;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use std::path::Path;
use std::sync::Arc;

/// A client for the server that left this note. It uses no proxy.
///
/// # Errors
/// The certificate cannot be read.
pub(crate) fn local_client(note: &ServerNote) -> Result<reqwest::ClientBuilder, String> {
    let client = reqwest::Client::builder().no_proxy();
    let Some(certificate) = &note.certificate else { return Ok(client) };
    let config = pinned_to(certificate).map_err(|why| messages::certificate_unusable(certificate, &why))?;
    Ok(client.tls_backend_preconfigured(config))
}

fn pinned_to(certificate: &Path) -> Result<ClientConfig, String> {
    let expected = CertificateDer::from_pem_file(certificate).map_err(|error| error.to_string())?;
    let provider = CryptoProvider::get_default().ok_or_else(messages::no_tls_provider)?.clone();
    let config = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(PinnedCertificate { expected, provider }))
        .with_no_client_auth();
    Ok(config)
}

/// Accepts one certificate. The handshake still proves that the server has its key.
#[derive(Debug)]
struct PinnedCertificate {
    expected: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for PinnedCertificate {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *end_entity == self.expected {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
