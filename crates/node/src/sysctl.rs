//! Which settings of the kernel a pod may have: those that are its own, and do nothing to others.
//! Pure, in the words of upstream's kubelet.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::Pod;

/// What a setting is one of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Space {
    Ipc,
    Net,
}

/// Any kernel that runs containers has them.
const SAFE: [(&str, Space); 12] = [
    ("kernel.shm_rmid_forced", Space::Ipc),
    ("net.ipv4.ip_local_port_range", Space::Net),
    ("net.ipv4.tcp_syncookies", Space::Net),
    ("net.ipv4.ping_group_range", Space::Net),
    ("net.ipv4.ip_unprivileged_port_start", Space::Net),
    ("net.ipv4.ip_local_reserved_ports", Space::Net),
    ("net.ipv4.tcp_keepalive_time", Space::Net),
    ("net.ipv4.tcp_fin_timeout", Space::Net),
    ("net.ipv4.tcp_keepalive_intvl", Space::Net),
    ("net.ipv4.tcp_keepalive_probes", Space::Net),
    ("net.ipv4.tcp_rmem", Space::Net),
    ("net.ipv4.tcp_wmem", Space::Net),
];

/// Why a pod may not have what it asks for, if it may not.
pub(crate) fn refusal(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let wanted = spec.security_context.as_ref()?.sysctls.as_ref()?;
    let refusals = wanted.iter().filter_map(|wanted| {
        let name = normal(&wanted.name);
        let Some((_, space)) = SAFE.iter().find(|(safe, _)| *safe == name) else {
            return Some(format!("forbidden sysctl: {name:?} not allowlisted"));
        };
        let (of_host, space) = match space {
            Space::Ipc => (spec.host_ipc, "IPC"),
            Space::Net => (spec.host_network, "Net"),
        };
        let why = format!("forbidden sysctl: {name:?} not allowed with host {space} enabled");
        (of_host == Some(true)).then_some(why)
    });
    refusals.into_iter().next()
}

/// A name with dots between its parts. Whoever begins with slashes means dots by them, and slashes by
/// dots.
pub(crate) fn normal(name: &str) -> String {
    match name.find(['.', '/']).map(|at| name.as_bytes()[at]) {
        Some(b'/') => {
            let swapped = |letter| match letter {
                '.' => '/',
                '/' => '.',
                letter => letter,
            };
            name.chars().map(swapped).collect()
        }
        _ => name.to_owned(),
    }
}
