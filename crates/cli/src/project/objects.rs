//! Objects of a rendered operator, brought into a cluster or taken away.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use kube::core::{GroupVersionKind, TypeMeta};
use kube::discovery::{self, Scope};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Client, Error};
use kubewright::webhook::is_loopback;
use kubewright_apimachinery::yaml;
use serde_json::{Value, json};

/// Who applies them.
const MANAGER: &str = "kubewright";
pub(crate) const DEFINITION: &str = "CustomResourceDefinition";
/// Far longer than a server takes that will serve it at all.
const SERVED_MAX: Duration = Duration::from_secs(60);
/// Whoever waits longer is told what for.
const UNTOLD_MAX: Duration = Duration::from_secs(1);

/// Where a group is not served there is a page that says so, and no Status: its reason is one that
/// kube makes up, and its `is_not_found` does not know.
const NOT_FOUND: u16 = 404;

/// What becomes of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Applied,
    /// It does what it is there for.
    Available,
    Deleted,
    /// It was gone already, or its kind was.
    Absent,
}

/// The objects of a stream of YAML.
pub(crate) fn parse(stream: &str) -> Result<Vec<Value>> {
    let documents = yaml::documents(stream).context("split the manifests")?;
    let decode = |text: &str| match yaml::decode(text) {
        Ok(decoded) => Ok(decoded.value),
        Err(error) => Err(anyhow!("{error}")),
    };
    let objects: Result<Vec<Value>> = documents.into_iter().map(decode).collect();
    Ok(objects.context("read the manifests")?.into_iter().filter(|it| !it.is_null()).collect())
}

/// What people call an object.
pub(crate) fn title(object: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}", text(&object["kind"]), text(&object["metadata"]["name"]))
}

/// Applies an object; a definition is then waited for.
///
/// With `force`, fields that others have set are taken from them.
pub(crate) async fn apply(client: &Client, object: &Value, force: bool) -> Result<Outcome> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let api = api(client, object).await?.with_context(|| format!("find out what {name} is"))?;
    let params = PatchParams { force, ..PatchParams::apply(MANAGER) };
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    let next_step = next_step(&applied, force);
    applied.with_context(|| format!("apply {}{next_step}", title(object)))?;
    if object["kind"] == DEFINITION {
        await_served(client, name).await?;
    }
    Ok(Outcome::Applied)
}

/// What to do about an object that is not taken.
fn next_step<T>(applied: &Result<T, Error>, force: bool) -> &'static str {
    match applied {
        Err(Error::Api(status)) if status.code == 409 && !force => {
            " (take the fields over by `--force`)"
        }
        _ => "",
    }
}

/// What would become of an object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trial {
    Create,
    /// Field by field.
    Change(Vec<String>),
    Same,
}

/// Has a server say what it would make of an object. What is to be in a namespace that is not there,
/// or of a kind that is not, cannot be tried, and would be created.
pub(crate) async fn try_out(client: &Client, object: &Value, force: bool) -> Result<Trial> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let Some(api) = api(client, object).await? else { return Ok(Trial::Create) };
    let there = api.get_opt(name).await.with_context(|| format!("read {}", title(object)))?;
    if there.is_none()
        && let Some(namespace) = object["metadata"]["namespace"].as_str()
    {
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let around = namespaces.get_opt(namespace).await;
        if around.with_context(|| format!("read Namespace {namespace}"))?.is_none() {
            return Ok(Trial::Create);
        }
    }
    let params = PatchParams { force, ..PatchParams::apply(MANAGER).dry_run() };
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    let next_step = next_step(&applied, force);
    let after = applied.with_context(|| format!("apply {}{next_step}", title(object)))?;
    let Some(there) = there else { return Ok(Trial::Create) };
    let [before, after] = [there, after].map(|it| json!(it));
    let mut changes = Vec::new();
    differences("", &before, &after, &mut changes);
    Ok(if changes.is_empty() { Trial::Same } else { Trial::Change(changes) })
}

/// What a server writes itself.
const OWN: [&str; 4] =
    [".metadata.generation", ".metadata.managedFields", ".metadata.resourceVersion", ".status"];

/// What differs between two objects, a line for each field.
fn differences(path: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    if before == after || OWN.contains(&path) {
        return;
    }
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for name in names {
                differences(&format!("{path}.{name}"), &before[name], &after[name], lines);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (i, (before, after)) in old.iter().zip(new).enumerate() {
                differences(&format!("{path}[{i}]"), before, after, lines);
            }
        }
        _ => lines.push(format!("{}: {before} -> {after}", path.trim_start_matches('.'))),
    }
}

/// Waits until a server serves what it was given, but not for ever: it may have refused the names.
async fn await_served(client: &Client, name: &str) -> Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let served = await_condition(definitions.clone(), name, conditions::is_crd_established());
    let served = tokio::time::timeout(SERVED_MAX, served);
    let told = || eprintln!("waiting until {name} is served");
    if let Ok(served) = told_of(served, told).await {
        served.with_context(|| format!("wait until {name} is served"))?;
        return Ok(());
    }
    let there = definitions.get_opt(name).await;
    let there = there.with_context(|| format!("read the definition {name}"))?;
    bail!(
        "the server does not serve {name} after {} seconds: {}",
        SERVED_MAX.as_secs(),
        state(there.as_ref())
    );
}

/// Waits, and tells of it once it takes long.
async fn told_of<T>(work: impl Future<Output = T>, tell: impl FnOnce()) -> T {
    let mut work = std::pin::pin!(work);
    if let Ok(done) = tokio::time::timeout(UNTOLD_MAX, &mut work).await {
        return done;
    }
    tell();
    work.await
}

/// What a server says of a definition.
fn state(definition: Option<&CustomResourceDefinition>) -> String {
    let Some(definition) = definition else { return "somebody has deleted it".to_owned() };
    let told = definition.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let told: Vec<String> = told
        .map(|condition| {
            let reason = condition.reason.as_deref().unwrap_or("no reason");
            let message = condition.message.as_deref().unwrap_or("no message");
            format!("{}={} ({reason}: {message})", condition.type_, condition.status)
        })
        .collect();
    match told.is_empty() {
        true => "nobody has looked at it: is the controller for definitions at work?".to_owned(),
        false => told.join(", "),
    }
}

/// Deletes an object, and does not wait for its end.
pub(crate) async fn delete(client: &Client, object: &Value) -> Result<Outcome> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let Some(api) = api(client, object).await? else { return Ok(Outcome::Absent) };
    match api.delete(name, &DeleteParams::default()).await {
        Ok(_) => Ok(Outcome::Deleted),
        Err(Error::Api(status)) if status.code == NOT_FOUND => Ok(Outcome::Absent),
        Err(error) => Err(error).with_context(|| format!("delete {}", title(object))),
    }
}

/// Whether a server knows webhooks by an object.
pub(crate) fn is_configuration(object: &Value) -> bool {
    let kind = object["kind"].as_str().unwrap_or_default();
    matches!(kind, "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration")
}

/// Deletes a configuration all of whose webhooks are on somebody's machine: that of an operator that
/// was killed before it could take it back. Whether it was one.
pub(crate) async fn delete_left_behind(client: &Client, object: &Value) -> Result<bool> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let Some(api) = api(client, object).await? else { return Ok(false) };
    let there = api.get_opt(name).await.with_context(|| format!("read {}", title(object)))?;
    let is_left_behind = there.is_some_and(|it| leads_to_loopback(&it.data));
    Ok(is_left_behind && delete(client, object).await? == Outcome::Deleted)
}

fn leads_to_loopback(configuration: &Value) -> bool {
    let mut webhooks = configuration["webhooks"].as_array().into_iter().flatten().peekable();
    let is_there = webhooks.peek().is_some();
    is_there && webhooks.all(|it| it["clientConfig"]["url"].as_str().is_some_and(is_loopback))
}

/// Where objects like this one are; none if the cluster knows no such kind.
async fn api(client: &Client, object: &Value) -> Result<Option<Api<DynamicObject>>> {
    let types: TypeMeta = serde_json::from_value(object.clone()).context("read its kind")?;
    let gvk = GroupVersionKind::try_from(&types).context("read its version")?;
    // What a kind is called in paths is its author's choice.
    let (resource, scope) = match discovery::pinned_kind(client, &gvk).await {
        Ok((resource, capabilities)) => (resource, capabilities.scope),
        Err(Error::Api(status)) if status.code == NOT_FOUND => return Ok(None),
        Err(Error::Discovery(_)) => return Ok(None),
        Err(error) => return Err(error).with_context(|| format!("find the kind {}", gvk.kind)),
    };
    Ok(Some(match (scope, object["metadata"]["namespace"].as_str()) {
        (Scope::Cluster, _) => Api::all_with(client.clone(), &resource),
        (Scope::Namespaced, Some(namespace)) => {
            Api::namespaced_with(client.clone(), namespace, &resource)
        }
        (Scope::Namespaced, None) => Api::default_namespaced_with(client.clone(), &resource),
    }))
}
