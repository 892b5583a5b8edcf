//! Does what is planned for a `WebApp`.

use std::sync::Arc;

use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Secret;
use kubewright::condition::{Conditions as _, READY};
use kubewright::{Action, Context, Error, Event, Reconciler};
use uuid::Uuid;

use crate::kind::WebApp;
use crate::plan::{Children, Ready as _, Report, database_name, secret_name, selector};

/// Builds applications, and keeps them as they should be.
pub struct Builder;

/// The parts that run.
struct Running {
    deployment: Arc<Deployment>,
    database: Arc<StatefulSet>,
}

impl Builder {
    async fn build(&self, app: &WebApp, ctx: &Context) -> Result<Running, Error> {
        let database = ctx.get::<StatefulSet>(None, &database_name(app)).await?;
        let children = Children::of(app, &password(), database.as_deref());
        // Made once: the database has the password that it began with.
        if ctx.get::<Secret>(None, &secret_name(app)).await?.is_none() {
            ctx.create(children.secret).await?;
        }
        ctx.apply(children.config).await?;
        ctx.apply(children.database_service).await?;
        let database = ctx.apply(children.database).await?;
        ctx.apply(children.service).await?;
        let deployment = ctx.apply(children.deployment).await?;
        ctx.apply(children.ingress).await?;
        Ok(Running { deployment, database })
    }
}

impl Reconciler<WebApp> for Builder {
    async fn reconcile(&self, app: &mut WebApp, ctx: &Context) -> Result<Action, Error> {
        let built = self.build(app, ctx).await;
        let Running { deployment, database } = match built {
            Ok(running) => running,
            Err(error) => {
                ctx.event(Event::warning("Incomplete", error.to_string()));
                // The same however often it is tried, so that it is written once.
                let message = "not all could be made; events say why, and it is tried again";
                let condition = ctx.condition(READY, false, "Incomplete", message);
                app.status.get_or_insert_default().conditions.set(condition);
                return Err(error);
            }
        };
        let Report { is_ready, reason, message } = Report::of(app, &deployment, &database);
        let selector = selector(app);
        let counts = deployment.status.clone().unwrap_or_default();
        let status = app.status.get_or_insert_default();
        if is_ready && !status.conditions.is_true(READY) {
            ctx.event(Event::normal("Available", &*message));
        }
        status.created = true;
        status.replicas = counts.replicas.unwrap_or(0);
        status.ready_replicas = counts.ready_replicas.unwrap_or(0);
        status.updated_replicas = counts.updated_replicas.unwrap_or(0);
        status.available_replicas = counts.available_replicas.unwrap_or(0);
        status.database_ready = database.is_ready();
        status.selector = Some(selector);
        status.conditions.set(ctx.condition(READY, is_ready, reason, &message));
        Ok(Action::Done)
    }
}

/// One that nobody can guess.
fn password() -> String {
    Uuid::new_v4().simple().to_string()
}
