//! CustomResourceDefinitions: what one says, and whether it may be stored.
//!
//! The rules and their wording are upstream's, which judges not the definition as it is written
//! but an older form of it. There, what all versions have in common (always so when there is only
//! one) stands once, beside `versions`: a mistake in the schema of a single version is reported at
//! `spec.validation.openAPIV3Schema`. See `Shared`.

mod conversion;
mod defaults;
pub(super) mod field_path;
mod internal;
mod openapi;
mod parse;
mod rules;
mod structural;
mod validate;

use serde_json::{Map, Value, json};

pub use self::conversion::validate_client_config;
pub use self::structural::validate as validate_structural;
pub use self::validate::{
    approval_condition, validate_create, validate_status_update, validate_update, warnings,
};
use super::{ParseError, Structural};

/// A CustomResourceDefinition of `apiextensions.k8s.io/v1`, after defaulting.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    pub metadata: Map<String, Value>,
    pub spec: Spec,
    pub status: Status,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Spec {
    pub group: String,
    pub names: Names,
    /// `Cluster` or `Namespaced`.
    pub scope: String,
    /// `None` when the field is missing altogether.
    pub versions: Option<Vec<Version>>,
    pub conversion: Option<Conversion>,
    pub preserve_unknown_fields: bool,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Names {
    pub plural: String,
    pub singular: String,
    pub short_names: Vec<String>,
    pub kind: String,
    pub list_kind: String,
    pub categories: Vec<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Version {
    pub name: String,
    pub served: bool,
    pub storage: bool,
    pub deprecated: bool,
    pub deprecation_warning: Option<String>,
    pub schema: Option<Schema>,
    pub subresources: Option<Subresources>,
    pub printer_columns: Vec<PrinterColumn>,
    pub selectable_fields: Vec<SelectableField>,
}

/// The value of `schema`, which may be empty.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Schema {
    pub open_api_v3_schema: Option<Structural>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Subresources {
    pub status: bool,
    pub scale: Option<Scale>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Scale {
    pub spec_replicas_path: String,
    pub status_replicas_path: String,
    pub label_selector_path: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct PrinterColumn {
    pub name: String,
    pub type_: String,
    pub format: String,
    pub description: String,
    pub priority: i64,
    pub json_path: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct SelectableField {
    pub json_path: String,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversion {
    /// `None` or `Webhook`.
    pub strategy: String,
    pub client_config: Option<ClientConfig>,
    pub review_versions: Vec<String>,
}

/// Where a webhook is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientConfig {
    pub url: Option<String>,
    pub service: Option<Service>,
    /// PEM, no longer in base64.
    pub ca_bundle: Vec<u8>,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Service {
    pub namespace: String,
    pub name: String,
    pub path: Option<String>,
    pub port: i64,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Status {
    pub established: bool,
    pub accepted_names: Names,
    pub stored_versions: Vec<String>,
}

impl Definition {
    /// Reads a definition. Fails only on fields of a wrong type.
    pub fn parse(definition: &Value) -> Result<Self, ParseError> {
        parse::definition(definition)
    }

    pub fn versions(&self) -> &[Version] {
        self.spec.versions()
    }

    /// The version that objects are stored in.
    pub fn storage_version(&self) -> Option<&Version> {
        self.versions().iter().find(|version| version.storage)
    }
}

impl Spec {
    pub fn versions(&self) -> &[Version] {
        self.versions.as_deref().unwrap_or_default()
    }

    /// Every schema of every version.
    fn schemas(&self) -> impl Iterator<Item = &Structural> {
        self.versions().iter().filter_map(|version| version.open_api_v3_schema())
    }
}

impl Version {
    pub fn open_api_v3_schema(&self) -> Option<&Structural> {
        self.schema.as_ref()?.open_api_v3_schema.as_ref()
    }

    pub fn has_status(&self) -> bool {
        self.subresources.as_ref().is_some_and(|subresources| subresources.status)
    }
}

/// Fills in what upstream fills in when a definition is decoded.
pub fn default(definition: &mut Value) {
    default_stored_versions(definition);
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    match spec.get_mut("conversion") {
        None | Some(Value::Null) => {
            spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
        }
        Some(conversion) => {
            let service = conversion.pointer_mut("/webhook/clientConfig/service");
            if let Some(service) = service.and_then(Value::as_object_mut) {
                service.entry("port").or_insert_with(|| 443.into());
            }
        }
    }
    let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) else { return };
    let text = |names: &Map<String, Value>, name: &str| {
        names.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let kind = text(names, "kind");
    if text(names, "singular").is_empty() {
        names.insert("singular".to_owned(), kind.to_lowercase().into());
    }
    if text(names, "listKind").is_empty() && !kind.is_empty() {
        names.insert("listKind".to_owned(), format!("{kind}List").into());
    }
}

/// Something was stored in the version that says so, if nothing else is known.
fn default_stored_versions(definition: &mut Value) {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    if !list(definition.pointer("/status/storedVersions")).is_empty() {
        return;
    }
    let versions = list(definition.pointer("/spec/versions"));
    let Some(stored) = versions.iter().find(|version| version["storage"] == true) else { return };
    let stored = json!([stored["name"].as_str().unwrap_or_default()]);
    let Some(definition) = definition.as_object_mut() else { return };
    let status = definition.entry("status").or_insert_with(|| json!({}));
    if let Some(status) = status.as_object_mut() {
        status.insert("storedVersions".to_owned(), stored);
    }
}

/// Takes the status away from a new definition, except for the version that is stored.
pub fn prepare_create(definition: &mut Definition) {
    definition.status = Status::default();
    remember_storage_version(definition);
}

/// Gives a changed definition the status of the old one, and remembers the version that is stored.
pub fn prepare_update(definition: &mut Definition, old: &Definition) {
    definition.status = old.status.clone();
    remember_storage_version(definition);
}

fn remember_storage_version(definition: &mut Definition) {
    let Some(name) = definition.storage_version().map(|version| version.name.clone()) else {
        return;
    };
    if !definition.status.stored_versions.contains(&name) {
        definition.status.stored_versions.push(name);
    }
}

/// What all versions have in common, and so is reported beside `versions`.
#[derive(Debug, Clone, Copy, Default)]
struct Shared {
    schema: bool,
    subresources: bool,
    printer_columns: bool,
    selectable_fields: bool,
}

impl Shared {
    fn of(spec: &Spec) -> Self {
        let Some((first, others)) = spec.versions().split_first() else {
            return Shared::default();
        };
        Shared {
            schema: others.iter().all(|other| other.schema == first.schema),
            subresources: others.iter().all(|other| other.subresources == first.subresources),
            printer_columns: others
                .iter()
                .all(|other| other.printer_columns == first.printer_columns),
            selectable_fields: others
                .iter()
                .all(|other| other.selectable_fields == first.selectable_fields),
        }
    }
}
