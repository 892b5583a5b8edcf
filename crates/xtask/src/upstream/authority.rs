//! Keys and certificates of one throw-away cluster.

use std::net::{IpAddr, Ipv4Addr};
use std::str::FromStr as _;
use std::time::Duration;

use anyhow::{Context as _, Result};
use p256::ecdsa::{DerSignature, SigningKey};
use p256::elliptic_curve::Generate as _;
use p256::pkcs8::{EncodePrivateKey as _, EncodePublicKey as _, LineEnding};
use x509_cert::builder::profile::BuilderProfile;
use x509_cert::builder::{Builder as _, CertificateBuilder};
use x509_cert::certificate::TbsCertificate;
use x509_cert::der::EncodePem as _;
use x509_cert::der::asn1::Ia5String;
use x509_cert::der::oid::db::rfc5280::{ID_KP_CLIENT_AUTH, ID_KP_SERVER_AUTH};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{
    BasicConstraints, ExtendedKeyUsage, KeyUsage, KeyUsages, SubjectAltName,
};
use x509_cert::ext::{Extension, ToExtension as _};
use x509_cert::name::Name;
use x509_cert::serial_number::SerialNumber;
use x509_cert::spki::{SubjectPublicKeyInfo, SubjectPublicKeyInfoRef};
use x509_cert::time::Validity;

/// No run lasts longer.
const LIFETIME: Duration = Duration::from_hours(7 * 24);

/// Signs for one cluster, and dies with it.
pub(super) struct Authority {
    key: SigningKey,
    name: Name,
    pub(super) pair: Pair,
}

/// A key and its certificate, in PEM.
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) certificate: String,
}

enum Purpose {
    Authority,
    /// Serves on loopback.
    Server,
    Client,
}

struct Profile {
    subject: Name,
    issuer: Name,
    purpose: Purpose,
}

impl Authority {
    pub(super) fn new() -> Result<Self> {
        let key = SigningKey::try_generate().context("make a key")?;
        let name = Name::from_str("CN=kubewright-upstream").context("name the authority")?;
        let profile =
            Profile { subject: name.clone(), issuer: name.clone(), purpose: Purpose::Authority };
        let pair = sign(profile, &key, &key)?;
        Ok(Self { key, name, pair })
    }

    pub(super) fn server(&self) -> Result<Pair> {
        self.issue("CN=kube-apiserver", Purpose::Server)
    }

    /// A client whose user is `name` and whose one group is `group`.
    pub(super) fn client(&self, name: &str, group: &str) -> Result<Pair> {
        self.issue(&format!("CN={name},O={group}"), Purpose::Client)
    }

    fn issue(&self, subject: &str, purpose: Purpose) -> Result<Pair> {
        let key = SigningKey::try_generate().context("make a key")?;
        let subject = Name::from_str(subject).context("name the subject")?;
        sign(Profile { subject, issuer: self.name.clone(), purpose }, &key, &self.key)
    }
}

/// The halves of a key for signing tokens, private and public, in PEM.
pub(super) fn token_key() -> Result<(String, String)> {
    let key = SigningKey::try_generate().context("make a key")?;
    let public = key.verifying_key().to_public_key_pem(LineEnding::LF).context("encode a key")?;
    Ok((to_pem(&key)?, public))
}

/// A secret nobody can guess.
pub(super) fn token() -> Result<String> {
    let secret = p256::SecretKey::try_generate().context("make a secret")?;
    Ok(secret.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect())
}

fn to_pem(key: &SigningKey) -> Result<String> {
    Ok(key.to_pkcs8_pem(LineEnding::LF).context("encode a key")?.to_string())
}

fn sign(profile: Profile, key: &SigningKey, issuer_key: &SigningKey) -> Result<Pair> {
    let serial = p256::SecretKey::try_generate().context("make a serial number")?.to_bytes();
    let public = SubjectPublicKeyInfo::from_key(key.verifying_key()).context("encode a key")?;
    let certificate = CertificateBuilder::new(
        profile,
        // A small first byte keeps the number positive.
        SerialNumber::new(&[&[0x01], &serial[..15]].concat()).context("make a serial number")?,
        Validity::from_now(LIFETIME).context("date a certificate")?,
        public,
    )
    .and_then(|builder| builder.build::<_, DerSignature>(issuer_key))
    .context("sign a certificate")?
    .to_pem(LineEnding::LF)
    .context("encode a certificate")?;
    Ok(Pair { key: to_pem(key)?, certificate })
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
        _public: SubjectPublicKeyInfoRef<'_>,
        _issuer_public: SubjectPublicKeyInfoRef<'_>,
        _tbs: &TbsCertificate,
    ) -> x509_cert::builder::Result<Vec<Extension>> {
        let mut extensions = Vec::new();
        let is_authority = matches!(self.purpose, Purpose::Authority);
        let constraints = BasicConstraints { ca: is_authority, path_len_constraint: None };
        extensions.push(constraints.to_extension(&self.subject, &extensions)?);
        let usage = match self.purpose {
            Purpose::Authority => KeyUsages::KeyCertSign,
            Purpose::Server | Purpose::Client => KeyUsages::DigitalSignature,
        };
        extensions.push(KeyUsage(usage.into()).to_extension(&self.subject, &extensions)?);
        let extended = match self.purpose {
            Purpose::Authority => return Ok(extensions),
            Purpose::Server => ID_KP_SERVER_AUTH,
            Purpose::Client => ID_KP_CLIENT_AUTH,
        };
        let extended = ExtendedKeyUsage(vec![extended]);
        extensions.push(extended.to_extension(&self.subject, &extensions)?);
        if matches!(self.purpose, Purpose::Server) {
            let names = SubjectAltName(vec![
                GeneralName::from(IpAddr::V4(Ipv4Addr::LOCALHOST)),
                GeneralName::DnsName(Ia5String::new("localhost")?),
                GeneralName::DnsName(Ia5String::new("kubernetes.default.svc")?),
            ]);
            extensions.push(names.to_extension(&self.subject, &extensions)?);
        }
        Ok(extensions)
    }
}
