//! What the server does for the objects of flow control: it keeps its own as they should be, and
//! says of each FlowSchema whether its level exists.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration};
use kubewright_apimachinery::json::go_quote;
use kubewright_store::{Start, WatchError};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::stored;
use crate::begin;
use crate::catalog::Catalog;
use crate::meta;
use crate::options::WriteOptions;
use crate::refusal::Refusal;
use crate::server::Inner;
use crate::write::{Patch, PatchKind};

/// How often the server's own objects are looked after.
pub(super) const PERIOD: Duration = Duration::from_secs(60);
/// How the server signs what it says of a schema.
pub(super) const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// Follows the objects of flow control until `shutdown`.
pub(crate) async fn run(server: Arc<Inner>, shutdown: CancellationToken) {
    let start = tokio::time::Instant::now() + PERIOD;
    let mut period = tokio::time::interval_at(start, PERIOD);
    loop {
        let watch = |prefix: &str| server.store.watch(prefix, Start::Now);
        let schemas = watch(&Catalog::flow_schemas().prefix);
        let levels = watch(&Catalog::priority_levels().prefix);
        let (Ok(mut schemas), Ok(mut levels)) = (schemas, levels) else { return };
        loop {
            server.flows.refresh();
            if let Err(refusal) = judge(&server).await {
                tracing::warn!(error = refusal.message, "FlowSchemas do not say what they lack");
            }
            let changed = tokio::select! {
                events = schemas.next() => events.map(drop),
                events = levels.next() => events.map(drop),
                _ = period.tick() => {
                    if let Err(error) = begin::keep_flow_control(&server).await {
                        tracing::warn!(%error, "flow control is not looked after");
                    }
                    Ok(())
                }
                () = shutdown.cancelled() => return,
            };
            match changed {
                Ok(()) => {}
                Err(WatchError::Closed) => return,
                // Read too late: what is stored tells everything.
                Err(_) => break,
            }
        }
    }
}

/// Writes the condition of every schema that does not have the one it should.
async fn judge(server: &Inner) -> Result<(), Refusal> {
    let levels: Vec<PriorityLevelConfiguration> =
        stored(&server.store, &Catalog::priority_levels().prefix);
    let levels: Vec<&str> =
        levels.iter().filter_map(|level| level.metadata.name.as_deref()).collect();
    let schemas: Vec<FlowSchema> = stored(&server.store, &Catalog::flow_schemas().prefix);
    for schema in schemas {
        let name = schema.metadata.name.as_deref().unwrap_or_default();
        if let Some(mut condition) = condition(&schema, &levels) {
            condition["lastTransitionTime"] = meta::time(server.now()).into();
            say(server, name, &condition).await?;
        }
    }
    Ok(())
}

/// The condition that a schema should have and does not, but for its time.
pub(super) fn condition(schema: &FlowSchema, levels: &[&str]) -> Option<Value> {
    let level = schema.spec.as_ref().map(|spec| spec.priority_level_configuration.name.as_str());
    let level = level.unwrap_or_default();
    let subject = format!(
        "This FlowSchema references the PriorityLevelConfiguration object named {}",
        go_quote(level)
    );
    let (status, reason, message) = match levels.contains(&level) {
        true => ("False", "Found", format!("{subject} and it exists")),
        false => ("True", "NotFound", format!("{subject} but there is no such object")),
    };
    let conditions = schema.status.as_ref().and_then(|status| status.conditions.as_ref());
    let said = conditions.into_iter().flatten().any(|condition| {
        condition.type_.as_deref() == Some("Dangling")
            && condition.status.as_deref() == Some(status)
            && condition.reason.as_deref() == Some(reason)
            && condition.message.as_ref() == Some(&message)
    });
    let condition = json!({
        "type": "Dangling", "status": status, "reason": reason, "message": message,
    });
    (!said).then_some(condition)
}

async fn say(server: &Inner, name: &str, condition: &Value) -> Result<(), Refusal> {
    let resource = Catalog::flow_schemas();
    let options =
        WriteOptions { manager: MANAGER.to_owned(), force: true, ..WriteOptions::default() };
    let applied = json!({
        "apiVersion": resource.gvk.api_version(),
        "kind": resource.gvk.kind,
        "metadata": { "name": name },
        "status": { "conditions": [condition] },
    });
    let body = applied.to_string();
    let patch = Patch::read(PatchKind::Apply, body.as_bytes());
    match server.write_status(resource, name, &options, &patch).await {
        Err(refusal) if refusal.code == 404 => Ok(()),
        done => done,
    }
}
