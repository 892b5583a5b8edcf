//! An authority, and the certificates that it signs for servers.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr as _;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use x509_cert::Certificate;
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{Builder as _, CertificateBuilder};
use x509_cert::certificate::TbsCertificate;
use x509_cert::der::asn1::{GeneralizedTime, Ia5String};
use x509_cert::der::oid::db::rfc5280::ID_KP_SERVER_AUTH;
use x509_cert::der::pem::LineEnding;
use x509_cert::der::{DecodePem as _, EncodePem as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    AuthorityKeyIdentifier, BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages,
    SubjectAltName, SubjectKeyIdentifier,
};
use x509_cert::ext::{Extension, ToExtension as _};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{SubjectPublicKeyInfo, SubjectPublicKeyInfoRef};
use x509_cert::time::{Time, Validity};

use super::key::{Key, Signature};

/// Clocks of clients may be behind.
const BACKDATED: SignedDuration = SignedDuration::from_mins(5);

/// A certificate and its key, in PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// Without the key, which is nobody's business.
impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// Signs certificates.
pub struct Authority {
    key: Key,
    certificate: Certificate,
    pair: Pair,
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    #[error("use a key: {0}")]
    Key(&'static str),
    #[error("read a certificate")]
    Read(#[source] x509_cert::der::Error),
    #[error("make a certificate")]
    Make(#[source] x509_cert::builder::Error),
    #[error("write a certificate")]
    Write(#[source] x509_cert::der::Error),
}

/// What a certificate says.
struct Profile<'a> {
    subject: Name,
    issuer: Name,
    /// Where a server is found; none for an authority.
    names: Option<&'a [String]>,
}

impl Authority {
    /// Signs for itself, from now on for as long as `lifetime`.
    ///
    /// # Errors
    /// If the machine gives no random numbers.
    pub fn new(name: &str, lifetime: Duration, now: Timestamp) -> Result<Self, IssueError> {
        let key = Key::generate()?;
        let number = serial()?;
        // Authorities that follow one another must not be taken for each other.
        let id: String = number[1..5].iter().map(|byte| format!("{byte:02x}")).collect();
        let name = Name::from_str(&format!("CN={name}-{id}")).map_err(IssueError::Read)?;
        let profile = Profile { subject: name.clone(), issuer: name, names: None };
        let certificate = sign(profile, &key, &key, number, lifetime, now)?;
        Authority::with(key, certificate)
    }

    /// One that was made before.
    ///
    /// # Errors
    /// If it is none.
    pub fn from_pair(pair: &Pair) -> Result<Self, IssueError> {
        let key = Key::from_pem(&pair.key)?;
        let certificate = Certificate::from_pem(&pair.certificate).map_err(IssueError::Read)?;
        match is_of(&certificate, &key) {
            true => Authority::with(key, certificate),
            false => Err(IssueError::Key("it is not the one of the certificate")),
        }
    }

    fn with(key: Key, certificate: Certificate) -> Result<Self, IssueError> {
        let pair = Pair { certificate: written(&certificate)?, key: key.to_pem()? };
        Ok(Authority { key, certificate, pair })
    }

    pub fn pair(&self) -> &Pair {
        &self.pair
    }

    /// A certificate for a server at these names and addresses, with a new key.
    ///
    /// # Errors
    /// If a name is none.
    pub fn issue(
        &self,
        names: &[String],
        lifetime: Duration,
        now: Timestamp,
    ) -> Result<Pair, IssueError> {
        let key = Key::generate()?;
        let issuer = self.certificate.tbs_certificate().subject().clone();
        // Names of Services may be longer than a common name; clients read the others anyway.
        let subject = Name::from_str("CN=webhook").map_err(IssueError::Read)?;
        let profile = Profile { subject, issuer, names: Some(names) };
        let certificate = sign(profile, &key, &self.key, serial()?, lifetime, now)?;
        Ok(Pair { certificate: written(&certificate)?, key: key.to_pem()? })
    }

    /// Whether it has signed this certificate, for all these names and with this key.
    pub(super) fn stands_by(&self, pair: &Pair, names: &[String]) -> bool {
        let (Ok(certificate), Ok(key)) =
            (Certificate::from_pem(&pair.certificate), Key::from_pem(&pair.key))
        else {
            return false;
        };
        let has = names_of(&certificate);
        names.iter().all(|name| has.contains(name))
            && is_of(&certificate, &key)
            && certificate.tbs_certificate().issuer()
                == self.certificate.tbs_certificate().subject()
    }
}

/// When certificates begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Term {
    pub(super) begin: Timestamp,
    pub(super) end: Timestamp,
}

impl Term {
    /// Of the first certificate of a text.
    pub(super) fn of(pem: &str) -> Option<Self> {
        Some(Term::of_certificate(&Certificate::from_pem(pem).ok()?))
    }

    fn of_certificate(certificate: &Certificate) -> Self {
        let validity = certificate.tbs_certificate().validity();
        let time = |time: &Time| {
            let seconds = i64::try_from(time.to_unix_duration().as_secs());
            seconds.ok().and_then(|it| Timestamp::from_second(it).ok()).unwrap_or(Timestamp::MAX)
        };
        Term { begin: time(&validity.not_before) + BACKDATED, end: time(&validity.not_after) }
    }

    /// Whether two thirds of it are over, which is when something new should come.
    pub(super) fn is_late(self, now: Timestamp) -> bool {
        now >= self.end - self.begin.duration_until(self.end) / 3
    }

    pub(super) fn is_over(self, now: Timestamp) -> bool {
        now >= self.end
    }
}

/// The certificates in a text, one text each.
pub(super) fn split(bundle: &str) -> Vec<String> {
    let chain = Certificate::load_pem_chain(bundle.as_bytes()).unwrap_or_default();
    chain.iter().filter_map(|it| written(it).ok()).collect()
}

fn written(certificate: &Certificate) -> Result<String, IssueError> {
    certificate.to_pem(LineEnding::LF).map_err(IssueError::Write)
}

fn is_of(certificate: &Certificate, key: &Key) -> bool {
    let own = SubjectPublicKeyInfo::from_key(&key.public());
    own.is_ok_and(|own| own == *certificate.tbs_certificate().subject_public_key_info())
}

fn names_of(certificate: &Certificate) -> Vec<String> {
    let extension = certificate.tbs_certificate().get_extension::<SubjectAltName>();
    let Ok(Some((_, names))) = extension else { return Vec::new() };
    let name = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(octets) => {
            let bytes = octets.as_bytes();
            let four = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
            let address = four.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from));
            address.ok().map(|address| address.to_string())
        }
        _ => None,
    };
    names.0.iter().filter_map(name).collect()
}

/// A number that no other certificate has.
fn serial() -> Result<[u8; 16], IssueError> {
    // A small first byte keeps the number positive.
    let mut serial = [1; 16];
    aws_lc_rs::rand::fill(&mut serial[1..])
        .map_err(|_| IssueError::Key("there are no random numbers"))?;
    Ok(serial)
}

fn sign(
    profile: Profile<'_>,
    key: &Key,
    issuer_key: &Key,
    serial: [u8; 16],
    lifetime: Duration,
    now: Timestamp,
) -> Result<Certificate, IssueError> {
    let time = |time: Timestamp| {
        let since_epoch = Duration::from_secs(time.as_second().unsigned_abs());
        let time = GeneralizedTime::from_unix_duration(since_epoch).map(Time::GeneralTime);
        time.map_err(IssueError::Write)
    };
    let end = now.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
    let validity = Validity::new(time(now - BACKDATED)?, time(end)?);
    let public =
        SubjectPublicKeyInfo::from_key(&key.public()).map_err(|_| IssueError::Key("no public"))?;
    let serial = SerialNumber::new(&serial).map_err(IssueError::Write)?;
    let builder =
        CertificateBuilder::new(profile, serial, validity, public).map_err(IssueError::Make)?;
    builder.build::<_, Signature>(issuer_key).map_err(IssueError::Make)
}

impl BuilderProfile for Profile<'_> {
    fn get_issuer(&self, _subject: &Name) -> Name {
        self.issuer.clone()
    }

    fn get_subject(&self) -> Name {
        self.subject.clone()
    }

    fn build_extensions(
        &self,
        public: SubjectPublicKeyInfoRef<'_>,
        issuer_public: SubjectPublicKeyInfoRef<'_>,
        _tbs: &TbsCertificate,
    ) -> x509_cert::builder::Result<Vec<Extension>> {
        let mut extensions = Vec::new();
        let is_authority = self.names.is_none();
        let constraints = BasicConstraints { ca: is_authority, path_len_constraint: None };
        extensions.push(constraints.to_extension(&self.subject, &extensions)?);
        let usage = match is_authority {
            true => KeyUsages::DigitalSignature | KeyUsages::KeyCertSign,
            false => KeyUsages::DigitalSignature.into(),
        };
        extensions.push(KeyUsage(usage).to_extension(&self.subject, &extensions)?);
        // Strict verifiers want certificates to name their keys.
        let Some(names) = self.names else {
            let own = SubjectKeyIdentifier::try_from(public)?;
            extensions.push(own.to_extension(&self.subject, &extensions)?);
            return Ok(extensions);
        };
        let issuer = AuthorityKeyIdentifier::try_from(issuer_public)?;
        extensions.push(issuer.to_extension(&self.subject, &extensions)?);
        let extended = ExtendedKeyUsage(vec![ID_KP_SERVER_AUTH]);
        extensions.push(extended.to_extension(&self.subject, &extensions)?);
        let name = |name: &String| {
            Ok(match name.parse::<IpAddr>() {
                Ok(address) => GeneralName::from(address),
                Err(_) => GeneralName::DnsName(Ia5String::new(name)?),
            })
        };
        let names = names.iter().map(name).collect::<x509_cert::builder::Result<_>>()?;
        extensions.push(SubjectAltName(names).to_extension(&self.subject, &extensions)?);
        Ok(extensions)
    }
}
