//! What time it is.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::time::Instant;

/// Tells the time as a duration since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub enum Clock {
    /// The machine's.
    System,
    /// A moment, and whatever has passed since then by tokio's clock, which tests can pause.
    Virtual { base: Duration, since: Instant },
}

impl Clock {
    /// Starts at the machine's time and then follows tokio's clock.
    pub fn started_now() -> Self {
        Clock::Virtual { base: Clock::System.now(), since: Instant::now() }
    }

    pub fn now(&self) -> Duration {
        match self {
            Clock::System => system(),
            Clock::Virtual { base, since } => *base + since.elapsed(),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the place where the machine is asked")]
fn system() -> Duration {
    // A machine that believes it is before 1970 is wrong, but not by our fault.
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}
