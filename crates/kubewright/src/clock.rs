//! What time it is.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time that is written into objects for others to read. What is measured here is
/// measured by tokio's clock instead, which nobody sets.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// One that shows what it is told.
    pub fn new(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Clock(Arc::new(now))
    }

    /// The machine's.
    pub fn system() -> Self {
        Clock(Arc::new(Timestamp::now))
    }

    /// One that shows `base` now and goes on as tokio's clock does, which tests can pause.
    pub fn starting_at(base: Timestamp) -> Self {
        let since = Instant::now();
        Clock(Arc::new(move || {
            let elapsed = SignedDuration::try_from(since.elapsed()).unwrap_or(SignedDuration::MAX);
            base.saturating_add(elapsed).unwrap_or(Timestamp::MAX)
        }))
    }

    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
