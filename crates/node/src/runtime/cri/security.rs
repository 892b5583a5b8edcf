//! What containers may do: the security contexts of a pod and its container, as one.

#[cfg(test)]
mod tests;

use std::path::Path;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, Container, Pod, PodSecurityContext, SELinuxOptions, SeccompProfile,
    SecurityContext,
};

use super::api::security_profile::ProfileType;
use super::api::{
    Capability, Image, Int64Value, LinuxContainerSecurityContext, LinuxSandboxSecurityContext,
    NamespaceMode, NamespaceOption, SeLinuxOption, SecurityProfile,
};
use crate::runtime::names::is_on_host_network;
use crate::runtime::supply::namespace;

/// What nobody but the privileged should read or write of the kernel's own files.
const MASKED: [&str; 12] = [
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
];
const READ_ONLY: [&str; 5] =
    ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// What applies to the sandbox of a pod.
pub(super) fn of_sandbox(pod: &Pod) -> LinuxSandboxSecurityContext {
    let context = of_pod(pod);
    let spec = pod.spec.as_ref();
    let containers = spec
        .into_iter()
        .flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let is_privileged = |container: &Container| {
        container.security_context.as_ref().is_some_and(|it| it.privileged == Some(true))
    };
    LinuxSandboxSecurityContext {
        namespace_options: Some(namespaces(pod, None)),
        selinux_options: context.and_then(|it| it.se_linux_options.as_ref()).map(selinux),
        run_as_user: context.and_then(|it| it.run_as_user).map(number),
        run_as_group: context.and_then(|it| it.run_as_group).map(number),
        readonly_rootfs: false,
        supplemental_groups: groups(context),
        privileged: containers.into_iter().any(is_privileged),
        seccomp: Some(profile(ProfileType::RuntimeDefault)),
    }
}

/// What applies to a container, whose image says whom it runs as if nobody else does. `target` is
/// the container whose processes it shares, `profiles` is where the node's own profiles of seccomp
/// are.
///
/// # Errors
/// If it would run as root and must not, or a profile is not named.
pub(super) fn of_container(
    pod: &Pod,
    container: &Container,
    image: &Image,
    target: Option<String>,
    profiles: &Path,
) -> Result<LinuxContainerSecurityContext, String> {
    let nothing = SecurityContext::default();
    let own = container.security_context.as_ref().unwrap_or(&nothing);
    let pods = of_pod(pod);
    let user = own.run_as_user.or(pods.and_then(|it| it.run_as_user));
    let must_not = own.run_as_non_root.or(pods.and_then(|it| it.run_as_non_root)) == Some(true);
    if must_not {
        refuse_root(pod, container, user, image)?;
    }
    let of_image = image.uid.as_ref().map(|uid| uid.value);
    let seccomp = own.seccomp_profile.as_ref().or(pods.and_then(|it| it.seccomp_profile.as_ref()));
    let apparmor =
        own.app_armor_profile.as_ref().or(pods.and_then(|it| it.app_armor_profile.as_ref()));
    let options =
        own.se_linux_options.as_ref().or(pods.and_then(|it| it.se_linux_options.as_ref()));
    let is_unmasked = own.proc_mount.as_deref() == Some("Unmasked");
    let paths = |paths: &[&str]| match is_unmasked {
        true => Vec::new(),
        false => paths.iter().map(|path| (*path).to_owned()).collect(),
    };
    Ok(LinuxContainerSecurityContext {
        capabilities: own.capabilities.as_ref().map(|it| Capability {
            add_capabilities: it.add.clone().unwrap_or_default(),
            drop_capabilities: it.drop.clone().unwrap_or_default(),
        }),
        privileged: own.privileged == Some(true),
        namespace_options: Some(namespaces(pod, target)),
        selinux_options: options.map(selinux),
        run_as_user: user.or(of_image).map(number),
        run_as_username: match user {
            None => image.username.clone(),
            Some(_) => String::new(),
        },
        run_as_group: own.run_as_group.or(pods.and_then(|it| it.run_as_group)).map(number),
        readonly_rootfs: own.read_only_root_filesystem == Some(true),
        supplemental_groups: groups(pods),
        no_new_privs: own.allow_privilege_escalation == Some(false),
        masked_paths: paths(&MASKED),
        readonly_paths: paths(&READ_ONLY),
        seccomp: Some(match seccomp {
            Some(seccomp) => seccomp_profile(seccomp, profiles)?,
            None => profile(ProfileType::Unconfined),
        }),
        apparmor: apparmor.map(apparmor_profile),
    })
}

fn refuse_root(
    pod: &Pod,
    container: &Container,
    user: Option<i64>,
    image: &Image,
) -> Result<(), String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let uid = pod.metadata.uid.as_deref().unwrap_or_default();
    let place =
        format!("(pod: \"{name}_{}({uid})\", container: {})", namespace(pod), container.name);
    let of_image = image.uid.as_ref().map(|uid| uid.value);
    match (user.or(of_image), user.is_some()) {
        (Some(0), true) => Err(format!("container's runAsUser breaks non-root policy {place}")),
        (Some(0), false) => {
            Err(format!("container has runAsNonRoot and image will run as root {place}"))
        }
        (None, _) if !image.username.is_empty() => Err(format!(
            "container has runAsNonRoot and image has non-numeric user ({}), cannot verify user is \
             non-root {place}",
            image.username
        )),
        _ => Ok(()),
    }
}

/// What a pod shares with its node, and its containers with each other.
pub(super) fn namespaces(pod: &Pod, target: Option<String>) -> NamespaceOption {
    let spec = pod.spec.as_ref();
    let is = |flag: Option<bool>| flag == Some(true);
    let or_pod = |is_node: bool| match is_node {
        true => NamespaceMode::Node,
        false => NamespaceMode::Pod,
    };
    let pid = match spec {
        Some(spec) if is(spec.host_pid) => NamespaceMode::Node,
        Some(spec) if is(spec.share_process_namespace) => NamespaceMode::Pod,
        _ if target.is_some() => NamespaceMode::Target,
        _ => NamespaceMode::Container,
    };
    NamespaceOption {
        network: or_pod(is_on_host_network(pod)).into(),
        pid: pid.into(),
        ipc: or_pod(spec.is_some_and(|spec| is(spec.host_ipc))).into(),
        target_id: target.filter(|_| pid == NamespaceMode::Target).unwrap_or_default(),
    }
}

fn of_pod(pod: &Pod) -> Option<&PodSecurityContext> {
    pod.spec.as_ref()?.security_context.as_ref()
}

fn groups(context: Option<&PodSecurityContext>) -> Vec<i64> {
    let own = context.and_then(|it| it.supplemental_groups.clone()).unwrap_or_default();
    context.and_then(|it| it.fs_group).into_iter().chain(own).collect()
}

fn selinux(options: &SELinuxOptions) -> SeLinuxOption {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    SeLinuxOption {
        user: text(&options.user),
        role: text(&options.role),
        r#type: text(&options.type_),
        level: text(&options.level),
    }
}

/// A profile of the node itself is named by where it is below its root, and the runtime is told the
/// whole path.
fn seccomp_profile(wanted: &SeccompProfile, profiles: &Path) -> Result<SecurityProfile, String> {
    let localhost = wanted.localhost_profile.as_deref().filter(|localhost| !localhost.is_empty());
    let path = localhost.map(|localhost| profiles.join(localhost).to_string_lossy().into_owned());
    if wanted.type_ == "Localhost" && path.is_none() {
        return Err("localhostProfile must be set if seccompProfile type is Localhost.".to_owned());
    }
    Ok(named_profile(&wanted.type_, path.as_deref()))
}

fn apparmor_profile(wanted: &AppArmorProfile) -> SecurityProfile {
    named_profile(&wanted.type_, wanted.localhost_profile.as_deref())
}

fn named_profile(type_: &str, localhost: Option<&str>) -> SecurityProfile {
    match type_ {
        "RuntimeDefault" => profile(ProfileType::RuntimeDefault),
        "Localhost" => SecurityProfile {
            localhost_ref: localhost.unwrap_or_default().to_owned(),
            ..profile(ProfileType::Localhost)
        },
        _ => profile(ProfileType::Unconfined),
    }
}

fn profile(type_: ProfileType) -> SecurityProfile {
    SecurityProfile { profile_type: type_.into(), localhost_ref: String::new() }
}

fn number(value: i64) -> Int64Value {
    Int64Value { value }
}
