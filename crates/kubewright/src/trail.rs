//! What a trace tells of a change before it is reconciled: that it was heard of, and how long it
//! waited.
//!
//! An `event` is the root of a trace. Below it are a `queue` for each key that it was put down for,
//! which ends when a worker takes the key, and then the `reconcile`, with the calls of the API that
//! it makes. A change of a key that waits already joins it: the `queue` says that it follows from
//! that one, too. What is tried again begins a trace of its own.
//!
//! These spans are for traces. Lines of logs have the causes of a reconcile in its own span, and
//! are long enough; so they are of a level and a target that logs leave out unless they are asked.

use tracing::{Span, debug_span};

use crate::queue::Cause;

/// A key that waits, in the trace of what it waits for.
#[derive(Debug)]
pub(crate) struct Trail {
    event: Span,
    queue: Span,
}

/// Something that happened, if anybody wants to know.
pub(crate) fn event(cause: &Cause) -> Span {
    let Cause { source, object, revision } = cause;
    debug_span!("event", source = &**source, object = &**object, revision = &**revision)
}

impl Trail {
    /// A key begins to wait. None if nobody wants to know.
    pub(crate) fn begin(event: Span) -> Option<Box<Self>> {
        if event.is_disabled() {
            return None;
        }
        let queue = debug_span!(parent: &event, "queue");
        Some(Box::new(Trail { event, queue }))
    }

    /// Something else has happened to a key that waits.
    pub(crate) fn join(&self, other: &Trail) {
        self.queue.follows_from(&other.event);
    }

    /// The wait is over. Gives what the work belongs to.
    pub(crate) fn end(self) -> Span {
        self.event
    }
}
