//! Does what is planned for a `Foo`.

use k8s_openapi::api::apps::v1::Deployment;
use kubewright::{Action, Context, Error, Event, Reconciler};

use crate::kind::Foo;
use crate::plan::{Step, plan};

/// Keeps Deployments of Foos.
pub struct Keeper;

/// Somebody else has the Deployment.
#[derive(Debug, thiserror::Error)]
#[error("Resource {0:?} already exists and is not managed by Foo")]
struct Taken(String);

impl Reconciler<Foo> for Keeper {
    async fn reconcile(&self, foo: &mut Foo, ctx: &Context) -> Result<Action, Error> {
        let name = foo.spec.deployment_name.clone().unwrap_or_default();
        let found = ctx.get::<Deployment>(None, &name).await?;
        match plan(foo, found.as_deref()) {
            Step::Refuse => {
                let note = "spec.deploymentName: is not set: say what the Deployment is called";
                ctx.event(Event::warning("NoDeploymentName", note));
                foo.status.get_or_insert_default().available_replicas = 0;
            }
            Step::Yield => {
                let taken = Taken(name);
                ctx.event(Event::warning("ErrResourceExists", taken.to_string()));
                return Err(taken.into());
            }
            Step::Apply(deployment) => {
                let made = ctx.apply(*deployment).await?;
                let available = made.status.as_ref().and_then(|status| status.available_replicas);
                foo.status.get_or_insert_default().available_replicas = available.unwrap_or(0);
                ctx.event(Event::normal("Synced", "Foo synced successfully"));
            }
        }
        // It had another name before.
        for former in ctx.children::<Deployment>().await? {
            if former.metadata.name.as_ref() != Some(&name) {
                ctx.delete(&*former).await?;
            }
        }
        Ok(Action::Done)
    }
}
