//! The place where a case is played: its namespace, and whatever it makes outside of it.
//!
//! There may be no controller manager, so the place is emptied by hand: objects first, then
//! definitions, then the namespace's own finalizer.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use http::Method;
use serde_json::{Value, json};

use crate::case::{Case, Payload, Step};
use crate::crd;
use crate::endpoint::{Endpoint, Request};

const PATIENCE: Duration = Duration::from_secs(30);

pub(super) async fn make(endpoint: &Endpoint, case: &Case) -> Result<()> {
    let namespace = json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": { "name": case.id.namespace() },
    });
    let answer = endpoint.send(&Request::post("/api/v1/namespaces", &namespace)).await?;
    if answer.status != 201 {
        bail!("namespace refused: {answer}");
    }
    Ok(())
}

/// Removes everything the case may have left, now or in an earlier run that broke off.
pub(super) async fn clear(endpoint: &Endpoint, case: &Case) -> Result<()> {
    let namespace = case.id.namespace();
    for collection in collections(case) {
        remove_all(endpoint, &collection).await?;
    }
    for object in objects_outside(case, &namespace) {
        remove(endpoint, &object).await?;
    }
    let suffix = format!(".{}", case.id.group());
    for crd in items(endpoint, crd::PATH).await? {
        if let Some(name) = crd["metadata"]["name"].as_str().filter(|name| name.ends_with(&suffix))
        {
            remove(endpoint, &format!("{}/{name}", crd::PATH)).await?;
        }
    }
    remove_namespace(endpoint, &namespace).await
}

/// The collections inside the namespace, or of the case's own group, that its steps speak of.
fn collections(case: &Case) -> BTreeSet<String> {
    let namespaced = format!("/namespaces/{}/", case.id.namespace());
    let own_group = format!("/apis/{}/", case.id.group());
    case.steps
        .iter()
        .filter_map(|step| {
            if let Some((before, after)) = step.path.split_once(&namespaced) {
                return Some(format!("{before}{namespaced}{}", after.split('/').next()?));
            }
            let mut rest = step.path.strip_prefix(&own_group)?.split('/');
            Some(format!("{own_group}{}/{}", rest.next()?, rest.next()?))
        })
        .collect()
}

/// The objects outside the namespace that the case's steps create by name.
fn objects_outside(case: &Case, namespace: &str) -> BTreeSet<String> {
    let creates = |step: &&Step| {
        step.method == Method::POST
            || step.method == Method::PATCH && step.content_type.contains("apply")
    };
    case.steps
        .iter()
        .filter(creates)
        .filter(|step| !step.path.contains(&format!("/namespaces/{namespace}")))
        // An apply to one of the server's own objects does not make it ours.
        .filter(|step| !step.path.starts_with("/api/v1/namespaces/"))
        .filter(|step| !step.path.starts_with(crd::PATH))
        .filter_map(|step| match &step.payload {
            Payload::Body(body) if step.method == Method::POST => {
                let name = body["metadata"]["name"].as_str()?;
                Some(format!("{}/{name}", step.path))
            }
            _ if step.method == Method::PATCH => {
                Some(step.path.trim_end_matches("/status").trim_end_matches("/scale").to_owned())
            }
            _ => None,
        })
        .collect()
}

async fn items(endpoint: &Endpoint, collection: &str) -> Result<Vec<Value>> {
    let answer = endpoint.send(&Request::get(collection)).await?;
    if !answer.is_success() {
        // No such resource, or none that can be listed: nothing of ours is there.
        return Ok(Vec::new());
    }
    Ok(answer.json()?["items"].as_array().cloned().unwrap_or_default())
}

/// Empties a collection: of one namespace, of all, or of the cluster.
async fn remove_all(endpoint: &Endpoint, collection: &str) -> Result<()> {
    let (parent, plural) = collection.rsplit_once('/').context("a collection has a parent")?;
    for item in items(endpoint, collection).await? {
        let name = item["metadata"]["name"].as_str().unwrap_or_default();
        let object = match item["metadata"]["namespace"].as_str() {
            Some(namespace) if !collection.contains("/namespaces/") => {
                format!("{parent}/namespaces/{namespace}/{plural}/{name}")
            }
            _ => format!("{collection}/{name}"),
        };
        remove(endpoint, &object).await?;
    }
    Ok(())
}

/// Deletes an object at once, taking away whatever finalizers hold it.
async fn remove(endpoint: &Endpoint, object: &str) -> Result<()> {
    let now = Request::delete(format!("{object}?gracePeriodSeconds=0"));
    let answer = endpoint.send(&now).await?;
    if matches!(answer.status, 404 | 405) {
        return Ok(());
    }
    if object.starts_with(crd::PATH) {
        // Its finalizer is the server's own, and goes when the instances are gone.
        endpoint.poll(&Request::get(object), PATIENCE, |answer| answer.status == 404).await?;
        return Ok(());
    }
    let release = Request::merge_patch(object, &json!({ "metadata": { "finalizers": null } }));
    endpoint.send(&release).await?;
    let get = Request::get(object);
    // A subresource such as a binding has no object of its own to go away.
    endpoint.poll(&get, PATIENCE, |answer| matches!(answer.status, 404 | 405)).await?;
    Ok(())
}

async fn remove_namespace(endpoint: &Endpoint, name: &str) -> Result<()> {
    let path = format!("/api/v1/namespaces/{name}");
    let answer = endpoint.send(&Request::delete(&path)).await?;
    if answer.status == 404 {
        return Ok(());
    }
    let mut namespace = endpoint.send(&Request::get(&path)).await?.json()?;
    if namespace["kind"] == "Namespace" {
        namespace["spec"]["finalizers"] = json!([]);
        endpoint.send(&Request::put(format!("{path}/finalize"), &namespace)).await?;
    }
    endpoint.poll(&Request::get(&path), PATIENCE, |answer| answer.status == 404).await?;
    Ok(())
}
