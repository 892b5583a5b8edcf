//! Which kinds a policy is about, and what is wrong with its expressions about each.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    ExpressionWarning, NamedRuleWithOperations, ValidatingAdmissionPolicy, Variable,
};
use kubewright_apimachinery::cel::{Environment, Expression, Type};
use kubewright_apimachinery::gvk::GroupVersionKind;

use crate::kinds::Kinds;

/// So many kinds of one rule are looked at.
const KINDS_MAX: usize = 10;

/// What is known of the objects and parameters that a policy sees.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) objects: Vec<(GroupVersionKind, Type)>,
    /// Where there are parameters.
    pub(super) params: Option<Type>,
}

/// The kinds that a policy is about, as far as it names them. They are the error if something that
/// it names is not served.
pub(super) fn matched(
    policy: &ValidatingAdmissionPolicy,
    kinds: &Kinds,
) -> Result<Vec<GroupVersionKind>, Vec<GroupVersionKind>> {
    let constraints = policy.spec.as_ref().and_then(|spec| spec.match_constraints.as_ref());
    let rules = constraints.and_then(|constraints| constraints.resource_rules.as_ref());
    let mut found = BTreeSet::new();
    let mut is_complete = true;
    for rule in rules.into_iter().flatten() {
        let mut count = 0;
        for (group, version, resource) in named(rule) {
            let meant = kinds.meant(group, version, resource);
            is_complete &= !meant.is_empty();
            for kind in meant {
                found.insert(GroupVersionKind::new(&kind.group, &kind.version, &kind.kind));
                count += 1;
                if count == KINDS_MAX {
                    return Ok(found.into_iter().collect());
                }
            }
        }
    }
    let found = found.into_iter().collect();
    if is_complete { Ok(found) } else { Err(found) }
}

/// The resources that a rule names one by one, in their order. A rule that means all groups or all
/// versions names none; parts of resources are no kinds.
fn named(rule: &NamedRuleWithOperations) -> Vec<(&str, &str, &str)> {
    fn sorted(names: &Option<Vec<String>>) -> Vec<&str> {
        let mut names: Vec<&str> = names.iter().flatten().map(String::as_str).collect();
        names.sort_unstable();
        names
    }
    let (groups, versions) = (sorted(&rule.api_groups), sorted(&rule.api_versions));
    if groups.iter().chain(&versions).any(|name| name.contains('*')) {
        return Vec::new();
    }
    let mut resources = sorted(&rule.resources);
    resources.retain(|resource| !resource.contains(['*', '/']));
    let mut named = Vec::new();
    for group in groups {
        for version in &versions {
            named.extend(resources.iter().map(|resource| (group, *version, *resource)));
        }
    }
    named
}

/// What is wrong with the expressions of a policy, by the field they stand in.
pub(super) fn warnings(policy: &ValidatingAdmissionPolicy, seen: &Seen) -> Vec<ExpressionWarning> {
    let Some(spec) = &policy.spec else { return Vec::new() };
    let variables = spec.variables.as_deref().unwrap_or_default();
    let environments: Vec<(&GroupVersionKind, Environment)> =
        seen.objects.iter().map(|(kind, type_)| (kind, with(variables, type_, seen))).collect();
    let mut warnings = Vec::new();
    for (i, validation) in spec.validations.iter().flatten().enumerate() {
        let message = validation.message_expression.as_deref().filter(|text| !text.is_empty());
        for (field, text) in
            [("expression", Some(validation.expression.as_str())), ("messageExpression", message)]
        {
            let warning = text.map(|text| issues(text, &environments)).unwrap_or_default();
            if !warning.is_empty() {
                let field_ref = format!("spec.validations[{i}].{field}");
                warnings.push(ExpressionWarning { field_ref, warning });
            }
        }
    }
    warnings
}

/// What expressions know that are about objects of one type.
fn with(variables: &[Variable], object: &Type, seen: &Seen) -> Environment {
    let mut environment = Environment::typed(object.clone(), seen.params.clone());
    for variable in variables {
        let checked = Expression::check(&variable.expression, &environment.declared()).ok();
        environment.declare(&variable.name, checked.as_ref().map(Expression::result_type));
    }
    environment
}

/// What is wrong with an expression, a paragraph for each kind; empty if nothing is.
fn issues(text: &str, environments: &[(&GroupVersionKind, Environment)]) -> String {
    let paragraphs = environments.iter().filter_map(|(kind, environment)| {
        let issues = Expression::check(text, &environment.declared()).err()?;
        Some(format!("{kind}: {issues}\n"))
    });
    paragraphs.collect::<Vec<_>>().join("\n")
}
