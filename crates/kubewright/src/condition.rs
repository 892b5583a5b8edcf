//! Conditions: what is so with an object, as every tool reads it.
//!
//! ```
//! use jiff::Timestamp;
//! use kubewright::condition::{self, Conditions as _};
//!
//! let mut conditions = Vec::new();
//! let at = |second| Timestamp::from_second(second).unwrap();
//! conditions.set(condition::new("Ready", false, "Waiting", "the pod starts", at(1)));
//! conditions.set(condition::new("Ready", false, "Waiting", "the pod still starts", at(2)));
//! assert_eq!(conditions[0].last_transition_time.0, at(1));
//! conditions.set(condition::new("Ready", true, "Running", "the pod runs", at(3)));
//! assert!(conditions.is_true("Ready"));
//! assert_eq!(conditions[0].last_transition_time.0, at(3));
//! ```

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The condition that people and tools look for first.
pub const READY: &str = "Ready";

/// A condition as it is from now on.
pub fn new(kind: &str, status: bool, reason: &str, message: &str, now: Timestamp) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: if status { "True" } else { "False" }.to_owned(),
        reason: reason.to_owned(),
        message: message.to_owned(),
        // To the second, as it is stored: else it would differ from itself once it is read.
        last_transition_time: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
        observed_generation: None,
    }
}

/// The conditions of an object.
pub trait Conditions {
    /// Puts a condition in the place of the one of its type. The time of its last transition
    /// stays, unless it is true now and was not, or the other way round.
    fn set(&mut self, condition: Condition);

    fn find(&self, kind: &str) -> Option<&Condition>;

    fn is_true(&self, kind: &str) -> bool {
        self.find(kind).is_some_and(|condition| condition.status == "True")
    }
}

impl Conditions for Vec<Condition> {
    fn set(&mut self, condition: Condition) {
        match self.iter_mut().find(|known| known.type_ == condition.type_) {
            Some(known) if known.status == condition.status => {
                let last_transition_time = known.last_transition_time.clone();
                *known = Condition { last_transition_time, ..condition };
            }
            Some(known) => *known = condition,
            None => self.push(condition),
        }
    }

    fn find(&self, kind: &str) -> Option<&Condition> {
        self.iter().find(|condition| condition.type_ == kind)
    }
}
