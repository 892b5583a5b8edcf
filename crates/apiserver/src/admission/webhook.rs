//! MutatingAdmissionWebhook and ValidatingAdmissionWebhook: servers of others are asked whether a
//! request may be, and what is to be changed in its object.
//!
//! Those that change objects are asked one after another, in the order of their configurations'
//! names, each about what the one before left. Those that only judge are asked at once. Configured
//! webhooks are read from the store when they change ([`configuration`]); a request that none is
//! configured for costs a look at the store.

mod call;
mod configuration;
mod patch;
mod review;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use futures::stream::{FuturesUnordered, StreamExt as _};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::json::{self, go_quote};
use kubewright_apimachinery::status::Status;
use serde_json::{Value, json};

use self::configuration::{Configurations, Hook, ReviewVersion};
use self::review::{JSON_PATCH, Verdict};
use super::criteria::Aspect;
use super::expression::conditions::Matched;
use super::expression::request::describe;
use super::expression::{Asker, NOTHING, Subject};
use super::shown::{self, Shown};
use super::{Attributes, Plugin, PluginSet};
use crate::authz::Authorizer;
use crate::catalog::Catalog;
use crate::index::Store;
use crate::meta;
use crate::metrics::{Metrics, WebhookCall};
use crate::refusal::Refusal;

pub(crate) use self::configuration::Role;

/// Kinds that configure admission: who could hold them up could never be removed again.
const EXEMPT: [&str; 6] = [
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingWebhookConfiguration",
];

/// Asks webhooks.
pub(super) struct Webhooks {
    store: Store,
    authorizer: Arc<Authorizer>,
    enabled: PluginSet,
    metrics: Arc<Metrics>,
    mutating: Configurations,
    validating: Configurations,
}

/// What is remembered from one round of changing an object to the next, of which there is at most
/// one: what a webhook changed, plugins and earlier webhooks may want to look at again.
#[derive(Default)]
pub(super) struct Rounds {
    /// Plugins and those webhooks that want to are asked again.
    is_second: bool,
    is_second_needed: bool,
    /// What webhooks left in the first round.
    left: Option<Value>,
    /// The managed fields that the object had, or had not, before webhooks saw it.
    managed_fields: Option<Option<Value>>,
    /// Webhooks that want to be asked again if somebody changes the object after them.
    asked: HashSet<String>,
    /// Webhooks that are to be asked again.
    again: HashSet<String>,
}

/// Why a webhook does not let a request pass.
#[derive(Debug)]
pub(crate) enum Failed {
    /// It gave no verdict; its failure policy decides.
    Unanswered { why: String, code: i32 },
    /// It said no.
    Denied(Refusal),
    /// It cannot be asked, or what it wants cannot be.
    Refused(Refusal),
}

impl Webhooks {
    pub(super) fn new(
        store: Store,
        authorizer: Arc<Authorizer>,
        enabled: PluginSet,
        metrics: Arc<Metrics>,
    ) -> Self {
        Webhooks {
            store,
            authorizer,
            enabled,
            metrics,
            mutating: Configurations::new(Role::Mutating),
            validating: Configurations::new(Role::Validating),
        }
    }

    /// Lets webhooks change an object, of which there is none on deletes.
    pub(super) async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&mut Value>,
        rounds: &mut Rounds,
    ) -> Result<(), Refusal> {
        if !self.enabled.has(Plugin::MutatingAdmissionWebhook) {
            return Ok(());
        }
        let hooks = self.mutating.hooks(&self.store);
        if hooks.is_empty() || is_exempt(attributes) {
            return Ok(());
        }
        // Most requests do not come here, and need not make room for it.
        Box::pin(self.mutate_by_all(&hooks, attributes, object, rounds)).await
    }

    async fn mutate_by_all(
        &self,
        hooks: &[Arc<Hook>],
        attributes: &Attributes<'_>,
        mut object: Option<&mut Value>,
        rounds: &mut Rounds,
    ) -> Result<(), Refusal> {
        if rounds.is_second && rounds.left.as_ref() != object.as_deref() {
            rounds.ask_again();
        }
        if let Some(object) = object.as_deref() {
            let managed_fields = || object["metadata"].get("managedFields").cloned();
            rounds.managed_fields.get_or_insert_with(managed_fields);
        }
        let mut shown: Option<Shown> = None;
        let mut outcome = Ok(());
        for (index, hook) in hooks.iter().enumerate() {
            let done =
                self.mutate_by(hook, index, attributes, object.as_deref(), &mut shown, rounds);
            outcome = done.await;
            if outcome.is_err() {
                break;
            }
        }
        if outcome.is_ok()
            && let (Some(object), Some(shown)) = (&mut object, shown)
            && shown.is_patched
            && let Some(patched) = &shown.object
        {
            **object = in_version_of(attributes, patched, object).await?;
        }
        rounds.left = object.as_deref().cloned();
        outcome
    }

    /// Lets one webhook change the object.
    async fn mutate_by(
        &self,
        hook: &Hook,
        index: usize,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        shown: &mut Option<Shown>,
        rounds: &mut Rounds,
    ) -> Result<(), Refusal> {
        let current = match shown {
            Some(shown) => shown.object.as_ref(),
            None => object,
        };
        let Some(aspect) = hook.criteria.aspect(&self.store, attributes, current)? else {
            return Ok(());
        };
        let shown = show(shown, attributes, object, &aspect.gvk).await?;
        if !self.meets_conditions(Role::Mutating, hook, attributes, &aspect, shown)? {
            return Ok(());
        }
        // Who was not asked in the first round is not in the second.
        if rounds.is_second && !rounds.again.contains(&hook.id) {
            return Ok(());
        }
        let begun = Instant::now();
        let note = Note { attributes, hook, round: usize::from(rounds.is_second), index };
        let changed = self.change(hook, &aspect, attributes, shown, &note).await;
        note.mutation(matches!(changed, Ok(true)));
        self.count(Role::Mutating, hook, attributes, begun, changed.as_ref().err());
        if matches!(changed, Ok(true)) {
            rounds.ask_again();
            rounds.is_second_needed = true;
        }
        if hook.is_reinvocable {
            rounds.asked.insert(hook.id.clone());
        }
        match changed {
            Ok(_) => Ok(()),
            Err(Failed::Unanswered { .. }) if hook.fails_open => {
                note.failed_open(Role::Mutating);
                attributes.check_time()
            }
            Err(failed) => Err(failed.into()),
        }
    }

    /// Asks a webhook and does to the object what it wants. Tells whether that changed anything.
    async fn change(
        &self,
        hook: &Hook,
        aspect: &Aspect,
        attributes: &Attributes<'_>,
        shown: &mut Shown,
        note: &Note<'_>,
    ) -> Result<bool, Failed> {
        let verdict = hook.ask(Role::Mutating, aspect, attributes, shown).await?;
        note.verdict(&verdict);
        if !verdict.is_allowed {
            return Err(Failed::Denied(denial(hook, verdict.status)));
        }
        let Some(wanted) = verdict.patch else { return Ok(false) };
        let patch = patch::decode(&wanted.bytes).map_err(|why| {
            hook.unanswered(
                format_args!("received undecodable patch in webhook response: {why}"),
                503,
            )
        })?;
        if patch.is_empty() {
            return Ok(false);
        }
        let Some(object) = &shown.object else {
            let why = format!(
                "admission webhook {} attempted to modify the object, which is not supported for \
                 this operation",
                go_quote(&hook.name)
            );
            return Err(Failed::Refused(Box::new(Status::internal_error(why))));
        };
        if wanted.language != JSON_PATCH {
            let why = format!("unsupported patch type {}", go_quote(&wanted.language));
            return Err(hook.unanswered(why, 400));
        }
        let (resource, gvk) = (attributes.resource, &shown.gvk);
        let mut patched = patch::apply(resource, gvk, object, &patch).map_err(Failed::Refused)?;
        let is_changed = !patch::is_same(resource, gvk, object, &patched);
        note.patch(&wanted.bytes);
        shown::default(resource, gvk, &mut patched);
        shown.object = Some(patched);
        shown.is_patched = true;
        Ok(is_changed)
    }

    /// Lets webhooks judge an object, of which there is none on deletes.
    pub(super) async fn judge(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Refusal> {
        if !self.enabled.has(Plugin::ValidatingAdmissionWebhook) {
            return Ok(());
        }
        let hooks = self.validating.hooks(&self.store);
        if hooks.is_empty() || is_exempt(attributes) {
            return Ok(());
        }
        Box::pin(self.judge_by_all(&hooks, attributes, object)).await
    }

    async fn judge_by_all(
        &self,
        hooks: &[Arc<Hook>],
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Refusal> {
        let mut wanted: Vec<(&Hook, Aspect)> = Vec::new();
        let mut versions: HashMap<GroupVersionKind, Shown> = HashMap::new();
        for hook in hooks {
            let Some(aspect) = hook.criteria.aspect(&self.store, attributes, object)? else {
                continue;
            };
            if !versions.contains_key(&aspect.gvk) {
                let shown = Shown::new(attributes, object, &aspect.gvk).await?;
                versions.insert(aspect.gvk.clone(), shown);
            }
            let shown = &versions[&aspect.gvk];
            if self.meets_conditions(Role::Validating, hook, attributes, &aspect, shown)? {
                wanted.push((hook, aspect));
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        attributes.check_time()?;
        let asked = wanted.iter().enumerate();
        let mut asked: FuturesUnordered<_> = asked
            .map(|(index, (hook, aspect))| {
                self.judge_by(hook, index, aspect, attributes, &versions[&aspect.gvk])
            })
            .collect();
        // All are heard; the first who says no is believed.
        let mut refused = None;
        while let Some(judged) = asked.next().await {
            refused = refused.or(judged.err());
        }
        refused.map_or(Ok(()), Err)
    }

    async fn judge_by(
        &self,
        hook: &Hook,
        index: usize,
        aspect: &Aspect,
        attributes: &Attributes<'_>,
        shown: &Shown,
    ) -> Result<(), Refusal> {
        let begun = Instant::now();
        let note = Note { attributes, hook, round: 0, index };
        let judged = match hook.ask(Role::Validating, aspect, attributes, shown).await {
            Ok(verdict) => {
                note.verdict(&verdict);
                match verdict.is_allowed {
                    true => Ok(()),
                    false => Err(Failed::Denied(denial(hook, verdict.status))),
                }
            }
            Err(failed) => Err(failed),
        };
        self.count(Role::Validating, hook, attributes, begun, judged.as_ref().err());
        match judged {
            Err(Failed::Unanswered { .. }) if hook.fails_open => {
                note.failed_open(Role::Validating);
                Ok(())
            }
            judged => Ok(judged?),
        }
    }

    /// Whether a webhook's conditions want it to be asked.
    ///
    /// # Errors
    /// When nobody can tell, and the webhook may not fail.
    fn meets_conditions(
        &self,
        role: Role,
        hook: &Hook,
        attributes: &Attributes<'_>,
        aspect: &Aspect,
        shown: &Shown,
    ) -> Result<bool, Refusal> {
        if hook.conditions.is_empty() {
            return Ok(true);
        }
        let options = attributes.options.tree(attributes.operation);
        let request = describe(attributes, &aspect.gvr, &aspect.gvk, Some(&options));
        let subject = Subject {
            object: shown.object(),
            old: shown.old(),
            request: &request,
            namespace: &NOTHING,
            params: &NOTHING,
            asker: &Asker::new(&self.authorizer, attributes),
        };
        match hook.conditions.matched(&subject, &[], &self.metrics) {
            Ok(Matched::Yes) => Ok(true),
            Err(why) if !hook.fails_open => {
                let resource = attributes.resource.group_resource();
                Err(Box::new(Status::forbidden(&resource, attributes.name, why)))
            }
            Ok(Matched::No(_)) | Err(_) => {
                self.metrics.excluded_webhook(&hook.name, role, attributes.operation);
                Ok(false)
            }
        }
    }

    fn count(
        &self,
        role: Role,
        hook: &Hook,
        attributes: &Attributes<'_>,
        begun: Instant,
        failed: Option<&Failed>,
    ) {
        let (error, code) = match failed {
            None => (None, 200),
            Some(Failed::Unanswered { why, code }) => {
                tracing::warn!(webhook = hook.name, error = why, "a webhook gave no verdict");
                (Some("calling_webhook_error"), *code)
            }
            Some(Failed::Denied(status)) => (Some("no_error"), status.code),
            Some(Failed::Refused(_)) => (Some("apiserver_internal_error"), 0),
        };
        let fails_open = hook.fails_open && matches!(failed, Some(Failed::Unanswered { .. }));
        self.metrics.asked_webhook(&WebhookCall {
            name: &hook.name,
            role,
            operation: attributes.operation,
            elapsed: begun.elapsed(),
            code,
            error,
            fails_open,
        });
    }
}

impl Rounds {
    /// Whether there is a second round, which begins then: somebody changed the object.
    pub(super) fn begin_second(&mut self, is_changed: bool) -> bool {
        let is_second = !self.is_second && (self.is_second_needed || is_changed);
        self.is_second |= is_second;
        is_second
    }

    /// The managed fields that the object had before webhooks saw it, if any did.
    pub(super) fn into_managed_fields(self) -> Option<Option<Value>> {
        self.managed_fields
    }

    fn ask_again(&mut self) {
        self.again.extend(self.asked.drain());
    }
}

impl From<Failed> for Refusal {
    fn from(failed: Failed) -> Self {
        match failed {
            Failed::Unanswered { why, .. } => Box::new(Status::internal_error(why)),
            Failed::Denied(refusal) | Failed::Refused(refusal) => refusal,
        }
    }
}

/// Reads what a webhook might answer about a ConfigMap, and does to that what the answer wants, if
/// it wants something. For those who look for answers that do harm.
///
/// # Errors
/// Say what is wrong with the answer, or with what it wants.
pub fn read_verdict(answer: &[u8]) -> Result<Option<Value>, String> {
    let version = ReviewVersion::V1;
    let review = review::read(answer, version)?;
    let uid = review.review["response"]["uid"].as_str().unwrap_or_default();
    let verdict = review::verify(&review, version, Role::Mutating, uid)?;
    let Some(wanted) = verdict.patch else { return Ok(None) };
    let patch = patch::decode(&wanted.bytes)?;
    let resource = Catalog::builtin_resource("", "v1", "configmaps").expect("it is in the table");
    let object = json!({
        "kind": "ConfigMap", "apiVersion": "v1",
        "metadata": { "name": "a", "labels": { "b": "c" } }, "data": { "d": "e" },
    });
    let patched = patch::apply(resource, &resource.gvk, &object, &patch);
    patched.map(Some).map_err(|refusal| refusal.message)
}

/// What is said of a webhook's part in a request: to the client, and to the audit log.
struct Note<'a> {
    attributes: &'a Attributes<'a>,
    hook: &'a Hook,
    round: usize,
    index: usize,
}

impl Note<'_> {
    fn verdict(&self, verdict: &Verdict) {
        let warnings = self.attributes.warnings;
        for (key, text) in &verdict.annotations {
            warnings.annotate(format!("{}/{key}", self.hook.name), || text.clone());
        }
        warnings.extend(verdict.warnings.iter().cloned());
    }

    fn mutation(&self, is_changed: bool) {
        self.annotate("mutation.webhook.admission.k8s.io", || {
            json!({
                "configuration": self.hook.configuration,
                "webhook": self.hook.name,
                "mutated": is_changed,
            })
        });
    }

    /// Only who may see the object may see what was changed in it.
    fn patch(&self, patch: &[u8]) {
        if self.attributes.warnings.shows_objects() {
            self.annotate("patch.webhook.admission.k8s.io", || {
                json!({
                    "configuration": self.hook.configuration,
                    "webhook": self.hook.name,
                    "patch": sorted(patch),
                    "patchType": JSON_PATCH,
                })
            });
        }
    }

    fn failed_open(&self, role: Role) {
        let word = match role {
            Role::Mutating => "mutation",
            Role::Validating => "validating",
        };
        let key = self.key(&format!("failed-open.{word}.webhook.admission.k8s.io"));
        self.attributes.warnings.annotate(key, || self.hook.name.clone());
    }

    fn annotate(&self, prefix: &str, tree: impl FnOnce() -> Value) {
        self.attributes.warnings.annotate(self.key(prefix), || json::to_string(&tree()));
    }

    fn key(&self, prefix: &str) -> String {
        format!("{prefix}/round_{}_index_{}", self.round, self.index)
    }
}

/// A patch as upstream prints it: its operations are maps.
fn sorted(patch: &[u8]) -> Value {
    let mut tree = json::decode(patch).map(|decoded| decoded.value).unwrap_or_default();
    for operation in tree.as_array_mut().into_iter().flatten() {
        if let Some(members) = operation.as_object_mut() {
            members.sort_keys();
        }
    }
    tree
}

fn is_exempt(attributes: &Attributes<'_>) -> bool {
    let gvk = &attributes.resource.gvk;
    gvk.group == "admissionregistration.k8s.io" && EXEMPT.contains(&gvk.kind.as_str())
}

/// The object in the version that a webhook wants, made of what webhooks before it left.
async fn show<'s>(
    shown: &'s mut Option<Shown>,
    attributes: &Attributes<'_>,
    object: Option<&Value>,
    gvk: &GroupVersionKind,
) -> Result<&'s mut Shown, Refusal> {
    let next = match shown.take() {
        Some(shown) if shown.gvk == *gvk => shown,
        Some(Shown { object: Some(patched), is_patched: true, .. }) => {
            let object = object.expect("a patched object was there before");
            let patched = in_version_of(attributes, &patched, object).await?;
            // What was changed stays so, whatever the version.
            Shown { is_patched: true, ..Shown::new(attributes, Some(&patched), gvk).await? }
        }
        _ => Shown::new(attributes, object, gvk).await?,
    };
    Ok(shown.insert(next))
}

/// A patched object in the version of the one that it takes the place of.
async fn in_version_of(
    attributes: &Attributes<'_>,
    patched: &Value,
    object: &Value,
) -> Result<Value, Refusal> {
    let gvk = GroupVersionKind::interpret(object).unwrap_or_default();
    let mut object = shown::convert(attributes.resource, patched, &gvk).await?;
    if object.get("metadata").is_some_and(|metadata| !metadata.is_object()) {
        meta::of(&mut object);
    }
    Ok(object)
}

/// What the client is told of a denial.
fn denial(hook: &Hook, said: Option<Box<Status>>) -> Refusal {
    let mut status = said.unwrap_or_default();
    if status.code < 400 {
        status.code = 400;
    }
    if matches!(status.status.as_str(), "" | "Success") {
        status.status = "Failure".to_owned();
    }
    (status.kind, status.api_version) = ("Status".to_owned(), "v1".to_owned());
    let denied = format!("admission webhook {} denied the request", go_quote(&hook.name));
    let reason = serde_json::to_value(&status.reason).unwrap_or_default();
    status.message = match (status.message.as_str(), reason.as_str().unwrap_or_default()) {
        ("", "") => format!("{denied} without explanation"),
        ("", reason) => format!("{denied}: {reason}"),
        (message, _) => format!("{denied}: {message}"),
    };
    status
}
