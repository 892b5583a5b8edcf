//! What is next for a `Foo`. Decides only.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{Container, PodSpec, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::api::ObjectMeta;

use crate::kind::Foo;

/// What is next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// To tell that nobody can know what the Deployment is called, and wait for a change.
    Refuse,
    /// To tell that the Deployment is somebody else's, and wait until it is not.
    Yield,
    /// To see to it that the Deployment is so.
    Apply(Box<Deployment>),
}

/// Decides by the `Foo`, and the Deployment of its name if there is one.
pub fn plan(foo: &Foo, found: Option<&Deployment>) -> Step {
    let name = foo.spec.deployment_name.as_deref().unwrap_or_default();
    if name.is_empty() {
        return Step::Refuse;
    }
    match found {
        Some(found) if !is_of(found, foo) => Step::Yield,
        _ => Step::Apply(Box::new(deployment(foo, name))),
    }
}

/// The Deployment of a `Foo`.
pub fn deployment(foo: &Foo, name: &str) -> Deployment {
    let foos_name = foo.metadata.name.clone().unwrap_or_default();
    let labels = BTreeMap::from([
        ("app".to_owned(), "nginx".to_owned()),
        ("controller".to_owned(), foos_name),
    ]);
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta { labels: Some(labels.clone()), ..ObjectMeta::default() }),
        spec: Some(PodSpec {
            containers: vec![Container {
                name: "nginx".to_owned(),
                image: Some("nginx:latest".to_owned()),
                ..Container::default()
            }],
            ..PodSpec::default()
        }),
    };
    Deployment {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            namespace: foo.metadata.namespace.clone(),
            ..ObjectMeta::default()
        },
        spec: Some(DeploymentSpec {
            replicas: Some(foo.spec.replicas.unwrap_or(1)),
            selector: LabelSelector { match_labels: Some(labels), ..LabelSelector::default() },
            template,
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    }
}

/// Whether a Deployment was made for a `Foo`, and not by somebody who calls it the same.
fn is_of(deployment: &Deployment, foo: &Foo) -> bool {
    let mut owners = deployment.metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&owner.uid) == foo.metadata.uid.as_ref())
}
