//! What policies make of an object.

use std::collections::HashSet;

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::status::Reason;
use serde_json::Value;

use super::mutator::{Mutator, Unchanged};
use super::source::{Binding, Hook, Policy};
use super::{Denial, Policies, add_cause, is_exempt};
use crate::admission::criteria::Aspect;
use crate::admission::expression::{Asker, NOTHING, Subject};
use crate::admission::shown::{self, Shown};
use crate::admission::{Attributes, Plugin};
use crate::meta;
use crate::metrics::{PolicyCheck, PolicyFailure};
use crate::refusal::Refusal;

/// What is remembered from one round of changing an object to the next, of which there is at most
/// one.
#[derive(Default)]
pub(in crate::admission) struct Rounds {
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

/// A round of changes to an object.
struct Round<'a> {
    policies: &'a Policies,
    attributes: &'a Attributes<'a>,
    /// The object as it was when the round began.
    object: &'a Value,
    rounds: &'a mut Rounds,
    /// The object in the versions in which policies have seen it, changed as they wanted.
    versions: Vec<Shown>,
    /// The version that was seen last.
    last: Option<usize>,
    is_changed: bool,
    denials: Vec<Denial>,
}

/// What all parameters of a binding have in common.
struct Case<'a> {
    policy: &'a Policy<Mutator>,
    binding: &'a Binding,
    aspect: &'a Aspect,
    request: &'a Value,
    namespace: &'a Value,
    asker: &'a Asker,
    /// Which version of the object the policy sees.
    version: usize,
}

impl Policies {
    /// Lets policies change an object. Tells whether any did.
    pub(in crate::admission) async fn mutate(
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
        let mut round = Round {
            policies: self,
            attributes,
            object: &*object,
            rounds: &mut *rounds,
            versions: Vec::new(),
            last: None,
            is_changed: false,
            denials: Vec::new(),
        };
        for hook in hooks.iter() {
            // Boxed, so that requests without policies do not carry it along.
            Box::pin(round.change_by(hook)).await?;
        }
        let Round { versions, last, is_changed, denials, .. } = round;
        if let Some(last) = last.map(|at| &versions[at]).filter(|last| last.is_patched) {
            let gvk = GroupVersionKind::interpret(&*object).unwrap_or_default();
            *object = Box::pin(shown::convert(attributes.resource, last.object(), &gvk)).await?;
        }
        rounds.left = Some(object.clone());
        rounds.is_second = true;
        match denials.is_empty() {
            true => Ok(is_changed),
            false => Err(deny(attributes, object, &denials)),
        }
    }
}

impl Round<'_> {
    /// Lets one policy change the object, as all its bindings want it.
    async fn change_by(&mut self, hook: &Hook<Mutator>) -> Result<(), Refusal> {
        let (policies, attributes) = (self.policies, self.attributes);
        let policy = &*hook.policy;
        let aspect = policies.aspect(policy, attributes, Some(self.object), &mut self.denials);
        let Some(aspect) = aspect else { return Ok(()) };
        let request = policies.describe(attributes, &aspect);
        let asker = Asker::new(&policies.authorizer, attributes);
        for binding in &hook.bindings {
            let found = policies.params_of(policy, binding, attributes, Some(self.object)).await;
            let found = policy.settle(found, Some(binding), &mut self.denials);
            let Some(params) = found.filter(|params| !params.is_empty()) else { continue };
            let Some(version) = self.show(policy, &aspect.gvk).await else { continue };
            let namespace = policies.namespace(attributes)?;
            let case = Case {
                policy,
                binding,
                aspect: &aspect,
                request: &request,
                namespace: &namespace,
                asker: &asker,
                version,
            };
            for param in &params {
                self.change(&case, param.as_ref())?;
            }
        }
        Ok(())
    }

    /// The place of the version that a policy sees.
    async fn show(&mut self, policy: &Policy<Mutator>, gvk: &GroupVersionKind) -> Option<usize> {
        if let Some(at) = self.versions.iter().position(|shown| shown.gvk == *gvk) {
            return Some(at);
        }
        let shown = Shown::new(self.attributes, Some(self.object), gvk).await;
        let shown = shown.map_err(|refusal| refusal.message.clone());
        self.versions.push(policy.settle(shown, None, &mut self.denials)?);
        Some(self.versions.len() - 1)
    }

    /// Lets a policy change the object once.
    fn change(&mut self, case: &Case<'_>, param: Option<&Value>) -> Result<(), Refusal> {
        let Case { policy, binding, .. } = *case;
        let metrics = &*self.policies.metrics;
        let shown = &self.versions[case.version];
        let subject = Subject {
            object: shown.object(),
            old: shown.old(),
            request: case.request,
            namespace: case.namespace,
            params: param.unwrap_or(&NOTHING),
            asker: case.asker,
        };
        match policy.evaluator.is_met(&subject, policy.fails_open, metrics) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(message) => {
                self.denials.push(Denial::new(policy, Some(binding), message));
                return Ok(());
            }
        }
        let invocation = invocation(policy, binding, param);
        if self.rounds.is_second && !self.rounds.again.contains(&invocation) {
            return Ok(());
        }
        let mut patched = shown.object().clone();
        let resource = self.attributes.resource;
        for attempt in policy.evaluator.change(&subject, resource, case.aspect, &mut patched) {
            metrics.changed_by_policy(&PolicyCheck {
                policy: &policy.name,
                binding: &binding.name,
                failure: attempt.changed.as_ref().err().map(Unchanged::failure),
                elapsed: attempt.elapsed,
            });
            match attempt.changed {
                Err(Unchanged::Refused(refusal)) => return Err(refusal),
                Err(Unchanged::Failed(message)) if !policy.fails_open => {
                    self.denials.push(Denial::new(policy, Some(binding), message));
                }
                Ok(()) | Err(Unchanged::Failed(_)) => {}
            }
        }
        self.last = Some(case.version);
        if patched != *shown.object() {
            self.is_changed = true;
            self.rounds.ask_again();
            let shown = &mut self.versions[case.version];
            (shown.object, shown.is_patched) = (Some(patched), true);
        }
        if policy.evaluator.is_reinvocable {
            self.rounds.asked.insert(invocation);
        }
        Ok(())
    }
}

impl Rounds {
    fn ask_again(&mut self) {
        self.again.extend(self.asked.drain());
    }
}

/// What the client is told of policies that could not change the object.
fn deny(attributes: &Attributes<'_>, object: &Value, denials: &[Denial]) -> Refusal {
    let mut status = attributes.forbid(Some(object), "");
    for (index, denial) in denials.iter().enumerate() {
        let Denial { policy, binding, message, .. } = denial;
        let message = match binding {
            Some(binding) => {
                format!("policy '{policy}' with binding '{binding}' denied request: {message}")
            }
            None => format!("policy {policy:?} denied request: {message}"),
        };
        if index == 0 {
            status.message.clone_from(&message);
            // What was not even asked has no reason of its own.
            if !denial.is_configuration {
                status.reason = Reason::Invalid;
            }
        }
        add_cause(&mut status, message);
    }
    status
}

fn invocation(policy: &Policy<Mutator>, binding: &Binding, param: Option<&Value>) -> Invocation {
    let text = |param: &Value, field: &str| meta::text(param, field).to_owned();
    let param = param.map(|param| (text(param, "namespace"), text(param, "name")));
    (policy.name.clone(), binding.name.clone(), param)
}

impl Unchanged {
    /// As what it is counted.
    fn failure(&self) -> PolicyFailure {
        match self {
            Unchanged::Failed(why) => PolicyFailure::of(why),
            Unchanged::Refused(refusal) => PolicyFailure::of(&refusal.message),
        }
    }
}
