//! Tables: the columns and rows that `kubectl get` prints.
//!
//! A [`Printer`] knows the columns of a kind and turns an object into cells; [`Table::of`] makes
//! the `meta.k8s.io/v1` Table that answers a GET or LIST. Built-in kinds have their printers
//! here, custom resources bring their columns along, and every other kind shows its name and
//! when it was created. Ages are told relative to a `now` that the caller hands in.

pub mod age;
mod builtin;
mod custom;
mod fields;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use custom::{ColumnDefinition, CustomColumns};
use fields::Fields;

use crate::time::MicroTime;

/// How the objects of a kind are shown.
#[derive(Debug, Clone)]
pub enum Printer {
    Builtin(&'static BuiltinPrinter),
    Custom(CustomColumns),
    /// Name and creation time, for kinds that nobody has thought about.
    Default,
}

/// The columns of a built-in kind and how their cells are made.
#[derive(Debug)]
pub struct BuiltinPrinter {
    group: &'static str,
    kind: &'static str,
    columns: &'static [Column],
    /// A list of cells, as many as there are columns (one more for IP addresses, as upstream).
    cells: fn(Fields<'_>) -> Value,
    /// What programs are told about a row.
    conditions: fn(Fields<'_>) -> Vec<Value>,
    /// Puts the items of a list in the order in which they are shown, if it is another.
    sort: Option<fn(&mut [&Value])>,
}

/// A column of a built-in kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    name: &'static str,
    ty: &'static str,
    format: &'static str,
    priority: i32,
    doc: Doc,
}

/// What a column is for, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doc {
    None,
    Text(&'static str),
    /// The description of a field. The type is that of the table of built-in types, without
    /// `k8s.io/api/`, as in `core/v1.PodSpec`.
    Field {
        ty: &'static str,
        field: &'static str,
    },
}

/// How much of each object goes into its row.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Include {
    None,
    #[default]
    Metadata,
    Object,
}

/// What the caller of [`Table::of`] decides.
pub struct Options<'a> {
    pub include: Include,
    /// Watches send the column definitions only with their first event.
    pub headers: bool,
    pub now: MicroTime,
    /// Looks up the description of a field; types are named as in [`Doc::Field`].
    pub describe: &'a dyn Fn(&str, &str) -> Option<String>,
}

/// A `meta.k8s.io` Table.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// The `metadata` of a list.
    pub metadata: Map<String, Value>,
    pub columns: Vec<Value>,
    /// `None` prints as `null`, as upstream answers for an empty list without a printer.
    pub rows: Option<Vec<Row>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    pub cells: Value,
    pub conditions: Vec<Value>,
    pub object: Value,
}

impl Printer {
    /// The printer of a built-in kind. Objects are expected in the version that
    /// [`crate::conversion`] converts from: core/v1 Events, autoscaling/v2 autoscalers.
    pub fn builtin(group: &str, kind: &str) -> Printer {
        match builtin::printer(group, kind) {
            Some(printer) => Printer::Builtin(printer),
            None => Printer::Default,
        }
    }

    fn columns(&self, describe: &dyn Fn(&str, &str) -> Option<String>) -> Vec<Value> {
        match self {
            Printer::Builtin(printer) => {
                printer.columns.iter().map(|column| column.definition(describe)).collect()
            }
            Printer::Custom(columns) => columns.definitions(describe),
            Printer::Default => {
                [NAME, CREATED_AT].iter().map(|column| column.definition(describe)).collect()
            }
        }
    }

    fn conditions(&self, object: &Value, now: MicroTime) -> Vec<Value> {
        match self {
            Printer::Builtin(printer) => (printer.conditions)(Fields::new(object, now)),
            Printer::Custom(_) | Printer::Default => Vec::new(),
        }
    }

    fn cells(&self, object: &Value, now: MicroTime) -> Value {
        let fields = Fields::new(object, now);
        match self {
            Printer::Builtin(printer) => (printer.cells)(fields),
            Printer::Custom(columns) => columns.cells(object, now),
            Printer::Default => {
                json!([fields.name(), fields.text("metadata.creationTimestamp")])
            }
        }
    }
}

impl Table {
    /// The table of an object, or of the items of a list. Items of lists may lack their kind;
    /// it is that of the list without `List`.
    pub fn of(printer: &Printer, answer: &Value, options: &Options<'_>) -> Table {
        let mut metadata = Map::new();
        let items = answer.get("items").and_then(Value::as_array);
        let keys: &[&str] = match items {
            Some(_) => &["resourceVersion", "continue", "remainingItemCount"],
            None => &["resourceVersion"],
        };
        for key in keys {
            let value = answer.get("metadata").and_then(|metadata| metadata.get(key));
            if let Some(value) = value.filter(|value| *value != "") {
                metadata.insert((*key).to_owned(), value.clone());
            }
        }
        let columns = match options.headers {
            true => printer.columns(options.describe),
            false => Vec::new(),
        };
        let type_meta = TypeMeta::of_items(answer);
        let mut items: Vec<&Value> = match items {
            Some(items) => items.iter().collect(),
            None => vec![answer],
        };
        if let Printer::Builtin(BuiltinPrinter { sort: Some(sort), .. }) = printer {
            sort(&mut items);
        }
        let rows: Vec<Row> = items
            .into_iter()
            .map(|object| Row {
                cells: printer.cells(object, options.now),
                conditions: printer.conditions(object, options.now),
                object: type_meta.included(object, options.include),
            })
            .collect();
        let none = rows.is_empty() && matches!(printer, Printer::Default);
        Table { metadata, columns, rows: (!none).then_some(rows) }
    }

    /// The table as it is sent; `version` is the one asked for, `v1` or `v1beta1`.
    pub fn to_value(&self, version: &str) -> Value {
        let rows = self.rows.as_ref().map(|rows| {
            rows.iter()
                .map(|row| {
                    let mut value = json!({"cells": row.cells});
                    if !row.conditions.is_empty() {
                        value["conditions"] = row.conditions.clone().into();
                    }
                    value["object"] = row.object.clone();
                    if row.object.get("kind") == Some(&"PartialObjectMetadata".into()) {
                        value["object"]["apiVersion"] = format!("meta.k8s.io/{version}").into();
                    }
                    value
                })
                .collect::<Vec<_>>()
        });
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{version}"),
            "metadata": self.metadata,
            "columnDefinitions": self.columns,
            "rows": rows,
        })
    }
}

/// What the items of an answer are.
struct TypeMeta {
    api_version: Value,
    kind: Value,
}

impl TypeMeta {
    fn of_items(answer: &Value) -> TypeMeta {
        let kind = answer.get("kind").and_then(Value::as_str).unwrap_or_default();
        let kind = match answer.get("items") {
            Some(_) => kind.strip_suffix("List").unwrap_or(kind),
            None => kind,
        };
        let api_version = answer.get("apiVersion").cloned().unwrap_or_default();
        TypeMeta { api_version, kind: kind.into() }
    }

    fn included(&self, object: &Value, include: Include) -> Value {
        match include {
            Include::None => Value::Null,
            Include::Metadata => json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": object.get("metadata").cloned().unwrap_or_else(|| json!({})),
            }),
            Include::Object if object.get("kind").is_some() => object.clone(),
            Include::Object => {
                let mut whole = Map::new();
                whole.insert("kind".to_owned(), self.kind.clone());
                whole.insert("apiVersion".to_owned(), self.api_version.clone());
                whole.extend(object.as_object().cloned().unwrap_or_default());
                Value::Object(whole)
            }
        }
    }
}

const NAME: Column = text("Name", of("meta/v1.ObjectMeta", "name")).as_name();
const AGE: Column = text("Age", of("meta/v1.ObjectMeta", "creationTimestamp"));
const CREATED_AT: Column =
    Column { ty: "date", ..text("Created At", of("meta/v1.ObjectMeta", "creationTimestamp")) };

const fn text(name: &'static str, doc: Doc) -> Column {
    Column { name, ty: "string", format: "", priority: 0, doc }
}

const fn integer(name: &'static str, doc: Doc) -> Column {
    Column { ty: "integer", ..text(name, doc) }
}

const fn boolean(name: &'static str, doc: Doc) -> Column {
    Column { ty: "boolean", ..text(name, doc) }
}

const fn of(ty: &'static str, field: &'static str) -> Doc {
    Doc::Field { ty, field }
}

impl Column {
    /// Shown only when asked for everything (`-o wide`).
    const fn wide(self) -> Column {
        Column { priority: 1, ..self }
    }

    /// Tells objects apart.
    const fn as_name(self) -> Column {
        Column { format: "name", ..self }
    }

    fn definition(&self, describe: &dyn Fn(&str, &str) -> Option<String>) -> Value {
        let description = match self.doc {
            Doc::None => String::new(),
            Doc::Text(text) => text.to_owned(),
            Doc::Field { ty, field } => describe(ty, field).unwrap_or_default(),
        };
        definition(self.name, self.ty, self.format, &description, self.priority)
    }
}

fn definition(name: &str, ty: &str, format: &str, description: &str, priority: i32) -> Value {
    json!({
        "name": name,
        "type": ty,
        "format": format,
        "description": description,
        "priority": priority,
    })
}
