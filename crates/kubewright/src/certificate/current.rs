//! The certificate that servers show, for as long as it is the one.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::{self, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, ServerConfig, SignatureScheme};

use super::authority::Pair;
use crate::serve::Check;

/// How HTTP/2 is called while a connection is secured.
pub(crate) const HTTP2: &[u8] = b"h2";

/// What servers show to those who connect. Clones are one and the same; whoever replaces it does
/// not disturb connections that are there.
#[derive(Clone, Default)]
pub struct Current(Arc<RwLock<State>>);

#[derive(Default)]
struct State {
    pair: Option<(Pair, Arc<CertifiedKey>)>,
    problem: Option<String>,
}

/// Why a certificate and a key cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    #[error("read a certificate")]
    Certificate(#[source] pem::Error),
    #[error("read a private key")]
    Key(#[source] pem::Error),
    #[error("use a certificate with its private key")]
    Pair(#[source] rustls::Error),
}

impl Current {
    /// Nothing yet: nobody can connect.
    pub fn new() -> Self {
        Current::default()
    }

    /// From now on shows this certificate. Whether it is another one.
    ///
    /// # Errors
    /// If it is none, or the key is not its own; what was shown is shown further then.
    pub fn show(&self, pair: Pair) -> Result<bool, PairError> {
        if self.read(|state| state.pair.as_ref().is_some_and(|(shown, _)| *shown == pair)) {
            return Ok(false);
        }
        let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes())
            .collect::<Result<Vec<_>, _>>()
            .map_err(PairError::Certificate)?;
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).map_err(PairError::Key)?;
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(PairError::Pair)?;
        self.write(|state| state.pair = Some((pair, Arc::new(key))));
        Ok(true)
    }

    /// What is shown, in PEM, if anything.
    pub fn certificate(&self) -> Option<String> {
        self.read(|state| state.pair.as_ref().map(|(pair, _)| pair.certificate.clone()))
    }

    /// What is wrong with what is shown, or with having something new in time.
    pub fn problem(&self) -> Option<String> {
        self.read(|state| match (&state.problem, &state.pair) {
            (None, None) => Some("there is no certificate yet".to_owned()),
            (problem, _) => problem.clone(),
        })
    }

    pub(super) fn set_problem(&self, problem: Option<String>) {
        self.write(|state| state.problem = problem);
    }

    /// Whether all is well.
    pub fn check(&self) -> Check {
        let current = self.clone();
        Check::new(move || {
            let problem = current.problem();
            async { problem.map_or(Ok(()), Err) }
        })
    }

    /// A server's side of TLS, 1.2 and later.
    pub(crate) fn config(&self, is_http2: bool) -> Arc<ServerConfig> {
        let mut config = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .expect("the library supports its own versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(self.clone()));
        let http2 = is_http2.then(|| HTTP2.to_vec());
        config.alpn_protocols = http2.into_iter().chain([b"http/1.1".to_vec()]).collect();
        Arc::new(config)
    }

    fn read<T>(&self, read: impl FnOnce(&State) -> T) -> T {
        read(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write(&self, write: impl FnOnce(&mut State)) {
        write(&mut self.0.write().unwrap_or_else(PoisonError::into_inner));
    }
}

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.read(|state| state.pair.as_ref().map(|(_, key)| Arc::clone(key)))
    }
}

impl fmt::Debug for Current {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Current").field("problem", &self.problem()).finish_non_exhaustive()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// A client's side of TLS that takes anyone for the server: for probes, which ask whether there is
/// one and tell it nothing.
pub fn anyone() -> Arc<ClientConfig> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .expect("the library supports its own versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider())))
        .with_no_client_auth();
    Arc::new(config)
}

#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _own: &CertificateDer<'_>,
        _others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
