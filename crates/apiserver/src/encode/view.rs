//! Views of objects: their metadata alone, or a table.

use std::sync::Arc;

use kubewright_apimachinery::field::{self, Path};
use kubewright_apimachinery::schema::{Malformed, normalize_object_meta};
use kubewright_apimachinery::status::{Reason, Status};
use kubewright_apimachinery::table::{
    ColumnDefinition, CustomColumns, Include, Options, Printer, Table,
};
use kubewright_apimachinery::time::MicroTime;
use kubewright_store::Rev;
use serde_json::{Value, json};

use super::{Describe, Encoder, Object, renderer};
use crate::index::Index;
use crate::negotiate::MetaVersion;
use crate::resource::{Origin, Resource};

/// Makes tables of objects of one resource.
pub(crate) struct Tables {
    resource: Arc<Resource>,
    printer: Printer,
    include: Include,
    describe: Describe,
}

impl Encoder {
    pub(crate) fn table(&self, resource: &Arc<Resource>, include: Include) -> Tables {
        Tables {
            resource: Arc::clone(resource),
            printer: printer(resource),
            include,
            describe: Arc::clone(&self.describe),
        }
    }
}

impl Tables {
    /// The table of one object.
    pub(super) fn rows(
        &self,
        object: Object,
        version: MetaVersion,
        now: MicroTime,
    ) -> Result<Value, Box<Status>> {
        Ok(match object {
            Object::Hub(object) | Object::Shown(object) => {
                self.table(&object, version, now, true)?
            }
            Object::Own(object) => {
                let printer = printer_of(&object);
                let options = self.options(now, true);
                Table::of(&printer, &object, &options).to_value(version.as_str())
            }
        })
    }

    /// A stored object as [`Tables::table`] takes it.
    pub(crate) fn row(&self, rev: &Rev<Index>) -> Result<Value, Box<Status>> {
        super::live(&self.resource, rev)
    }

    /// The table of an object or list, each object as [`Tables::row`] gives it.
    pub(crate) fn table(
        &self,
        answer: &Value,
        version: MetaVersion,
        now: MicroTime,
        headers: bool,
    ) -> Result<Value, Box<Status>> {
        let mut table = Table::of(&self.printer, answer, &self.options(now, headers));
        let is_hub = self.resource.hub.version == self.resource.gvk.version
            && self.resource.hub.group == self.resource.gvk.group;
        if self.include == Include::Object
            && !is_hub
            && matches!(self.resource.origin, Origin::Builtin(_))
        {
            for row in table.rows.iter_mut().flatten() {
                row.object = renderer::in_version(&self.resource, row.object.take())?;
            }
        }
        let mut table = table.to_value(version.as_str());
        if !headers {
            table["columnDefinitions"] = Value::Null;
        }
        Ok(table)
    }

    fn options(&self, now: MicroTime, headers: bool) -> Options<'_> {
        Options { include: self.include, headers, now, describe: &*self.describe }
    }
}

fn printer(resource: &Resource) -> Printer {
    match &resource.origin {
        Origin::Builtin(_) => Printer::builtin(&resource.hub.group, &resource.hub.kind),
        Origin::Custom(custom) => {
            let columns = custom.version().printer_columns.iter().map(|column| ColumnDefinition {
                name: column.name.clone(),
                ty: column.type_.clone(),
                format: column.format.clone(),
                description: column.description.clone(),
                priority: i32::try_from(column.priority).unwrap_or_default(),
                json_path: column.json_path.clone(),
            });
            Printer::Custom(CustomColumns::new(&columns.collect::<Vec<_>>()))
        }
    }
}

/// The printer of what an object, or each object of a list, says it is.
fn printer_of(object: &Value) -> Printer {
    let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default();
    let (group, _) = text("apiVersion").split_once('/').unwrap_or_default();
    let kind = match object.get("items") {
        Some(_) => text("kind").trim_end_matches("List"),
        None => text("kind"),
    };
    Printer::builtin(group, kind)
}

/// How much of each object goes into its row.
pub(crate) fn include(asked: &Result<Include, Box<str>>) -> Result<Include, Box<Status>> {
    asked.as_ref().copied().map_err(|asked| {
        let error = field::Error::invalid(
            &Path::new("includeObject"),
            &**asked,
            "must be 'Metadata', 'Object', 'None', or empty",
        );
        let message = format!("Unable to convert to Table as requested: {error}");
        Box::new(Status::bad_request(message))
    })
}

/// The metadata of an object, in the order of its type.
pub(super) fn metadata(object: &Value) -> Value {
    let metadata = object.get("metadata").unwrap_or(&Value::Null);
    match normalize_object_meta(metadata, Malformed::Drop) {
        Ok(normal) => Value::Object(normal.metadata),
        Err(_) => json!({}),
    }
}

/// The metadata of a list and of each of its objects.
pub(super) fn partial_list(list: &Value, version: MetaVersion) -> Value {
    let items = list["items"].as_array().into_iter().flatten();
    let items: Vec<Value> = items.map(|object| partial(object, version)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": version.api_version(),
        "metadata": list["metadata"],
        "items": items,
    })
}

/// The metadata of an object alone.
pub(crate) fn partial(object: &Value, version: MetaVersion) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": version.api_version(),
        "metadata": metadata(object),
    })
}

/// One object was found where a list was asked for.
pub(super) fn not_a_list(resource: &Resource) -> Box<Status> {
    let ty = go_type(resource, "");
    let asked = "you requested PartialObjectMetadataList, but the requested object is not a list";
    not_acceptable(format!("{asked} ({ty})"))
}

/// A list was found where one object was asked for.
pub(crate) fn not_an_object(resource: &Resource) -> Box<Status> {
    let ty = go_type(resource, "List");
    let asked = "you requested PartialObjectMetadata, but the requested object is a list";
    not_acceptable(format!("{asked} ({ty})"))
}

fn not_acceptable(message: String) -> Box<Status> {
    Box::new(Status::failure(406, Reason::NotAcceptable, message))
}

/// What upstream's code calls the objects of a resource, which it tells its clients here.
fn go_type(resource: &Resource, suffix: &str) -> String {
    match &resource.origin {
        Origin::Builtin(_) => {
            let package = match resource.hub.group.split('.').next().unwrap_or_default() {
                "" => "core",
                "internal" => "apiserverinternal",
                package => package,
            };
            format!("*{package}.{}{suffix}", resource.hub.kind)
        }
        Origin::Custom(_) => format!("*unstructured.Unstructured{suffix}"),
    }
}
