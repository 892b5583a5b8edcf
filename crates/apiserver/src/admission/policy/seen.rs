//! Objects as policies see them: in the version that their rules name.

use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{conversion, json};
use serde_json::{Map, Value};

use crate::admission::Attributes;
use crate::admission::expression::NOTHING;
use crate::draft::identity;
use crate::refusal::Refusal;
use crate::resource::{Origin, Resource};

/// What a request is about, in one version.
pub(super) struct Seen {
    pub(super) gvk: GroupVersionKind,
    /// Null on deletes.
    pub(super) object: Value,
    old: Option<Value>,
    /// Whether a policy has given the object another form.
    pub(super) is_patched: bool,
}

impl Seen {
    pub(super) async fn new(
        attributes: &Attributes<'_>,
        object: Option<&Value>,
        gvk: &GroupVersionKind,
    ) -> Result<Self, Refusal> {
        let resource = attributes.resource;
        Ok(Seen {
            gvk: gvk.clone(),
            object: match object {
                Some(object) => convert(resource, object, gvk).await?,
                None => Value::Null,
            },
            old: match attributes.old {
                Some(old) => Some(convert(resource, old, gvk).await?),
                None => None,
            },
            is_patched: false,
        })
    }

    pub(super) fn object(&self) -> &Value {
        &self.object
    }

    pub(super) fn old(&self) -> &Value {
        self.old.as_ref().unwrap_or(&NOTHING)
    }

    /// The object in the version of the one that it takes the place of.
    pub(super) async fn in_version_of(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<Value, Refusal> {
        let gvk = GroupVersionKind::interpret(object).unwrap_or_default();
        convert(attributes.resource, &self.object, &gvk).await
    }
}

/// The object in another version.
async fn convert(
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
        }
        Origin::Custom(custom) => {
            if !has_version {
                let converted = custom.convert(vec![object], &to.api_version()).await;
                let mut converted =
                    converted.map_err(|why| Box::new(Status::internal_error(why)))?.into_iter();
                object = converted.next().unwrap_or_default();
            }
            json::sort_keys(&mut object);
        }
    }
    Ok(object)
}

/// What expressions may know of a namespace.
pub(super) fn namespace(mut namespace: Value) -> Value {
    const METADATA: [&str; 12] = [
        "name",
        "generateName",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "finalizers",
    ];
    let mut shown = Map::new();
    if let Some(Value::Object(metadata)) = namespace.get_mut("metadata").map(Value::take) {
        let kept = metadata.into_iter().filter(|(field, _)| METADATA.contains(&field.as_str()));
        shown.insert("metadata".to_owned(), kept.collect::<Map<_, _>>().into());
    }
    for field in ["spec", "status"] {
        shown.insert(field.to_owned(), namespace[field].take());
    }
    shown.into()
}
