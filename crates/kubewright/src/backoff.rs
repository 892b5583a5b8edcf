//! How long to wait before the server is asked again.

use std::time::Duration;

use crate::random;

const PAUSE_MIN: Duration = Duration::from_millis(800);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Backoff(u32);

impl Backoff {
    pub(crate) fn reset(&mut self) {
        self.0 = 0;
    }

    /// Waits longer each time, and up to twice as long as need be, so that not all clients of a
    /// server that was away come back at once.
    pub(crate) async fn wait(&mut self) {
        let pause = PAUSE_MIN.saturating_mul(2_u32.saturating_pow(self.0)).min(PAUSE_MAX);
        self.0 = self.0.saturating_add(1);
        let more = random::below(pause.as_millis() as u64 + 1);
        tokio::time::sleep(pause + Duration::from_millis(more)).await;
    }
}
