//! Whom a signer signs for, and for how long.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;

use super::request::Request;

pub(super) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(super) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
const LEGACY: &str = "kubernetes.io/legacy-unknown";

/// What is signed lasts a year, if nobody asks for less.
const LIFETIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);
const LIFETIME_MIN: Duration = Duration::from_secs(10 * 60);

/// What a signer makes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is for another signer.
    NotOurs,
    Sign,
    /// Why it is not signed.
    Refuse(String),
}

/// Judges a request that is approved.
pub(super) fn judge(signer: &str, usages: &[String], request: &Request) -> Verdict {
    let fault = match signer {
        KUBELET_SERVING => serving_fault(usages, request),
        KUBELET_CLIENT => client_fault(usages, request),
        CLIENT => usage_fault(usages),
        LEGACY => None,
        _ => return Verdict::NotOurs,
    };
    fault.map_or(Verdict::Sign, Verdict::Refuse)
}

/// By what right a request approves itself, and in which words; the narrower first.
pub(super) fn self_approval(
    asked: &CertificateSigningRequest,
    request: &Request,
) -> Vec<(&'static str, &'static str)> {
    let usages = asked.spec.usages.clone().unwrap_or_default();
    let is_node =
        asked.spec.signer_name == KUBELET_CLIENT && client_fault(&usages, request).is_none();
    let is_self = asked.spec.username.as_ref() == Some(&request.common_name);
    let own = (
        "selfnodeclient",
        "Auto approving self kubelet client certificate after SubjectAccessReview.",
    );
    let any =
        ("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.");
    match (is_node, is_self) {
        (true, true) => vec![own, any],
        (true, false) => vec![any],
        (false, _) => Vec::new(),
    }
}

/// How long a certificate lasts that is asked for so long.
pub(super) fn lifetime(seconds: Option<i32>) -> Duration {
    let asked =
        seconds.map(|seconds| Duration::from_secs(u64::try_from(seconds).unwrap_or_default()));
    asked.map_or(LIFETIME, |asked| asked.clamp(LIFETIME_MIN, LIFETIME))
}

fn client_fault(usages: &[String], request: &Request) -> Option<String> {
    let fault = match request {
        it if it.organizations != ["system:nodes"] => "subject organization is not system:nodes",
        it if it.dns_names > 0 => "DNS subjectAltNames are not allowed",
        it if it.emails > 0 => "Email subjectAltNames are not allowed",
        it if it.addresses > 0 => "IP subjectAltNames are not allowed",
        it if it.uris > 0 => "URI subjectAltNames are not allowed",
        it if !it.common_name.starts_with("system:node:") => {
            "subject common name does not begin with system:node:"
        }
        _ => return usages_fault(usages, "client auth"),
    };
    Some(fault.to_owned())
}

fn serving_fault(usages: &[String], request: &Request) -> Option<String> {
    let fault = match request {
        it if it.organizations != ["system:nodes"] => "subject organization is not system:nodes",
        it if it.dns_names == 0 && it.addresses == 0 => "DNS or IP subjectAltName is required",
        it if it.emails > 0 => "Email subjectAltNames are not allowed",
        it if it.uris > 0 => "URI subjectAltNames are not allowed",
        it => {
            let named = it.common_name.starts_with("system:node:");
            let unnamed = "subject common name does not begin with system:node:".to_owned();
            return usages_fault(usages, "server auth").or((!named).then_some(unnamed));
        }
    };
    Some(fault.to_owned())
}

/// A node's key is for signing and for one purpose; if it is of RSA, for encryption too.
fn usages_fault(usages: &[String], purpose: &str) -> Option<String> {
    let found: BTreeSet<&str> = usages.iter().map(String::as_str).collect();
    let least = BTreeSet::from(["digital signature", purpose]);
    let most = BTreeSet::from(["digital signature", "key encipherment", purpose]);
    let list = |set: &BTreeSet<&str>| set.iter().copied().collect::<Vec<_>>().join(" ");
    (found != least && found != most).then(|| format!("usages did not match [{}]", list(&most)))
}

fn usage_fault(usages: &[String]) -> Option<String> {
    let is_known = |usage: &&String| {
        matches!(usage.as_str(), "digital signature" | "key encipherment" | "client auth")
    };
    if let Some(strange) = usages.iter().find(|usage| !is_known(usage)) {
        return Some(format!("invalid usage for client certificate: {strange}"));
    }
    let is_client = usages.iter().any(|usage| usage == "client auth");
    (!is_client).then(|| "missing required usage for client certificate: client auth".to_owned())
}
