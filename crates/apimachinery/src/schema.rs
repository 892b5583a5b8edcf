//! Structural schemas: what a CustomResourceDefinition says about its objects.
//!
//! A schema is read once, when its definition is accepted, into a tree of [`Structural`] nodes.
//! A request then goes through, in this order:
//!
//! 1. [`prune`] drops what the schema does not know and says what it dropped;
//! 2. [`drop_nulls`] drops nulls that mean nothing;
//! 3. [`coerce`] brings the metadata of embedded objects into shape;
//! 4. [`default`] fills in what is missing;
//! 5. [`validate`] says what is wrong with the values;
//! 6. [`Rules`] say what breaks the schema's own rules (`x-kubernetes-validations`).
//!
//! Whether a definition may be stored at all is decided by [`crd`].

mod coerce;
pub mod crd;
mod default;
mod format;
mod list;
mod object_meta;
mod parse;
mod prune;
mod rules;
mod validate;

#[cfg(test)]
mod tests;

use serde_json::Value;

pub use self::coerce::{Malformed, coerce, validate_embedded};
pub use self::default::{default, drop_nulls, prune_defaults};
pub use self::format::Format;
pub(crate) use self::format::moment::duration_nanos;
pub(crate) use self::format::uri::Uri;
pub use self::list::validate_lists;
pub use self::object_meta::{Normalized, normalize as normalize_object_meta};
pub use self::parse::ParseError;
pub use self::prune::prune;
pub use self::rules::{Findings, Rules};
pub use self::validate::{validate, validate_status};
use crate::regex::{self, Regex};

/// One node of a schema, with every keyword that was written.
///
/// The same type serves below `allOf`, `anyOf`, `oneOf` and `not`, where only keywords about
/// values are welcome; [`crd`] refuses the others there.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Structural {
    pub type_: Option<Type>,
    pub nullable: bool,
    pub default: Option<Value>,
    pub properties: Properties,
    pub additional_properties: Option<AdditionalProperties>,
    pub items: Option<Box<Structural>>,
    pub extensions: Extensions,
    /// Restrictions on values; most nodes have none.
    pub constraints: Option<Box<Constraints>>,
    /// What only people read.
    pub documentation: Option<Box<Documentation>>,
    /// Keywords that no accepted definition has.
    pub unsupported: Option<Box<Unsupported>>,
}

/// The value of `type`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Type {
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
    /// A word that is no type; [`crd`] refuses it.
    Other(Box<str>),
}

impl Type {
    fn parse(text: &str) -> Self {
        match text {
            "object" => Type::Object,
            "array" => Type::Array,
            "string" => Type::String,
            "integer" => Type::Integer,
            "number" => Type::Number,
            "boolean" => Type::Boolean,
            other => Type::Other(other.into()),
        }
    }

    pub fn as_str(&self) -> &str {
        match self {
            Type::Object => "object",
            Type::Array => "array",
            Type::String => "string",
            Type::Integer => "integer",
            Type::Number => "number",
            Type::Boolean => "boolean",
            Type::Other(text) => text,
        }
    }
}

/// The properties of an object, by name.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Properties(Box<[(Box<str>, Structural)]>);

impl Properties {
    fn new(mut properties: Vec<(Box<str>, Structural)>) -> Self {
        properties.sort_by(|(a, _), (b, _)| a.cmp(b));
        Properties(properties.into())
    }

    pub fn get(&self, name: &str) -> Option<&Structural> {
        let index = self.0.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        Some(&self.0[index].1)
    }

    /// In order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Structural)> {
        self.0.iter().map(|(name, schema)| (&**name, schema))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Structural)> {
        self.0.iter_mut().map(|(name, schema)| (&**name, schema))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// What may stand in an object beside its properties.
#[derive(Debug, Clone, PartialEq)]
pub enum AdditionalProperties {
    Allowed(bool),
    Schema(Box<Structural>),
}

/// Kubernetes' own keywords.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Extensions {
    pub preserve_unknown_fields: Option<bool>,
    pub embedded_resource: bool,
    pub int_or_string: bool,
    pub list_type: Option<Box<str>>,
    pub list_map_keys: Vec<Box<str>>,
    pub map_type: Option<Box<str>>,
    pub validations: Vec<Rule>,
}

/// One of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}

/// Restrictions on values.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Constraints {
    pub format: Option<Format>,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: Option<Pattern>,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub multiple_of: Option<f64>,
    pub enumeration: Vec<Value>,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub required: Vec<Box<str>>,
    pub all_of: Vec<Structural>,
    pub one_of: Vec<Structural>,
    pub any_of: Vec<Structural>,
    pub not: Option<Box<Structural>>,
}

/// A `pattern`, compiled once. A definition whose patterns do not compile is refused, so that
/// only its validation ever sees the error.
#[derive(Debug, Clone)]
pub struct Pattern {
    pub text: Box<str>,
    pub compiled: Result<Regex, regex::Error>,
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Documentation {
    pub title: String,
    pub description: String,
    pub example: Option<Value>,
    pub external_docs: Option<ExternalDocs>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExternalDocs {
    pub description: String,
    pub url: String,
}

/// Keywords of JSON Schema that Kubernetes does not take.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unsupported {
    pub id: String,
    pub schema: String,
    pub reference: Option<String>,
    pub item_list: Vec<Structural>,
    pub additional_items: Option<AdditionalProperties>,
    pub pattern_properties: Properties,
    pub definitions: Properties,
    pub dependencies: Option<Vec<(Box<str>, Dependency)>>,
}

/// A schema, or a list of names, or neither.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Dependency {
    pub schema: Option<Structural>,
    pub properties: Vec<Box<str>>,
}

impl Structural {
    /// Reads a schema as it stands in `openAPIV3Schema`.
    pub fn parse(value: &Value) -> Result<Self, ParseError> {
        parse::structural(value)
    }

    pub fn is_type(&self, type_: &Type) -> bool {
        self.type_.as_ref() == Some(type_)
    }

    /// The word after `type`; empty when there is none.
    pub fn type_name(&self) -> &str {
        self.type_.as_ref().map_or("", Type::as_str)
    }

    pub fn preserves_unknown_fields(&self) -> bool {
        self.extensions.preserve_unknown_fields == Some(true)
    }

    /// The schema of what stands beside the properties.
    pub fn additional_schema(&self) -> Option<&Structural> {
        match &self.additional_properties {
            Some(AdditionalProperties::Schema(schema)) => Some(schema),
            _ => None,
        }
    }

    /// The schema of the field `name`: its own, or that of additional properties.
    pub fn field(&self, name: &str) -> Option<&Structural> {
        self.properties.get(name).or_else(|| self.additional_schema())
    }

    pub fn is_list_type(&self, list_type: &str) -> bool {
        self.extensions.list_type.as_deref() == Some(list_type)
    }

    /// The same schema for the root of an object, which always carries metadata of its own.
    fn is_embedded(&self, is_root: bool) -> bool {
        is_root || self.extensions.embedded_resource
    }
}

/// Fields that every object has, whatever its schema says.
fn is_meta_field(name: &str) -> bool {
    matches!(name, "apiVersion" | "kind" | "metadata")
}
