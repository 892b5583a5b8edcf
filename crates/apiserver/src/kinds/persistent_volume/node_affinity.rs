//! Which nodes can reach a volume.

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, VolumeNodeAffinity};
use kubewright_apimachinery::field::{Error, Path};

use super::super::{check, internal, node_selector};

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
    let any_value = old.and_then(|old| old.required.as_ref());
    let any_value = any_value.is_some_and(node_selector::has_unsound_values);
    node_selector::check(required, any_value, &at)
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
        let shown = internal::shown("k8s.io/api/core/v1.VolumeNodeAffinity", &check::shown(&new));
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

fn terms(affinity: Option<&VolumeNodeAffinity>) -> &[NodeSelectorTerm] {
    let required = affinity.and_then(|affinity| affinity.required.as_ref());
    required.map(|required| required.node_selector_terms.as_slice()).unwrap_or_default()
}
