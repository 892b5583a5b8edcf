//! Events: what happened to whom. They are one kind in two groups, and the newer one asks for
//! more.
//!
//! All rules see the event as the core group has it.

use k8s_openapi::api::core::v1::{Event, EventSeries, ObjectReference};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::name;
use kubewright_apimachinery::time::MicroTime;
use serde_json::{Value, json};

use super::{Field, Rules, check, edit, typed};

const WORD_BYTES_MAX: usize = 128;
const MESSAGE_BYTES_MAX: usize = 1024;

/// As the core group serves them.
pub(super) const RULES: Rules = Rules {
    name: name::Rule::PathSegment,
    validate: |object| check(object, Served::Core),
    validate_update: |object, _| check(object, Served::Core),
    fields: &[
        Field::At("involvedObject.kind"),
        Field::At("involvedObject.namespace"),
        Field::At("involvedObject.name"),
        Field::At("involvedObject.uid"),
        Field::At("involvedObject.apiVersion"),
        Field::At("involvedObject.resourceVersion"),
        Field::At("involvedObject.fieldPath"),
        Field::At("reason"),
        Field::At("reportingComponent"),
        Field::Made("source", source),
        Field::At("type"),
    ],
    create_on_update: true,
    ..Rules::PLAIN
};

/// As `events.k8s.io` serves them.
pub(super) const STRICT: Rules = Rules {
    name: name::Rule::Subdomain,
    validate,
    validate_update,
    fields: &[
        Field::Made("regarding.kind", |event| edit::text(event, "/involvedObject/kind").into()),
        Field::Made("regarding.namespace", |event| {
            edit::text(event, "/involvedObject/namespace").into()
        }),
        Field::Made("regarding.name", |event| edit::text(event, "/involvedObject/name").into()),
        Field::Made("regarding.uid", |event| edit::text(event, "/involvedObject/uid").into()),
        Field::Made("regarding.apiVersion", |event| {
            edit::text(event, "/involvedObject/apiVersion").into()
        }),
        Field::Made("regarding.resourceVersion", |event| {
            edit::text(event, "/involvedObject/resourceVersion").into()
        }),
        Field::Made("regarding.fieldPath", |event| {
            edit::text(event, "/involvedObject/fieldPath").into()
        }),
        Field::At("reason"),
        Field::Made("reportingController", |event| edit::text(event, "/reportingComponent").into()),
        Field::At("type"),
    ],
    create_on_update: true,
    ..Rules::PLAIN
};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Served {
    Core,
    Events,
}

/// Who reported an event, in its old or its new place.
fn source(event: &Value) -> String {
    match edit::text(event, "/source/component") {
        "" => edit::text(event, "/reportingComponent").to_owned(),
        component => component.to_owned(),
    }
}

/// What is asked of every event.
fn check(object: &Value, served: Served) -> Vec<Error> {
    let event: Event = typed(object);
    let mut errors = match event.event_time {
        None => check_old(&event),
        Some(_) => check_new(&event, served),
    };
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
    errors.extend(check::dns_subdomain(&Path::new("namespace"), namespace));
    errors
}

/// An event without a time of its own is of the old sort.
fn check_old(event: &Event) -> Vec<Error> {
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
    let involved = event.involved_object.namespace.as_deref().unwrap_or_default();
    // What is in no namespace is told of in the default one.
    let agree = match involved {
        "" => matches!(namespace, "" | "default"),
        involved => involved == namespace,
    };
    if agree { Vec::new() } else { vec![mismatch(involved)] }
}

fn check_new(event: &Event, served: Served) -> Vec<Error> {
    let namespace = event.metadata.namespace.as_deref().unwrap_or_default();
    let involved = event.involved_object.namespace.as_deref().unwrap_or_default();
    let mut errors = Vec::new();
    if involved.is_empty() && !matches!(namespace, "default" | "kube-system") {
        errors.push(mismatch(involved));
    }
    let controller_at = Path::new(match served {
        Served::Core => "reportingComponent",
        Served::Events => "reportingController",
    });
    let controller = event.reporting_component.as_deref().unwrap_or_default();
    if controller.is_empty() {
        errors.push(Error::required(&controller_at, ""));
    }
    errors.extend(check::qualified_name(&controller_at, controller));
    let words = [
        ("reportingInstance", &event.reporting_instance),
        ("action", &event.action),
        ("reason", &event.reason),
    ];
    for (field, word) in words {
        let word = word.as_deref().unwrap_or_default();
        if word.is_empty() {
            errors.push(Error::required(&Path::new(field), ""));
        }
        errors.extend(check_length(field, word, WORD_BYTES_MAX));
    }
    let message = event.message.as_deref().unwrap_or_default();
    errors.extend(check_length("message", message, MESSAGE_BYTES_MAX));
    errors
}

fn mismatch(involved: &str) -> Error {
    let at = Path::new("involvedObject");
    Error::invalid(&at.child("namespace"), involved, "does not match event.namespace")
}

fn check_length(field: &str, text: &str, bytes_max: usize) -> Option<Error> {
    (text.len() > bytes_max).then(|| {
        Error::invalid(&Path::new(field), "", format!("can have at most {bytes_max} characters"))
    })
}

fn validate(object: &Value) -> Vec<Error> {
    let event: Event = typed(object);
    let mut errors = check(object, Served::Events);
    errors.extend(check_series(event.series.as_ref()));
    if event.event_time.is_none() {
        errors.push(Error::required(&Path::new("eventTime"), ""));
    }
    let type_ = event.type_.as_deref().unwrap_or_default();
    if !matches!(type_, "Normal" | "Warning") {
        let problem = format!("has invalid value: {type_}");
        errors.push(Error::invalid(&Path::new("type"), "", problem));
    }
    let source = event.source.unwrap_or_default();
    let is_said = |text: Option<String>| text.is_some_and(|text| !text.is_empty());
    let outdated = [
        ("firstTimestamp", event.first_timestamp.is_some()),
        ("lastTimestamp", event.last_timestamp.is_some()),
        ("count", event.count.unwrap_or_default() != 0),
        ("source", is_said(source.component) || is_said(source.host)),
    ];
    for (field, _) in outdated.into_iter().filter(|(_, is_set)| *is_set) {
        errors.push(Error::invalid(&Path::new(field), "", "needs to be unset"));
    }
    errors
}

/// Only the series of an event goes on.
fn validate_update(object: &Value, old: &Value) -> Vec<Error> {
    let (new, was): (Event, Event) = (typed(object), typed(old));
    let mut errors = check(object, Served::Events);
    if new.series != was.series {
        errors.extend(check_series(new.series.as_ref()));
    }
    let mut frozen = |field: &str, same: bool, value: Value| {
        if !same {
            errors.push(Error::invalid(&Path::new(field), value, "field is immutable"));
        }
    };
    let text = |text: &Option<String>| Value::from(text.as_deref().unwrap_or_default());
    frozen(
        "involvedObject",
        new.involved_object == was.involved_object,
        reference(&new.involved_object),
    );
    frozen("reason", new.reason == was.reason, text(&new.reason));
    frozen("message", new.message == was.message, text(&new.message));
    let source = new.source.clone().unwrap_or_default();
    frozen(
        "source",
        source == was.source.unwrap_or_default(),
        json!({ "Component": text(&source.component), "Host": text(&source.host) }),
    );
    for field in ["firstTimestamp", "lastTimestamp"] {
        frozen(field, object[field] == old[field], object[field].clone());
    }
    frozen("count", new.count == was.count, new.count.unwrap_or_default().into());
    // Upstream looks at the reason twice.
    frozen("reason", new.reason == was.reason, text(&new.reason));
    frozen("type", new.type_ == was.type_, text(&new.type_));
    // Some clients write nanoseconds, which never were a part of the time.
    let micros = |event: &Value| {
        let time = MicroTime::from_value(&event["eventTime"]).ok().flatten()?;
        Some((time.unix_seconds(), time.subsec_nanos() / 1_000))
    };
    frozen("eventTime", micros(object) == micros(old), object["eventTime"].clone());
    frozen("action", new.action == was.action, text(&new.action));
    let related = new.related.as_ref().map_or(Value::Null, reference);
    frozen("related", new.related == was.related, related);
    let controller = text(&new.reporting_component);
    frozen("reportingController", new.reporting_component == was.reporting_component, controller);
    let instance = text(&new.reporting_instance);
    frozen("reportingInstance", new.reporting_instance == was.reporting_instance, instance);
    errors
}

fn check_series(series: Option<&EventSeries>) -> Vec<Error> {
    let Some(series) = series else { return Vec::new() };
    let mut errors = Vec::new();
    if series.count.unwrap_or_default() < 2 {
        errors.push(Error::invalid(&Path::new("series.count"), "", "should be at least 2"));
    }
    if series.last_observed_time.is_none() {
        errors.push(Error::required(&Path::new("series.lastObservedTime"), ""));
    }
    errors
}

/// A reference with the names that upstream's Go type has, as its errors show it.
fn reference(reference: &ObjectReference) -> Value {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    json!({
        "Kind": text(&reference.kind),
        "Namespace": text(&reference.namespace),
        "Name": text(&reference.name),
        "UID": text(&reference.uid),
        "APIVersion": text(&reference.api_version),
        "ResourceVersion": text(&reference.resource_version),
        "FieldPath": text(&reference.field_path),
    })
}
