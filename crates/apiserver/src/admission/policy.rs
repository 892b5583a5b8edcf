//! ValidatingAdmissionPolicy and MutatingAdmissionPolicy: expressions that say whether a request
//! may be, and what is to be changed in its object.
//!
//! A policy has a say where a binding lets it: both must be about the request ([`criteria`]), and
//! the binding chooses parameters ([`params`]), with each of which the policy is asked once. What
//! is stored is compiled when it changes ([`source`]); while no binding is stored, a request costs
//! a look at the store.

mod criteria;
mod mutator;
mod params;
mod seen;
mod source;
mod validator;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::sync::Arc;

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::{Cause, Reason, Status};
use serde_json::{Value, json};

use self::criteria::Aspect;
use self::mutator::{Mutator, Unchanged};
use self::seen::Seen;
use self::source::{Binding, Hook, Policy, Source};
use self::validator::{Annotation, Decision, Validator};
use super::expression::{Asker, NOTHING, Subject, request};
use super::{Attributes, Plugin, PluginSet};
use crate::authz::Authorizer;
use crate::crd::Shelf;
use crate::index::{self, Store};
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

/// How long an annotation of the audit log may be.
const ANNOTATION_BYTES_MAX: usize = 10 << 10;

/// Asks policies.
pub(super) struct Policies {
    store: Store,
    shelf: Arc<Shelf>,
    authorizer: Arc<Authorizer>,
    enabled: PluginSet,
    validating: Source<Validator>,
    mutating: Source<Mutator>,
}

/// What is remembered from one round of changing an object to the next, of which there is at most
/// one.
#[derive(Default)]
pub(super) struct Rounds {
    is_second: bool,
    /// What policies left in the first round.
    left: Option<Value>,
    /// Who wants to be asked again if somebody changes the object afterwards.
    asked: HashSet<Invocation>,
    /// Who is to be asked again.
    again: HashSet<Invocation>,
}

/// A policy, a binding, and a parameter, by their names.
type Invocation = (String, String, Option<(String, String)>);

/// Why a policy does not let a request pass.
struct Denial {
    policy: String,
    /// None when it is not the binding's doing.
    binding: Option<String>,
    message: String,
    reason: Reason,
}

impl Policies {
    pub(super) fn new(
        store: Store,
        shelf: Arc<Shelf>,
        authorizer: Arc<Authorizer>,
        enabled: PluginSet,
    ) -> Self {
        Policies {
            store,
            shelf,
            authorizer,
            enabled,
            validating: Source::new("validating", Validator::compile),
            mutating: Source::new("mutating", Mutator::compile),
        }
    }

    /// Lets policies judge an object, of which there is none on deletes.
    pub(super) async fn judge(
        &self,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
    ) -> Result<(), Refusal> {
        if !self.enabled.has(Plugin::ValidatingAdmissionPolicy) {
            return Ok(());
        }
        let hooks = self.validating.hooks(&self.store);
        if hooks.is_empty() || is_exempt(attributes) {
            return Ok(());
        }
        let mut denials = Vec::new();
        for hook in hooks.iter() {
            self.judge_by(hook, attributes, object, &mut denials).await?;
        }
        match denials.into_iter().next() {
            None => Ok(()),
            Some(denial) => Err(denial.to_refusal(attributes, object)),
        }
    }

    /// Lets one policy judge the object, as all its bindings want it.
    async fn judge_by(
        &self,
        hook: &Hook<Validator>,
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        denials: &mut Vec<Denial>,
    ) -> Result<(), Refusal> {
        let policy = &*hook.policy;
        let Some(aspect) = self.aspect(policy, attributes, object, denials) else { return Ok(()) };
        let asker = Asker::new(&self.authorizer, attributes);
        let request = self.describe(attributes, &aspect);
        let mut seen = None;
        let mut annotations: Vec<(String, Vec<String>)> = Vec::new();
        for binding in &hook.bindings {
            let found = self.params_of(policy, binding, attributes, object);
            let Some(params) = policy.settle(found, Some(binding), denials) else { continue };
            if params.is_empty() {
                continue;
            }
            if seen.is_none() {
                let shown = Seen::new(attributes, object, &aspect.gvk).await;
                let shown = shown.map_err(|why| format!("failed to convert object version: {why}"));
                let Some(shown) = policy.settle(shown, Some(binding), denials) else { continue };
                seen = Some(shown);
            }
            let Some(seen) = &seen else { continue };
            let namespace = self.namespace(attributes)?;
            for param in &params {
                let subject = Subject {
                    object: seen.object(),
                    old: seen.old(),
                    request: &request,
                    namespace: &namespace,
                    params: param.as_ref().unwrap_or(&NOTHING),
                    asker: &asker,
                };
                let judged = policy.evaluator.judge(&subject, policy.fails_open);
                for (index, decision) in judged.decisions.into_iter().enumerate() {
                    let Decision::Deny { message, reason } = decision else { continue };
                    binding.act(attributes, policy, index, message, reason, denials);
                }
                for annotation in judged.annotations {
                    match annotation {
                        Annotation::Publish { key, text } => collect(&mut annotations, key, text),
                        Annotation::Fail(message) => {
                            denials.push(Denial::new(policy, Some(binding), message));
                        }
                    }
                }
            }
        }
        for (key, texts) in annotations {
            let key = format!("{}/{key}", policy.name);
            attributes.warnings.annotate(key, || texts.join(", "));
        }
        Ok(())
    }

    /// Lets policies change an object. Tells whether any did.
    pub(super) async fn mutate(
        &self,
        attributes: &Attributes<'_>,
        object: &mut Value,
        rounds: &mut Rounds,
    ) -> Result<bool, Refusal> {
        if !self.enabled.has(Plugin::MutatingAdmissionPolicy) {
            return Ok(false);
        }
        let hooks = self.mutating.hooks(&self.store);
        if hooks.is_empty() || is_exempt(attributes) {
            return Ok(false);
        }
        if rounds.is_second && rounds.left.as_ref() != Some(&*object) {
            rounds.ask_again();
        }
        let mut denials = Vec::new();
        let mut versions: Vec<Seen> = Vec::new();
        let mut last = None;
        let mut changed = false;
        for hook in hooks.iter() {
            let policy = &*hook.policy;
            let found = self.aspect(policy, attributes, Some(object), &mut denials);
            let Some(aspect) = found else { continue };
            let request = self.describe(attributes, &aspect);
            let asker = Asker::new(&self.authorizer, attributes);
            for binding in &hook.bindings {
                let found = self.params_of(policy, binding, attributes, Some(object));
                let found = policy.settle(found, Some(binding), &mut denials);
                let Some(params) = found.filter(|params| !params.is_empty()) else { continue };
                let at = match versions.iter().position(|seen| seen.gvk == aspect.gvk) {
                    Some(at) => at,
                    None => {
                        let shown = Seen::new(attributes, Some(object), &aspect.gvk).await;
                        let shown = shown.map_err(|why| why.message.clone());
                        match policy.settle(shown, None, &mut denials) {
                            Some(shown) => versions.push(shown),
                            None => continue,
                        }
                        versions.len() - 1
                    }
                };
                let namespace = self.namespace(attributes)?;
                for param in &params {
                    let invocation = invocation(policy, binding, param.as_ref());
                    let is_again = !rounds.is_second || rounds.again.contains(&invocation);
                    let before = versions[at].object.clone();
                    let subject = Subject {
                        object: &before,
                        old: versions[at].old(),
                        request: &request,
                        namespace: &namespace,
                        params: param.as_ref().unwrap_or(&NOTHING),
                        asker: &asker,
                    };
                    match policy.evaluator.is_met(&subject, policy.fails_open) {
                        Ok(true) if is_again => {}
                        Ok(_) => continue,
                        Err(message) => {
                            denials.push(Denial::new(policy, Some(binding), message));
                            continue;
                        }
                    }
                    let mut patched = before.clone();
                    let mutated = policy.evaluator.change(
                        &subject,
                        attributes.resource,
                        &aspect,
                        &mut patched,
                    );
                    for unchanged in mutated {
                        match unchanged {
                            Unchanged::Refused(refusal) => return Err(refusal),
                            Unchanged::Failed(_) if policy.fails_open => {}
                            Unchanged::Failed(message) => {
                                denials.push(Denial::new(policy, Some(binding), message));
                            }
                        }
                    }
                    last = Some(at);
                    if patched != before {
                        changed = true;
                        rounds.ask_again();
                        versions[at].object = patched;
                        versions[at].is_patched = true;
                    }
                    if policy.evaluator.is_reinvocable {
                        rounds.asked.insert(invocation);
                    }
                }
            }
        }
        if let Some(seen) = last.map(|at| &versions[at]).filter(|seen| seen.is_patched) {
            *object = seen.in_version_of(attributes, object).await?;
        }
        rounds.left = Some(object.clone());
        rounds.is_second = true;
        match denials.is_empty() {
            true => Ok(changed),
            false => Err(deny_changes(attributes, object, &denials)),
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
    fn params_of<E>(
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
        let found = params::find(&self.store, &self.shelf.catalog(), kind, wanted, namespace)?;
        Ok(found.into_iter().map(Some).collect())
    }

    fn describe(&self, attributes: &Attributes<'_>, aspect: &Aspect) -> Value {
        request::describe(attributes, &aspect.gvr, &aspect.gvk, None)
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
            Some(namespace) => Ok(seen::namespace(namespace)),
            None => Err(Box::new(Status::not_found(&GroupResource::new("", "namespaces"), name))),
        }
    }
}

impl Rounds {
    fn ask_again(&mut self) {
        self.again.extend(self.asked.drain());
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
            denials.push(Denial::new(self, binding, format!("failed to configure {what}: {why}")));
        }
        None
    }
}

impl Binding {
    /// Does what the binding wants to be done when an expression does not hold.
    fn act(
        &self,
        attributes: &Attributes<'_>,
        policy: &Policy<Validator>,
        index: usize,
        message: String,
        reason: Reason,
        denials: &mut Vec<Denial>,
    ) {
        for action in &self.actions {
            match action.as_str() {
                "Deny" => denials.push(Denial {
                    reason: reason.clone(),
                    ..Denial::new(policy, Some(self), message.clone())
                }),
                "Warn" => attributes.warnings.add(format!(
                    "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': \
                     {message}",
                    policy.name, self.name
                )),
                _ => {
                    let key = "validation.policy.admission.k8s.io/validation_failure";
                    attributes.warnings.annotate(key.to_owned(), || {
                        json::to_string(&json!([{
                            "message": message,
                            "policy": policy.name,
                            "binding": self.name,
                            "expressionIndex": index,
                            "validationActions": self.actions,
                        }]))
                    });
                }
            }
        }
    }
}

impl Denial {
    fn new<E>(policy: &Policy<E>, binding: Option<&Binding>, message: String) -> Self {
        Denial {
            policy: policy.name.clone(),
            binding: binding.map(|binding| binding.name.clone()),
            message,
            reason: Reason::Invalid,
        }
    }

    /// What the client is told of a policy that judges.
    fn to_refusal(&self, attributes: &Attributes<'_>, object: Option<&Value>) -> Refusal {
        let who = match &self.binding {
            Some(binding) => format!("'{}' with binding '{binding}'", self.policy),
            None => format!("'{}'", self.policy),
        };
        let message = format!("ValidatingAdmissionPolicy {who} denied request: {}", self.message);
        let mut status = attributes.forbid(object, &message);
        status.code = match self.reason {
            Reason::Forbidden => 403,
            Reason::RequestEntityTooLarge => 413,
            _ => 422,
        };
        status.reason = self.reason.clone();
        add_cause(&mut status, message);
        status
    }
}

/// What the client is told of policies that could not change the object.
fn deny_changes(attributes: &Attributes<'_>, object: &Value, denials: &[Denial]) -> Refusal {
    let mut status = attributes.forbid(Some(object), "");
    let messages = denials.iter().map(|Denial { policy, binding, message, .. }| match binding {
        Some(binding) => {
            format!("policy '{policy}' with binding '{binding}' denied request: {message}")
        }
        None => format!("policy {policy:?} denied request: {message}"),
    });
    for (index, message) in messages.enumerate() {
        if index == 0 {
            status.message = message.clone();
            if denials[0].binding.is_some()
                && !denials[0].message.starts_with("failed to configure")
            {
                status.reason = denials[0].reason.clone();
            }
        }
        add_cause(&mut status, message);
    }
    status
}

fn add_cause(status: &mut Status, message: String) {
    let details = status.details.get_or_insert_default();
    details.causes.push(Cause { message, ..Cause::default() });
}

/// Keeps what expressions want to be noted, each text once.
fn collect(annotations: &mut Vec<(String, Vec<String>)>, key: String, mut text: String) {
    if text.len() > ANNOTATION_BYTES_MAX {
        let end = (0..=ANNOTATION_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
    match annotations.iter_mut().find(|(known, _)| *known == key) {
        Some((_, texts)) if texts.contains(&text) => {}
        Some((_, texts)) => texts.push(text),
        None => annotations.push((key, vec![text])),
    }
}

fn invocation<E>(policy: &Policy<E>, binding: &Binding, param: Option<&Value>) -> Invocation {
    let text = |param: &Value, field: &str| crate::meta::text(param, field).to_owned();
    let param = param.map(|param| (text(param, "namespace"), text(param, "name")));
    (policy.name.clone(), binding.name.clone(), param)
}

fn is_exempt(attributes: &Attributes<'_>) -> bool {
    let gvr = &attributes.resource.gvr;
    EXEMPT.contains(&(gvr.group.as_str(), gvr.resource.as_str()))
}
