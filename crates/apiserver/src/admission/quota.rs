//! ResourceQuota: what a namespace may use together.
//!
//! The status of a quota says what is used. A write is charged there before it happens, by
//! compare-and-swap, so that writes at the same time cannot exceed it together. Whatever is
//! charged in vain, and whatever goes away, is put right when the quota is counted anew, which is
//! not done here.

use jiff::Timestamp;
use kubewright_apimachinery::apply::FieldManager;
use kubewright_apimachinery::quota::{self, Evaluator, Footprint};
use kubewright_apimachinery::resources::{Amounts, amounts};
use kubewright_store::{Change, Durability};
use serde_json::{Value, json};

use super::{Attributes, Operation, Scene};
use crate::catalog::Catalog;
use crate::index;
use crate::meta;
use crate::refusal::{self, Refusal};

/// Charges a write to all quotas that it counts for, or refuses it.
pub(super) async fn charge(
    scene: &Scene<'_>,
    attributes: &Attributes<'_>,
    object: &Value,
) -> Result<(), Refusal> {
    let Some(namespace) = attributes.namespace else { return Ok(()) };
    let gvr = &attributes.resource.gvr;
    let Some(evaluator) = Evaluator::of(&gvr.group, &gvr.resource) else { return Ok(()) };
    if !changes_usage(&evaluator, attributes, object) {
        return Ok(());
    }
    let prefix = format!("/registry/resourcequotas/{namespace}/");
    let quotas = scene.store.snapshot().range(&prefix, None, None);
    if quotas.is_empty() {
        return Ok(());
    }
    let request = Request::new(scene, attributes, object, evaluator);
    // All are asked before any is charged: what one refuses is charged to none.
    let mut charged = Vec::new();
    for quota in quotas.iter() {
        let Some(object) = index::object(quota) else { continue };
        if request.charge(&object)?.is_some() {
            charged.push(quota.key.clone());
        }
    }
    if attributes.dry_run {
        return Ok(());
    }
    for key in charged {
        let decide = |current: Option<index::Stored>| {
            let request = &request;
            async move { request.change(current.as_ref()) }
        };
        scene.store.update(&key, decide).await.map_err(refusal::of_update)?;
    }
    Ok(())
}

/// Whether a write may change what is used.
fn changes_usage(evaluator: &Evaluator, attributes: &Attributes<'_>, object: &Value) -> bool {
    let creates = attributes.creates();
    let updates = attributes.operation == Operation::Update;
    match (evaluator, attributes.part) {
        (Evaluator::Pods, None) if updates => {
            let old = attributes.old.unwrap_or(&Value::Null);
            quota::is_terminating(old) != quota::is_terminating(object)
        }
        (Evaluator::Pods, Some("resize")) => updates,
        (Evaluator::Claims, Some("status")) => updates,
        (Evaluator::Services | Evaluator::Claims | Evaluator::DeviceClaims, None) => {
            creates || updates
        }
        (Evaluator::Pods | Evaluator::Objects(_), _) => creates,
        _ => false,
    }
}

/// A write that may count for quotas.
struct Request<'a> {
    attributes: &'a Attributes<'a>,
    object: &'a Value,
    evaluator: Evaluator,
    footprint: Footprint,
    /// That of the object as it was, if it was there.
    before: Option<Footprint>,
    now: Timestamp,
}

impl<'a> Request<'a> {
    fn new(
        scene: &Scene<'_>,
        attributes: &'a Attributes<'a>,
        object: &'a Value,
        evaluator: Evaluator,
    ) -> Self {
        let footprint = evaluator.measure(object, scene.now);
        let old = attributes.old.filter(|_| attributes.operation == Operation::Update);
        let before = old.map(|old| evaluator.measure(old, scene.now));
        Request { attributes, object, evaluator, footprint, before, now: scene.now }
    }

    /// What becomes of a quota that is there.
    fn change(&self, current: Option<&index::Stored>) -> Result<Change, Refusal> {
        let live = current.and_then(|current| index::object(current));
        let Some(live) = live else { return Ok(Change::Keep) };
        let Some(used) = self.charge(&live)? else { return Ok(Change::Keep) };
        let mut quota = live.clone();
        quota["status"]["used"] = json!(used);
        let mut quota = track(&live, quota, self.now);
        // What is charged for is written later, and is not durable before this is.
        let durability = Durability::Written;
        Ok(Change::Put { value: Catalog::quotas().to_bytes(&mut quota), ttl: None, durability })
    }

    /// What a quota counts as used afterwards, if that changes.
    fn charge(&self, quota: &Value) -> Result<Option<Amounts>, Refusal> {
        let refuse = |why: String| Err(self.attributes.forbid(Some(self.object), why));
        let name = meta::text(quota, "name");
        let hard = amounts(quota["status"].get("hard"));
        let used = amounts(quota["status"].get("used"));
        let restricted: Vec<&str> =
            hard.keys().map(String::as_str).filter(|name| self.evaluator.counts(name)).collect();
        if restricted.is_empty() || !self.footprint.is_in_scope(&quota["spec"]) {
            return Ok(None);
        }
        if let Err(why) = self.evaluator.check(&restricted, self.object) {
            return refuse(format!("failed quota: {name}: {why}"));
        }
        if restricted.iter().any(|resource| !used.contains_key(*resource)) {
            let resources = restricted.join(",");
            return refuse(format!("status unknown for quota: {name}, resources: {resources}"));
        }
        let negative: Vec<&str> = self
            .footprint
            .usage
            .iter()
            .filter(|(_, amount)| amount.is_negative())
            .map(|(resource, _)| resource.as_str())
            .collect();
        if !negative.is_empty() {
            let resources = negative.join(",");
            return refuse(format!("quota usage is negative for resource(s): {resources}"));
        }
        let mut requested = self.delta(quota);
        requested.retain(|resource, _| hard.contains_key(resource));
        let mut after = used.clone();
        for (resource, amount) in &requested {
            after.entry(resource.clone()).or_default().add(amount);
        }
        let exceeded: Vec<&str> = requested
            .keys()
            .filter(|resource| after[*resource] > hard[*resource])
            .map(String::as_str)
            .collect();
        // What a status says has happened already.
        if !exceeded.is_empty() && self.attributes.part != Some("status") {
            return refuse(format!(
                "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
                print(&requested, &exceeded),
                print(&used, &exceeded),
                print(&hard, &exceeded)
            ));
        }
        Ok((after != used).then_some(after))
    }

    /// How much more is used: never less, which is found out when the quota is counted anew.
    fn delta(&self, quota: &Value) -> Amounts {
        let mut delta = self.footprint.usage.clone();
        let before = self.before.as_ref().filter(|before| before.is_in_scope(&quota["spec"]));
        if let Some(before) = before {
            for (resource, amount) in &mut delta {
                if let Some(before) = before.usage.get(resource) {
                    amount.sub(before);
                }
            }
        }
        delta.retain(|_, amount| !amount.is_zero() && !amount.is_negative());
        delta
    }
}

/// Upstream charges as a client of itself, which the managed fields show.
fn track(live: &Value, quota: Value, now: Timestamp) -> Value {
    let quotas = Catalog::quotas();
    let tracking = quotas.tracking();
    let api_version = quotas.gvk.api_version();
    quotas.with_versions(|versions| {
        let manager = FieldManager {
            api_version: &api_version,
            kind: &quotas.gvk.kind,
            subresource: "status",
            versions,
            reset: tracking.reset(Some("status")),
            empty: &tracking.empty,
        };
        manager.update(Some(live), quota, "kube-apiserver", now)
    })
}

fn print(amounts: &Amounts, names: &[&str]) -> String {
    let shown = amounts.iter().filter(|(name, _)| names.contains(&name.as_str()));
    shown.map(|(name, amount)| format!("{name}={amount}")).collect::<Vec<_>>().join(",")
}
