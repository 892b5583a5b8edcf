//! Does what is planned for a `Wordpress`.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use kube::ResourceExt as _;
use kubewright::condition::{Conditions as _, READY};
use kubewright::context::{Kind, WriteError};
use kubewright::{Action, Context, Error, Event, ObjectKey, Reconciler};
use tracing::info;

use crate::kind::{SecretKey, Wordpress};
use crate::plan::{Children, Names, Password, is_available};
use crate::references::References;

/// Brings sites about.
pub struct Publisher {
    references: References,
}

/// How far a site is.
enum Progress {
    /// Its password is not known; the Secret will be heard of.
    NoPassword(String),
    DatabaseStarting,
    SiteStarting,
    Open,
}

impl Publisher {
    pub(crate) fn new(references: References) -> Self {
        Publisher { references }
    }

    async fn publish(&self, site: &mut Wordpress, ctx: &Context) -> Result<Progress, Error> {
        let password = match self.password(site, ctx).await? {
            Ok(password) => password,
            Err(why) => return Ok(Progress::NoPassword(why)),
        };
        let names = names(site, ctx).await?;
        site.status.get_or_insert_default().service = Some(names.wordpress());
        let children = Children::of(site, &names, &password);
        bring(ctx, "PVC", children.mysql_claim).await?;
        bring(ctx, "Service", children.mysql_service).await?;
        let mysql = bring(ctx, "Deployment", children.mysql).await?;
        // Once the front end is there it stays, whatever becomes of the database.
        let begun = ctx.get::<Deployment>(None, &names.wordpress()).await?;
        if begun.is_none() && !is_available(&mysql) {
            return Ok(Progress::DatabaseStarting);
        }
        bring(ctx, "PVC", children.claim).await?;
        bring(ctx, "Service", children.service).await?;
        let wordpress = bring(ctx, "Deployment", children.wordpress).await?;
        Ok(match (is_available(&mysql), is_available(&wordpress)) {
            (false, _) => Progress::DatabaseStarting,
            (true, false) => Progress::SiteStarting,
            (true, true) => Progress::Open,
        })
    }

    /// The password, or why it is not known.
    async fn password(
        &self,
        site: &Wordpress,
        ctx: &Context,
    ) -> Result<Result<Password, String>, Error> {
        let key = ObjectKey::of(&site.metadata);
        let Some(from) = &site.spec.sql_root_password_secret_ref else {
            self.references.set(&key, None);
            let missing = "spec.sqlRootPasswordSecretRef: is not set: say where the password is";
            let plain = site.spec.sqlrootpassword.clone().map(Password::Plain);
            return Ok(plain.ok_or_else(|| missing.to_owned()));
        };
        let SecretKey { name, key: field } = from;
        // Before it is read, so that no change of it is missed.
        self.references.set(&key, Some(ObjectKey::new(key.namespace(), name)));
        let secret = ctx.get::<Secret>(None, name).await?;
        let Some(secret) = secret else {
            let why = format!("spec.sqlRootPasswordSecretRef.name: there is no Secret {name:?}");
            return Ok(Err(why));
        };
        let value = secret.data.as_ref().and_then(|data| data.get(field));
        Ok(match value {
            Some(value) => Ok(Password::Secret { from: from.clone(), value: value.0.clone() }),
            None => Err(format!(
                "spec.sqlRootPasswordSecretRef.key: the Secret {name:?} has no key {field:?}"
            )),
        })
    }
}

impl Reconciler<Wordpress> for Publisher {
    async fn reconcile(&self, site: &mut Wordpress, ctx: &Context) -> Result<Action, Error> {
        info!("Reconciling Wordpress");
        let published = self.publish(site, ctx).await;
        let (is_ready, reason, message) = match &published {
            Ok(Progress::NoPassword(why)) => {
                ctx.event(Event::warning("NoPassword", &**why));
                (false, "NoPassword", &**why)
            }
            Ok(Progress::DatabaseStarting) => {
                (false, "DatabaseStarting", "MySQL is not available yet")
            }
            Ok(Progress::SiteStarting) => (false, "SiteStarting", "the site is not available yet"),
            Ok(Progress::Open) => (true, "Open", "the site can be visited"),
            Err(error) => {
                ctx.event(Event::warning("Incomplete", error.to_string()));
                // The same however often it is tried, so that it is written once.
                let message = "not all could be made; events say why, and it is tried again";
                (false, "Incomplete", message)
            }
        };
        let condition = ctx.condition(READY, is_ready, reason, message);
        site.status.get_or_insert_default().conditions.set(condition);
        published.map(|_| Action::Done)
    }

    fn gone(&self, key: &ObjectKey) {
        self.references.set(key, None);
    }
}

/// What the parts of a site are called, in its namespace as it is.
async fn names(site: &Wordpress, ctx: &Context) -> Result<Names, Error> {
    let namespace = site.namespace();
    let claims = ctx.list::<PersistentVolumeClaim>().await?;
    let sites = ctx.list::<Wordpress>().await?;
    let claims = claims.iter().map(AsRef::as_ref).filter(|it| it.namespace() == namespace);
    let sites = sites.iter().map(AsRef::as_ref).filter(|it| it.namespace() == namespace);
    Ok(Names::of(site, claims, sites))
}

/// Sees to it that a part is there as it should be.
async fn bring<T: Kind>(
    ctx: &Context,
    what: &str,
    part: T,
) -> Result<std::sync::Arc<T>, WriteError> {
    let name = part.meta().name.clone().unwrap_or_default();
    if ctx.get::<T>(None, &name).await?.is_none() {
        info!(name, "Creating a new {what}");
    }
    ctx.apply(part).await
}
