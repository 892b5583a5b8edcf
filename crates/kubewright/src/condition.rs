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
//!
//! // What cannot be told is neither, and what makes no sense any more goes.
//! let unknown = condition::Status::Unknown;
//! conditions.set(condition::new("Backed-up", unknown, "NoAnswer", "the store is silent", at(4)));
//! assert!(!conditions.is_true("Backed-up"));
//! assert_eq!(conditions.status("Backed-up"), Some(unknown));
//! assert!(conditions.unset("Backed-up").is_some());
//! assert_eq!(conditions.status("Backed-up"), None);
//! ```

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// The condition that people and tools look for first.
pub const READY: &str = "Ready";

/// Whether something is so. A `bool` is one, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    True,
    False,
    /// Nobody can tell, for now.
    Unknown,
}

impl Status {
    /// As conditions have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::True => "True",
            Status::False => "False",
            Status::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Status {
    fn from(is_so: bool) -> Self {
        if is_so { Status::True } else { Status::False }
    }
}

/// A condition as it is from now on.
pub fn new(
    kind: &str,
    status: impl Into<Status>,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Condition {
    Condition {
        type_: kind.to_owned(),
        status: status.into().as_str().to_owned(),
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
    /// stays, unless its status is another now.
    fn set(&mut self, condition: Condition);

    /// Takes away the condition of a type, if it is there, and gives it.
    fn unset(&mut self, kind: &str) -> Option<Condition>;

    fn find(&self, kind: &str) -> Option<&Condition>;

    fn is_true(&self, kind: &str) -> bool {
        self.status(kind) == Some(Status::True)
    }

    /// Whether it is so, if anybody says. What others have written in no known word is unknown.
    fn status(&self, kind: &str) -> Option<Status> {
        self.find(kind).map(|condition| match condition.status.as_str() {
            "True" => Status::True,
            "False" => Status::False,
            _ => Status::Unknown,
        })
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

    fn unset(&mut self, kind: &str) -> Option<Condition> {
        let at = self.iter().position(|condition| condition.type_ == kind)?;
        Some(self.remove(at))
    }

    fn find(&self, kind: &str) -> Option<&Condition> {
        self.iter().find(|condition| condition.type_ == kind)
    }
}
