//! What policies say of an object, and what becomes of it.

use kubewright_apimachinery::json;
use kubewright_apimachinery::status::Reason;
use serde_json::{Value, json};

use super::source::{Binding, Hook};
use super::validator::{Annotation, Decision, Validator};
use super::{Denial, Policies, add_cause, is_exempt};
use crate::admission::expression::{Asker, NOTHING, Subject};
use crate::admission::shown::Shown;
use crate::admission::{Attributes, Plugin};
use crate::metrics::{Enforcement, PolicyCheck, PolicyFailure};
use crate::refusal::Refusal;

/// How long an annotation of the audit log may be.
const ANNOTATION_BYTES_MAX: usize = 10 << 10;

impl Policies {
    /// Lets policies judge an object, of which there is none on deletes.
    pub(in crate::admission) async fn judge(
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
            // Boxed, so that requests without policies do not carry it along.
            Box::pin(self.judge_by(hook, attributes, object, &mut denials)).await?;
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
        let mut shown = None;
        let mut annotations: Vec<(String, Vec<String>)> = Vec::new();
        for binding in &hook.bindings {
            let found = self.params_of(policy, binding, attributes, object).await;
            let Some(params) = policy.settle(found, Some(binding), denials) else { continue };
            if params.is_empty() {
                continue;
            }
            let shown = match &shown {
                Some(shown) => shown,
                None => {
                    let made = Shown::new(attributes, object, &aspect.gvk).await;
                    let made =
                        made.map_err(|why| format!("failed to convert object version: {why}"));
                    let Some(made) = policy.settle(made, Some(binding), denials) else { continue };
                    shown.insert(made)
                }
            };
            let namespace = self.namespace(attributes)?;
            for param in &params {
                let subject = Subject {
                    object: shown.object(),
                    old: shown.old(),
                    request: &request,
                    namespace: &namespace,
                    params: param.as_ref().unwrap_or(&NOTHING),
                    asker: &asker,
                };
                let judged = policy.evaluator.judge(&subject, policy.fails_open, &self.metrics);
                for (index, Decision { denial, failure, elapsed }) in
                    judged.decisions.into_iter().enumerate()
                {
                    let count = |enforcement: Enforcement| {
                        let (policy, binding) = (policy.name.as_str(), binding.name.as_str());
                        let check = PolicyCheck { policy, binding, failure, elapsed };
                        self.metrics.judged_by_policy(&check, enforcement);
                    };
                    match denial {
                        None if failure.is_some() => count(Enforcement::Allow),
                        None => {}
                        Some((message, reason)) => {
                            let denied =
                                Denial { reason, ..Denial::new(policy, Some(binding), message) };
                            binding.act(attributes, index, denied, denials, count);
                        }
                    }
                }
                for annotation in judged.annotations {
                    match annotation {
                        Annotation::Publish { key, text } => collect(&mut annotations, key, text),
                        Annotation::Fail { message, elapsed } => {
                            let check = PolicyCheck {
                                policy: &policy.name,
                                binding: &binding.name,
                                failure: Some(PolicyFailure::of(&message)),
                                elapsed,
                            };
                            self.metrics.judged_by_policy(&check, Enforcement::Deny);
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
}

impl Binding {
    /// Does what the binding wants to be done when an expression does not hold.
    fn act(
        &self,
        attributes: &Attributes<'_>,
        index: usize,
        denial: Denial,
        denials: &mut Vec<Denial>,
        count: impl Fn(Enforcement),
    ) {
        let Denial { policy, message, .. } = &denial;
        for action in &self.actions {
            match action.as_str() {
                "Deny" => count(Enforcement::Deny),
                "Warn" => {
                    count(Enforcement::Warn);
                    attributes.warnings.add(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{policy}' with binding \
                         '{}': {message}",
                        self.name
                    ));
                }
                _ => {
                    count(Enforcement::Audit);
                    let key = "validation.policy.admission.k8s.io/validation_failure";
                    attributes.warnings.annotate(key.to_owned(), || {
                        json::to_string(&json!([{
                            "message": message,
                            "policy": policy,
                            "binding": self.name,
                            "expressionIndex": index,
                            "validationActions": self.actions,
                        }]))
                    });
                }
            }
        }
        if self.actions.iter().any(|action| action == "Deny") {
            denials.push(denial);
        }
    }
}

impl Denial {
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
