//! Waiting until a change of a CustomResourceDefinition is in effect.
//!
//! The server accepts such a change at once and serves it a little later. A new definition says
//! in its conditions when it is served; a changed one says nothing, so a [`Fence`] tells.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, bail};
use http::Method;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::case::Step;
use crate::crd::{PATH, wait_until_served};
use crate::endpoint::{Answer, Endpoint, Request};

const PATIENCE: Duration = Duration::from_secs(30);

/// Returns when what `step` did to a definition, if it did anything, can be seen by requests.
pub(super) async fn settle(
    endpoint: &Endpoint,
    fence: &Fence,
    step: &Step,
    answer: &Answer,
) -> Result<()> {
    let Some(rest) = step.path.strip_prefix(PATH) else { return Ok(()) };
    if !answer.is_success() || step.is_dry_run() || step.method == Method::GET {
        return Ok(());
    }
    let body = answer.json()?;
    let name = match rest.strip_prefix('/').and_then(|rest| rest.split('/').next()) {
        Some(name) => name.to_owned(),
        None => body["metadata"]["name"].as_str().unwrap_or_default().to_owned(),
    };
    if step.method == Method::DELETE {
        let gone = |answer: &Answer| answer.status == 404;
        endpoint.poll(&Request::get(format!("{PATH}/{name}")), PATIENCE, gone).await?;
        return fence.pass().await;
    }
    if wait_until_served(endpoint, &name).await? && answer.status != 201 {
        fence.pass().await?;
    }
    Ok(())
}

/// Tells when every definition written before a moment is in effect.
///
/// The server takes up changes of definitions in the order in which they were written. So we
/// change a definition of our own, in a way that shows in its answers, and wait for that.
pub(super) struct Fence {
    endpoint: Endpoint,
    /// Whether our definition is there. The lock also keeps one passage from undoing another's.
    made: Mutex<bool>,
    passages: AtomicU64,
}

impl Fence {
    pub(super) fn new(endpoint: &Endpoint) -> Self {
        Self { endpoint: endpoint.clone(), made: Mutex::new(false), passages: AtomicU64::new(0) }
    }

    async fn pass(&self) -> Result<()> {
        let mut made = self.made.lock().await;
        let token = format!("passage-{}", self.passages.fetch_add(1, Ordering::Relaxed));
        let crd = definition(&token);
        if *made {
            let patch = json!({ "spec": crd["spec"] });
            let request = Request::merge_patch(format!("{PATH}/{}", name()), &patch);
            accepted(&self.endpoint.send(&request).await?)?;
        } else {
            accepted(&self.endpoint.send(&Request::post(PATH, &crd)).await?)?;
            *made = true;
            wait_until_served(&self.endpoint, &name()).await?;
        }
        let table = Request::get(format!("/apis/{}/v1/fences", group()))
            .accept("application/json;as=Table;v=v1;g=meta.k8s.io");
        let passed = |answer: &Answer| {
            answer.json().is_ok_and(|table| table["columnDefinitions"][1]["name"] == token)
        };
        self.endpoint.poll(&table, PATIENCE, passed).await?;
        Ok(())
    }

    pub(super) async fn remove(self) -> Result<()> {
        if self.made.into_inner() {
            let request = Request::delete(format!("{PATH}/{}", name()));
            accepted(&self.endpoint.send(&request).await?)?;
        }
        Ok(())
    }
}

/// Several recorders may share a server; each has its own fence.
fn group() -> String {
    format!("p{}.recorder.kubewright.dev", std::process::id())
}

fn name() -> String {
    format!("fences.{}", group())
}

fn definition(column: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": name() },
        "spec": {
            "group": group(),
            "scope": "Cluster",
            "names": { "plural": "fences", "kind": "Fence" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object" } },
                "additionalPrinterColumns": [
                    { "name": column, "type": "string", "jsonPath": ".metadata.name" },
                ],
            }],
        },
    })
}

fn accepted(answer: &Answer) -> Result<()> {
    if !answer.is_success() {
        bail!("the fence was refused: {answer}");
    }
    Ok(())
}
