//! The object of a request as a webhook or a policy sees it: in the version that its rules name.

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{conversion, json, schema};
use serde_json::Value;

use super::Attributes;
use super::expression::NOTHING;
use crate::draft::identity;
use crate::kinds;
use crate::meta;
use crate::refusal::Refusal;
use crate::resource::{Origin, Resource};

/// What a request is about, in one version.
pub(super) struct Shown {
    pub(super) gvk: GroupVersionKind,
    /// What would be there; None for deletes.
    pub(super) object: Option<Value>,
    /// What is there; None for creates.
    pub(super) old: Option<Value>,
    /// Whether somebody has given the object another form.
    pub(super) is_patched: bool,
}

impl Shown {
    pub(super) async fn new(
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        gvk: &GroupVersionKind,
    ) -> Result<Self, Refusal> {
        let mut shown = Shown { gvk: gvk.clone(), object: None, old: None, is_patched: false };
        if let Some(object) = object {
            shown.object = Some(convert(attributes.resource, object, gvk).await?);
        }
        if let Some(old) = attributes.old {
            shown.old = Some(convert(attributes.resource, old, gvk).await?);
        }
        Ok(shown)
    }

    /// What would be there, or nothing.
    pub(super) fn object(&self) -> &Value {
        self.object.as_ref().unwrap_or(&NOTHING)
    }

    /// What is there, or nothing.
    pub(super) fn old(&self) -> &Value {
        self.old.as_ref().unwrap_or(&NOTHING)
    }
}

/// The object in another version, as that is printed.
pub(super) async fn convert(
    resource: &Resource,
    object: &Value,
    to: &GroupVersionKind,
) -> Result<Value, Refusal> {
    let mut object = object.clone();
    let has_version = object["apiVersion"] == *to.api_version();
    match &resource.origin {
        Origin::Builtin(_) => {
            if !has_version {
                object = conversion::convert(object, &to.group_version())
                    .map_err(|error| Box::new(Status::internal_error(error)))?;
            }
            identity::label(&mut object, to);
            if object.get("metadata").is_some() {
                meta::arrange(&mut object);
            }
        }
        Origin::Custom(custom) => {
            if !has_version {
                let converted = custom.convert(vec![object], &to.api_version()).await;
                let converted =
                    converted.map_err(|error| Box::new(Status::internal_error(error)))?;
                object = converted.into_iter().next().unwrap_or_default();
            }
            json::sort_keys(&mut object);
        }
    }
    Ok(object)
}

/// Fills in what a change left out.
pub(super) fn default(resource: &Resource, gvk: &GroupVersionKind, object: &mut Value) {
    match &resource.origin {
        Origin::Builtin(_) => {
            if let Some(rules) = kinds::rules(&gvk.group, &gvk.kind) {
                (rules.default)(object);
            }
        }
        Origin::Custom(custom) => {
            let mut versions = custom.definition.versions().iter();
            let version = versions.find(|version| version.name == gvk.version);
            if let Some(schema) = version.and_then(|version| version.open_api_v3_schema()) {
                schema::default(object, schema);
            }
        }
    }
}
