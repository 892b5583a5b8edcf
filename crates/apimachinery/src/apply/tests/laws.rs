//! Laws that hold for all sets and all objects.

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::apply::{
    ApplyError, FieldManager, PathElement, ResetFields, SameInAllVersions, Schema, Set, extract,
};

fn element() -> impl Strategy<Value = PathElement> {
    prop_oneof![
        prop::sample::select(vec!["a", "b", "c"]).prop_map(PathElement::field),
        (0..3i64).prop_map(|n| PathElement::key(vec![("k".into(), n.into())])),
        (0..3i64).prop_map(|n| PathElement::Value(Box::new(n.into()))),
        (0..2i64).prop_map(PathElement::Index),
    ]
}

fn path() -> impl Strategy<Value = Vec<PathElement>> {
    prop::collection::vec(element(), 1..4)
}

fn set() -> impl Strategy<Value = Set> {
    prop::collection::vec(path(), 0..8).prop_map(|paths| {
        let mut set = Set::new();
        paths.into_iter().for_each(|path| set.insert(path));
        set
    })
}

proptest! {
    #[test]
    fn operations_are_those_of_sets(a in set(), b in set(), c in set(), path in path()) {
        let (in_a, in_b) = (a.contains(&path), b.contains(&path));
        let or = a.clone().union(b.clone());
        let and = a.intersection(&b);
        let without = a.clone().difference(&b);

        prop_assert_eq!(or.contains(&path), in_a || in_b);
        prop_assert_eq!(and.contains(&path), in_a && in_b);
        prop_assert_eq!(without.contains(&path), in_a && !in_b);
        prop_assert_eq!(&or, &b.clone().union(a.clone()));
        prop_assert_eq!(&and, &b.intersection(&a));
        prop_assert_eq!(without.clone().union(and.clone()), a.clone());
        prop_assert_eq!(or.len(), a.len() + b.len() - and.len());
        prop_assert_eq!(or.clone().union(c.clone()), a.clone().union(b.clone().union(c)));
        prop_assert_eq!(a.is_subset(&b), a.clone().difference(&b).is_empty());
    }

    #[test]
    fn a_recursive_difference_leaves_nothing_below_a_member(a in set(), b in set()) {
        let left = a.clone().recursive_difference(&b);
        prop_assert!(left.is_subset(&a.clone().difference(&b)));
        let mut covered = true;
        a.for_each(|path| {
            let removed = (1..=path.len()).any(|n| b.contains(&path[..n]));
            covered &= left.contains(path) != removed;
        });
        prop_assert!(covered);
    }

    #[test]
    fn leaves_are_members_without_members_below(a in set()) {
        let leaves = a.clone().leaves();
        let mut right = true;
        a.for_each(|path| {
            let mut has_longer = false;
            a.for_each(|other| has_longer |= other.len() > path.len() && other.starts_with(path));
            right &= leaves.contains(path) != has_longer;
        });
        prop_assert!(right && leaves.is_subset(&a));
    }

    #[test]
    fn what_is_written_reads_back(a in set()) {
        let fields = a.to_fields_v1();
        let again = Set::from_fields_v1(&fields).unwrap();
        prop_assert_eq!(&again, &a);
        prop_assert_eq!(again.to_fields_v1().to_string(), fields.to_string());
    }

    #[test]
    fn any_text_is_an_element_or_an_error(text in "[fkvix]?:?.{0,12}") {
        if let Ok(element) = PathElement::parse(&text) {
            prop_assert_eq!(PathElement::parse(&element.encode()).unwrap(), element);
        }
    }

    /// Applying the same again changes nothing, not even a time.
    #[test]
    fn apply_is_idempotent(first in spec(), config in spec()) {
        let kind = Kind::new();
        let created = kind.apply(None, &first, "a", 1).unwrap();
        let applied = kind.apply(Some(&created), &config, "b", 2).unwrap();
        prop_assert_eq!(&kind.apply(Some(&applied), &config, "b", 3).unwrap(), &applied);
    }

    /// An applier that takes its configuration back leaves what was there before, as far as it
    /// has not taken it from its owner.
    #[test]
    fn an_applier_that_leaves_takes_along_what_it_added(first in spec(), config in spec()) {
        let kind = Kind::new();
        let created = kind.apply(None, &first, "a", 1).unwrap();
        let Ok(applied) = kind.apply_politely(&created, &config, "b", 2) else { return Ok(()) };
        let left = kind.apply(Some(&applied), &json!({}), "b", 3).unwrap();
        prop_assert_eq!(without_empty(unordered(left)), without_empty(unordered(created)));
    }

    /// What an applier owns is what it applied, and extracting gives it back.
    #[test]
    fn what_was_applied_can_be_extracted(config in spec(), other in spec()) {
        let kind = Kind::new();
        let created = kind.apply(None, &config, "a", 1).unwrap();
        let Ok(both) = kind.apply_politely(&created, &other, "b", 2) else { return Ok(()) };
        let mut extracted = extract(kind.schema(), &both, "a", "").unwrap_or_else(|| kind.object(&json!({})));
        extracted["metadata"] = json!({"name": "w"});
        prop_assert_eq!(without_empty(unordered(extracted)), without_empty(unordered(kind.object(&config))));
    }

    /// After an update nobody owns what is not there, and everything changed has one owner.
    #[test]
    fn an_update_owns_what_it_changed(first in spec(), second in spec()) {
        let kind = Kind::new();
        let created = kind.apply(None, &first, "a", 1).unwrap();
        let mut live = created.clone();
        live["metadata"]["uid"] = "u".into();
        let new = kind.object(&second);
        let updated = kind.manager().update(Some(&live), new, "u", time(2));
        let again = kind.manager().update(Some(&updated_with_uid(&updated)), kind.object(&second), "u", time(3));
        prop_assert_eq!(&again["metadata"]["managedFields"], &updated["metadata"]["managedFields"]);
    }
}

fn updated_with_uid(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["uid"] = "u".into();
    object
}

/// A kind with every topology.
struct Kind {
    versions: SameInAllVersions,
    reset: ResetFields,
    empty: Value,
    schema: Schema,
}

impl Kind {
    fn new() -> Self {
        let text = json!({"type": "string"});
        let schema = Schema::structural(&json!({"type": "object", "properties": {"spec": {
            "type": "object",
            "properties": {
                "text": text,
                "map": {"type": "object", "additionalProperties": text},
                "set": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
                "list": {"type": "array", "items": text},
                "items": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"name": text, "value": text}},
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                },
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            },
        }}}));
        Kind {
            versions: SameInAllVersions::new([("g/v1".to_owned(), schema.clone())]),
            reset: ResetFields::none(),
            empty: json!({"apiVersion": "g/v1", "kind": "Widget"}),
            schema,
        }
    }

    fn schema(&self) -> &Schema {
        &self.schema
    }

    fn manager(&self) -> FieldManager<'_> {
        FieldManager {
            api_version: "g/v1",
            kind: "Widget",
            subresource: "",
            versions: &self.versions,
            reset: &self.reset,
            empty: &self.empty,
        }
    }

    fn object(&self, spec: &Value) -> Value {
        json!({"apiVersion": "g/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": spec})
    }

    fn apply(
        &self,
        live: Option<&Value>,
        spec: &Value,
        manager: &str,
        second: i64,
    ) -> Result<Value, ApplyError> {
        self.manager().apply(live, &self.object(spec), manager, true, time(second))
    }

    fn apply_politely(
        &self,
        live: &Value,
        spec: &Value,
        manager: &str,
        second: i64,
    ) -> Result<Value, ApplyError> {
        self.manager().apply(Some(live), &self.object(spec), manager, false, time(second))
    }
}

fn time(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn spec() -> impl Strategy<Value = Value> {
    let text = || prop::sample::select(vec!["1", "2"]).prop_map(Value::from);
    let name = || prop::sample::select(vec!["x", "y", "z"]);
    let map = || prop::collection::btree_map(name(), text(), 1..3).prop_map(object);
    let list = || prop::collection::vec(text(), 1..3).prop_map(Value::from);
    let set = || {
        prop::collection::btree_set(name(), 1..4).prop_map(|set| set.into_iter().collect::<Value>())
    };
    let items =
        prop::collection::btree_map(name(), prop::option::of(text()), 1..4).prop_map(|items| {
            let item = |(name, value): (&str, Option<Value>)| match value {
                Some(value) => json!({"name": name, "value": value}),
                None => json!({"name": name}),
            };
            items.into_iter().map(item).collect::<Value>()
        });
    let free = prop::collection::btree_map(name(), prop_oneof![text(), map(), list()], 1..3)
        .prop_map(object);
    let fields = (
        prop::option::of(text()),
        prop::option::of(map()),
        prop::option::of(set()),
        prop::option::of(list()),
        prop::option::of(items),
        prop::option::of(free),
    );
    fields.prop_map(|(text, map, set, list, items, free)| {
        let fields = [
            ("text", text),
            ("map", map),
            ("set", set),
            ("list", list),
            ("items", items),
            ("free", free),
        ];
        let present =
            fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(present.collect())
    })
}

fn object(entries: std::collections::BTreeMap<&str, Value>) -> Value {
    Value::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

/// Sets and keyed lists in an order of their own, so that only membership is compared.
fn unordered(mut object: Value) -> Value {
    object["metadata"].as_object_mut().map(|metadata| metadata.shift_remove("managedFields"));
    for name in ["set", "items"] {
        if let Some(items) = object["spec"].get_mut(name).and_then(Value::as_array_mut) {
            items.sort_by_key(Value::to_string);
        }
    }
    object
}

/// Without what an applier leaves of a container it has emptied.
fn without_empty(value: Value) -> Value {
    let Value::Object(map) = value else { return value };
    let entries = map.into_iter().map(|(key, value)| (key, without_empty(value)));
    Value::Object(
        entries.filter(|(_, value)| !value.is_null() && *value != json!({})).collect::<Map<_, _>>(),
    )
}
