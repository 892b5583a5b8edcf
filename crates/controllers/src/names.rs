//! Which controllers run, in the language of kube-controller-manager's `--controllers`.

#[cfg(test)]
mod tests;

pub(crate) const SERVICE_ACCOUNT: &str = "serviceaccount-controller";
pub(crate) const ROOT_CA: &str = "root-ca-certificate-publisher-controller";
pub(crate) const NAMESPACE: &str = "namespace-controller";
pub(crate) const GARBAGE_COLLECTOR: &str = "garbage-collector-controller";
pub(crate) const CLUSTER_ROLE_AGGREGATION: &str = "clusterrole-aggregation-controller";
pub(crate) const RESOURCE_QUOTA: &str = "resourcequota-controller";
pub(crate) const CLAIM_PROTECTION: &str = "persistentvolumeclaim-protection-controller";
pub(crate) const ENDPOINTS: &str = "endpoints-controller";
pub(crate) const ENDPOINT_SLICE: &str = "endpointslice-controller";
pub(crate) const ENDPOINT_SLICE_MIRRORING: &str = "endpointslice-mirroring-controller";
pub(crate) const JOB: &str = "job-controller";
pub(crate) const CRON_JOB: &str = "cronjob-controller";
pub(crate) const TTL_AFTER_FINISHED: &str = "ttl-after-finished-controller";
pub(crate) const POD_GC: &str = "pod-garbage-collector-controller";
pub(crate) const NODE_LIFECYCLE: &str = "node-lifecycle-controller";
pub(crate) const TAINT_EVICTION: &str = "taint-eviction-controller";
pub(crate) const DISRUPTION: &str = "disruption-controller";
pub(crate) const PERSISTENT_VOLUME_BINDER: &str = "persistentvolume-binder-controller";
pub(crate) const EPHEMERAL_VOLUME: &str = "ephemeral-volume-controller";
pub(crate) const CSR_APPROVING: &str = "certificatesigningrequest-approving-controller";
pub(crate) const CSR_SIGNING: &str = "certificatesigningrequest-signing-controller";
pub(crate) const CSR_CLEANER: &str = "certificatesigningrequest-cleaner-controller";
pub(crate) const HORIZONTAL_POD_AUTOSCALER: &str = "horizontal-pod-autoscaler-controller";
pub(crate) const TTL: &str = "ttl-controller";
pub(crate) const SERVICE_LB: &str = "service-lb-controller";
pub(crate) const SERVICE_CIDR: &str = "service-cidr-controller";
pub(crate) const VOLUME_PROTECTION: &str = "persistentvolume-protection-controller";
pub(crate) const POLICY_STATUS: &str = "validatingadmissionpolicy-status-controller";
pub(crate) const REPLICA_SET: &str = "replicaset-controller";
pub(crate) const REPLICATION_CONTROLLER: &str = "replicationcontroller-controller";
pub(crate) const DEPLOYMENT: &str = "deployment-controller";
pub(crate) const DAEMON_SET: &str = "daemonset-controller";
pub(crate) const STATEFUL_SET: &str = "statefulset-controller";

/// Every controller there is.
pub const NAMES: &[&str] = &[
    SERVICE_ACCOUNT,
    ROOT_CA,
    NAMESPACE,
    GARBAGE_COLLECTOR,
    CLUSTER_ROLE_AGGREGATION,
    RESOURCE_QUOTA,
    CLAIM_PROTECTION,
    VOLUME_PROTECTION,
    POLICY_STATUS,
    ENDPOINTS,
    ENDPOINT_SLICE,
    ENDPOINT_SLICE_MIRRORING,
    JOB,
    CRON_JOB,
    TTL_AFTER_FINISHED,
    POD_GC,
    NODE_LIFECYCLE,
    TAINT_EVICTION,
    DISRUPTION,
    REPLICA_SET,
    REPLICATION_CONTROLLER,
    DEPLOYMENT,
    DAEMON_SET,
    STATEFUL_SET,
    PERSISTENT_VOLUME_BINDER,
    EPHEMERAL_VOLUME,
    CSR_APPROVING,
    CSR_SIGNING,
    CSR_CLEANER,
    HORIZONTAL_POD_AUTOSCALER,
    TTL,
    SERVICE_LB,
    SERVICE_CIDR,
];

/// The short names that upstream had first and still takes.
const ALIASES: &[(&str, &str)] = &[
    ("serviceaccount", SERVICE_ACCOUNT),
    ("root-ca-cert-publisher", ROOT_CA),
    ("namespace", NAMESPACE),
    ("garbagecollector", GARBAGE_COLLECTOR),
    ("clusterrole-aggregation", CLUSTER_ROLE_AGGREGATION),
    ("resourcequota", RESOURCE_QUOTA),
    ("pvc-protection", CLAIM_PROTECTION),
    ("pv-protection", VOLUME_PROTECTION),
    ("endpoint", ENDPOINTS),
    ("endpointslice", ENDPOINT_SLICE),
    ("endpointslicemirroring", ENDPOINT_SLICE_MIRRORING),
    ("job", JOB),
    ("cronjob", CRON_JOB),
    ("ttl-after-finished", TTL_AFTER_FINISHED),
    ("podgc", POD_GC),
    ("nodelifecycle", NODE_LIFECYCLE),
    ("disruption", DISRUPTION),
    ("replicaset", REPLICA_SET),
    ("replicationcontroller", REPLICATION_CONTROLLER),
    ("deployment", DEPLOYMENT),
    ("daemonset", DAEMON_SET),
    ("statefulset", STATEFUL_SET),
    ("persistentvolume-binder", PERSISTENT_VOLUME_BINDER),
    ("ephemeral-volume", EPHEMERAL_VOLUME),
    ("csrapproving", CSR_APPROVING),
    ("csrsigning", CSR_SIGNING),
    ("csrcleaner", CSR_CLEANER),
    ("horizontalpodautoscaling", HORIZONTAL_POD_AUTOSCALER),
    ("ttl", TTL),
    ("service", SERVICE_LB),
];

/// A choice among the controllers: `*` is all of them, `name` one, `-name` not this one. The first
/// word about a controller counts, and a controller without one runs if there is a `*`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    words: Vec<Word>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Word {
    All,
    Only(&'static str),
    Not(&'static str),
}

/// The user named a controller that is not there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not in the list of known controllers")]
pub struct UnknownName(String);

impl Names {
    pub fn all() -> Self {
        Self { words: vec![Word::All] }
    }

    /// Reads a list that is separated by commas.
    pub fn parse(list: &str) -> Result<Self, UnknownName> {
        let words = list.split(',').map(str::trim).filter(|word| !word.is_empty());
        Ok(Self { words: words.map(Word::parse).collect::<Result<_, _>>()? })
    }

    pub fn includes(&self, name: &str) -> bool {
        let own = self.words.iter().find_map(|word| match word {
            Word::Only(only) => (*only == name).then_some(true),
            Word::Not(not) => (*not == name).then_some(false),
            Word::All => None,
        });
        own.unwrap_or_else(|| self.words.contains(&Word::All))
    }
}

impl Word {
    fn parse(word: &str) -> Result<Self, UnknownName> {
        match word.strip_prefix('-') {
            None if word == "*" => Ok(Self::All),
            None => known(word).map(Self::Only),
            Some(name) => known(name).map(Self::Not),
        }
    }
}

fn known(name: &str) -> Result<&'static str, UnknownName> {
    let aliased = ALIASES.iter().find(|(alias, _)| *alias == name).map(|(_, full)| *full);
    let full = || NAMES.iter().find(|full| **full == name).copied();
    aliased.or_else(full).ok_or_else(|| UnknownName(name.to_owned()))
}
