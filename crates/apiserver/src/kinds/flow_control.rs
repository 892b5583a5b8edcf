//! Flow control: which requests wait for which, and how many run at once.

use std::collections::HashSet;

use k8s_openapi::api::flowcontrol::v1::{
    FlowSchema, FlowSchemaSpec, LimitResponse, LimitedPriorityLevelConfiguration,
    NonResourcePolicyRule, PolicyRulesWithSubjects, PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec, QueuingConfiguration, ResourcePolicyRule,
    ServiceAccountSubject, Subject,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::{Value, json};

use super::{Context, Part, Rules, check, edit, typed};
use crate::genesis::flow;

const PRECEDENCE_MAX: i32 = 10_000;
const QUEUES_MAX: i32 = 10_000_000;
/// How much of a hash upstream deals queues from.
const HASH_BITS_MAX: i32 = 60;
const ALL: &str = "*";
const EXEMPT: &str = "exempt";
const DISTINGUISHERS: [&str; 2] = ["ByNamespace", "ByUser"];
const VERBS: [&str; 9] =
    ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];
const SUBJECTS: [&str; 3] = ["Group", "ServiceAccount", "User"];
const LEVEL_TYPES: [&str; 2] = ["Exempt", "Limited"];
const RESPONSE_TYPES: [&str; 2] = ["Queue", "Reject"];
/// Upstream's way to keep a zero through an old version of the API.
const ZERO_SHARES: &str = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares";

pub(super) const SCHEMA: Rules = Rules {
    default: default_schema,
    validate: validate_schema,
    validate_update: |object, _| validate_schema(object),
    ..COMMON
};

pub(super) const LEVEL: Rules = Rules {
    default: default_level,
    validate: validate_level,
    validate_update: |object, _| validate_level(object),
    ..COMMON
};

const COMMON: Rules = Rules {
    prepare_create: |object, _| {
        object["status"] = json!({});
        edit::first_generation(object);
    },
    prepare_update: |object: &mut Value, old: &Value, _: &Context<'_>| {
        edit::next_generation(object, old, "spec");
        edit::restore(object, old, "status");
    },
    parts: &[(
        "status",
        Part {
            prepare_update: |object, old, _| {
                let managed = object["metadata"]["managedFields"].take();
                edit::restore(object, old, "metadata");
                if !managed.is_null() {
                    object["metadata"]["managedFields"] = managed;
                }
                edit::restore(object, old, "spec");
            },
            validate_update: |object, _| check_status(object),
            reset: &["metadata", "spec"],
            ..Part::PLAIN
        },
    )],
    reset: &["status"],
    ..Rules::PLAIN
};

fn default_schema(object: &mut Value) {
    edit::fill(object, "spec", json!({}));
    fill_number(&mut object["spec"], "matchingPrecedence", 1000);
}

fn default_level(object: &mut Value) {
    if let Some(limited) = object.pointer_mut("/spec/limited").filter(|value| value.is_object()) {
        edit::fill(limited, "nominalConcurrencyShares", 30);
        edit::fill(limited, "lendablePercent", 0);
        if let Some(queuing) = limited.pointer_mut("/limitResponse/queuing") {
            for (field, number) in [("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)] {
                fill_number(queuing, field, number);
            }
        }
    }
    if let Some(exempt) = object.pointer_mut("/spec/exempt") {
        edit::fill(exempt, "nominalConcurrencyShares", 0);
        edit::fill(exempt, "lendablePercent", 0);
    }
}

/// Fills in a number that is absent or zero.
fn fill_number(object: &mut Value, field: &str, number: i32) {
    if object.is_object() && object[field].as_i64().unwrap_or_default() == 0 {
        object[field] = number.into();
    }
}

fn validate_schema(object: &Value) -> Vec<Error> {
    let schema: FlowSchema = typed(object);
    let name = schema.metadata.name.as_deref().unwrap_or_default();
    let spec = schema.spec.unwrap_or_default();
    let at = Path::new("spec");
    let mut errors = check_schema(name, &spec, &at);
    if flow::mandatory_schema(name).is_some_and(|fixed| *fixed != object["spec"]) {
        let problem = format!("spec of '{name}' must equal the fixed value");
        errors.push(Error::invalid(&at, shown_schema(&spec), problem));
    }
    errors.extend(check_status(object));
    errors
}

fn check_schema(name: &str, spec: &FlowSchemaSpec, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let precedence_at = at.child("matchingPrecedence");
    let precedence = spec.matching_precedence.unwrap_or_default();
    let mut refuse = |problem: String| {
        errors.push(Error::invalid(&precedence_at, precedence, problem));
    };
    if precedence <= 0 {
        refuse("must be a positive value".to_owned());
    }
    if precedence > PRECEDENCE_MAX {
        refuse(format!("must not be greater than {PRECEDENCE_MAX}"));
    }
    if precedence == 1 && name != EXEMPT {
        refuse("only the schema named 'exempt' may have matchingPrecedence 1".to_owned());
    }
    if let Some(method) = &spec.distinguisher_method
        && !DISTINGUISHERS.contains(&method.type_.as_str())
    {
        let at = at.child("distinguisherMethod");
        let shown = json!({ "Type": method.type_ });
        errors.push(Error::not_supported(&at.child("type"), shown, &DISTINGUISHERS));
    }
    let level = spec.priority_level_configuration.name.as_str();
    let level_at = at.child("priorityLevelConfiguration");
    let level_at = level_at.child("name");
    if level.is_empty() {
        errors.push(Error::required(&level_at, "must reference a priority level"));
    } else {
        errors.extend(check::dns_subdomain(&level_at, level));
    }
    let rules_at = at.child("rules");
    for (index, rule) in spec.rules.iter().flatten().enumerate() {
        errors.extend(check_rule(rule, &rules_at.index(index)));
    }
    errors
}

fn check_rule(rule: &PolicyRulesWithSubjects, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let subjects_at = at.child("subjects");
    if rule.subjects.is_empty() {
        errors.push(Error::required(&subjects_at, "subjects must contain at least one value"));
    }
    for (index, subject) in rule.subjects.iter().enumerate() {
        errors.extend(check_subject(subject, &subjects_at.index(index)));
    }
    let resources = rule.resource_rules.as_deref().unwrap_or_default();
    let paths = rule.non_resource_rules.as_deref().unwrap_or_default();
    if resources.is_empty() && paths.is_empty() {
        let problem = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(Error::required(at, problem));
    }
    let resources_at = at.child("resourceRules");
    for (index, rule) in resources.iter().enumerate() {
        errors.extend(check_resource_rule(rule, &resources_at.index(index)));
    }
    let paths_at = at.child("nonResourceRules");
    for (index, rule) in paths.iter().enumerate() {
        errors.extend(check_path_rule(rule, &paths_at.index(index)));
    }
    errors
}

fn check_subject(subject: &Subject, at: &Path<'_>) -> Vec<Error> {
    let kind = subject.kind.as_str();
    if !SUBJECTS.contains(&kind) {
        return vec![Error::not_supported(&at.child("kind"), kind, &SUBJECTS)];
    }
    let mut errors = Vec::new();
    let named = [
        ("User", "user", subject.user.as_ref().map(|user| &user.name)),
        ("Group", "group", subject.group.as_ref().map(|group| &group.name)),
    ];
    if kind == "ServiceAccount" {
        errors.extend(check_account(subject.service_account.as_ref(), &at.child("serviceAccount")));
    } else if subject.service_account.is_some() {
        errors.push(stray(at, "serviceAccount", "ServiceAccount"));
    }
    for (its_kind, field, name) in named {
        match name {
            None if kind == its_kind => {
                let problem = format!("{field} is required when subject kind is '{its_kind}'");
                errors.push(Error::required(&at.child(field), problem));
            }
            Some(name) if kind == its_kind && name.is_empty() => {
                errors.push(Error::required(&at.child(field).child("name"), ""));
            }
            Some(_) if kind != its_kind => errors.push(stray(at, field, its_kind)),
            _ => {}
        }
    }
    errors
}

fn stray(at: &Path<'_>, field: &str, kind: &str) -> Error {
    let problem = format!("{field} is forbidden when subject kind is not '{kind}'");
    Error::forbidden(&at.child(field), problem)
}

fn check_account(account: Option<&ServiceAccountSubject>, at: &Path<'_>) -> Vec<Error> {
    let Some(account) = account else {
        let problem = "serviceAccount is required when subject kind is 'ServiceAccount'";
        return vec![Error::required(at, problem)];
    };
    let mut errors = Vec::new();
    let (name_at, namespace_at) = (at.child("name"), at.child("namespace"));
    let (name, namespace) = (account.name.as_str(), account.namespace.as_str());
    if name.is_empty() {
        errors.push(Error::required(&name_at, ""));
    } else if name != ALL {
        errors.extend(check::dns_subdomain(&name_at, name));
    }
    if namespace.is_empty() {
        let problem = "must specify namespace for service account";
        errors.push(Error::required(&namespace_at, problem));
    } else {
        errors.extend(check::dns_label(&namespace_at, namespace));
    }
    errors
}

/// A list with no more than `*` in it, if that is in it.
fn check_alone(items: &[String], noun: &str, at: &Path<'_>) -> Option<Error> {
    (items.len() > 1 && has_all(items)).then(|| {
        let problem = format!("if '*' is present, must not specify other {noun}");
        Error::invalid(at, json!(items), problem)
    })
}

fn has_all(items: &[String]) -> bool {
    items.iter().any(|item| item == ALL)
}

fn check_verbs(verbs: &[String], at: &Path<'_>) -> Option<Error> {
    let at = at.child("verbs");
    if verbs.is_empty() {
        return Some(Error::required(&at, "verbs must contain at least one value"));
    }
    if has_all(verbs) {
        return check_alone(verbs, "verbs", &at);
    }
    let unknown = verbs.iter().any(|verb| !VERBS.contains(&verb.as_str()));
    unknown.then(|| Error::not_supported(&at, json!(verbs), &VERBS))
}

fn check_resource_rule(rule: &ResourcePolicyRule, at: &Path<'_>) -> Vec<Error> {
    let mut errors: Vec<Error> = check_verbs(&rule.verbs, at).into_iter().collect();
    let lists = [
        (&rule.api_groups, "apiGroups", "api group", "api groups"),
        (&rule.resources, "resources", "resource", "resources"),
    ];
    for (items, field, one, several) in lists {
        let at = at.child(field);
        if items.is_empty() {
            let problem = format!("resource rules must supply at least one {one}");
            errors.push(Error::required(&at, problem));
        }
        errors.extend(check_alone(items, several, &at));
    }
    let namespaces = rule.namespaces.as_deref().unwrap_or_default();
    let namespaces_at = at.child("namespaces");
    if namespaces.is_empty() && rule.cluster_scope != Some(true) {
        let problem =
            "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(Error::required(&namespaces_at, problem));
    } else if has_all(namespaces) {
        errors.extend(check_alone(namespaces, "namespaces", &namespaces_at));
    } else {
        for (index, namespace) in namespaces.iter().enumerate() {
            let at = namespaces_at.index(index);
            errors.extend(name::dns1123_label(namespace).into_iter().map(|problem| {
                let problem =
                    format!("each member of this list must be '*' or a DNS-1123 label; {problem}");
                Error::invalid(&at, namespace.as_str(), problem)
            }));
        }
    }
    errors
}

fn check_path_rule(rule: &NonResourcePolicyRule, at: &Path<'_>) -> Vec<Error> {
    let mut errors: Vec<Error> = check_verbs(&rule.verbs, at).into_iter().collect();
    let paths = &rule.non_resource_urls;
    let at = at.child("nonResourceURLs");
    if paths.is_empty() {
        let problem = "nonResourceURLs must contain at least one value";
        errors.push(Error::required(&at, problem));
    } else if has_all(paths) {
        errors.extend(check_alone(paths, "non-resource URLs", &at));
    } else {
        let wrong = paths.iter().enumerate().filter_map(|(index, path)| {
            Some(Error::invalid(&at.index(index), path.as_str(), path_problem(path)?))
        });
        errors.extend(wrong);
    }
    errors
}

/// A path, of which only the last segment may be `*`.
fn path_problem(path: &str) -> Option<&'static str> {
    let wildcards = path.matches('*').count();
    Some(match path {
        "" => "must not be empty",
        "/" => return None,
        _ if !path.starts_with('/') => "must start with slash",
        _ if path.contains(' ') => "must not contain white-space",
        _ if path.contains("//") => "must not contain double slash",
        _ if wildcards > 1 || (wildcards == 1 && !path.ends_with("/*")) => {
            "wildcard can only do suffix matching"
        }
        _ => return None,
    })
}

fn validate_level(object: &Value) -> Vec<Error> {
    let level: PriorityLevelConfiguration = typed(object);
    let name = level.metadata.name.as_deref().unwrap_or_default();
    let spec = level.spec.unwrap_or_default();
    let at = Path::new("spec");
    let mut errors = Vec::new();
    if object["metadata"]["annotations"].get(ZERO_SHARES).is_some() {
        let metadata = Path::new("metadata");
        let problem = format!("annotation '{ZERO_SHARES}' is forbidden");
        errors.push(Error::forbidden(&metadata.child("annotations"), problem));
    }
    errors.extend(check_level(name, &spec, &at));
    if let Some(fixed) = flow::mandatory_level(name) {
        // Only how much the exempt level lends may change.
        let mut found = object["spec"].clone();
        let besides = match name {
            EXEMPT => {
                edit::restore(&mut found, fixed, "exempt");
                " except the 'spec.exempt' field"
            }
            _ => "",
        };
        if found != *fixed {
            let problem = format!("spec of '{name}'{besides} must equal the fixed value");
            errors.push(Error::invalid(&at, shown_level(&spec), problem));
        }
    }
    errors.extend(check_status(object));
    errors
}

fn check_level(name: &str, spec: &PriorityLevelConfigurationSpec, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let type_at = at.child("type");
    if (name == EXEMPT) != (spec.type_ == "Exempt") {
        let problem = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(Error::invalid(&type_at, spec.type_.as_str(), problem));
    }
    let (limited_at, exempt_at) = (at.child("limited"), at.child("exempt"));
    match spec.type_.as_str() {
        "Exempt" => {
            if spec.limited.is_some() {
                let problem = "must be nil if the type is not Limited";
                errors.push(Error::forbidden(&limited_at, problem));
            }
            if let Some(exempt) = &spec.exempt {
                errors.extend(check_shares(exempt.nominal_concurrency_shares, &exempt_at));
                errors.extend(check_lendable(exempt.lendable_percent, &exempt_at));
            }
        }
        "Limited" => {
            if spec.exempt.is_some() {
                let problem = "must be nil if the type is Limited";
                errors.push(Error::forbidden(&exempt_at, problem));
            }
            match &spec.limited {
                None => {
                    let problem = "must not be empty when type is Limited";
                    errors.push(Error::required(&limited_at, problem));
                }
                Some(limited) => errors.extend(check_limited(limited, &limited_at)),
            }
        }
        "" => errors.push(Error::required(&type_at, "")),
        unknown => errors.push(Error::not_supported(&type_at, unknown, &LEVEL_TYPES)),
    }
    errors
}

fn check_shares(shares: Option<i32>, at: &Path<'_>) -> Option<Error> {
    let shares = shares.filter(|shares| *shares < 0)?;
    let at = at.child("nominalConcurrencyShares");
    Some(Error::invalid(&at, shares, "must be a non-negative integer"))
}

fn check_lendable(percent: Option<i32>, at: &Path<'_>) -> Option<Error> {
    let percent = percent.filter(|percent| !(0..=100).contains(percent))?;
    let at = at.child("lendablePercent");
    Some(Error::invalid(&at, percent, "must be between 0 and 100, inclusive"))
}

fn check_limited(limited: &LimitedPriorityLevelConfiguration, at: &Path<'_>) -> Vec<Error> {
    let mut errors: Vec<Error> =
        check_shares(limited.nominal_concurrency_shares, at).into_iter().collect();
    let response = limited.limit_response.clone().unwrap_or_default();
    errors.extend(check_response(&response, &at.child("limitResponse")));
    errors.extend(check_lendable(limited.lendable_percent, at));
    if let Some(percent) = limited.borrowing_limit_percent.filter(|percent| *percent < 0) {
        let at = at.child("borrowingLimitPercent");
        let problem = "if specified, must be a non-negative integer";
        errors.push(Error::invalid(&at, percent, problem));
    }
    errors
}

fn check_response(response: &LimitResponse, at: &Path<'_>) -> Vec<Error> {
    let queuing_at = at.child("queuing");
    match (response.type_.as_str(), &response.queuing) {
        ("Reject", None) => Vec::new(),
        ("Reject", Some(_)) => {
            let problem = "must be nil if limited.limitResponse.type is not Limited";
            vec![Error::forbidden(&queuing_at, problem)]
        }
        ("Queue", None) => {
            let problem = "must not be empty if limited.limitResponse.type is Limited";
            vec![Error::required(&queuing_at, problem)]
        }
        ("Queue", Some(queuing)) => check_queuing(queuing, &queuing_at),
        ("", _) => vec![Error::required(&at.child("type"), "")],
        (unknown, _) => vec![Error::not_supported(&at.child("type"), unknown, &RESPONSE_TYPES)],
    }
}

fn check_queuing(queuing: &QueuingConfiguration, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let number = |number: Option<i32>| number.unwrap_or_default();
    let length = number(queuing.queue_length_limit);
    let (queues, hand) = (number(queuing.queues), number(queuing.hand_size));
    if length <= 0 {
        errors.push(Error::invalid(&at.child("queueLengthLimit"), length, "must be positive"));
    }
    let queues_at = at.child("queues");
    if queues <= 0 {
        errors.push(Error::invalid(&queues_at, queues, "must be positive"));
    } else if queues > QUEUES_MAX {
        let problem = format!("must not be greater than {QUEUES_MAX}");
        errors.push(Error::invalid(&queues_at, queues, problem));
    }
    let hand_at = at.child("handSize");
    if hand <= 0 {
        errors.push(Error::invalid(&hand_at, hand, "must be positive"));
    } else if hand > queues {
        let problem = format!("should not be greater than queues ({queues})");
        errors.push(Error::invalid(&hand_at, hand, problem));
    } else if (f64::from(queues).log2() * f64::from(hand)).ceil() > f64::from(HASH_BITS_MAX) {
        let problem = format!(
            "required entropy bits of deckSize {queues} and handSize {hand} should not be greater \
             than {HASH_BITS_MAX}"
        );
        errors.push(Error::invalid(&hand_at, hand, problem));
    }
    errors
}

/// The conditions of both kinds have types, and no two of one.
fn check_status(object: &Value) -> Vec<Error> {
    let root = Path::new("status");
    let at = root.child("conditions");
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let mut errors = Vec::new();
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let at = at.index(index);
        let type_ = edit::text(condition, "/type");
        if !seen.insert(type_) {
            errors.push(Error::duplicate(&at.child("type"), type_));
        }
        if type_.is_empty() {
            errors.push(Error::required(&at.child("type"), ""));
        }
    }
    errors
}

/// The spec with the names that upstream's Go types have, as its errors show it.
fn shown_schema(spec: &FlowSchemaSpec) -> Value {
    let rules: Option<Vec<Value>> =
        spec.rules.as_ref().map(|rules| rules.iter().map(shown_rule).collect());
    let method = spec.distinguisher_method.as_ref();
    json!({
        "PriorityLevelConfiguration": { "Name": spec.priority_level_configuration.name },
        "MatchingPrecedence": spec.matching_precedence.unwrap_or_default(),
        "DistinguisherMethod": method.map(|method| json!({ "Type": method.type_ })),
        "Rules": rules,
    })
}

fn shown_rule(rule: &PolicyRulesWithSubjects) -> Value {
    let subject = |subject: &Subject| {
        let account = subject.service_account.as_ref();
        json!({
            "Kind": subject.kind,
            "User": subject.user.as_ref().map(|user| json!({ "Name": user.name })),
            "Group": subject.group.as_ref().map(|group| json!({ "Name": group.name })),
            "ServiceAccount": account.map(|account| {
                json!({ "Namespace": account.namespace, "Name": account.name })
            }),
        })
    };
    let resource_rule = |rule: &ResourcePolicyRule| {
        json!({
            "Verbs": rule.verbs,
            "APIGroups": rule.api_groups,
            "Resources": rule.resources,
            "ClusterScope": rule.cluster_scope.unwrap_or_default(),
            "Namespaces": rule.namespaces,
        })
    };
    let path_rule = |rule: &NonResourcePolicyRule| json!({ "Verbs": rule.verbs, "NonResourceURLs": rule.non_resource_urls });
    let resource_rules = rule.resource_rules.as_ref();
    let path_rules = rule.non_resource_rules.as_ref();
    json!({
        "Subjects": rule.subjects.iter().map(subject).collect::<Vec<_>>(),
        "ResourceRules": resource_rules
            .map(|rules| rules.iter().map(resource_rule).collect::<Vec<_>>()),
        "NonResourceRules": path_rules
            .map(|rules| rules.iter().map(path_rule).collect::<Vec<_>>()),
    })
}

fn shown_level(spec: &PriorityLevelConfigurationSpec) -> Value {
    let queuing = |queuing: &QueuingConfiguration| {
        json!({
            "Queues": queuing.queues.unwrap_or_default(),
            "HandSize": queuing.hand_size.unwrap_or_default(),
            "QueueLengthLimit": queuing.queue_length_limit.unwrap_or_default(),
        })
    };
    let limited = spec.limited.as_ref().map(|limited| {
        let response = limited.limit_response.clone().unwrap_or_default();
        json!({
            "NominalConcurrencyShares": limited.nominal_concurrency_shares.unwrap_or_default(),
            "LimitResponse": {
                "Type": response.type_,
                "Queuing": response.queuing.as_ref().map(queuing),
            },
            "LendablePercent": limited.lendable_percent,
            "BorrowingLimitPercent": limited.borrowing_limit_percent,
        })
    });
    let exempt = spec.exempt.as_ref().map(|exempt| {
        json!({
            "NominalConcurrencyShares": exempt.nominal_concurrency_shares,
            "LendablePercent": exempt.lendable_percent,
        })
    });
    json!({ "Type": spec.type_, "Limited": limited, "Exempt": exempt })
}
