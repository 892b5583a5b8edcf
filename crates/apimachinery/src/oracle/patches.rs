//! Objects that patches change.

use std::collections::HashSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{agree_on_success, object, tree};
use crate::builtin;
use crate::patch::{json as json_patch, merge, strategic};

fn args((object, patch): &(Value, Value)) -> Value {
    json!({ "object": object, "patch": patch, "version": "v1", "kind": "Pod" })
}

#[test]
fn json_patches_apply_as_on_the_server() {
    let path = prop::collection::vec(
        prop::sample::select(&["a", "b", "c", "0", "1", "-1", "-", "-3", "01", "x~1y", "~"][..]),
        0..4,
    )
    .prop_map(|steps| steps.iter().map(|step| format!("/{step}")).collect::<String>());
    let op =
        prop::sample::select(&["add", "remove", "replace", "move", "copy", "test", "what"][..]);
    let operation =
        (op, path.clone(), path, prop::option::of(tree())).prop_map(|(op, path, from, value)| {
            let mut operation = json!({ "op": op, "path": path, "from": from });
            if let Some(value) = value {
                operation["value"] = value;
            }
            operation
        });
    let patch = prop::collection::vec(operation, 1..4).prop_map(Value::from);
    agree_on_success("json-patch", (object(), patch), args, |(object, patch)| {
        let patch = json_patch::Patch::decode(patch.clone()).map_err(|error| error.to_string())?;
        patch.apply(object).map_err(|error| error.to_string())
    });
}

#[test]
fn merge_patches_apply_as_on_the_server() {
    agree_on_success("merge-patch", (object(), object()), args, |(object, patch)| {
        merge::apply(object.clone(), patch.clone()).map_err(|error| error.to_string())
    });
}

#[test]
fn strategic_merge_patches_apply_as_on_the_server() {
    let schema = pod_schema();
    agree_on_success("strategic-patch", (pod(false), pod(true)), args, |(object, patch)| {
        strategic::apply(object.clone(), patch.clone(), schema).map_err(|error| error.to_string())
    });
}

#[test]
fn strategic_diffs_are_those_that_clients_make() {
    let schema = pod_schema();
    let args = |(object, modified): &(Value, Value)| json!({ "object": object, "modified": modified, "version": "v1", "kind": "Pod" });
    agree_on_success(
        "two-way-patch",
        (distinct_pod(), distinct_pod()),
        args,
        |(object, modified)| {
            strategic::diff::two_way(members_of(object), members_of(modified), schema)
                .map(Value::Object)
                .map_err(|error| error.to_string())
        },
    );
}

#[test]
fn three_way_diffs_are_those_of_kubectl_apply() {
    let schema = pod_schema();
    let input = (distinct_pod(), distinct_pod(), distinct_pod(), any::<bool>());
    let args = |(object, modified, current, overwrite): &(Value, Value, Value, bool)| {
        json!({
            "object": object,
            "modified": modified,
            "current": current,
            "overwrite": overwrite,
            "version": "v1",
            "kind": "Pod",
        })
    };
    agree_on_success("three-way-patch", input, args, |(object, modified, current, overwrite)| {
        let [object, modified, current] = [object, modified, current].map(members_of);
        strategic::diff::three_way(object, modified, current, schema, *overwrite)
            .map(Value::Object)
            .map_err(|error| error.to_string())
    });
}

fn pod_schema() -> strategic::Schema {
    strategic::Schema::of(builtin::kind("", "v1", "Pod").expect("pods are built in").ty())
}

fn members_of(object: &Value) -> &Map<String, Value> {
    object.as_object().expect("a pod is an object")
}

/// A pod whose items have different merge keys, as the server's have. Upstream sorts by them, and
/// not stably.
fn distinct_pod() -> impl Strategy<Value = Value> {
    pod(false).prop_map(|mut pod| {
        distinct(&mut pod);
        pod
    })
}

fn distinct(value: &mut Value) {
    match value {
        Value::Object(members) => members.values_mut().for_each(distinct),
        Value::Array(items) => {
            let mut seen = HashSet::new();
            items.retain(|item| match item.get("containerPort").or_else(|| item.get("name")) {
                Some(key) => seen.insert(key.to_string()),
                None => true,
            });
            items.iter_mut().for_each(distinct);
        }
        _ => {}
    }
}

/// A pod of few names; as a patch, with directives in all places, also wrong ones.
fn pod(patch: bool) -> impl Strategy<Value = Value> {
    let metadata = members(patch, "finalizers", strings(), map("labels", word(), patch));
    let port = pairs(vec![
        ("containerPort", (1i64..4).prop_map(Value::from).boxed()),
        ("protocol", one_of(&["TCP", "UDP"])),
        ("name", word()),
    ]);
    let env = pairs(vec![("name", word()), ("value", word())]);
    let container = pairs(vec![
        ("name", word()),
        ("image", word()),
        ("args", strings()),
        ("ports", list(port, patch)),
        ("env", list(env, patch)),
    ]);
    let volume = pairs(vec![
        ("name", word()),
        ("emptyDir", map("sizeLimit", word(), patch)),
        ("hostPath", map("path", word(), patch)),
        ("$retainKeys", if patch { strings() } else { Just(Value::Null).boxed() }),
    ]);
    let toleration = pairs(vec![("key", word()), ("operator", word())]);
    let spec = pairs(vec![
        ("containers", list(container, patch)),
        ("volumes", list(volume, patch)),
        ("tolerations", list(toleration, patch)),
        ("nodeSelector", map("disk", word(), patch)),
        ("hostname", word()),
    ]);
    let order = if patch {
        prop::option::of(prop::collection::vec(word(), 0..4)).boxed()
    } else {
        Just(None).boxed()
    };
    (metadata, spec, order).prop_map(|(metadata, mut spec, order)| {
        if let Some(order) = order {
            let order: Value = order.into_iter().map(|name| json!({ "name": name })).collect();
            spec["$setElementOrder/containers"] = order;
        }
        json!({ "metadata": metadata, "spec": spec })
    })
}

fn word() -> BoxedStrategy<Value> {
    one_of(&["a", "b", "c", "d"])
}

fn one_of(words: &'static [&'static str]) -> BoxedStrategy<Value> {
    prop::sample::select(words).prop_map(Value::from).boxed()
}

/// A list without duplicates. What upstream does with duplicates depends on the spare capacity of
/// a Go slice, which it overwrites while it still needs it.
fn strings() -> BoxedStrategy<Value> {
    let words = prop::sample::subsequence(&["a", "b", "c", "d"][..], 0..=4).prop_shuffle();
    words.prop_map(Value::from).boxed()
}

/// An object with some of these members; `null` means that it never has it.
fn pairs(members: Vec<(&'static str, BoxedStrategy<Value>)>) -> BoxedStrategy<Value> {
    let members: Vec<_> = members
        .into_iter()
        .map(|(name, value)| prop::option::weighted(0.6, value).prop_map(move |v| (name, v)))
        .collect();
    members
        .prop_map(|members| {
            let present = members.into_iter().filter_map(|(name, value)| {
                value.filter(|value| !value.is_null()).map(|value| (name.to_owned(), value))
            });
            Value::Object(present.collect::<Map<_, _>>())
        })
        .boxed()
}

/// A list of objects; in a patch some items are directives.
fn list(item: BoxedStrategy<Value>, patch: bool) -> BoxedStrategy<Value> {
    let directive = match patch {
        true => {
            prop::option::weighted(0.2, one_of(&["delete", "replace", "merge", "what"])).boxed()
        }
        false => Just(None).boxed(),
    };
    let item = (item, directive).prop_map(|(mut item, directive)| {
        if let Some(directive) = directive {
            item["$patch"] = directive;
        }
        item
    });
    prop::collection::vec(item, 0..4).prop_map(Value::from).boxed()
}

/// A map; in a patch it may carry a directive or a `null`.
fn map(key: &'static str, value: BoxedStrategy<Value>, patch: bool) -> BoxedStrategy<Value> {
    let value = match patch {
        true => prop_oneof![4 => value, 1 => Just(Value::Null)].boxed(),
        false => value,
    };
    let directive = match patch {
        true => prop::option::weighted(0.2, one_of(&["delete", "replace", "merge"])).boxed(),
        false => Just(None).boxed(),
    };
    (prop::option::of(value), directive)
        .prop_map(move |(value, directive)| {
            let mut map = json!({ "x": "y" });
            if let Some(value) = value {
                map[key] = value;
            }
            if let Some(directive) = directive {
                map["$patch"] = directive;
            }
            map
        })
        .boxed()
}

/// Metadata with a list of plain strings, which a patch may also take away or order.
fn members(
    patch: bool,
    name: &'static str,
    strings: BoxedStrategy<Value>,
    labels: BoxedStrategy<Value>,
) -> BoxedStrategy<Value> {
    let directive = || match patch {
        true => prop::option::weighted(0.3, strings.clone()).boxed(),
        false => Just(None).boxed(),
    };
    (prop::option::of(strings.clone()), directive(), directive(), labels)
        .prop_map(move |(values, delete, order, labels)| {
            let mut metadata = json!({ "labels": labels });
            // Whether upstream adds or deletes first is up to Go's order of map keys.
            let delete = delete.filter(|_| values.is_none() || order.is_some());
            let lists = [
                (name.to_owned(), values),
                (format!("$deleteFromPrimitiveList/{name}"), delete),
                (format!("$setElementOrder/{name}"), order),
            ];
            for (name, list) in lists {
                if let Some(list) = list {
                    metadata[name] = list;
                }
            }
            metadata
        })
        .boxed()
}
