//! Configurations of webhooks that validate or change what is admitted.

use std::collections::HashSet;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, NamedRuleWithOperations, RuleWithOperations,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::schema::crd::{self, ClientConfig};
use kubewright_apimachinery::selector::label::Leniency;
use serde_json::{Value, json};

use super::{Context, Rules, admission, check, edit, typed};

/// Versions of AdmissionReview that the server can speak.
const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];
const HARMLESS: [&str; 2] = ["None", "NoneOnDryRun"];
const SIDE_EFFECTS: [&str; 4] = ["None", "NoneOnDryRun", "Some", "Unknown"];

pub(super) const VALIDATING: Rules = Rules { default: default_validating, ..COMMON };
pub(super) const MUTATING: Rules = Rules { default: default_mutating, ..COMMON };

const COMMON: Rules = Rules {
    prepare_create: |object, _| edit::first_generation(object),
    prepare_update,
    validate: |object| check(&webhooks(object), Strictness::default()),
    validate_update,
    warnings: admission::warnings,
    unconditional_update: false,
    ..Rules::PLAIN
};

fn default_validating(object: &mut Value) {
    for webhook in edit::items(object, "/webhooks") {
        edit::fill(webhook, "failurePolicy", "Fail");
        admission::default_match(webhook);
        edit::fill(webhook, "timeoutSeconds", 10);
        if let Some(service) = webhook.pointer_mut("/clientConfig/service") {
            edit::fill(service, "port", 443);
        }
        admission::default_rules(webhook, "/rules");
    }
}

fn default_mutating(object: &mut Value) {
    default_validating(object);
    for webhook in edit::items(object, "/webhooks") {
        edit::fill(webhook, "reinvocationPolicy", "Never");
    }
}

fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::next_generation(object, old, "webhooks");
}

/// The webhooks of either kind: a validating one has nothing that a mutating one has not.
fn webhooks(object: &Value) -> Vec<MutatingWebhook> {
    match &object["webhooks"] {
        Value::Null => Vec::new(),
        webhooks => typed(webhooks),
    }
}

/// What is asked of webhooks; old ones that do without may go on.
#[derive(Clone, Copy)]
struct Strictness {
    match_conditions: bool,
    harmless: bool,
    known_review_version: bool,
    unique_names: bool,
    selectors: Leniency,
}

impl Default for Strictness {
    fn default() -> Self {
        Strictness {
            match_conditions: true,
            harmless: true,
            known_review_version: true,
            unique_names: true,
            selectors: Leniency::default(),
        }
    }
}

impl Strictness {
    fn towards(new: &[MutatingWebhook], old: &[MutatingWebhook]) -> Self {
        let same_conditions = new.len() == old.len()
            && new.iter().zip(old).all(|(new, old)| new.match_conditions == old.match_conditions);
        let mut names = HashSet::new();
        let has_invalid_selector = |webhook: &MutatingWebhook| {
            let selectors = [&webhook.namespace_selector, &webhook.object_selector];
            selectors.into_iter().flatten().any(|selector| {
                let strict = Leniency::default();
                !admission::check_selector(selector, strict, &Path::ROOT).is_empty()
            })
        };
        Strictness {
            match_conditions: !same_conditions,
            harmless: old.iter().all(|webhook| HARMLESS.contains(&webhook.side_effects.as_str())),
            known_review_version: old.iter().all(|webhook| {
                let versions = &webhook.admission_review_versions;
                versions.is_empty() || versions.iter().any(|version| is_known(version))
            }),
            unique_names: old.iter().all(|webhook| names.insert(&webhook.name)),
            selectors: Leniency {
                invalid_values: old.iter().any(has_invalid_selector),
                ..Leniency::default()
            },
        }
    }
}

fn is_known(version: &str) -> bool {
    REVIEW_VERSIONS.contains(&version)
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old) = (webhooks(object), webhooks(old));
    check(&new, Strictness::towards(&new, &old))
}

fn check(webhooks: &[MutatingWebhook], strictness: Strictness) -> Vec<Error> {
    let at = Path::new("webhooks");
    let mut errors = Vec::new();
    let mut names = HashSet::new();
    for (index, webhook) in webhooks.iter().enumerate() {
        let at = at.index(index);
        errors.extend(check_webhook(webhook, strictness, &at));
        errors.extend(check_review_versions(
            &webhook.admission_review_versions,
            strictness.known_review_version,
            &at.child("admissionReviewVersions"),
        ));
        let is_named = strictness.unique_names && !webhook.name.is_empty();
        if is_named && !names.insert(&webhook.name) {
            errors.push(Error::duplicate(&at.child("name"), webhook.name.as_str()));
        }
    }
    errors
}

fn check_webhook(webhook: &MutatingWebhook, strictness: Strictness, at: &Path<'_>) -> Vec<Error> {
    let mut errors = name::fully_qualified(&at.child("name"), &webhook.name);
    let rules_at = at.child("rules");
    for (index, rule) in webhook.rules.iter().flatten().enumerate() {
        errors.extend(admission::check_rule(&named(rule), &rules_at.index(index)));
    }
    let words = [
        (&webhook.failure_policy, &admission::FAILURE_POLICIES, "failurePolicy"),
        (&webhook.match_policy, &admission::MATCH_POLICIES, "matchPolicy"),
        (&webhook.reinvocation_policy, &admission::REINVOCATION_POLICIES, "reinvocationPolicy"),
    ];
    for (word, words, field) in words {
        errors.extend(admission::check_word(word.as_deref(), words, &at.child(field)));
    }
    errors.extend(check_side_effects(&webhook.side_effects, strictness.harmless, at));
    if let Some(seconds) = webhook.timeout_seconds.filter(|seconds| !(1..=30).contains(seconds)) {
        let problem = "the timeout value must be between 1 and 30 seconds";
        errors.push(Error::invalid(&at.child("timeoutSeconds"), seconds, problem));
    }
    let selectors = [
        (&webhook.namespace_selector, "namespaceSelector"),
        (&webhook.object_selector, "objectSelector"),
    ];
    for (selector, field) in selectors {
        errors.extend(selector.iter().flat_map(|selector| {
            admission::check_selector(selector, strictness.selectors, &at.child(field))
        }));
    }
    errors.extend(crd::validate_client_config(&place(webhook), &at.child("clientConfig")));
    if strictness.match_conditions {
        let conditions = webhook.match_conditions.as_deref().unwrap_or_default();
        errors.extend(admission::check_conditions(conditions, false, &at.child("matchConditions")));
    }
    errors
}

/// A rule that is about all names.
fn named(rule: &RuleWithOperations) -> NamedRuleWithOperations {
    let RuleWithOperations { api_groups, api_versions, operations, resources, scope } =
        rule.clone();
    NamedRuleWithOperations {
        api_groups,
        api_versions,
        operations,
        resource_names: None,
        resources,
        scope,
    }
}

fn place(webhook: &MutatingWebhook) -> ClientConfig {
    let service = webhook.client_config.service.clone().map(|service| crd::Service {
        namespace: service.namespace,
        name: service.name,
        path: service.path,
        port: service.port.unwrap_or_default().into(),
    });
    // Upstream does not look at the certificates of admission webhooks.
    ClientConfig { url: webhook.client_config.url.clone(), service, ca_bundle: Vec::new() }
}

fn check_side_effects(class: &str, harmless: bool, at: &Path<'_>) -> Option<Error> {
    let at = at.child("sideEffects");
    let classes: &[&str] = if harmless { &HARMLESS } else { &SIDE_EFFECTS };
    if class.is_empty() {
        let problem = format!("must specify one of {}", classes.join(", "));
        return Some(Error::required(&at, problem));
    }
    admission::check_word(Some(class), classes, &at)
}

fn check_review_versions(versions: &[String], known: bool, at: &Path<'_>) -> Vec<Error> {
    if versions.is_empty() {
        let problem = format!("must specify one of {}", REVIEW_VERSIONS.join(", "));
        return vec![Error::required(at, problem)];
    }
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = at.index(index);
        if !seen.insert(version) {
            errors.push(Error::invalid(&at, version.as_str(), "duplicate version"));
            continue;
        }
        errors.extend(check::invalid(&at, version, name::dns1035_label(version)));
    }
    if known && !versions.iter().any(|version| is_known(version)) {
        let problem = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(Error::invalid(at, json!(versions), problem));
    }
    errors
}
