//! What is special about pods on Windows.

use std::sync::LazyLock;

use k8s_openapi::api::core::v1::{PodSpec, WindowsSecurityContextOptions};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::regex::Regex;

use crate::kinds::check;
use crate::kinds::pod_spec::validate::each_container;

const CREDENTIAL_SPEC_BYTES_MAX: usize = 64 << 10;
/// A domain must be shorter than this.
const DOMAIN_BYTES_LIMIT: usize = 256;
const USER_BYTES_MAX: usize = 104;

static NET_BIOS: LazyLock<Regex> =
    LazyLock::new(|| regex(r#"^[^\\/:\*\?"<>|\.][^\\/:\*\?"<>|]{0,14}$"#));
static DNS: LazyLock<Regex> = LazyLock::new(|| {
    let label = "[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?";
    regex(&format!(r"^{label}(?:\.{label})*$"))
});

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a constant pattern")
}

pub(super) fn options(
    options: Option<&WindowsSecurityContextOptions>,
    path: &Path<'_>,
) -> Vec<Error> {
    let Some(options) = options else { return Vec::new() };
    let mut errors = Vec::new();
    if let Some(spec) = &options.gmsa_credential_spec_name {
        let path = path.child("gmsaCredentialSpecName");
        errors.extend(check::dns_subdomain(&path, spec));
    }
    if let Some(spec) = options.gmsa_credential_spec.as_deref() {
        let problem = match spec.len() {
            0 => Some("gmsaCredentialSpec cannot be an empty string"),
            1..=CREDENTIAL_SPEC_BYTES_MAX => None,
            _ => Some("gmsaCredentialSpec size must be under 64 KiB"),
        };
        let path = path.child("gmsaCredentialSpec");
        errors.extend(problem.map(|problem| Error::invalid(&path, spec, problem)));
    }
    if let Some(user) = options.run_as_user_name.as_deref() {
        let path = path.child("runAsUserName");
        errors.extend(check::invalid(&path, user, user_problems(user)));
    }
    errors
}

/// A user, or a domain, a backslash and a user.
fn user_problems(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["runAsUserName cannot be an empty string".to_owned()];
    }
    if name.chars().any(|c| c.is_ascii_control()) {
        return vec!["runAsUserName cannot contain control characters".to_owned()];
    }
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec!["runAsUserName cannot contain more than one backslash".to_owned()],
    };
    let mut problems = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= DOMAIN_BYTES_LIMIT) {
        problems.push(format!(
            "runAsUserName's Domain length must be under {DOMAIN_BYTES_LIMIT} characters"
        ));
    }
    if domain.is_some_and(|domain| !NET_BIOS.is_match(domain) && !DNS.is_match(domain)) {
        let problem = "runAsUserName's Domain doesn't match the NetBios nor the DNS format";
        problems.push(problem.to_owned());
    }
    if user.is_empty() {
        problems.push("runAsUserName's User cannot be empty".to_owned());
    } else if user.len() > USER_BYTES_MAX {
        problems.push(format!(
            "runAsUserName's User length must not be longer than {USER_BYTES_MAX} characters"
        ));
    }
    if !user.is_empty() && user.chars().all(|c| matches!(c, '.' | ' ')) {
        let problem = "runAsUserName's User cannot contain only periods or spaces";
        problems.push(problem.to_owned());
    }
    if user
        .contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']'])
    {
        problems.push(
            "runAsUserName's User cannot contain the following characters: \"/\\:;|=,+*?<>@[]"
                .to_owned(),
        );
    }
    problems
}

pub(super) fn host_processes(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    let context = spec.security_context.as_ref();
    let of_pod = context.and_then(|c| c.windows_options.as_ref()).and_then(|w| w.host_process);
    let (mut count, mut host_count) = (0, 0);
    let mut errors = Vec::new();
    each_container(spec, path, |container, path| {
        count += 1;
        let context = container.security_context.as_ref();
        let own = context.and_then(|c| c.windows_options.as_ref()).and_then(|w| w.host_process);
        if let (Some(of_pod), Some(own)) = (of_pod, own)
            && of_pod != own
        {
            let path = path.child("securityContext");
            let path = path.child("windowsOptions");
            let problem = format!(
                "pod hostProcess value must be identical if both are specified, was {of_pod}"
            );
            errors.push(Error::invalid(&path.child("hostProcess"), own, problem));
        }
        host_count += i32::from(own.or(of_pod) == Some(true));
    });
    if host_count > 0 {
        if host_count != count {
            let problem = "If pod contains any hostProcess containers then all containers must be \
                           HostProcess containers";
            errors.push(Error::invalid(path, "", problem));
        }
        if spec.host_network != Some(true) {
            let problem = "hostNetwork must be true if pod contains any hostProcess containers";
            errors.push(Error::invalid(&path.child("hostNetwork"), false, problem));
        }
    }
    errors
}

/// What Windows does not have.
pub(super) fn refuse(spec: &PodSpec, path: &Path<'_>) -> Vec<Error> {
    const REFUSED: &str = "cannot be set for a windows pod";
    let mut errors = Vec::new();
    let context_path = path.child("securityContext");
    if let Some(context) = &spec.security_context {
        let fields = [
            (&context_path, "appArmorProfile", context.app_armor_profile.is_some()),
            (&context_path, "seLinuxOptions", context.se_linux_options.is_some()),
            (path, "hostUsers", spec.host_users.is_some()),
            (path, "hostPID", spec.host_pid == Some(true)),
            (path, "hostIPC", spec.host_ipc == Some(true)),
            (&context_path, "seccompProfile", context.seccomp_profile.is_some()),
            (&context_path, "fsGroup", context.fs_group.is_some()),
            (&context_path, "fsGroupChangePolicy", context.fs_group_change_policy.is_some()),
            (&context_path, "sysctls", context.sysctls.is_some()),
            (path, "shareProcessNamespace", spec.share_process_namespace.is_some()),
            (&context_path, "runAsUser", context.run_as_user.is_some()),
            (&context_path, "runAsGroup", context.run_as_group.is_some()),
            (&context_path, "supplementalGroups", context.supplemental_groups.is_some()),
            (
                &context_path,
                "supplementalGroupsPolicy",
                context.supplemental_groups_policy.is_some(),
            ),
            (&context_path, "seLinuxChangePolicy", context.se_linux_change_policy.is_some()),
        ];
        let set = fields.iter().filter(|(_, _, is_set)| *is_set);
        errors.extend(set.map(|(path, name, _)| Error::forbidden(&path.child(name), REFUSED)));
    }
    each_container(spec, path, |container, path| {
        let Some(context) = &container.security_context else { return };
        let path = path.child("securityContext");
        let fields = [
            ("appArmorProfile", context.app_armor_profile.is_some()),
            ("seLinuxOptions", context.se_linux_options.is_some()),
            ("seccompProfile", context.seccomp_profile.is_some()),
            ("capabilities", context.capabilities.is_some()),
            ("readOnlyRootFilesystem", context.read_only_root_filesystem.is_some()),
            ("privileged", context.privileged.is_some()),
            ("allowPrivilegeEscalation", context.allow_privilege_escalation.is_some()),
            ("procMount", context.proc_mount.is_some()),
            ("runAsUser", context.run_as_user.is_some()),
            ("runAsGroup", context.run_as_group.is_some()),
        ];
        let set = fields.iter().filter(|(_, is_set)| *is_set);
        errors.extend(set.map(|(name, _)| Error::forbidden(&path.child(name), REFUSED)));
    });
    errors
}
