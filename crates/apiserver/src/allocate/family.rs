//! Which address families a Service has.

use std::fmt;

use k8s_openapi::api::core::v1::ServiceSpec;
use kubewright_apimachinery::field::{Error, Path};

use super::{Refusal, ips, kind, text};
use crate::kinds::{ip, service};

/// IPv4 or IPv6.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    V4,
    V6,
}

/// The families that the cluster has addresses for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Families {
    /// What a Service gets that does not say.
    pub primary: Family,
    pub has_both: bool,
}

impl Family {
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "IPv4" => Some(Family::V4),
            "IPv6" => Some(Family::V6),
            _ => None,
        }
    }

    pub fn of(ip: std::net::IpAddr) -> Self {
        if ip.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    pub fn other(self) -> Self {
        match self {
            Family::V4 => Family::V6,
            Family::V6 => Family::V4,
        }
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Families {
    pub fn single(family: Family) -> Self {
        Families { primary: family, has_both: false }
    }

    pub fn dual(primary: Family) -> Self {
        Families { primary, has_both: true }
    }

    fn has(self, family: Family) -> bool {
        self.has_both || self.primary == family
    }
}

/// Whether the families need no second thought: a Service that prefers both keeps what it has,
/// even when the cluster has meanwhile gained or lost a family.
pub(super) fn is_settled(new: &ServiceSpec, old: &ServiceSpec) -> bool {
    let prefers_both = |policy: Option<&str>| policy == Some("PreferDualStack");
    let old_policy = old.ip_family_policy.as_deref();
    kind(new) == kind(old)
        && matches!(kind(new), "ClusterIP" | "NodePort" | "LoadBalancer")
        && prefers_both(new.ip_family_policy.as_deref())
        && (old_policy.is_none() || prefers_both(old_policy))
        && ips(new) == ips(old)
        && families_of(new) == families_of(old)
}

/// Completes policy and families, from what they were and from what the cluster has.
pub(super) fn settle(
    spec: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
    cluster: Families,
) -> Result<(), Refusal> {
    if kind(spec) == "ExternalName" {
        return Ok(());
    }
    let is_free = text(spec.cluster_ip.as_ref()) == "None"
        && spec.selector.as_ref().is_none_or(|selector| selector.is_empty());
    if spec.ip_family_policy.is_none() {
        let old_policy = old.and_then(|old| old.ip_family_policy.clone());
        // Nobody knows the endpoints of a Service without addresses and without a selector, so
        // they may be of both families.
        let default = if is_free { "RequireDualStack" } else { "SingleStack" };
        spec.ip_family_policy = Some(old_policy.unwrap_or_else(|| default.to_owned()));
    }
    let errors = service::check_addresses(spec, old);
    if !errors.is_empty() {
        return Err(Refusal::Invalid(errors));
    }
    infer(spec, old, cluster)?;

    let has_one = families_of(spec).len() < 2;
    let wants_both = policy(spec) != "SingleStack";
    if is_free {
        let families = spec.ip_families.get_or_insert_default();
        if families.is_empty() {
            families.push(cluster.primary.to_string());
        }
        if has_one && wants_both {
            add_other(families);
        }
        return Ok(());
    }
    require(spec, cluster)?;
    let families = spec.ip_families.get_or_insert_default();
    if families.is_empty() {
        families.push(cluster.primary.to_string());
    }
    if wants_both && families.len() == 1 && cluster.has_both {
        add_other(families);
    }
    Ok(())
}

/// Drops the second of each when the Service is now to have one, and learns families from
/// addresses.
fn infer(
    spec: &mut ServiceSpec,
    old: Option<&ServiceSpec>,
    cluster: Families,
) -> Result<(), Refusal> {
    let at = Path::new("spec");
    let policy_at = at.child("ipFamilyPolicy");
    let refuse =
        |detail: &str, spec: &ServiceSpec| Error::invalid(&policy_at, policy(spec), detail);
    let mut errors = Vec::new();
    let is_single = policy(spec) == "SingleStack";
    if let Some(old) = old {
        if is_single {
            if ips(spec) == ips(old) {
                spec.cluster_ips.iter_mut().for_each(|list| list.truncate(1));
            }
            if families_of(spec) == families_of(old) {
                spec.ip_families.iter_mut().for_each(|list| list.truncate(1));
            }
        } else {
            let is_reduced =
                |new: &[String], old: &[String]| !new.is_empty() && new.len() < old.len();
            if is_reduced(ips(spec), ips(old)) {
                let detail = "must be 'SingleStack' to release the secondary cluster IP";
                errors.push(refuse(detail, spec));
            }
            if is_reduced(families_of(spec), families_of(old)) {
                let detail = "must be 'SingleStack' to release the secondary IP family";
                errors.push(refuse(detail, spec));
            }
        }
    }
    if is_single {
        let both = "must be 'RequireDualStack' or 'PreferDualStack' when multiple";
        if ips(spec).len() == 2 {
            errors.push(refuse(&format!("{both} cluster IPs are specified"), spec));
        }
        if families_of(spec).len() == 2 {
            errors.push(refuse(&format!("{both} IP families are specified"), spec));
        }
    }
    let ips = ips(spec).to_vec();
    let ips_at = at.child("clusterIPs");
    for (index, text) in ips.iter().enumerate().take_while(|(_, text)| *text != "None") {
        let Some(family) = ip::parse(text).map(Family::of) else { continue };
        if index < families_of(spec).len() {
            continue;
        }
        if cluster.has(family) {
            spec.ip_families.get_or_insert_default().push(family.to_string());
        } else {
            let detail = format!("{family} is not configured on this cluster");
            errors.push(Error::invalid(&ips_at.index(index), ips.clone(), detail));
        }
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Refusal::Invalid(errors)),
    }
}

/// The cluster must have what is asked for.
fn require(spec: &ServiceSpec, cluster: Families) -> Result<(), Refusal> {
    let at = Path::new("spec");
    let mut errors = Vec::new();
    if policy(spec) == "RequireDualStack" && !cluster.has_both {
        errors.push(Error::invalid(
            &at.child("ipFamilyPolicy"),
            policy(spec),
            "this cluster is not configured for dual-stack services",
        ));
    }
    let families_at = at.child("ipFamilies");
    for (index, family) in families_of(spec).iter().enumerate() {
        if !Family::named(family).is_some_and(|family| cluster.has(family)) {
            errors.push(Error::invalid(
                &families_at.index(index),
                family.as_str(),
                "not configured on this cluster",
            ));
        }
    }
    match errors.is_empty() {
        true => Ok(()),
        false => Err(Refusal::Invalid(errors)),
    }
}

/// Fills in policy and families of a Service that was stored before it had any.
pub(super) fn complete(spec: &mut ServiceSpec, cluster: Families) {
    if kind(spec) == "ExternalName" || !families_of(spec).is_empty() {
        return;
    }
    let primary = cluster.primary;
    let has_selector = spec.selector.as_ref().is_some_and(|selector| !selector.is_empty());
    let families: Vec<Family> = match text(spec.cluster_ip.as_ref()) {
        "None" if has_selector => vec![primary],
        "None" => vec![primary, primary.other()],
        _ => ips(spec).iter().filter_map(|text| ip::parse(text)).map(Family::of).collect(),
    };
    spec.ip_family_policy = match families.len() {
        1 => Some("SingleStack".to_owned()),
        2 => Some("RequireDualStack".to_owned()),
        _ => return,
    };
    spec.ip_families = Some(families.iter().map(Family::to_string).collect());
}

fn add_other(families: &mut Vec<String>) {
    if let Some(family) = Family::named(&families[0]) {
        families.push(family.other().to_string());
    }
}

fn policy(spec: &ServiceSpec) -> &str {
    text(spec.ip_family_policy.as_ref())
}

fn families_of(spec: &ServiceSpec) -> &[String] {
    spec.ip_families.as_deref().unwrap_or_default()
}
