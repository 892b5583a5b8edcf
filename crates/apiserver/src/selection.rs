//! Which objects of a resource are wanted.
//!
//! Labels are known of every revision. Fields are made from the object the first time somebody
//! selects by them, and kept with the revision.

#[cfg(test)]
mod tests;

use kubewright_apimachinery::selector::field::{self, Operator, UnsupportedField};
use kubewright_apimachinery::selector::label;
use kubewright_store::Rev;
use serde_json::Value;

use crate::encode::Renderer;
use crate::index::{self, Index};
use crate::kinds::Field;
use crate::resource::{Origin, Resource};

/// Which objects of a resource are wanted.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    labels: Option<label::Selector>,
    fields: Vec<Condition>,
}

/// What one field must be, or must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    source: Source,
    operator: Operator,
    value: String,
}

/// Where a field is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Name,
    Namespace,
    /// A position in the rules of a built-in kind.
    Rule(usize),
    /// A position in the selectable fields of a custom resource.
    Selectable(usize),
}

/// A field that cannot be selected by, in upstream's words, of which some kinds have their own.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error(transparent)]
    Unsupported(#[from] UnsupportedField),
    #[error("field label {} not supported for Job", kubewright_apimachinery::json::go_quote(.0))]
    OfJob(String),
}

impl Selection {
    /// Understands selectors as a resource does.
    pub fn new(
        resource: &Resource,
        labels: label::Selector,
        fields: field::Selector,
    ) -> Result<Self, FieldError> {
        let conditions = fields.terms.into_iter().map(|term| {
            let source = source(resource, &term.field)?;
            Ok(Condition { source, operator: term.operator, value: term.value })
        });
        Ok(Selection {
            labels: (!labels.is_everything()).then_some(labels),
            fields: conditions.collect::<Result<_, FieldError>>()?,
        })
    }

    /// The same, of the object of this name only.
    #[must_use]
    pub fn with_name(mut self, name: &str) -> Self {
        let value = name.to_owned();
        self.fields.push(Condition { source: Source::Name, operator: Operator::Equals, value });
        self
    }

    /// Whether everything is wanted.
    pub fn is_everything(&self) -> bool {
        self.labels.is_none() && self.fields.is_empty()
    }

    pub fn has_fields(&self) -> bool {
        !self.fields.is_empty()
    }

    /// The name that an object must have, if there is one.
    pub fn name(&self) -> Option<&str> {
        self.exact(Source::Name)
    }

    /// The namespace that an object must be in, if there is one.
    pub fn namespace(&self) -> Option<&str> {
        self.exact(Source::Namespace)
    }

    fn exact(&self, source: Source) -> Option<&str> {
        let mut conditions = self.fields.iter();
        let found = conditions
            .find(|condition| condition.source == source && condition.operator == Operator::Equals);
        found.map(|condition| condition.value.as_str())
    }

    /// Whether an object of this name is wanted that is in no namespace and has no labels.
    pub(crate) fn wants(&self, name: &str) -> bool {
        let is = |condition: &Condition| {
            let found = if condition.source == Source::Name { name } else { "" };
            (found == condition.value) == (condition.operator == Operator::Equals)
        };
        let labels = index::Labels::default();
        self.labels.as_ref().is_none_or(|selector| selector.matches(&labels))
            && self.fields.iter().all(is)
    }

    /// Whether a revision of the renderer's resource is wanted.
    pub fn matches(&self, renderer: &Renderer, rev: &Rev<Index>) -> bool {
        let labels = &rev.extracted.labels;
        self.labels.as_ref().is_none_or(|selector| selector.matches(labels))
            && self.fields.iter().all(|condition| condition.matches(renderer, rev))
    }
}

impl Condition {
    fn matches(&self, renderer: &Renderer, rev: &Rev<Index>) -> bool {
        let resource = renderer.resource();
        let is = |text: &str| (text == self.value) == (self.operator == Operator::Equals);
        match self.source {
            Source::Name => is(place(resource, rev).1),
            Source::Namespace => is(place(resource, rev).0),
            Source::Rule(position) => {
                let fields = rev.extracted.fields(|| made(resource, rev));
                is(fields.get(position).map_or("", |text| text))
            }
            Source::Selectable(position) => {
                is(renderer.selectable(rev).get(position).map_or("", String::as_str))
            }
        }
    }
}

/// The namespace, empty if there is none, and the name of an object.
fn place<'a>(resource: &Resource, rev: &'a Rev<Index>) -> (&'a str, &'a str) {
    let path = rev.key.as_str().strip_prefix(&*resource.prefix).unwrap_or_default();
    match resource.namespaced {
        true => path.split_once('/').unwrap_or_default(),
        false => ("", path),
    }
}

/// A field of a built-in object that selectors may ask for; the object is read once for all who
/// ask.
pub(crate) fn field<'a>(resource: &Resource, rev: &'a Rev<Index>, name: &str) -> Option<&'a str> {
    let Origin::Builtin(builtin) = &resource.origin else { return None };
    let named = |field: &Field| match field {
        Field::At(known) | Field::Made(known, _) => *known == name,
    };
    let position = builtin.fields.iter().position(named)?;
    rev.extracted.fields(|| made(resource, rev)).get(position).map(|text| &**text)
}

/// What the rules of a built-in kind make of an object.
fn made(resource: &Resource, rev: &Rev<Index>) -> Box<[Box<str>]> {
    let Origin::Builtin(builtin) = &resource.origin else { return Box::default() };
    let Some(object) = index::object(rev) else { return Box::default() };
    let make = |field: &Field| -> Box<str> {
        match field {
            Field::At(path) => text(at(&object, path)).into(),
            Field::Made(_, make) => make(&object).into(),
        }
    };
    builtin.fields.iter().map(make).collect()
}

fn at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    path.split('.').try_fold(object, |value, key| value.get(key))
}

/// A value as selectors compare it.
pub(crate) fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(value @ (Value::Bool(_) | Value::Number(_))) => value.to_string(),
        _ => String::new(),
    }
}

/// Understands the name of a field as the version of the resource has it.
fn source(resource: &Resource, field: &str) -> Result<Source, FieldError> {
    match &resource.origin {
        Origin::Builtin(builtin) => {
            let rules = builtin.fields;
            let field_name = hub_name(resource, field);
            match field_name.as_str() {
                "metadata.name" => return Ok(Source::Name),
                // Kinds outside of namespaces that know fields of their own know no namespace.
                "metadata.namespace" if resource.namespaced || rules.is_empty() => {
                    return Ok(Source::Namespace);
                }
                _ => {}
            }
            let named = |rule: &Field| match rule {
                Field::At(name) | Field::Made(name, _) => *name == field_name,
            };
            match rules.iter().position(named) {
                Some(position) => Ok(Source::Rule(position)),
                None => Err(unsupported(resource, rules.is_empty(), field)),
            }
        }
        Origin::Custom(custom) => {
            let mut selectable = custom.version().selectable_fields.iter();
            match field {
                "metadata.name" => Ok(Source::Name),
                "metadata.namespace" if resource.namespaced => Ok(Source::Namespace),
                _ => selectable
                    .position(|known| known.json_path.trim_start_matches('.') == field)
                    .map(Source::Selectable)
                    .ok_or_else(|| UnsupportedField::Label(field.to_owned()).into()),
            }
        }
    }
}

/// What the hub version calls a field.
fn hub_name(resource: &Resource, field: &str) -> String {
    match (resource.gvk.group.as_str(), resource.gvk.kind.as_str(), field) {
        ("", "Pod", "spec.host") => "spec.nodeName".to_owned(),
        ("events.k8s.io", "Event", "reportingController") => "reportingComponent".to_owned(),
        // The names that only the other version has.
        ("events.k8s.io", "Event", "reportingComponent" | "source") => String::new(),
        ("events.k8s.io", "Event", field) => match field.strip_prefix("regarding.") {
            Some(rest) => format!("involvedObject.{rest}"),
            None if field.starts_with("involvedObject.") => String::new(),
            None => field.to_owned(),
        },
        (_, _, field) => field.to_owned(),
    }
}

fn unsupported(resource: &Resource, only_metadata: bool, field: &str) -> FieldError {
    let field = field.to_owned();
    match (resource.gvk.group.as_str(), resource.gvk.kind.as_str()) {
        ("batch", "Job") => FieldError::OfJob(field),
        ("resource.k8s.io", "ResourceSlice") => {
            UnsupportedField::LabelOfKind { kind: resource.gvk.clone(), field }.into()
        }
        _ if only_metadata => UnsupportedField::NotMetadata(field).into(),
        _ => UnsupportedField::Label(field).into(),
    }
}
