//! The life of a pod: created, read, relabelled, deleted.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Container, Pod, PodSpec};
use kube::api::{Api, DeleteParams, ObjectMeta, PostParams};

/// How often a change is tried in all.
pub const TRIES_MAX: u32 = 4;
/// How long to wait before it is tried again.
pub const PAUSE: Duration = Duration::from_secs(3);

/// Why a pod was not relabelled.
#[derive(Debug, thiserror::Error)]
pub enum RelabelError {
    /// Others write it faster than this can.
    #[error("change pod {name}: others were faster {TRIES_MAX} times")]
    Contended { name: String },
    #[error("change pod {name}")]
    Refused { name: String, source: kube::Error },
}

/// A pod that sleeps.
pub fn sleeper(name: &str) -> Pod {
    Pod {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(BTreeMap::from([("k".to_owned(), "v".to_owned())])),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "busybox".to_owned(),
                image: Some("busybox:latest".to_owned()),
                command: Some(vec!["sleep".to_owned(), "1000".to_owned()]),
                ..Container::default()
            }],
            ..PodSpec::default()
        }),
        ..Pod::default()
    }
}

pub async fn create(pods: &Api<Pod>, name: &str) -> Result<Pod, kube::Error> {
    pods.create(&PostParams::default(), &sleeper(name)).await
}

/// Gives a pod one label instead of those it has. What others write meanwhile is not lost: it is
/// read and changed again, every three seconds and at most four times.
///
/// # Errors
/// Others were faster each time, or the server refuses.
pub async fn relabel(
    pods: &Api<Pod>,
    name: &str,
    label: (&str, &str),
) -> Result<Pod, RelabelError> {
    let refused = |source| RelabelError::Refused { name: name.to_owned(), source };
    for turn in 0..TRIES_MAX {
        if turn > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let mut pod = pods.get(name).await.map_err(refused)?;
        let (key, value) = label;
        pod.metadata.labels = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
        // It is in the version that was read: the server refuses it if that is not the last.
        match pods.replace(name, &PostParams::default(), &pod).await {
            Ok(pod) => return Ok(pod),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(refused(error)),
        }
    }
    Err(RelabelError::Contended { name: name.to_owned() })
}

/// Deletes a pod. That it is gone is as good.
pub async fn delete(pods: &Api<Pod>, name: &str) -> Result<(), kube::Error> {
    match pods.delete(name, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        deleted => deleted.map(drop),
    }
}
