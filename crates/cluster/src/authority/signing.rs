//! The cluster's authority signs what its controllers have judged.

#[cfg(test)]
mod tests;

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use kubewright_controllers::{Order, SignError, Signer};
use x509_cert::der::oid::db::rfc5280::{
    ANY_EXTENDED_KEY_USAGE, ID_KP_CLIENT_AUTH, ID_KP_CODE_SIGNING, ID_KP_EMAIL_PROTECTION,
    ID_KP_OCSP_SIGNING, ID_KP_SERVER_AUTH, ID_KP_TIME_STAMPING,
};
use x509_cert::der::oid::{AssociatedOid as _, ObjectIdentifier};
use x509_cert::der::{Decode as _, Encode as _};
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::ext::pkix::{KeyUsage, KeyUsages, SubjectAltName};
use x509_cert::request::{CertReq, ExtensionReq};

use super::{Authority, BACKDATED, Profile, Purpose, certificate};
use crate::Clock;

/// A certificate that lasts no longer is not shortened by what it is backdated.
const SHORT: Duration = Duration::from_hours(8);
/// Purposes that the table of names does not have.
const IPSEC_END_SYSTEM: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.5");
const IPSEC_TUNNEL: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.6");
const IPSEC_USER: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.7");
const MICROSOFT_SGC: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.4.1.311.10.3.3");
const NETSCAPE_SGC: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.113730.4.1");

/// An authority that signs by a clock.
pub(crate) struct Signing {
    authority: Authority,
    clock: Clock,
}

/// What a certificate that was asked for is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Requested {
    pub(super) usage: KeyUsage,
    pub(super) extended: Vec<ObjectIdentifier>,
    pub(super) names: Vec<GeneralName>,
}

impl Signing {
    pub(crate) fn new(authority: Authority, clock: Clock) -> Self {
        Signing { authority, clock }
    }

    fn certificate(&self, order: &Order<'_>) -> Result<String> {
        let request = CertReq::from_der(order.request).context("read the request")?;
        let (usage, extended) = usages(order.usages)?;
        let requested = Requested { usage, extended, names: names(&request)? };
        let profile = Profile {
            subject: request.info.subject,
            issuer: self.authority.name.clone(),
            purpose: Purpose::Requested(requested),
        };
        let now = self.clock.now();
        let until = match order.lifetime < SHORT {
            true => now + order.lifetime,
            false => now + order.lifetime - BACKDATED,
        };
        let until = until.min(self.authority.until);
        if until <= now {
            bail!("the authority has expired");
        }
        certificate(profile, request.info.public_key, &self.authority.key, now, until)
    }
}

impl Signer for Signing {
    fn sign(&self, order: &Order<'_>) -> Result<String, SignError> {
        self.certificate(order).map_err(|error| SignError(error.into()))
    }
}

/// The names in a request that a certificate may have: of hosts, addresses, mail and places.
fn names(request: &CertReq) -> Result<Vec<GeneralName>> {
    let mut names = Vec::new();
    for attribute in request.info.attributes.iter().filter(|it| it.oid == ExtensionReq::OID) {
        for value in attribute.values.iter() {
            let der = value.to_der().context("read the request")?;
            let extensions = ExtensionReq::from_der(&der).context("read what is requested")?;
            for extension in extensions.0.iter().filter(|it| it.extn_id == SubjectAltName::OID) {
                let found = SubjectAltName::from_der(extension.extn_value.as_bytes())
                    .context("read the names that are requested")?;
                names.extend(found.0);
            }
        }
    }
    names.retain(|name| {
        matches!(
            name,
            GeneralName::DnsName(_)
                | GeneralName::IpAddress(_)
                | GeneralName::Rfc822Name(_)
                | GeneralName::UniformResourceIdentifier(_)
        )
    });
    Ok(names)
}

/// What the API's words for usages mean in a certificate.
fn usages(words: &[String]) -> Result<(KeyUsage, Vec<ObjectIdentifier>)> {
    let (mut usage, mut extended) = (KeyUsage(Default::default()), Vec::new());
    for word in words {
        let flag = match word.as_str() {
            "signing" | "digital signature" => KeyUsages::DigitalSignature,
            "content commitment" => KeyUsages::NonRepudiation,
            "key encipherment" => KeyUsages::KeyEncipherment,
            "key agreement" => KeyUsages::KeyAgreement,
            "data encipherment" => KeyUsages::DataEncipherment,
            "cert sign" => KeyUsages::KeyCertSign,
            "crl sign" => KeyUsages::CRLSign,
            "encipher only" => KeyUsages::EncipherOnly,
            "decipher only" => KeyUsages::DecipherOnly,
            purpose => {
                extended.push(self::purpose(purpose)?);
                continue;
            }
        };
        usage.0 |= flag;
    }
    Ok((usage, extended))
}

fn purpose(word: &str) -> Result<ObjectIdentifier> {
    Ok(match word {
        "any" => ANY_EXTENDED_KEY_USAGE,
        "server auth" => ID_KP_SERVER_AUTH,
        "client auth" => ID_KP_CLIENT_AUTH,
        "code signing" => ID_KP_CODE_SIGNING,
        "email protection" | "s/mime" => ID_KP_EMAIL_PROTECTION,
        "ipsec end system" => IPSEC_END_SYSTEM,
        "ipsec tunnel" => IPSEC_TUNNEL,
        "ipsec user" => IPSEC_USER,
        "timestamping" => ID_KP_TIME_STAMPING,
        "ocsp signing" => ID_KP_OCSP_SIGNING,
        "microsoft sgc" => MICROSOFT_SGC,
        "netscape sgc" => NETSCAPE_SGC,
        word => bail!("{word:?} is no usage"),
    })
}
