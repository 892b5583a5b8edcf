//! A node that runs nothing and says that it does.

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, Patch, PatchParams, ResourceExt as _};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Client, Error};
use serde_json::json;

/// Has every pod run at once, and lets it go when it is deleted; never ends.
pub(super) async fn play(client: Client) {
    let pods = watcher(Api::<Pod>::all(client.clone()), watcher::Config::default());
    let work = pods.default_backoff().applied_objects().try_for_each(|pod| {
        let client = client.clone();
        async move {
            settle(client, &pod).await;
            Ok(())
        }
    });
    work.await.expect("pods are watched");
}

async fn settle(client: Client, pod: &Pod) {
    let pods: Api<Pod> = Api::namespaced(client, &pod.namespace().expect("a namespace"));
    let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
    let outcome = if pod.metadata.deletion_timestamp.is_some() {
        let now = DeleteParams::default().grace_period(0);
        pods.delete(&pod.name_any(), &now).await.map(drop)
    } else if phase == Some("Pending") {
        let ready = |kind| json!({"type": kind, "status": "True"});
        let conditions = ["Initialized", "ContainersReady", "Ready"].map(ready);
        let status = json!({"status": {"phase": "Running", "conditions": conditions}});
        let patch = Patch::Strategic(status);
        pods.patch_status(&pod.name_any(), &PatchParams::default(), &patch).await.map(drop)
    } else {
        Ok(())
    };
    // Whoever deletes a pod does not ask the node.
    match outcome {
        Ok(()) => (),
        Err(Error::Api(status)) if status.code == 404 => (),
        Err(other) => panic!("{other}"),
    }
}
