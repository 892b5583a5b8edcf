//! What to look at when a kind arrives that nobody waits for.

use std::sync::Arc;

use super::{INITIAL_PRIORITY, add_all, is_beyond_reach, outside};
use crate::informer::{Informer, Object, State};
use crate::key::ObjectKey;
use crate::queue::Queue;

/// Has everything looked at each time that a kind comes to be served, or may be read at last: what
/// could not be done without it can be done now, and no change of an object tells of that.
pub(super) async fn follow<K: Object, C: Object>(
    arriving: Informer<C>,
    primary: Informer<K>,
    queue: Arc<Queue<ObjectKey>>,
) {
    let source: Arc<str> = format!("arrival {}", arriving.kind()).into();
    loop {
        arriving.until(is_beyond_reach).await;
        arriving.until(|state| *state == State::Live).await;
        let objects = primary.last_seen().into_iter();
        let keys = objects.map(|object| ObjectKey::of(object.meta()));
        add_all(&queue, keys, INITIAL_PRIORITY, &outside(&source));
    }
}
