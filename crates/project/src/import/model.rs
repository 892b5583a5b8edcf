//! What Rust types a schema needs: a plan, of which [`render`](super::render) makes source.
//!
//! Types are named after the kind and the field they are for, with as many fields before it as it
//! takes to be the only one; equal schemas share a type. What Rust cannot say about an object (that
//! exactly one of several fields is set, a default) is told in its documentation.

use std::collections::{BTreeMap, VecDeque};

use kubewright_apimachinery::schema::{AdditionalProperties, Constraints, Structural, Type};
use serde_json::Value;

use super::docs;
use super::names::{Taken, camel, pascal};

/// What a field or an element is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TypeRef {
    Bool,
    I32,
    I64,
    F64,
    Text,
    IntOrString,
    /// A quantity, which is an integer of any size or a string.
    Quantity,
    /// Anything.
    Value,
    Condition,
    ObjectMeta,
    /// A whole object of any kind.
    Object,
    List(Box<TypeRef>),
    Map(Box<TypeRef>),
    Optional(Box<TypeRef>),
    Named(String),
}

/// A type to be declared.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    pub(super) name: String,
    pub(super) docs: Vec<String>,
    pub(super) body: Body,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Body {
    Struct {
        fields: Vec<Field>,
        /// The name of the field that keeps what the schema does not name.
        rest: Option<String>,
    },
    /// One of some strings; what clusters may say besides is kept.
    Choice { variants: Vec<(String, String)>, other: String },
    /// An object with exactly one of its fields.
    Union { variants: Vec<(String, String, TypeRef, Vec<String>)> },
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    /// The name in JSON, where serde would say another.
    pub(super) rename: Option<String>,
    pub(super) docs: Vec<String>,
    pub(super) type_: TypeRef,
    /// Whether it may be missing.
    pub(super) is_optional: bool,
}

/// A version of a kind.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Model {
    /// The kind itself: its fields beside apiVersion, kind and metadata.
    pub(super) root: Item,
    pub(super) items: Vec<Item>,
}

/// Names that the generated source uses otherwise.
const RESERVED: &[&str] = &[
    "Api",
    "BTreeMap",
    "Box",
    "Cache",
    "Client",
    "ClusterResourceScope",
    "Condition",
    "Cow",
    "Default",
    "Deserialize",
    "DynamicObject",
    "Err",
    "Informer",
    "IntOrString",
    "NamespaceResourceScope",
    "None",
    "ObjectMeta",
    "Ok",
    "Option",
    "Quantity",
    "Resource",
    "Result",
    "Scope",
    "Self",
    "Serialize",
    "Serializer",
    "Some",
    "String",
    "ToString",
    "Value",
    "Vec",
];

impl Model {
    pub(super) fn of(kind: &str, schema: &Structural) -> Self {
        let name = pascal_kind(kind);
        let mut planner = Planner { kind: name.clone(), ..Planner::default() };
        planner.types.insert(name.clone(), None);
        let body = planner.root(schema);
        let root = Item { name, docs: described(schema), body };
        while let Some((name, path, schema)) = planner.queue.pop_front() {
            let (body, mut notes) = planner.body(&path, &schema);
            let mut docs = described(&schema);
            append(&mut docs, &mut notes);
            planner.items.push(Item { name, docs, body });
        }
        Model { root, items: planner.items }
    }

    /// Whether a type can do without being told anything.
    pub(super) fn has_default(&self, type_: &TypeRef) -> bool {
        match type_ {
            TypeRef::Quantity | TypeRef::Object => false,
            TypeRef::Named(name) => {
                let item = self.items.iter().find(|item| item.name == *name);
                item.is_some_and(|item| self.body_has_default(&item.body))
            }
            _ => true,
        }
    }

    pub(super) fn body_has_default(&self, body: &Body) -> bool {
        match body {
            Body::Struct { fields, .. } => {
                fields.iter().all(|field| field.is_optional || self.has_default(&field.type_))
            }
            Body::Choice { .. } | Body::Union { .. } => false,
        }
    }
}

/// A kind as a type. Kinds are written as types are, so it stays as it is wherever it can.
fn pascal_kind(kind: &str) -> String {
    let is_fine = kind.starts_with(char::is_alphabetic) && kind.chars().all(char::is_alphanumeric);
    let name = if is_fine { kind.to_owned() } else { pascal(kind) };
    if RESERVED.contains(&name.as_str()) { format!("{name}Resource") } else { name }
}

#[derive(Default)]
struct Planner {
    kind: String,
    items: Vec<Item>,
    /// What each name stands for; None for names that stand for something else.
    types: BTreeMap<String, Option<Structural>>,
    queue: VecDeque<(String, Vec<String>, Structural)>,
}

impl Planner {
    fn root(&mut self, schema: &Structural) -> Body {
        let mut taken = Taken::with(&["metadata"]);
        let known = ["apiVersion", "kind", "metadata"];
        let fields = schema
            .properties
            .iter()
            .filter(|(name, _)| !known.contains(name))
            .map(|(name, field)| self.field(schema, name, field, &[], &mut taken))
            .collect();
        let rest = schema.preserves_unknown_fields().then(|| taken.field("rest"));
        Body::Struct { fields, rest }
    }

    fn field(
        &mut self,
        parent: &Structural,
        name: &str,
        schema: &Structural,
        path: &[String],
        taken: &mut Taken,
    ) -> Field {
        let path = [path, &[name.to_owned()]].concat();
        let is_meta = name == "metadata"
            && (parent.extensions.embedded_resource || parent_is_object(parent))
            && schema.properties.is_empty()
            && schema.additional_properties.is_none();
        let type_ = if is_meta { TypeRef::ObjectMeta } else { self.type_of(&path, schema) };
        let is_required = constraints(parent).required.iter().any(|it| **it == *name);
        let mut docs = described(schema);
        if !schema.properties.is_empty() && docs.len() > 3 {
            // The rest stands at the type.
            docs.truncate(1);
        }
        append(&mut docs, &mut remarks(schema));
        let field = taken.field(name);
        let rename = (camel(&field) != name).then(|| name.to_owned());
        let type_ = match schema.nullable || !is_required {
            true => TypeRef::Optional(Box::new(type_)),
            false => type_,
        };
        Field { name: field, rename, docs, type_, is_optional: !is_required }
    }

    fn type_of(&mut self, path: &[String], schema: &Structural) -> TypeRef {
        if schema.extensions.int_or_string {
            return match &constraints(schema).pattern {
                Some(_) => TypeRef::Quantity,
                None => TypeRef::IntOrString,
            };
        }
        match &schema.type_ {
            Some(Type::Boolean) => TypeRef::Bool,
            Some(Type::Integer) => match format(schema) {
                "int32" => TypeRef::I32,
                _ => TypeRef::I64,
            },
            Some(Type::Number) => TypeRef::F64,
            Some(Type::String) if !choices(schema).is_empty() => self.named(path, schema),
            Some(Type::String) => TypeRef::Text,
            Some(Type::Array) => {
                TypeRef::List(Box::new(self.element(path, schema.items.as_deref())))
            }
            Some(Type::Object) => self.object(path, schema),
            Some(Type::Other(_)) => TypeRef::Value,
            // Fields without a type are described all the same by some.
            None if !schema.properties.is_empty() => self.object(path, schema),
            None => TypeRef::Value,
        }
    }

    fn element(&mut self, path: &[String], schema: Option<&Structural>) -> TypeRef {
        let Some(schema) = schema else { return TypeRef::Value };
        let type_ = self.type_of(path, schema);
        match schema.nullable {
            true => TypeRef::Optional(Box::new(type_)),
            false => type_,
        }
    }

    fn object(&mut self, path: &[String], schema: &Structural) -> TypeRef {
        if schema.extensions.embedded_resource {
            let known = ["apiVersion", "kind", "metadata"];
            let is_any = schema.properties.iter().all(|(name, _)| known.contains(&name));
            if is_any {
                return TypeRef::Object;
            }
        }
        if is_condition(schema) {
            return TypeRef::Condition;
        }
        if !schema.properties.is_empty() {
            return self.named(path, schema);
        }
        let value = match &schema.additional_properties {
            Some(AdditionalProperties::Schema(values)) => self.element(path, Some(values)),
            Some(AdditionalProperties::Allowed(_)) | None => TypeRef::Value,
        };
        TypeRef::Map(Box::new(value))
    }

    /// The type for a schema: one that there is, or a new one.
    fn named(&mut self, path: &[String], schema: &Structural) -> TypeRef {
        let mut bare = schema.clone();
        (bare.documentation, bare.default, bare.nullable) = (None, None, false);
        let suffixes = (0..path.len()).rev().map(|from| {
            let words = path[from..].iter().map(|word| pascal(word)).collect::<String>();
            format!("{}{words}", self.kind)
        });
        let numbered = (2..).map(|number| {
            let words = path.iter().map(|word| pascal(word)).collect::<String>();
            format!("{}{words}{number}", self.kind)
        });
        let names: Vec<_> = suffixes.chain(numbered.take(1000)).collect();
        for name in names {
            match self.types.get(&name) {
                Some(Some(known)) if *known == bare => return TypeRef::Named(name),
                Some(_) => {}
                None if RESERVED.contains(&name.as_str()) => {}
                None => {
                    self.types.insert(name.clone(), Some(bare));
                    self.queue.push_back((name.clone(), path.to_vec(), schema.clone()));
                    return TypeRef::Named(name);
                }
            }
        }
        // A thousand schemas that differ, of fields whose names do not: they differ in signs only.
        TypeRef::Value
    }

    fn body(&mut self, path: &[String], schema: &Structural) -> (Body, Vec<String>) {
        let choices = choices(schema);
        if !choices.is_empty() && schema.is_type(&Type::String) {
            let mut taken = Taken::default();
            let variants =
                choices.iter().map(|value| (taken.variant(value), value.clone())).collect();
            return (Body::Choice { variants, other: taken.variant("Other") }, Vec::new());
        }
        if is_union(schema) {
            let mut taken = Taken::default();
            let variants = schema.properties.iter().map(|(name, field)| {
                let path = [path, &[name.to_owned()]].concat();
                let type_ = self.type_of(&path, field);
                (taken.variant(name), name.to_owned(), type_, described(field))
            });
            return (Body::Union { variants: variants.collect() }, Vec::new());
        }
        let mut taken = Taken::default();
        let fields = schema
            .properties
            .iter()
            .map(|(name, field)| self.field(schema, name, field, path, &mut taken))
            .collect();
        let rest = schema.preserves_unknown_fields().then(|| taken.field("rest"));
        (Body::Struct { fields, rest }, alternatives(schema))
    }
}

fn constraints(schema: &Structural) -> &Constraints {
    static NONE: std::sync::LazyLock<Constraints> = std::sync::LazyLock::new(Constraints::default);
    schema.constraints.as_deref().unwrap_or(&NONE)
}

fn format(schema: &Structural) -> &str {
    constraints(schema).format.as_ref().map_or("", |format| &format.name)
}

/// The strings that are allowed, if some are and nothing else is.
fn choices(schema: &Structural) -> Vec<String> {
    let values = constraints(schema).enumeration.iter().filter(|value| !value.is_null());
    let texts: Option<Vec<_>> = values.map(|value| value.as_str().map(str::to_owned)).collect();
    texts.unwrap_or_default()
}

/// Whether the schema describes a whole object without saying that it does.
fn parent_is_object(schema: &Structural) -> bool {
    ["apiVersion", "kind"].iter().all(|name| schema.properties.get(name).is_some())
}

/// Whether these, and no others, are the fields of Kubernetes' own conditions.
fn is_condition(schema: &Structural) -> bool {
    const REQUIRED: [&str; 5] = ["lastTransitionTime", "message", "reason", "status", "type"];
    let required = &constraints(schema).required;
    let known = |name: &str| REQUIRED.contains(&name) || name == "observedGeneration";
    !schema.preserves_unknown_fields()
        && schema.properties.len() >= REQUIRED.len()
        && schema.properties.iter().all(|(name, _)| known(name))
        && REQUIRED.iter().all(|name| required.iter().any(|it| **it == **name))
}

/// Whether an object must have one of its fields and cannot have two.
fn is_union(schema: &Structural) -> bool {
    let constraints = constraints(schema);
    if schema.properties.len() < 2
        || schema.preserves_unknown_fields()
        || !constraints.required.is_empty()
    {
        return false;
    }
    let by_count = constraints.min_properties == Some(1) && constraints.max_properties == Some(1);
    let demanded: Vec<_> = constraints.one_of.iter().map(demands_only).collect();
    let by_choice = demanded.len() == schema.properties.len()
        && schema.properties.iter().all(|(name, _)| demanded.contains(&Some(name)));
    by_count || by_choice
}

/// The one field that an alternative demands, if that is all it says.
fn demands_only(alternative: &Structural) -> Option<&str> {
    let constraints = alternative.constraints.as_deref()?;
    let bare = Structural { constraints: None, ..alternative.clone() };
    let rest = Constraints { required: Vec::new(), ..constraints.clone() };
    match &*constraints.required {
        [name] if rest == Constraints::default() && bare == Structural::default() => Some(name),
        _ => None,
    }
}

/// What is to be known of fields that exclude or need each other.
fn alternatives(schema: &Structural) -> Vec<String> {
    let constraints = constraints(schema);
    let fields = |alternatives: &[Structural]| {
        let demanded: Option<Vec<_>> = alternatives
            .iter()
            .filter(|it| it.constraints.as_ref().is_none_or(|it| it.not.is_none()))
            .map(demands_only)
            .collect();
        demanded
            .filter(|it| it.len() > 1)
            .map(|it| it.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
    };
    let may_be_none = |alternatives: &[Structural]| {
        alternatives.iter().any(|it| it.constraints.as_ref().is_some_and(|it| it.not.is_some()))
    };
    let one = fields(&constraints.one_of).map(|fields| {
        let word = if may_be_none(&constraints.one_of) { "At most" } else { "Exactly" };
        format!("{word} one of {fields} is set.")
    });
    let any = fields(&constraints.any_of).map(|fields| format!("At least one of {fields} is set."));
    one.into_iter().chain(any).collect()
}

fn described(schema: &Structural) -> Vec<String> {
    let text = schema.documentation.as_ref().map_or("", |it| &it.description);
    docs::lines(text)
}

/// What the type of a field does not say.
fn remarks(schema: &Structural) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(default) = &schema.default {
        remarks.push(format!("Default: `{default}`."));
    }
    let enumeration = &constraints(schema).enumeration;
    if !enumeration.is_empty() && choices(schema).is_empty() {
        let values: Vec<_> = enumeration.iter().map(Value::to_string).collect();
        remarks.push(format!("One of `{}`.", values.join("`, `")));
    }
    remarks
}

fn append(docs: &mut Vec<String>, remarks: &mut Vec<String>) {
    if !docs.is_empty() && !remarks.is_empty() {
        docs.push(String::new());
    }
    docs.append(remarks);
}
