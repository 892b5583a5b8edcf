//! Policies of admission.

pub(super) mod binding;

use std::collections::HashSet;

use k8s_openapi::api::admissionregistration::v1::{
    AuditAnnotation, MatchCondition, MatchResources, MutatingAdmissionPolicy, Mutation, ParamKind,
    TypeChecking, ValidatingAdmissionPolicy, Validation, Variable,
};
use kubewright_apimachinery::cel;
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::jsonpath;
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::Leniency;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Context, Part, Rules, admission, check, condition, edit, typed};
use crate::admission::expression::{self, Environment, Wants};

const AUDIT_ANNOTATIONS_MAX: usize = 20;
const AUDIT_EXPRESSION_BYTES_MAX: usize = 5 << 10;
/// A policy cannot change what goes away.
const MUTABLE_OPERATIONS: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const PATCH_TYPES: [&str; 2] = ["ApplyConfiguration", "JSONPatch"];
const REASONS: [&str; 3] = ["Forbidden", "Invalid", "RequestEntityTooLarge"];

pub(super) const VALIDATING: Rules = Rules {
    default: default_policy,
    prepare_create: |object, _| {
        object["status"] = json!({});
        edit::first_generation(object);
    },
    prepare_update: |object, old, _| {
        edit::restore(object, old, "status");
        edit::next_generation(object, old, "spec");
    },
    validate: |object| check_validating(object, None),
    validate_update: |object, old| check_validating(object, Some(old)),
    parts: &[(
        "status",
        Part {
            prepare_update: |object, old, _| {
                edit::restore(object, old, "spec");
                edit::restore_meta_for_status(object, old);
            },
            validate_update: |object, _| check_status(object),
            warnings: admission::warnings,
            reset: &["spec", "metadata"],
        },
    )],
    reset: &["status"],
    ..COMMON
};

pub(super) const MUTATING: Rules = Rules {
    default: default_policy,
    validate: |object| check_mutating(object, None),
    validate_update: |object, old| check_mutating(object, Some(old)),
    ..COMMON
};

const COMMON: Rules = Rules {
    prepare_create: |object, _| edit::first_generation(object),
    prepare_update: |object: &mut Value, old: &Value, _: &Context<'_>| {
        edit::next_generation(object, old, "spec");
    },
    warnings: admission::warnings,
    unconditional_update: false,
    ..Rules::PLAIN
};

fn default_policy(object: &mut Value) {
    edit::fill(object, "spec", json!({}));
    edit::fill(&mut object["spec"], "failurePolicy", "Fail");
    default_matches(object, "/spec/matchConstraints");
}

fn default_matches(object: &mut Value, pointer: &str) {
    if let Some(matches) = object.pointer_mut(pointer).filter(|matches| matches.is_object()) {
        admission::default_match(matches);
        admission::default_rules(matches, "/resourceRules");
        admission::default_rules(matches, "/excludeResourceRules");
    }
}

fn check_validating(object: &Value, old: Option<&Value>) -> Vec<Error> {
    let policy: ValidatingAdmissionPolicy = typed(object);
    let spec = policy.spec.unwrap_or_default();
    let at = Path::new("spec");
    let mut environment = Environment::new(spec.param_kind.is_some());
    let has_variables = spec.variables.as_ref().is_some_and(|variables| !variables.is_empty());
    if has_variables {
        environment = environment.with_variables();
    }
    let mut errors = check_policy(object, old, &[], &mut environment, &at);
    let validations = spec.validations.unwrap_or_default();
    let annotations = spec.audit_annotations.unwrap_or_default();
    let (validations_at, annotations_at) = (at.child("validations"), at.child("auditAnnotations"));
    if validations.is_empty() && annotations.is_empty() {
        let problem = "validations or auditAnnotations must contain at least one item";
        errors.push(Error::required(&validations_at, problem));
        errors.push(Error::required(&annotations_at, problem));
        return errors;
    }
    for (index, validation) in validations.iter().enumerate() {
        let at = validations_at.index(index);
        errors.extend(check_validation(validation, &environment, &at));
    }
    let name = policy.metadata.name.unwrap_or_default();
    errors.extend(check_annotations(&annotations, &name, &environment, &annotations_at));
    errors
}

fn check_mutating(object: &Value, old: Option<&Value>) -> Vec<Error> {
    let policy: MutatingAdmissionPolicy = typed(object);
    let spec = policy.spec.unwrap_or_default();
    let at = Path::new("spec");
    let mut environment = Environment::new(spec.param_kind.is_some()).with_variables();
    let mut errors = check_policy(object, old, &MUTABLE_OPERATIONS, &mut environment, &at);
    let mutations = spec.mutations.unwrap_or_default();
    let mutations_at = at.child("mutations");
    if mutations.is_empty() {
        errors.push(Error::required(&mutations_at, "mutations must contain at least one item"));
    }
    for (index, mutation) in mutations.iter().enumerate() {
        errors.extend(check_mutation(mutation, &environment, &mutations_at.index(index)));
    }
    errors.extend(check::required_one_of(
        &at.child("reinvocationPolicy"),
        check::text(&spec.reinvocation_policy),
        &admission::REINVOCATION_POLICIES,
    ));
    errors
}

/// What the specs of both kinds of policies say.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Policy {
    failure_policy: Option<String>,
    param_kind: Option<ParamKind>,
    match_constraints: Option<MatchResources>,
    match_conditions: Option<Vec<MatchCondition>>,
    variables: Option<Vec<Variable>>,
}

/// Conditions that were accepted stay accepted as long as nothing that they see changes.
fn conditions_changed(object: &Value, old: Option<&Value>) -> bool {
    old.is_none_or(|old| {
        ["paramKind", "matchConditions"]
            .iter()
            .any(|field| object["spec"][*field] != old["spec"][*field])
    })
}

/// Checks what both kinds of policies say; `environment` learns the names of variables.
fn check_policy(
    object: &Value,
    old: Option<&Value>,
    operations: &[&str],
    environment: &mut Environment,
    at: &Path<'_>,
) -> Vec<Error> {
    let policy: Policy = typed::<Option<_>>(&object["spec"]).unwrap_or_default();
    let mut errors = Vec::new();
    errors.extend(check::given_one_of(
        &at.child("failurePolicy"),
        policy.failure_policy.as_deref(),
        &admission::FAILURE_POLICIES,
    ));
    if let Some(kind) = &policy.param_kind {
        errors.extend(check_param_kind(kind, &at.child("paramKind")));
    }
    let matches_at = at.child("matchConstraints");
    match &policy.match_constraints {
        None => errors.push(Error::required(&matches_at, "")),
        Some(matches) => {
            errors.extend(check_matches(matches, &matches_at));
            // Without a rule nobody knows the types of what expressions see.
            if matches.resource_rules.as_ref().is_none_or(Vec::is_empty) {
                errors.push(Error::required(&matches_at.child("resourceRules"), ""));
            }
            errors.extend(check_operations(matches, operations, &matches_at));
        }
    }
    if conditions_changed(object, old) {
        let at = at.child("matchConditions");
        let conditions = check::list(&policy.match_conditions);
        errors.extend(admission::check_conditions(conditions, policy.param_kind.is_some(), &at));
    }
    let variables_at = at.child("variables");
    for (index, variable) in policy.variables.iter().flatten().enumerate() {
        errors.extend(check_variable(variable, environment, &variables_at.index(index)));
    }
    errors
}

fn check_param_kind(kind: &ParamKind, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let version_at = at.child("apiVersion");
    let api_version = kind.api_version.as_deref().unwrap_or_default();
    let parts: Vec<&str> = match api_version {
        "/" => vec!["", ""],
        api_version => api_version.split('/').collect(),
    };
    match parts.as_slice() {
        [""] => errors.push(Error::required(&version_at, "")),
        [version] => errors.extend(check_version(version, api_version, &version_at)),
        [group, version] => {
            let problems = name::dns1123_subdomain(group);
            if !group.is_empty() && !problems.is_empty() {
                errors.push(Error::invalid(&version_at, *group, problems.join(",")));
            }
            errors.extend(check_version(version, api_version, &version_at));
        }
        _ => {
            let problem = format!("unexpected GroupVersion string: {api_version}");
            errors.push(Error::invalid(&version_at, api_version, problem));
        }
    }
    let (kind, kind_at) = (kind.kind.as_deref().unwrap_or_default(), at.child("kind"));
    let problems = name::dns1035_label(&kind.to_lowercase());
    if kind.is_empty() {
        errors.push(Error::required(&kind_at, ""));
    } else if !problems.is_empty() {
        let problems = problems.join(",");
        let problem = format!("may have mixed case, but should otherwise match: {problems}");
        errors.push(Error::invalid(&kind_at, kind, problem));
    }
    errors
}

fn check_version(version: &str, api_version: &str, at: &Path<'_>) -> Option<Error> {
    if version.is_empty() {
        return Some(Error::invalid(at, api_version, "version must be specified"));
    }
    let problems = name::dns1035_label(version);
    (!problems.is_empty()).then(|| Error::invalid(at, version, problems.join(",")))
}

fn check_matches(matches: &MatchResources, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let policy = matches.match_policy.as_deref();
    errors.extend(check::given_one_of(
        &at.child("matchPolicy"),
        policy,
        &admission::MATCH_POLICIES,
    ));
    let selectors = [
        (&matches.namespace_selector, "namespaceSelector"),
        (&matches.object_selector, "objectSelector"),
    ];
    for (selector, field) in selectors {
        let at = at.child(field);
        match selector {
            None => errors.push(Error::required(&at, "")),
            Some(selector) => {
                errors.extend(admission::check_selector(selector, Leniency::default(), &at));
            }
        }
    }
    let lists = [
        (&matches.resource_rules, "resourceRules"),
        (&matches.exclude_resource_rules, "excludeResourceRules"),
    ];
    for (rules, field) in lists {
        let at = at.child(field);
        for (index, rule) in rules.iter().flatten().enumerate() {
            let at = at.index(index);
            let names = rule.resource_names.as_deref().unwrap_or_default();
            errors.extend(check_names(names, &at.child("resourceNames")));
            errors.extend(admission::check_rule(rule, &at));
        }
    }
    errors
}

fn check_names(names: &[String], at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, resource) in names.iter().enumerate() {
        let at = at.index(index);
        errors.extend(check::invalid(&at, resource, name::path_segment(resource)));
        if !seen.insert(resource) {
            errors.push(Error::duplicate(&at, resource.as_str()));
        }
    }
    errors
}

/// Operations besides which the policy cannot be; none are given when it can be for any.
fn check_operations(matches: &MatchResources, allowed: &[&str], at: &Path<'_>) -> Vec<Error> {
    if allowed.is_empty() {
        return Vec::new();
    }
    // Upstream does not say which rule it is.
    let at = at.child("resourceRules");
    let at = at.child("operations");
    let rules = matches.resource_rules.iter().flatten();
    let operations = rules.flat_map(|rule| rule.operations.iter().flatten());
    operations
        .filter_map(|operation| admission::check_word(Some(operation), allowed, &at))
        .collect()
}

fn check_variable(variable: &Variable, environment: &mut Environment, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let name_at = at.child("name");
    if variable.name.trim().is_empty() {
        errors.push(Error::required(&name_at, "name is not specified"));
    } else if !cel::is_identifier(&variable.name) {
        let problem = "must be a valid CEL identifier";
        errors.push(Error::invalid(&name_at, variable.name.as_str(), problem));
    }
    if variable.expression.trim().is_empty() {
        errors.push(Error::required(&at.child("expression"), "expression is not specified"));
        return errors;
    }
    let (name, text) = (variable.name.as_str(), variable.expression.as_str());
    if let Err(mistake) = expression::compile_variable(name, text, environment) {
        errors.push(admission::mistaken(mistake, text, &at.child("expression")));
    }
    errors
}

fn check_validation(
    validation: &Validation,
    environment: &Environment,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let expression_at = at.child("expression");
    match validation.expression.as_str() {
        blank if blank.trim().is_empty() => {
            errors.push(Error::required(&expression_at, "expression is not specified"));
        }
        text => errors.extend(admission::check_expression(
            text,
            Wants::Bool,
            environment,
            &expression_at,
        )),
    }
    let is_blank = |text: &str| !text.is_empty() && text.trim().is_empty();
    let blank = "must be non-empty if specified";
    let expression_at = at.child("messageExpression");
    match validation.message_expression.as_deref().unwrap_or_default() {
        "" => {}
        text if is_blank(text) => errors.push(Error::invalid(&expression_at, text, blank)),
        text => errors.extend(admission::check_expression(
            text,
            Wants::Text,
            &environment.without_authorizer(),
            &expression_at,
        )),
    }
    let message = validation.message.as_deref().unwrap_or_default();
    if is_blank(message) {
        errors.push(Error::invalid(&at.child("message"), message, blank));
    } else if message.trim().contains(['\n', '\r']) {
        let problem = "must not contain line breaks";
        errors.push(Error::invalid(&at.child("message"), message, problem));
    }
    errors.extend(admission::check_word(
        validation.reason.as_deref(),
        &REASONS,
        &at.child("reason"),
    ));
    errors
}

fn check_annotations(
    annotations: &[AuditAnnotation],
    name: &str,
    environment: &Environment,
    at: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if annotations.len() > AUDIT_ANNOTATIONS_MAX {
        let shown: Vec<Value> = annotations
            .iter()
            .map(|one| json!({ "Key": one.key, "ValueExpression": one.value_expression }))
            .collect();
        let problem = format!("must not have more than {AUDIT_ANNOTATIONS_MAX} auditAnnotations");
        errors.push(Error::invalid(at, shown, problem));
    }
    let mut keys = HashSet::new();
    for (index, annotation) in annotations.iter().enumerate() {
        let at = at.index(index);
        let key_at = at.child("key");
        if name.is_empty() {
            let problem = "requires metadata.name be non-empty";
            errors.push(Error::invalid(&key_at, annotation.key.as_str(), problem));
        } else {
            let full = format!("{name}/{}", annotation.key);
            errors.extend(check::qualified_name(&key_at, &full));
        }
        let expression_at = at.child("valueExpression");
        let text = annotation.value_expression.trim();
        if text.is_empty() {
            errors.push(Error::required(&expression_at, "valueExpression is not specified"));
        } else if text.len() > AUDIT_EXPRESSION_BYTES_MAX {
            let problem = format!("must not exceed {AUDIT_EXPRESSION_BYTES_MAX} bytes in length");
            errors.push(Error::required(&expression_at, problem));
        } else if let Err(mistake) = expression::compile(text, Wants::TextOrNull, environment) {
            let shown = &annotation.value_expression;
            errors.push(admission::mistaken(mistake, shown, &expression_at));
        }
        if !keys.insert(&annotation.key) {
            errors.push(Error::duplicate(&key_at, annotation.key.as_str()));
        }
    }
    errors
}

fn check_mutation(mutation: &Mutation, environment: &Environment, at: &Path<'_>) -> Vec<Error> {
    let (apply_at, patch_at) = (at.child("applyConfiguration"), at.child("jsonPatch"));
    let type_at = at.child("patchType");
    let apply = mutation.apply_configuration.as_ref().map(|apply| apply.expression.as_deref());
    let patch = mutation.json_patch.as_ref().map(|patch| patch.expression.as_deref());
    let apply = (apply, &apply_at, "{applyConfiguration}");
    let patch = (patch, &patch_at, "{jsonPatch}");
    let ((wanted, wanted_at, _), wants, (other, other_at, other_shown)) =
        match mutation.patch_type.as_str() {
            "" => return vec![Error::required(&type_at, "")],
            "JSONPatch" => (patch, Wants::Patch, apply),
            "ApplyConfiguration" => (apply, Wants::Object, patch),
            unknown => return vec![Error::not_supported(&type_at, unknown, &PATCH_TYPES)],
        };
    let patch_type = &mutation.patch_type;
    let mut errors = Vec::new();
    match wanted {
        None => {
            let problem = format!("must be specified when patchType is {patch_type}");
            errors.push(Error::required(wanted_at, problem));
        }
        Some(expression) => {
            let expression_at = wanted_at.child("expression");
            match expression.unwrap_or_default().trim() {
                "" => errors.push(Error::required(&expression_at, "")),
                text => errors.extend(admission::check_expression(
                    text,
                    wants,
                    environment,
                    &expression_at,
                )),
            }
        }
    }
    if other.is_some() {
        let problem = format!("must not be specified when patchType is {patch_type}");
        errors.push(Error::invalid(other_at, other_shown, problem));
    }
    errors
}

fn check_status(object: &Value) -> Vec<Error> {
    let status = &object["status"];
    let at = Path::new("status");
    let checking_at = at.child("typeChecking");
    let warnings_at = checking_at.child("expressionWarnings");
    let checking: Option<TypeChecking> = typed(&status["typeChecking"]);
    let warnings = checking.and_then(|checking| checking.expression_warnings);
    let mut errors = Vec::new();
    for (index, warning) in warnings.iter().flatten().enumerate() {
        let at = warnings_at.index(index);
        if warning.warning.is_empty() {
            errors.push(Error::required(&at.child("warning"), ""));
        }
        errors.extend(check_field_ref(warning.field_ref.trim(), &at.child("fieldRef")));
    }
    errors.extend(condition::check(&at.child("conditions"), &status["conditions"]));
    errors
}

fn check_field_ref(text: &str, at: &Path<'_>) -> Option<Error> {
    if text.is_empty() {
        return Some(Error::required(at, ""));
    }
    let error = jsonpath::Template::parse(&format!("{{{text}}}")).err()?;
    Some(Error::invalid(at, text, format!("invalid JSONPath: {error}")))
}
