//! How fast the number of replicas may change.

#[cfg(test)]
mod tests;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::autoscaling::v2::{
    HPAScalingPolicy, HPAScalingRules, HorizontalPodAutoscalerBehavior as Behavior,
};
use kubewright_apimachinery::quantity::Quantity;

use super::usage::Tolerance;

/// Without rules: how long the highest wish counts.
const STABLE_FOR: SignedDuration = SignedDuration::from_mins(5);
const TOLERANCE: f64 = 0.1;

/// How few and how many replicas there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) min: i32,
    pub(super) max: i32,
}

/// What was wished for and done lately.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct History {
    wishes: Vec<(Timestamp, i32)>,
    /// By how much it was scaled; less than nothing if down.
    changes: Vec<(Timestamp, i32)>,
}

/// What becomes of a wish: reasons with their texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Normal {
    pub(super) replicas: i32,
    pub(super) stability: (&'static str, &'static str),
    pub(super) is_limited: bool,
    pub(super) limit: (&'static str, &'static str),
}

/// How far from its target a metric may be.
pub(super) fn tolerance(behavior: Option<&Behavior>) -> Tolerance {
    let own = |rules: Option<&HPAScalingRules>| {
        let own = rules.and_then(|rules| rules.tolerance.as_ref());
        own.and_then(|it| Quantity::parse(&it.0).ok())
            .map_or(TOLERANCE, |it| it.as_approximate_float())
    };
    Tolerance {
        down: own(behavior.and_then(|it| it.scale_down.as_ref())),
        up: own(behavior.and_then(|it| it.scale_up.as_ref())),
    }
}

impl History {
    /// Begins with what there is: it was somebody's wish.
    pub(super) fn begin(&mut self, current: i32, now: Timestamp) {
        if self.wishes.is_empty() {
            self.wishes.push((now, current));
        }
    }

    /// Takes note of what was done.
    pub(super) fn note(&mut self, behavior: Option<&Behavior>, from: i32, to: i32, now: Timestamp) {
        let Some(behavior) = behavior else { return };
        let rules = [behavior.scale_up.as_ref(), behavior.scale_down.as_ref()];
        let policies = rules.into_iter().flatten().flat_map(|it| it.policies.iter().flatten());
        let longest = policies.map(|policy| policy.period_seconds).max().unwrap_or_default();
        let longest = SignedDuration::from_secs(longest.into());
        self.changes.retain(|(at, _)| now.duration_since(*at) <= longest);
        self.changes.push((now, to - from));
    }

    /// What becomes of a wish.
    pub(super) fn normalize(
        &mut self,
        behavior: Option<&Behavior>,
        bounds: Bounds,
        current: i32,
        wish: i32,
        now: Timestamp,
    ) -> Normal {
        let (stable, why) = match behavior {
            None => (self.stable_down(wish, now), DOWN_STABILIZED),
            Some(behavior) => {
                let why = if wish >= current { UP_STABILIZED } else { DOWN_STABILIZED };
                (self.stable(behavior, current, wish, now), why)
            }
        };
        self.remember(behavior, wish, now);
        let stability = if stable == wish { READY } else { why };
        let (replicas, limit) = match behavior {
            None => limit(bounds, current, stable),
            Some(behavior) => self.limit(behavior, bounds, current, stable, now),
        };
        Normal { replicas, stability, is_limited: replicas != stable, limit }
    }

    /// The highest wish of late.
    fn stable_down(&self, wish: i32, now: Timestamp) -> i32 {
        let recent = self.wishes.iter().filter(|(at, _)| now.duration_since(*at) <= STABLE_FOR);
        recent.map(|(_, wish)| *wish).chain([wish]).max().unwrap_or(wish)
    }

    /// What there is, unless all wishes of late are above or below it.
    fn stable(&self, behavior: &Behavior, current: i32, wish: i32, now: Timestamp) -> i32 {
        let within = |window: SignedDuration| {
            let recent = self.wishes.iter().filter(move |(at, _)| now.duration_since(*at) < window);
            recent.map(|(_, wish)| *wish).chain([wish])
        };
        let lowest = within(window(behavior.scale_up.as_ref(), SignedDuration::ZERO)).min();
        let highest = within(window(behavior.scale_down.as_ref(), STABLE_FOR)).max();
        current.max(lowest.unwrap_or(wish)).min(highest.unwrap_or(wish))
    }

    fn remember(&mut self, behavior: Option<&Behavior>, wish: i32, now: Timestamp) {
        let longest = behavior.map_or(STABLE_FOR, |behavior| {
            let up = window(behavior.scale_up.as_ref(), SignedDuration::ZERO);
            up.max(window(behavior.scale_down.as_ref(), STABLE_FOR))
        });
        self.wishes.retain(|(at, _)| now.duration_since(*at) <= longest);
        self.wishes.push((now, wish));
    }

    fn limit(
        &self,
        behavior: &Behavior,
        bounds: Bounds,
        current: i32,
        wish: i32,
        now: Timestamp,
    ) -> (i32, (&'static str, &'static str)) {
        if wish > current {
            let rate = self.rate(behavior.scale_up.as_ref(), current, true, now).max(current);
            let (most, why) = match bounds.max > rate {
                true => (rate, UP_LIMIT),
                false => (bounds.max, TOO_MANY),
            };
            return if wish > most { (most, why) } else { (wish, WITHIN) };
        }
        if wish < current {
            let rate = self.rate(behavior.scale_down.as_ref(), current, false, now).min(current);
            let (least, why) = match bounds.min < rate {
                true => (rate, DOWN_LIMIT),
                false => (bounds.min, TOO_FEW),
            };
            return if wish < least { (least, why) } else { (wish, WITHIN) };
        }
        (wish, WITHIN)
    }

    /// How far it may go by its policies.
    fn rate(
        &self,
        rules: Option<&HPAScalingRules>,
        current: i32,
        is_up: bool,
        now: Timestamp,
    ) -> i32 {
        let select = rules.and_then(|rules| rules.select_policy.as_deref()).unwrap_or("Max");
        if select == "Disabled" {
            return current;
        }
        let standard = standard(is_up);
        let policies = rules.and_then(|rules| rules.policies.as_deref()).unwrap_or(&standard);
        let reach = |policy: &HPAScalingPolicy| {
            let period = SignedDuration::from_secs(policy.period_seconds.into());
            let recent = self.changes.iter().filter(|(at, _)| now.duration_since(*at) < period);
            let start = current - recent.map(|(_, change)| *change).sum::<i32>();
            let share = f64::from(policy.value) / 100.0;
            match (policy.type_.as_str(), is_up) {
                ("Pods", true) => start + policy.value,
                ("Pods", false) => start - policy.value,
                // Whole replicas, and of them rather one more.
                (_, true) => (f64::from(start) * (1.0 + share)).ceil() as i32,
                (_, false) => (f64::from(start) * (1.0 - share)) as i32,
            }
        };
        let reaches = policies.iter().map(reach);
        let farthest = (select == "Min") != is_up;
        if farthest { reaches.max() } else { reaches.min() }.unwrap_or(current)
    }
}

const READY: (&str, &str) = ("ReadyForNewScale", "recommended size matches current size");
const UP_STABILIZED: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const DOWN_STABILIZED: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const WITHIN: (&str, &str) =
    ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_MANY: (&str, &str) =
    ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: (&str, &str) =
    ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const UP_LIMIT: (&str, &str) =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const DOWN_LIMIT: (&str, &str) = (
    "ScaleDownLimit",
    "the desired replica count is decreasing faster than the maximum scale rate",
);

/// Without rules: twice as many at a time, or four.
fn limit(bounds: Bounds, current: i32, wish: i32) -> (i32, (&'static str, &'static str)) {
    let rate = current.saturating_mul(2).max(4);
    let (most, why) = match bounds.max > rate {
        true => (rate, UP_LIMIT),
        false => (bounds.max, TOO_MANY),
    };
    match wish {
        wish if wish < bounds.min => (bounds.min, TOO_FEW),
        wish if wish > most => (most, why),
        wish => (wish, WITHIN),
    }
}

fn window(rules: Option<&HPAScalingRules>, otherwise: SignedDuration) -> SignedDuration {
    let own = rules.and_then(|rules| rules.stabilization_window_seconds);
    own.map_or(otherwise, |seconds| SignedDuration::from_secs(seconds.into()))
}

/// The policies of those who give none.
fn standard(is_up: bool) -> Vec<HPAScalingPolicy> {
    let policy =
        |kind: &str, value| HPAScalingPolicy { type_: kind.to_owned(), value, period_seconds: 15 };
    match is_up {
        true => vec![policy("Pods", 4), policy("Percent", 100)],
        false => vec![policy("Percent", 100)],
    }
}
