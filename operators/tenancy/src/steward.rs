//! Does what is planned for an AcmeNamespace.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, ResourceQuota};
use kubewright::condition::{Conditions as _, READY};
use kubewright::{Action, Context, Error, Event, Reconciler};
use serde_json::json;
use tracing::info;

use crate::kind::{AcmeNamespace, Phase};
use crate::plan::{Children, Standing, standing};
use crate::service::Service;

/// Holds objects until billing has heard of their end.
pub const FINALIZER: &str = "namespace.finalizer.tenancy.acme.com";

/// The condition that says that billing has heard of the end.
pub const BILLED: &str = "Billed";

/// Brings about namespaces, and sees to their end.
pub(crate) struct Steward {
    billing: Option<Arc<Service>>,
}

/// How far a namespace is.
enum Progress {
    Complete,
    /// It waits for the end of its predecessor, which will be told.
    Waiting,
}

/// Somebody else has the namespace.
#[derive(Debug, thiserror::Error)]
#[error("namespace {0} is somebody else's: delete it, or make an AcmeNamespace for another one")]
struct Taken(String);

impl Steward {
    pub(crate) fn new(billing: Option<Arc<Service>>) -> Self {
        Steward { billing }
    }

    /// Makes all that is missing, and makes good all that is not as it should be.
    async fn furnish(&self, acme: &AcmeNamespace, ctx: &Context) -> Result<Progress, Error> {
        let name = &acme.spec.namespace_name;
        let children = Children::of(acme);
        let found = ctx.get::<Namespace>(None, name).await?;
        match standing(acme, found.as_deref()) {
            // Made, not applied: one that somebody else has just made must not become ours.
            Standing::Free => {
                ctx.create(children.namespace.clone()).await?;
                info!(namespace = name, "namespace created");
                ctx.event(Event::normal("Created", format!("made namespace {name}")));
            }
            Standing::Ours => {
                ctx.apply(children.namespace.clone()).await?;
            }
            Standing::Ending => return Ok(Progress::Waiting),
            Standing::Taken => return Err(Taken(name.clone()).into()),
        }
        ctx.apply(children.role.clone()).await?;
        ctx.apply(children.binding.clone()).await?;
        ctx.apply(children.quota.clone()).await?;
        ctx.apply(children.limits.clone()).await?;
        ctx.apply(children.policy.clone()).await?;
        // After the new one is there, so that there is never none.
        for quota in ctx.children::<ResourceQuota>().await? {
            if children.is_obsolete(&quota) {
                ctx.delete(&*quota).await?;
            }
        }
        Ok(Progress::Complete)
    }

    async fn tell(&self, acme: &AcmeNamespace) -> Result<(), Error> {
        let Some(billing) = &self.billing else { return Ok(()) };
        let closure = json!({
            "name": acme.metadata.name,
            "namespace": acme.spec.namespace_name,
            "admin": acme.spec.admin_username,
            "tier": acme.tier(),
        });
        // No other object ever has the same: if the answer is lost, the next one is of this.
        let uid = acme.metadata.uid.as_deref().unwrap_or_default();
        Ok(billing.put(&format!("/closures/{uid}"), &closure).await?)
    }
}

impl Reconciler<AcmeNamespace> for Steward {
    async fn reconcile(&self, acme: &mut AcmeNamespace, ctx: &Context) -> Result<Action, Error> {
        if self.billing.is_none() {
            // From times when there was somebody to tell.
            let finalizers = acme.metadata.finalizers.iter_mut();
            finalizers.for_each(|all| all.retain(|finalizer| finalizer != FINALIZER));
        }
        let furnished = self.furnish(acme, ctx).await;
        let name = &acme.spec.namespace_name;
        let (phase, reason, message) = match &furnished {
            Ok(Progress::Complete) => {
                (Phase::Created, "Created", format!("namespace {name} has all that it needs"))
            }
            Ok(Progress::Waiting) => {
                let message = format!("namespace {name} is being deleted, and comes back then");
                (Phase::CreationInProgress, "Terminating", message)
            }
            Err(error) => {
                let is_taken = error.cause().is::<Taken>();
                let reason = if is_taken { "NamespaceTaken" } else { "Incomplete" };
                ctx.event(Event::warning(reason, error.to_string()));
                let message = match is_taken {
                    true => error.to_string(),
                    // The same however often it is tried, so that it is written once.
                    false => "not all could be made; events say why, and it is tried again".into(),
                };
                (Phase::CreationInProgress, reason, message)
            }
        };
        let condition = ctx.condition(READY, phase == Phase::Created, reason, &message);
        let status = acme.status.get_or_insert_default();
        status.phase = Some(phase);
        status.conditions.set(condition);
        furnished.map(|_| Action::Done)
    }

    async fn cleanup(&self, acme: &mut AcmeNamespace, ctx: &Context) -> Result<Action, Error> {
        let conditions = &mut acme.status.get_or_insert_default().conditions;
        if conditions.is_true(BILLED) {
            return Ok(Action::Done);
        }
        let told = self.tell(acme).await;
        let condition = match &told {
            Ok(()) => {
                ctx.event(Event::normal("Billed", "billing knows of the end").action("Delete"));
                ctx.condition(BILLED, true, "Told", "billing knows of the end")
            }
            Err(error) => {
                let note = format!("billing does not know of the end: {error}");
                ctx.event(Event::warning("BillingUnavailable", note).action("Delete"));
                let message = "billing does not answer as it should, and is asked again";
                ctx.condition(BILLED, false, "BillingUnavailable", message)
            }
        };
        acme.status.get_or_insert_default().conditions.set(condition);
        told?;
        // It is written down before the object goes: whatever fails from here on, billing is not
        // told again.
        Ok(Action::RequeueAfter(Duration::ZERO))
    }
}
