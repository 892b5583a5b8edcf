//! What webhooks and policies of admission have in common: which requests they are about.

use std::collections::HashSet;

use k8s_openapi::api::admissionregistration::v1::{MatchCondition, NamedRuleWithOperations};
use k8s_openapi::apimachinery::pkg::apis::meta::v1 as meta;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::selector::label::Leniency;
use serde_json::{Value, json};

use super::{check, edit};
use crate::admission::expression::{self, Environment, Mistake, Wants};

pub(super) const FAILURE_POLICIES: [&str; 2] = ["Fail", "Ignore"];
pub(super) const MATCH_POLICIES: [&str; 2] = ["Equivalent", "Exact"];
pub(super) const REINVOCATION_POLICIES: [&str; 2] = ["IfNeeded", "Never"];
const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];
const CONDITIONS_MAX: usize = 64;
/// Names of what upstream reads from files instead of the API.
const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Fills in what both webhooks and the matches of policies say about requests.
pub(super) fn default_match(matcher: &mut Value) {
    edit::fill(matcher, "matchPolicy", "Equivalent");
    edit::fill(matcher, "namespaceSelector", json!({}));
    edit::fill(matcher, "objectSelector", json!({}));
}

pub(super) fn default_rules(parent: &mut Value, list: &str) {
    for rule in edit::items(parent, list) {
        edit::fill(rule, "scope", "*");
    }
}

/// A word that must be one of a few, if it is said.
pub(super) fn check_word(word: Option<&str>, words: &[&str], at: &Path<'_>) -> Option<Error> {
    let word = word.filter(|word| !words.contains(word))?;
    Some(Error::not_supported(at, word, words))
}

pub(super) fn check_selector(
    selector: &meta::LabelSelector,
    leniency: Leniency,
    at: &Path<'_>,
) -> Vec<Error> {
    check::label_selector(selector).validate(leniency, at)
}

pub(super) fn check_rule(rule: &NamedRuleWithOperations, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let operations_at = at.child("operations");
    let operations = rule.operations.as_deref().unwrap_or_default();
    errors.extend(check_list(operations, &operations_at, "operations"));
    for (index, operation) in operations.iter().enumerate() {
        errors.extend(check_word(Some(operation), &OPERATIONS, &operations_at.index(index)));
    }
    let groups = rule.api_groups.as_deref().unwrap_or_default();
    errors.extend(check_list(groups, &at.child("apiGroups"), "API groups"));
    let versions_at = at.child("apiVersions");
    let versions = rule.api_versions.as_deref().unwrap_or_default();
    errors.extend(check_list(versions, &versions_at, "API versions"));
    for (index, _) in versions.iter().enumerate().filter(|(_, version)| version.is_empty()) {
        errors.push(Error::required(&versions_at.index(index), ""));
    }
    let resources = rule.resources.as_deref().unwrap_or_default();
    errors.extend(check_resources(resources, &at.child("resources")));
    errors.extend(check_word(rule.scope.as_deref(), &SCOPES, &at.child("scope")));
    errors
}

/// A list that says something, and says no more than `*` if it says that.
fn check_list(items: &[String], at: &Path<'_>, noun: &str) -> Option<Error> {
    if items.is_empty() {
        return Some(Error::required(at, ""));
    }
    (items.len() > 1 && items.iter().any(|item| item == "*")).then(|| {
        let problem = format!("if '*' is present, must not specify other {noun}");
        Error::invalid(at, json!(items), problem)
    })
}

/// Resources with or without their subresources, of which none may be said twice.
fn check_resources(resources: &[String], at: &Path<'_>) -> Vec<Error> {
    if resources.is_empty() {
        return vec![Error::required(at, "")];
    }
    let mut errors = Vec::new();
    let mut all_of: HashSet<&str> = HashSet::new();
    let mut everywhere: HashSet<&str> = HashSet::new();
    // Only the last one without a subresource counts, upstream.
    let mut has_plain = false;
    for (index, text) in resources.iter().enumerate() {
        let at = at.index(index);
        if text.is_empty() {
            errors.push(Error::required(&at, ""));
            continue;
        }
        let Some((resource, part)) = text.split_once('/') else {
            has_plain = text != "*";
            continue;
        };
        if all_of.contains(resource) {
            let problem = format!("if '{resource}/*' is present, must not specify {text}");
            errors.push(Error::invalid(&at, text.as_str(), problem));
        }
        if everywhere.contains(part) {
            let problem = format!("if '*/{part}' is present, must not specify {text}");
            errors.push(Error::invalid(&at, text.as_str(), problem));
        }
        if part == "*" {
            all_of.insert(resource);
        }
        if resource == "*" {
            everywhere.insert(part);
        }
    }
    let has = |text: &str| resources.iter().any(|resource| resource == text);
    if resources.len() > 1 && has("*/*") {
        let problem = "if '*/*' is present, must not specify other resources";
        errors.push(Error::invalid(at, json!(resources), problem));
    }
    if has("*") && has_plain {
        let problem = "if '*' is present, must not specify other resources without subresources";
        errors.push(Error::invalid(at, json!(resources), problem));
    }
    errors
}

/// An expression that must compile, and be of the right type.
pub(super) fn check_expression(
    text: &str,
    wants: Wants,
    environment: &Environment,
    at: &Path<'_>,
) -> Option<Error> {
    let mistake = expression::compile(text, wants, environment).err()?;
    Some(mistaken(mistake, text, at))
}

/// What is wrong with an expression, as an error about where it stands.
pub(super) fn mistaken(mistake: Mistake, shown: &str, at: &Path<'_>) -> Error {
    match mistake {
        Mistake::Invalid(why) => Error::invalid(at, shown, why),
        Mistake::Internal(why) => Error::internal(at, why),
    }
}

pub(super) fn check_conditions(
    conditions: &[MatchCondition],
    has_params: bool,
    at: &Path<'_>,
) -> Vec<Error> {
    let environment = Environment::new(has_params);
    let mut errors = Vec::new();
    if conditions.len() > CONDITIONS_MAX {
        errors.push(Error::too_many(at, conditions.len(), CONDITIONS_MAX));
    }
    let mut names = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.index(index);
        let (name_at, expression_at) = (at.child("name"), at.child("expression"));
        match condition.expression.as_str() {
            blank if blank.trim().is_empty() => errors.push(Error::required(&expression_at, "")),
            text => {
                errors.extend(check_expression(text, Wants::Bool, &environment, &expression_at))
            }
        }
        if condition.name.is_empty() {
            errors.push(Error::required(&name_at, ""));
            continue;
        }
        errors.extend(check::qualified_name(&name_at, &condition.name));
        if !names.insert(&condition.name) {
            errors.push(Error::duplicate(&name_at, condition.name.as_str()));
        }
    }
    errors
}

pub(super) fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    if !edit::text(object, "/metadata/name").ends_with(STATIC_SUFFIX) {
        return Vec::new();
    }
    vec![format!(
        "metadata.name: names ending with \"{STATIC_SUFFIX}\" are reserved for static \
         manifest-based configurations and cannot be managed via the API"
    )]
}
