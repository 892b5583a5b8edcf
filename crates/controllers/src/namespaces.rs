//! The end of namespaces: everything in them goes, pods first, and then they do.
//!
//! A namespace that waits for something (a finalizer of an object, a pod's last seconds) is looked
//! at again when something in it changes.

mod conditions;
mod findings;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceStatus, Pod};
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::PartialObjectMeta;
use kube::{Client, Error};
use kubewright::controller::Trigger;
use kubewright::informer::{Informer, Scope};
use kubewright::{Action, Cache, Context, Controller, ObjectKey, Reconciler};
use tracing::{debug, warn};

use crate::answer::{Refusal as _, present};
use crate::census::{Census, Change, Listener};
use crate::kinds::{Kind, Kinds};
use crate::part::text;
use crate::{names, part};
use findings::{Findings, Leftover};

/// What this controller takes from `spec.finalizers` when all is gone.
const FINALIZER: &str = "kubernetes";
const NAMESPACES_AT_ONCE: usize = 10;
const KINDS_AT_ONCE: usize = 8;

/// The controller of namespaces that end. The census tells it of what is in them.
pub(crate) fn controller(cache: &Cache, census: &mut Census) -> Controller<Namespace, Ends> {
    let controller =
        part::controller(names::NAMESPACE, Ends).until_gone().at_once(NAMESPACES_AT_ONCE);
    let namespaces = cache.informer(&Scope::default());
    census.tell(Arc::new(Content { namespaces, trigger: controller.trigger("content") }));
    controller
}

pub(crate) struct Ends;

impl Reconciler<Namespace> for Ends {
    async fn reconcile(
        &self,
        namespace: &mut Namespace,
        ctx: &Context,
    ) -> Result<Action, kubewright::Error> {
        let Some(deleted) = &namespace.metadata.deletion_timestamp else {
            return Ok(Action::Done);
        };
        let client = ctx.client().clone();
        let (api, informer) = (Api::all(client.clone()), ctx.informer::<Namespace>()?);
        let end = End { client, api, informer, now: ctx.now() };
        match end.bring_about(namespace.clone(), deleted.0).await {
            Err(EndError::Api(error)) if error.is_conflict() => Ok(Action::Requeue),
            ended => Ok(ended?),
        }
    }
}

/// Has a namespace that ends looked at when something in it changes.
struct Content {
    namespaces: Informer<Namespace>,
    trigger: Trigger,
}

impl Listener for Content {
    fn wants(&self, kind: &Kind) -> bool {
        kind.namespaced && kind.can("delete") && kind.plural != "events"
    }

    fn observe(&self, change: &Change<'_>) {
        let (Change::Applied(_, object) | Change::Deleted(_, object)) = change else { return };
        let key = ObjectKey::new(None, text(&object.namespace));
        // One that is not known to end is looked at once it is.
        let namespace = self.namespaces.get(&key).ok().flatten();
        if namespace.is_some_and(|namespace| namespace.metadata.deletion_timestamp.is_some()) {
            self.trigger.fire(key);
        }
    }
}

/// The end of one namespace.
struct End<'a> {
    client: Client,
    api: Api<Namespace>,
    informer: &'a Informer<Namespace>,
    now: Timestamp,
}

/// Why a namespace is not gone.
#[derive(Debug, thiserror::Error)]
enum EndError {
    #[error("reach the API")]
    Api(#[from] Error),
    /// Some of the content could not be deleted; the namespace's conditions say what.
    #[error("delete the content: {}", .0.join(", "))]
    Content(Vec<String>),
}

impl End<'_> {
    async fn bring_about(
        &self,
        namespace: Namespace,
        deleted: Timestamp,
    ) -> Result<Action, EndError> {
        let name = &text(&namespace.metadata.name).to_owned();
        let Some(mut namespace) = self.terminate(name, namespace).await? else {
            return Ok(Action::Done);
        };
        if finalizers(&namespace).is_empty() {
            return Ok(Action::Done);
        }
        let findings = self.empty(name, deleted).await?;
        self.report(name, &mut namespace, &findings).await;
        if !findings.failures().is_empty() {
            return Err(EndError::Content(findings.failures().to_vec()));
        }
        if findings.is_empty() {
            self.finalize(name, namespace).await?;
            return Ok(Action::Done);
        }
        debug!(namespace = name, "content remains");
        Ok(findings.patience().map_or(Action::Done, Action::RequeueAfter))
    }

    /// The phase says what the deletion means, for those who look at nothing else.
    async fn terminate(
        &self,
        name: &str,
        mut namespace: Namespace,
    ) -> Result<Option<Namespace>, Error> {
        const TERMINATING: &str = "Terminating";
        let status = namespace.status.get_or_insert_default();
        if status.phase.as_deref() == Some(TERMINATING) {
            return Ok(Some(namespace));
        }
        status.phase = Some(TERMINATING.to_owned());
        let written = self.api.replace_status(name, &PostParams::default(), &namespace).await;
        Ok(present(written)?.inspect(|written| self.informer.expect(&written.metadata)))
    }

    async fn finalize(&self, name: &str, mut namespace: Namespace) -> Result<(), Error> {
        let mut rest = finalizers(&namespace).to_vec();
        rest.retain(|finalizer| finalizer != FINALIZER);
        namespace.spec.get_or_insert_default().finalizers = Some(rest);
        let parameters = PostParams::default();
        let written = self.api.replace_subresource("finalize", name, &parameters, &namespace).await;
        present(written).map(drop)
    }

    /// Says in the namespace what was found. If it cannot be said now it is said next time.
    async fn report(&self, name: &str, namespace: &mut Namespace, findings: &Findings) {
        let now = Timestamp::from_second(self.now.as_second()).unwrap_or_default();
        let status: &mut NamespaceStatus = namespace.status.get_or_insert_default();
        let before = status.conditions.clone().unwrap_or_default();
        let Some(conditions) = conditions::update(&before, findings, now) else { return };
        status.conditions = Some(conditions);
        match self.api.replace_status(name, &PostParams::default(), namespace).await {
            Ok(written) => {
                self.informer.expect(&written.metadata);
                *namespace = written;
            }
            Err(error) if error.is_absent() => {}
            Err(error) => {
                warn!(namespace = name, error = error.text(), "conditions are not written");
            }
        }
    }

    /// Deletes what can be deleted, and says what remains.
    async fn empty(&self, namespace: &str, deleted: Timestamp) -> Result<Findings, Error> {
        // Not what the census knows: a kind that came a moment ago may have objects here.
        let kinds = Kinds::discover(&self.client).await?;
        let mut findings = Findings::new(&kinds.stale);
        let content = kinds.preferred.iter().filter(|kind| kind.namespaced && kind.can("delete"));
        let (pods, others): (Vec<_>, Vec<_>) = content.partition(|kind| kind.is("", "pods"));
        // What pods rely on (policies, accounts, secrets) outlives them.
        for pods in pods {
            let left = self.clear(pods, namespace, self.grace(namespace, deleted).await?).await;
            findings.add_pods(pods, left);
        }
        if findings.waits_for_pods() {
            return Ok(findings);
        }
        let mut clearing = stream::iter(others.into_iter().cloned())
            .map(|kind: Arc<Kind>| self.cleared(kind, namespace))
            .buffer_unordered(KINDS_AT_ONCE);
        while let Some((kind, left)) = clearing.next().await {
            findings.add(&kind, left);
        }
        Ok(findings)
    }

    /// How long pods may still take to end.
    async fn grace(&self, namespace: &str, deleted: Timestamp) -> Result<Duration, Error> {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), namespace);
        let pods = pods.list(&ListParams::default()).await?;
        Ok(grace(&pods.items, self.now.duration_since(deleted)))
    }

    async fn cleared(
        &self,
        kind: Arc<Kind>,
        namespace: &str,
    ) -> (Arc<Kind>, Result<Leftover, String>) {
        let left = self.clear(&kind, namespace, Duration::ZERO).await;
        (kind, left)
    }

    async fn clear(
        &self,
        kind: &Kind,
        namespace: &str,
        grace: Duration,
    ) -> Result<Leftover, String> {
        let objects = self.delete(kind, namespace).await.map_err(|error| error.text())?;
        let finalizers =
            objects.iter().flat_map(|object| object.metadata.finalizers.iter().flatten());
        let left = Leftover::new(objects.len(), finalizers.cloned(), grace, kind.can("watch"));
        match left.is_expected() {
            true => Ok(left),
            false => Err(format!(
                "unexpected items still remain in namespace: {namespace} for gvr: {kind}"
            )),
        }
    }

    /// Deletes all objects of a kind; gives back those that are still there.
    async fn delete(&self, kind: &Kind, namespace: &str) -> Result<Vec<PartialObjectMeta>, Error> {
        let api = kind.within(&self.client, namespace);
        let (all, background) = (ListParams::default(), DeleteParams::background());
        let deleted = match kind.can("deletecollection") {
            true => match api.delete_collection(&background, &all).await {
                Ok(_) => true,
                Err(error) if error.is_absent() || error.is_unsupported() => false,
                Err(error) => return Err(error),
            },
            false => false,
        };
        if !deleted {
            for object in list(&api).await? {
                match api.delete(text(&object.metadata.name), &background).await {
                    Ok(_) => {}
                    Err(error) if error.is_absent() || error.is_unsupported() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        list(&api).await
    }
}

async fn list(api: &Api<DynamicObject>) -> Result<Vec<PartialObjectMeta>, Error> {
    match api.list_metadata(&ListParams::default()).await {
        Ok(list) => Ok(list.items),
        Err(error) if error.is_absent() || error.is_unsupported() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

fn finalizers(namespace: &Namespace) -> &[String] {
    let spec = namespace.spec.as_ref();
    spec.and_then(|spec| spec.finalizers.as_deref()).unwrap_or_default()
}

/// The longest time that a running pod has to end, while it has not passed since the deletion.
fn grace(pods: &[Pod], since: jiff::SignedDuration) -> Duration {
    let running = pods.iter().filter(|pod| {
        let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
        !matches!(phase, Some("Succeeded" | "Failed"))
    });
    let seconds = running.filter_map(|pod| pod.spec.as_ref()?.termination_grace_period_seconds);
    let longest = seconds.max().and_then(|seconds| u64::try_from(seconds).ok()).unwrap_or(0);
    let passed = Duration::try_from(since).unwrap_or_default();
    let longest = Duration::from_secs(longest);
    if passed >= longest { Duration::ZERO } else { longest }
}
