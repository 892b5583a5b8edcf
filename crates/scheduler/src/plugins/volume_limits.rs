//! A node takes no more volumes of a driver than it says it can.

use std::collections::{BTreeMap, BTreeSet};

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection};
use crate::pod::Pod;
use crate::snapshot::Snapshot;
use crate::storage::{Storage, volume_name};

const REASON: &str = "node(s) exceed max volume count";

pub(crate) struct VolumeLimits;

/// Volumes by driver, each with a name that is its alone.
type Volumes = BTreeMap<String, BTreeSet<String>>;

#[derive(Clone)]
struct Limits<'s> {
    storage: &'s Storage,
    volumes: Volumes,
}

impl VolumeLimits {
    pub(crate) const NAME: &str = "NodeVolumeLimits";
}

impl Plugin for VolumeLimits {
    fn name(&self) -> &str {
        VolumeLimits::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreFilter, Point::Filter]
    }

    fn filter<'a>(
        &'a self,
        pod: &'a Pod,
        snapshot: &'a Snapshot,
    ) -> Result<Prepared<'a>, Rejection> {
        let storage = &snapshot.storage;
        let volumes = volumes_of(pod, storage);
        Ok(match volumes.is_empty() {
            true => Prepared::Anywhere,
            false => Prepared::Check(Box::new(Limits { storage, volumes })),
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

impl Filter for Limits<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        let Some(csi) = self.storage.csi_nodes.get(&*node.name) else { return Ok(()) };
        let limit = |driver: &str| {
            let driver = csi.spec.drivers.iter().find(|it| it.name == driver)?;
            driver.allocatable.as_ref()?.count
        };
        if !self.volumes.keys().any(|driver| limit(driver).is_some()) {
            return Ok(());
        }
        let mut all = self.volumes.clone();
        for pod in &node.pods {
            for (driver, volumes) in volumes_of(pod, self.storage) {
                all.entry(driver).or_default().extend(volumes);
            }
        }
        let is_over = |driver: &String| {
            let count = all.get(driver).map_or(0, BTreeSet::len);
            limit(driver).is_some_and(|limit| count as i64 > limit.into())
        };
        match self.volumes.keys().any(is_over) {
            true => Err(Rejection::unschedulable(REASON)),
            false => Ok(()),
        }
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

/// The volumes that a driver attaches for a pod; those that are still to be made, too.
fn volumes_of(pod: &Pod, storage: &Storage) -> Volumes {
    let mut volumes = Volumes::new();
    for used in &pod.claims {
        let Some(claim) = storage.claim(pod, &used.name) else { continue };
        let volume = volume_name(claim).and_then(|name| storage.volumes.get(name));
        let csi = volume.and_then(|volume| volume.spec.as_ref()?.csi.as_ref());
        let (driver, name) = match (csi, storage.class_of(claim)) {
            (Some(csi), _) => (csi.driver.clone(), csi.volume_handle.clone()),
            (None, Some(class)) if volume.is_none() => {
                let name = format!("{}/{}", pod.namespace(), used.name);
                (class.provisioner.clone(), name)
            }
            _ => continue,
        };
        volumes.entry(driver).or_default().insert(name);
    }
    volumes
}
