//! A MutatingAdmissionPolicy that is compiled, and what it makes of an object.

use std::time::{Duration, Instant};

use kubewright_apimachinery::apply;
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::cel::{Large, Named, Val};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::patch::json as json_patch;
use kubewright_apimachinery::status::Status;
use serde_json::Value;

use super::source;
use crate::admission::criteria::Aspect;
use crate::admission::expression::conditions::{Conditions, Matched};
use crate::admission::expression::{Budget, Compiled, Environment, Subject, Wants};
use crate::admission::{items, shown, text};
use crate::draft::identity;
use crate::metrics::Metrics;
use crate::refusal::Refusal;
use crate::resource::{Origin, Resource};

pub(super) struct Mutator {
    conditions: Conditions,
    variables: Vec<Named>,
    mutations: Vec<Mutation>,
    /// Whether it wants to see the object again when somebody changes it afterwards.
    pub(super) is_reinvocable: bool,
}

enum Mutation {
    /// Part of what the object should look like is laid over it.
    Apply(Compiled),
    /// Steps are done to it.
    Patch(Compiled),
}

/// Why a change was not made.
pub(super) enum Unchanged {
    /// The failure policy decides what that means.
    Failed(String),
    Refused(Refusal),
}

/// One change to an object.
pub(super) struct Attempt {
    pub(super) changed: Result<(), Unchanged>,
    pub(super) elapsed: Duration,
}

impl Mutator {
    /// Compiles the spec of the policy of that name.
    pub(super) fn compile(name: &str, spec: &Value) -> Self {
        let mut environment = Environment::new(spec["paramKind"].is_object()).with_variables();
        let variables = source::variables(spec, &mut environment);
        let compile = |mutation: &Value, field: &str, wants| {
            Compiled::new(text(&mutation[field]["expression"]), wants, &environment)
        };
        let mutation = |mutation: &Value| match text(&mutation["patchType"]) {
            "JSONPatch" => Mutation::Patch(compile(mutation, "jsonPatch", Wants::Patch)),
            _ => Mutation::Apply(compile(mutation, "applyConfiguration", Wants::Object)),
        };
        Mutator {
            conditions: Conditions::compile(
                source::owner(name),
                &spec["matchConditions"],
                &environment,
            ),
            mutations: items(&spec["mutations"]).iter().map(mutation).collect(),
            is_reinvocable: spec["reinvocationPolicy"] == "IfNeeded",
            variables,
        }
    }

    /// Whether the conditions of the policy hold. Where it `fails_open`, they do not if they fail.
    pub(super) fn is_met(
        &self,
        subject: &Subject<'_>,
        fails_open: bool,
        metrics: &Metrics,
    ) -> Result<bool, String> {
        match self.conditions.matched(subject, &self.variables, metrics) {
            Ok(matched) => Ok(matched == Matched::Yes),
            Err(_) if fails_open => Ok(false),
            Err(message) => Err(message),
        }
    }

    /// Makes all changes to an object, each to what the one before left, and tells what came of
    /// each. One that is refused is the last.
    pub(super) fn change(
        &self,
        subject: &Subject<'_>,
        resource: &Resource,
        aspect: &Aspect,
        object: &mut Value,
    ) -> Vec<Attempt> {
        let mut attempts = Vec::with_capacity(self.mutations.len());
        for mutation in &self.mutations {
            let begun = Instant::now();
            let current = object.clone();
            let subject = Subject { object: &current, ..*subject };
            let changed = self.change_by(mutation, &subject, resource, &aspect.gvk);
            let changed = changed.map(|mut changed| {
                shown::default(resource, &aspect.gvk, &mut changed);
                *object = changed;
            });
            let is_last = matches!(changed, Err(Unchanged::Refused(_)));
            attempts.push(Attempt { changed, elapsed: begun.elapsed() });
            if is_last {
                break;
            }
        }
        attempts
    }

    fn change_by(
        &self,
        mutation: &Mutation,
        subject: &Subject<'_>,
        resource: &Resource,
        gvk: &GroupVersionKind,
    ) -> Result<Value, Unchanged> {
        let (Mutation::Apply(expression) | Mutation::Patch(expression)) = mutation;
        if let Some(mistake) = expression.mistake() {
            return Err(Unchanged::Failed(mistake.to_string()));
        }
        let mut composition = subject.compose(&self.variables);
        let mut budget = Budget::POLICY;
        let made = expression
            .run(&mut composition, &mut budget)
            .map_err(|out_of_budget| Unchanged::Failed(out_of_budget.to_string()))?
            .map_err(Unchanged::Failed)?;
        match mutation {
            Mutation::Apply(_) => overlay(&made, resource, gvk, subject.object),
            Mutation::Patch(_) => patch(&made, resource, gvk, subject.object),
        }
    }
}

/// Lays part of an object over the object.
fn overlay(
    made: &Val<'_>,
    resource: &Resource,
    gvk: &GroupVersionKind,
    object: &Value,
) -> Result<Value, Unchanged> {
    let failed = |why: String| Unchanged::Failed(why);
    made.check_type_names().map_err(|why| failed(format!("type mismatch: {why}")))?;
    let mut config = made.to_json(Large::Number).map_err(failed)?;
    identity::label(&mut config, gvk);
    let schema = resource.apply_schema(gvk).ok_or_else(|| {
        Unchanged::Refused(Box::new(Status::service_unavailable(format!(
            "Resource kind {gvk} not found. There can be a delay between when \
             CustomResourceDefinitions are created and when they are available."
        ))))
    })?;
    let merged = apply::overlay(&schema, object, &config)
        .map_err(|why| failed(format!("error applying patch: {why}")))?;
    read(merged, resource, gvk)
}

/// Does the steps of a patch to the object. If a test among them fails, none is done.
fn patch(
    made: &Val<'_>,
    resource: &Resource,
    gvk: &GroupVersionKind,
    object: &Value,
) -> Result<Value, Unchanged> {
    let steps = made.to_json_patch().map_err(Unchanged::Failed)?;
    let patch = json_patch::Patch::decode(steps)
        .map_err(|error| Unchanged::Failed(format!("JSON Patch: {error}")))?;
    match patch.apply(object) {
        Ok(patched) => read(patched, resource, gvk),
        Err(json_patch::ApplyError::TestFailed { .. }) => Ok(object.clone()),
        Err(error) => Err(Unchanged::Failed(format!("JSON Patch: {error}"))),
    }
}

/// The object in the form of its kind. Upstream reads it strictly.
fn read(object: Value, resource: &Resource, gvk: &GroupVersionKind) -> Result<Value, Unchanged> {
    let Origin::Builtin(_) = &resource.origin else { return Ok(object) };
    let Some(kind) = builtin::kind(&gvk.group, &gvk.version, &gvk.kind) else {
        return Ok(object);
    };
    let internal = |why: String| Unchanged::Refused(Box::new(Status::internal_error(why)));
    let decoded = builtin::decode(kind, object).map_err(|error| internal(error.to_string()))?;
    if !decoded.violations.is_empty() {
        let texts: Vec<String> = decoded.violations.iter().map(ToString::to_string).collect();
        return Err(internal(format!("strict decoding error: {}", texts.join(", "))));
    }
    let mut object = decoded.value;
    identity::label(&mut object, gvk);
    Ok(object)
}
