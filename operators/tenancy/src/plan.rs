//! What a team's namespace consists of. Decides only.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    LimitRange, LimitRangeItem, LimitRangeSpec, Namespace, ResourceQuota, ResourceQuotaSpec,
};
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicySpec,
};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ObjectMeta;

use crate::kind::{AcmeNamespace, Tier};

const ADMIN: &str = "namespace-admin";
const RBAC: &str = "rbac.authorization.k8s.io";

/// What there is to say of the namespace that an object asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// There is none: it can be made.
    Free,
    /// It is this object's.
    Ours,
    /// It was this object's, and is being deleted: it can be made again when it is gone.
    Ending,
    /// It is somebody else's, who keeps it.
    Taken,
}

/// All that an object brings about.
#[derive(Debug, Clone, PartialEq)]
pub struct Children {
    pub namespace: Namespace,
    pub role: Role,
    pub binding: RoleBinding,
    pub quota: ResourceQuota,
    pub limits: LimitRange,
    pub policy: NetworkPolicy,
}

/// Judges a namespace by its owner. One that has none was made by somebody else, too.
pub fn standing(acme: &AcmeNamespace, found: Option<&Namespace>) -> Standing {
    let Some(found) = found else { return Standing::Free };
    let mut owners = found.metadata.owner_references.iter().flatten();
    let is_ours = owners.any(|owner| Some(&owner.uid) == acme.metadata.uid.as_ref());
    match (is_ours, &found.metadata.deletion_timestamp) {
        (false, _) => Standing::Taken,
        (true, Some(_)) => Standing::Ending,
        (true, None) => Standing::Ours,
    }
}

impl Children {
    pub fn of(acme: &AcmeNamespace) -> Self {
        let (home, admin) = (&*acme.spec.namespace_name, &*acme.spec.admin_username);
        Children {
            namespace: namespace(home, admin),
            role: role(home),
            binding: binding(home, admin),
            quota: quota(home, acme.tier()),
            limits: limits(home),
            policy: policy(home),
        }
    }

    /// Whether a quota is one of another tier, which has to go.
    pub fn is_obsolete(&self, quota: &ResourceQuota) -> bool {
        quota.metadata.name != self.quota.metadata.name
            || quota.metadata.namespace != self.quota.metadata.namespace
    }
}

fn namespace(home: &str, admin: &str) -> Namespace {
    Namespace {
        metadata: ObjectMeta {
            name: Some(home.to_owned()),
            labels: Some(BTreeMap::from([("admin".to_owned(), admin.to_owned())])),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    }
}

fn role(home: &str) -> Role {
    let all = || vec!["*".to_owned()];
    Role {
        metadata: named(home, ADMIN),
        rules: Some(vec![PolicyRule {
            api_groups: Some(all()),
            resources: Some(all()),
            verbs: all(),
            ..PolicyRule::default()
        }]),
    }
}

fn binding(home: &str, admin: &str) -> RoleBinding {
    RoleBinding {
        metadata: named(home, ADMIN),
        role_ref: RoleRef {
            api_group: Some(RBAC.to_owned()),
            kind: "Role".to_owned(),
            name: ADMIN.to_owned(),
        },
        subjects: Some(vec![Subject {
            api_group: Some(RBAC.to_owned()),
            kind: "User".to_owned(),
            name: admin.to_owned(),
            namespace: Some(home.to_owned()),
        }]),
    }
}

fn quota(home: &str, tier: Tier) -> ResourceQuota {
    let (cpu, memory, pods) = match tier {
        Tier::Dev => ("5", "10Gi", "10"),
        Tier::Stg => ("50", "50Gi", "50"),
        Tier::Prod => ("500", "200Gi", "100"),
    };
    ResourceQuota {
        metadata: named(home, &tier.to_string()),
        spec: Some(ResourceQuotaSpec {
            hard: Some(amounts([("cpu", cpu), ("memory", memory), ("pods", pods)])),
            ..ResourceQuotaSpec::default()
        }),
        ..ResourceQuota::default()
    }
}

/// Under a quota every container must say what it needs; this says it for those that do not.
fn limits(home: &str) -> LimitRange {
    LimitRange {
        metadata: named(home, "container-defaults"),
        spec: Some(LimitRangeSpec {
            limits: vec![LimitRangeItem {
                type_: "Container".to_owned(),
                default_request: Some(amounts([("cpu", "100m"), ("memory", "128Mi")])),
                default: Some(amounts([("cpu", "500m"), ("memory", "512Mi")])),
                ..LimitRangeItem::default()
            }],
        }),
    }
}

/// Pods are reached from their own namespace, and from no other.
fn policy(home: &str) -> NetworkPolicy {
    let neighbours =
        NetworkPolicyPeer { pod_selector: Some(LabelSelector::default()), ..Default::default() };
    NetworkPolicy {
        metadata: named(home, "same-namespace-only"),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector::default()),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: Some(vec![neighbours]),
                ..NetworkPolicyIngressRule::default()
            }]),
            ..NetworkPolicySpec::default()
        }),
    }
}

fn named(home: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(home.to_owned()),
        ..ObjectMeta::default()
    }
}

fn amounts<const N: usize>(amounts: [(&str, &str); N]) -> BTreeMap<String, Quantity> {
    let amount = |(name, amount): (&str, &str)| (name.to_owned(), Quantity(amount.to_owned()));
    amounts.into_iter().map(amount).collect()
}
