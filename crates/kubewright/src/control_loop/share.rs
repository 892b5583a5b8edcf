//! What to look at when the share of a replica changes.

use std::collections::HashSet;
use std::sync::Arc;

use super::{INITIAL_PRIORITY, add_all, outside};
use crate::informer::{Informer, Object};
use crate::key::ObjectKey;
use crate::queue::Queue;
use crate::shard::Ring;

/// Has every key looked at that becomes this replica's. It may have been passed over before, and
/// what another had still to do for it nobody knows.
pub(super) async fn follow<K: Object>(
    ring: Ring,
    primary: Informer<K>,
    queue: Arc<Queue<ObjectKey>>,
) {
    let source: Arc<str> = "share".into();
    let mut share = ring.share();
    let (mut ours, mut changes) = (HashSet::new(), 0);
    loop {
        let seen = share.borrow_and_update().changes;
        // Those that cannot be read now are ours all the same, and are tried until they can.
        let objects = primary.last_seen().into_iter();
        let keys = objects.map(|object| ObjectKey::of(object.meta()));
        let now: HashSet<ObjectKey> = keys.filter(|key| ring.claims(key)).collect();
        // Of a change that was not seen by itself nobody can tell what it was.
        let is_gapless = seen <= changes + 1 && share.borrow().changes == seen;
        let new = now.iter().filter(|key| !(is_gapless && ours.contains(*key)));
        add_all(&queue, new.cloned(), INITIAL_PRIORITY, &outside(&source));
        (ours, changes) = (now, seen);
        // Its sender is in the ring.
        if share.wait_for(|share| share.changes != seen).await.is_err() {
            return;
        }
    }
}
