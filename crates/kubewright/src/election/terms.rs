//! How long a lease lasts, and how often it is renewed.

use std::time::Duration;

use tokio::time::Instant;

use crate::random;

/// How much longer than the retry period a candidate may wait between two looks, as in client-go.
const JITTER: f64 = 1.2;

/// The times of a lease. The default is that of Kubernetes' own components: 15 s, 10 s and 2 s.
///
/// What is certain is counted from the moment a renewal was *sent*: another candidate cannot have
/// seen it before, and waits for `lease` from when it saw it.
///
/// ```text
/// sent          renew deadline         answers given up            lease
///  0 s ───────────── 10 s ───────────────── 12.5 s ──────────────── 15 s
///  │ writes are sent  │ those under way may    │ nobody writes       │ others may
///  │                  │ still be answered      │                     │ take the lease
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    lease: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// Times that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTerms {
    #[error("keep a lease for {lease:?}: a Lease counts whole seconds, at least one")]
    NotInSeconds { lease: Duration },
    #[error("renew within {renew_deadline:?}: a lease of {lease:?} must last longer")]
    LeaseTooShort { lease: Duration, renew_deadline: Duration },
    #[error("try every {retry:?}: a renew deadline of {renew_deadline:?} must be 1.2 times longer")]
    DeadlineTooShort { renew_deadline: Duration, retry: Duration },
    #[error("try all the time: a pause is needed")]
    NoPause,
}

impl Terms {
    /// # Errors
    /// If a holder could not renew in time, or would not know in time that it could not.
    pub fn new(
        lease: Duration,
        renew_deadline: Duration,
        retry: Duration,
    ) -> Result<Self, BadTerms> {
        if lease.as_secs() == 0 || lease.subsec_nanos() != 0 {
            return Err(BadTerms::NotInSeconds { lease });
        }
        if lease <= renew_deadline {
            return Err(BadTerms::LeaseTooShort { lease, renew_deadline });
        }
        if renew_deadline <= retry.mul_f64(JITTER) {
            return Err(BadTerms::DeadlineTooShort { renew_deadline, retry });
        }
        if retry.is_zero() {
            return Err(BadTerms::NoPause);
        }
        Ok(Terms { lease, renew_deadline, retry })
    }

    pub fn lease(&self) -> Duration {
        self.lease
    }

    pub fn renew_deadline(&self) -> Duration {
        self.renew_deadline
    }

    pub fn retry(&self) -> Duration {
        self.retry
    }

    /// Until when writes are sent after a renewal that was sent at this moment.
    pub(crate) fn writes_until(&self, renewed: Instant) -> Instant {
        renewed + self.renew_deadline
    }

    /// Until when an answer to such a write is waited for. What is then still on its way has as
    /// long again to arrive or get lost before another holder may write.
    pub(crate) fn answers_until(&self, renewed: Instant) -> Instant {
        renewed + self.renew_deadline + (self.lease - self.renew_deadline) / 2
    }

    /// How long one request about the lease may take: a lost one leaves time for another.
    pub(crate) fn request_max(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// How long a candidate waits before it looks again: not all look at once.
    pub(crate) fn pause(&self) -> Duration {
        let more = self.retry.mul_f64(JITTER).as_millis() as u64;
        self.retry + Duration::from_millis(random::below(more + 1))
    }
}

impl Default for Terms {
    fn default() -> Self {
        Terms {
            lease: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}
