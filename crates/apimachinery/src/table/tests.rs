//! Compares tables with those that upstream printed of the same objects.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{Column, CustomColumns, Doc, Include, Options, Printer, Table, age};
use crate::conversion;
use crate::fixtures::{self, Case};
use crate::gvk::GroupVersion;
use crate::time::MicroTime;

/// All times in recordings that are told as an age are either centuries ago or ahead.
fn now() -> MicroTime {
    MicroTime::from_unix(1_767_225_600, 0)
}

/// The version that printers expect.
fn to_hub(mut answer: Value) -> Value {
    let hub = match answer["apiVersion"].as_str().unwrap() {
        "events.k8s.io/v1" => GroupVersion::new("", "v1"),
        "autoscaling/v1" if answer["kind"].as_str().unwrap().starts_with("Horizontal") => {
            GroupVersion::new("autoscaling", "v2")
        }
        _ => return answer,
    };
    let api_version = answer["apiVersion"].clone();
    let kind = answer["kind"].as_str().unwrap().trim_end_matches("List").to_owned();
    for item in answer["items"].as_array_mut().unwrap() {
        item["kind"] = kind.as_str().into();
        item["apiVersion"] = api_version.clone();
        *item = conversion::convert(item.take(), &hub).unwrap();
    }
    answer["apiVersion"] = hub.to_string().into();
    answer
}

/// The printer of what was asked for; that of a custom resource is in its definition.
fn printer(answer: &Value, path: &str, definition: &Value) -> Printer {
    let api_version = answer["apiVersion"].as_str().unwrap();
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = answer["kind"].as_str().unwrap();
    let kind = if answer.get("items").is_some() { kind.trim_end_matches("List") } else { kind };
    match group.ends_with(".kubewright.dev") {
        true => {
            let version = path.split('/').nth(3).unwrap();
            let versions = definition["spec"]["versions"].as_array().unwrap();
            let version = versions.iter().find(|it| it["name"] == version).unwrap();
            let columns = version.get("additionalPrinterColumns").cloned();
            let columns: Vec<_> =
                serde_json::from_value(columns.unwrap_or_else(|| json!([]))).unwrap();
            Printer::Custom(CustomColumns::new(&columns))
        }
        false => Printer::builtin(group, kind),
    }
}

#[test]
fn tables_are_those_of_upstream() {
    let mut tables = 0;
    let mut differing = Vec::new();
    for Case { name, steps, .. } in fixtures::load("table") {
        let mut object = Value::Null;
        let mut definition = Value::Null;
        for step in steps {
            let Some(answer) = step.answer.body else { panic!("{name}: no answer") };
            let path = &step.request.path;
            if path.ends_with("/customresourcedefinitions") {
                definition = answer.clone();
            }
            // What is only tried is answered twice, once as a table.
            if step.request.method != "GET" && !step.request.query.contains_key("dryRun") {
                continue;
            }
            if !step.request.accept.contains("as=Table") {
                object = to_hub(answer);
                continue;
            }
            tables += 1;
            let include = match step.request.query.get("includeObject").map(String::as_str) {
                Some("None") => Include::None,
                Some("Object") => Include::Object,
                _ => Include::Metadata,
            };
            let version = if step.request.accept.contains("v=v1beta1") { "v1beta1" } else { "v1" };
            let options = Options { include, headers: true, now: now(), describe: &|_, _| None };
            let ours = Table::of(&printer(&object, path, &definition), &object, &options)
                .to_value(version);
            // On the wire a float may have no fraction.
            let ours = serde_json::from_str(&crate::json::to_string(&ours)).unwrap();
            let [ours, theirs] = [ours, answer.clone()].map(|table| without_ages(table, &answer));
            if ours != theirs {
                differing.push(format!("{name}: {path}\n  ours: {ours}\ntheirs: {theirs}"));
            }
        }
    }
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(tables > 60, "only {tables} tables");
}

/// The table without what a recording cannot hold still: the age of objects made while recording.
/// Descriptions that come from elsewhere are taken over.
fn without_ages(mut table: Value, answer: &Value) -> Value {
    let columns = table["columnDefinitions"].as_array_mut().unwrap();
    for (column, theirs) in columns.iter_mut().zip(answer["columnDefinitions"].as_array().unwrap())
    {
        if column["description"] == "" {
            column["description"] = theirs["description"].clone();
        }
    }
    let ages: Vec<usize> =
        (0..columns.len()).filter(|column| columns[*column]["name"] == "Age").collect();
    let last = columns.len();
    for row in table["rows"].as_array_mut().into_iter().flatten() {
        let cells = row["cells"].as_array_mut().unwrap();
        // The age of IP addresses has no column.
        for age in ages.iter().copied().chain((last < cells.len()).then_some(last)) {
            cells[age] = json!("age");
        }
    }
    table
}

#[test]
fn an_api_service_says_why_it_is_not_available() {
    let check = |conditions: Value, expected: &str| {
        let object = json!({"status": {"conditions": conditions}});
        let cells = Printer::builtin("apiregistration.k8s.io", "APIService").cells(&object, now());
        assert_eq!(cells[2], expected);
    };
    check(json!([]), "Unknown");
    check(json!([{"type": "Available", "status": "True", "reason": "Local"}]), "True");
    check(json!([{"type": "Available", "status": "False", "reason": "Why"}]), "False (Why)");
    check(json!([{"type": "Available", "status": "False"}]), "False");
}

#[test]
fn flow_schemas_are_shown_in_the_order_in_which_they_are_tried() {
    let schema = |name: &str, precedence: u32, dangling: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {"matchingPrecedence": precedence},
            "status": {"conditions": [{"type": "Dangling", "status": dangling}]},
        })
    };
    let items = [schema("c", 1, "True"), schema("b", 9, "False"), schema("a", 9, "False")];
    let options =
        Options { include: Include::None, headers: false, now: now(), describe: &|_, _| None };
    let printer = Printer::builtin("flowcontrol.apiserver.k8s.io", "FlowSchema");
    let table = Table::of(&printer, &json!({"items": items}), &options);
    let shown: Vec<_> = table
        .rows
        .unwrap()
        .iter()
        .map(|row| format!("{} {}", row.cells[0], row.cells[5]))
        .collect();
    assert_eq!(shown, [r#""c" "True""#, r#""a" "False""#, r#""b" "False""#]);
    assert!(table.columns.is_empty());
}

#[test]
fn descriptions_of_fields_are_looked_up() {
    let describe = |ty: &str, field: &str| Some(format!("{ty} {field}"));
    let options =
        Options { include: Include::None, headers: true, now: now(), describe: &describe };
    let table = Table::of(&Printer::builtin("", "Pod"), &json!({"items": []}), &options);
    assert_eq!(table.columns[0]["description"], "meta/v1.ObjectMeta name");
    assert_eq!(table.columns[5]["description"], "core/v1.PodStatus podIP");
    assert_eq!(table.columns[5]["priority"], 1);
}

#[test]
fn described_fields_are_fields() {
    let kinds = crate::builtin::kinds();
    for kind in kinds {
        let Printer::Builtin(printer) = Printer::builtin(kind.group, kind.kind) else { continue };
        for Column { doc, name, .. } in printer.columns {
            let Doc::Field { ty, field } = doc else { continue };
            let full = match ty.strip_prefix("meta/") {
                Some(ty) => format!("k8s.io/apimachinery/pkg/apis/meta/{ty}"),
                None => format!("k8s.io/api/{ty}"),
            };
            let known = every_type().find(|ty| ty.name == full);
            let known = known.unwrap_or_else(|| panic!("{}: {name}: {full}", kind.kind));
            assert!(known.field(field).is_some(), "{}: {name}: {full}.{field}", kind.kind);
        }
    }
}

/// All types that built-in kinds are made of.
fn every_type() -> impl Iterator<Item = &'static crate::builtin::Type> {
    use crate::builtin::{Ty, kinds};
    let mut pending: Vec<_> = kinds().iter().map(|kind| kind.ty()).collect();
    let mut seen = std::collections::HashSet::new();
    std::iter::from_fn(move || {
        let ty = loop {
            let ty = pending.pop()?;
            if seen.insert(ty.name) {
                break ty;
            }
        };
        for field in ty.fields {
            let mut inner = &field.ty;
            while let Ty::List(item) | Ty::Map(item) = inner {
                inner = item;
            }
            if let Ty::Struct(id) = inner {
                pending.push(id.get());
            }
        }
        Some(ty)
    })
}

#[test]
fn spans_have_two_or_three_figures() {
    let check = |seconds: i64, expected: &str| {
        assert_eq!(age::human(SignedDuration::from_secs(seconds)), expected, "{seconds}");
    };
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    check(-2, "<invalid>");
    check(-1, "0s");
    check(0, "0s");
    check(119, "119s");
    check(2 * MINUTE, "2m");
    check(9 * MINUTE + 59, "9m59s");
    check(10 * MINUTE + 59, "10m");
    check(179 * MINUTE, "179m");
    check(3 * HOUR, "3h");
    check(7 * HOUR + 59 * MINUTE, "7h59m");
    check(47 * HOUR, "47h");
    check(2 * DAY, "2d");
    check(7 * DAY + 23 * HOUR, "7d23h");
    check(729 * DAY, "729d");
    check(730 * DAY, "2y");
    check(8 * 365 * DAY - 1, "7y364d");
    check(8 * 365 * DAY, "8y");
    check(i64::MAX, "292y");
}
