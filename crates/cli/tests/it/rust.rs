//! Programs on `kube`, the client of Rust operators, over TLS with the kubeconfig that users get.
//! They do what its examples do, and end by themselves: kinds derived from types, discovery,
//! watchers and caches, operators, pods. There is no node, so these tests play one where a pod
//! must run.

mod custom;
mod discover;
mod examples;
mod node;
mod observe;
mod operate;
mod pods;
mod remote;

use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{UP_ALONE, User};

/// Long enough for a machine under load: what is waited for is sure to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a program on a cluster of its own.
fn run<F: Future<Output = ()>>(program: impl FnOnce(Client) -> F) {
    let user = User::new();
    user.run(&UP_ALONE).expect("up");
    run_as(&user, |client| within_patience(program(client)));
}

async fn within_patience(program: impl Future<Output = ()>) {
    tokio::time::timeout(PATIENCE, program).await.expect("nothing waits for ever");
}

/// Runs a program on the cluster of a user.
pub(crate) fn run_as<F: Future<Output = ()>>(user: &User, program: impl FnOnce(Client) -> F) {
    // The process may hold two cryptographic libraries; rustls wants to be told which one it uses.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let kubeconfig = Kubeconfig::from_yaml(&user.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config = Config::from_custom_kubeconfig(kubeconfig, &options).await;
        let client = Client::try_from(config.expect("a context")).expect("a client");
        program(client).await;
    });
}

/// An object of its type.
fn typed<K: DeserializeOwned>(object: Value) -> K {
    serde_json::from_value(object).expect("an object of its type")
}

/// The code and the message of a refusal.
fn refusal<T>(outcome: kube::Result<T>) -> (u16, String) {
    match outcome {
        Err(kube::Error::Api(status)) => (status.code, status.message),
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it is not refused"),
    }
}
