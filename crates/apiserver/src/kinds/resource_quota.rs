//! ResourceQuotas: how much a namespace may hold.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ResourceQuota, ResourceQuotaSpec, ScopeSelector};
use k8s_openapi::apimachinery::pkg::api::resource;
use kubewright_apimachinery::field::{Error, Path};
use serde_json::{Value, json};

use super::{Part, Rules, check, edit, resource_name, typed};

pub(super) const RULES: Rules = Rules {
    default,
    prepare_create: |object, _| object["status"] = json!({}),
    prepare_update: edit::keep_status,
    validate,
    validate_update,
    warnings,
    parts: &[("status", Part { validate_update: validate_status_update, ..Part::STATUS })],
    reset: &["status"],
    ..Rules::PLAIN
};

const OF_PODS: [&str; 7] =
    ["pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"];

fn default(object: &mut Value) {
    for list in ["/spec/hard", "/status/hard", "/status/used"] {
        resource_name::round_amounts(object.pointer_mut(list));
    }
}

fn validate(object: &Value) -> Vec<Error> {
    let quota: ResourceQuota = typed(object);
    check_spec(&quota.spec.unwrap_or_default())
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old): (ResourceQuota, ResourceQuota) = (typed(object), typed(old));
    let (new, old) = (new.spec.unwrap_or_default(), old.spec.unwrap_or_default());
    let mut errors = check_spec(&new);
    let scopes = |spec: &ResourceQuotaSpec| -> BTreeSet<String> {
        spec.scopes.iter().flatten().cloned().collect()
    };
    if scopes(&new) != scopes(&old) {
        let spec = Path::new("spec");
        errors.push(Error::invalid(&spec.child("scopes"), json!(new.scopes), "field is immutable"));
    }
    errors
}

fn validate_status_update(object: &Value, _: &Value) -> Vec<Error> {
    let quota: ResourceQuota = typed(object);
    let status = quota.status.unwrap_or_default();
    let mut errors = Vec::new();
    if quota.metadata.resource_version.is_none_or(|version| version.is_empty()) {
        errors.push(Error::required(&Path::new("resourceVersion"), ""));
    }
    let path = Path::new("status");
    errors.extend(check_amounts(&status.hard, &path.child("hard")));
    errors.extend(check_amounts(&status.used, &path.child("used")));
    errors
}

fn check_spec(spec: &ResourceQuotaSpec) -> Vec<Error> {
    let path = Path::new("spec");
    let mut errors = check_amounts(&spec.hard, &path.child("hard"));
    errors.extend(check_scopes(spec, &path.child("scopes")));
    if let Some(selector) = &spec.scope_selector {
        errors.extend(check_scope_selector(spec, selector, &path.child("scopeSelector")));
    }
    errors
}

fn check_amounts(
    amounts: &Option<BTreeMap<String, resource::Quantity>>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (resource, amount) in amounts.iter().flatten() {
        let path = path.key(resource);
        errors.extend(resource_name::validate_of_quota(resource, &path));
        errors.extend(resource_name::validate_amount(resource, &check::quantity(amount), &path));
    }
    errors
}

fn check_scopes(spec: &ResourceQuotaSpec, path: &Path<'_>) -> Vec<Error> {
    let scopes = spec.scopes.as_deref().unwrap_or_default();
    let refuse = |detail: &str| Error::invalid(path, json!(scopes), detail);
    let mut errors = Vec::new();
    for scope in scopes {
        if Scope::parse(scope).is_none() {
            errors.push(refuse("unsupported scope"));
        }
        let misapplied = misapplied(spec, scope);
        errors.extend((0..misapplied).map(|_| refuse("unsupported scope applied to resource")));
    }
    errors.extend((0..conflicts(scopes)).map(|_| refuse("conflicting scopes")));
    errors
}

fn check_scope_selector(
    spec: &ResourceQuotaSpec,
    selector: &ScopeSelector,
    path: &Path<'_>,
) -> Vec<Error> {
    let path = path.child("matchExpressions");
    let expressions = selector.match_expressions.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    for expression in expressions {
        let scope = Scope::parse(&expression.scope_name);
        if scope.is_none() {
            let name = expression.scope_name.as_str();
            errors.push(Error::invalid(&path.child("scopeName"), name, "unsupported scope"));
        }
        for _ in 0..misapplied(spec, &expression.scope_name) {
            errors.push(Error::invalid(
                &path,
                shown(selector),
                "unsupported scope applied to resource",
            ));
        }
        let operator = expression.operator.as_str();
        if scope.is_some_and(|scope| !scope.has_values()) && operator != "Exists" {
            errors.push(Error::invalid(
                &path.child("operator"),
                operator,
                "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, \
                 ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, \
                 ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity",
            ));
        }
        let values = expression.values.as_deref().unwrap_or_default();
        match operator {
            "In" | "NotIn" if values.is_empty() => errors.push(Error::required(
                &path.child("values"),
                "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(Error::invalid(
                &path.child("values"),
                json!(values),
                "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => errors.push(Error::invalid(
                &path.child("operator"),
                operator,
                "not a valid selector operator",
            )),
        }
    }
    let scopes: Vec<String> =
        expressions.iter().map(|expression| expression.scope_name.clone()).collect();
    for _ in 0..conflicts(&scopes) {
        // Upstream shows the other scopes, those of `spec.scopes`.
        errors.push(Error::invalid(&path, json!(spec.scopes), "conflicting scopes"));
    }
    errors
}

/// Which objects a quota counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Terminating,
    NotTerminating,
    BestEffort,
    NotBestEffort,
    PriorityClass,
    CrossNamespacePodAffinity,
    VolumeAttributesClass,
}

impl Scope {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "Terminating" => Scope::Terminating,
            "NotTerminating" => Scope::NotTerminating,
            "BestEffort" => Scope::BestEffort,
            "NotBestEffort" => Scope::NotBestEffort,
            "PriorityClass" => Scope::PriorityClass,
            "CrossNamespacePodAffinity" => Scope::CrossNamespacePodAffinity,
            "VolumeAttributesClass" => Scope::VolumeAttributesClass,
            _ => return None,
        })
    }

    fn has_values(self) -> bool {
        matches!(self, Scope::PriorityClass | Scope::VolumeAttributesClass)
    }

    fn applies_to(self, resource: &str) -> bool {
        match self {
            Scope::BestEffort => resource == "pods",
            Scope::VolumeAttributesClass => {
                ["persistentvolumeclaims", "requests.storage"].contains(&resource)
            }
            _ => OF_PODS.contains(&resource),
        }
    }
}

/// How many of the limited resources a scope makes no sense for.
fn misapplied(spec: &ResourceQuotaSpec, scope: &str) -> usize {
    let Some(scope) = Scope::parse(scope) else { return 0 };
    let resources = spec.hard.iter().flatten().map(|(resource, _)| resource);
    resources
        .filter(|resource| resource_name::is_of_quota(resource) && !scope.applies_to(resource))
        .count()
}

/// How many pairs of scopes contradict each other.
fn conflicts(scopes: &[String]) -> usize {
    let pairs = [("BestEffort", "NotBestEffort"), ("NotTerminating", "Terminating")];
    let has = |name: &str| scopes.iter().any(|scope| scope == name);
    pairs.iter().filter(|(one, other)| has(one) && has(other)).count()
}

/// The selector as upstream prints its own structure.
fn shown(selector: &ScopeSelector) -> Value {
    let expressions = selector.match_expressions.as_ref().map(|expressions| {
        let shown = expressions.iter().map(|expression| {
            json!({
                "ScopeName": expression.scope_name,
                "Operator": expression.operator,
                "Values": expression.values,
            })
        });
        shown.collect::<Vec<_>>()
    });
    json!({ "MatchExpressions": expressions })
}

/// A request that is larger than the limit of the same resource leaves some of it unused.
fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    if old.is_some() {
        return Vec::new();
    }
    let quota: ResourceQuota = typed(object);
    let hard = quota.spec.and_then(|spec| spec.hard).unwrap_or_default();
    let mut warnings = Vec::new();
    for resource in ["cpu", "memory", "storage", "ephemeral-storage"] {
        let request_name = format!("requests.{resource}");
        let bare = ["cpu", "memory"].contains(&resource).then_some(resource);
        let request = hard
            .get_key_value(&request_name)
            .or_else(|| bare.and_then(|bare| hard.get_key_value(bare)));
        let limit = hard.get_key_value(&format!("limits.{resource}"));
        if let (Some((request_name, request)), Some((limit_name, limit))) = (request, limit) {
            let (request, limit) = (check::quantity(request), check::quantity(limit));
            if request > limit {
                warnings.push(format!(
                    "ResourceQuota {request_name} ({request}) should be less than {limit_name} \
                     ({limit})"
                ));
            }
        }
    }
    warnings
}
