//! The end of all containers of an agent that has ended.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use tracing::warn;

use super::api::{
    Api, ContainerFilter, ListContainersRequest, ListPodSandboxRequest, PodSandboxFilter,
    RemovePodSandboxRequest, StopContainerRequest, StopPodSandboxRequest,
};
use super::place::Place;
use super::{message, sandbox};

/// Ends all that runs from a directory, after `grace` by force. Unless it `is_removed`, what the
/// runtime knows of it stays: who looks there next finds containers that have ended.
pub async fn end_containers(directory: &Path, grace: Duration, is_removed: bool) {
    let place = Place::new(directory.to_owned());
    let Some(socket) = place.socket() else { return };
    let ended = async {
        let api = Api::connect(&socket).await.map_err(|error| error.to_string())?;
        end(&api, &place.owner(), grace, is_removed).await.map_err(|status| message(&status))
    };
    if let Err(why) = ended.await {
        warn!(socket = %socket.display(), why, "containers of the cluster were not ended");
    }
    if let Err(error) = unmount_volumes(directory) {
        warn!(%error, "volumes of the cluster's pods stay mounted");
    }
}

/// Undoes what an agent has mounted in its directory. Whoever removes the directory removes what is
/// mounted there too, whosever it is, unless this is done before.
///
/// # Errors
/// If something stays.
pub fn unmount_volumes(directory: &Path) -> std::io::Result<()> {
    Place::new(directory.to_owned()).unmount_all()
}

async fn end(
    api: &Api,
    owner: &str,
    grace: Duration,
    is_removed: bool,
) -> Result<(), tonic::Status> {
    let labels = HashMap::from([(sandbox::OWNER.to_owned(), owner.to_owned())]);
    let filter = ContainerFilter { label_selector: labels.clone(), ..Default::default() };
    let request = ListContainersRequest { filter: Some(filter) };
    let containers = api.runtime.clone().list_containers(request).await?.into_inner().containers;
    let timeout = i64::try_from(grace.as_secs()).unwrap_or(i64::MAX);
    let stops = containers.into_iter().map(|container| {
        let mut runtime = api.runtime.clone();
        async move {
            let request = StopContainerRequest { container_id: container.id, timeout };
            runtime.stop_container(request).await
        }
    });
    futures::future::try_join_all(stops).await?;
    let filter = PodSandboxFilter { label_selector: labels, ..Default::default() };
    let request = ListPodSandboxRequest { filter: Some(filter) };
    let sandboxes = api.runtime.clone().list_pod_sandbox(request).await?.into_inner().items;
    for sandbox in sandboxes {
        let mut runtime = api.runtime.clone();
        let pod_sandbox_id = sandbox.id;
        let stop = StopPodSandboxRequest { pod_sandbox_id: pod_sandbox_id.clone() };
        runtime.stop_pod_sandbox(stop).await?;
        if is_removed {
            runtime.remove_pod_sandbox(RemovePodSandboxRequest { pod_sandbox_id }).await?;
        }
    }
    Ok(())
}
