//! What the probes of a running container have found so far, and when they are due.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Probe};

use super::backoff::later;
use crate::runtime::ProbeKind;

/// The probes of a container, since it started.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Probes {
    startup: Option<Probing>,
    liveness: Option<Probing>,
    readiness: Option<Probing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Probing {
    /// What counts; none before anything does.
    result: Option<bool>,
    /// What was found last, and how often in a row.
    last: Option<bool>,
    run: u32,
    due: Timestamp,
    is_under_way: bool,
    /// It has found what it was to find out: nothing is left to look at in this run.
    is_over: bool,
}

impl ProbeKind {
    pub(crate) const ALL: [ProbeKind; 3] =
        [ProbeKind::Startup, ProbeKind::Liveness, ProbeKind::Readiness];

    pub(crate) fn of(self, container: &Container) -> Option<&Probe> {
        match self {
            ProbeKind::Startup => container.startup_probe.as_ref(),
            ProbeKind::Liveness => container.liveness_probe.as_ref(),
            ProbeKind::Readiness => container.readiness_probe.as_ref(),
        }
    }
}

impl Probes {
    /// Those of a container that started at this time.
    pub(crate) fn new(container: &Container, started: Timestamp) -> Self {
        let probing = |kind: ProbeKind| {
            kind.of(container).map(|probe| Probing {
                result: None,
                last: None,
                run: 0,
                due: later(started, seconds(probe.initial_delay_seconds, 0)),
                is_under_way: false,
                is_over: false,
            })
        };
        Probes {
            startup: probing(ProbeKind::Startup),
            liveness: probing(ProbeKind::Liveness),
            readiness: probing(ProbeKind::Readiness),
        }
    }

    /// Those of a container that runs since before the agent does: what they had found holds until
    /// they find otherwise.
    pub(crate) fn adopted(self, is_started: bool, is_ready: bool) -> Self {
        let known = |probing: Option<Probing>, holds: bool, is_over: bool| {
            probing.map(|probing| Probing { result: holds.then_some(true), is_over, ..probing })
        };
        Probes {
            startup: known(self.startup, is_started, is_started),
            liveness: self.liveness,
            readiness: known(self.readiness, is_ready, false),
        }
    }

    pub(crate) fn is_started(&self) -> bool {
        self.startup.is_none_or(|probing| probing.result == Some(true))
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.is_started() && self.readiness.is_none_or(|probing| probing.result == Some(true))
    }

    /// The probe that says that the container must be started anew.
    pub(crate) fn failed(&self) -> Option<ProbeKind> {
        let has_failed = |probing: Option<Probing>| {
            probing.is_some_and(|probing| probing.is_over && probing.result == Some(false))
        };
        if has_failed(self.startup) {
            return Some(ProbeKind::Startup);
        }
        has_failed(self.liveness).then_some(ProbeKind::Liveness)
    }

    /// When a probe is to look next; none if it is not to.
    pub(crate) fn due(&self, kind: ProbeKind) -> Option<Timestamp> {
        // Nothing else is asked of a container before it has started.
        if kind != ProbeKind::Startup && !self.is_started() {
            return None;
        }
        let probing = (*self.of(kind))?;
        (!probing.is_under_way && !probing.is_over).then_some(probing.due)
    }

    pub(crate) fn begun(&mut self, kind: ProbeKind) {
        if let Some(probing) = self.of_mut(kind) {
            probing.is_under_way = true;
        }
    }

    /// Takes note of what a probe has found; none counts for nothing.
    pub(crate) fn found(
        &mut self,
        kind: ProbeKind,
        probe: &Probe,
        found: Option<bool>,
        now: Timestamp,
    ) {
        let was_started = self.is_started();
        let Some(probing) = self.of_mut(kind) else { return };
        probing.is_under_way = false;
        // Ticks are kept, so that a slow answer does not move all that follow.
        let period = seconds(probe.period_seconds, 10).max(Duration::from_secs(1));
        probing.due = later(probing.due, period).max(now);
        let Some(found) = found else { return };
        probing.run = if probing.last == Some(found) { probing.run.saturating_add(1) } else { 1 };
        probing.last = Some(found);
        let threshold = if found { probe.success_threshold } else { probe.failure_threshold };
        let threshold = threshold.unwrap_or(if found { 1 } else { 3 }).max(1);
        if probing.run < threshold.unsigned_abs() {
            return;
        }
        probing.result = Some(found);
        probing.is_over = match kind {
            ProbeKind::Startup => true,
            ProbeKind::Liveness => !found,
            ProbeKind::Readiness => false,
        };
        if !was_started && self.is_started() {
            // What waited for this looks at once, if its own delay is over.
            for kind in [ProbeKind::Liveness, ProbeKind::Readiness] {
                if let Some(probing) = self.of_mut(kind) {
                    probing.due = probing.due.max(now);
                }
            }
        }
    }

    fn of(&self, kind: ProbeKind) -> &Option<Probing> {
        match kind {
            ProbeKind::Startup => &self.startup,
            ProbeKind::Liveness => &self.liveness,
            ProbeKind::Readiness => &self.readiness,
        }
    }

    fn of_mut(&mut self, kind: ProbeKind) -> Option<&mut Probing> {
        match kind {
            ProbeKind::Startup => self.startup.as_mut(),
            ProbeKind::Liveness => self.liveness.as_mut(),
            ProbeKind::Readiness => self.readiness.as_mut(),
        }
    }
}

/// A number of seconds as objects have it.
pub(crate) fn seconds(seconds: Option<i32>, otherwise: u64) -> Duration {
    Duration::from_secs(seconds.map_or(otherwise, |seconds| u64::try_from(seconds).unwrap_or(0)))
}
