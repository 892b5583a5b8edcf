//! Pods with scheduling gates wait until all of them are taken away.

use crate::change::Change;
use crate::plugin::{Plugin, Point};
use crate::pod::Pod;

pub(crate) struct SchedulingGates;

impl SchedulingGates {
    pub(crate) const NAME: &str = "SchedulingGates";
}

impl Plugin for SchedulingGates {
    fn name(&self) -> &str {
        SchedulingGates::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::PreEnqueue]
    }

    fn admit(&self, pod: &Pod) -> Result<(), String> {
        let gates = pod.spec().and_then(|spec| spec.scheduling_gates.as_deref());
        let gates: Vec<&str> =
            gates.unwrap_or_default().iter().map(|gate| gate.name.as_str()).collect();
        match gates.is_empty() {
            true => Ok(()),
            false => Err(format!("waiting for scheduling gates: [{}]", gates.join(" "))),
        }
    }

    fn helps(&self, _pod: &Pod, change: &Change) -> bool {
        matches!(change, Change::SelfUpdated { .. })
    }
}
