//! Deployments: pods of a template, and of a new one when it changes, without a gap.
//!
//! A Deployment makes a ReplicaSet for each template it has had. `history` knows them, `rollout`
//! says how large each should be next, `status` what is told of it.

mod history;
mod rollout;
mod status;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubewright::context::WriteError;
use kubewright::informer::Change;
use kubewright::{Action, Context, Controller, Error, Event, Reconciler};
use kubewright_apimachinery::selector::label::Selector;

use self::history::{History, REVISION, ROLLBACK_TO, annotation, size};
use self::rollout::{Resize, Strategy, Wanted};
use self::status::PROGRESSING;
use crate::pods;
use crate::selection::{self, frees, selects};
use crate::{names, part};

const AT_ONCE: usize = 5;
/// As many old ReplicaSets as this means all of them.
const ALL: i32 = i32::MAX;

/// The controller of Deployments.
pub(crate) fn deployments() -> Controller<Deployment, Deployments> {
    part::controller(names::DEPLOYMENT, Deployments)
        .until_gone()
        .owns::<ReplicaSet>()
        .depends_on(|change: &Change<ReplicaSet>, own: &Deployment| frees(change, || selector(own)))
        // One that has all its pods stopped before it starts others waits for the last to be gone.
        .depends_on(|change: &Change<Pod>, own: &Deployment| match change {
            Change::Deleted(pod) => {
                Wanted::of(own).strategy == Strategy::Recreate
                    && selects(&selector(own), &pod.metadata)
            }
            Change::Applied { .. } => false,
        })
        .at_once(AT_ONCE)
}

fn selector(deployment: &Deployment) -> Selector {
    selection::selector(deployment.spec.as_ref().map(|spec| &spec.selector))
}

pub(crate) struct Deployments;

impl Reconciler<Deployment> for Deployments {
    async fn reconcile(&self, deployment: &mut Deployment, ctx: &Context) -> Result<Action, Error> {
        let spec = deployment.spec.clone().unwrap_or_default();
        if spec.selector == LabelSelector::default() {
            let note = "This deployment is selecting all pods. A non-empty selector is required.";
            ctx.event(Event::warning("SelectingAll", note));
            deployment.status.get_or_insert_default().observed_generation =
                deployment.metadata.generation;
            return Ok(Action::Done);
        }
        let selector = selector(deployment);
        let is_selected = |set: &ReplicaSet| selects(&selector, &set.metadata);
        let sets = ctx.claim::<ReplicaSet>(|_| true, is_selected).await?;
        let history = History::new(deployment, sets);
        let mut rollout = Rollout { wanted: Wanted::of(deployment), deployment, history, ctx };
        rollout.run().await
    }
}

/// One step of a Deployment on its way.
struct Rollout<'r> {
    deployment: &'r mut Deployment,
    wanted: Wanted,
    history: History,
    ctx: &'r Context,
}

impl Rollout<'_> {
    async fn run(&mut self) -> Result<Action, Error> {
        if self.deployment.metadata.deletion_timestamp.is_some() {
            self.number().await?;
            return self.report();
        }
        status::note_pause(self.deployment, self.ctx.now());
        let is_paused = status::is_paused(self.deployment);
        if !is_paused && let Some(revision) = rollback_to(self.deployment) {
            self.ensure_new().await?;
            self.roll_back(revision);
            return Ok(Action::Done);
        }
        self.number().await?;
        if is_paused || rollout::is_scaling(&self.wanted, &self.history) {
            let replicas = self.deployment.status.as_ref().and_then(|status| status.replicas);
            let steps = rollout::scale(&self.wanted, &self.history, replicas.unwrap_or_default());
            self.resize(steps).await?;
            if is_paused {
                self.forget().await?;
            }
            return self.report();
        }
        match self.wanted.strategy {
            Strategy::Rolling => self.roll().await?,
            Strategy::Recreate => self.recreate().await?,
        }
        self.report_progress()
    }

    async fn roll(&mut self) -> Result<(), Error> {
        self.ensure_new().await?;
        let steps = rollout::rolling(&self.wanted, &self.history);
        match steps.is_empty() {
            false => self.resize(steps).await,
            true => self.forget_if_complete().await,
        }
    }

    async fn recreate(&mut self) -> Result<(), Error> {
        let steps = rollout::empty_old(&self.history);
        if !steps.is_empty() {
            return self.resize(steps).await;
        }
        let namespace = self.deployment.metadata.namespace.as_deref().unwrap_or_default();
        let pods = self.ctx.informer::<Pod>()?.list_in(namespace)?;
        if rollout::old_pods_run(&self.history, &pods) {
            return Ok(());
        }
        self.ensure_new().await?;
        if let Some(new) = &self.history.new
            && size(new) != self.wanted.replicas
        {
            let (set, from, to) = (Arc::clone(new), size(new), self.wanted.replicas);
            self.resize(vec![Resize { set, from, to }]).await?;
        }
        self.forget_if_complete().await
    }

    /// Sees to it that the new ReplicaSet, if there is one, has the number, the annotations and the
    /// terms of the Deployment.
    async fn number(&mut self) -> Result<(), Error> {
        let Some(new) = self.history.new.clone() else { return Ok(()) };
        let known = new.metadata.annotations.clone().unwrap_or_default();
        let annotations =
            history::annotations(self.deployment, &known, self.history.next_revision());
        let min_ready = self.deployment.spec.as_ref().and_then(|spec| spec.min_ready_seconds);
        let is_same = new.spec.as_ref().and_then(|spec| spec.min_ready_seconds) == min_ready;
        if annotations != known || !is_same {
            let changed = self.ctx.replace(new.as_ref(), |set| {
                set.metadata.annotations = Some(annotations);
                set.spec.get_or_insert_default().min_ready_seconds = min_ready;
            });
            self.history.new = Some(changed.await?);
        }
        if let Some(new) = &self.history.new {
            let revision = annotation(&new.metadata, REVISION).unwrap_or_default().to_owned();
            let name = new.metadata.name.clone().unwrap_or_default();
            self.note_revision(revision);
            let message = format!("Found new replica set {name:?}");
            self.note_progress("FoundNewReplicaSet", message, false);
        }
        Ok(())
    }

    /// Makes the new ReplicaSet, if there is none.
    async fn ensure_new(&mut self) -> Result<(), Error> {
        if self.history.new.is_some() {
            return Ok(());
        }
        let set = history::new_set(self.deployment, &self.history, &self.wanted);
        let (name, size) = (set.metadata.name.clone().unwrap_or_default(), size(&set));
        let revision = self.history.next_revision().to_string();
        match self.ctx.create(set).await {
            Ok(created) => {
                if size > 0 {
                    let note = format!("Scaled up replica set {name} from 0 to {size}");
                    self.ctx.event(Event::normal("ScalingReplicaSet", note));
                }
                self.history.new = Some(created);
                let message = format!("Created new replica set {name:?}");
                self.note_progress("NewReplicaSetCreated", message, true);
            }
            Err(error) if error.reason() == Some("AlreadyExists") => {
                self.history.new = Some(self.existing(&name, error).await?);
            }
            Err(error) => {
                if !pods::is_namespace_terminating(&error) {
                    self.complain(&name, &error);
                }
                return Err(error.into());
            }
        }
        self.note_revision(revision);
        Ok(())
    }

    /// The ReplicaSet that already has the new one's name. If it is another, their hashes collide:
    /// next time another one is taken.
    async fn existing(&mut self, name: &str, error: WriteError) -> Result<Arc<ReplicaSet>, Error> {
        let found = self.ctx.get::<ReplicaSet>(None, name).await?;
        let uid = self.deployment.metadata.uid.as_deref();
        let is_own = |set: &ReplicaSet| {
            let mut owners = set.metadata.owner_references.iter().flatten();
            let owner = owners.find(|owner| owner.controller == Some(true));
            owner.is_some_and(|owner| Some(owner.uid.as_str()) == uid)
        };
        let found = found.filter(|set| is_own(set));
        let history = History::new(self.deployment, found.into_iter().collect());
        if let Some(own) = history.new {
            return Ok(own);
        }
        let status = self.deployment.status.get_or_insert_default();
        *status.collision_count.get_or_insert_default() += 1;
        Err(error.into())
    }

    fn complain(&mut self, name: &str, error: &WriteError) {
        let reason = "ReplicaSetCreateError";
        let note = format!("Failed to create new replica set {name:?}: {}", pods::message(error));
        if status::deadline(self.deployment).is_some() {
            let now = self.ctx.now();
            let failed = status::condition(PROGRESSING, "False", reason, note.clone(), now);
            status::set(status::conditions(self.deployment), failed);
        }
        self.ctx.event(Event::warning(reason, note));
    }

    fn note_revision(&mut self, revision: String) {
        let annotations = self.deployment.metadata.annotations.get_or_insert_default();
        annotations.insert(REVISION.to_owned(), revision);
    }

    /// Says how it gets on; unless `anew`, only if nothing was ever said.
    fn note_progress(&mut self, reason: &str, message: String, anew: bool) {
        let (now, limited) = (self.ctx.now(), status::deadline(self.deployment).is_some());
        let conditions = status::conditions(self.deployment);
        if limited && (anew || status::find(conditions, PROGRESSING).is_none()) {
            let progress = status::condition(PROGRESSING, "True", reason, message, now);
            status::set(conditions, progress);
        }
    }

    async fn resize(&mut self, steps: Vec<Resize>) -> Result<(), Error> {
        let mut latest: HashMap<String, Arc<ReplicaSet>> = HashMap::new();
        for Resize { set, from, to } in steps {
            let name = set.metadata.name.clone().unwrap_or_default();
            let seen = latest.get(&name).unwrap_or(&set);
            let mut annotations = seen.metadata.annotations.clone().unwrap_or_default();
            history::set_sizes(&mut annotations, &self.wanted);
            let resized = self.ctx.replace(seen.as_ref(), |set| {
                set.metadata.annotations = Some(annotations);
                set.spec.get_or_insert_default().replicas = Some(to);
            });
            let resized = resized.await?;
            if from != to {
                let direction = if from < to { "up" } else { "down" };
                let note = format!("Scaled {direction} replica set {name} from {from} to {to}");
                self.ctx.event(Event::normal("ScalingReplicaSet", note));
            }
            latest.insert(name, resized);
        }
        // What is told of the Deployment is told of ReplicaSets as they now are.
        for set in self.history.old.iter_mut().chain(&mut self.history.new) {
            let name = set.metadata.name.as_deref().unwrap_or_default();
            if let Some(resized) = latest.remove(name) {
                *set = resized;
            }
        }
        Ok(())
    }

    async fn forget_if_complete(&self) -> Result<(), Error> {
        let status = self.deployment.status.clone().unwrap_or_default();
        match status::is_complete(self.deployment, &self.wanted, &status) {
            true => self.forget().await,
            false => Ok(()),
        }
    }

    /// Deletes old ReplicaSets that are more than are to be kept.
    async fn forget(&self) -> Result<(), Error> {
        let limit = self.deployment.spec.as_ref().and_then(|spec| spec.revision_history_limit);
        let Some(limit) = limit.filter(|limit| *limit != ALL) else { return Ok(()) };
        for set in self.history.forgettable(usize::try_from(limit).unwrap_or_default()) {
            self.ctx.delete(set.as_ref()).await?;
        }
        Ok(())
    }

    fn roll_back(&mut self, revision: i64) {
        let event = rolled_back(self.deployment, &self.history, revision);
        self.ctx.event(event);
    }

    fn report(&mut self) -> Result<Action, Error> {
        let now = self.ctx.now();
        let status = status::counted(self.deployment, &self.history, &self.wanted, now);
        self.deployment.status = Some(status);
        Ok(Action::Done)
    }

    fn report_progress(&mut self) -> Result<Action, Error> {
        let now = self.ctx.now();
        let status = status::progressed(self.deployment, &self.history, &self.wanted, now);
        let next = status::next_check(self.deployment, &self.wanted, &status, now);
        self.deployment.status = Some(status);
        Ok(next.map_or(Action::Done, Action::RequeueAfter))
    }
}

/// The revision that somebody asked, in the way of old, to go back to.
fn rollback_to(deployment: &Deployment) -> Option<i64> {
    annotation(&deployment.metadata, ROLLBACK_TO)?.parse().ok()
}

/// Goes back to the template of an older ReplicaSet; to the last before this one if it is not said
/// which. What is told of it says whether there was one.
fn rolled_back(deployment: &mut Deployment, history: &History, revision: i64) -> Event {
    let asked = match revision {
        0 => history.last_revision(),
        revision => revision,
    };
    let set = history.all().find(|set| history::revision(set) == Some(asked));
    let name = deployment.metadata.name.clone().unwrap_or_default();
    let event = match set {
        _ if asked == 0 => {
            let note = "Unable to find last revision.";
            Event::warning("DeploymentRollbackRevisionNotFound", note)
        }
        None => {
            let note = "Unable to find the revision to rollback to.";
            Event::warning("DeploymentRollbackRevisionNotFound", note)
        }
        Some(set) if history.new.as_ref().is_some_and(|new| Arc::ptr_eq(new, set)) => {
            let note = format!(
                "The rollback revision contains the same template as current deployment {name:?}"
            );
            Event::warning("DeploymentRollbackTemplateUnchanged", note)
        }
        Some(set) => {
            history::take_back(deployment, set);
            let note = format!("Rolled back deployment {name:?} to revision {asked}");
            Event::normal("DeploymentRollback", note)
        }
    };
    if let Some(annotations) = &mut deployment.metadata.annotations {
        annotations.remove(ROLLBACK_TO);
    }
    event
}
