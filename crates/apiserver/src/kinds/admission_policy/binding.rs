//! What binds policies of admission: to parameters, and to what they are about.

use std::collections::HashSet;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingAdmissionPolicyBinding, ParamRef, ValidatingAdmissionPolicyBinding,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::Leniency;
use serde_json::{Value, json};

use super::{COMMON, MUTABLE_OPERATIONS, check_matches, check_operations, default_matches};
use crate::kinds::{Rules, admission, check, typed};

const ACTIONS: [&str; 3] = ["Audit", "Deny", "Warn"];
const NOT_FOUND_ACTIONS: [&str; 2] = ["Deny", "Allow"];

pub(in crate::kinds) const VALIDATING: Rules = Rules {
    default: |object| default_matches(object, "/spec/matchResources"),
    validate: check_validating,
    validate_update: |object, _| check_validating(object),
    ..COMMON
};

pub(in crate::kinds) const MUTATING: Rules = Rules {
    default: |object| default_matches(object, "/spec/matchResources"),
    validate: check_mutating,
    validate_update: |object, _| check_mutating(object),
    ..COMMON
};

fn check_validating(object: &Value) -> Vec<Error> {
    let binding: ValidatingAdmissionPolicyBinding = typed(object);
    let spec = binding.spec;
    let at = Path::new("spec");
    let mut errors = check_binding(&spec.policy_name, spec.param_ref.as_ref(), &at);
    if let Some(matches) = &spec.match_resources {
        errors.extend(check_matches(matches, &at.child("matchResources")));
    }
    errors.extend(check_actions(&spec.validation_actions, &at.child("validationActions")));
    errors
}

fn check_mutating(object: &Value) -> Vec<Error> {
    let binding: MutatingAdmissionPolicyBinding = typed(object);
    let spec = binding.spec.unwrap_or_default();
    let at = Path::new("spec");
    let name = spec.policy_name.as_deref().unwrap_or_default();
    let mut errors = check_binding(name, spec.param_ref.as_ref(), &at);
    if let Some(matches) = &spec.match_resources {
        let at = at.child("matchResources");
        errors.extend(check_matches(matches, &at));
        errors.extend(check_operations(matches, &MUTABLE_OPERATIONS, &at));
    }
    errors
}

fn check_binding(policy: &str, params: Option<&ParamRef>, at: &Path<'_>) -> Vec<Error> {
    let name_at = at.child("policyName");
    let mut errors: Vec<Error> = match policy {
        "" => vec![Error::required(&name_at, "")],
        policy => check::dns_subdomain(&name_at, policy),
    };
    if let Some(params) = params {
        errors.extend(check_params(params, &at.child("paramRef")));
    }
    errors
}

fn check_params(params: &ParamRef, at: &Path<'_>) -> Vec<Error> {
    let (name_at, selector_at) = (at.child("name"), at.child("selector"));
    let name = params.name.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    if !name.is_empty() {
        errors.extend(check::invalid(&name_at, name, name::path_segment(name)));
    }
    if let Some(selector) = &params.selector {
        errors.extend(admission::check_selector(selector, Leniency::default(), &selector_at));
    }
    match (name.is_empty(), &params.selector) {
        (false, Some(_)) => {
            let problem = "name and selector are mutually exclusive";
            errors.push(Error::forbidden(&name_at, problem));
            errors.push(Error::forbidden(&selector_at, problem));
        }
        (true, None) => {
            errors.push(Error::required(at, "one of name or selector must be specified"));
        }
        _ => {}
    }
    errors.extend(check::required_one_of(
        &at.child("parameterNotFoundAction"),
        check::text(&params.parameter_not_found_action),
        &NOT_FOUND_ACTIONS,
    ));
    errors
}

fn check_actions(actions: &[String], at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, action) in actions.iter().enumerate() {
        let at = at.index(index);
        errors.extend(admission::check_word(Some(action), &ACTIONS, &at));
        if !seen.insert(action.as_str()) {
            errors.push(Error::duplicate(&at, action.as_str()));
        }
    }
    if seen.contains("Deny") && seen.contains("Warn") {
        let problem = "must not contain both Deny and Warn (repeating the same validation failure \
                       information in the API response and headers serves no purpose)";
        errors.push(Error::invalid(at, json!(actions), problem));
    }
    if seen.is_empty() {
        errors.push(Error::required(at, "at least one validation action is required"));
    }
    errors
}
