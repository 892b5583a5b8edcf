//! Which nodes can reach a volume.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, VolumeNodeAffinity};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use serde_json::{Value, json};

use super::super::check;

/// Labels that were once in beta, what became of them, and since when.
const RENAMED: [(&str, &str, &str); 5] = [
    ("beta.kubernetes.io/arch", "kubernetes.io/arch", "v1.14"),
    ("beta.kubernetes.io/os", "kubernetes.io/os", "v1.14"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region", "v1.17"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone", "v1.17"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type", "v1.17"),
];

pub(super) fn check(
    affinity: &VolumeNodeAffinity,
    old: Option<&VolumeNodeAffinity>,
    at: &Path<'_>,
) -> Vec<Error> {
    let at = at.child("required");
    let Some(required) = &affinity.required else {
        return vec![Error::required(&at, "must specify required node constraints")];
    };
    let at = at.child("nodeSelectorTerms");
    if required.node_selector_terms.is_empty() {
        return vec![Error::required(&at, "must have at least one node selector term")];
    }
    let forgives_values = terms(old).iter().any(has_unsound_values);
    let mut errors = Vec::new();
    for (index, term) in required.node_selector_terms.iter().enumerate() {
        let at = at.index(index);
        let expressions_at = at.child("matchExpressions");
        for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
            let at = expressions_at.index(index);
            errors.extend(check_expression(expression, forgives_values, &at));
        }
        let fields_at = at.child("matchFields");
        for (index, field) in term.match_fields.iter().flatten().enumerate() {
            errors.extend(check_field(field, &fields_at.index(index)));
        }
    }
    errors
}

fn check_expression(
    expression: &NodeSelectorRequirement,
    forgives_values: bool,
    at: &Path<'_>,
) -> Vec<Error> {
    let values = expression.values.as_deref().unwrap_or_default();
    let values_at = at.child("values");
    let mut errors = Vec::new();
    match (expression.operator.as_str(), values.len()) {
        ("In" | "NotIn", 0) => errors.push(Error::required(
            &values_at,
            "must be specified when `operator` is 'In' or 'NotIn'",
        )),
        ("In" | "NotIn", _) | ("Exists" | "DoesNotExist", 0) | ("Gt" | "Lt", 1) => {}
        ("Exists" | "DoesNotExist", _) => errors.push(Error::forbidden(
            &values_at,
            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
        )),
        ("Gt" | "Lt", _) => errors.push(Error::required(
            &values_at,
            "must be specified single value when `operator` is 'Lt' or 'Gt'",
        )),
        (other, _) => errors.push(Error::invalid(
            &at.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    errors.extend(check::qualified_name(&at.child("key"), &expression.key));
    if !forgives_values {
        for (index, value) in values.iter().enumerate() {
            let complaints = name::label_value(value);
            let at = values_at.index(index);
            errors.extend(check::invalid(&at, value.as_str(), complaints));
        }
    }
    errors
}

fn check_field(field: &NodeSelectorRequirement, at: &Path<'_>) -> Vec<Error> {
    let values = field.values.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    match field.operator.as_str() {
        "In" | "NotIn" if values.len() == 1 => {}
        "In" | "NotIn" => errors.push(Error::required(
            &at.child("values"),
            "must be only one value when `operator` is 'In' or 'NotIn' for node field selector",
        )),
        other => errors.push(Error::invalid(
            &at.child("operator"),
            other,
            "not a valid selector operator",
        )),
    }
    if field.key == "metadata.name" {
        let at = at.child("values");
        for (index, value) in values.iter().enumerate() {
            errors.extend(check::dns_subdomain(&at.index(index), value));
        }
    } else {
        let detail = "not a valid field selector key";
        errors.push(Error::invalid(&at.child("key"), field.key.as_str(), detail));
    }
    errors
}

/// Nothing may change but a label of the beta days to what it is called now.
pub(super) fn check_change(
    new: Option<&VolumeNodeAffinity>,
    old: &VolumeNodeAffinity,
    at: &Path<'_>,
) -> Option<Error> {
    let mut renamed = old.clone();
    let (new_terms, old_terms) =
        (terms(new), renamed.required.as_mut().map(|all| &mut all.node_selector_terms));
    for (new, old) in new_terms.iter().zip(old_terms.into_iter().flatten()) {
        rename(new.match_expressions.as_deref(), old.match_expressions.as_deref_mut());
        rename(new.match_fields.as_deref(), old.match_fields.as_deref_mut());
    }
    (new != Some(&renamed)).then(|| {
        let shown = new.map_or(Value::Null, internal);
        Error::invalid(at, shown, "field is immutable, except for updating from beta label to GA")
    })
}

fn rename(new: Option<&[NodeSelectorRequirement]>, old: Option<&mut [NodeSelectorRequirement]>) {
    for (new, old) in new.into_iter().flatten().zip(old.into_iter().flatten()) {
        if RENAMED.iter().any(|(beta, now, _)| old.key == *beta && new.key == *now) {
            old.key.clone_from(&new.key);
        }
    }
}

pub(super) fn warnings(affinity: &VolumeNodeAffinity) -> Vec<String> {
    let mut warnings = Vec::new();
    let at = "spec.nodeAffinity.required.nodeSelectorTerms";
    for (term_index, term) in terms(Some(affinity)).iter().enumerate() {
        for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
            if let Some(words) = deprecation(&expression.key) {
                warnings.push(format!(
                    "{at}[{term_index}].matchExpressions[{index}].key: {} is {words}",
                    expression.key
                ));
            }
        }
    }
    warnings
}

/// What to say of a label of nodes that should no longer be used.
pub(in crate::kinds) fn deprecation(label: &str) -> Option<String> {
    if let Some((_, now, since)) = RENAMED.iter().find(|(beta, ..)| *beta == label) {
        return Some(format!("deprecated since {since}; use \"{now}\" instead"));
    }
    let words = match label {
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => {
            "deprecated since v1.22; use Taints and Tolerations instead"
        }
        "node-role.kubernetes.io/master" => "use \"node-role.kubernetes.io/control-plane\" instead",
        _ => return None,
    };
    Some(words.to_owned())
}

fn has_unsound_values(term: &NodeSelectorTerm) -> bool {
    let values = term.match_expressions.iter().flatten().flat_map(|expression| &expression.values);
    values.flatten().any(|value| !name::label_value(value).is_empty())
}

fn terms(affinity: Option<&VolumeNodeAffinity>) -> &[NodeSelectorTerm] {
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.map(|required| required.node_selector_terms.as_slice()).unwrap_or_default()
}

/// The affinity as upstream's own type has it.
fn internal(affinity: &VolumeNodeAffinity) -> Value {
    let requirements = |list: Option<&Vec<NodeSelectorRequirement>>| {
        list.map(|list| {
            let shown = list.iter().map(|requirement| {
                json!({
                    "Key": requirement.key,
                    "Operator": requirement.operator,
                    "Values": requirement.values,
                })
            });
            shown.collect::<Vec<Value>>()
        })
    };
    let terms = |term: &NodeSelectorTerm| {
        json!({
            "MatchExpressions": requirements(term.match_expressions.as_ref()),
            "MatchFields": requirements(term.match_fields.as_ref()),
        })
    };
    let required = affinity.required.as_ref().map(|required| {
        let terms: Vec<Value> = required.node_selector_terms.iter().map(terms).collect();
        json!({"NodeSelectorTerms": terms})
    });
    json!({"Required": required})
}
