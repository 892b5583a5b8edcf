//! Keys and certificates of one throw-away cluster.

use std::net::{IpAddr, Ipv4Addr};

use anyhow::{Context as _, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Who may say in headers on whose behalf it asks.
pub(super) const FRONT_PROXY: &str = "front-proxy-client";

/// Signs for one cluster, and dies with it.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(super) pair: Pair,
}

/// A key and its certificate, in PEM.
pub(super) struct Pair {
    pub(super) key: String,
    pub(super) certificate: String,
}

impl Authority {
    pub(super) fn new(name: &str) -> Result<Self> {
        let key = KeyPair::generate().context("make a key")?;
        let mut params = named(name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let certificate = params.self_signed(&key).context("sign a certificate")?.pem();
        let pair = Pair { key: key.serialize_pem(), certificate };
        Ok(Self { issuer: Issuer::new(params, key), pair })
    }

    pub(super) fn server(&self) -> Result<Pair> {
        let mut params = named("kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        // The second is that of its Service, by which pods know it.
        let addresses = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 0, 0, 1)];
        params.subject_alt_names =
            addresses.map(|address| SanType::IpAddress(IpAddr::V4(address))).into();
        for name in ["localhost", "kubernetes.default.svc"] {
            let name = name.try_into().context("name the server")?;
            params.subject_alt_names.push(SanType::DnsName(name));
        }
        self.issue(params)
    }

    /// A client whose user is `name` and whose one group is `group`.
    pub(super) fn client(&self, name: &str, group: &str) -> Result<Pair> {
        let mut params = named(name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    /// The server, as it asks others on behalf of its clients.
    pub(super) fn proxy(&self) -> Result<Pair> {
        let mut params = named(FRONT_PROXY);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params)
    }

    fn issue(&self, mut params: CertificateParams) -> Result<Pair> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate().context("make a key")?;
        let certificate = params.signed_by(&key, &self.issuer).context("sign a certificate")?;
        Ok(Pair { key: key.serialize_pem(), certificate: certificate.pem() })
    }
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

/// The halves of a key for signing tokens, private and public, in PEM.
pub(super) fn token_key() -> Result<(String, String)> {
    let key = KeyPair::generate().context("make a key")?;
    Ok((key.serialize_pem(), key.public_key_pem()))
}

/// A secret nobody can guess.
pub(super) fn token() -> Result<String> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).context("make a secret")?;
    Ok(secret.iter().map(|byte| format!("{byte:02x}")).collect())
}
