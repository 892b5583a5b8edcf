//! The object of a request as a webhook sees it: in the version that its rules name.

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{conversion, json};
use serde_json::Value;

use crate::admission::Attributes;
use crate::draft::identity;
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
    /// Whether a webhook has given the object another form.
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
