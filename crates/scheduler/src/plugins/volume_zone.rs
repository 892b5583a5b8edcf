//! Volumes with labels of a zone are used in that zone.

use k8s_openapi::api::core::v1::PersistentVolume;

use crate::change::Change;
use crate::node::Node;
use crate::plugin::{Filter, Plugin, Point, Prepared, Rejection};
use crate::pod::Pod;
use crate::snapshot::Snapshot;
use crate::storage::{class_name, volume_name};

const REASON: &str = "node(s) had no available volume zone";
const ZONE: &str = "topology.kubernetes.io/zone";
const REGION: &str = "topology.kubernetes.io/region";
const OLD_ZONE: &str = "failure-domain.beta.kubernetes.io/zone";
const OLD_REGION: &str = "failure-domain.beta.kubernetes.io/region";
const LABELS: [&str; 4] = [OLD_ZONE, OLD_REGION, ZONE, REGION];
/// Between the zones of a volume that is in several.
const SEPARATOR: &str = "__";

pub(crate) struct VolumeZone;

/// Labels, and the values that they may have.
#[derive(Clone)]
struct Zones<'s>(Vec<(&'static str, Vec<&'s str>)>);

impl VolumeZone {
    pub(crate) const NAME: &str = "VolumeZone";
}

impl Plugin for VolumeZone {
    fn name(&self) -> &str {
        VolumeZone::NAME
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
        let mut zones = Vec::new();
        for used in pod.claims.iter().filter(|used| !used.is_ephemeral) {
            let name = &used.name;
            let claim = storage.claim(pod, name).ok_or_else(|| {
                Rejection::unresolvable(format!("persistentvolumeclaim {name:?} not found"))
            })?;
            let Some(volume) = volume_name(claim) else {
                let class = class_name(claim);
                if class.is_empty() {
                    let reason = "PersistentVolumeClaim had no pv name and storageClass name";
                    return Err(Rejection::unresolvable(reason));
                }
                let mode = match storage.class_of(claim) {
                    Some(class) => class.volume_binding_mode.as_deref(),
                    None => {
                        let reason = format!("storageclass.storage.k8s.io {class:?} not found");
                        return Err(Rejection::unresolvable(reason));
                    }
                };
                match mode {
                    Some("WaitForFirstConsumer") => continue,
                    _ => return Err(Rejection::unresolvable("PersistentVolume had no name")),
                }
            };
            let volume = storage.volumes.get(volume).ok_or_else(|| {
                Rejection::unresolvable(format!("persistentvolume {volume:?} not found"))
            })?;
            zones.extend(zones_of(volume));
        }
        Ok(match zones.is_empty() {
            true => Prepared::Anywhere,
            false => Prepared::Check(Box::new(Zones(zones))),
        })
    }

    fn helps(&self, _pod: &Pod, change: &Change) -> bool {
        match change {
            Change::Storage | Change::NodeAdded(_) => true,
            Change::NodeUpdated { old, new } => old.metadata.labels != new.metadata.labels,
            _ => false,
        }
    }
}

impl Filter for Zones<'_> {
    fn check(&self, node: &Node) -> Result<(), Rejection> {
        let labels = node.labels();
        // A node that does not say where it is, is anywhere.
        if !LABELS.iter().any(|label| labels.contains_key(*label)) {
            return Ok(());
        }
        let is_there = |(label, values): &(&str, Vec<&str>)| {
            let value = labels.get(*label).or_else(|| labels.get(newer(label)));
            value.is_some_and(|value| values.contains(&value.as_str()))
        };
        match self.0.iter().all(is_there) {
            true => Ok(()),
            false => Err(Rejection::unresolvable(REASON)),
        }
    }

    fn boxed<'a>(&self) -> Box<dyn Filter + 'a>
    where
        Self: 'a,
    {
        Box::new(self.clone())
    }
}

fn zones_of(volume: &PersistentVolume) -> impl Iterator<Item = (&'static str, Vec<&str>)> {
    let labels = volume.metadata.labels.as_ref();
    let value = move |label: &'static str| Some((label, labels?.get(label)?.as_str()));
    let values = LABELS.into_iter().filter_map(value);
    values.map(|(label, value)| (label, value.split(SEPARATOR).map(str::trim).collect()))
}

fn newer(label: &str) -> &str {
    match label {
        OLD_ZONE => ZONE,
        OLD_REGION => REGION,
        _ => label,
    }
}
