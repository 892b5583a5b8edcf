//! StatefulSets: pods of a template that are told apart, each with claims of its own.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, PodTemplateSpec, Volume};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::name::object_meta;
use serde_json::{Map, Value, json};

use super::persistent_volume_claim::{self, Forgiven};
use super::workload::{self, TEMPLATE};
use super::{Context, Part, Rules, check, edit, internal, pod_spec, resource_name, typed};

pub(super) const RULES: Rules = Rules {
    default,
    name: name::Rule::Label,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings,
    parts: &[("status", Part { validate_update: validate_status_update, ..Part::STATUS })],
    reset: &["status"],
    ..Rules::PLAIN
};

/// What may change of a spec.
const MUTABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

const STRATEGY: &str = "k8s.io/api/apps/v1.StatefulSetUpdateStrategy";

fn default(object: &mut Value) {
    let spec = &mut object["spec"];
    edit::fill_text(spec, "podManagementPolicy", "OrderedReady");
    let strategy = &mut spec["updateStrategy"];
    if strategy["type"].as_str().is_none_or(str::is_empty) {
        edit::fill_text(strategy, "type", "RollingUpdate");
        edit::fill(strategy, "rollingUpdate", json!({}));
    }
    if strategy["type"] == "RollingUpdate"
        && let Some(update) = strategy.get_mut("rollingUpdate")
    {
        edit::fill(update, "partition", 0);
    }
    edit::fill(spec, "persistentVolumeClaimRetentionPolicy", json!({}));
    for when in ["whenDeleted", "whenScaled"] {
        edit::fill_text(&mut spec["persistentVolumeClaimRetentionPolicy"], when, "Retain");
    }
    edit::fill(spec, "replicas", 1);
    edit::fill(spec, "revisionHistoryLimit", 10);
    pod_spec::default_template(&mut spec["template"]);
    for claim in edit::items(spec, "/volumeClaimTemplates") {
        default_claim(claim);
    }
}

fn default_claim(claim: &mut Value) {
    claim["apiVersion"] = "v1".into();
    claim["kind"] = "PersistentVolumeClaim".into();
    edit::fill_text(&mut claim["status"], "phase", "Pending");
    edit::fill(&mut claim["spec"], "volumeMode", "Filesystem");
    for list in [
        "/spec/resources/limits",
        "/spec/resources/requests",
        "/status/capacity",
        "/status/allocatedResources",
    ] {
        resource_name::round_amounts(claim.pointer_mut(list));
    }
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object["status"] = json!({ "replicas": 0, "availableReplicas": 0 });
    drop_max_unavailable(object, None);
    workload::drop_disabled(object, None, TEMPLATE);
    edit::first_generation(object);
}

fn prepare_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    drop_max_unavailable(object, Some(old));
    workload::drop_disabled(object, Some(old), TEMPLATE);
    edit::keep_status(object, old, context);
}

/// A field that is not switched on by default may stay where it already is.
fn drop_max_unavailable(object: &mut Value, old: Option<&Value>) {
    const UPDATE: &str = "/spec/updateStrategy/rollingUpdate";
    let in_use =
        |old: &Value| old.pointer(UPDATE).is_some_and(|update| !update["maxUnavailable"].is_null());
    if !old.is_some_and(in_use)
        && let Some(update) = object.pointer_mut(UPDATE)
    {
        edit::remove(update, "maxUnavailable");
    }
}

/// What old objects are forgiven.
#[derive(Clone, Copy, Default)]
struct Leniency {
    /// What cannot change: the name of the service and the claims.
    immutable: bool,
    invalid_template: bool,
}

fn validate(object: &Value) -> Vec<Error> {
    check_spec(object, None, Leniency::default(), &Path::new("spec"))
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut leniency = Leniency { immutable: true, ..Leniency::default() };
    leniency.invalid_template = !check_spec(old, Some(old), leniency, &Path::ROOT).is_empty();
    let path = Path::new("spec");
    let mut errors = check_spec(object, Some(old), leniency, &path);
    let mut settled = object.clone();
    for field in MUTABLE {
        edit::restore(&mut settled["spec"], &old["spec"], field);
    }
    if !edit::same(&settled, old, &["spec"]) {
        errors.push(Error::forbidden(
            &path,
            "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
             'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
             'minReadySeconds' are forbidden",
        ));
    }
    errors
}

fn check_spec(
    object: &Value,
    old: Option<&Value>,
    leniency: Leniency,
    path: &Path<'_>,
) -> Vec<Error> {
    let spec = |object: &Value| {
        let set: StatefulSet = typed(object);
        set.spec.unwrap_or_default()
    };
    let (spec, old_spec) = (spec(object), old.map(spec));
    let tree = &object["spec"];
    let mut errors = check_policies(&spec, path);
    if !leniency.immutable {
        errors.extend(check_claims(&spec, &path.child("volumeClaimTemplates")));
    }
    errors.extend(workload::check_counts(tree, &["replicas", "minReadySeconds"], path));
    let start = spec.ordinals.as_ref().and_then(|ordinals| ordinals.start).unwrap_or_default();
    errors.extend(check::non_negative(&path.child("ordinals.start"), start));
    if let Some(service) = spec.service_name.as_deref()
        && !service.is_empty()
        && !leniency.immutable
    {
        errors.extend(check::dns_label(&path.child("serviceName"), service));
    }
    let selector = workload::selector_of(tree);
    let selector_path = path.child("selector");
    errors.extend(workload::check_selector(selector.as_ref(), "statefulset", &selector_path));
    let template_path = path.child("template");
    match workload::meaning(selector.as_ref()) {
        Ok(selector) => {
            let template = effective_template(&spec);
            if !selector.is_everything() {
                errors.extend(workload::check_labels(&selector, &template, &template_path));
            }
            if !leniency.invalid_template {
                let old = old_spec.as_ref().map(effective_template);
                errors.extend(pod_spec::validate_template(&template, old.as_ref(), &template_path));
            }
            errors.extend(check_template_metadata(&tree["template"]["metadata"], &template_path));
        }
        Err(_) => errors.push(Error::invalid(&selector_path, check::shown(&selector), "")),
    }
    errors.extend(workload::check_lasting(&spec.template, "StatefulSet", &template_path));
    errors
}

fn check_claims(spec: &StatefulSetSpec, path: &Path<'_>) -> Vec<Error> {
    let claims = spec.volume_claim_templates.iter().flatten().enumerate();
    claims
        .flat_map(|(index, claim)| {
            let spec = claim.spec.clone().unwrap_or_default();
            let path = path.index(index);
            persistent_volume_claim::check_spec(&spec, Forgiven::default(), &path.child("spec"))
        })
        .collect()
}

fn check_policies(spec: &StatefulSetSpec, path: &Path<'_>) -> Vec<Error> {
    let mut errors = Vec::new();
    let management_path = path.child("podManagementPolicy");
    match spec.pod_management_policy.as_deref().unwrap_or_default() {
        "" => errors.push(Error::required(&management_path, "")),
        "OrderedReady" | "Parallel" => {}
        other => errors.push(Error::invalid(
            &management_path,
            other,
            "must be 'OrderedReady' or 'Parallel'",
        )),
    }
    let strategy = spec.update_strategy.clone().unwrap_or_default();
    errors.extend(check_strategy(&strategy, &path.child("updateStrategy")));
    if let Some(policy) = &spec.persistent_volume_claim_retention_policy {
        let path = path.child("persistentVolumeClaimRetentionPolicy");
        let words = ["Retain", "Delete"];
        for (when, word) in
            [("whenDeleted", &policy.when_deleted), ("whenScaled", &policy.when_scaled)]
        {
            let word = word.as_deref().unwrap_or_default();
            if !words.contains(&word) {
                errors.push(Error::not_supported(&path.child(when), word, &words));
            }
        }
    }
    errors
}

fn check_strategy(strategy: &StatefulSetUpdateStrategy, path: &Path<'_>) -> Vec<Error> {
    let rolling_path = path.child("rollingUpdate");
    let shown = || internal::shown(STRATEGY, &check::shown(strategy));
    match (strategy.type_.as_deref().unwrap_or_default(), &strategy.rolling_update) {
        ("", _) => vec![Error::required(path, "")],
        ("OnDelete" | "RollingUpdate", None) => Vec::new(),
        ("OnDelete", Some(_)) => vec![Error::invalid(
            &rolling_path,
            shown()["RollingUpdate"].take(),
            "only allowed for updateStrategy 'RollingUpdate'",
        )],
        ("RollingUpdate", Some(update)) => {
            let partition = update.partition.unwrap_or_default();
            let mut errors = Vec::new();
            errors.extend(check::non_negative(&rolling_path.child("partition"), partition));
            if let Some(unavailable) = &update.max_unavailable {
                let path = rolling_path.child("maxUnavailable");
                errors.extend(check::int_or_percent(&path, unavailable));
                if check::int_or_percent_value(unavailable) == 0 {
                    errors.push(Error::invalid(&path, check::shown(unavailable), "cannot be 0"));
                }
                errors.extend(check::at_most_100_percent(&path, unavailable));
            }
            errors
        }
        _ => vec![Error::invalid(path, shown(), "must be 'RollingUpdate' or 'OnDelete'")],
    }
}

/// The template as pods come of it: claims are volumes that take the place of others of the same
/// name, and the names in the network are not the template's to give.
fn effective_template(spec: &StatefulSetSpec) -> PodTemplateSpec {
    let mut template = spec.template.clone();
    let Some(pod) = &mut template.spec else { return template };
    pod.subdomain = None;
    pod.hostname = None;
    let claims = spec.volume_claim_templates.as_deref().unwrap_or_default();
    let mut volumes = Vec::new();
    for claim in claims {
        let name = claim.metadata.name.clone().unwrap_or_default();
        // Of claims of the same name, one volume is made.
        if volumes.iter().any(|volume: &Volume| volume.name == name) {
            continue;
        }
        let source = PersistentVolumeClaimVolumeSource {
            claim_name: name.clone(),
            ..PersistentVolumeClaimVolumeSource::default()
        };
        volumes.push(Volume { name, persistent_volume_claim: Some(source), ..Volume::default() });
    }
    let is_claimed = |volume: &Volume| volumes.iter().any(|claim| claim.name == volume.name);
    let others: Vec<Volume> =
        pod.volumes.iter().flatten().filter(|volume| !is_claimed(volume)).cloned().collect();
    volumes.extend(others);
    pod.volumes = Some(volumes).filter(|volumes| !volumes.is_empty());
    template
}

/// Upstream looks at these once more than at those of other templates.
fn check_template_metadata(metadata: &Value, path: &Path<'_>) -> Vec<Error> {
    let none = Map::new();
    let map = |name: &str| metadata[name].as_object().unwrap_or(&none);
    let mut errors = object_meta::validate_labels(map("labels"), &path.child("labels"));
    errors
        .extend(object_meta::validate_annotations(map("annotations"), &path.child("annotations")));
    errors
}

fn validate_status_update(object: &Value, old: &Value) -> Vec<Error> {
    let status = &object["status"];
    let counts = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    let mut errors = workload::check_counts(status, &counts, &Path::new("status"));
    let parts = ["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"];
    errors.extend(workload::check_replicas(status, &parts, "status.readyReplicas"));
    errors.extend(workload::check_collisions(status, &old["status"]));
    errors
}

fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    if workload::is_another(object, old) {
        let path = Path::new("spec.template");
        warnings.extend(workload::template_warnings(object, TEMPLATE, &path));
    }
    let set: StatefulSet = typed(object);
    let claims = set.spec.and_then(|spec| spec.volume_claim_templates).unwrap_or_default();
    let path = Path::new("spec.volumeClaimTemplates");
    for (index, claim) in claims.iter().enumerate() {
        let path = path.index(index);
        // The paths are upstream's, and neither is quite right.
        let path = if old.is_some() { &path.child("Spec") } else { &path };
        let spec = claim.spec.as_ref();
        warnings.extend(
            spec.map(|spec| persistent_volume_claim::spec_warnings(spec, path)).unwrap_or_default(),
        );
    }
    let limit = object["spec"]["revisionHistoryLimit"].as_i64().unwrap_or_default();
    let warning = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a \
                   value >= 0 is recommended";
    warnings.extend((limit < 0).then(|| warning.to_owned()));
    warnings
}
