//! CertificateSigningRequests: who asked for a certificate, who agreed, and the certificate.

mod pem;

use std::collections::HashSet;

use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::name::{self, SUBDOMAIN_BYTES_MAX};
use kubewright_apimachinery::time::Time;
use serde_json::{Value, json};

use super::{Context, Field, Part, Rules, edit, typed};

const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const EXPIRATION_SECONDS_MIN: i32 = 600;
const APPROVED: &str = "Approved";
const DENIED: &str = "Denied";
/// Conditions that are true or not there, and that stay.
const DECISIONS: [&str; 3] = [APPROVED, DENIED, "Failed"];
const STATUSES: [&str; 3] = ["False", "True", "Unknown"];
const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

pub(super) const RULES: Rules = Rules {
    name: name::Rule::PathSegment,
    prepare_create,
    prepare_update: |object, old, _| {
        edit::restore(object, old, "spec");
        edit::restore(object, old, "status");
    },
    validate: |object| check(object, &Tolerance::default()),
    validate_update: |object, old| check_update(object, old, Allowed::Neither),
    parts: &[
        (
            "status",
            Part {
                prepare_update: prepare_status,
                validate_update: |object, old| check_update(object, old, Allowed::Certificate),
                reset: &["spec", "status.conditions"],
                ..Part::PLAIN
            },
        ),
        (
            "approval",
            Part {
                prepare_update: prepare_approval,
                validate_update: |object, old| check_update(object, old, Allowed::Approval),
                reset: &["spec", "status.certificate"],
                ..Part::PLAIN
            },
        ),
    ],
    reset: &["spec", "status"],
    fields: &[Field::At("spec.signerName")],
    ..Rules::PLAIN
};

/// Nobody asks in the name of another.
fn prepare_create(object: &mut Value, context: &Context<'_>) {
    edit::fill(object, "spec", json!({}));
    let spec = object["spec"].as_object_mut().expect("filled in above");
    for field in ["username", "uid", "groups", "extra"] {
        spec.shift_remove(field);
    }
    let user = context.user;
    let mut say = |field: &str, is_empty: bool, value: Value| {
        if !is_empty {
            spec.insert(field.to_owned(), value);
        }
    };
    say("username", user.name.is_empty(), json!(user.name));
    say("uid", user.uid.is_empty(), json!(user.uid));
    say("groups", user.groups.is_empty(), json!(user.groups));
    say("extra", user.extra.is_empty(), json!(user.extra));
    object["status"] = json!({});
}

fn prepare_status(object: &mut Value, old: &Value, context: &Context<'_>) {
    edit::restore(object, old, "spec");
    for decision in [APPROVED, DENIED] {
        keep_conditions(object, old, decision);
    }
    date_conditions(object, old, context);
}

fn prepare_approval(object: &mut Value, old: &Value, context: &Context<'_>) {
    date_conditions(object, old, context);
    let conditions = object["status"].get_mut("conditions").map(Value::take);
    edit::restore(object, old, "spec");
    edit::restore(object, old, "status");
    edit::fill(object, "status", json!({}));
    let status = object["status"].as_object_mut().expect("filled in above");
    match conditions {
        Some(conditions) => status.insert("conditions".to_owned(), conditions),
        None => status.shift_remove("conditions"),
    };
}

/// Who writes the status has no say in the decision, so that a stale one does no harm.
fn keep_conditions(object: &mut Value, old: &Value, type_: &str) {
    let is_it = |condition: &&Value| edit::text(condition, "/type") == type_;
    let kept: Vec<Value> = list(&old["status"]["conditions"]).filter(is_it).cloned().collect();
    let found = list(&object["status"]["conditions"]).filter(is_it).count();
    if found != kept.len() {
        return;
    }
    let conditions = edit::items(object, "/status/conditions").iter_mut();
    let places = conditions.filter(|condition| edit::text(condition, "/type") == type_);
    for (place, condition) in places.zip(kept) {
        *place = condition;
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Says when a condition was written and when it came to be, where the client did not.
fn date_conditions(object: &mut Value, old: &Value, context: &Context<'_>) {
    let now = Time::from_unix(context.now.as_second()).to_value();
    for condition in edit::items(object, "/status/conditions") {
        edit::fill(condition, "lastUpdateTime", now.clone());
        let same = list(&old["status"]["conditions"]).find(|before| {
            before["type"] == condition["type"]
                && before["status"] == condition["status"]
                && !before["lastTransitionTime"].is_null()
        });
        let since = same.map_or(&now, |before| &before["lastTransitionTime"]).clone();
        edit::fill(condition, "lastTransitionTime", since);
    }
}

/// What an endpoint may write besides other conditions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    Neither,
    Certificate,
    Approval,
}

/// What is not held against an object because it was stored like that.
#[derive(Default)]
struct Tolerance {
    both_decisions: bool,
    legacy_signer: bool,
    duplicate_conditions: bool,
    empty_condition: bool,
    any_certificate: bool,
    duplicate_usages: bool,
    unknown_usages: bool,
}

impl Tolerance {
    fn towards(new: &CertificateSigningRequest, old: &CertificateSigningRequest) -> Self {
        let types: Vec<&str> = conditions(old).iter().map(|one| one.type_.as_str()).collect();
        let usages: Vec<&str> = usages(old).iter().map(String::as_str).collect();
        let before = certificate(old);
        Tolerance {
            both_decisions: types.contains(&APPROVED) && types.contains(&DENIED),
            legacy_signer: old.spec.signer_name == LEGACY_SIGNER,
            duplicate_conditions: has_duplicate(&types),
            empty_condition: types.contains(&""),
            any_certificate: certificate(new) == before || pem::check_chain(before).is_err(),
            duplicate_usages: has_duplicate(&usages),
            unknown_usages: usages.iter().any(|usage| !USAGES.contains(usage)),
        }
    }
}

fn has_duplicate(words: &[&str]) -> bool {
    let mut seen = HashSet::new();
    !words.iter().all(|word| seen.insert(word))
}

fn conditions(request: &CertificateSigningRequest) -> &[CertificateSigningRequestCondition] {
    let status = request.status.as_ref();
    status.and_then(|status| status.conditions.as_deref()).unwrap_or_default()
}

fn usages(request: &CertificateSigningRequest) -> &[String] {
    request.spec.usages.as_deref().unwrap_or_default()
}

fn certificate(request: &CertificateSigningRequest) -> &[u8] {
    let status = request.status.as_ref();
    status.and_then(|status| status.certificate.as_ref()).map_or(&[], |bytes| &bytes.0)
}

fn check(object: &Value, tolerance: &Tolerance) -> Vec<Error> {
    let request: &CertificateSigningRequest = &typed(object);
    let spec = &request.spec;
    let (at, status_at) = (Path::new("spec"), Path::new("status"));
    let mut errors = Vec::new();
    if let Err(problem) = pem::check_request(&spec.request.0) {
        let shown = object["spec"]["request"].clone();
        errors.push(Error::invalid(&at.child("request"), shown, problem));
    }
    errors.extend(check_usages(usages(request), tolerance, &at.child("usages")));
    let signer_at = at.child("signerName");
    if spec.signer_name == LEGACY_SIGNER && !tolerance.legacy_signer {
        let problem = "the legacy signerName is not allowed via this API version";
        errors.push(Error::invalid(&signer_at, LEGACY_SIGNER, problem));
    } else {
        errors.extend(check_signer(&spec.signer_name, &signer_at));
    }
    if let Some(seconds) = spec.expiration_seconds.filter(|some| *some < EXPIRATION_SECONDS_MIN) {
        let problem = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(Error::invalid(&at.child("expirationSeconds"), seconds, problem));
    }
    let conditions_at = status_at.child("conditions");
    errors.extend(check_conditions(conditions(request), tolerance, &conditions_at));
    if !tolerance.any_certificate
        && let Err(problem) = pem::check_chain(certificate(request))
    {
        let at = status_at.child("certificate");
        errors.push(Error::invalid(&at, "<certificate data>", problem));
    }
    errors
}

fn check_usages(usages: &[String], tolerance: &Tolerance, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if usages.is_empty() {
        errors.push(Error::required(at, ""));
    }
    let mut seen = HashSet::new();
    for (index, usage) in usages.iter().enumerate() {
        let (at, usage) = (at.index(index), usage.as_str());
        if !tolerance.unknown_usages && !USAGES.contains(&usage) {
            errors.push(Error::not_supported(&at, usage, &USAGES));
        }
        if !seen.insert(usage) && !tolerance.duplicate_usages {
            errors.push(Error::duplicate(&at, usage));
        }
    }
    errors
}

/// `example.com/signer`: a domain and a path.
fn check_signer(signer: &str, at: &Path<'_>) -> Vec<Error> {
    const SIGNER_BYTES_MAX: usize =
        SUBDOMAIN_BYTES_MAX + SUBDOMAIN_BYTES_MAX + name::LABEL_BYTES_MAX + 2;
    if signer.is_empty() {
        return vec![Error::required(at, "")];
    }
    let parts: Vec<&str> = signer.split('/').collect();
    let [domain, path] = parts.as_slice() else {
        let problem =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return vec![Error::invalid(at, signer, problem)];
    };
    let mut errors = Vec::new();
    if domain.len() > SUBDOMAIN_BYTES_MAX {
        errors.push(Error::too_long(at, SUBDOMAIN_BYTES_MAX));
    }
    // The first label that is wrong is enough.
    let first_wrong = |text: &str, check: fn(&str) -> Vec<String>| -> Vec<Error> {
        let wrong = text.split('.').map(|label| (label, check(label)));
        let wrong = wrong.into_iter().find(|(_, problems)| !problems.is_empty());
        let (label, problems) = wrong.unwrap_or_default();
        let problems = problems.into_iter();
        problems
            .map(|problem| format!("validating label {}: {problem}", go_quote(label)))
            .map(|problem| Error::invalid(at, text, problem))
            .collect()
    };
    errors.extend(first_wrong(domain, name::dns1123_label));
    if !domain.contains('.') {
        let problem = "should be a domain with at least two segments separated by dots";
        errors.push(Error::invalid(at, *domain, problem));
    }
    errors.extend(first_wrong(path, name::dns1123_subdomain));
    if signer.len() > SIGNER_BYTES_MAX {
        errors.push(Error::too_long(at, SIGNER_BYTES_MAX));
    }
    errors
}

fn check_conditions(
    conditions: &[CertificateSigningRequestCondition],
    tolerance: &Tolerance,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let one_at = at.index(index);
        let (type_, status) = (condition.type_.as_str(), condition.status.as_str());
        let type_at = one_at.child("type");
        if type_.is_empty() && !tolerance.empty_condition {
            errors.push(Error::required(&type_at, ""));
        }
        let statuses = if DECISIONS.contains(&type_) { &["True"][..] } else { &STATUSES };
        let status_at = one_at.child("status");
        if status.is_empty() {
            errors.push(Error::required(&status_at, ""));
        } else if !statuses.contains(&status) {
            errors.push(Error::not_supported(&status_at, status, statuses));
        }
        let opposite = match type_ {
            APPROVED => Some(DENIED),
            DENIED => Some(APPROVED),
            _ => None,
        };
        if opposite.is_some_and(|opposite| seen.contains(opposite)) && !tolerance.both_decisions {
            let problem = "Approved and Denied conditions are mutually exclusive";
            errors.push(Error::invalid(at, type_, problem));
        }
        if !seen.insert(type_) && !tolerance.duplicate_conditions {
            errors.push(Error::duplicate(&type_at, type_));
        }
    }
    errors
}

fn check_update(object: &Value, old: &Value, allowed: Allowed) -> Vec<Error> {
    let (new, old): (CertificateSigningRequest, CertificateSigningRequest) =
        (typed(object), typed(old));
    let mut errors = check(object, &Tolerance::towards(&new, &old));
    let status = Path::new("status");
    let at = status.child("conditions");
    let count = |request, type_: &str| {
        conditions(request).iter().filter(|condition| condition.type_ == type_).count()
    };
    for decision in DECISIONS {
        if count(&new, decision) < count(&old, decision) {
            let problem = format!("updates may not remove a condition of type \"{decision}\"");
            errors.push(Error::forbidden(&at, problem));
        }
    }
    // Where decisions are not taken, equally many are the same ones: see `keep_conditions`.
    for decision in [APPROVED, DENIED] {
        if allowed != Allowed::Approval && count(&new, decision) > count(&old, decision) {
            let problem = format!("updates may not add a condition of type \"{decision}\"");
            errors.push(Error::forbidden(&at, problem));
        }
    }
    let certificate_at = status.child("certificate");
    if certificate(&new) != certificate(&old) {
        if allowed != Allowed::Certificate {
            let problem = "updates may not set certificate content";
            errors.push(Error::forbidden(&certificate_at, problem));
        } else if !certificate(&old).is_empty() {
            let problem = "updates may not modify existing certificate content";
            errors.push(Error::forbidden(&certificate_at, problem));
        }
    }
    errors
}
