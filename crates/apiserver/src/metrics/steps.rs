//! How long admission takes, a step at a time.

use std::time::Duration;

use super::histogram::{ADMISSION_SECONDS, Histogram};
use super::text::{Kind, Page};
use crate::admission::Operation;

/// A step of admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Objects are completed.
    Admit,
    /// Objects are judged.
    Validate,
}

/// By operation, by whether it was refused, by step.
#[derive(Debug)]
pub(super) struct Steps([[[Histogram; 2]; 2]; OPERATIONS.len()]);

/// In the order of their names.
const OPERATIONS: [Operation; 4] =
    [Operation::Connect, Operation::Create, Operation::Delete, Operation::Update];

impl Default for Steps {
    fn default() -> Self {
        let new = || Histogram::new(&ADMISSION_SECONDS);
        Steps([(); OPERATIONS.len()].map(|()| [(); 2].map(|()| [(); 2].map(|()| new()))))
    }
}

impl Steps {
    pub(super) fn took(
        &self,
        step: Step,
        operation: Operation,
        is_rejected: bool,
        elapsed: Duration,
    ) {
        let at = OPERATIONS.iter().position(|other| *other == operation);
        let step = usize::from(step == Step::Validate);
        let steps = &self.0[at.expect("every operation is there")];
        steps[usize::from(is_rejected)][step].observe_time(elapsed);
    }

    pub(super) fn write(&self, page: &mut Page) {
        page.family(
            "apiserver_admission_step_admission_duration_seconds",
            Kind::Histogram,
            "[STABLE] Admission sub-step latency histogram in seconds, broken out for each \
             operation and API resource and step type (validate or admit).",
        );
        for (operation, rejected) in OPERATIONS.iter().zip(&self.0) {
            for (rejected, steps) in ["false", "true"].into_iter().zip(rejected) {
                for (step, durations) in ["admit", "validate"].into_iter().zip(steps) {
                    if durations.count() > 0 {
                        let labels = [
                            ("operation", operation.as_str()),
                            ("rejected", rejected),
                            ("type", step),
                        ];
                        page.histogram(&labels, durations);
                    }
                }
            }
        }
    }
}
