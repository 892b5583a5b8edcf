//! RuntimeClasses: by which runtime pods are run, what that costs, and where it can be done.

use std::collections::HashSet;

use k8s_openapi::api::node::v1::{RuntimeClass, Scheduling};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name::object_meta;
use serde_json::{Value, json};

use super::pod_spec::validate::{schedule, validate_overhead};
use super::{Rules, check, typed};

/// Labels of nodes that have other names now.
const OLD_LABELS: [(&str, &str); 8] = [
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    ("beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"),
    (
        "beta.kubernetes.io/instance-type",
        "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead",
    ),
    ("beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"),
    (
        "failure-domain.beta.kubernetes.io/region",
        "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead",
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead",
    ),
    ("node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
];

pub(super) const RULES: Rules = Rules {
    validate,
    validate_update,
    warnings,
    unconditional_update: false,
    create_on_update: true,
    ..Rules::PLAIN
};

fn validate(object: &Value) -> Vec<Error> {
    let class: RuntimeClass = typed(object);
    let at = Path::new("handler");
    let mut errors: Vec<Error> = match class.handler.as_str() {
        "" => vec![Error::required(&at, "")],
        handler => check::dns_label(&at, handler),
    };
    if let Some(overhead) = class.overhead.and_then(|overhead| overhead.pod_fixed) {
        errors.extend(validate_overhead(&overhead, &Path::new("overhead")));
    }
    if let Some(scheduling) = &class.scheduling {
        let selector = object["scheduling"]["nodeSelector"].as_object();
        let root = Path::new("scheduling");
        if let Some(selector) = selector {
            errors.extend(object_meta::validate_labels(selector, &root.child("nodeSelector")));
        }
        let (tolerations, at) = (check::list(&scheduling.tolerations), root.child("tolerations"));
        errors.extend(schedule::tolerations(tolerations, &at));
        errors.extend(check_distinct(scheduling, &at));
    }
    errors
}

/// No two tolerations that tolerate the same.
fn check_distinct(scheduling: &Scheduling, at: &Path<'_>) -> Vec<Error> {
    let mut seen = HashSet::new();
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let tolerations = scheduling.tolerations.iter().flatten().enumerate();
    tolerations
        .filter(|(_, one)| {
            !seen.insert([&one.key, &one.operator, &one.value, &one.effect].map(text))
        })
        .map(|(index, one)| {
            let shown = json!({
                "Key": text(&one.key),
                "Operator": text(&one.operator),
                "Value": text(&one.value),
                "Effect": text(&one.effect),
                "TolerationSeconds": one.toleration_seconds,
            });
            Error::duplicate(&at.index(index), shown)
        })
        .collect()
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, before): (RuntimeClass, RuntimeClass) = (typed(object), typed(old));
    let mut errors = validate(object);
    errors.extend(check::immutable(&Path::new("handler"), &new.handler, &before.handler));
    errors
}

fn warnings(object: &Value, _: Option<&Value>) -> Vec<String> {
    let selector = &object["scheduling"]["nodeSelector"];
    let used = OLD_LABELS.iter().filter(|(label, _)| selector.get(label).is_some());
    used.map(|(_, warning)| format!("scheduling.nodeSelector: {warning}")).collect()
}
