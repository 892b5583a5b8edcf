//! What OpenAPI says of a kind, as a type of expressions.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::escape;
use super::types::Type;
use crate::gvk::GroupVersionKind;

/// A document says nothing of a kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("find the schema of {0}")]
pub struct UnknownKind(pub GroupVersionKind);

impl Type {
    /// The type of a kind's objects, from the OpenAPI v3 document of its group and version. What
    /// has no one type, as a quantity has none, is no field of it.
    pub fn of_open_api(document: &Value, kind: &GroupVersionKind) -> Result<Self, UnknownKind> {
        let schemas = document["components"]["schemas"].as_object();
        let found = schemas.into_iter().flatten().find(|(_, schema)| names(schema, kind));
        let (Some(schemas), Some((name, root))) = (schemas, found) else {
            return Err(UnknownKind(kind.clone()));
        };
        let mut reader = Reader { schemas, within: vec![name] };
        Ok(reader.read(root, true, &kind.kind).unwrap_or(Type::Dyn))
    }
}

/// Whether a schema is that of a kind.
fn names(schema: &Value, kind: &GroupVersionKind) -> bool {
    let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
    kinds.into_iter().any(|named| {
        named["group"] == *kind.group
            && named["version"] == *kind.version
            && named["kind"] == *kind.kind
    })
}

struct Reader<'a> {
    schemas: &'a Map<String, Value>,
    /// The schemas that are being read. Nothing is known of what is inside itself.
    within: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    /// None of what expressions cannot use.
    fn read(&mut self, schema: &'a Value, is_resource: bool, name: &str) -> Option<Type> {
        let Some(referred) = reference(schema) else {
            return self.read_plain(schema, is_resource, name);
        };
        if self.within.contains(&referred) {
            return Some(Type::object(name, BTreeMap::new()));
        }
        let schema = self.schemas.get(referred)?;
        self.within.push(referred);
        let read = self.read_plain(schema, is_resource, name);
        self.within.pop();
        read
    }

    fn read_plain(&mut self, schema: &'a Value, is_resource: bool, name: &str) -> Option<Type> {
        let format = schema["format"].as_str();
        if format == Some("int-or-string") || schema["x-kubernetes-int-or-string"] == true {
            return Some(Type::Dyn);
        }
        Some(match schema["type"].as_str()? {
            "array" => Type::list(self.part(schema.get("items")?, &format!("{name}.@idx"))?),
            "object" => match schema.get("additionalProperties").filter(|more| more.is_object()) {
                Some(more) => Type::map(Type::String, self.part(more, &format!("{name}.@elem"))?),
                None => self.object(schema, is_resource, name),
            },
            "string" => match format {
                Some("byte") => Type::Bytes,
                Some("duration") => Type::Duration,
                Some("date" | "date-time") => Type::Timestamp,
                _ => Type::String,
            },
            "boolean" => Type::Bool,
            "number" => Type::Double,
            "integer" => Type::Int,
            _ => return None,
        })
    }

    fn part(&mut self, schema: &'a Value, name: &str) -> Option<Type> {
        let is_resource = schema["x-kubernetes-embedded-resource"] == true;
        self.read(schema, is_resource, name)
    }

    fn object(&mut self, schema: &'a Value, is_resource: bool, name: &str) -> Type {
        let mut fields = BTreeMap::new();
        for (property, schema) in schema["properties"].as_object().into_iter().flatten() {
            let Some(escaped) = escape::escape(property) else { continue };
            if let Some(type_) = self.part(schema, &format!("{name}.{escaped}")) {
                fields.insert(Box::from(&*escaped), type_);
            }
        }
        if is_resource && !has_identity(&fields) {
            let metadata = ["name", "generateName"].map(|field| (field.into(), Type::String));
            let metadata = Type::object(format!("{name}.metadata"), metadata.into());
            for (field, type_) in
                [("apiVersion", Type::String), ("kind", Type::String), ("metadata", metadata)]
            {
                fields.insert(field.into(), type_);
            }
        }
        Type::object(name, fields)
    }
}

/// Whether the fields that every resource has are there.
fn has_identity(fields: &BTreeMap<Box<str>, Type>) -> bool {
    let is_text =
        |fields: &BTreeMap<Box<str>, Type>, field| matches!(fields.get(field), Some(Type::String));
    let Some(Type::Object(metadata)) = fields.get("metadata") else { return false };
    is_text(fields, "kind")
        && is_text(fields, "apiVersion")
        && is_text(&metadata.fields, "name")
        && is_text(&metadata.fields, "generateName")
}

/// The schema that another one only refers to. A reference with a description stands in `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let own = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/components/schemas/"));
    own.or_else(|| schema["allOf"].as_array()?.iter().find_map(reference))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cel::Expression;

    /// Checks an expression about a `self` of the kind Thing.
    #[track_caller]
    fn check(expression: &str, expected: Result<&str, &str>) {
        let kind = |kind: &str| json!([{ "group": "g", "version": "v1", "kind": kind }]);
        let reference = |name: &str| json!({ "$ref": format!("#/components/schemas/{name}") });
        let document = json!({ "components": { "schemas": {
            "Thing": {
                "type": "object",
                "x-kubernetes-group-version-kind": kind("Thing"),
                "properties": {
                    "when": { "type": "string", "format": "date-time" },
                    "port": { "oneOf": [{ "type": "integer" }], "format": "int-or-string" },
                    "amount": { "oneOf": [{ "type": "string" }, { "type": "number" }] },
                    "amounts": {
                        "type": "object",
                        "additionalProperties": { "oneOf": [{ "type": "string" }] },
                    },
                    "child": { "allOf": [reference("Part")], "description": "A part." },
                    "children": { "type": "array", "items": reference("Part") },
                    "namespace": { "type": "boolean" },
                },
            },
            "Part": {
                "type": "object",
                "properties": { "size": { "type": "integer" }, "part": reference("Part") },
            },
        } } });
        let thing = GroupVersionKind::new("g", "v1", "Thing");
        let type_ = Type::of_open_api(&document, &thing).expect("it is there");
        let checked = Expression::check(expression, &[("self", type_)]);
        let found = checked.map(|checked| checked.result_type().to_string());
        match (found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(issues), Err(expected)) => {
                let issues = issues.to_string();
                assert!(issues.contains(expected), "{issues}");
            }
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
    }

    #[test]
    fn fields_have_the_types_that_schemas_say() {
        check("self.when", Ok("timestamp"));
        check("self.port", Ok("dyn"));
        check("self.child.size", Ok("int"));
        check("self.children.map(child, child.size)", Ok("list(int)"));
        check("self.__namespace__", Ok("bool"));
        check("self.namespace", Ok("bool"));
        check("self.child.sise", Err("undefined field 'sise'"));
    }

    #[test]
    fn what_has_no_one_type_is_no_field() {
        check("self.amount", Err("undefined field 'amount'"));
        check("self.amounts", Err("undefined field 'amounts'"));
    }

    #[test]
    fn nothing_is_known_of_what_is_inside_itself() {
        check("has(self.child.part)", Ok("bool"));
        check("self.child.part.size", Err("undefined field 'size'"));
    }

    #[test]
    fn every_resource_has_a_name() {
        check("self.metadata.name + self.kind", Ok("string"));
        check("self.metadata.labels", Err("undefined field 'labels'"));
    }

    #[test]
    fn other_kinds_are_unknown() {
        let kind = GroupVersionKind::new("g", "v1", "Other");
        assert_eq!(Type::of_open_api(&json!({}), &kind), Err(UnknownKind(kind)));
    }
}
