//! A program in a pod of this machine finds its cluster by what is mounted there.
//!
//! The program is this test itself: what it does in a pod is what [`clients::find`] shows.

use std::env;

use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, LogParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::wait::await_condition;
use kube::{Client, Config};
use serde_json::json;

use crate::User;

/// Set where this runs in a pod.
const IN_POD: &str = "KUBEWRIGHT_TEST_IN_POD";
/// Set where the machine's files are not to be had under other paths.
const NO_MOUNTS: &str = "KUBEWRIGHT_POD_ROOT";

#[tokio::test]
async fn the_service_account_of_a_pod_is_enough() {
    if env::var_os(IN_POD).is_some() {
        return say_who_i_am().await;
    }
    let user = User::new();
    let up = ["up", "--ephemeral", "--detach", "--node", "process"];
    user.run(&[&up[..], &["--port", "0", "--ingress-port", "0"]].concat()).expect("up");
    let pods: Api<Pod> = Api::default_namespaced(client(&user).await);
    let program = env::current_exe().expect("a program");
    let test = "in_pod::the_service_account_of_a_pod_is_enough";
    let pod = json!({
        "metadata": {"name": "me"},
        "spec": {"restartPolicy": "Never", "containers": [{
            "name": "me",
            "image": "busybox",
            "command": [program, test, "--exact", "--nocapture"],
            "env": [{"name": IN_POD, "value": "yes"}],
        }]},
    });
    let pod = serde_json::from_value(pod).expect("a pod");
    pods.create(&PostParams::default(), &pod).await.expect("created");
    let has_ended = |pod: Option<&Pod>| {
        let phase = pod.and_then(|pod| pod.status.as_ref()?.phase.as_deref());
        matches!(phase, Some("Succeeded" | "Failed"))
    };
    await_condition(pods.clone(), "me", has_ended).await.expect("it ends");
    let log = pods.logs("me", &LogParams::default()).await.expect("a log");
    match log.contains("skipped: ") {
        true => eprintln!("skipped: nothing can be mounted for a pod here"),
        false => assert!(log.contains("I am system:serviceaccount:default:default"), "{log}"),
    }
    user.run(&["down"]).expect("down");
}

async fn say_who_i_am() {
    if env::var_os(NO_MOUNTS).is_some() {
        return println!("skipped: there are no mounts");
    }
    let client = clients::find::client(None, |name| env::var_os(name)).await;
    let reviews: Api<SelfSubjectReview> = Api::all(client.expect("a cluster"));
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await;
    let me = review.expect("an answer").status.and_then(|status| status.user_info);
    println!("I am {}", me.and_then(|me| me.username).unwrap_or_default());
}

async fn client(user: &User) -> Client {
    let kubeconfig = Kubeconfig::read_from(user.home.path().join(".kube/config"));
    let kubeconfig = kubeconfig.expect("a kubeconfig");
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.expect("a cluster")).expect("a client")
}
