//! Disks that only one pod can have, and claims that only one pod may use.

use k8s_openapi::api::core::v1 as core;

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection};
use crate::pod::Pod;
use crate::snapshot::Snapshot;

const REASON_DISK: &str = "node(s) had no available disk";
const REASON_CLAIM: &str = "node(s) unavailable due to PersistentVolumeClaim with \
                            ReadWriteOncePod access mode already in-use by another pod";
const ONE_POD: &str = "ReadWriteOncePod";

pub(crate) struct VolumeRestrictions;

#[derive(Clone)]
struct Exclusive<'s> {
    pod: &'s Pod,
    /// Claims that the pod must have alone.
    claims: Vec<&'s str>,
    /// How many others use them.
    conflicts: i64,
}

impl VolumeRestrictions {
    pub(crate) const NAME: &str = "VolumeRestrictions";
}

impl Plugin for VolumeRestrictions {
    fn name(&self) -> &str {
        VolumeRestrictions::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreFilter, Point::Filter]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        let mut claims = Vec::new();
        for used in pod.claims.iter().filter(|used| !used.is_ephemeral) {
            let name = used.name.as_str();
            let claim = snapshot.storage.claim(pod, name).ok_or_else(|| {
                Rejection::unresolvable(format!("persistentvolumeclaim {name:?} not found"))
            })?;
            let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
            if modes.into_iter().flatten().any(|mode| mode == ONE_POD) {
                claims.push(name);
            }
        }
        let in_use = claims.iter().filter(|name| snapshot.is_used(pod.namespace(), name));
        let conflicts = in_use.count() as i64;
        Ok(match conflicts > 0 || pod.volumes().iter().any(is_disk) {
            true => Prepared::Check(Box::new(Exclusive { pod, claims, conflicts })),
            false => Prepared::Anywhere,
        })
    }

    fn helps(&self, _pod: &Pod, change: &Change) -> bool {
        match change {
            Change::PodDeleted(gone) => !gone.volumes().is_empty(),
            Change::Storage | Change::NodeAdded(_) => true,
            _ => false,
        }
    }
}

impl Filter for Exclusive<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        let mut disks = self.pod.volumes().iter().filter(|volume| is_disk(volume));
        let others = || node.pods.iter().flat_map(|pod| pod.volumes());
        if disks.any(|disk| others().any(|other| conflicts(disk, other))) {
            return Err(Rejection::unschedulable(REASON_DISK));
        }
        match self.conflicts > 0 {
            true => Err(Rejection::unschedulable(REASON_CLAIM)),
            false => Ok(()),
        }
    }

    fn add(&mut self, other: &Pod, _node: &Node) {
        self.conflicts += self.shared_with(other);
    }

    fn remove(&mut self, other: &Pod, _node: &Node) {
        self.conflicts -= self.shared_with(other);
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

impl Exclusive<'_> {
    fn shared_with(&self, other: &Pod) -> i64 {
        if other.namespace() != self.pod.namespace() {
            return 0;
        }
        let is_shared = |claim: &&crate::pod::Claim| self.claims.contains(&claim.name.as_str());
        other.claims.iter().filter(is_shared).count() as i64
    }
}

fn is_disk(volume: &core::Volume) -> bool {
    volume.gce_persistent_disk.is_some()
        || volume.aws_elastic_block_store.is_some()
        || volume.rbd.is_some()
        || volume.iscsi.is_some()
}

/// Whether two volumes are one disk that cannot be attached twice.
fn conflicts(one: &core::Volume, other: &core::Volume) -> bool {
    let are_read_only = |one: Option<bool>, other: Option<bool>| {
        one.unwrap_or_default() && other.unwrap_or_default()
    };
    if let (Some(one), Some(other)) = (&one.gce_persistent_disk, &other.gce_persistent_disk) {
        return one.pd_name == other.pd_name && !are_read_only(one.read_only, other.read_only);
    }
    if let (Some(one), Some(other)) = (&one.aws_elastic_block_store, &other.aws_elastic_block_store)
    {
        return one.volume_id == other.volume_id;
    }
    if let (Some(one), Some(other)) = (&one.iscsi, &other.iscsi) {
        return one.iqn == other.iqn && !are_read_only(one.read_only, other.read_only);
    }
    if let (Some(one), Some(other)) = (&one.rbd, &other.rbd) {
        let pool = |it: &core::RBDVolumeSource| it.pool.clone().unwrap_or_else(|| "rbd".to_owned());
        return one.monitors.iter().any(|monitor| other.monitors.contains(monitor))
            && pool(one) == pool(other)
            && one.image == other.image
            && !are_read_only(one.read_only, other.read_only);
    }
    false
}
