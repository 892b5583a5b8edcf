//! The controller of the kind `Guestbook`.

use guestbook::guestbook::v1::Guestbook;
use kube::CustomResourceExt as _;
use kubewright::condition::Conditions as _;
use kubewright::manifest::sample;
use kubewright_testing::on_cluster;

#[test]
fn an_object_becomes_ready() {
    on_cluster(async |cluster| {
        let running = cluster.run(guestbook::operator()).await;
        cluster.apply(&sample(&Guestbook::crd()).expect("it has a schema")).await;
        let is_ready = |object: Option<&Guestbook>| {
            let status = object.and_then(|object| object.status.as_ref());
            status.is_some_and(|status| status.conditions.is_true("Ready"))
        };
        cluster.eventually(Some(cluster.namespace()), "guestbook-sample", is_ready).await;
        running.stop().await;
    });
}
