//! Roles and what binds them.

use k8s_openapi::api::rbac::v1::{
    AggregationRule, ClusterRole, ClusterRoleBinding, PolicyRule, Role, RoleBinding, RoleRef,
    Subject,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::label::{LabelSelector, Leniency};
use serde_json::{Value, json};

use super::{Rules, check, edit, typed};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(super) const CLUSTER_ROLE: Rules = Rules {
    validate: |object| check_cluster_role(object, Leniency::default()),
    validate_update: |object, old| check_cluster_role(object, leniency_towards(old)),
    ..COMMON
};

pub(super) const ROLE: Rules =
    Rules { validate: check_role, validate_update: |object, _| check_role(object), ..COMMON };

pub(super) const CLUSTER_ROLE_BINDING: Rules = Rules {
    default: default_binding,
    validate: check_cluster_role_binding,
    validate_update: |object, old| {
        let mut errors = check_cluster_role_binding(object);
        let (new, old): (ClusterRoleBinding, ClusterRoleBinding) = (typed(object), typed(old));
        errors.extend(check_same_role(&new.role_ref, &old.role_ref));
        errors
    },
    ..COMMON
};

pub(super) const ROLE_BINDING: Rules = Rules {
    default: default_binding,
    validate: check_role_binding,
    validate_update: |object, old| {
        let mut errors = check_role_binding(object);
        let (new, old): (RoleBinding, RoleBinding) = (typed(object), typed(old));
        errors.extend(check_same_role(&new.role_ref, &old.role_ref));
        errors
    },
    ..COMMON
};

const COMMON: Rules =
    Rules { name: name::Rule::PathSegment, create_on_update: true, ..Rules::PLAIN };

/// Where the rules of a role hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Cluster,
    Namespace,
}

fn default_binding(object: &mut Value) {
    edit::fill_text(&mut object["roleRef"], "apiGroup", GROUP);
    for subject in edit::items(object, "/subjects") {
        if matches!(edit::text(subject, "/kind"), "User" | "Group") {
            edit::fill_text(subject, "apiGroup", GROUP);
        }
    }
}

fn check_role(object: &Value) -> Vec<Error> {
    let role: Role = typed(object);
    check_rules(role.rules.as_deref().unwrap_or_default(), Reach::Namespace)
}

fn check_cluster_role(object: &Value, leniency: Leniency) -> Vec<Error> {
    let role: ClusterRole = typed(object);
    let mut errors = check_rules(role.rules.as_deref().unwrap_or_default(), Reach::Cluster);
    let Some(aggregation) = role.aggregation_rule else { return errors };
    let root = Path::new("aggregationRule");
    let at = root.child("clusterRoleSelectors");
    let selectors = selectors(&aggregation);
    if selectors.is_empty() {
        let problem = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(Error::required(&at, problem));
    }
    for (index, selector) in selectors.iter().enumerate() {
        let at = at.index(index);
        errors.extend(selector.validate(leniency, &at));
        if selector.to_selector().is_err() {
            errors.push(Error::invalid(&at, Value::Null, "invalid label selector."));
        }
    }
    errors
}

fn selectors(aggregation: &AggregationRule) -> Vec<LabelSelector> {
    let selectors = aggregation.cluster_role_selectors.iter().flatten();
    selectors.map(check::label_selector).collect()
}

/// An old object with values that no label can have may keep them.
fn leniency_towards(old: &Value) -> Leniency {
    let role: ClusterRole = typed(old);
    let selectors = role.aggregation_rule.as_ref().map(selectors).unwrap_or_default();
    let at = Path::ROOT;
    let invalid_values =
        selectors.iter().any(|selector| !selector.validate(Leniency::default(), &at).is_empty());
    Leniency { invalid_values, ..Leniency::default() }
}

fn check_rules(rules: &[PolicyRule], reach: Reach) -> Vec<Error> {
    let at = Path::new("rules");
    let rules = rules.iter().enumerate();
    rules.flat_map(|(index, rule)| check_rule(rule, reach, &at.index(index))).collect()
}

fn check_rule(rule: &PolicyRule, reach: Reach, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if rule.verbs.is_empty() {
        errors.push(Error::required(&at.child("verbs"), "verbs must contain at least one value"));
    }
    let is_empty = |list: &Option<Vec<String>>| list.as_ref().is_none_or(Vec::is_empty);
    if let Some(urls) = rule.non_resource_urls.as_ref().filter(|urls| !urls.is_empty()) {
        let at = at.child("nonResourceURLs");
        let refuse = |problem| Error::invalid(&at, json!(urls), problem);
        if reach == Reach::Namespace {
            errors.push(refuse("namespaced rules cannot apply to non-resource URLs"));
        }
        let resources = [&rule.api_groups, &rule.resources, &rule.resource_names];
        if !resources.into_iter().all(is_empty) {
            errors
                .push(refuse("rules cannot apply to both regular resources and non-resource URLs"));
        }
        return errors;
    }
    if is_empty(&rule.api_groups) {
        let problem = "resource rules must supply at least one api group";
        errors.push(Error::required(&at.child("apiGroups"), problem));
    }
    if is_empty(&rule.resources) {
        let problem = "resource rules must supply at least one resource";
        errors.push(Error::required(&at.child("resources"), problem));
    }
    errors
}

fn check_role_binding(object: &Value) -> Vec<Error> {
    let binding: RoleBinding = typed(object);
    let subjects = binding.subjects.unwrap_or_default();
    check_binding(&binding.role_ref, &["Role", "ClusterRole"], &subjects, Reach::Namespace)
}

fn check_cluster_role_binding(object: &Value) -> Vec<Error> {
    let binding: ClusterRoleBinding = typed(object);
    let subjects = binding.subjects.unwrap_or_default();
    check_binding(&binding.role_ref, &["ClusterRole"], &subjects, Reach::Cluster)
}

fn check_binding(role: &RoleRef, kinds: &[&str], subjects: &[Subject], reach: Reach) -> Vec<Error> {
    let at = Path::new("roleRef");
    let mut errors = Vec::new();
    let group = role.api_group.as_deref().unwrap_or_default();
    if group != GROUP {
        errors.push(Error::not_supported(&at.child("apiGroup"), group, &[GROUP]));
    }
    if !kinds.contains(&role.kind.as_str()) {
        errors.push(Error::not_supported(&at.child("kind"), &*role.kind, kinds));
    }
    let name_at = at.child("name");
    if role.name.is_empty() {
        errors.push(Error::required(&name_at, ""));
    } else {
        errors.extend(check::invalid(&name_at, &role.name, name::path_segment(&role.name)));
    }
    let at = Path::new("subjects");
    for (index, subject) in subjects.iter().enumerate() {
        errors.extend(check_subject(subject, reach, &at.index(index)));
    }
    errors
}

fn check_subject(subject: &Subject, reach: Reach, at: &Path<'_>) -> Vec<Error> {
    let (name_at, group_at) = (at.child("name"), at.child("apiGroup"));
    let group = subject.api_group.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    if subject.name.is_empty() {
        errors.push(Error::required(&name_at, ""));
    }
    match subject.kind.as_str() {
        "ServiceAccount" => {
            if !subject.name.is_empty() {
                errors.extend(check::dns_subdomain(&name_at, &subject.name));
            }
            if !group.is_empty() {
                errors.push(Error::not_supported(&group_at, group, &[""]));
            }
            let somewhere = subject.namespace.as_ref().is_some_and(|place| !place.is_empty());
            if reach == Reach::Cluster && !somewhere {
                errors.push(Error::required(&at.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(Error::not_supported(&group_at, group, &[GROUP]));
            }
        }
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(Error::not_supported(&at.child("kind"), other, &kinds));
        }
    }
    errors
}

/// Who could change the role of a binding could give away more than they may.
fn check_same_role(new: &RoleRef, old: &RoleRef) -> Option<Error> {
    // Upstream shows the value with the names that its Go type has.
    let group = new.api_group.as_deref().unwrap_or_default();
    let value = json!({ "APIGroup": group, "Kind": new.kind, "Name": new.name });
    (new != old).then(|| Error::invalid(&Path::new("roleRef"), value, "cannot change roleRef"))
}
