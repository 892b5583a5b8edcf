//! Ingresses, which lead requests from outside to Services, and the classes they are of.

use k8s_openapi::api::networking::v1::{
    HTTPIngressPath, Ingress, IngressBackend, IngressClass, IngressClassParametersReference,
    IngressRule, IngressSpec, IngressTLS,
};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::{Value, json};

use super::{Context, Part, Rules, check, edit, ip, typed};

/// Where the class was once named.
const CLASS_ANNOTATION: &str = "kubernetes.io/ingress.class";
const CONTROLLER_BYTES_MAX: usize = 250;
const NOT_AN_ADDRESS: &str = "must be a DNS name, not an IP address";

pub(super) const RULES: Rules = Rules {
    prepare_create: |object, _| {
        object["status"] = json!({"loadBalancer": {}});
        edit::first_generation(object);
    },
    prepare_update: edit::keep_status,
    validate: |object| {
        let ingress: Ingress = typed(object);
        let mut errors = check(&ingress, None);
        errors.extend(check_class_annotation(&ingress));
        errors
    },
    validate_update: |object, old| check(&typed(object), Some(&typed(old))),
    warnings: |object, old| match old {
        None => warnings(&typed(object)),
        Some(_) => Vec::new(),
    },
    parts: &[("status", STATUS)],
    reset: &["status"],
    ..Rules::PLAIN
};

const STATUS: Part = Part {
    validate_update: |object, old| check_status(&typed(object), &typed(old)),
    warnings: |object, _| status_warnings(&typed(object)),
    ..Part::STATUS
};

pub(super) const CLASS: Rules = Rules {
    default: |object| {
        if let Some(parameters) = object.pointer_mut("/spec/parameters") {
            edit::fill(parameters, "scope", "Cluster");
        }
    },
    prepare_create: |object, _| edit::first_generation(object),
    prepare_update: |object: &mut Value, old: &Value, _: &Context<'_>| {
        edit::next_generation(object, old, "spec");
    },
    validate: |object| check_class(&typed(object)),
    validate_update: |object, old| {
        let (new, old): (IngressClass, IngressClass) = (typed(object), typed(old));
        let controller = |class: &IngressClass| {
            class.spec.as_ref().and_then(|spec| spec.controller.clone()).unwrap_or_default()
        };
        let at = Path::new("spec");
        let at = at.child("controller");
        let changed = check::immutable(&at, &controller(&new), &controller(&old));
        changed.into_iter().chain(check_class(&new)).collect()
    },
    ..Rules::PLAIN
};

/// What an old Ingress is forgiven.
#[derive(Clone, Copy, Default)]
struct Forgiven {
    secret_names: bool,
    wildcard_rules: bool,
}

impl Forgiven {
    fn of(old: &IngressSpec) -> Self {
        let at = Path::ROOT;
        let is_unsound =
            |rule: &IngressRule| is_wildcard(rule) && !check_paths(rule, &at).is_empty();
        Forgiven {
            secret_names: old.tls.iter().flatten().any(|tls| !secret_complaints(tls).is_empty()),
            wildcard_rules: old.rules.iter().flatten().any(is_unsound),
        }
    }
}

fn check(ingress: &Ingress, old: Option<&Ingress>) -> Vec<Error> {
    let spec = ingress.spec.clone().unwrap_or_default();
    let old = old.and_then(|old| old.spec.as_ref());
    let forgiven = old.map(Forgiven::of).unwrap_or_default();
    let at = Path::new("spec");
    let rules = spec.rules.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    if rules.is_empty() && spec.default_backend.is_none() {
        let detail = "either `defaultBackend` or `rules` must be specified";
        errors.push(Error::invalid(&at, Value::Null, detail));
    }
    if let Some(backend) = &spec.default_backend {
        errors.extend(check_backend(backend, &at.child("defaultBackend")));
    }
    let rules_at = at.child("rules");
    for (index, rule) in rules.iter().enumerate() {
        let at = rules_at.index(index);
        errors.extend(check_host(rule, &at.child("host")));
        if !(is_wildcard(rule) && forgiven.wildcard_rules) {
            errors.extend(check_paths(rule, &at));
        }
    }
    let tls_at = at.child("tls");
    for (index, tls) in spec.tls.iter().flatten().enumerate() {
        errors.extend(check_tls(tls, forgiven, &tls_at.index(index)));
    }
    if let Some(class) = &spec.ingress_class_name {
        errors.extend(check::dns_subdomain(&at.child("ingressClassName"), class));
    }
    errors
}

fn check_class_annotation(ingress: &Ingress) -> Option<Error> {
    let annotation = ingress.metadata.annotations.as_ref()?.get(CLASS_ANNOTATION)?;
    let class = ingress.spec.as_ref()?.ingress_class_name.as_ref()?;
    (annotation != class).then(|| {
        let annotations = Path::new("annotations");
        let detail = "must match `ingressClassName` when both are specified";
        Error::invalid(&annotations.child(CLASS_ANNOTATION), annotation.as_str(), detail)
    })
}

fn is_wildcard(rule: &IngressRule) -> bool {
    rule.host.as_deref().unwrap_or_default().contains('*')
}

fn check_host(rule: &IngressRule, at: &Path<'_>) -> Vec<Error> {
    let host = rule.host.as_deref().unwrap_or_default();
    if host.is_empty() {
        return Vec::new();
    }
    let mut errors = Vec::new();
    if ip::parse(host).is_some() {
        errors.push(Error::invalid(at, host, NOT_AN_ADDRESS));
    }
    errors.extend(check::invalid(at, host, host_complaints(host)));
    errors
}

fn host_complaints(host: &str) -> Vec<String> {
    match host.contains('*') {
        true => name::wildcard_dns1123_subdomain(host),
        false => name::dns1123_subdomain(host),
    }
}

fn check_paths(rule: &IngressRule, at: &Path<'_>) -> Vec<Error> {
    let Some(http) = &rule.http else { return Vec::new() };
    let at = at.child("http");
    let at = at.child("paths");
    let mut errors = Vec::new();
    if http.paths.is_empty() {
        errors.push(Error::required(&at, ""));
    }
    for (index, path) in http.paths.iter().enumerate() {
        errors.extend(check_path(path, &at.index(index)));
    }
    errors
}

fn check_path(path: &HTTPIngressPath, at: &Path<'_>) -> Vec<Error> {
    let (path_at, type_at) = (at.child("path"), at.child("pathType"));
    let text = path.path.as_deref().unwrap_or_default();
    let refuse = |detail: String| Error::invalid(&path_at, text, detail);
    let mut errors = Vec::new();
    match path.path_type.as_str() {
        "" => return vec![Error::required(&type_at, "pathType must be specified")],
        "Exact" | "Prefix" => {
            if !text.starts_with('/') {
                errors.push(refuse("must be an absolute path".to_owned()));
            }
            let banned = ["//", "/./", "/../", "%2f", "%2F"];
            for part in banned.iter().filter(|part| text.contains(**part)) {
                errors.push(refuse(format!("must not contain '{part}'")));
            }
            for end in ["/..", "/."].iter().filter(|end| text.ends_with(**end)) {
                errors.push(refuse(format!("cannot end with '{end}'")));
            }
        }
        "ImplementationSpecific" => {
            if !text.is_empty() && !text.starts_with('/') {
                errors.push(refuse("must be an absolute path".to_owned()));
            }
        }
        other => {
            let known = ["Exact", "ImplementationSpecific", "Prefix"];
            errors.extend(check::one_of(&type_at, other, &known));
        }
    }
    errors.extend(check_backend(&path.backend, &at.child("backend")));
    errors
}

fn check_backend(backend: &IngressBackend, at: &Path<'_>) -> Vec<Error> {
    let refuse = |detail: &str| Error::invalid(at, "", detail);
    let mut errors = Vec::new();
    match (&backend.resource, &backend.service) {
        (Some(_), Some(_)) => errors.push(refuse("cannot set both resource and service backends")),
        (None, None) => errors.push(refuse("resource or service backend is required")),
        (Some(resource), None) => {
            let group = resource.api_group.as_deref();
            let at = at.child("resource");
            errors.extend(check_reference(group, &resource.kind, &resource.name, &at));
        }
        (None, Some(service)) => {
            let service_at = at.child("service");
            match service.name.as_str() {
                "" => errors.push(Error::required(&service_at.child("name"), "")),
                name => errors.extend(check::dns_label(&service_at.child("name"), name)),
            }
            let port = service.port.clone().unwrap_or_default();
            let port_at = service_at.child("port");
            let number = port.number.unwrap_or(0);
            match (port.name.as_deref().unwrap_or_default(), number) {
                ("", 0) => errors.push(Error::required(at, "port name or number is required")),
                ("", number) => errors.extend(check::port(&port_at.child("number"), number)),
                (name, 0) => {
                    errors.extend(check::invalid(
                        &port_at.child("name"),
                        name,
                        name::port_name(name),
                    ));
                }
                _ => errors.push(refuse("cannot set both port name & port number")),
            }
        }
    }
    errors
}

fn check_tls(tls: &IngressTLS, forgiven: Forgiven, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let hosts_at = at.child("hosts");
    for (index, host) in tls.hosts.iter().flatten().enumerate() {
        let at = hosts_at.index(index);
        errors.extend(check::invalid(&at, host.as_str(), host_complaints(host)));
    }
    if !forgiven.secret_names {
        let secret = tls.secret_name.as_deref().unwrap_or_default();
        let complaints = secret_complaints(tls);
        errors.extend(check::invalid(&at.child("secretName"), secret, complaints));
    }
    errors
}

fn secret_complaints(tls: &IngressTLS) -> Vec<String> {
    match tls.secret_name.as_deref().unwrap_or_default() {
        "" => Vec::new(),
        secret => name::dns1123_subdomain(secret),
    }
}

fn check_status(new: &Ingress, old: &Ingress) -> Vec<Error> {
    let balanced = |ingress: &Ingress| {
        let status = ingress.status.clone().unwrap_or_default();
        status.load_balancer.unwrap_or_default().ingress.unwrap_or_default()
    };
    let kept: Vec<String> = balanced(old).into_iter().filter_map(|point| point.ip).collect();
    let status = Path::new("status");
    let balancer = status.child("loadBalancer");
    let at = balancer.child("ingress");
    let mut errors = Vec::new();
    for (index, point) in balanced(new).iter().enumerate() {
        let at = at.index(index);
        if let Some(text) = point.ip.as_deref().filter(|text| !text.is_empty()) {
            errors.extend(ip::check_legacy(&at.child("ip"), text, &kept));
        }
        if let Some(host) = point.hostname.as_deref().filter(|host| !host.is_empty()) {
            let at = at.child("hostname");
            errors.extend(check::dns_subdomain(&at, host));
            if ip::parse(host).is_some() {
                errors.push(Error::invalid(&at, host, NOT_AN_ADDRESS));
            }
        }
    }
    errors
}

fn warnings(ingress: &Ingress) -> Vec<String> {
    let annotations = ingress.metadata.annotations.as_ref();
    let is_named_so = annotations.is_some_and(|all| all.contains_key(CLASS_ANNOTATION));
    let class = ingress.spec.as_ref().and_then(|spec| spec.ingress_class_name.as_ref());
    let warning = format!(
        "annotation \"{CLASS_ANNOTATION}\" is deprecated, please use 'spec.ingressClassName' instead"
    );
    (is_named_so && class.is_none()).then_some(warning).into_iter().collect()
}

fn status_warnings(ingress: &Ingress) -> Vec<String> {
    let status = ingress.status.clone().unwrap_or_default();
    let points = status.load_balancer.unwrap_or_default().ingress.unwrap_or_default();
    let status = Path::new("status");
    let balancer = status.child("loadBalancer");
    let at = balancer.child("ingress");
    let mut warnings = Vec::new();
    for (index, point) in points.iter().enumerate() {
        if let Some(text) = point.ip.as_deref().filter(|text| !text.is_empty()) {
            warnings.extend(ip::warnings(&at.index(index), text));
        }
    }
    warnings
}

fn check_class(class: &IngressClass) -> Vec<Error> {
    let spec = class.spec.clone().unwrap_or_default();
    let at = Path::new("spec");
    let controller_at = at.child("controller");
    let controller = spec.controller.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    if controller.len() > CONTROLLER_BYTES_MAX {
        errors.push(Error::too_long(&controller_at, CONTROLLER_BYTES_MAX));
    }
    errors.extend(name::domain_prefixed_path(&controller_at, controller));
    if let Some(parameters) = &spec.parameters {
        errors.extend(check_parameters(parameters, &at.child("parameters")));
    }
    errors
}

fn check_parameters(parameters: &IngressClassParametersReference, at: &Path<'_>) -> Vec<Error> {
    let group = parameters.api_group.as_deref();
    let mut errors = check_reference(group, &parameters.kind, &parameters.name, at);
    let namespace_at = at.child("namespace");
    let namespace = parameters.namespace.as_deref();
    match (parameters.scope.as_deref(), namespace) {
        (None, _) => errors.push(Error::required(&at.child("scope"), "")),
        (Some("Namespace"), None) => {
            let detail = "`parameters.scope` is set to 'Namespace'";
            errors.push(Error::required(&namespace_at, detail));
        }
        (Some("Namespace"), Some(namespace)) => {
            errors.extend(check::dns_label(&namespace_at, namespace));
        }
        (Some("Cluster"), None) => {}
        (Some("Cluster"), Some(_)) => {
            let detail = "`parameters.scope` is set to 'Cluster'";
            errors.push(Error::forbidden(&namespace_at, detail));
        }
        (Some(scope), _) => {
            let scopes = ["Cluster", "Namespace"];
            errors.extend(check::one_of(&at.child("scope"), scope, &scopes));
        }
    }
    errors
}

/// A reference to an object of any kind.
fn check_reference(group: Option<&str>, kind: &str, name: &str, at: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(group) = group {
        errors.extend(check::dns_subdomain(&at.child("apiGroup"), group));
    }
    for (field, text) in [("kind", kind), ("name", name)] {
        let at = at.child(field);
        match text {
            "" => errors.push(Error::required(&at, "")),
            text => errors.extend(check::invalid(&at, text, name::path_segment(text))),
        }
    }
    errors
}
