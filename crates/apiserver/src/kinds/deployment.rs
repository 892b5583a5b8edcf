//! Deployments: ReplicaSets that follow one another.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentStrategy, RollingUpdateDeployment};
use kubewright_apimachinery::field::{Error, Path};
use serde_json::{Map, Value, json};

use super::workload::{self, TEMPLATE};
use super::{Context, Part, Rules, check, edit, internal, pod_spec, replica_set, typed};
use crate::meta;
use crate::query::parse_int;

pub(super) const RULES: Rules = Rules {
    unreadable,
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_update,
    warnings: workload::warnings,
    parts: &[(
        "status",
        Part {
            prepare_update: prepare_status_update,
            validate_update: validate_status_update,
            reset: &["spec", "metadata.labels"],
            ..Part::PLAIN
        },
    )],
    reset: &["status"],
    ..Rules::PLAIN
};

/// Where `spec.rollbackTo` of versions past is kept: the revision to go back to.
const ROLLBACK_TO: &str = "deprecated.deployment.rollback.to";

fn unreadable(object: &Value) -> Option<String> {
    let revision = object["metadata"]["annotations"][ROLLBACK_TO].as_str()?;
    let problem = parse_int(revision).err().filter(|_| !revision.is_empty())?;
    Some(format!("failed to parse annotation[{ROLLBACK_TO}]={revision} as int64: {problem}"))
}

fn default(object: &mut Value) {
    let spec = &mut object["spec"];
    edit::fill(spec, "replicas", 1);
    workload::default_strategy(&mut spec["strategy"], json!("25%"), json!("25%"));
    edit::fill(spec, "revisionHistoryLimit", 10);
    edit::fill(spec, "progressDeadlineSeconds", 600);
    pod_spec::default_template(&mut spec["template"]);
}

fn prepare_create(object: &mut Value, _: &Context<'_>) {
    object["status"] = json!({});
    settle_rollback(object);
    workload::drop_disabled(object, None, TEMPLATE);
    edit::first_generation(object);
}

/// Annotations are copied to the ReplicaSets, so changing them is a change, too.
fn prepare_update(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(object, old, "status");
    settle_rollback(object);
    workload::drop_disabled(object, Some(old), TEMPLATE);
    let same =
        edit::same(object, old, &["spec"]) && edit::same(object, old, &["metadata", "annotations"]);
    edit::count_generation(object, old, !same);
}

fn prepare_status_update(object: &mut Value, old: &Value, context: &Context<'_>) {
    edit::restore(&mut object["metadata"], &old["metadata"], "labels");
    keep_rollback(object, old);
    edit::keep_spec(object, old, context);
}

/// The annotation is part of the spec.
fn keep_rollback(object: &mut Value, old: &Value) {
    let revision = old["metadata"]["annotations"][ROLLBACK_TO].as_str();
    meta::put(object, "annotations", ROLLBACK_TO, revision.unwrap_or_default());
    settle_rollback(object);
}

/// The annotation is a number or nothing.
fn settle_rollback(object: &mut Value) {
    let metadata = &mut object["metadata"];
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else {
        return;
    };
    if annotations.get(ROLLBACK_TO).is_some_and(|revision| revision == "") {
        annotations.shift_remove(ROLLBACK_TO);
        if annotations.is_empty() {
            edit::remove(metadata, "annotations");
        }
    } else if let Some(revision) = rollback_of(annotations) {
        annotations[ROLLBACK_TO] = revision.to_string().into();
    }
}

fn rollback_of(annotations: &Map<String, Value>) -> Option<i64> {
    annotations.get(ROLLBACK_TO)?.as_str()?.parse().ok()
}

fn validate(object: &Value) -> Vec<Error> {
    check_spec(object, None)
}

fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let mut errors = check_spec(object, Some(old));
    errors.extend(workload::check_same_selector(object, old));
    errors
}

fn check_spec(object: &Value, old: Option<&Value>) -> Vec<Error> {
    let spec = |object: &Value| {
        let deployment: Deployment = typed(object);
        deployment.spec.unwrap_or_default()
    };
    let (new, old) = (spec(object), old.map(spec));
    let tree = &object["spec"];
    let path = Path::new("spec");
    let mut errors = workload::check_counts(tree, &["replicas"], &path);
    let old_template = old.as_ref().map(|old| &old.template);
    errors.extend(replica_set::check_template(tree, &new.template, old_template));
    let strategy = new.strategy.unwrap_or_default();
    errors.extend(check_strategy(&strategy, &path.child("strategy")));
    let counts = ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"];
    errors.extend(workload::check_counts(tree, &counts, &path));
    let revision = object["metadata"]["annotations"].as_object().and_then(rollback_of);
    let rollback_path = path.child("rollback");
    errors.extend(
        revision
            .and_then(|revision| check::non_negative(&rollback_path.child("version"), revision)),
    );
    if let Some(deadline) = new.progress_deadline_seconds
        && deadline <= new.min_ready_seconds.unwrap_or_default()
    {
        errors.push(Error::invalid(
            &path.child("progressDeadlineSeconds"),
            deadline,
            "must be greater than minReadySeconds",
        ));
    }
    errors
}

fn check_strategy(strategy: &DeploymentStrategy, path: &Path<'_>) -> Vec<Error> {
    let rolling_path = path.child("rollingUpdate");
    match (strategy.type_.as_deref().unwrap_or_default(), &strategy.rolling_update) {
        ("Recreate", None) => Vec::new(),
        ("Recreate", Some(_)) => vec![Error::forbidden(
            &rolling_path,
            "may not be specified when strategy `type` is 'Recreate'",
        )],
        ("RollingUpdate", Some(update)) => check_rolling_update(update, &rolling_path),
        ("RollingUpdate", None) => {
            vec![Error::required(&rolling_path, "this should be defaulted and never be nil")]
        }
        _ => {
            let type_name = "k8s.io/api/apps/v1.DeploymentStrategy";
            let shown = internal::shown(type_name, &check::shown(strategy));
            vec![Error::not_supported(path, shown, &["Recreate", "RollingUpdate"])]
        }
    }
}

fn check_rolling_update(update: &RollingUpdateDeployment, path: &Path<'_>) -> Vec<Error> {
    let unavailable = update.max_unavailable.clone().unwrap_or_default();
    let surge = update.max_surge.clone().unwrap_or_default();
    let unavailable_path = path.child("maxUnavailable");
    let mut errors = check::int_or_percent(&unavailable_path, &unavailable);
    errors.extend(check::int_or_percent(&path.child("maxSurge"), &surge));
    let is_nothing = |bound| check::int_or_percent_value(bound) == 0;
    if is_nothing(&unavailable) && is_nothing(&surge) {
        errors.push(Error::invalid(
            &unavailable_path,
            check::shown(&unavailable),
            "may not be 0 when `maxSurge` is 0",
        ));
    }
    errors.extend(check::at_most_100_percent(&unavailable_path, &unavailable));
    errors
}

fn validate_status_update(object: &Value, old: &Value) -> Vec<Error> {
    let status = &object["status"];
    let counts = [
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    let mut errors = workload::check_counts(status, &counts, &Path::new("status"));
    let parts = ["updatedReplicas", "readyReplicas", "availableReplicas"];
    errors.extend(workload::check_replicas(status, &parts, "readyReplicas"));
    errors.extend(workload::check_collisions(status, &old["status"]));
    errors
}
