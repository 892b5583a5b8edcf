//! What is wrong with a pod. Decides only.

#[cfg(test)]
mod tests;

use k8s_openapi::api::core::v1::{
    Container, ContainerPort, Pod, PodSecurityContext, Probe, SecurityContext,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright::webhook::Cause;

use crate::image::{AllowList, qualified};

/// All that is wrong, in the order of the fields: images that are not allowed, and fields that
/// contradict each other and that the server lets through.
pub fn faults(pod: &Pod, allowed: &AllowList) -> Vec<Cause> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut faults = Vec::new();
    let above = spec.security_context.as_ref();
    for (i, container) in spec.init_containers.iter().flatten().enumerate() {
        let judged = Judged::of(container, format!("spec.initContainers[{i}]"));
        judged.judge(allowed, above, &mut faults);
    }
    for (i, container) in spec.containers.iter().enumerate() {
        let judged = Judged::of(container, format!("spec.containers[{i}]"));
        judged.judge(allowed, above, &mut faults);
    }
    for (i, container) in spec.ephemeral_containers.iter().flatten().enumerate() {
        let judged = Judged {
            path: format!("spec.ephemeralContainers[{i}]"),
            image: container.image.as_deref(),
            pull_policy: container.image_pull_policy.as_deref(),
            security: container.security_context.as_ref(),
            // They have neither.
            ports: &[],
            probes: [None; 3],
        };
        judged.judge(allowed, above, &mut faults);
    }
    faults
}

/// What all kinds of containers have in common.
struct Judged<'a> {
    path: String,
    image: Option<&'a str>,
    pull_policy: Option<&'a str>,
    security: Option<&'a SecurityContext>,
    ports: &'a [ContainerPort],
    probes: [Option<&'a Probe>; 3],
}

impl<'a> Judged<'a> {
    fn of(container: &'a Container, path: String) -> Self {
        Judged {
            path,
            image: container.image.as_deref(),
            pull_policy: container.image_pull_policy.as_deref(),
            security: container.security_context.as_ref(),
            ports: container.ports.as_deref().unwrap_or_default(),
            probes: [
                container.liveness_probe.as_ref(),
                container.readiness_probe.as_ref(),
                container.startup_probe.as_ref(),
            ],
        }
    }

    fn judge(
        &self,
        allowed: &AllowList,
        above: Option<&PodSecurityContext>,
        faults: &mut Vec<Cause>,
    ) {
        faults.extend(self.image(allowed));
        faults.extend(self.pull_policy());
        faults.extend(self.user(above));
        faults.extend(self.probed_ports());
    }

    fn image(&self, allowed: &AllowList) -> Option<Cause> {
        let image = self.image.filter(|image| !allowed.has(image))?;
        let detail = format!("is not allowed: take one from {}", allowed.text());
        Some(Cause::invalid(format!("{}.image", self.path), image, &detail))
    }

    /// Nodes would run different images under one name, each the one that was the latest when it
    /// came there.
    fn pull_policy(&self) -> Option<Cause> {
        let image = qualified(self.image?);
        let is_latest = image.ends_with(":latest");
        let policy = self.pull_policy.filter(|policy| is_latest && *policy != "Always")?;
        let detail = "an image without a tag, or tagged latest, must always be pulled: give it a \
                      tag, or set Always";
        Some(Cause::invalid(format!("{}.imagePullPolicy", self.path), policy, detail))
    }

    /// The kubelet would find out, and never start it.
    fn user(&self, above: Option<&PodSecurityContext>) -> Option<Cause> {
        let own = self.security;
        let is_not_root = own.and_then(|own| own.run_as_non_root);
        let is_not_root = is_not_root.or(above.and_then(|above| above.run_as_non_root));
        let user = own.and_then(|own| own.run_as_user);
        let user = user.or(above.and_then(|above| above.run_as_user));
        (is_not_root == Some(true) && user == Some(0)).then(|| {
            let field = format!("{}.securityContext.runAsUser", self.path);
            let detail = "is root, and runAsNonRoot is true: set another user, or runAsNonRoot to \
                          false";
            Cause::invalid(field, 0, detail)
        })
    }

    /// A probe of a port that has no such name fails for ever.
    fn probed_ports(&self) -> Vec<Cause> {
        let probes =
            ["livenessProbe", "readinessProbe", "startupProbe"].into_iter().zip(self.probes);
        let is_known =
            |name: &str| self.ports.iter().any(|port| port.name.as_deref() == Some(name));
        let check = |(field, probe): (&str, Option<&Probe>)| {
            let (action, port) = probed(probe?)?;
            let IntOrString::String(name) = port else { return None };
            let field = format!("{}.{field}.{action}.port", self.path);
            let detail = "is the name of none of the container's ports: add it to ports, or give \
                          its number";
            (!is_known(name)).then(|| Cause::invalid(field, name.as_str(), detail))
        };
        probes.filter_map(check).collect()
    }
}

/// The port that a probe asks, and how.
fn probed(probe: &Probe) -> Option<(&'static str, &IntOrString)> {
    let http = probe.http_get.as_ref().map(|http| ("httpGet", &http.port));
    http.or_else(|| probe.tcp_socket.as_ref().map(|tcp| ("tcpSocket", &tcp.port)))
}
