//! The measured operator, on our library and on `kube::runtime`.

use std::sync::{Arc, Once};

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};
use futures::StreamExt as _;
use kube::api::{Patch, PatchParams};
use kube::runtime::controller::{Action as KubeAction, Config};
use kube::runtime::watcher;
use kube::{Api, Client, CustomResource, ResourceExt as _};
use kubewright::{Action, Clock, Context, Controller, Error, Operator, Reconciler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

pub(super) const PATH: &str = "/apis/bench.example.com/v1/namespaces/default/widgets";

/// Something whose operator writes into its status which round it has seen.
#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "bench.example.com",
    version = "v1",
    kind = "Widget",
    namespaced,
    status = "WidgetStatus"
)]
pub(super) struct WidgetSpec {
    round: u64,
    image: String,
    payload: String,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub(super) struct WidgetStatus {
    round: u64,
}

/// So many bytes of each object are like nothing else: hexadecimal digits, which take half a byte each.
const PAYLOAD_BYTES: usize = 400;

/// An object of about a kilobyte.
pub(super) fn body(number: usize, round: u64) -> String {
    let object = json!({
        "apiVersion": "bench.example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": format!("widget-{number:06}"),
            "labels": { "app.kubernetes.io/name": "widget", "half": (number % 2).to_string() },
        },
        "spec": {
            "round": round,
            "image": "registry.example.com/team/widget:1.4.2",
            "payload": payload(number),
        },
    });
    object.to_string()
}

/// Digits that only the number of the object decides.
fn payload(number: usize) -> String {
    let digits = (0_u64..).map(|at| {
        let mut mixed = (number as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ at;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        format!("{:016x}", mixed ^ (mixed >> 31))
    });
    digits.take(PAYLOAD_BYTES / 16).collect()
}

#[derive(Args)]
pub(crate) struct OperateArguments {
    library: Library,
    at_once: usize,
}

#[derive(Clone, Copy, ValueEnum)]
enum Library {
    Kubewright,
    Kube,
}

/// Runs the operator until it is killed.
pub(crate) fn play(arguments: OperateArguments) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start a runtime")?;
    runtime.block_on(async {
        let client = Client::try_default().await.context("find the cluster")?;
        match arguments.library {
            Library::Kubewright => on_kubewright(client, arguments.at_once).await,
            Library::Kube => on_kube(client, arguments.at_once).await,
        }
        Ok(())
    })
}

async fn on_kubewright(client: Client, at_once: usize) {
    let reconciler = OnKubewright { synced: Once::new() };
    let controller = Controller::new("widget", reconciler).at_once(at_once);
    let operator = Operator::new("widget").controller(controller);
    operator.run(client, Clock::system(), CancellationToken::new()).await;
}

struct OnKubewright {
    synced: Once,
}

impl Reconciler<Widget> for OnKubewright {
    async fn reconcile(&self, widget: &mut Widget, _: &Context) -> Result<Action, Error> {
        // Nothing is reconciled before the cache is filled.
        self.synced.call_once(tell_synced);
        let seen = widget.status.as_ref().map_or(0, |status| status.round);
        if seen != widget.spec.round {
            widget.status = Some(WidgetStatus { round: widget.spec.round });
        }
        Ok(Action::Done)
    }
}

async fn on_kube(client: Client, at_once: usize) {
    let widgets: Api<Widget> = Api::default_namespaced(client);
    let config = Config::default().concurrency(at_once as u16);
    let controller = kube::runtime::Controller::new(widgets.clone(), watcher::Config::default());
    let store = controller.store();
    let filled = async {
        store.wait_until_ready().await.expect("the controller runs");
        tell_synced();
    };
    let controller = controller.with_config(config);
    let run =
        controller.run(reconcile_on_kube, |_, _, _| KubeAction::await_change(), Arc::new(widgets));
    futures::join!(filled, run.for_each(|_| async {}));
}

async fn reconcile_on_kube(
    widget: Arc<Widget>,
    widgets: Arc<Api<Widget>>,
) -> Result<KubeAction, kube::Error> {
    let seen = widget.status.as_ref().map_or(0, |status| status.round);
    if seen != widget.spec.round {
        let status = json!({ "status": { "round": widget.spec.round } });
        let (name, params) = (widget.name_any(), PatchParams::default());
        widgets.patch_status(&name, &params, &Patch::Merge(status)).await?;
    }
    Ok(KubeAction::await_change())
}

fn tell_synced() {
    println!("synced");
}
