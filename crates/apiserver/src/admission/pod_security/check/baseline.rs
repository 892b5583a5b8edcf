//! What the baseline asks: nothing that is known to lead out of the pod.

use kubewright_apimachinery::json::go_quote;
use serde_json::Value;

use super::{Pod, Values, Violation, containers, counted, quoted};
use crate::admission::{items, text};

const APP_ARMOR_PREFIX: &str = "container.apparmor.security.beta.kubernetes.io/";
const SECCOMP_ANNOTATION: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_PREFIX: &str = "container.seccomp.security.alpha.kubernetes.io/";
/// What container runtimes give by themselves.
const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const SE_LINUX_TYPES: [&str; 4] = ["", "container_t", "container_init_t", "container_kvm_t"];
/// Kernel parameters that concern the pod alone, and the version that learned of each.
const SYSCTLS: [(&str, i64); 12] = [
    ("kernel.shm_rmid_forced", 0),
    ("net.ipv4.ip_local_port_range", 0),
    ("net.ipv4.tcp_syncookies", 0),
    ("net.ipv4.ping_group_range", 0),
    ("net.ipv4.ip_unprivileged_port_start", 0),
    ("net.ipv4.ip_local_reserved_ports", 27),
    ("net.ipv4.tcp_keepalive_time", 29),
    ("net.ipv4.tcp_fin_timeout", 29),
    ("net.ipv4.tcp_keepalive_intvl", 29),
    ("net.ipv4.tcp_keepalive_probes", 29),
    ("net.ipv4.tcp_rmem", 32),
    ("net.ipv4.tcp_wmem", 32),
];

pub(super) fn app_armor(pod: &Pod<'_>) -> Option<Violation> {
    let mut values = Values::new();
    let setters = pod.setters(|context| {
        sets_other(&context["appArmorProfile"], &["RuntimeDefault", "Localhost"], &mut values)
    });
    let is_allowed =
        |value: &str| matches!(value, "" | "runtime/default") || value.starts_with("localhost/");
    let annotations = pod.annotations.as_object().into_iter().flatten();
    let mut annotations: Vec<String> = annotations
        .filter(|(key, value)| key.starts_with(APP_ARMOR_PREFIX) && !is_allowed(text(value)))
        .map(|(key, value)| format!("{key}={}", go_quote(text(value))))
        .collect();
    annotations.sort();
    let mut names = setters.names();
    if !annotations.is_empty() {
        names.push(counted(annotations.len(), "annotation", "annotations").to_owned());
    }
    let values: Vec<String> = values.into_iter().chain(annotations).collect();
    (!names.is_empty()).then(|| Violation {
        reason: counted(values.len(), "forbidden AppArmor profile", "forbidden AppArmor profiles"),
        detail: format!(
            "{} must not set AppArmor profile type to {}",
            names.join(" and "),
            quoted(&values)
        ),
    })
}

pub(super) fn capabilities(pod: &Pod<'_>) -> Option<Violation> {
    let mut added = Values::new();
    let wrong = pod.wrong(|container| {
        let adds = items(&container["securityContext"]["capabilities"]["add"]).iter().map(text);
        let adds = adds.filter(|capability| !CAPABILITIES.contains(capability));
        insert_all(&mut added, adds)
    });
    (!wrong.is_empty()).then(|| Violation {
        reason: "non-default capabilities",
        detail: format!(
            "{} must not include {} in securityContext.capabilities.add",
            containers(&wrong),
            quoted(&added)
        ),
    })
}

pub(super) fn host_namespaces(pod: &Pod<'_>) -> Option<Violation> {
    let shared = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    let shared: Vec<String> = shared
        .filter(|field| pod.spec[field] == true)
        .map(|field| format!("{field}=true"))
        .collect();
    (!shared.is_empty()).then(|| Violation { reason: "host namespaces", detail: shared.join(", ") })
}

pub(super) fn host_paths(pod: &Pod<'_>) -> Option<Violation> {
    let volumes = items(&pod.spec["volumes"]).iter();
    let wrong: Vec<&str> = volumes
        .filter(|volume| !volume["hostPath"].is_null())
        .map(|volume| text(&volume["name"]))
        .collect();
    (!wrong.is_empty()).then(|| Violation {
        reason: "hostPath volumes",
        detail: format!("{} {}", counted(wrong.len(), "volume", "volumes"), quoted(&wrong)),
    })
}

pub(super) fn host_ports(pod: &Pod<'_>) -> Option<Violation> {
    let mut ports = Values::new();
    let wrong = pod.wrong(|container| {
        let numbers = items(&container["ports"]).iter();
        let numbers = numbers.filter_map(|port| port["hostPort"].as_i64());
        insert_all(&mut ports, numbers.filter(|number| *number != 0).map(|port| port.to_string()))
    });
    (!wrong.is_empty()).then(|| Violation {
        reason: "hostPort",
        detail: format!(
            "{} {} {} {}",
            containers(&wrong),
            counted(wrong.len(), "uses", "use"),
            counted(ports.len(), "hostPort", "hostPorts"),
            ports.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        ),
    })
}

/// A probe of another host is a request that the node makes for the pod.
pub(super) fn probe_hosts(pod: &Pod<'_>) -> Option<Violation> {
    let mut hosts = Values::new();
    let mut wrong = pod.wrong(|container| {
        let handlers = [
            &container["livenessProbe"],
            &container["readinessProbe"],
            &container["startupProbe"],
            &container["lifecycle"]["postStart"],
            &container["lifecycle"]["preStop"],
        ];
        let found = handlers
            .into_iter()
            .flat_map(|handler| [&handler["httpGet"]["host"], &handler["tcpSocket"]["host"]]);
        insert_all(&mut hosts, found.map(text).filter(|host| !host.is_empty()))
    });
    wrong.sort_unstable();
    wrong.dedup();
    (!wrong.is_empty()).then(|| Violation {
        reason: "probe or lifecycle host",
        detail: format!(
            "{} {} {} {}",
            containers(&wrong),
            counted(wrong.len(), "uses", "use"),
            counted(hosts.len(), "probe or lifecycle host", "probe or lifecycle hosts"),
            quoted(&hosts)
        ),
    })
}

pub(super) fn privileged(pod: &Pod<'_>) -> Option<Violation> {
    let wrong = pod.wrong(|container| container["securityContext"]["privileged"] == true);
    (!wrong.is_empty()).then(|| Violation {
        reason: "privileged",
        detail: format!("{} must not set securityContext.privileged=true", containers(&wrong)),
    })
}

pub(super) fn proc_mount(pod: &Pod<'_>) -> Option<Violation> {
    match pod.is_excused_by_user_namespace() {
        true => None,
        false => super::restricted::proc_mount(pod),
    }
}

pub(super) fn se_linux(pod: &Pod<'_>) -> Option<Violation> {
    let is_allowed =
        |ty| SE_LINUX_TYPES.contains(&ty) || (pod.minor >= 31 && ty == "container_engine_t");
    let mut types = Values::new();
    let (mut sets_user, mut sets_role) = (false, false);
    let setters = pod.setters(|context| {
        let options = &context["seLinuxOptions"];
        let [ty, user, role] = ["type", "user", "role"].map(|field| text(&options[field]));
        sets_user |= !user.is_empty();
        sets_role |= !role.is_empty();
        let sets_type = !is_allowed(ty);
        if sets_type {
            types.insert(ty.to_owned());
        }
        sets_type || !user.is_empty() || !role.is_empty()
    });
    let types = (!types.is_empty())
        .then(|| format!("{} {}", counted(types.len(), "type", "types"), quoted(&types)));
    let user = sets_user.then(|| "user may not be set".to_owned());
    let role = sets_role.then(|| "role may not be set".to_owned());
    let wrong: Vec<String> = [types, user, role].into_iter().flatten().collect();
    (!setters.is_empty()).then(|| Violation {
        reason: "seLinuxOptions",
        detail: format!(
            "{setters} set forbidden securityContext.seLinuxOptions: {}",
            wrong.join("; ")
        ),
    })
}

/// Where profiles were named before there was a field.
pub(super) fn seccomp_annotations(pod: &Pod<'_>) -> Option<Violation> {
    let names = pod.containers().map(|container| text(&container["name"]));
    let keys = names.map(|name| format!("{SECCOMP_PREFIX}{name}"));
    let keys = std::iter::once(SECCOMP_ANNOTATION.to_owned()).chain(keys);
    let is_allowed = |value: &str| {
        matches!(value, "runtime/default" | "docker/default") || value.starts_with("localhost/")
    };
    let forbidden: Values = keys
        .filter_map(|key| Some((pod.annotations.get(&key).map(text)?, key)))
        .filter(|(value, _)| !is_allowed(value))
        .map(|(value, key)| format!("{key}={}", go_quote(value)))
        .collect();
    (!forbidden.is_empty()).then(|| Violation {
        reason: "seccompProfile",
        detail: format!(
            "forbidden {} {}",
            counted(forbidden.len(), "annotation", "annotations"),
            forbidden.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
        ),
    })
}

/// A profile must be one; there need not be any.
pub(super) fn seccomp(pod: &Pod<'_>) -> Option<Violation> {
    let mut values = Values::new();
    let setters = pod.setters(|context| {
        sets_other(&context["seccompProfile"], &["Localhost", "RuntimeDefault"], &mut values)
    });
    (!setters.is_empty()).then(|| Violation {
        reason: "seccompProfile",
        detail: format!(
            "{setters} must not set securityContext.seccompProfile.type to {}",
            quoted(&values)
        ),
    })
}

pub(super) fn sysctls(pod: &Pod<'_>) -> Option<Violation> {
    let is_allowed =
        |name: &str| SYSCTLS.iter().any(|(known, since)| *known == name && *since <= pod.minor);
    let sysctls = items(&pod.spec["securityContext"]["sysctls"]).iter();
    let wrong: Vec<&str> =
        sysctls.map(|sysctl| text(&sysctl["name"])).filter(|name| !is_allowed(name)).collect();
    (!wrong.is_empty()).then(|| Violation { reason: "forbidden sysctls", detail: wrong.join(", ") })
}

pub(super) fn windows_host_process(pod: &Pod<'_>) -> Option<Violation> {
    let setters = pod.setters(|context| context["windowsOptions"]["hostProcess"] == true);
    (!setters.is_empty()).then(|| Violation {
        reason: "hostProcess",
        detail: format!("{setters} must not set securityContext.windowsOptions.hostProcess=true"),
    })
}

/// Whether there is a profile of another type than these, which is then noted.
fn sets_other(profile: &Value, types: &[&str], found: &mut Values) -> bool {
    let ty = text(&profile["type"]);
    let is_other = !profile.is_null() && !types.contains(&ty);
    if is_other {
        found.insert(ty.to_owned());
    }
    is_other
}

/// Notes values, and tells whether there were any.
fn insert_all<T: Into<String>>(values: &mut Values, more: impl Iterator<Item = T>) -> bool {
    more.fold(false, |_, value| {
        values.insert(value.into());
        true
    })
}
