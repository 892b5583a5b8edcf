//! Events: the same fields under other names.

use serde_json::{Map, Value};

use super::{Rename, Zero, renamed};

/// In the order of `events.k8s.io/v1`.
const TO_EVENTS: &[Rename] = &[
    rename("eventTime", "eventTime", Some(Zero::Null)),
    rename("series", "series", None),
    rename("reportingComponent", "reportingController", None),
    rename("reportingInstance", "reportingInstance", None),
    rename("action", "action", None),
    rename("reason", "reason", None),
    rename("involvedObject", "regarding", Some(Zero::Object)),
    rename("related", "related", None),
    rename("message", "note", None),
    rename("type", "type", None),
    rename("source", "deprecatedSource", Some(Zero::Object)),
    rename("firstTimestamp", "deprecatedFirstTimestamp", Some(Zero::Null)),
    rename("lastTimestamp", "deprecatedLastTimestamp", Some(Zero::Null)),
    rename("count", "deprecatedCount", None),
];

/// In the order of core `v1`.
const TO_CORE: &[Rename] = &[
    rename("regarding", "involvedObject", Some(Zero::Object)),
    rename("reason", "reason", None),
    rename("note", "message", None),
    rename("deprecatedSource", "source", Some(Zero::Object)),
    rename("deprecatedFirstTimestamp", "firstTimestamp", Some(Zero::Null)),
    rename("deprecatedLastTimestamp", "lastTimestamp", Some(Zero::Null)),
    rename("deprecatedCount", "count", None),
    rename("type", "type", None),
    rename("eventTime", "eventTime", Some(Zero::Null)),
    rename("series", "series", None),
    rename("action", "action", None),
    rename("related", "related", None),
    rename("reportingController", "reportingComponent", Some(Zero::Text)),
    rename("reportingInstance", "reportingInstance", Some(Zero::Text)),
];

pub(super) fn to_events(core: Map<String, Value>) -> Map<String, Value> {
    let mut event = renamed(core, TO_EVENTS);
    write_series(&mut event, |series| {
        // Here the members of a series may not be left out.
        series.entry("count").or_insert_with(|| 0.into());
        series.entry("lastObservedTime").or_insert(Value::Null);
    });
    event
}

pub(super) fn to_core(event: Map<String, Value>) -> Map<String, Value> {
    let mut core = renamed(event, TO_CORE);
    write_series(&mut core, |series| {
        if series.get("count").is_some_and(super::is_zero) {
            series.shift_remove("count");
        }
    });
    core
}

fn write_series(event: &mut Map<String, Value>, write: impl FnOnce(&mut Map<String, Value>)) {
    if let Some(series) = event.get_mut("series").and_then(Value::as_object_mut) {
        write(series);
    }
}

const fn rename(from: &'static str, to: &'static str, zero: Option<Zero>) -> Rename {
    Rename { from, to, zero }
}
