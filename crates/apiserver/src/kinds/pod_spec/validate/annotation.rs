//! Annotations of pods that mean something to the server.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{AppArmorProfile, PodSpec, SeccompProfile, Toleration};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::json::go_quote;

use super::{each_container, file, schedule};
use crate::kinds::check::text;

/// Marks the likeness of a pod that a node runs on its own account.
pub(in crate::kinds) const MIRROR: &str = "kubernetes.io/config.mirror";
pub(in crate::kinds) const APP_ARMOR_PREFIX: &str =
    "container.apparmor.security.beta.kubernetes.io/";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
pub(in crate::kinds) const SECCOMP: &str = "seccomp.security.alpha.kubernetes.io/pod";
pub(in crate::kinds) const SECCOMP_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";

const RUNTIME_DEFAULT: &str = "runtime/default";
const DOCKER_DEFAULT: &str = "docker/default";
const UNCONFINED: &str = "unconfined";
const LOCALHOST_PREFIX: &str = "localhost/";

pub(in crate::kinds) type Annotations = BTreeMap<String, String>;

/// What to tell about an annotation that has become a field, of the object or template at the path.
pub(in crate::kinds) fn app_armor_deprecation(root: &Path<'_>, key: &str) -> String {
    let path = root.child("metadata");
    let path = path.child("annotations");
    format!(r#"{}: deprecated since v1.30; use the "appArmorProfile" field instead"#, path.key(key))
}

pub(in crate::kinds) fn validate(
    annotations: &Annotations,
    spec: &PodSpec,
    any_deletion_cost: bool,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(value) = annotations.get(MIRROR)
        && text(&spec.node_name).is_empty()
    {
        let problem = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(Error::invalid(&path.key(MIRROR), value.as_str(), problem));
    }
    if let Some(tolerations) = annotations.get(TOLERATIONS).filter(|value| !value.is_empty()) {
        errors.extend(validate_tolerations(tolerations, path));
    }
    if !any_deletion_cost && has_unsound_deletion_cost(annotations) {
        let cost = annotations[DELETION_COST].as_str();
        errors.push(Error::invalid(&path.key(DELETION_COST), cost, "must be a 32bit integer"));
    }
    if let Some(profile) = annotations.get(SECCOMP) {
        errors.extend(validate_seccomp(profile, &path.child(SECCOMP)));
    }
    for (key, profile) in annotations.iter().filter(|(key, _)| key.starts_with(SECCOMP_PREFIX)) {
        errors.extend(validate_seccomp(profile, &path.child(key)));
    }
    errors.extend(validate_app_armor(annotations, spec, path));
    errors
}

/// Where an annotation and a field say the same thing, they may not say it differently.
pub(in crate::kinds) fn validate_agreement(
    annotations: &Annotations,
    spec: &PodSpec,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let of_pod = spec.security_context.as_ref();
    if let (Some(profile), Some(annotation)) =
        (of_pod.and_then(|context| context.seccomp_profile.as_ref()), annotations.get(SECCOMP))
    {
        let path = path.child("securityContext");
        errors.extend(seccomp_agreement(profile, annotation, &path.child("seccompProfile")));
    }
    each_container(spec, path, |container, path| {
        let context = container.security_context.as_ref();
        let annotation = annotations.get(&format!("{SECCOMP_PREFIX}{}", container.name));
        if let (Some(profile), Some(annotation)) =
            (context.and_then(|context| context.seccomp_profile.as_ref()), annotation)
        {
            let path = path.child("securityContext");
            errors.extend(seccomp_agreement(profile, annotation, &path.child("seccompProfile")));
        }
    });
    if spec.os.as_ref().is_some_and(|os| os.name == "windows") {
        return errors;
    }
    each_container(spec, path, |container, path| {
        let context = container.security_context.as_ref();
        let profile = context
            .and_then(|context| context.app_armor_profile.as_ref())
            .or_else(|| of_pod.and_then(|context| context.app_armor_profile.as_ref()));
        let annotation = annotations.get(&format!("{APP_ARMOR_PREFIX}{}", container.name));
        if let (Some(profile), Some(annotation)) = (profile, annotation) {
            let path = path.child("securityContext");
            let agreement = Agreement {
                what: "apparmor",
                kind: &profile.type_,
                file: profile.localhost_profile.as_deref(),
                defaults: &[RUNTIME_DEFAULT],
            };
            errors.extend(agreement.validate(annotation, &path.child("appArmorProfile")));
        }
    });
    errors
}

/// The field that says the same as an AppArmor annotation, if one can.
pub(in crate::kinds) fn app_armor_profile(annotation: &str) -> Option<AppArmorProfile> {
    let profile = |kind: &str, file: Option<&str>| AppArmorProfile {
        type_: kind.to_owned(),
        localhost_profile: file.map(str::to_owned),
    };
    match annotation {
        UNCONFINED => Some(profile("Unconfined", None)),
        RUNTIME_DEFAULT => Some(profile("RuntimeDefault", None)),
        _ => annotation
            .strip_prefix(LOCALHOST_PREFIX)
            .filter(|file| !file.is_empty())
            .map(|file| profile("Localhost", Some(file))),
    }
}

pub(in crate::kinds) fn has_unsound_deletion_cost(annotations: &Annotations) -> bool {
    annotations.get(DELETION_COST).is_some_and(|cost| {
        let is_sound_start = cost == "0" || cost.starts_with(|c| matches!(c, '-' | '1'..='9'));
        !is_sound_start || cost.parse::<i32>().is_err()
    })
}

fn validate_tolerations(text: &str, path: &Path<'_>) -> Vec<Error> {
    match serde_json::from_str::<Option<Vec<Toleration>>>(text) {
        Ok(tolerations) => {
            let path = path.child(TOLERATIONS);
            schedule::tolerations(&tolerations.unwrap_or_default(), &path)
        }
        Err(error) => vec![Error::invalid(path, TOLERATIONS, error.to_string())],
    }
}

fn validate_seccomp(profile: &str, path: &Path<'_>) -> Vec<Error> {
    match profile {
        RUNTIME_DEFAULT | DOCKER_DEFAULT | UNCONFINED => Vec::new(),
        _ => match profile.strip_prefix(LOCALHOST_PREFIX) {
            Some(name) => file::descending(path, name),
            None => vec![Error::invalid(path, profile, "must be a valid seccomp profile")],
        },
    }
}

fn validate_app_armor(annotations: &Annotations, spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    for (key, profile) in annotations {
        let Some(container) = key.strip_prefix(APP_ARMOR_PREFIX) else { continue };
        let path = path.key(key);
        let mut is_there = false;
        each_container(spec, &Path::ROOT, |other, _| is_there |= other.name == container);
        if !is_there {
            errors.push(Error::invalid(&path, container, "container not found"));
        }
        let is_sound = matches!(profile.as_str(), "" | RUNTIME_DEFAULT | UNCONFINED)
            || profile.starts_with(LOCALHOST_PREFIX);
        if !is_sound {
            let problem = format!("invalid AppArmor profile name: {}", go_quote(profile));
            errors.push(Error::invalid(&path, profile.as_str(), problem));
        }
    }
    errors
}

fn seccomp_agreement(profile: &SeccompProfile, annotation: &str, path: &Path<'_>) -> Option<Error> {
    let agreement = Agreement {
        what: "seccomp",
        kind: &profile.type_,
        file: profile.localhost_profile.as_deref(),
        defaults: &[RUNTIME_DEFAULT, DOCKER_DEFAULT],
    };
    agreement.validate(annotation, path)
}

/// What a field says, to be compared with an annotation.
struct Agreement<'a> {
    what: &'a str,
    kind: &'a str,
    file: Option<&'a str>,
    /// How the annotation names the default of the runtime.
    defaults: &'a [&'a str],
}

impl Agreement<'_> {
    fn validate(&self, annotation: &str, path: &Path<'_>) -> Option<Error> {
        let what = self.what;
        let agrees = match self.kind {
            "Unconfined" => annotation == UNCONFINED,
            "RuntimeDefault" => self.defaults.contains(&annotation),
            "Localhost" => annotation.starts_with(LOCALHOST_PREFIX),
            _ => true,
        };
        if !agrees {
            let problem = format!("{what} type in annotation and field must match");
            return Some(Error::forbidden(&path.child("type"), problem));
        }
        if self.kind == "Localhost" && self.file != annotation.strip_prefix(LOCALHOST_PREFIX) {
            let problem = format!("{what} profile in annotation and field must match");
            return Some(Error::forbidden(&path.child("localhostProfile"), problem));
        }
        None
    }
}
