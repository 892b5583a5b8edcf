//! Leases, shared by values that expire at about the same time: a lease costs etcd a consensus round
//! and a timer, and a busy cluster writes hundreds of Events a second with the same time to live.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::OnceCell;
use tokio::time::Instant;

use super::client::{CallError, Client};

#[cfg(test)]
mod tests;

/// The lease in use for each time to live.
#[derive(Default)]
pub(super) struct Leases {
    slots: Mutex<HashMap<u64, Slot>>,
}

/// At most so much longer than asked may a value live, because it shares a lease.
const SLACK_MAX_SECONDS: u64 = 60;
/// An expiring lease deletes its keys in one transaction, which must stay small.
const KEYS_MAX: u32 = 1000;

struct Slot {
    /// Filled by whoever comes first; the others wait for it.
    lease: Arc<OnceCell<i64>>,
    /// Never later than the lease's own end.
    expires: Instant,
    keys: u32,
}

impl Leases {
    /// A lease that lasts at least `ttl` from now, and little longer.
    pub(super) async fn lease(&self, client: &Client, ttl: Duration) -> Result<i64, CallError> {
        let seconds = whole_seconds(ttl);
        let lease = self.take(Instant::now(), seconds);
        let id = lease
            .get_or_try_init(|| async {
                let granted = client.lease_grant((seconds + slack(seconds)).cast_signed()).await?;
                Ok(granted.id)
            })
            .await?;
        Ok(*id)
    }

    /// The lease is gone; nobody gets it again.
    pub(super) fn forget(&self, id: i64) {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|_, slot| slot.lease.get() != Some(&id));
    }

    fn take(&self, now: Instant, seconds: u64) -> Arc<OnceCell<i64>> {
        let mut slots = self.slots.lock().unwrap_or_else(PoisonError::into_inner);
        slots.retain(|_, slot| slot.expires > now);
        let least = now + Duration::from_secs(seconds);
        let most = least + Duration::from_secs(slack(seconds));
        let slot = slots
            .entry(seconds)
            .and_modify(|slot| {
                if slot.expires < least || slot.keys >= KEYS_MAX {
                    *slot = Slot::new(most);
                }
            })
            .or_insert_with(|| Slot::new(most));
        slot.keys += 1;
        Arc::clone(&slot.lease)
    }
}

impl Slot {
    fn new(expires: Instant) -> Self {
        Self { lease: Arc::default(), expires, keys: 0 }
    }
}

/// etcd counts whole seconds; a value never expires early.
fn whole_seconds(ttl: Duration) -> u64 {
    (ttl.as_secs() + u64::from(ttl.subsec_nanos() > 0)).max(1)
}

fn slack(seconds: u64) -> u64 {
    (seconds / 20).min(SLACK_MAX_SECONDS)
}
