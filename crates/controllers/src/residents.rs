//! Objects that every active namespace has: its default service account, and the certificate by
//! which its pods know the server.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, ServiceAccount};
use kube::Resource;
use kube::api::ObjectMeta;
use kubewright::context::{Kind, WriteError};
use kubewright::informer::Scope;
use kubewright::predicate::Predicate;
use kubewright::{Action, Context, Controller, Error, ObjectKey, Reconciler};

use crate::answer::Refusal as _;
use crate::part::text;
use crate::{names, part};

const AT_ONCE: usize = 8;

/// Sees to it that a service account `default` is in each namespace.
pub(crate) fn service_account() -> Controller<Namespace, Resident<ServiceAccount>> {
    controller(names::SERVICE_ACCOUNT, "default", Box::new(plan_service_account))
}

/// Sees to it that the certificate is in each namespace, unchanged.
pub(crate) fn root_ca(pem: &str) -> Controller<Namespace, Resident<ConfigMap>> {
    let pem = pem.to_owned();
    let plan = move |found: Option<&ConfigMap>| plan_root_ca(&pem, found);
    controller(names::ROOT_CA, ROOT_CA, Box::new(plan))
}

/// The controller of objects with a name in all namespaces. Of their kind it looks at no others.
fn controller<K>(
    controller: &str,
    name: &'static str,
    plan: Planner<K>,
) -> Controller<Namespace, Resident<K>>
where
    K: Kind + Resource<Scope = NamespaceResourceScope> + Clone,
{
    let named = Scope { fields: Some(format!("metadata.name={name}")), ..Scope::default() };
    part::controller(controller, Resident { name, plan })
        // A namespace that is there lacks nothing for being changed.
        .when(Predicate::new(|_, _| false))
        .watches_among(named, |object: &K| {
            vec![ObjectKey::new(None, text(&object.meta().namespace))]
        })
        .at_once(AT_ONCE)
}

const ROOT_CA: &str = "kube-root-ca.crt";
const CERTIFICATE: &str = "ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
     endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
     guaranteed across distributions of Kubernetes clusters.",
);

/// What to do in one namespace.
#[derive(Debug, PartialEq)]
enum Plan<K> {
    Keep,
    Create(K),
    Replace(K),
}

fn plan_service_account(found: Option<&ServiceAccount>) -> Plan<ServiceAccount> {
    match found {
        Some(_) => Plan::Keep,
        None => Plan::Create(ServiceAccount { metadata: named("default"), ..Default::default() }),
    }
}

fn plan_root_ca(pem: &str, found: Option<&ConfigMap>) -> Plan<ConfigMap> {
    let data = Some(BTreeMap::from([(CERTIFICATE.to_owned(), pem.to_owned())]));
    let (key, value) = DESCRIPTION;
    let Some(mut found) = found.cloned() else {
        let mut metadata = named(ROOT_CA);
        metadata.annotations = Some(BTreeMap::from([(key.to_owned(), value.to_owned())]));
        return Plan::Create(ConfigMap { metadata, data, ..Default::default() });
    };
    let annotations = found.metadata.annotations.get_or_insert_default();
    if found.data == data && annotations.get(key).is_some_and(|found| found == value) {
        return Plan::Keep;
    }
    annotations.insert(key.to_owned(), value.to_owned());
    found.data = data;
    Plan::Replace(found)
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }
}

type Planner<K> = Box<dyn Fn(Option<&K>) -> Plan<K> + Send + Sync>;

/// One such object.
pub(crate) struct Resident<K> {
    name: &'static str,
    plan: Planner<K>,
}

impl<K> Reconciler<Namespace> for Resident<K>
where
    K: Kind + Resource<Scope = NamespaceResourceScope> + Clone,
{
    async fn reconcile(&self, namespace: &mut Namespace, ctx: &Context) -> Result<Action, Error> {
        let home = namespace.metadata.name.as_deref();
        let found = ctx.get::<K>(home, self.name).await?;
        let written = match ((self.plan)(found.as_deref()), found) {
            (Plan::Create(mut object), _) => {
                object.meta_mut().namespace = home.map(str::to_owned);
                ctx.create_unowned(object).await
            }
            (Plan::Replace(object), Some(found)) => {
                ctx.replace(found.as_ref(), |found| *found = object).await
            }
            _ => return Ok(Action::Done),
        };
        match written {
            // The namespace is going, or somebody was faster.
            Err(WriteError::Refused { source, .. })
                if source.is_terminating() || source.is_absent() || source.already_exists() =>
            {
                Ok(Action::Done)
            }
            Err(WriteError::Refused { source, .. }) if source.is_conflict() => Ok(Action::Requeue),
            written => Ok(written.map(|_| Action::Done)?),
        }
    }
}
