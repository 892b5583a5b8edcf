//! `clients`: the examples, on the cluster that the kubeconfig leads to.

use std::ops::ControlFlow;
use std::path::PathBuf;

use anyhow::Result;
use clap::{Parser, Subcommand};
use clients::{custom, find, pod, shared, watch};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::Api;
use kubewright::Cache;

#[derive(Parser)]
#[command(version, about = "The API by example")]
struct Cli {
    /// Which cluster [default: that of the pod, of $KUBECONFIG, or of ~/.kube/config]
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// Where objects are [default: as the kubeconfig says]
    #[arg(long, global = true)]
    namespace: Option<String>,
    /// Speak protobuf where the server does
    #[arg(long, global = true)]
    protobuf: bool,
    #[command(subcommand)]
    example: Example,
}

#[derive(Subcommand)]
enum Example {
    /// Create pod foo, read it, relabel it, delete it
    Pod,
    /// Watch pods until interrupted
    Watch,
    /// Follow pods twice over one connection until interrupted
    Shared,
    /// Get ats/example-at without its type
    Dynamic,
    /// Get ats/example-at by its type
    Typed,
}

#[tokio::main]
async fn main() -> Result<()> {
    let Cli { kubeconfig, namespace, protobuf, example } = Cli::parse();
    let environment = |name: &str| std::env::var_os(name);
    let client = match protobuf {
        true => find::client_in_protobuf(kubeconfig.as_deref(), environment).await?,
        false => find::client(kubeconfig.as_deref(), environment).await?,
    };
    let namespace = namespace.unwrap_or_else(|| client.default_namespace().to_owned());
    let pods: Api<Pod> = Api::namespaced(client.clone(), &namespace);
    match example {
        Example::Pod => {
            let made = pod::create(&pods, "foo").await?;
            println!("created {} {:?}", made.name_any(), made.labels());
            let read = pods.get("foo").await?;
            println!("read {} {:?}", read.name_any(), read.labels());
            let changed = pod::relabel(&pods, "foo", ("patch", "v1")).await?;
            println!("relabelled {} {:?}", changed.name_any(), changed.labels());
            pod::delete(&pods, "foo").await?;
            println!("deleted foo");
        }
        Example::Watch => {
            let see = |seen: watch::Seen| {
                println!("{seen:?}");
                ControlFlow::Continue(())
            };
            tokio::select! {
                followed = watch::follow(&pods, see) => followed?,
                interrupted = tokio::signal::ctrl_c() => interrupted?,
            }
        }
        Example::Shared => {
            let (cache, run) = Cache::new(client);
            let following = async {
                let pods = shared::pods(&cache, &namespace);
                let _first = shared::consume(&pods, |change| println!("first: {change:?}")).await?;
                let _second =
                    shared::consume(&pods, |change| println!("second: {change:?}")).await?;
                let see = |pod: &std::sync::Arc<Pod>| println!("again: {}", pod.name_any());
                shared::resync(&pods, shared::RESYNC, see).await;
                Ok::<_, anyhow::Error>(())
            };
            tokio::select! {
                () = run => {}
                followed = following => followed?,
                interrupted = tokio::signal::ctrl_c() => interrupted?,
            }
        }
        Example::Dynamic => {
            let object = custom::get_dynamic(&client, &namespace, "example-at").await?;
            println!("{} {}", object.name_any(), object.data);
        }
        Example::Typed => {
            let at = custom::get_typed(&client, &namespace, "example-at").await?;
            println!("{} {:?}", at.name_any(), at.spec);
        }
    }
    Ok(())
}
