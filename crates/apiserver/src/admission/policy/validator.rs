//! A ValidatingAdmissionPolicy that is compiled, and what it says of a request.

use std::time::{Duration, Instant};

use kubewright_apimachinery::cel::{Named, Val};
use kubewright_apimachinery::status::Reason;
use serde_json::Value;

use super::source;
use crate::admission::expression::conditions::{Conditions, Matched};
use crate::admission::expression::{Budget, Compiled, Environment, OutOfBudget, Subject, Wants};
use crate::admission::{items, text};
use crate::metrics::{Metrics, PolicyFailure};

/// How long a message may be that an expression makes.
const MESSAGE_BYTES_MAX: usize = 5 << 10;

pub(super) struct Validator {
    conditions: Conditions,
    variables: Vec<Named>,
    validations: Vec<Validation>,
    annotations: Vec<(String, Compiled)>,
}

struct Validation {
    expression: Compiled,
    text: String,
    message: String,
    message_expression: Option<Compiled>,
    reason: Reason,
}

/// What a policy says of a request, with one parameter.
#[derive(Default)]
pub(super) struct Judged {
    /// For each expression, in their order.
    pub(super) decisions: Vec<Decision>,
    pub(super) annotations: Vec<Annotation>,
}

/// What an expression decides.
pub(super) struct Decision {
    /// Why the request may not be.
    pub(super) denial: Option<(String, Reason)>,
    /// As what it is counted, if it is not that the expression holds.
    pub(super) failure: Option<PolicyFailure>,
    pub(super) elapsed: Duration,
}

/// What an expression for the audit log came to.
pub(super) enum Annotation {
    Publish { key: String, text: String },
    Fail { message: String, elapsed: Duration },
}

impl Validator {
    /// Compiles the spec of the policy of that name.
    pub(super) fn compile(name: &str, spec: &Value) -> Self {
        let mut environment = Environment::new(spec["paramKind"].is_object()).with_variables();
        let variables = source::variables(spec, &mut environment);
        let plain = environment.without_authorizer();
        let validation = |validation: &Value| Validation {
            expression: Compiled::new(text(&validation["expression"]), Wants::Bool, &environment),
            text: text(&validation["expression"]).trim().to_owned(),
            message: text(&validation["message"]).trim().to_owned(),
            message_expression: Some(text(&validation["messageExpression"]))
                .filter(|text| !text.is_empty())
                .map(|text| Compiled::new(text, Wants::Text, &plain)),
            reason: match text(&validation["reason"]) {
                "Forbidden" => Reason::Forbidden,
                "Unauthorized" => Reason::Unauthorized,
                "RequestEntityTooLarge" => Reason::RequestEntityTooLarge,
                _ => Reason::Invalid,
            },
        };
        let annotation = |annotation: &Value| {
            let expression = text(&annotation["valueExpression"]);
            let compiled = Compiled::new(expression, Wants::TextOrNull, &environment);
            (text(&annotation["key"]).to_owned(), compiled)
        };
        Validator {
            conditions: Conditions::compile(
                source::owner(name),
                &spec["matchConditions"],
                &environment,
            ),
            validations: items(&spec["validations"]).iter().map(validation).collect(),
            annotations: items(&spec["auditAnnotations"]).iter().map(annotation).collect(),
            variables,
        }
    }

    /// Judges a request. What fails counts as a denial, unless the policy `fails_open`.
    pub(super) fn judge(
        &self,
        subject: &Subject<'_>,
        fails_open: bool,
        metrics: &Metrics,
    ) -> Judged {
        let failed = |message: String| Judged {
            decisions: vec![Decision::failed(message, fails_open, Duration::ZERO)],
            ..Judged::default()
        };
        match self.conditions.matched(subject, &self.variables, metrics) {
            Ok(Matched::Yes) => {}
            Ok(Matched::No(_)) => return Judged::default(),
            Err(_) if fails_open => return Judged::default(),
            Err(message) => return failed(message),
        }
        let decisions = match self.decide(subject, fails_open) {
            Ok(decisions) => decisions,
            Err(out_of_budget) => return failed(out_of_budget.to_string()),
        };
        match self.annotate(subject, fails_open) {
            Ok(annotations) => Judged { decisions, annotations },
            Err(out_of_budget) => failed(out_of_budget.to_string()),
        }
    }

    fn decide(
        &self,
        subject: &Subject<'_>,
        fails_open: bool,
    ) -> Result<Vec<Decision>, OutOfBudget> {
        let mut budget = Budget::POLICY;
        let mut composition = subject.compose(&self.variables);
        let mut results = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            let begun = Instant::now();
            let result = validation.expression.run(&mut composition, &mut budget)?;
            results.push((result, begun.elapsed()));
        }
        let messages = self.messages(subject, budget);
        let decisions = self.validations.iter().zip(results).enumerate();
        let decide = |(index, (validation, (result, elapsed))): (usize, (&Validation, _))| {
            let failed = |message| Decision::failed(message, fails_open, elapsed);
            let messages = match (&result, &messages) {
                (Err(failure), _) => return failed(String::clone(failure)),
                (_, Err(why)) => return failed(format!("failed messageExpression: {why}")),
                (_, Ok(messages)) => messages,
            };
            let denial = match result {
                Ok(Val::Bool(true)) => None,
                _ => {
                    let message = validation.explain(messages[index].as_deref());
                    Some((message, validation.reason.clone()))
                }
            };
            // Upstream takes every denial for a failure.
            let failure = denial.as_ref().map(|(message, _)| PolicyFailure::of(message));
            Decision { denial, failure, elapsed }
        };
        Ok(decisions.map(decide).collect())
    }

    /// What the expressions for messages say; nothing where they fail.
    fn messages(
        &self,
        subject: &Subject<'_>,
        mut budget: Budget,
    ) -> Result<Vec<Option<String>>, OutOfBudget> {
        let mut composition = subject.compose_without_authorizer(&self.variables);
        let mut messages = Vec::with_capacity(self.validations.len());
        for validation in &self.validations {
            messages.push(match &validation.message_expression {
                None => None,
                Some(expression) => match expression.run(&mut composition, &mut budget)? {
                    Ok(Val::String(text)) => Some(text.trim().to_owned()),
                    _ => None,
                },
            });
        }
        Ok(messages)
    }

    fn annotate(
        &self,
        subject: &Subject<'_>,
        fails_open: bool,
    ) -> Result<Vec<Annotation>, OutOfBudget> {
        let mut budget = Budget::POLICY;
        let mut composition = subject.compose_without_authorizer(&self.variables);
        let mut annotations = Vec::new();
        for (key, expression) in &self.annotations {
            let begun = Instant::now();
            match expression.run(&mut composition, &mut budget)? {
                Ok(Val::String(text)) if !text.trim().is_empty() => {
                    let text = text.trim().to_owned();
                    annotations.push(Annotation::Publish { key: key.clone(), text });
                }
                Err(message) if !fails_open => {
                    annotations.push(Annotation::Fail { message, elapsed: begun.elapsed() });
                }
                _ => {}
            }
        }
        Ok(annotations)
    }
}

impl Validation {
    /// Why a request is denied: what the expression for messages says, if that is fit to be told,
    /// or else what is written, or else what was asked.
    fn explain(&self, message: Option<&str>) -> String {
        let is_fit = |message: &&str| {
            !message.is_empty() && message.len() <= MESSAGE_BYTES_MAX && !message.contains('\n')
        };
        match message.filter(is_fit) {
            Some(message) => message.to_owned(),
            None if !self.message.is_empty() => self.message.clone(),
            None => format!("failed expression: {}", self.text),
        }
    }
}

impl Decision {
    fn failed(message: String, fails_open: bool, elapsed: Duration) -> Self {
        let failure = Some(PolicyFailure::of(&message));
        let denial = (!fails_open).then_some((message, Reason::Invalid));
        Decision { denial, failure, elapsed }
    }
}
