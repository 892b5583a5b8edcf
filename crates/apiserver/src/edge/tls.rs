//! Who we are to clients, and whom we ask who they are.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier};
use rustls::sign::CertifiedKey;
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, SignatureScheme,
};
use tracing::debug;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// How connections are secured.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// None if there are no authorities to vouch for anybody.
    verifier: Option<Arc<dyn ClientCertVerifier>>,
    authorities: Vec<CertificateDer<'static>>,
    /// None if no proxies are believed.
    proxies: Option<Arc<dyn ClientCertVerifier>>,
}

/// The oldest version of TLS that is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Oldest {
    #[default]
    Tls12,
    Tls13,
}

/// Who vouches for those that connect, in PEM.
#[derive(Debug, Clone, Copy)]
pub struct Authorities<'a> {
    pub clients: &'a [u8],
    /// Of proxies, which may say on whose behalf they ask.
    pub proxies: &'a [u8],
}

/// What a client has shown of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    /// A certificate that one of the authorities of clients vouches for, in DER.
    Trusted(CertificateDer<'static>),
    /// A certificate that none of them vouches for, not any more or not yet.
    Untrusted,
}

/// The certificates that a server shows. They can be replaced while it serves; connections that
/// are there keep theirs.
pub struct Certificates(RwLock<Pairs>);

struct Pairs {
    default: Arc<CertifiedKey>,
    /// For clients that ask for a server by one of these names, in lower case.
    named: HashMap<String, Arc<CertifiedKey>>,
}

/// Why a certificate and a key cannot be used to serve.
#[derive(Debug, thiserror::Error)]
pub enum PairError {
    #[error("read a certificate")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    #[error("read a private key")]
    Key(#[source] rustls::pki_types::pem::Error),
    #[error("use a certificate with its private key")]
    Pair(#[source] rustls::Error),
}

/// Why connections cannot be secured as asked.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("read the authorities of clients")]
    Authority(#[source] rustls::pki_types::pem::Error),
    #[error("use the authorities of clients")]
    Trust(#[source] rustls::Error),
    #[error("verify clients")]
    Verifier(#[source] VerifierBuilderError),
    #[error("secure connections")]
    Config(#[source] rustls::Error),
}

impl Tls {
    /// Shows `certificates`, and asks clients for one of their own, naming the authorities.
    ///
    /// A client may well present none, or one that nobody vouches for: as with kube-apiserver, its
    /// requests are refused then ([`Shown::Untrusted`]), but nobody hangs up.
    pub fn new(
        certificates: Arc<Certificates>,
        authorities: Authorities<'_>,
    ) -> Result<Self, TlsError> {
        Tls::since(Oldest::default(), certificates, authorities)
    }

    /// As [`Tls::new`], and no older version is spoken.
    pub fn since(
        oldest: Oldest,
        certificates: Arc<Certificates>,
        authorities: Authorities<'_>,
    ) -> Result<Self, TlsError> {
        let (clients, proxies) = (read(authorities.clients)?, read(authorities.proxies)?);
        let (client_roots, proxy_roots) = (roots(&clients)?, roots(&proxies)?);
        let provider = provider();
        let hints = [client_roots.subjects(), proxy_roots.subjects()].concat();
        let anyone = Anyone { hints, provider: Arc::clone(&provider) };
        let verifier = self::verifier(client_roots, &provider)?;
        let proxies = self::verifier(proxy_roots, &provider)?;
        let newest = [&rustls::version::TLS13];
        let versions = match oldest {
            Oldest::Tls12 => rustls::DEFAULT_VERSIONS,
            Oldest::Tls13 => newest.as_slice(),
        };
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .map_err(TlsError::Config)?;
        let config = match verifier.as_ref().or(proxies.as_ref()) {
            Some(_) => config.with_client_cert_verifier(Arc::new(anyone)),
            // Nobody is asked for what nobody could vouch for.
            None => config.with_no_client_auth(),
        };
        let mut config = config.with_cert_resolver(certificates);
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config), verifier, authorities: clients, proxies })
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// The certificate of a proxy, if that is what was presented.
    pub(super) fn proxy(
        &self,
        presented: &[CertificateDer<'_>],
    ) -> Option<CertificateDer<'static>> {
        let [own, others @ ..] = presented else { return None };
        let verdict = self.proxies.as_ref()?.verify_client_cert(own, others, UnixTime::now());
        verdict.is_ok().then(|| own.clone().into_owned())
    }

    /// Judges the certificates that a client presented, its own first, as of now.
    pub(super) fn judge(&self, presented: &[CertificateDer<'_>]) -> Shown {
        let [own, others @ ..] = presented else { return Shown::Nothing };
        let verdict = self
            .verifier
            .as_ref()
            .map(|verifier| verifier.verify_client_cert(own, others, UnixTime::now()));
        match verdict {
            Some(Ok(_)) => Shown::Trusted(own.clone().into_owned()),
            Some(Err(_)) if self.is_own_authority(own) => Shown::Trusted(own.clone().into_owned()),
            Some(Err(error)) => {
                debug!(%error, "client certificate not trusted");
                Shown::Untrusted
            }
            None => Shown::Untrusted,
        }
    }

    /// Whether a certificate is one of the authorities. Go trusts such a client without a chain,
    /// so tools give one certificate both roles; whoever shows it has its key.
    fn is_own_authority(&self, certificate: &CertificateDer<'_>) -> bool {
        self.authorities.contains(certificate)
            && X509Certificate::from_der(certificate).is_ok_and(|(_, certificate)| {
                let usage = certificate.extended_key_usage();
                certificate.validity().is_valid()
                    && usage.is_ok_and(|usage| {
                        usage.is_none_or(|usage| usage.value.any || usage.value.client_auth)
                    })
            })
    }
}

impl Certificates {
    /// Shows one certificate, in PEM and with those that vouch for it, to everyone.
    pub fn new(certificate_pem: &[u8], key_pem: &[u8]) -> Result<Self, PairError> {
        let default = pair(certificate_pem, key_pem)?;
        Ok(Certificates(RwLock::new(Pairs { default, named: HashMap::new() })))
    }

    /// From now on shows this certificate.
    pub fn replace(&self, certificate_pem: &[u8], key_pem: &[u8]) -> Result<(), PairError> {
        let pair = pair(certificate_pem, key_pem)?;
        self.0.write().unwrap_or_else(PoisonError::into_inner).default = pair;
        Ok(())
    }

    /// From now on shows this certificate to clients that ask for `name`.
    pub fn replace_for(
        &self,
        name: &str,
        certificate_pem: &[u8],
        key_pem: &[u8],
    ) -> Result<(), PairError> {
        let pair = pair(certificate_pem, key_pem)?;
        let mut shown = self.0.write().unwrap_or_else(PoisonError::into_inner);
        shown.named.insert(name.to_ascii_lowercase(), pair);
        Ok(())
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let named = hello
            .server_name()
            .filter(|_| !shown.named.is_empty())
            .and_then(|name| shown.named.get(&name.to_ascii_lowercase()));
        Some(Arc::clone(named.unwrap_or(&shown.default)))
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Certificates")
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Tls")
    }
}

fn read(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(TlsError::Authority)
}

fn roots(certificates: &[CertificateDer<'static>]) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        roots.add(certificate.clone()).map_err(TlsError::Trust)?;
    }
    Ok(roots)
}

/// None where there is nobody to vouch for anybody.
fn verifier(
    authorities: RootCertStore,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
    if authorities.is_empty() {
        return Ok(None);
    }
    let (authorities, provider) = (Arc::new(authorities), Arc::clone(provider));
    let verifier = WebPkiClientVerifier::builder_with_provider(authorities, provider).build();
    verifier.map(|verifier| Some(verifier as Arc<_>)).map_err(TlsError::Verifier)
}

fn pair(certificate_pem: &[u8], key_pem: &[u8]) -> Result<Arc<CertifiedKey>, PairError> {
    let chain = CertificateDer::pem_slice_iter(certificate_pem)
        .collect::<Result<Vec<_>, _>>()
        .map_err(PairError::Certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(PairError::Key)?;
    CertifiedKey::from_der(chain, key, &provider()).map(Arc::new).map_err(PairError::Pair)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::aws_lc_rs::default_provider())
}

/// Lets in everyone who holds the key of the certificate presented.
#[derive(Debug)]
struct Anyone {
    hints: Vec<DistinguishedName>,
    provider: Arc<CryptoProvider>,
}

impl ClientCertVerifier for Anyone {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
