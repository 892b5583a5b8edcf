//! Kernel parameters of a pod: only such as are its own.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{PodSpec, Sysctl};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::regex::Regex;

use crate::kinds::check::list;
use crate::kinds::pod_spec::validate::Allowed;

const NAME: &str = "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
const NAME_BYTES_MAX: usize = 253;
/// Parameters of communication between processes, besides those of message queues.
const OF_PROCESSES: &[&str] = &[
    "kernel.sem",
    "kernel.shmall",
    "kernel.shmmax",
    "kernel.shmmni",
    "kernel.shm_rmid_forced",
    "kernel.shm",
    "kernel.msgmax",
    "kernel.msgmnb",
    "kernel.msgmni",
    "kernel.msg",
];

static NAME_FORM: LazyLock<Regex> = LazyLock::new(|| Regex::new(NAME).expect("a constant pattern"));

pub(super) fn validate(
    spec: &PodSpec,
    sysctls: &[Sysctl],
    allowed: &Allowed,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut names = BTreeSet::new();
    for (index, sysctl) in sysctls.iter().enumerate() {
        let path = path.index(index);
        let path = path.child("name");
        let name = sysctl.name.as_str();
        if name.is_empty() {
            errors.push(Error::required(&path, ""));
        } else if name.len() > NAME_BYTES_MAX || !NAME_FORM.is_match(name) {
            let problem =
                format!("must have at most {NAME_BYTES_MAX} characters and match regex {NAME}");
            errors.push(Error::invalid(&path, name, problem));
        } else if names.contains(name) {
            errors.push(Error::duplicate(&path, name));
        }
        if !allowed.host_sysctls {
            errors.extend(of_host(spec, name, &path));
        }
        names.insert(name);
    }
    errors
}

/// Whether the old spec changes parameters of the host.
pub(in crate::kinds::pod_spec::validate) fn has_host_sysctls(spec: &PodSpec) -> bool {
    let context = spec.security_context.as_ref();
    let mut sysctls = context.into_iter().flat_map(|context| list(&context.sysctls));
    sysctls.any(|sysctl| of_host(spec, &sysctl.name, &Path::ROOT).is_some())
}

/// A parameter of a namespace that the pod shares with the host is the host's.
fn of_host(spec: &PodSpec, name: &str, path: &Path<'_>) -> Option<Error> {
    let name_with_dots = with_dots(name);
    let of_network = name_with_dots.starts_with("net.");
    let of_processes =
        OF_PROCESSES.contains(&name_with_dots.as_str()) || name_with_dots.starts_with("fs.mqueue.");
    let problem = if of_network && spec.host_network == Some(true) {
        "may not be specified when 'hostNetwork' is true"
    } else if of_processes && spec.host_ipc == Some(true) {
        "may not be specified when 'hostIPC' is true"
    } else {
        return None;
    };
    Some(Error::invalid(path, name, problem))
}

/// Slashes may stand for dots; then dots stand for slashes.
fn with_dots(name: &str) -> String {
    match name.chars().find(|c| matches!(c, '.' | '/')) {
        Some('/') => name
            .chars()
            .map(|c| match c {
                '.' => '/',
                '/' => '.',
                other => other,
            })
            .collect(),
        _ => name.to_owned(),
    }
}
