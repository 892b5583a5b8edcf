//! The operator on a cluster of its own, which is in memory and in virtual time.

mod guestbook_controller;

use kubewright_testing::on_cluster;

/// Its definitions and roles are accepted, and it runs with no other rights.
#[test]
fn the_operator_can_be_installed() {
    on_cluster(async |cluster| {
        let running = cluster.run(guestbook::operator()).await;
        running.stop().await;
    });
}
