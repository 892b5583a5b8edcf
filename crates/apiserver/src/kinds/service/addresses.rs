//! The linked fields of a Service's own addresses: `clusterIP`, `clusterIPs`, `ipFamilies` and
//! `ipFamilyPolicy`.

use k8s_openapi::api::core::v1::ServiceSpec;
use kubewright_apimachinery::field::{Error, Path};

use super::super::check::{one_of, shown_list};
use super::super::ip;

const UNCHANGEABLE: &str = "may not change once set";

/// The fields must agree with one another. Also asked before addresses are given out, so that
/// nothing is reserved for a Service that makes no sense.
pub(crate) fn check_addresses(spec: &ServiceSpec, old: Option<&ServiceSpec>) -> Vec<Error> {
    if spec.type_.as_deref() == Some("ExternalName") {
        return Vec::new();
    }
    let at = Path::new("spec");
    let ips_at = at.child("clusterIPs");
    let families_at = at.child("ipFamilies");
    let (ips, families) = (ips(spec), families(spec));
    let mut errors = Vec::new();

    match (spec.cluster_ip.as_deref().unwrap_or_default(), ips) {
        ("", []) => {}
        ("", ips) => errors.push(Error::invalid(
            &ips_at,
            shown_list(ips),
            "must be empty when `clusterIP` is not specified",
        )),
        (_, []) => errors.push(Error::required(&ips_at, "")),
        (ip, [first, ..]) if ip != first => {
            errors.push(Error::invalid(
                &ips_at,
                shown_list(ips),
                "first value must match `clusterIP`",
            ));
        }
        _ => {}
    }
    for (index, family) in families.iter().enumerate() {
        let at = families_at.index(index);
        errors.extend(one_of(&at, family, &["IPv4", "IPv6"]));
        if families[..index].contains(family) {
            errors.push(Error::duplicate(&at, family.as_str()));
        }
    }
    if let Some(policy) = &spec.ip_family_policy {
        let policies = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        errors.extend(one_of(&at.child("ipFamilyPolicy"), policy, &policies));
    }

    let kept = old.map(self::ips).unwrap_or_default();
    let mut all_sound = true;
    for (index, text) in ips.iter().enumerate() {
        if index == 0 && text == "None" {
            if ips.len() > 1 {
                all_sound = false;
                let detail = "'None' must be the first and only value";
                errors.push(Error::invalid(&ips_at, shown_list(ips), detail));
            }
            continue;
        }
        let found = ip::check_legacy(&ips_at.index(index), text, kept);
        all_sound &= found.is_empty();
        errors.extend(found);
    }
    if ips.len() > 2 {
        errors.push(Error::invalid(&ips_at, shown_list(ips), "may only hold up to 2 values"));
    }
    if !all_sound {
        // What follows would only repeat the complaint in other words.
        return errors;
    }

    if ips.len() > 1 && !is_dual_stack(ips) {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(Error::invalid(&ips_at, shown_list(ips), detail));
    }
    if !is_headless(spec) {
        for (index, (text, family)) in ips.iter().zip(families).enumerate() {
            let is_v6 = ip::parse(text).is_some_and(|ip| ip.is_ipv6());
            let wanted = match (family.as_str(), is_v6) {
                ("IPv4", true) => "an IPv4",
                ("IPv6", false) => "an IPv6",
                _ => continue,
            };
            let detail = format!("expected {wanted} value as indicated by `ipFamilies[{index}]`");
            errors.push(Error::invalid(&ips_at.index(index), text.as_str(), detail));
        }
    }
    errors
}

/// A second address may come and go, the first one stays.
pub(super) fn check_addresses_change(new: &ServiceSpec, old: &ServiceSpec) -> Vec<Error> {
    let is_alias = |spec: &ServiceSpec| spec.type_.as_deref() == Some("ExternalName");
    if is_alias(new) || is_alias(old) || (is_headless(new) && is_headless(old)) {
        return Vec::new();
    }
    let spec = Path::new("spec");
    let at = spec.child("clusterIPs");
    let (new_ips, old_ips) = (ips(new), ips(old));
    let mut errors = Vec::new();
    if new_ips.len() == old_ips.len() {
        for index in 0..new_ips.len() {
            if new_ips[index] != old_ips[index] {
                errors.push(Error::invalid(&at.index(index), shown_list(new_ips), UNCHANGEABLE));
            }
        }
        return errors;
    }
    if new_ips.is_empty() {
        let detail = "primary clusterIP can not be unset";
        errors.push(Error::invalid(&at.index(0), shown_list(new_ips), detail));
    }
    if let (Some(new), Some(old)) = (new_ips.first(), old_ips.first())
        && new != old
    {
        errors.push(Error::invalid(&at.index(0), shown_list(new_ips), UNCHANGEABLE));
    }
    if old_ips.len() > new_ips.len() && new_ips.len() == 1 {
        errors.extend(check_release(new, &spec, "clusterIP"));
    }
    errors
}

pub(super) fn check_families_change(new: &ServiceSpec, old: &ServiceSpec) -> Vec<Error> {
    let is_alias = |spec: &ServiceSpec| spec.type_.as_deref() == Some("ExternalName");
    if is_alias(new) || is_alias(old) || is_headless(new) || is_headless(old) {
        return Vec::new();
    }
    let spec = Path::new("spec");
    let families_at = spec.child("ipFamilies");
    let at = families_at.index(0);
    let (new_families, old_families) = (families(new), families(old));
    let mut errors = Vec::new();
    if new_families.len() == old_families.len() {
        let changed = new_families.iter().zip(old_families).filter(|(new, old)| new != old);
        errors.extend(changed.map(|_| Error::invalid(&at, shown_list(new_families), UNCHANGEABLE)));
        return errors;
    }
    let is_released = old_families.len() > new_families.len();
    if is_released && ips(new).is_empty() {
        let detail = "primary ipFamily can not be unset";
        errors.push(Error::invalid(&at, shown_list(new_families), detail));
    }
    if let (Some(new_family), Some(old_family)) = (new_families.first(), old_families.first())
        && new_family != old_family
    {
        // Upstream shows the addresses here, not the families.
        errors.push(Error::invalid(&at, shown_list(ips(new)), UNCHANGEABLE));
    }
    if is_released && new_families.len() == 1 {
        errors.extend(check_release(new, &spec, "ipFamily"));
    }
    errors
}

/// Giving up the second address or family takes saying so.
fn check_release(new: &ServiceSpec, spec: &Path<'_>, what: &str) -> Option<Error> {
    let policy = new.ip_family_policy.as_deref();
    (policy != Some("SingleStack")).then(|| {
        Error::invalid(
            &spec.child("ipFamilyPolicy"),
            policy,
            format!("must be set to 'SingleStack' when releasing the secondary {what}"),
        )
    })
}

/// Pods are found by name alone.
pub(super) fn is_headless(spec: &ServiceSpec) -> bool {
    matches!(ips(spec), [only] if only == "None")
}

fn is_dual_stack(ips: &[String]) -> bool {
    let is_v6 = |text: &String| ip::parse(text).is_some_and(|ip| ip.is_ipv6());
    ips.iter().any(is_v6) && !ips.iter().all(is_v6)
}

fn ips(spec: &ServiceSpec) -> &[String] {
    spec.cluster_ips.as_deref().unwrap_or_default()
}

fn families(spec: &ServiceSpec) -> &[String] {
    spec.ip_families.as_deref().unwrap_or_default()
}
