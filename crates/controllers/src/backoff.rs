//! How long to wait before trying again.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_secs(30);

/// The pause after so many failures in a row, the first of which has number 0.
pub(crate) fn pause(failures: u32) -> Duration {
    FIRST.saturating_mul(2_u32.saturating_pow(failures)).min(LONGEST)
}

/// A count of failures.
#[derive(Default)]
pub(crate) struct Backoff {
    failures: u32,
}

impl Backoff {
    pub(crate) fn reset(&mut self) {
        self.failures = 0;
    }

    /// Waits longer each time.
    pub(crate) async fn wait(&mut self) {
        let pause = pause(self.failures);
        tokio::time::sleep(pause).await;
        self.failures += 1;
    }
}
