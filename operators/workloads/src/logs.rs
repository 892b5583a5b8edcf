//! The logs of all pods, as they come.

use std::pin::pin;

use anyhow::{Context as _, Result};
use futures::io::AsyncBufReadExt as _;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, LogParams};
use kube::{Client, ResourceExt as _};

use crate::Show;
use crate::objects::{NAME, SELECTOR};

/// Shows the logs of all pods for ever. A pod whose logs cannot be had, or have ended, is told of
/// once and keeps nobody else from being shown.
pub(crate) async fn show(client: &Client, namespace: &str, show: &Show) -> Result<()> {
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let listed = pods.list(&ListParams::default().labels(SELECTOR)).await;
    let names = listed.context("list pods")?.into_iter().map(|pod| pod.name_any());
    let following = names.map(|name| {
        let pods = pods.clone();
        async move {
            match follow(&pods, &name, show).await {
                Ok(()) => show.line(&format!("the logs of {name} have ended")),
                Err(error) => show.line(&format!("no logs of {name}: {error:#}")),
            }
        }
    });
    stream::iter(following).for_each_concurrent(None, |followed| followed).await;
    // There is nothing more to show; whoever looks says when it is over.
    std::future::pending().await
}

async fn follow(pods: &Api<Pod>, name: &str, show: &Show) -> Result<()> {
    let params =
        LogParams { container: Some(NAME.to_owned()), follow: true, ..LogParams::default() };
    let mut lines = pin!(pods.log_stream(name, &params).await?.lines());
    while let Some(line) = lines.try_next().await? {
        show.line(&format!("{name}: {line}"));
    }
    Ok(())
}
