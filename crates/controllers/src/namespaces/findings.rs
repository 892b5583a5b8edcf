//! What was found in a namespace that is to end.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::kinds::Kind;

/// All that is known after one look at everything.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Why the content is not known in full.
    pub(super) undiscovered: Option<String>,
    failures: Vec<String>,
    /// Failures of content alone, which a condition lists.
    pub(super) undeleted: Vec<String>,
    /// How many objects remain, by resource.
    pub(super) remaining: BTreeMap<String, usize>,
    /// How many objects each finalizer holds.
    pub(super) finalizers: BTreeMap<String, usize>,
    pods_remain: bool,
    patience: Option<Duration>,
}

/// What is left of one kind.
#[derive(Debug, Default)]
pub(super) struct Leftover {
    objects: usize,
    finalizers: BTreeMap<String, usize>,
    /// How long the objects may still take.
    grace: Duration,
    /// Whether their end will be seen.
    watched: bool,
}

/// How often a kind is looked at whose changes cannot be watched.
const UNWATCHED: Duration = Duration::from_secs(5);

impl Leftover {
    pub(super) fn new(
        objects: usize,
        held_by: impl Iterator<Item = String>,
        grace: Duration,
        watched: bool,
    ) -> Self {
        let mut finalizers = BTreeMap::new();
        for finalizer in held_by {
            *finalizers.entry(finalizer).or_default() += 1;
        }
        Self { objects, finalizers, grace, watched }
    }

    /// Whether what is left has a reason to be.
    pub(super) fn is_expected(&self) -> bool {
        self.objects == 0 || !self.finalizers.is_empty() || !self.grace.is_zero()
    }
}

impl Findings {
    /// With the versions of groups that could not be discovered.
    pub(super) fn new(stale: &[String]) -> Self {
        let mut findings = Self::default();
        if !stale.is_empty() {
            let stale: Vec<String> = stale
                .iter()
                .map(|version| format!("{version}: stale GroupVersion discovery: {version}"))
                .collect();
            let error = format!(
                "unable to retrieve the complete list of server APIs: {}",
                stale.join(", ")
            );
            findings.undiscovered =
                Some(format!("Discovery failed for some groups, {} failing: {error}", stale.len()));
            findings.failures.push(error);
        }
        findings
    }

    /// Pods come first, and while one remains nothing else is looked at. Their number is then told
    /// by no condition.
    pub(super) fn add_pods(&mut self, kind: &Kind, left: Result<Leftover, String>) {
        self.pods_remain = left.as_ref().map_or(true, |left| left.objects > 0);
        match left {
            Ok(left) if self.pods_remain => self.wait(&left),
            left => self.add(kind, left),
        }
    }

    pub(super) fn add(&mut self, kind: &Kind, left: Result<Leftover, String>) {
        match left {
            Ok(left) if left.objects == 0 => {}
            Ok(left) => {
                self.wait(&left);
                self.remaining.insert(kind.definition(), left.objects);
                for (finalizer, count) in left.finalizers {
                    *self.finalizers.entry(finalizer).or_default() += count;
                }
            }
            Err(error) => {
                self.failures.push(error.clone());
                self.undeleted.push(error);
            }
        }
    }

    fn wait(&mut self, left: &Leftover) {
        let due = if left.watched { left.grace } else { UNWATCHED };
        if !due.is_zero() {
            self.patience = Some(self.patience.map_or(due, |patience| patience.min(due)));
        }
    }

    pub(super) fn waits_for_pods(&self) -> bool {
        self.pods_remain
    }

    pub(super) fn failures(&self) -> &[String] {
        &self.failures
    }

    /// Whether nothing is left.
    pub(super) fn is_empty(&self) -> bool {
        self.failures.is_empty() && self.remaining.is_empty() && !self.pods_remain
    }

    /// When to look again even if nothing seems to change.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.patience
    }
}
