//! APIServices: which server answers for a version of a group.

use k8s_openapi::kube_aggregator::pkg::apis::apiregistration::v1::{
    APIService, APIServiceSpec, ServiceReference,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::time::Time;
use serde_json::{Value, json};

use super::{Context, Part, Rules, check, edit, typed};

const GROUP_PRIORITY_MAX: i32 = 20_000;
const VERSION_PRIORITY_MAX: i32 = 1_000;
const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

pub(super) const RULES: Rules = Rules {
    default,
    name: name::Rule::PathSegment,
    prepare_create,
    prepare_update: |object, old, _| edit::restore(object, old, "status"),
    validate,
    validate_update: |object, _| validate(object),
    parts: &[(
        "status",
        Part {
            prepare_update: |object, old, _| {
                const DECIDED: [&str; 4] =
                    ["labels", "annotations", "finalizers", "ownerReferences"];
                edit::restore(object, old, "spec");
                edit::restore_meta(object, old, &DECIDED);
            },
            validate_update: |object, _| check_status(object),
            reset: &["spec", "metadata"],
            ..Part::PLAIN
        },
    )],
    reset: &["status"],
    unconditional_update: false,
    ..Rules::PLAIN
};

fn default(object: &mut Value) {
    if let Some(service) = object.pointer_mut("/spec/service") {
        edit::fill(service, "port", 443);
    }
}

fn prepare_create(object: &mut Value, context: &Context<'_>) {
    object["status"] = json!({});
    if object["spec"]["service"].is_null() {
        object["status"]["conditions"] = json!([local_condition(context.now.as_second())]);
    }
}

/// What is said of a version that this server answers for itself.
pub(crate) fn local_condition(unix_seconds: i64) -> Value {
    json!({
        "type": "Available",
        "status": "True",
        "lastTransitionTime": Time::from_unix(unix_seconds).to_value(),
        "reason": "Local",
        "message": "Local APIServices are always available",
    })
}

fn validate(object: &Value) -> Vec<Error> {
    let service: APIService = typed(object);
    let name = service.metadata.name.as_deref().unwrap_or_default();
    let spec = service.spec.clone().unwrap_or_default();
    let mut errors: Vec<Error> = check_name(name, &spec).into_iter().collect();
    errors.extend(check_version(&spec));
    match &spec.service {
        None => errors.extend(check_local(&spec)),
        Some(reference) => errors.extend(check_remote(&spec, reference)),
    }
    errors
}

fn check_name(name: &str, spec: &APIServiceSpec) -> Option<Error> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let wanted = format!("{}.{}", text(&spec.version), text(&spec.group));
    let is_name = !name.is_empty() && name::path_segment(name).is_empty();
    (is_name && name != wanted).then(|| {
        let problem = format!("must be `spec.version+\".\"+spec.group`: \"{wanted}\"");
        Error::invalid(&Path::new("metadata").child("name"), name, problem)
    })
}

fn check_version(spec: &APIServiceSpec) -> Vec<Error> {
    let at = Path::new("spec");
    let mut errors = Vec::new();
    let group = spec.group.as_deref().unwrap_or_default();
    let version = spec.version.as_deref().unwrap_or_default();
    let group_at = at.child("group");
    if !group.is_empty() {
        errors.extend(check::dns_subdomain(&group_at, group));
    } else if version != "v1" {
        let problem = "only v1 may have an empty group and it better be legacy kube";
        errors.push(Error::required(&group_at, problem));
    }
    let version_at = at.child("version");
    errors.extend(check::invalid(&version_at, version, name::dns1035_label(version)));
    let priorities = [
        (spec.group_priority_minimum, GROUP_PRIORITY_MAX, "groupPriorityMinimum"),
        (spec.version_priority, VERSION_PRIORITY_MAX, "versionPriority"),
    ];
    for (priority, max, field) in priorities {
        if !(1..=max).contains(&priority) {
            let problem = format!("must be positive and less than {max}");
            errors.push(Error::invalid(&at.child(field), priority, problem));
        }
    }
    errors
}

/// This server needs no certificates to reach itself.
fn check_local(spec: &APIServiceSpec) -> Vec<Error> {
    let at = Path::new("spec");
    let mut errors = Vec::new();
    if let Some(bundle) = spec.ca_bundle.as_ref().filter(|bundle| !bundle.0.is_empty()) {
        let shown = format!("{} bytes", bundle.0.len());
        let problem = "local APIServices may not have a caBundle";
        errors.push(Error::invalid(&at.child("caBundle"), shown, problem));
    }
    if spec.insecure_skip_tls_verify == Some(true) {
        let problem = "local APIServices may not have insecureSkipTLSVerify";
        errors.push(Error::invalid(&at.child("insecureSkipTLSVerify"), true, problem));
    }
    errors
}

fn check_remote(spec: &APIServiceSpec, reference: &ServiceReference) -> Vec<Error> {
    let root = Path::new("spec");
    let at = root.child("service");
    let mut errors = Vec::new();
    for (text, field) in [(&reference.namespace, "namespace"), (&reference.name, "name")] {
        if text.as_ref().is_none_or(String::is_empty) {
            errors.push(Error::required(&at.child(field), ""));
        }
    }
    let port = reference.port.unwrap_or_default();
    let problems = name::port_number(port.into());
    if !problems.is_empty() {
        let problem = format!("port is not valid: {}", problems.join(", "));
        errors.push(Error::invalid(&at.child("port"), port, problem));
    }
    let has_bundle = spec.ca_bundle.as_ref().is_some_and(|bundle| !bundle.0.is_empty());
    if spec.insecure_skip_tls_verify == Some(true) && has_bundle {
        let problem = "may not be true if caBundle is present";
        errors.push(Error::invalid(&root.child("insecureSkipTLSVerify"), true, problem));
    }
    errors
}

fn check_status(object: &Value) -> Vec<Error> {
    let service: APIService = typed(object);
    let root = Path::new("status");
    let at = root.child("conditions");
    let conditions = service.status.and_then(|status| status.conditions).unwrap_or_default();
    let unknown = conditions
        .iter()
        .enumerate()
        .filter(|(_, condition)| !STATUSES.contains(&condition.status.as_str()));
    unknown
        .map(|(index, condition)| {
            let at = at.index(index);
            Error::not_supported(&at.child("status"), condition.status.as_str(), &STATUSES)
        })
        .collect()
}
