//! How objects move between versions: the webhook that does it.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::{ClientConfig, Conversion, Service};
use crate::field::{Error, Path};
use crate::name;
use crate::schema::format::uri::Uri;

/// Versions of ConversionReview that the server can speak.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// What is not asked of a definition that was already stored without it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leniency {
    pub(super) unknown_review_versions: bool,
    pub(super) invalid_ca_bundle: bool,
}

pub(super) fn validate(conversion: &Conversion, leniency: Leniency, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let strategy = at.child("strategy");
    match conversion.strategy.as_str() {
        "None" | "Webhook" => {}
        "" => errors.push(Error::required(&strategy, "")),
        other => errors.push(Error::not_supported(&strategy, other, &["None", "Webhook"])),
    }
    let config_path = at.child("webhookClientConfig");
    let versions_path = at.child("conversionReviewVersions");
    if conversion.strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        if conversion.client_config.is_some() {
            errors.push(Error::forbidden(&config_path, detail));
        }
        if !conversion.review_versions.is_empty() {
            errors.push(Error::forbidden(&versions_path, detail));
        }
        return errors;
    }
    match &conversion.client_config {
        None => {
            let detail = "required when strategy is set to Webhook";
            errors.push(Error::required(&config_path, detail));
        }
        Some(config) => {
            errors.extend(validate_client_config(config, &config_path));
            if !config.ca_bundle.is_empty() && !leniency.invalid_ca_bundle {
                errors.extend(ca_bundle(&config.ca_bundle, &config_path.child("caBundle")));
            }
        }
    }
    let strict = !leniency.unknown_review_versions;
    errors.extend(review_versions(&conversion.review_versions, strict, &versions_path));
    errors
}

/// Where a webhook is, whatever it is for.
pub fn validate_client_config(config: &ClientConfig, at: &Path<'_>) -> Vec<Error> {
    match (&config.url, &config.service) {
        (Some(url), None) => webhook_url(url, &at.child("url")),
        (None, Some(service)) => webhook_service(service, &at.child("service")),
        _ => vec![Error::required(at, "exactly one of url or service is required")],
    }
}

fn webhook_url(url: &str, at: &Path<'_>) -> Vec<Error> {
    const FORM: &str = "; desired format: https://host[/path]";
    let url = match Uri::parse(url) {
        Ok(url) => url,
        Err(error) => {
            return vec![Error::required(at, format!("url must be a valid URL: {error}{FORM}"))];
        }
    };
    let mut errors = Vec::new();
    if url.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{FORM}");
        errors.push(Error::invalid(at, url.scheme, detail));
    }
    if url.host.is_empty() {
        errors.push(Error::invalid(at, "", format!("host must be specified{FORM}")));
    }
    if let Some(user) = url.user {
        let detail = "user information is not permitted in the URL";
        errors.push(Error::invalid(at, user, detail));
    }
    if !url.fragment.is_empty() {
        let detail = "fragments are not permitted in the URL";
        errors.push(Error::invalid(at, url.fragment, detail));
    }
    if !url.query.is_empty() {
        let detail = "query parameters are not permitted in the URL";
        errors.push(Error::invalid(at, url.query, detail));
    }
    errors
}

fn webhook_service(service: &Service, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    // Upstream takes one for the other here, and so do its messages.
    if service.namespace.is_empty() {
        errors.push(Error::required(&at.child("name"), ""));
    }
    if service.name.is_empty() {
        errors.push(Error::required(&at.child("namespace"), ""));
    }
    let wrong = name::port_number(service.port);
    if !wrong.is_empty() {
        let detail = format!("port is not valid: {}", wrong.join(", "));
        errors.push(Error::invalid(&at.child("port"), service.port, detail));
    }
    let path = match service.path.as_deref() {
        None | Some("" | "/") => return errors,
        Some(path) => path,
    };
    let at = at.child("path");
    if path == "//" {
        errors.push(Error::invalid(&at, path, "segment[0] may not be empty"));
        return errors;
    }
    if !path.starts_with('/') {
        errors.push(Error::invalid(&at, path, "must start with a '/'"));
    }
    // Upstream drops the first character, whatever it is.
    let mut characters = path.chars();
    characters.next();
    let inner = characters.as_str();
    for (index, segment) in inner.strip_suffix('/').unwrap_or(inner).split('/').enumerate() {
        if segment.is_empty() {
            let detail = format!("segment[{index}] may not be empty");
            errors.push(Error::invalid(&at, path, detail));
            continue;
        }
        for wrong in name::dns1123_subdomain(segment) {
            errors.push(Error::invalid(&at, path, format!("segment[{index}]: {wrong}")));
        }
    }
    errors
}

fn review_versions(versions: &[String], strict: bool, at: &Path<'_>) -> Vec<Error> {
    if versions.is_empty() {
        return vec![Error::required(at, "")];
    }
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = at.index(index);
        if !seen.insert(version) {
            errors.push(Error::invalid(&at, version.as_str(), "duplicate version"));
            continue;
        }
        for wrong in name::dns1035_label(version) {
            errors.push(Error::invalid(&at, version.as_str(), wrong));
        }
    }
    if strict && !versions.iter().any(|version| REVIEW_VERSIONS.contains(&version.as_str())) {
        let detail = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(Error::invalid(at, json!(versions), detail));
    }
    errors
}

/// Whether there is a version the server can speak, or none at all.
pub(super) fn has_known_review_version(conversion: Option<&Conversion>) -> bool {
    let versions = conversion.map_or(&[][..], |conversion| &conversion.review_versions);
    versions.is_empty()
        || versions.iter().any(|version| REVIEW_VERSIONS.contains(&version.as_str()))
}

/// Certificates are looked at only as far as their wrapping goes.
pub(super) fn ca_bundle(bundle: &[u8], at: &Path<'_>) -> Option<Error> {
    let text = String::from_utf8_lossy(bundle);
    let body = text
        .split_once("-----BEGIN CERTIFICATE-----")
        .and_then(|(_, rest)| rest.split_once("-----END CERTIFICATE-----"))
        .map(|(body, _)| body.split_whitespace().collect::<String>());
    if body.is_some_and(|body| STANDARD.decode(body).is_ok()) {
        return None;
    }
    let detail = "unable to load root certificates: unable to parse bytes as PEM block";
    Some(Error::invalid(at, STANDARD.encode(bundle), detail))
}
