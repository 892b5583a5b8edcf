//! Who a server must be, judged as Go judges it: first its time, then its names, then who vouches
//! for it. A certificate that is itself trusted needs nobody to vouch for it, be it an authority's
//! or not; people make such with one command.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{
    verify_server_cert_signed_by_trust_anchor as verify_chain, verify_server_name,
};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::error::{Cause, system_text};

/// Whose certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those that these vouch for, in PEM.
    Bundle(Vec<u8>),
    /// Those that the machine believes.
    System,
    /// All.
    Anyone,
}

/// Who we are to a server that asks: a certificate and its key, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

/// How connections to a server are secured, or why they cannot be.
#[derive(Clone)]
pub(crate) struct Config(Result<Arc<ClientConfig>, String>);

impl Config {
    pub(crate) fn new(trust: &Trust, own: Option<&Identity>) -> Self {
        Config(configure(trust, own).map(Arc::new))
    }

    /// Secures a connection to the server of that name.
    pub(super) async fn secure(
        &self,
        socket: TcpStream,
        name: String,
    ) -> Result<TlsStream<TcpStream>, Cause> {
        let config = self.0.clone().map_err(Cause::Insecure)?;
        let name = ServerName::try_from(name.as_str())
            .map_err(|_| Cause::Unreachable(format!("invalid server name {name}")))?
            .to_owned();
        let secured = TlsConnector::from(config).connect(name, socket).await;
        secured.map_err(|error| Cause::Insecure(told(&error)))
    }
}

fn configure(trust: &Trust, own: Option<&Identity>) -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let judge = Judge {
        trusted: match trust {
            Trust::Bundle(pem) => Some(Arc::new(Trusted::of_pem(pem)?)),
            Trust::System => Some(system()),
            Trust::Anyone => None,
        },
        provider: Arc::clone(&provider),
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(judge));
    let mut config = match own {
        None => config.with_no_client_auth(),
        Some(own) => {
            let chain = CertificateDer::pem_slice_iter(&own.certificate).collect::<Result<_, _>>();
            let key = PrivateKeyDer::from_pem_slice(&own.key);
            let (Ok(chain), Ok(key)) = (chain, key) else {
                return Err("tls: failed to find any PEM data in certificate input".to_owned());
            };
            config.with_client_auth_cert(chain, key).map_err(|error| error.to_string())?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// What the machine believes, read once.
fn system() -> Arc<Trusted> {
    static SYSTEM: OnceLock<Arc<Trusted>> = OnceLock::new();
    let found = SYSTEM.get_or_init(|| {
        let found = rustls_native_certs::load_native_certs();
        for error in &found.errors {
            tracing::warn!(%error, "a certificate of this machine cannot be read");
        }
        Arc::new(Trusted::new(found.certs))
    });
    Arc::clone(found)
}

/// Who vouches for others.
#[derive(Debug)]
struct Trusted {
    certificates: Vec<CertificateDer<'static>>,
    authorities: RootCertStore,
}

impl Trusted {
    fn of_pem(pem: &[u8]) -> Result<Self, String> {
        let certificates = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
        match certificates {
            Ok(certificates) if !certificates.is_empty() => Ok(Trusted::new(certificates)),
            _ => Err("unable to load root certificates: unable to parse bytes as PEM block".into()),
        }
    }

    fn new(certificates: Vec<CertificateDer<'static>>) -> Self {
        let mut authorities = RootCertStore::empty();
        authorities.add_parsable_certificates(certificates.iter().cloned());
        Trusted { certificates, authorities }
    }

    /// One of these that has the name of a certificate's issuer, but did not sign it.
    fn namesake_of_issuer(&self, certificate: &X509Certificate<'_>) -> Option<String> {
        self.certificates.iter().find_map(|candidate| {
            let (_, candidate) = X509Certificate::from_der(candidate).ok()?;
            let is_namesake = candidate.subject().as_raw() == certificate.issuer().as_raw();
            let name = || {
                let subject = candidate.subject();
                let first = subject.iter_common_name().chain(subject.iter_organization()).next();
                let name = first.and_then(|name| name.as_str().ok());
                name.map_or_else(|| format!("serial:{}", candidate.serial), str::to_owned)
            };
            is_namesake.then(name)
        })
    }
}

/// Judges the certificates that servers show.
#[derive(Debug)]
struct Judge {
    /// None if anybody is.
    trusted: Option<Arc<Trusted>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        own: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        let (_, parsed) = X509Certificate::from_der(own)
            .map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        check_time(&parsed, now)?;
        let certificate = ParsedCertificate::try_from(own)?;
        if verify_server_name(&certificate, name).is_err() {
            return Err(unverified(misnamed(&parsed, &name.to_str())));
        }
        if trusted.certificates.iter().any(|known| known == own) {
            return Ok(ServerCertVerified::assertion());
        }
        let algorithms = self.provider.signature_verification_algorithms.all;
        match verify_chain(&certificate, &trusted.authorities, others, now, algorithms) {
            Ok(()) => Ok(ServerCertVerified::assertion()),
            Err(Error::InvalidCertificate(
                CertificateError::UnknownIssuer | CertificateError::BadSignature,
            )) => {
                let why = "x509: certificate signed by unknown authority";
                Err(unverified(match trusted.namesake_of_issuer(&parsed) {
                    None => why.to_owned(),
                    Some(name) => format!(
                        "{why} (possibly because of {:?} while trying to verify candidate \
                         authority certificate {name:?})",
                        mismatch(&parsed),
                    ),
                }))
            }
            Err(Error::InvalidCertificate(
                CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. },
            )) => {
                let why = "x509: certificate specifies an incompatible key usage";
                Err(unverified(why.to_owned()))
            }
            Err(error) => Err(error),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// A certificate that is refused, and why.
#[derive(Debug, thiserror::Error)]
#[error("tls: failed to verify certificate: {0}")]
struct Unverified(String);

fn unverified(why: String) -> Error {
    Error::InvalidCertificate(CertificateError::Other(OtherError(Arc::new(Unverified(why)))))
}

fn check_time(certificate: &X509Certificate<'_>, now: UnixTime) -> Result<(), Error> {
    let seconds = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let validity = certificate.validity();
    let shown = |seconds: i64| {
        Timestamp::from_second(seconds).map(|time| time.to_string()).unwrap_or_default()
    };
    let (relation, limit) = if seconds < validity.not_before.timestamp() {
        ("before", validity.not_before)
    } else if seconds > validity.not_after.timestamp() {
        ("after", validity.not_after)
    } else {
        return Ok(());
    };
    Err(unverified(format!(
        "x509: certificate has expired or is not yet valid: current time {} is {relation} {}",
        shown(seconds),
        shown(limit.timestamp()),
    )))
}

/// Why a certificate is not one for this name.
fn misnamed(certificate: &X509Certificate<'_>, name: &str) -> String {
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let Some(alternatives) = alternatives else {
        let mut common = certificate.subject().iter_common_name();
        if common.any(|common| common.as_str().is_ok_and(|common| common == name)) {
            return "x509: certificate relies on legacy Common Name field, use SANs instead".into();
        }
        return match name.parse::<IpAddr>() {
            Ok(_) => without_addresses(name),
            Err(_) => without_names(name),
        };
    };
    let is_address = name.parse::<IpAddr>().is_ok();
    let valid: Vec<String> = alternatives
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::IPAddress(bytes) if is_address => match bytes.len() {
                4 => <[u8; 4]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
                _ => <[u8; 16]>::try_from(*bytes).ok().map(|bytes| IpAddr::from(bytes).to_string()),
            },
            GeneralName::DNSName(name) if !is_address => Some((*name).to_owned()),
            _ => None,
        })
        .collect();
    match valid.is_empty() {
        true if is_address => without_addresses(name),
        true => without_names(name),
        false => format!("x509: certificate is valid for {}, not {name}", valid.join(", ")),
    }
}

fn without_addresses(name: &str) -> String {
    let why = "because it doesn't contain any IP SANs";
    format!("x509: cannot validate certificate for {name} {why}")
}

fn without_names(name: &str) -> String {
    format!("x509: certificate is not valid for any names, but wanted to match {name}")
}

/// How Go says that a signature is not by a key, by the algorithm it was made with.
fn mismatch(certificate: &X509Certificate<'_>) -> &'static str {
    const ECDSA: &str = "1.2.840.10045.4.";
    const ED25519: &str = "1.3.101.112";
    match certificate.signature_algorithm.algorithm.to_id_string() {
        id if id.starts_with(ECDSA) => "x509: ECDSA verification failure",
        id if id == ED25519 => "x509: Ed25519 verification failure",
        _ => "crypto/rsa: verification error",
    }
}

/// What went wrong with a handshake.
fn told(error: &io::Error) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Error>());
    match inner {
        Some(Error::InvalidCertificate(CertificateError::Other(OtherError(why)))) => {
            why.to_string()
        }
        Some(Error::InvalidCertificate(error)) => {
            format!("tls: failed to verify certificate: x509: {error}")
        }
        // The first byte of something else.
        Some(Error::InvalidMessage(_)) => {
            "http: server gave HTTP response to HTTPS client".to_owned()
        }
        Some(Error::AlertReceived(alert)) => {
            format!("remote error: tls: {}", words(alert.as_str()))
        }
        Some(error) => format!("tls: {error}"),
        None if error.kind() == io::ErrorKind::UnexpectedEof => "EOF".to_owned(),
        None => format!("read: {}", system_text(error)),
    }
}

/// `HandshakeFailure` as `handshake failure`.
fn words(name: Option<&str>) -> String {
    let Some(name) = name else { return "unknown error".to_owned() };
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(letter.to_ascii_lowercase());
    }
    words
}
