//! StatefulSets: pods that are numbered, each with claims of its own, and that come and go in order.

mod claims;
mod identity;
mod plan;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::ObjectMeta;
use kubewright::context::WriteError;
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};
use kubewright_apimachinery::selector::label::Selector;
use serde_json::Value;

use self::claims::Owners;
use self::identity::{is_member, ordinal, revision};
use self::plan::{Step, View, plan};
use crate::selection::{self, frees, selects};
use crate::{hash, names, part, pods, revisions};

const AT_ONCE: usize = 5;
/// The label by which a revision says its hash.
const HASH: &str = "controller.kubernetes.io/hash";
/// So much of a StatefulSet's name is in the names of its revisions.
const NAME_CHARS_MAX: usize = 223;

/// The controller of StatefulSets.
pub(crate) fn stateful_sets() -> Controller<StatefulSet, StatefulSets> {
    part::controller(names::STATEFUL_SET, StatefulSets)
        .until_gone()
        .owns::<Pod>()
        .owns::<ControllerRevision>()
        .reads::<PersistentVolumeClaim>()
        .depends_on(|change: &Change<Pod>, own: &StatefulSet| frees(change, || selector(own)))
        .at_once(AT_ONCE)
}

fn selector(set: &StatefulSet) -> Selector {
    selection::selector(set.spec.as_ref().map(|spec| &spec.selector))
}

pub(crate) struct StatefulSets;

/// The revisions of a StatefulSet.
struct History {
    /// The one that pods had before the present update, or have.
    current: Arc<ControllerRevision>,
    /// The one that pods should have.
    update: Arc<ControllerRevision>,
    others: Vec<Arc<ControllerRevision>>,
    collisions: i32,
}

/// Why a pod cannot be made now.
#[derive(Debug, thiserror::Error)]
#[error("pvc {claim} is being deleted")]
struct ClaimDeleting {
    claim: String,
}

impl Reconciler<StatefulSet> for StatefulSets {
    async fn reconcile(&self, set: &mut StatefulSet, ctx: &Context) -> Result<Action, Error> {
        let selector = selector(set);
        let is_own = |pod: &Pod| selects(&selector, &pod.metadata) && is_member(set, pod);
        let pods = ctx.claim::<Pod>(|_| true, is_own).await?;
        let history = history(set, &selector, ctx).await?;
        let template =
            |revision: &ControllerRevision| revisions::template(revision).unwrap_or_default();
        let (current, update) = (template(&history.current), template(&history.update));
        let view = View {
            set,
            pods: &pods,
            current: (&current, name(&history.current.metadata)),
            update: (&update, name(&history.update.metadata)),
            now: ctx.now(),
        };
        let plan = plan(&view);
        let outdated = plan.outdated;
        let done = Worker { view: &view, ctx }.run(plan.steps).await;
        let outdated = if done.is_ok() { outdated } else { 0 };
        let next = plan::next_available(&view);
        let status = plan::status(&view, outdated, history.collisions);
        forget(set, &pods, &history, ctx).await?;
        set.status = Some(status);
        done?;
        Ok(next.map_or(Action::Done, Action::RequeueAfter))
    }
}

/// Finds the revisions of a StatefulSet; makes that of its template if there is none.
async fn history(set: &StatefulSet, selector: &Selector, ctx: &Context) -> Result<History, Error> {
    let is_selected = |revision: &ControllerRevision| selects(selector, &revision.metadata);
    let mut all = ctx.claim::<ControllerRevision>(|_| true, is_selected).await?;
    all.sort_by_cached_key(|revision| {
        let created = revision.metadata.creation_timestamp.as_ref().map(|time| time.0);
        (revision.revision, created, revision.metadata.name.clone())
    });
    let patch = revisions::patch(&set.spec.clone().unwrap_or_default().template);
    let status = set.status.clone().unwrap_or_default();
    let mut collisions = status.collision_count.unwrap_or_default();
    let number = revisions::next_number(&all);
    let same = all.iter().rposition(|revision| revisions::is_of(revision, &patch));
    let update = match same {
        Some(last) if last + 1 == all.len() => Arc::clone(&all[last]),
        // Back to an older template, which is the newest again.
        Some(older) => {
            let renumbered =
                ctx.replace(all[older].as_ref(), |revision| revision.revision = number).await?;
            all[older] = Arc::clone(&renumbered);
            renumbered
        }
        None => {
            let created = snapshot(set, &patch, number, &mut collisions, ctx).await?;
            all.push(Arc::clone(&created));
            created
        }
    };
    let is_current = |revision: &&Arc<ControllerRevision>| {
        status.current_revision.as_deref() == Some(name(&revision.metadata))
    };
    let current = all.iter().find(is_current).unwrap_or(&update).clone();
    Ok(History { current, update, others: all, collisions })
}

/// Keeps the present template. If another one has its hash, another hash is taken.
async fn snapshot(
    set: &StatefulSet,
    patch: &Value,
    number: i64,
    collisions: &mut i32,
    ctx: &Context,
) -> Result<Arc<ControllerRevision>, Error> {
    let text = revisions::go_json(patch);
    let owner = name(&set.metadata);
    let owner = &owner[..owner.len().min(NAME_CHARS_MAX)];
    let template = set.spec.clone().unwrap_or_default().template.metadata.unwrap_or_default();
    let mut labels = template.labels.unwrap_or_default();
    labels.insert(HASH.to_owned(), hash::revision(text.as_bytes(), Some(*collisions)));
    loop {
        let hash = hash::revision(text.as_bytes(), Some(*collisions));
        let name = format!("{owner}-{hash}");
        let revision = ControllerRevision {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(labels.clone()),
                annotations: set.metadata.annotations.clone(),
                ..ObjectMeta::default()
            },
            data: Some(RawExtension(patch.clone())),
            revision: number,
        };
        match ctx.create(revision).await {
            Ok(created) => return Ok(created),
            Err(error) if error.reason() == Some("AlreadyExists") => {
                let found = ctx.get::<ControllerRevision>(None, &name).await?;
                match found {
                    Some(found) if revisions::is_of(&found, patch) => return Ok(found),
                    Some(_) => *collisions += 1,
                    // Not seen yet.
                    None => return Err(error.into()),
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Deletes old revisions that no pod is of and that are more than are to be kept.
async fn forget(
    set: &StatefulSet,
    pods: &[Arc<Pod>],
    history: &History,
    ctx: &Context,
) -> Result<(), WriteError> {
    let limit = set.spec.as_ref().and_then(|spec| spec.revision_history_limit).unwrap_or(10);
    let Ok(limit) = usize::try_from(limit) else { return Ok(()) };
    let used = [&history.current, &history.update].map(|revision| name(&revision.metadata));
    let is_used = |known: &Arc<ControllerRevision>| {
        let known = name(&known.metadata);
        used.contains(&known) || pods.iter().any(|pod| revision(pod) == known)
    };
    let idle: Vec<_> = history.others.iter().filter(|revision| !is_used(revision)).collect();
    for revision in idle.iter().take(idle.len().saturating_sub(limit)) {
        ctx.delete(revision.as_ref()).await?;
    }
    Ok(())
}

/// Does what is planned.
struct Worker<'w> {
    view: &'w View<'w>,
    ctx: &'w Context,
}

impl Worker<'_> {
    async fn run(&self, steps: Vec<Step>) -> Result<(), Error> {
        let policy =
            self.view.set.spec.as_ref().and_then(|spec| spec.pod_management_policy.as_deref());
        if policy == Some("Parallel") {
            let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
            let taken = pods::slow_start(steps.len(), |number| {
                self.take(steps[number].take().expect("each is taken once"))
            });
            return taken.await;
        }
        for step in steps {
            self.take(step).await?;
        }
        Ok(())
    }

    async fn take(&self, step: Step) -> Result<(), Error> {
        match step {
            Step::Create(pod) => self.create(*pod).await,
            Step::Tend(pod) => self.tend(&pod).await,
            Step::Release(pod) => self.settle_claims(&pod).await,
            Step::Delete(pod) => {
                let deleted = self.ctx.delete(pod.as_ref()).await;
                self.tell("Delete", &pod, deleted.as_ref().err().map(pods::message));
                Ok(deleted?)
            }
        }
    }

    async fn create(&self, pod: Pod) -> Result<(), Error> {
        if self.has_stale_claim(&pod).await? {
            // They go with a pod of the same name that is gone.
            return Ok(());
        }
        if let Err(error) = self.make_claims(&pod).await {
            self.tell("Create", &pod, Some(error.to_string()));
            return Err(error);
        }
        let created = match self.ctx.create(pod.clone()).await {
            Err(error) if error.reason() == Some("AlreadyExists") => return Err(error.into()),
            created => created,
        };
        self.tell("Create", &pod, created.as_ref().err().map(pods::message));
        self.settle_claims(created?.as_ref()).await
    }

    /// Sees to it that a pod is what its number says, and has its claims.
    async fn tend(&self, pod: &Pod) -> Result<(), Error> {
        if pods::phase(pod) == "Pending" {
            self.make_claims(pod).await?;
        }
        self.settle_claims(pod).await?;
        if identity::is_identified(self.view.set, pod) {
            return Ok(());
        }
        let set = self.view.set;
        let updated = self.ctx.replace(pod, |pod| identity::identify(set, pod)).await;
        self.tell("Update", pod, updated.as_ref().err().map(pods::message));
        Ok(updated.map(drop)?)
    }

    async fn has_stale_claim(&self, pod: &Pod) -> Result<bool, Error> {
        if !claims::Retention::of(self.view.set).scaled {
            return Ok(false);
        }
        for claim in self.claims(pod).await? {
            if claims::is_stale(&claim, &pod.metadata, &claims::POD) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The claims of a pod that there are.
    async fn claims(&self, pod: &Pod) -> Result<Vec<Arc<PersistentVolumeClaim>>, Error> {
        let mut found = Vec::new();
        for (_, claim) in self.wanted_claims(pod) {
            let claim = name(&claim.metadata);
            found.extend(self.ctx.get::<PersistentVolumeClaim>(None, claim).await?);
        }
        Ok(found)
    }

    fn wanted_claims(&self, pod: &Pod) -> Vec<(String, PersistentVolumeClaim)> {
        identity::claims(self.view.set, ordinal(pod).unwrap_or_default())
    }

    async fn make_claims(&self, pod: &Pod) -> Result<(), Error> {
        for (_, claim) in self.wanted_claims(pod) {
            let claim_name = name(&claim.metadata).to_owned();
            match self.ctx.get::<PersistentVolumeClaim>(None, &claim_name).await? {
                Some(found) if found.metadata.deletion_timestamp.is_some() => {
                    return Err(ClaimDeleting { claim: claim_name }.into());
                }
                Some(_) => {}
                None => {
                    let created = self.ctx.create_unowned(claim).await;
                    self.tell_claim(pod, &claim_name, created.as_ref().err());
                    created?;
                }
            }
        }
        Ok(())
    }

    /// Sees to it that the claims of a pod go with whom they should.
    async fn settle_claims(&self, pod: &Pod) -> Result<(), Error> {
        let set = self.view.set;
        for claim in self.claims(pod).await? {
            let judged = claims::judge(&claim, set, pod, self.view.is_wanted(pod));
            let Owners::Wrong(owners) = judged else { continue };
            if claims::has_other_controller(&claim, set, pod) {
                let note = format!(
                    "PersistentVolumeClaim {} has a conflicting OwnerReference that acts as a manging \
                     controller, the retention policy is ignored for this claim",
                    name(&claim.metadata)
                );
                self.ctx.event(Event::warning("ConflictingController", note));
            }
            let changed = self.ctx.replace(claim.as_ref(), |claim| {
                claim.metadata.owner_references = (!owners.is_empty()).then_some(owners);
            });
            changed.await?;
        }
        Ok(())
    }

    fn tell(&self, verb: &str, pod: &Pod, error: Option<String>) {
        let (pod, set) = (name(&pod.metadata), name(&self.view.set.metadata));
        self.ctx.event(match error {
            None => {
                let note = format!("{verb} Pod {pod} in StatefulSet {set} successful");
                Event::normal(&format!("Successful{verb}"), note)
            }
            Some(error) => {
                let note = format!("{verb} Pod {pod} in StatefulSet {set} failed error: {error}");
                Event::warning(&format!("Failed{verb}"), note)
            }
        });
    }

    fn tell_claim(&self, pod: &Pod, claim: &str, error: Option<&WriteError>) {
        let (pod, set) = (name(&pod.metadata), name(&self.view.set.metadata));
        self.ctx.event(match error {
            None => {
                let note = format!("Create Claim {claim} Pod {pod} in StatefulSet {set} success");
                Event::normal("SuccessfulCreate", note)
            }
            Some(error) => {
                let error = pods::message(error);
                let note = format!(
                    "Create Claim {claim} for Pod {pod} in StatefulSet {set} failed error: {error}"
                );
                Event::warning("FailedCreate", note)
            }
        });
    }
}

fn name(metadata: &ObjectMeta) -> &str {
    metadata.name.as_deref().unwrap_or_default()
}
