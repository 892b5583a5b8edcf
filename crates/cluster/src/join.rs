//! Parts of ours that join a cluster which runs elsewhere, ours or upstream's, by its kubeconfig.

mod node;
mod scheduler;
mod serving;

use std::path::Path;

use anyhow::{Context as _, Result};
use kube::{Client, Config};
use kubewright::connect;

pub use self::node::{Joined, NodeOptions, node};
pub use self::scheduler::{Scheduling, scheduler};
pub use self::serving::Serving;
pub use kubewright_scheduler::config::Args as SchedulerArgs;

/// A cluster that answers.
struct Reached {
    client: Client,
    config: Config,
}

async fn reach(kubeconfig: Option<&Path>) -> Result<Reached> {
    let connection = connect::find(kubeconfig, |name: &str| std::env::var_os(name)).await?;
    let (config, source) = (connection.config.clone(), connection.source.clone());
    let client = connection.client(&connect::Options::default())?;
    client.apiserver_version().await.with_context(|| {
        format!("reach the cluster at {}, found in {source}", config.cluster_url)
    })?;
    Ok(Reached { client, config })
}
