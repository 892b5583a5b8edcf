//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: expressions that say whether a request
//! may be, and what is to be changed in its object.
//!
//! A policy has a say where a binding lets it: both must be about the request ([`criteria`]), and
//! the binding chooses parameters ([`params`]), with each of which the policy is asked once. What
//! is stored is compiled when it changes ([`source`]); while no binding is stored, a request costs
//! a look at the store.

mod changing;
mod judging;
mod mutator;
mod params;
mod permission;
mod source;
mod validator;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::status::{Cause, Reason, Status};
use serde_json::{Value, json};

pub(super) use self::changing::Rounds;
use self::mutator::Mutator;
use self::source::{Binding, Policy, Source};
use self::validator::Validator;
use super::criteria::Aspect;
use super::expression::request;
use super::{Attributes, PluginSet};
use crate::authz::Authorizer;
use crate::crd::Shelf;
use crate::index::{self, Store};
use crate::metrics::Metrics;
use crate::refusal::Refusal;

/// Policies themselves, and questions that must be answered for the cluster to work, are nobody's
/// to hold up.
const EXEMPT: [(&str, &str); 10] = [
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
    ("authentication.k8s.io", "selfsubjectreviews"),
    ("authentication.k8s.io", "tokenreviews"),
    ("authorization.k8s.io", "localsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectaccessreviews"),
    ("authorization.k8s.io", "selfsubjectrulesreviews"),
    ("authorization.k8s.io", "subjectaccessreviews"),
];

/// Asks policies.
pub(super) struct Policies {
    store: Store,
    shelf: Arc<Shelf>,
    authorizer: Arc<Authorizer>,
    enabled: PluginSet,
    metrics: Arc<Metrics>,
    validating: Source<Validator>,
    mutating: Source<Mutator>,
}

/// Why a policy does not let a request pass.
struct Denial {
    policy: String,
    /// None when it is not the binding's doing.
    binding: Option<String>,
    message: String,
    reason: Reason,
    /// The policy was not even asked.
    is_configuration: bool,
}

impl Policies {
    pub(super) fn new(
        store: Store,
        shelf: Arc<Shelf>,
        authorizer: Arc<Authorizer>,
        enabled: PluginSet,
        metrics: Arc<Metrics>,
    ) -> Self {
        Policies {
            store,
            shelf,
            authorizer,
            enabled,
            metrics,
            validating: Source::new("validating", Validator::compile),
            mutating: Source::new("mutating", Mutator::compile),
        }
    }

    /// As what a policy sees a request, if it is about it.
    fn aspect<E>(
        &self,
        policy: &Policy<E>,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        denials: &mut Vec<Denial>,
    ) -> Option<Aspect> {
        let aspect = policy.criteria.aspect(&self.store, attributes, object);
        let aspect = aspect.map_err(|refusal| refusal.message.clone());
        let aspect = policy.settle(aspect, None, denials)??;
        let resource = match &policy.param_kind {
            None => Ok(None),
            Some(kind) => params::resource(&self.shelf.catalog(), kind).map(Some),
        };
        policy.settle(resource, None, denials)?;
        Some(aspect)
    }

    /// The parameters that a binding wants its policy to be asked with; none if it is not about
    /// the request.
    async fn params_of<E>(
        &self,
        policy: &Policy<E>,
        binding: &Binding,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<Vec<Option<Value>>, String> {
        if let Some(criteria) = &binding.criteria {
            let aspect = criteria.aspect(&self.store, attributes, object);
            if aspect.map_err(|refusal| refusal.message.clone())?.is_none() {
                return Ok(Vec::new());
            }
        }
        let (Some(kind), Some(wanted)) = (&policy.param_kind, &binding.params) else {
            return Ok(vec![None]);
        };
        let namespace = attributes.namespace.unwrap_or_default();
        let catalog = self.shelf.catalog();
        let found = params::find(&self.store, &catalog, kind, wanted, namespace).await?;
        Ok(found.into_iter().map(Some).collect())
    }

    fn describe(&self, attributes: &Attributes<'_>, aspect: &Aspect) -> Value {
        let options = attributes.options.tree(attributes.operation);
        request::describe(attributes, &aspect.gvr, &aspect.gvk, Some(&options))
    }

    /// The namespace of a request as expressions see it.
    fn namespace(&self, attributes: &Attributes<'_>) -> Result<Value, Refusal> {
        let gvk = &attributes.resource.gvk;
        let is_namespace = gvk.group.is_empty() && gvk.version == "v1" && gvk.kind == "Namespace";
        let Some(name) = attributes.namespace.filter(|_| !is_namespace) else {
            return Ok(Value::Null);
        };
        let found = self.store.get(&format!("/registry/namespaces/{name}"));
        match found.and_then(|rev| index::object(&rev)) {
            Some(namespace) => Ok(visible(namespace)),
            None => Err(Box::new(Status::not_found(&GroupResource::new("", "namespaces"), name))),
        }
    }
}

impl<E> Policy<E> {
    /// What was looked for, unless looking failed. Then the failure policy decides whether
    /// somebody hears of it.
    fn settle<T>(
        &self,
        found: Result<T, impl ToString>,
        binding: Option<&Binding>,
        denials: &mut Vec<Denial>,
    ) -> Option<T> {
        let why = match found {
            Ok(found) => return Some(found),
            Err(why) => why.to_string(),
        };
        if !self.fails_open {
            let what = if binding.is_some() { "binding" } else { "policy" };
            let message = format!("failed to configure {what}: {why}");
            let denial = Denial::new(self, binding, message);
            denials.push(Denial { is_configuration: true, ..denial });
        }
        None
    }
}

impl Denial {
    fn new<E>(policy: &Policy<E>, binding: Option<&Binding>, message: String) -> Self {
        Denial {
            policy: policy.name.clone(),
            binding: binding.map(|binding| binding.name.clone()),
            message,
            reason: Reason::Invalid,
            is_configuration: false,
        }
    }
}

fn add_cause(status: &mut Status, message: String) {
    let details = status.details.get_or_insert_default();
    details.causes.push(Cause { message, ..Cause::default() });
}

fn is_exempt(attributes: &Attributes<'_>) -> bool {
    let gvr = &attributes.resource.gvr;
    EXEMPT.contains(&(gvr.group.as_str(), gvr.resource.as_str()))
}

/// What expressions may know of a namespace.
fn visible(mut namespace: Value) -> Value {
    let mut metadata = namespace["metadata"].take();
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.retain(|field, _| {
            !matches!(field.as_str(), "selfLink" | "ownerReferences" | "managedFields")
        });
    }
    let (spec, status) = (namespace["spec"].take(), namespace["status"].take());
    json!({ "metadata": metadata, "spec": spec, "status": status })
}
