//! Replays what upstream answered to pods, workloads and namespaces.

use crate::replay::replay;

#[tokio::test]
async fn pods_are_judged_as_upstream_judges_them() {
    replay("pod-security").await;
}
