//! Schemas, and objects that go through them.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Verdict, compare};
use crate::field;
use crate::schema::crd::{self, Definition};
use crate::schema::{self, Structural};
use crate::{field::Path, json as codec};

#[test]
fn objects_go_through_schemas_as_upstream_sends_them() {
    // What is generated follows the bytes, so that fewer bytes are a smaller case.
    let input = prop::collection::vec(any::<u8>(), 0..400).prop_map(|bytes| {
        let mut choices = Choices { bytes: bytes.into_iter(), wild: false };
        let schema = choices.root();
        let object = choices.object(3);
        let old = match choices.pick(3) {
            0 => Value::Null,
            1 => object.clone(),
            _ => choices.changed(object.clone()),
        };
        (schema, object, old)
    });
    let args = |(schema, object, old): &(Value, Value, Value)| json!({ "schema": schema, "object": object, "old": old });
    compare("structural", input, args, ours, |ours, upstream| match (ours, upstream) {
        (Ok(ours), Ok(upstream)) => *ours == in_order(upstream.clone()),
        // The first of several mistakes is not always the same one.
        (Err(_), Err(_)) => true,
        _ => false,
    });
}

#[test]
fn definitions_are_judged_as_upstream_judges_them() {
    let input = prop::collection::vec(any::<u8>(), 0..500).prop_map(|bytes| {
        let mut choices = Choices { bytes: bytes.into_iter(), wild: true };
        let new = choices.definition();
        let old = match choices.pick(3) {
            0 => Value::Null,
            1 => choices.definition(),
            _ => new.clone(),
        };
        (new, old)
    });
    let args = |(new, old): &(Value, Value)| json!({ "new": new, "old": old });
    let ours = |(new, old): &(Value, Value)| {
        let read = |definition: &Value| {
            let mut definition = definition.clone();
            crd::default(&mut definition);
            Definition::parse(&definition).map_err(|error| error.to_string())
        };
        let mut new = read(new)?;
        let errors = if old.is_null() {
            crd::prepare_create(&mut new);
            crd::validate_create(&new)
        } else {
            let old = read(old)?;
            crd::prepare_update(&mut new, &old);
            crd::validate_update(&new, &old)
        };
        Ok(in_order(json!({ "errors": printed(&errors) })))
    };
    compare("definition", input, args, ours, |ours, upstream| match (ours, upstream) {
        (Ok(ours), Ok(upstream)) => *ours == in_order(json!({ "errors": upstream })),
        // Fields of a wrong type are found by others, in other words.
        (Err(_), Err(_)) => true,
        // Selecting by fields of a schema that cannot be read crashes upstream.
        (Ok(_), Err(panic)) => panic.starts_with("runtime error"),
        _ => false,
    });
}

fn ours((schema, object, old): &(Value, Value, Value)) -> Verdict {
    let mut schema = Structural::parse(schema).map_err(|error| error.to_string())?;
    let wrong = crd::validate_structural(&schema, &Path::ROOT)?;
    if !wrong.is_empty() {
        return Ok(in_order(json!({ "refused": printed(&wrong) })));
    }
    schema::prune_defaults(&mut schema);
    let mut object = object.clone();
    let pruned = schema::prune(&mut object, &schema);
    schema::drop_nulls(&mut object, &schema);
    schema::default(&mut object, &schema);
    let old = (!old.is_null()).then_some(old);
    let errors = schema::validate(&object, old, &schema);
    let object = codec::decode(&codec::to_vec(&object)).expect("it is JSON").value;
    let pruned = if pruned.is_empty() { Value::Null } else { json!(pruned) };
    Ok(in_order(json!({ "object": object, "pruned": pruned, "errors": printed(&errors) })))
}

fn printed(errors: &[field::Error]) -> Vec<Value> {
    let print = |error: &field::Error| json!({ "field": error.field, "reason": error.kind.reason(), "body": error.body() });
    errors.iter().map(print).collect()
}

/// Upstream walks through maps in no particular order, and so do its complaints.
fn in_order(mut verdict: Value) -> Value {
    for list in ["errors", "refused"] {
        if let Some(Value::Array(errors)) = verdict.get_mut(list) {
            errors.sort_by_key(|error| (error["field"].to_string(), error["body"].to_string()));
        }
    }
    verdict
}

/// Random choices; when the bytes run out, the first of everything.
struct Choices {
    bytes: std::vec::IntoIter<u8>,
    /// Whether schemas may hold what no schema can.
    wild: bool,
}

impl Choices {
    fn pick(&mut self, n: u8) -> u8 {
        self.bytes.next().unwrap_or(0) % n
    }

    /// True `times` in sixteen.
    fn chance(&mut self, times: u8) -> bool {
        16 - self.pick(16) <= times
    }

    fn one_of(&mut self, values: &[Value]) -> Value {
        values[usize::from(self.pick(values.len() as u8))].clone()
    }

    fn name(&mut self) -> String {
        if self.wild && self.chance(2) {
            return ["metadata", "kind", "apiVersion", "name"][usize::from(self.pick(4))]
                .to_owned();
        }
        char::from(b'a' + self.pick(4)).to_string()
    }

    fn value(&mut self, depth: u8) -> Value {
        match self.pick(if depth == 0 { 8 } else { 12 }) {
            0 => json!("a"),
            1 => Value::Null,
            2 => json!(self.pick(4)),
            3 => json!(1.5),
            4 => json!(self.chance(8)),
            5 => json!("bc"),
            6 => json!(""),
            7 => self.one_of(&[json!(-1), json!(1.0), json!(1e20), json!("2020-01-01")]),
            8 | 9 => (0..self.pick(4)).map(|_| self.value(depth - 1)).collect(),
            _ => self.object(depth - 1),
        }
    }

    fn object(&mut self, depth: u8) -> Value {
        let names = (0..self.pick(5)).map(|_| (self.name(), self.value(depth)));
        Value::Object(names.collect())
    }

    fn changed(&mut self, mut value: Value) -> Value {
        match &mut value {
            Value::Object(map) => {
                for (_, value) in map.iter_mut() {
                    if self.chance(8) {
                        *value = self.changed(value.take());
                    }
                }
            }
            Value::Array(items) => {
                items.reverse();
                if self.chance(4) {
                    items.pop();
                }
            }
            _ => return self.value(1),
        }
        value
    }

    fn root(&mut self) -> Value {
        let mut schema = json!({"type": "object"});
        schema["properties"] = self.properties(3);
        self.junctions(&mut schema, 1);
        if self.chance(1) {
            schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
        }
        schema
    }

    fn properties(&mut self, depth: u8) -> Value {
        let names = (0..=self.pick(4)).map(|_| (self.name(), self.node(depth - 1)));
        Value::Object(names.collect())
    }

    /// A schema that says what stands somewhere.
    fn node(&mut self, depth: u8) -> Value {
        let mut schema = match self.pick(if depth == 0 { 8 } else { 14 }) {
            0 => json!({"type": "string"}),
            1 => json!({"type": "integer"}),
            2 => json!({"type": "number"}),
            3 => json!({"type": "boolean"}),
            4 => json!({"type": "object"}),
            5 => json!({"x-kubernetes-int-or-string": true}),
            6 => json!({"x-kubernetes-preserve-unknown-fields": true}),
            7 => json!({"type": "object", "additionalProperties": self.chance(8)}),
            8 => json!({"type": "object", "additionalProperties": self.node(depth - 1)}),
            9 => json!({"type": "array", "items": self.node(depth - 1)}),
            10 => json!({
                "type": "array",
                "items": self.node(depth - 1),
                "x-kubernetes-list-type": "set",
            }),
            11 => json!({
                "type": "array",
                "items": {"type": "object", "properties": self.properties(depth)},
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["a"],
            }),
            _ => json!({"type": "object", "properties": self.properties(depth)}),
        };
        self.restrictions(&mut schema, 2);
        self.junctions(&mut schema, 2);
        for (times, keyword, value) in [
            (3, "nullable", json!(true)),
            (1, "x-kubernetes-preserve-unknown-fields", json!(true)),
            (1, "x-kubernetes-embedded-resource", json!(true)),
        ] {
            if self.chance(times) {
                schema[keyword] = value;
            }
        }
        if self.chance(3) {
            schema["default"] = self.value(2);
        }
        if self.wild && self.chance(3) {
            self.mistake(&mut schema);
        }
        schema
    }

    /// Something that is refused, at least in most places.
    fn mistake(&mut self, schema: &mut Value) {
        let (keyword, value) = match self.pick(18) {
            0 => ("type", json!("text")),
            1 => ("type", json!("null")),
            2 => ("uniqueItems", json!(true)),
            3 => ("x-kubernetes-list-type", self.one_of(&["set", "map", "bag"].map(Value::from))),
            4 => ("x-kubernetes-list-map-keys", json!([self.name(), self.name()])),
            5 => ("x-kubernetes-map-type", self.one_of(&["atomic", "loose"].map(Value::from))),
            6 => ("$ref", json!("#/x")),
            7 => ("id", json!("x")),
            8 => ("patternProperties", json!({"^a": {"type": "string"}})),
            9 => ("definitions", json!({"x": self.node(0)})),
            10 => ("dependencies", json!({"x": ["y"], "z": self.node(0)})),
            11 => ("additionalItems", json!(true)),
            12 => ("items", json!([self.node(0), self.node(0)])),
            13 => ("x-kubernetes-preserve-unknown-fields", json!(false)),
            14 => ("additionalProperties", self.node(0)),
            15 => ("pattern", json!("a**")),
            16 => ("description", json!("x")),
            _ => ("properties", self.properties(1)),
        };
        schema[keyword] = value;
    }

    fn definition(&mut self) -> Value {
        let mut definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.example.com", "resourceVersion": "1"},
            "spec": {
                "group": "example.com",
                "scope": "Namespaced",
                "names": {"plural": "widgets", "kind": "Widget"},
            },
        });
        let spec = &mut definition["spec"];
        spec["versions"] = (0..=self.pick(2)).map(|index| self.version(index)).collect();
        if self.chance(2) {
            let strategy = self.one_of(&["None", "Webhook", "Magic"].map(Value::from));
            let url =
                self.one_of(&["https://a/b", "http://a", "https://a:b", "%"].map(Value::from));
            let versions = self.one_of(&[json!(["v1"]), json!(["v9", "v9"]), json!([])]);
            let config = json!({"url": url});
            let webhook = json!({"clientConfig": config, "conversionReviewVersions": versions});
            spec["conversion"] = json!({"strategy": strategy, "webhook": webhook});
        }
        if self.chance(1) {
            spec["names"]["shortNames"] = json!(["ok", "Not Ok"]);
        }
        if self.chance(1) {
            spec["scope"] = json!("Cluster");
        }
        if self.chance(1) {
            spec["names"]["kind"] = json!("Gadget");
        }
        if self.chance(4) {
            definition["status"] = json!({
                "conditions": [{"type": "Established", "status": "True"}],
                "storedVersions": self.one_of(&[json!(["v1"]), json!(["v0"]), json!(["v2", "v1"])]),
            });
        }
        definition
    }

    fn version(&mut self, index: u8) -> Value {
        let mut version = json!({
            "name": format!("v{}", index + 1 - u8::from(self.chance(1)) * index),
            "served": true,
            "storage": (index == 0) != self.chance(1),
        });
        if !self.chance(1) {
            version["schema"] = json!({"openAPIV3Schema": self.root()});
        }
        if self.chance(4) {
            version["subresources"] = json!({"status": {}});
        }
        if self.chance(2) {
            let path = self.one_of(&[".spec.a", "spec", ".status.b", ""].map(Value::from));
            version["subresources"]["scale"] =
                json!({"specReplicasPath": path, "statusReplicasPath": ".status.a"});
        }
        if self.chance(2) {
            let path = self.one_of(&[".a", "a", ""].map(Value::from));
            let type_ = self.one_of(&["string", "text", ""].map(Value::from));
            version["additionalPrinterColumns"] =
                json!([{"name": "a", "type": type_, "jsonPath": path}]);
        }
        if self.chance(3) {
            let paths = (0..=self.pick(3)).map(|_| {
                let path = format!(".{}.{}", self.name(), self.name());
                let path = if self.chance(10) { path[..2].to_owned() } else { path };
                json!({"jsonPath": path})
            });
            version["selectableFields"] = paths.collect();
        }
        version
    }

    /// Keywords that restrict values and stand for themselves.
    fn restrictions(&mut self, schema: &mut Value, times: u8) {
        let bounds = [json!(0), json!(1), json!(1.5), json!(-1), json!(2)];
        for keyword in ["minimum", "maximum", "multipleOf"] {
            if self.chance(times) {
                schema[keyword] = self.one_of(&bounds);
            }
        }
        for keyword in
            ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"]
        {
            if self.chance(times) {
                schema[keyword] = json!(self.pick(3));
            }
        }
        if self.chance(times) {
            schema["exclusiveMinimum"] = json!(true);
        }
        if self.chance(times) {
            let formats = ["date", "int32", "ipv4", "float", "odd", "hostname"].map(Value::from);
            schema["format"] = self.one_of(&formats);
        }
        if self.chance(times) {
            schema["pattern"] = self.one_of(&["^a", "c$", "^.?$", "^$"].map(Value::from));
        }
        if self.chance(times) {
            schema["enum"] = (0..=self.pick(3)).map(|_| self.value(1)).collect();
        }
        if self.chance(times) {
            schema["required"] = (0..=self.pick(2)).map(|_| self.name()).collect();
        }
    }

    /// `allOf` and its like.
    fn junctions(&mut self, schema: &mut Value, times: u8) {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            if self.chance(times) {
                schema[keyword] = (0..=self.pick(2)).map(|_| self.nested(2)).collect();
            }
        }
        if self.chance(times) {
            schema["not"] = self.nested(2);
        }
    }

    /// A schema below a junction, which restricts values.
    fn nested(&mut self, depth: u8) -> Value {
        let mut schema = json!({});
        self.restrictions(&mut schema, 3);
        if depth > 0 {
            if self.chance(6) {
                schema["properties"] = json!({self.name(): self.nested(depth - 1)});
            }
            if self.chance(4) {
                schema["items"] = self.nested(depth - 1);
            }
            if self.chance(2) {
                schema["not"] = self.nested(depth - 1);
            }
            if self.chance(2) {
                schema["anyOf"] = json!([self.nested(depth - 1), self.nested(depth - 1)]);
            }
        }
        if self.chance(1) {
            schema["type"] = json!("integer");
        }
        schema
    }
}
