//! What the owner of a store decides when opening it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use crate::Key;

/// What a store must be told, because it knows neither kinds nor the time.
pub struct Config<I> {
    /// What the owner wants to know about a value without reading it again; called once per
    /// write, and once per key when a store is opened.
    pub extract: fn(&Key, &Bytes) -> I,
    /// The leading part of a key that names its resource, which must also be what it answers
    /// for every prefix that is listed or watched. Each resource has its own history, so that a
    /// busy one does not shorten the others'.
    pub resource: fn(&str) -> &str,
    pub clock: Clock,
    pub history: HistoryBounds,
    /// Larger values are refused. The default is what etcd takes unless told otherwise.
    pub value_bytes_max: usize,
}

/// How much of the past each resource keeps for watches and exact lists.
#[derive(Clone, Copy, Debug)]
pub struct HistoryBounds {
    /// Older events may go. Upstream compacts etcd every five minutes.
    pub window: Duration,
    /// The oldest events go when those kept hold more than this.
    pub bytes_max: usize,
}

/// Tells the time as a duration since the Unix epoch.
///
/// It is handed in, so that a test can run a day in a millisecond.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl<I> Config<I> {
    /// The usual bounds.
    pub fn new(
        extract: fn(&Key, &Bytes) -> I,
        resource: fn(&str) -> &str,
        clock: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self {
            extract,
            resource,
            clock: Clock(Arc::new(clock)),
            history: HistoryBounds::default(),
            value_bytes_max: 3 << 19,
        }
    }
}

impl<I> Clone for Config<I> {
    fn clone(&self) -> Self {
        Self { clock: self.clock.clone(), ..*self }
    }
}

impl<I> fmt::Debug for Config<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("history", &self.history)
            .field("value_bytes_max", &self.value_bytes_max)
            .finish_non_exhaustive()
    }
}

impl Default for HistoryBounds {
    fn default() -> Self {
        Self { window: Duration::from_secs(5 * 60), bytes_max: 32 << 20 }
    }
}

impl Clock {
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}
