//! What may become of a job's status, whoever runs the job.
//!
//! A rule about something is enforced when that changes: a status that broke it before, or breaks
//! it because the spec changed, can still be updated otherwise.

use std::collections::BTreeSet;

use k8s_openapi::api::batch::v1::{Job, JobSpec, JobStatus, UncountedTerminatedPods};
use kubewright_apimachinery::field::{Error, Path};
use serde_json::{Value, json};

use super::{INDEXED, index};
use crate::kinds::{check, typed, workload};

pub(super) fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, old_job): (Job, Job) = (typed(object), typed(old));
    let update = Update {
        tree: &object["status"],
        spec: &new.spec.unwrap_or_default(),
        new: &new.status.unwrap_or_default(),
        old: &old_job.status.unwrap_or_default(),
    };
    let path = Path::new("status");
    let mut errors = update.check_counts(&path);
    errors.extend(update.check_end(&path));
    errors.extend(update.check_times(&path));
    errors.extend(update.check_finished(&path));
    errors.extend(update.check_indexes(&path));
    errors.extend(update.check_progress(&path));
    errors
}

/// Whether a condition holds.
pub(super) fn is_true(status: &JobStatus, condition: &str) -> bool {
    has(status, condition, "True")
}

fn has(status: &JobStatus, condition: &str, value: &str) -> bool {
    let mut conditions = status.conditions.iter().flatten();
    conditions.any(|found| found.type_ == condition && found.status == value)
}

struct Update<'a> {
    /// The new status as it stands in the object.
    tree: &'a Value,
    spec: &'a JobSpec,
    new: &'a JobStatus,
    old: &'a JobStatus,
}

impl Update<'_> {
    fn is(&self, condition: &str) -> bool {
        is_true(self.new, condition)
    }

    fn changes(&self, condition: &str) -> bool {
        is_true(self.new, condition) != is_true(self.old, condition)
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn finishes(&self) -> bool {
        let was_finished = is_true(self.old, "Complete") || is_true(self.old, "Failed");
        self.is_finished() != was_finished
    }

    fn check_counts(&self, path: &Path<'_>) -> Vec<Error> {
        let counts = ["active", "succeeded", "failed", "ready", "terminating"];
        let mut errors = workload::check_counts(self.tree, &counts, path);
        let Some(uncounted) = &self.new.uncounted_terminated_pods else { return errors };
        let path = path.child("uncountedTerminatedPods");
        let mut seen = BTreeSet::new();
        for (name, pods) in [("succeeded", &uncounted.succeeded), ("failed", &uncounted.failed)] {
            let path = path.child(name);
            for (index, pod) in pods.iter().flatten().enumerate() {
                let path = path.index(index);
                if pod.is_empty() {
                    errors.push(Error::invalid(&path, "", "must not be empty"));
                } else if !seen.insert(pod) {
                    errors.push(Error::duplicate(&path, pod.as_str()));
                }
            }
        }
        errors
    }

    /// How a job may end: it first says how it will, and then it cannot end otherwise.
    fn check_end(&self, path: &Path<'_>) -> Vec<Error> {
        let path = path.child("conditions");
        let (is_complete, is_failed) = (self.is("Complete"), self.is("Failed"));
        let (is_met, is_failing) = (self.is("SuccessCriteriaMet"), self.is("FailureTarget"));
        let completes = self.changes("Complete");
        let fails = self.changes("Failed");
        let indexes_fail = self.new.failed_indexes != self.old.failed_indexes;
        let was_met = is_true(self.old, "SuccessCriteriaMet");
        let broken = [
            (
                (completes || fails) && is_complete && is_failed,
                "cannot set Complete=True and Failed=true conditions",
            ),
            (
                (completes || self.changes("FailureTarget")) && is_complete && is_failing,
                "cannot set Complete=True and FailureTarget=true conditions",
            ),
            (
                (fails || indexes_fail) && is_failed && !is_failing,
                "cannot set Failed=True condition without the FailureTarget=true condition",
            ),
            (
                (completes || self.changes("SuccessCriteriaMet")) && is_complete && !is_met,
                "cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
            ),
            (is_met && is_failed, "cannot set SuccessCriteriaMet=True and Failed=true conditions"),
            (
                is_met && is_failing,
                "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions",
            ),
            (
                self.spec.success_policy.is_some() && !is_met && is_complete,
                "cannot set Complete=True for Job with SuccessPolicy unless \
                 SuccessCriteriaMet=True",
            ),
            (was_met && !is_met, "cannot disable the SuccessCriteriaMet=True condition"),
            (
                is_true(self.old, "Complete") && !was_met && is_met,
                "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions",
            ),
        ];
        let broken = broken.into_iter().filter(|(is_broken, _)| *is_broken);
        let mut errors: Vec<Error> =
            broken.map(|(_, detail)| check::invalid_unshown(&path, detail)).collect();
        for condition in ["Failed", "Complete", "FailureTarget"] {
            if is_true(self.old, condition) && !self.is(condition) {
                let detail = format!("cannot disable the terminal {condition}=True condition");
                errors.push(check::invalid_unshown(&path, detail));
            }
        }
        errors
    }

    fn check_times(&self, path: &Path<'_>) -> Vec<Error> {
        let mut errors = Vec::new();
        let (new, old) = (self.new, self.old);
        let (start_path, end_path) = (path.child("startTime"), path.child("completionTime"));
        let shown = |name: &str| self.tree[name].clone();
        let starts = new.start_time != old.start_time;
        let ends = new.completion_time != old.completion_time;
        if self.changes("Complete") || ends {
            if new.completion_time.is_some() && !self.is("Complete") {
                let detail = "cannot set completionTime when there is no Complete=True condition";
                errors.push(Error::invalid(&end_path, shown("completionTime"), detail));
            }
            if new.completion_time.is_none() && self.is("Complete") {
                let detail = "completionTime is required for Complete jobs";
                errors.push(Error::required(&end_path, detail));
            }
        }
        if let (Some(start), Some(end)) = (&new.start_time, &new.completion_time)
            && (starts || ends)
            && end < start
        {
            let detail = "must be equal to or after `startTime`";
            errors.push(Error::invalid(&end_path, shown("completionTime"), detail));
        }
        if new.completion_time.is_some() && old.completion_time.is_some() && ends {
            let shown = shown("completionTime");
            errors.push(Error::invalid(&end_path, shown, "field is immutable"));
        }
        let is_suspended = self.spec.suspend == Some(true);
        let resumes = is_true(old, "Suspended") && has(new, "Suspended", "False");
        if old.start_time.is_some() && starts && !resumes && !is_suspended {
            let detail = "field is immutable for unsuspended job once set";
            errors.push(Error::invalid(&start_path, shown("startTime"), detail));
        }
        let never_ran = is_suspended && self.spec.completions == Some(0);
        if (self.finishes() || starts)
            && !never_ran
            && new.start_time.is_none()
            && self.is_finished()
        {
            let detail = "startTime is required for finished job";
            errors.push(Error::required(&start_path, detail));
        }
        errors
    }

    /// A finished job has no pods left, running or uncounted.
    fn check_finished(&self, path: &Path<'_>) -> Vec<Error> {
        let mut errors = Vec::new();
        let (new, old) = (self.new, self.old);
        let (is_finished, finishes) = (self.is_finished(), self.finishes());
        let active = new.active.unwrap_or_default();
        let active_changes = active != old.active.unwrap_or_default();
        if is_finished && active > 0 && (finishes || active_changes) {
            let detail = "active>0 is invalid for finished job";
            errors.push(Error::invalid(&path.child("active"), active, detail));
        }
        if let Some(terminating) = new.terminating.filter(|terminating| *terminating > 0)
            && is_finished
            && (finishes || new.terminating != old.terminating)
        {
            let detail = "terminating>0 is invalid for finished job";
            errors.push(Error::invalid(&path.child("terminating"), terminating, detail));
        }
        if let Some(uncounted) = new.uncounted_terminated_pods.as_ref().filter(|u| !is_empty(u))
            && is_finished
            && (finishes || new.uncounted_terminated_pods != old.uncounted_terminated_pods)
        {
            let shown = json!({ "Succeeded": uncounted.succeeded, "Failed": uncounted.failed });
            let path = path.child("uncountedTerminatedPods");
            errors.push(Error::invalid(&path, shown, "must be empty for finished job"));
        }
        if let Some(ready) = new.ready.filter(|ready| *ready > active)
            && (new.ready != old.ready || active_changes)
        {
            let detail = "cannot set more ready pods than active";
            errors.push(Error::invalid(&path.child("ready"), ready, detail));
        }
        errors
    }

    fn check_indexes(&self, path: &Path<'_>) -> Vec<Error> {
        let mut errors = Vec::new();
        let completed = self.new.completed_indexes.as_deref().unwrap_or_default();
        let completed_changes =
            completed != self.old.completed_indexes.as_deref().unwrap_or_default();
        let failed = self.new.failed_indexes.as_deref();
        let failed_changes = failed != self.old.failed_indexes.as_deref();
        let (completed_path, failed_path) =
            (path.child("completedIndexes"), path.child("failedIndexes"));
        let has_limit = self.spec.backoff_limit_per_index.is_some();
        if completed_changes {
            if let Some(completions) = self.spec.completions
                && let Err(problem) = index::count(completed, completions)
            {
                let detail = format!("error parsing completedIndexes: {problem}");
                errors.push(Error::invalid(&completed_path, completed, detail));
            }
            if !completed.is_empty() && self.spec.completion_mode.as_deref() != Some(INDEXED) {
                let detail =
                    "cannot set non-empty completedIndexes when non-indexed completion mode";
                errors.push(Error::invalid(&completed_path, completed, detail));
            }
        }
        if let Some(failed) = failed.filter(|_| failed_changes) {
            if let Some(completions) = self.spec.completions.filter(|_| has_limit)
                && let Err(problem) = index::count(failed, completions)
            {
                let detail = format!("error parsing failedIndexes: {problem}");
                errors.push(Error::invalid(&failed_path, failed, detail));
            }
            if !has_limit {
                let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
                errors.push(Error::invalid(&failed_path, failed, detail));
            }
        }
        if let (Some(failed), Some(completions)) = (failed, self.spec.completions)
            && (failed_changes || completed_changes)
            && let Some(index) = index::overlap(completed, failed, completions)
        {
            let detail = format!("failedIndexes and completedIndexes overlap at index: {index}");
            errors.push(Error::invalid(&failed_path, failed, detail));
        }
        errors
    }

    /// Pods that ended stay ended; only a job that was scaled down has fewer that succeeded.
    fn check_progress(&self, path: &Path<'_>) -> Vec<Error> {
        let mut errors = Vec::new();
        let is_indexed = self.spec.completion_mode.as_deref() == Some(INDEXED);
        let is_scalable = is_indexed && self.spec.completions == self.spec.parallelism;
        let counters = [
            ("failed", self.new.failed, self.old.failed, true),
            ("succeeded", self.new.succeeded, self.old.succeeded, !is_scalable),
        ];
        for (name, new, old, is_rising) in counters {
            let new = new.unwrap_or_default();
            if is_rising && new < old.unwrap_or_default() {
                let detail = format!("cannot decrease the {name} counter");
                errors.push(Error::invalid(&path.child(name), new, detail));
            }
        }
        errors
    }
}

fn is_empty(uncounted: &UncountedTerminatedPods) -> bool {
    let count = |pods: &Option<Vec<String>>| pods.as_ref().map_or(0, Vec::len);
    count(&uncounted.succeeded) + count(&uncounted.failed) == 0
}
