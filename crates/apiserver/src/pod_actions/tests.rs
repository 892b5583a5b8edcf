//! Replays what upstream answered to bindings and evictions.

use crate::replay::replay;

#[tokio::test]
async fn pods_are_bound_and_evicted_as_by_upstream() {
    replay("pod-actions").await;
}
