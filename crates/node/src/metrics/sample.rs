//! What is used in a time, from what was used by two moments. Pure.

use std::collections::HashMap;
use std::ops::Add;

use jiff::{SignedDuration, Timestamp};

use crate::runtime::{Id, Usage};
use crate::server::stats::Used;

/// What everything has used by a moment.
#[derive(Debug, Clone)]
pub(super) struct Sample {
    pub(super) at: Timestamp,
    /// In the order of pods.
    pub(super) used: Vec<Used>,
    /// The machine as a whole, if that is more than its containers.
    pub(super) machine: Option<Usage>,
}

/// What everything uses.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    pub(super) at: Timestamp,
    pub(super) window: SignedDuration,
    pub(super) rates: Vec<Measured>,
    pub(super) machine: Option<Rate>,
}

/// What a container uses.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    pub(super) used: Used,
    pub(super) rate: Rate,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Rate {
    /// Billionths of a processor.
    pub(super) nanocores: u64,
    /// In bytes.
    pub(super) memory: u64,
}

impl Add for Rate {
    type Output = Rate;

    fn add(self, other: Rate) -> Rate {
        Rate { nanocores: self.nanocores + other.nanocores, memory: self.memory + other.memory }
    }
}

/// What was used between two moments. A container that is new since the first counts from its
/// start; one that has just started says nothing yet.
pub(super) fn rates(earlier: &Sample, latest: &Sample) -> Measure {
    let before: HashMap<&Id, Usage> = earlier.used.iter().map(|it| (&it.id, it.usage)).collect();
    let rates = latest.used.iter().filter_map(|used| {
        let (since, was) = match before.get(&used.id) {
            Some(was) => (earlier.at, *was),
            None => (used.since, Usage::default()),
        };
        let rate = rate(was, used.usage, latest.at.duration_since(since))?;
        Some(Measured { used: used.clone(), rate })
    });
    let window = latest.at.duration_since(earlier.at);
    let machine = earlier.machine.zip(latest.machine);
    Measure {
        at: latest.at,
        window,
        rates: rates.collect(),
        machine: machine.and_then(|(was, is)| rate(was, is, window)),
    }
}

fn rate(was: Usage, is: Usage, window: SignedDuration) -> Option<Rate> {
    let window = u128::try_from(window.as_nanos()).ok().filter(|window| *window > 0)?;
    let cpu = is.cpu.saturating_sub(was.cpu).as_nanos();
    let nanocores = u64::try_from(cpu * 1_000_000_000 / window).unwrap_or(u64::MAX);
    Some(Rate { nanocores, memory: is.memory })
}
