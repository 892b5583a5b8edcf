//! Selectors as specs have them, ready to be asked.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Resource;
use kube::api::ObjectMeta;
use kubewright::informer::Change;
use kubewright_apimachinery::selector::label::{Operator, Requirement, Selector};

/// What a spec selects. What the server would not have taken selects nothing.
pub(crate) fn selector(spec: Option<&LabelSelector>) -> Selector {
    let Some(spec) = spec else { return Selector::Nothing };
    let labels =
        spec.match_labels.iter().flatten().map(|(key, value)| {
            Requirement::new(key.clone(), Operator::In, vec![value.clone()]).ok()
        });
    let expressions = spec.match_expressions.iter().flatten().map(|expression| {
        let operator = match expression.operator.as_str() {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            _ => return None,
        };
        let values = expression.values.clone().unwrap_or_default();
        Requirement::new(expression.key.clone(), operator, values).ok()
    });
    let requirements: Option<Vec<_>> = labels.chain(expressions).collect();
    requirements.map_or(Selector::Nothing, Selector::All)
}

pub(crate) fn selects(selector: &Selector, metadata: &ObjectMeta) -> bool {
    selector.matches(&metadata.labels.as_ref())
}

/// Whether a change of an object that nobody controls may make it somebody's who selects so.
pub(crate) fn frees<T: Resource>(change: &Change<T>, selector: impl FnOnce() -> Selector) -> bool {
    let Change::Applied { object, old, .. } = change else { return false };
    let has_controller = |metadata: &ObjectMeta| {
        metadata.owner_references.iter().flatten().any(|owner| owner.controller == Some(true))
    };
    let is_news = old
        .as_ref()
        .is_none_or(|old| old.meta().labels != object.meta().labels || has_controller(old.meta()));
    is_news && !has_controller(object.meta()) && selects(&selector(), object.meta())
}
