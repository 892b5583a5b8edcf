//! Keys, and certificates that one key signs for another.

mod signing;

use std::net::IpAddr;
use std::str::FromStr as _;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use serde::{Deserialize, Serialize};
use x509_cert::Certificate;
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{Builder as _, CertificateBuilder};
use x509_cert::certificate::TbsCertificate;
use x509_cert::der::asn1::{GeneralizedTime, Ia5String};
use x509_cert::der::oid::db::rfc5280::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH};
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
use x509_cert::spki::{
    EncodePublicKey as _, SubjectPublicKeyInfo, SubjectPublicKeyInfoOwned, SubjectPublicKeyInfoRef,
};
use x509_cert::time::{Time, Validity};

pub(crate) use signing::Signing;

use crate::key::{Key, Signature};
use signing::Requested;

/// As kubeadm has it: authorities last ten years, what they sign lasts one.
const AUTHORITY_LIFETIME: Duration = Duration::from_hours(10 * 365 * 24);
const LIFETIME: Duration = Duration::from_hours(365 * 24);
/// Clocks of clients may be behind.
const BACKDATED: Duration = Duration::from_mins(5);
/// A certificate that ends sooner is made anew when there is an occasion.
const RENEWED_BEFORE: Duration = Duration::from_hours(30 * 24);

/// A key and its certificate, in PEM.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    pub certificate: String,
    pub key: String,
}

/// Signs certificates.
pub(crate) struct Authority {
    key: Key,
    name: Name,
    /// When it ends, since the Unix epoch.
    until: Duration,
    pub(crate) pair: Pair,
}

/// What a certificate is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Purpose {
    Authority,
    /// Serves at these addresses and names.
    Server(Vec<Subject>),
    Client,
    /// Whatever somebody has asked for and may have.
    Requested(Requested),
}

/// Where a server is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    Address(IpAddr),
    Name(String),
}

struct Profile {
    subject: Name,
    issuer: Name,
    purpose: Purpose,
}

impl Authority {
    /// Signs for itself. `now` is the time since the Unix epoch.
    pub(crate) fn new(common_name: &str, now: Duration) -> Result<Self> {
        let key = Key::generate()?;
        let name = Name::from_str(&format!("CN={common_name}")).context("name an authority")?;
        let profile =
            Profile { subject: name.clone(), issuer: name.clone(), purpose: Purpose::Authority };
        let until = now + AUTHORITY_LIFETIME;
        let pair = sign(profile, &key, &key, now, until)?;
        Ok(Authority { key, name, until, pair })
    }

    /// One that was made before.
    pub(crate) fn from_pair(pair: Pair) -> Result<Self> {
        let key = Key::from_pem(&pair.key).context("read the authority's key")?;
        let certificate =
            Certificate::from_pem(&pair.certificate).context("read the authority's certificate")?;
        let tbs = certificate.tbs_certificate();
        let (name, until) = (tbs.subject().clone(), tbs.validity().not_after.to_unix_duration());
        Ok(Authority { key, name, until, pair })
    }

    /// `subject` is a distinguished name, such as `CN=alice,O=dev`.
    pub(crate) fn issue(&self, subject: &str, purpose: Purpose, now: Duration) -> Result<Pair> {
        let key = Key::generate()?;
        let subject = Name::from_str(subject).context("name the subject")?;
        let profile = Profile { subject, issuer: self.name.clone(), purpose };
        sign(profile, &key, &self.key, now, now + LIFETIME)
    }

    /// Whether a certificate of this authority's may be kept: it is for this purpose, and will do
    /// for some time.
    pub(crate) fn stands_by(&self, pair: &Pair, purpose: &Purpose, now: Duration) -> bool {
        let Ok(certificate) = Certificate::from_pem(&pair.certificate) else { return false };
        let tbs = certificate.tbs_certificate();
        let lasts = tbs.validity().not_after.to_unix_duration() > now + RENEWED_BEFORE;
        let fits = match purpose {
            Purpose::Server(subjects) => names(&certificate)
                .is_some_and(|names| subjects.iter().all(|subject| names.contains(subject))),
            Purpose::Authority | Purpose::Client | Purpose::Requested(_) => true,
        };
        // A crash may have left a new certificate beside an old key.
        let belongs = Key::from_pem(&pair.key)
            .and_then(|key| key.public())
            .ok()
            .and_then(|public| SubjectPublicKeyInfo::from_key(&public).ok())
            .is_some_and(|public| public == *tbs.subject_public_key_info());
        lasts && fits && belongs && *tbs.issuer() == self.name
    }
}

/// A new key, in PEM.
pub(crate) fn key() -> Result<String> {
    Key::generate()?.to_pem()
}

/// The public half of a private key, both in PEM.
pub(crate) fn public_of(private: &str) -> Result<String> {
    let public = Key::from_pem(private)?.public()?;
    public.to_public_key_pem(LineEnding::LF).context("encode a key")
}

fn names(certificate: &Certificate) -> Option<Vec<Subject>> {
    let extension = certificate.tbs_certificate().get_extension::<SubjectAltName>();
    let (_, names) = extension.ok()??;
    let subject = |name: &GeneralName| match name {
        GeneralName::DnsName(name) => Some(Subject::Name(name.to_string())),
        GeneralName::IpAddress(octets) => match octets.as_bytes().len() {
            4 => <[u8; 4]>::try_from(octets.as_bytes()).ok().map(IpAddr::from),
            _ => <[u8; 16]>::try_from(octets.as_bytes()).ok().map(IpAddr::from),
        }
        .map(Subject::Address),
        _ => None,
    };
    Some(names.0.iter().filter_map(subject).collect())
}

fn sign(
    profile: Profile,
    key: &Key,
    issuer_key: &Key,
    now: Duration,
    until: Duration,
) -> Result<Pair> {
    let public = SubjectPublicKeyInfo::from_key(&key.public()?).context("encode a key")?;
    Ok(Pair {
        certificate: certificate(profile, public, issuer_key, now, until)?,
        key: key.to_pem()?,
    })
}

fn certificate(
    profile: Profile,
    public: SubjectPublicKeyInfoOwned,
    issuer_key: &Key,
    now: Duration,
    until: Duration,
) -> Result<String> {
    let time = |since_epoch: Duration| {
        // Fractions of a second have no place in a certificate.
        let seconds = Duration::from_secs(since_epoch.as_secs());
        GeneralizedTime::from_unix_duration(seconds).map(Time::GeneralTime)
    };
    let validity = Validity::new(
        time(now.saturating_sub(BACKDATED)).context("date a certificate")?,
        time(until).context("date a certificate")?,
    );
    // A small first byte keeps the number positive.
    let mut serial = [1; 16];
    aws_lc_rs::rand::fill(&mut serial[1..]).map_err(|_| anyhow!("make a serial number"))?;
    CertificateBuilder::new(
        profile,
        SerialNumber::new(&serial).context("make a serial number")?,
        validity,
        public,
    )
    .and_then(|builder| builder.build::<_, Signature>(issuer_key))
    .context("sign a certificate")?
    .to_pem(LineEnding::LF)
    .context("encode a certificate")
}

impl BuilderProfile for Profile {
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
        let is_authority = self.purpose == Purpose::Authority;
        let constraints = BasicConstraints { ca: is_authority, path_len_constraint: None };
        extensions.push(constraints.to_extension(&self.subject, &extensions)?);
        let usage = match &self.purpose {
            Purpose::Authority => KeyUsage(KeyUsages::DigitalSignature | KeyUsages::KeyCertSign),
            Purpose::Server(_) | Purpose::Client => KeyUsage(KeyUsages::DigitalSignature.into()),
            Purpose::Requested(requested) => requested.usage,
        };
        if !usage.0.is_empty() {
            extensions.push(usage.to_extension(&self.subject, &extensions)?);
        }
        // Strict verifiers, Python's among them, want certificates to name their keys.
        if is_authority {
            let own = SubjectKeyIdentifier::try_from(public)?;
            extensions.push(own.to_extension(&self.subject, &extensions)?);
            return Ok(extensions);
        }
        let issuer = AuthorityKeyIdentifier::try_from(issuer_public)?;
        extensions.push(issuer.to_extension(&self.subject, &extensions)?);
        let name = |subject: &Subject| {
            Ok(match subject {
                Subject::Address(address) => GeneralName::from(*address),
                Subject::Name(name) => GeneralName::DnsName(Ia5String::new(name)?),
            })
        };
        let (extended, names) = match &self.purpose {
            Purpose::Authority | Purpose::Client => (vec![ID_KP_CLIENT_AUTH], Vec::new()),
            Purpose::Server(subjects) => {
                let names = subjects.iter().map(name);
                let names = names.collect::<x509_cert::builder::Result<_>>()?;
                (vec![ID_KP_SERVER_AUTH], names)
            }
            Purpose::Requested(it) => (it.extended.clone(), it.names.clone()),
        };
        if !extended.is_empty() {
            let extended = ExtendedKeyUsage(extended);
            extensions.push(extended.to_extension(&self.subject, &extensions)?);
        }
        if !names.is_empty() {
            extensions.push(SubjectAltName(names).to_extension(&self.subject, &extensions)?);
        }
        Ok(extensions)
    }
}
