//! From the JSON of a schema to its tree.
//!
//! Unknown keywords are dropped, as the decoder of a definition drops them; a keyword whose value
//! has the wrong form is an error.

use serde_json::{Map, Value};

use super::{
    AdditionalProperties, Constraints, Dependency, Documentation, Extensions, ExternalDocs, Format,
    Pattern, Properties, Rule, Structural, Type, Unsupported,
};
use crate::regex::Regex;

/// A keyword that does not have the form it must have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{keyword}: {expected} expected")]
pub struct ParseError {
    pub keyword: String,
    pub expected: &'static str,
}

pub(super) fn structural(value: &Value) -> Result<Structural, ParseError> {
    let Value::Object(map) = value else {
        return Err(ParseError { keyword: "schema".to_owned(), expected: "JSON schema" });
    };
    let fields = Fields(map);
    Ok(Structural {
        type_: fields.text("type")?.filter(|text| !text.is_empty()).map(Type::parse),
        nullable: fields.flag("nullable")?,
        default: fields.json("default"),
        properties: fields.schemas_by_name("properties")?,
        additional_properties: fields.schema_or_bool("additionalProperties")?,
        items: match fields.get("items") {
            Some(items @ Value::Object(_)) => Some(Box::new(structural(items)?)),
            _ => None,
        },
        extensions: extensions(fields)?,
        constraints: boxed(constraints(fields)?),
        documentation: boxed(documentation(fields)?),
        unsupported: boxed(unsupported(fields)?),
    })
}

/// Nothing at all takes no room.
fn boxed<T: Default + PartialEq>(value: T) -> Option<Box<T>> {
    (value != T::default()).then(|| Box::new(value))
}

fn extensions(fields: Fields<'_>) -> Result<Extensions, ParseError> {
    Ok(Extensions {
        preserve_unknown_fields: fields.optional_flag("x-kubernetes-preserve-unknown-fields")?,
        embedded_resource: fields.flag("x-kubernetes-embedded-resource")?,
        int_or_string: fields.flag("x-kubernetes-int-or-string")?,
        list_type: fields.text("x-kubernetes-list-type")?.map(Into::into),
        list_map_keys: fields.texts("x-kubernetes-list-map-keys")?,
        map_type: fields.text("x-kubernetes-map-type")?.map(Into::into),
        validations: fields
            .list("x-kubernetes-validations")?
            .iter()
            .map(rule)
            .collect::<Result<_, _>>()?,
    })
}

fn rule(value: &Value) -> Result<Rule, ParseError> {
    let fields = Fields::of(value, "x-kubernetes-validations")?;
    Ok(Rule {
        rule: fields.owned_text("rule")?,
        message: fields.owned_text("message")?,
        message_expression: fields.owned_text("messageExpression")?,
        reason: fields.text("reason")?.map(str::to_owned),
        field_path: fields.owned_text("fieldPath")?,
        optional_old_self: fields.optional_flag("optionalOldSelf")?,
    })
}

fn constraints(fields: Fields<'_>) -> Result<Constraints, ParseError> {
    Ok(Constraints {
        format: fields.text("format")?.filter(|name| !name.is_empty()).map(Format::new),
        maximum: fields.float("maximum")?,
        exclusive_maximum: fields.flag("exclusiveMaximum")?,
        minimum: fields.float("minimum")?,
        exclusive_minimum: fields.flag("exclusiveMinimum")?,
        max_length: fields.integer("maxLength")?,
        min_length: fields.integer("minLength")?,
        pattern: fields
            .text("pattern")?
            .filter(|text| !text.is_empty())
            .map(|text| Pattern { text: text.into(), compiled: Regex::new(text) }),
        max_items: fields.integer("maxItems")?,
        min_items: fields.integer("minItems")?,
        unique_items: fields.flag("uniqueItems")?,
        multiple_of: fields.float("multipleOf")?,
        enumeration: fields.list("enum")?.to_vec(),
        max_properties: fields.integer("maxProperties")?,
        min_properties: fields.integer("minProperties")?,
        required: fields.texts("required")?,
        all_of: fields.schemas("allOf")?,
        one_of: fields.schemas("oneOf")?,
        any_of: fields.schemas("anyOf")?,
        not: fields.get("not").map(structural).transpose()?.map(Box::new),
    })
}

fn documentation(fields: Fields<'_>) -> Result<Documentation, ParseError> {
    Ok(Documentation {
        title: fields.owned_text("title")?,
        description: fields.owned_text("description")?,
        example: fields.json("example"),
        external_docs: match fields.get("externalDocs") {
            None => None,
            Some(docs) => {
                let docs = Fields::of(docs, "externalDocs")?;
                Some(ExternalDocs {
                    description: docs.owned_text("description")?,
                    url: docs.owned_text("url")?,
                })
            }
        },
    })
}

fn unsupported(fields: Fields<'_>) -> Result<Unsupported, ParseError> {
    Ok(Unsupported {
        id: fields.owned_text("id")?,
        schema: fields.owned_text("$schema")?,
        reference: fields.text("$ref")?.map(str::to_owned),
        item_list: match fields.get("items") {
            Some(Value::Array(items)) => items.iter().map(structural).collect::<Result<_, _>>()?,
            _ => Vec::new(),
        },
        additional_items: fields.schema_or_bool("additionalItems")?,
        pattern_properties: fields.schemas_by_name("patternProperties")?,
        definitions: fields.schemas_by_name("definitions")?,
        dependencies: match fields.get("dependencies") {
            None => None,
            Some(Value::Object(map)) => Some(
                map.iter()
                    .map(|(name, value)| Ok((name.as_str().into(), dependency(value)?)))
                    .collect::<Result<_, _>>()?,
            ),
            Some(_) => return Err(wrong("dependencies", "object")),
        },
    })
}

fn dependency(value: &Value) -> Result<Dependency, ParseError> {
    let mut dependency = Dependency::default();
    match value {
        Value::Object(_) => dependency.schema = Some(structural(value)?),
        Value::Array(names) => {
            let name = |name: &Value| name.as_str().map(Into::into);
            let names: Option<_> = names.iter().map(name).collect();
            dependency.properties =
                names.ok_or_else(|| wrong("dependencies", "array of strings"))?;
        }
        _ => {}
    }
    Ok(dependency)
}

fn wrong(keyword: &str, expected: &'static str) -> ParseError {
    ParseError { keyword: keyword.to_owned(), expected }
}

/// An object whose fields are taken out by name and form. A null is as good as absent.
#[derive(Clone, Copy)]
pub(super) struct Fields<'v>(pub(super) &'v Map<String, Value>);

impl<'v> Fields<'v> {
    pub(super) fn of(value: &'v Value, keyword: &str) -> Result<Self, ParseError> {
        value.as_object().map(Fields).ok_or_else(|| wrong(keyword, "object"))
    }

    pub(super) fn get(self, keyword: &str) -> Option<&'v Value> {
        self.0.get(keyword).filter(|value| !value.is_null())
    }

    fn json(self, keyword: &str) -> Option<Value> {
        self.get(keyword).cloned()
    }

    pub(super) fn text(self, keyword: &str) -> Result<Option<&'v str>, ParseError> {
        self.get(keyword)
            .map(|value| value.as_str().ok_or_else(|| wrong(keyword, "string")))
            .transpose()
    }

    pub(super) fn owned_text(self, keyword: &str) -> Result<String, ParseError> {
        Ok(self.text(keyword)?.unwrap_or_default().to_owned())
    }

    pub(super) fn optional_flag(self, keyword: &str) -> Result<Option<bool>, ParseError> {
        self.get(keyword)
            .map(|value| value.as_bool().ok_or_else(|| wrong(keyword, "boolean")))
            .transpose()
    }

    pub(super) fn flag(self, keyword: &str) -> Result<bool, ParseError> {
        Ok(self.optional_flag(keyword)?.unwrap_or(false))
    }

    pub(super) fn integer(self, keyword: &str) -> Result<Option<i64>, ParseError> {
        self.get(keyword)
            .map(|value| value.as_i64().ok_or_else(|| wrong(keyword, "integer")))
            .transpose()
    }

    fn float(self, keyword: &str) -> Result<Option<f64>, ParseError> {
        self.get(keyword)
            .map(|value| value.as_f64().ok_or_else(|| wrong(keyword, "number")))
            .transpose()
    }

    pub(super) fn list(self, keyword: &str) -> Result<&'v [Value], ParseError> {
        match self.get(keyword) {
            None => Ok(&[]),
            Some(Value::Array(list)) => Ok(list),
            Some(_) => Err(wrong(keyword, "array")),
        }
    }

    pub(super) fn texts<T: From<&'v str>>(self, keyword: &str) -> Result<Vec<T>, ParseError> {
        self.list(keyword)?
            .iter()
            .map(|value| match value {
                // Go leaves a string empty when it reads null into it.
                Value::Null => Ok("".into()),
                Value::String(text) => Ok(text.as_str().into()),
                _ => Err(wrong(keyword, "array of strings")),
            })
            .collect()
    }

    fn schemas(self, keyword: &str) -> Result<Vec<Structural>, ParseError> {
        self.list(keyword)?.iter().map(structural).collect()
    }

    fn schemas_by_name(self, keyword: &str) -> Result<Properties, ParseError> {
        match self.get(keyword) {
            None => Ok(Properties::default()),
            Some(Value::Object(map)) => map
                .iter()
                .map(|(name, schema)| Ok((name.as_str().into(), structural(schema)?)))
                .collect::<Result<_, _>>()
                .map(Properties::new),
            Some(_) => Err(wrong(keyword, "object of JSON schemas")),
        }
    }

    fn schema_or_bool(self, keyword: &str) -> Result<Option<AdditionalProperties>, ParseError> {
        Ok(Some(match self.get(keyword) {
            None => return Ok(None),
            Some(Value::Bool(allowed)) => AdditionalProperties::Allowed(*allowed),
            Some(schema @ Value::Object(_)) => {
                AdditionalProperties::Schema(Box::new(structural(schema)?))
            }
            Some(_) => return Err(wrong(keyword, "boolean or JSON schema")),
        }))
    }
}
