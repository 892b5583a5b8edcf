//! Panics of what authors have written.
//!
//! Predicates, mappings, indexes, projections and timers are called by those who watch a kind for
//! everybody. One that panics must cost nobody else anything: it is told of, counted, and what it
//! would have said is taken for whatever loses nothing.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tracing::error;

/// Calls what authors have written about a kind. A clone counts for the same.
#[derive(Debug, Clone)]
pub(crate) struct Panics {
    kind: Arc<str>,
    count: Arc<AtomicU64>,
}

impl Panics {
    pub(crate) fn of(kind: &str) -> Self {
        Panics { kind: kind.into(), count: Arc::default() }
    }

    /// What a call gives; none if it panics.
    pub(crate) fn caught<T>(&self, what: &'static str, call: impl FnOnce() -> T) -> Option<T> {
        // Whoever calls makes no more of what was half-done.
        match catch_unwind(AssertUnwindSafe(call)) {
            Ok(value) => Some(value),
            Err(panic) => {
                self.count.fetch_add(1, Ordering::Relaxed);
                error!(kind = &*self.kind, what, panic = text(&*panic), "caught a panic");
                None
            }
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// What a panic says.
pub(crate) fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
