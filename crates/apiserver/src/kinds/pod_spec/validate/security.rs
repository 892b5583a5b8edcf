//! What containers may do on their node, and as whom.

mod sysctl;
mod windows;

use k8s_openapi::api::core::v1::{
    AppArmorProfile, Container, PodSpec, SeccompProfile, SecurityContext,
};
use kubewright_apimachinery::field::{Error, Path};
use serde_json::{Value, json};

use super::{Allowed, each_container, file};
use crate::kinds::check::{self, list};

pub(super) use sysctl::has_host_sysctls;

const ID_MAX: i64 = i32::MAX as i64;
const PROFILE_BYTES_MAX: usize = 4095;
const LOCALHOST: &str = "Localhost";
const PROFILE_TYPES: &[&str] = &[LOCALHOST, "RuntimeDefault", "Unconfined"];
const PROC_MOUNTS: &[&str] = &["Default", "Unmasked"];
const GROUP_CHANGE_POLICIES: &[&str] = &["Always", "OnRootMismatch"];
const SUPPLEMENTAL_GROUPS_POLICIES: &[&str] = &["Merge", "Strict"];
const SE_LINUX_CHANGE_POLICIES: &[&str] = &["MountOption", "Recursive"];

pub(super) fn of_pod(spec: &PodSpec, allowed: &Allowed, path: &Path<'_>) -> Vec<Error> {
    let Some(context) = &spec.security_context else { return Vec::new() };
    let mut errors = Vec::new();
    for (name, id) in [
        ("fsGroup", context.fs_group),
        ("runAsUser", context.run_as_user),
        ("runAsGroup", context.run_as_group),
    ] {
        errors.extend(id.and_then(|id| check::in_range(&path.child(name), id, 0, ID_MAX)));
    }
    let groups_path = path.child("supplementalGroups");
    for (index, id) in list(&context.supplemental_groups).iter().enumerate() {
        errors.extend(check::in_range(&groups_path.index(index), *id, 0, ID_MAX));
    }
    if spec.share_process_namespace == Some(true) && spec.host_pid == Some(true) {
        let problem = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(Error::invalid(&path.child("shareProcessNamespace"), true, problem));
    }
    errors.extend(sysctl::validate(spec, list(&context.sysctls), allowed, &path.child("sysctls")));
    if let Some(policy) = &context.fs_group_change_policy {
        let path = path.child("fsGroupChangePolicy");
        errors.extend(check::one_of(&path, policy, GROUP_CHANGE_POLICIES));
    }
    errors.extend(seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile")));
    let windows = context.windows_options.as_ref();
    errors.extend(windows::options(windows, &path.child("windowsOptions")));
    errors.extend(app_armor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile")));
    if let Some(policy) = &context.supplemental_groups_policy {
        let path = path.child("supplementalGroupsPolicy");
        errors.extend(check::one_of(&path, policy, SUPPLEMENTAL_GROUPS_POLICIES));
    }
    if let Some(policy) = &context.se_linux_change_policy {
        let known =
            if allowed.se_linux_policies { SE_LINUX_CHANGE_POLICIES } else { &["Recursive"] };
        errors.extend(check::one_of(&path.child("seLinuxChangePolicy"), policy, known));
    }
    errors
}

pub(super) fn of_container(
    context: &SecurityContext,
    host_users: Option<bool>,
    path: &Path<'_>,
) -> Vec<Error> {
    let mut errors = Vec::new();
    for (name, id) in [("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)] {
        errors.extend(id.and_then(|id| check::in_range(&path.child(name), id, 0, ID_MAX)));
    }
    if let Some(mount) = &context.proc_mount {
        let path = path.child("procMount");
        errors.extend(check::one_of(&path, mount, PROC_MOUNTS));
        if host_users != Some(false) && mount == "Unmasked" {
            let problem = "`hostUsers` must be false to use `Unmasked`";
            errors.push(Error::invalid(&path, mount.as_str(), problem));
        }
    }
    errors.extend(seccomp(context.seccomp_profile.as_ref(), &path.child("seccompProfile")));
    if context.allow_privilege_escalation == Some(false) {
        if context.privileged == Some(true) {
            let problem = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(Error::invalid(path, shown(context), problem));
        }
        let capabilities = context.capabilities.iter().flat_map(|c| list(&c.add));
        for _ in capabilities.filter(|capability| *capability == "CAP_SYS_ADMIN") {
            let problem = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` \
                           CAP_SYS_ADMIN";
            errors.push(Error::invalid(path, shown(context), problem));
        }
    }
    let windows = context.windows_options.as_ref();
    errors.extend(windows::options(windows, &path.child("windowsOptions")));
    errors.extend(app_armor(context.app_armor_profile.as_ref(), &path.child("appArmorProfile")));
    errors
}

/// Containers as processes of the host, which Windows has.
pub(super) fn of_host_processes(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    windows::host_processes(spec, path)
}

/// What only some systems know may only be asked of them.
pub(super) fn of_system(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let Some(os) = &spec.os else { return Vec::new() };
    let os_path = path.child("os");
    match os.name.as_str() {
        "" => vec![Error::required(&os_path.child("name"), "")],
        "linux" => on_linux(spec, path),
        "windows" => windows::refuse(spec, path),
        other => vec![Error::not_supported(&os_path, other, &["linux", "windows"])],
    }
}

/// In a user namespace of its own, a pod cannot share others with the host.
pub(super) fn of_user_namespace(spec: &PodSpec, allowed: &Allowed, path: &Path<'_>) -> Vec<Error> {
    const REFUSED: &str = "when `hostUsers` is false";
    if spec.host_users != Some(false) {
        return Vec::new();
    }
    let shared = [
        ("hostNetwork", spec.host_network),
        ("HostPID", spec.host_pid),
        ("HostIPC", spec.host_ipc),
    ];
    let shared = shared.iter().filter(|(_, is_shared)| *is_shared == Some(true));
    let mut errors: Vec<Error> =
        shared.map(|(name, _)| Error::forbidden(&path.child(name), REFUSED)).collect();
    if !allowed.devices_in_user_namespace {
        each_container(spec, path, |container, path| {
            if !list(&container.volume_devices).is_empty() {
                errors.push(Error::forbidden(&path.child("volumeDevices"), REFUSED));
            }
        });
    }
    errors
}

pub(in crate::kinds) fn app_armor(
    profile: Option<&AppArmorProfile>,
    path: &Path<'_>,
) -> Vec<Error> {
    let Some(profile) = profile else { return Vec::new() };
    let (type_path, file_path) = (path.child("type"), path.child("localhostProfile"));
    let file = profile.localhost_profile.as_deref();
    let mut errors = Vec::new();
    match profile.type_.as_str() {
        LOCALHOST => {
            let missing = "must be set when AppArmor type is Localhost";
            match file {
                None => errors.push(Error::required(&file_path, missing)),
                Some(file) if file.trim() != file => {
                    let problem = "must not be padded with whitespace";
                    errors.push(Error::invalid(&file_path, file, problem));
                }
                Some("") => errors.push(Error::required(&file_path, missing)),
                Some(_) => {}
            }
            if file.is_some_and(|file| file.len() > PROFILE_BYTES_MAX) {
                errors.push(Error::too_long(&file_path, PROFILE_BYTES_MAX));
            }
        }
        "RuntimeDefault" | "Unconfined" => {
            if let Some(file) = file {
                let problem = "can only be set when AppArmor type is Localhost";
                errors.push(Error::invalid(&file_path, file, problem));
            }
        }
        "" => {
            let problem = "type is required when appArmorProfile is set";
            errors.push(Error::required(&type_path, problem));
        }
        other => errors.push(Error::not_supported(&type_path, other, PROFILE_TYPES)),
    }
    errors
}

fn seccomp(profile: Option<&SeccompProfile>, path: &Path<'_>) -> Vec<Error> {
    let Some(profile) = profile else { return Vec::new() };
    let (type_path, file_path) = (path.child("type"), path.child("localhostProfile"));
    let mut errors = Vec::new();
    match profile.type_.as_str() {
        "" => {
            let problem = "type is required when seccompProfile is set";
            errors.push(Error::required(&type_path, problem));
        }
        kind => errors.extend(check::one_of(&type_path, kind, PROFILE_TYPES)),
    }
    match (&profile.localhost_profile, profile.type_.as_str()) {
        (None, LOCALHOST) => {
            let problem = "must be set when seccomp type is Localhost";
            errors.push(Error::required(&file_path, problem));
        }
        (Some(file), LOCALHOST) => errors.extend(file::descending(&file_path, file)),
        (Some(file), kind) => {
            let shown = json!({ "Type": kind, "LocalhostProfile": file });
            let problem = "can only be set when seccomp type is Localhost";
            errors.push(Error::invalid(&file_path, shown, problem));
        }
        (None, _) => {}
    }
    errors
}

fn on_linux(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    const REFUSED: &str = "windows options cannot be set for a linux pod";
    let mut errors = Vec::new();
    let context = spec.security_context.as_ref();
    if context.is_some_and(|context| context.windows_options.is_some()) {
        let path = path.child("securityContext");
        errors.push(Error::forbidden(&path.child("windowsOptions"), REFUSED));
    }
    each_container(spec, path, |container: &Container, path| {
        let context = container.security_context.as_ref();
        if context.is_some_and(|context| context.windows_options.is_some()) {
            let path = path.child("securityContext");
            errors.push(Error::forbidden(&path.child("windowsOptions"), REFUSED));
        }
    });
    errors
}

/// As upstream prints its own form of it, which is not that of any version.
fn shown(context: &SecurityContext) -> Value {
    let profile =
        |kind: &str, file: &Option<String>| json!({ "Type": kind, "LocalhostProfile": file });
    json!({
        "Capabilities": context.capabilities.as_ref().map(|capabilities| {
            json!({ "Add": capabilities.add, "Drop": capabilities.drop })
        }),
        "Privileged": context.privileged,
        "SELinuxOptions": context.se_linux_options.as_ref().map(|options| {
            let text = |value: &Option<String>| value.clone().unwrap_or_default();
            json!({
                "User": text(&options.user),
                "Role": text(&options.role),
                "Type": text(&options.type_),
                "Level": text(&options.level),
            })
        }),
        "WindowsOptions": context.windows_options.as_ref().map(|options| {
            json!({
                "GMSACredentialSpecName": options.gmsa_credential_spec_name,
                "GMSACredentialSpec": options.gmsa_credential_spec,
                "RunAsUserName": options.run_as_user_name,
                "HostProcess": options.host_process,
            })
        }),
        "RunAsUser": context.run_as_user,
        "RunAsGroup": context.run_as_group,
        "RunAsNonRoot": context.run_as_non_root,
        "ReadOnlyRootFilesystem": context.read_only_root_filesystem,
        "AllowPrivilegeEscalation": context.allow_privilege_escalation,
        "ProcMount": context.proc_mount,
        "SeccompProfile": context.seccomp_profile.as_ref()
            .map(|seccomp| profile(&seccomp.type_, &seccomp.localhost_profile)),
        "AppArmorProfile": context.app_armor_profile.as_ref()
            .map(|app_armor| profile(&app_armor.type_, &app_armor.localhost_profile)),
    })
}
