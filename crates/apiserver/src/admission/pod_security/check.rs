//! What the standards ask of a pod.
//!
//! A standard is a level as a version of Kubernetes understood it, so each check says from which
//! minor version until which it is made. Where the restricted level asks more of the same than the
//! baseline does, it does not ask twice.

mod baseline;
mod restricted;

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;

use serde_json::Value;

use super::policy::{Level, Standard, Version};
use crate::admission::{items, text};

/// The last version that changed anything.
const NEWEST: i64 = 35;
const ALWAYS: Range<i64> = 0..i64::MAX;
const NEVER: Range<i64> = 0..0;

/// Why a pod does not conform: in a word, and with the places and values.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) reason: &'static str,
    pub(super) detail: String,
}

/// What is checked: a pod, or the template of one, by a version.
pub(super) struct Pod<'a> {
    annotations: &'a Value,
    spec: &'a Value,
    minor: i64,
}

type Check = fn(&Pod<'_>) -> Option<Violation>;

/// The versions that make a check at the baseline and at the restricted level; in the order of
/// messages.
const CHECKS: [(Range<i64>, Range<i64>, Check); 20] = [
    (ALWAYS, ALWAYS, baseline::app_armor),
    (ALWAYS, 0..22, baseline::capabilities),
    (ALWAYS, ALWAYS, baseline::host_namespaces),
    (ALWAYS, NEVER, baseline::host_paths),
    (ALWAYS, ALWAYS, baseline::host_ports),
    (34..i64::MAX, 34..i64::MAX, baseline::probe_hosts),
    (ALWAYS, ALWAYS, baseline::privileged),
    (ALWAYS, 0..35, baseline::proc_mount),
    (ALWAYS, ALWAYS, baseline::se_linux),
    (0..19, 0..19, baseline::seccomp_annotations),
    (19..i64::MAX, NEVER, baseline::seccomp),
    (ALWAYS, ALWAYS, baseline::sysctls),
    (ALWAYS, ALWAYS, baseline::windows_host_process),
    (NEVER, 8..i64::MAX, restricted::privilege_escalation),
    (NEVER, 22..i64::MAX, restricted::capabilities),
    (NEVER, 35..i64::MAX, restricted::proc_mount),
    (NEVER, ALWAYS, restricted::volumes),
    (NEVER, ALWAYS, restricted::run_as_non_root),
    (NEVER, 23..i64::MAX, restricted::run_as_user),
    (NEVER, 19..i64::MAX, restricted::seccomp),
];

/// How a pod, or the template of one, falls short of a standard.
pub(super) fn violations(pod: &Value, standard: Standard) -> Vec<Violation> {
    let minor = match standard.version {
        Version::Minor(minor) => minor.min(NEWEST),
        Version::Latest => NEWEST,
    };
    let pod = Pod { annotations: &pod["metadata"]["annotations"], spec: &pod["spec"], minor };
    let checks = CHECKS.into_iter().filter(|(baseline, restricted, _)| match standard.level {
        Level::Privileged => false,
        Level::Baseline => baseline.contains(&minor),
        Level::Restricted => restricted.contains(&minor),
    });
    checks.filter_map(|(_, _, check)| check(&pod)).collect()
}

impl<'a> Pod<'a> {
    fn containers(&self) -> impl Iterator<Item = &'a Value> + use<'a> {
        let spec = self.spec;
        let lists = ["initContainers", "containers", "ephemeralContainers"];
        lists.into_iter().flat_map(move |list| items(&spec[list]))
    }

    /// The names of the containers that are wrong.
    fn wrong(&self, mut is_wrong: impl FnMut(&Value) -> bool) -> Vec<&'a str> {
        let wrong = self.containers().filter(|container| is_wrong(container));
        wrong.map(|container| text(&container["name"])).collect()
    }

    /// Who has a security context that is wrong, which is null where there is none.
    fn setters(&self, mut is_wrong: impl FnMut(&'a Value) -> bool) -> Setters<'a> {
        let pod = is_wrong(&self.spec["securityContext"]);
        let containers =
            self.containers().filter(|container| is_wrong(&container["securityContext"]));
        let containers = containers.map(|container| text(&container["name"])).collect();
        Setters { pod, containers }
    }

    /// Since 1.25, nothing is asked of pods for Windows that they cannot say.
    fn is_excused_on_windows(&self) -> bool {
        self.minor >= 25 && self.spec["os"]["name"] == "windows"
    }

    /// Since 1.35, who is root only among the pod's own users need not be anybody else.
    fn is_excused_by_user_namespace(&self) -> bool {
        self.minor >= 35 && self.spec["hostUsers"] == false
    }
}

/// The pod, containers, or both.
struct Setters<'a> {
    pod: bool,
    containers: Vec<&'a str>,
}

impl Setters<'_> {
    fn is_empty(&self) -> bool {
        !self.pod && self.containers.is_empty()
    }

    /// As one does in a sentence.
    fn names(&self) -> Vec<String> {
        let pod = self.pod.then(|| "pod".to_owned());
        let containers = (!self.containers.is_empty()).then(|| containers(&self.containers));
        pod.into_iter().chain(containers).collect()
    }
}

impl fmt::Display for Setters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.names().join(" and "))
    }
}

/// Values, each once and in order.
type Values = BTreeSet<String>;

/// Containers by name.
fn containers(names: &[&str]) -> String {
    format!("{} {}", counted(names.len(), "container", "containers"), quoted(names))
}

fn counted(count: usize, one: &'static str, more: &'static str) -> &'static str {
    if count == 1 { one } else { more }
}

/// Upstream does not escape what it quotes here.
fn quoted<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> String {
    let quoted = texts.into_iter().map(|text| format!("\"{}\"", text.as_ref()));
    quoted.collect::<Vec<_>>().join(", ")
}
