//! The operator as a program of its own, which finds its cluster by a kubeconfig.

use std::process::{Child, Command};
use std::time::Duration;

use at::{At, AtSpec};
use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use kube::CustomResourceExt as _;
use kube::api::{Api, PostParams};
use kubewright_testing::Cluster;
use serde_json::json;

/// A program that does not outlive the test.
struct Program(Child);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn the_program_works_on_the_cluster_of_its_kubeconfig() {
    let cluster = Cluster::from_env().await;
    cluster.apply(&json!(At::crd())).await;
    cluster.served("ats.cnat.programming-kubernetes.info").await;
    let nowhere = ["metrics", "health-probe", "webhook"].map(|it| format!("--{it}-bind-address=0"));
    let program = Command::new(env!("CARGO_BIN_EXE_at"))
        .env("KUBECONFIG", cluster.kubeconfig().await)
        .arg(format!("--namespace={}", cluster.namespace()))
        .args(nowhere)
        .arg("--log-level=warn")
        .spawn();
    let program = Program(program.expect("it starts"));
    let due = cluster.clock().now() - SignedDuration::from_secs(1);
    let spec = AtSpec { schedule: Some(due.to_string()), command: Some("echo YAY".to_owned()) };
    let ats: Api<At> = Api::default_namespaced(cluster.client());
    ats.create(&PostParams::default(), &At::new("tea", spec)).await.expect("created");
    let namespace = Some(cluster.namespace());
    let made = cluster.eventually::<Pod>(namespace, "tea-pod", |pod| pod.is_some());
    tokio::time::timeout(Duration::from_secs(60), made).await.expect("in time");
    drop(program);
    cluster.shutdown().await;
}

#[test]
fn its_manifests_say_at_which_path_it_is_called() {
    let manifests = at::operator().package().render().expect("manifests");
    let mut called = manifests.iter().filter(|it| it.kind() == "ValidatingWebhookConfiguration");
    let called = &called.next().expect("a configuration").object["webhooks"][0]["clientConfig"];
    assert_eq!(called["service"]["path"], "/validate-cnat-programming-kubernetes-info-v1alpha1-at");
    assert_eq!(called["service"]["namespace"], "at-system");
}

#[test]
fn its_manifests_have_the_sample_of_its_folder() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_at"));
    let told = program.args(["manifests", "--only", "samples"]).output().expect("it runs");
    let told = String::from_utf8(told.stdout).expect("a text");
    let samples = kubewright_testing::yaml(&told);
    let [sample] = &samples[..] else { panic!("one sample, and not {told}") };
    assert_eq!(sample["metadata"]["name"], "example-at");
    assert_eq!(sample["spec"], kubewright_testing::yaml(at::SAMPLE)[0]["spec"]);
}
