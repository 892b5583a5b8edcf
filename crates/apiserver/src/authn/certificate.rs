//! Who a client certificate stands for. That it is genuine is the TLS layer's business.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::authenticated;
use super::token::CREDENTIAL_ID;
use crate::user::User;

/// Why a certificate identifies nobody, although it names somebody.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum CertificateError {
    #[error("trust a certificate")]
    Untrusted,
    #[error("trust a certificate that has expired")]
    Expired,
    #[error("believe {0}, which is not among the proxies")]
    Unlisted(String),
    #[error("read a certificate")]
    Malformed,
    #[error("identify by a UID that is given {0} times")]
    ManyUids(usize),
    #[error("identify by a UID that is empty or no text")]
    BadUid,
}

/// The part of a subject that holds a user's UID: 1.3.6.1.4.1.57683.2.
const UID: &[u64] = &[1, 3, 6, 1, 4, 1, 57683, 2];

/// Whom a certificate stands for, and how long.
#[derive(Debug, Clone)]
pub(crate) struct Certified {
    pub(crate) user: Arc<User>,
    /// In seconds since 1970.
    pub(crate) not_after: i64,
}

impl Certified {
    pub(super) fn is_expired(&self, now: Duration) -> bool {
        is_over(self.not_after, now)
    }
}

fn is_over(not_after: i64, now: Duration) -> bool {
    now > Duration::from_secs(u64::try_from(not_after).unwrap_or_default())
}

/// Whom a certificate is for, if it still is.
pub(super) fn common_name(der: &[u8], now: Duration) -> Result<String, CertificateError> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|_| CertificateError::Malformed)?;
    if is_over(certificate.validity().not_after.timestamp(), now) {
        return Err(CertificateError::Expired);
    }
    // The last one counts, as in Go.
    let name =
        certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()).last();
    Ok(name.unwrap_or_default().to_owned())
}

/// The user that the subject names: its common name, with every organization a group.
pub(super) fn user(der: &[u8]) -> Result<Option<Certified>, CertificateError> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|_| CertificateError::Malformed)?;
    let subject = certificate.subject();
    let text = |attribute: &x509_parser::x509::AttributeTypeAndValue<'_>| {
        attribute.as_str().ok().map(str::to_owned)
    };
    // The last one counts, as in Go.
    let Some(name) = subject.iter_common_name().filter_map(text).last().filter(|n| !n.is_empty())
    else {
        return Ok(None);
    };
    let uids: Vec<Option<String>> = subject
        .iter_attributes()
        .filter(|attribute| {
            attribute.attr_type().iter().is_some_and(|arcs| arcs.eq(UID.iter().copied()))
        })
        .map(text)
        .collect();
    let uid = match uids.as_slice() {
        [] => String::new(),
        [Some(uid)] if !uid.is_empty() => uid.clone(),
        [_] => return Err(CertificateError::BadUid),
        many => return Err(CertificateError::ManyUids(many.len())),
    };
    let mut id = "X509SHA256=".to_owned();
    for byte in Sha256::digest(der) {
        write!(id, "{byte:02x}").expect("a string takes all");
    }
    let user = User {
        name,
        uid,
        groups: subject.iter_organization().filter_map(text).collect(),
        extra: BTreeMap::from([(CREDENTIAL_ID.to_owned(), vec![id])]),
    };
    let not_after = certificate.validity().not_after.timestamp();
    Ok(Some(Certified { user: Arc::new(authenticated(user)), not_after }))
}
