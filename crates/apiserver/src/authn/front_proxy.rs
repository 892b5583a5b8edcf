//! Somebody on whose behalf a proxy asks, as the headers say that it adds.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;

use super::certificate::{self, CertificateError};
use crate::target::unescape;
use crate::user::User;

/// Which proxies are believed, and by which headers they say who asks. That their certificates were
/// genuine when they connected is the TLS layer's business.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FrontProxy {
    /// Whom their certificates may be for; anybody, if nobody is named.
    pub allowed_names: Vec<String>,
    /// The first of these that says something counts.
    pub username_headers: Vec<String>,
    pub uid_headers: Vec<String>,
    /// All of these count.
    pub group_headers: Vec<String>,
    pub extra_prefixes: Vec<String>,
}

impl FrontProxy {
    /// Who asks by way of the proxy with this certificate; `None` if it does not say.
    pub(super) fn user(
        &self,
        certificate: &[u8],
        headers: &HeaderMap,
        now: Duration,
    ) -> Result<Option<User>, CertificateError> {
        let name = certificate::common_name(certificate, now)?;
        if !self.allowed_names.is_empty() && !self.allowed_names.contains(&name) {
            return Err(CertificateError::Unlisted(name));
        }
        let Some(name) = first(headers, &self.username_headers) else { return Ok(None) };
        Ok(Some(User {
            name,
            uid: first(headers, &self.uid_headers).unwrap_or_default(),
            groups: self.group_headers.iter().flat_map(|name| values(headers, name)).collect(),
            extra: self.extra(headers),
        }))
    }

    /// Takes away the headers that proxies say it by: whoever gets a request from here must hear
    /// it from nobody else.
    pub(crate) fn clear(&self, headers: &mut HeaderMap) {
        for name in [&self.username_headers, &self.uid_headers, &self.group_headers] {
            name.iter().for_each(|name| drop(headers.remove(name.as_str())));
        }
        for prefix in &self.extra_prefixes {
            let prefix = prefix.to_ascii_lowercase();
            let found = headers.keys().filter(|name| name.as_str().starts_with(&prefix)).cloned();
            for name in found.collect::<Vec<_>>() {
                headers.remove(name);
            }
        }
    }

    fn extra(&self, headers: &HeaderMap) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            let prefix = prefix.to_ascii_lowercase();
            for name in headers.keys() {
                let Some(key) = name.as_str().strip_prefix(&prefix) else { continue };
                // What escapes nothing is taken as it is.
                let key = unescape(key).map_or_else(|| key.to_owned(), |key| key.into_owned());
                let found = headers.get_all(name).iter();
                let found =
                    found.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
                extra.entry(key).or_default().extend(found);
            }
        }
        extra
    }
}

fn first(headers: &HeaderMap, names: &[String]) -> Option<String> {
    names.iter().find_map(|name| {
        let value = headers.get(name.as_str())?;
        let value = String::from_utf8_lossy(value.as_bytes()).into_owned();
        Some(value).filter(|value| !value.is_empty())
    })
}

fn values<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = String> + use<'a> {
    let values = headers.get_all(name).iter();
    let values = values.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    values.filter(|value| !value.is_empty())
}
