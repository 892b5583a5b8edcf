//! Tells the API server which node a pod has.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};

use crate::plugin::{Assignment, Plugin, Point, Work};

pub(crate) struct DefaultBinder {
    /// None where nothing is written, as in tests of decisions.
    pub(crate) client: Option<Client>,
}

impl DefaultBinder {
    pub(crate) const NAME: &str = "DefaultBinder";
}

impl Plugin for DefaultBinder {
    fn name(&self) -> &str {
        DefaultBinder::NAME
    }

    fn points(&self) -> &[Point] {
        &[Point::Bind]
    }

    fn bind(&self, assignment: &Arc<Assignment>) -> Option<Work> {
        let (client, assignment) = (self.client.clone()?, Arc::clone(assignment));
        Some(Box::pin(async move {
            let pod = &assignment.pod;
            let pods: Api<Pod> = Api::namespaced(client, pod.namespace());
            let binding = binding(&assignment);
            let (name, params) = (pod.key.name(), PostParams::default());
            let bound = pods.create_subresource::<_, Status>("binding", name, &params, &binding);
            bound.await.map(drop).map_err(|error| error.to_string())
        }))
    }
}

fn binding(assignment: &Assignment) -> Binding {
    let pod = &assignment.pod;
    Binding {
        metadata: ObjectMeta {
            namespace: Some(pod.namespace().to_owned()),
            name: Some(pod.key.name().to_owned()),
            // Another pod of the same name is not meant.
            uid: Some(pod.uid.to_string()),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            kind: Some("Node".to_owned()),
            name: Some(assignment.node.to_string()),
            ..ObjectReference::default()
        },
    }
}
