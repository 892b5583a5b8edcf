//! Which AcmeNamespaces are taken.
//!
//! What an object can be judged by alone is in its schema, and holds also while this is away. Here
//! is what others must be asked for.

use k8s_openapi::api::core::v1::Namespace;
use kube::api::Api;
use kubewright::Error;
use kubewright::webhook::{Cause, Denied, Review, Validator, Warnings};

use crate::kind::AcmeNamespace;
use crate::service::Service;
use crate::services::{OnFailure, Services};

/// Says which tier it is when nobody else has.
pub(crate) fn complete(acme: &mut AcmeNamespace, _: &Review) -> Result<(), Denied> {
    acme.spec.deployment_tier.get_or_insert_default();
    Ok(())
}

/// Asks the identity provider for administrators, and the cluster for namespaces.
pub(crate) struct Judge {
    users: Option<Service>,
    on_failure: OnFailure,
}

impl Judge {
    pub(crate) fn new(services: &Services) -> Self {
        let on_failure = services.identity_provider_failure;
        Judge { users: services.identity_provider(), on_failure }
    }

    /// Refuses an administrator who does not exist.
    async fn check_admin(&self, acme: &AcmeNamespace) -> Result<Warnings, Denied> {
        let (Some(users), admin) = (&self.users, &acme.spec.admin_username) else {
            return Ok(Warnings::new());
        };
        // The name has been through the schema, which takes nothing that a path could mind.
        match (users.has(&format!("/users/{admin}")).await, self.on_failure) {
            (Ok(true), _) => Ok(Warnings::new()),
            (Ok(false), _) => {
                let detail = "the identity provider knows no such user";
                Err(Denied::invalid([Cause::invalid("spec.adminUsername", &**admin, detail)]))
            }
            (Err(error), OnFailure::Accept) => {
                let why = Error::from(error);
                Ok(vec![format!("spec.adminUsername: not checked whether {admin} exists: {why}")])
            }
            (Err(error), OnFailure::Refuse) => {
                let why = Error::from(error);
                let message = format!(
                    "spec.adminUsername: nobody can say whether {admin} exists; try again later: \
                     {why}"
                );
                Err(Denied::new(message).with_code(503, "ServiceUnavailable"))
            }
        }
    }
}

impl Validator<AcmeNamespace> for Judge {
    async fn create(&self, acme: &AcmeNamespace, review: &Review) -> Result<Warnings, Denied> {
        let name = &acme.spec.namespace_name;
        let namespaces: Api<Namespace> = Api::all(review.client()?.clone());
        if namespaces.get_opt(name).await?.is_some() {
            let detail = "there is such a namespace already, and it is somebody else's";
            return Err(Denied::invalid([Cause::invalid("spec.namespaceName", &**name, detail)]));
        }
        self.check_admin(acme).await
    }

    async fn update(
        &self,
        old: &AcmeNamespace,
        new: &AcmeNamespace,
        _: &Review,
    ) -> Result<Warnings, Denied> {
        // Somebody who has left must not keep others from changing the rest, nor what is being
        // deleted from going.
        match old.spec.admin_username == new.spec.admin_username {
            true => Ok(Warnings::new()),
            false => self.check_admin(new).await,
        }
    }
}
