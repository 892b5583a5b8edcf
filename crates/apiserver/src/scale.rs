//! The `scale` of a workload or a custom resource: how many replicas there should be, seen and set
//! without knowing anything else of it.

use kubewright_apimachinery::apply::{self, PathElement, ReplicasPaths};
use kubewright_apimachinery::builtin;
use kubewright_apimachinery::conversion::scale::{self, Paths};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::{GroupKind, GroupVersion, GroupVersionKind};
use kubewright_apimachinery::status::Status;
use serde_json::{Value, json};

use crate::meta;
use crate::refusal::Refusal;
use crate::resource::{Origin, Resource};
use crate::write::{Revise, View, Write};

/// Changes an object through its scale.
pub(crate) struct Through<'a> {
    /// What makes the new scale of the one that is there.
    pub(crate) revise: &'a dyn Revise,
    /// From [`resource`].
    pub(crate) scale: &'a Resource,
}

/// The scale of an object.
pub(crate) fn of(resource: &Resource, object: &Value) -> Result<Value, Refusal> {
    let scale = match &resource.origin {
        Origin::Builtin(_) => scale::of_workload(object),
        Origin::Custom(_) => scale::of_custom(object, &custom_paths(resource)),
    };
    scale.map_err(|error| Box::new(Status::internal_error(error)))
}

/// Stands for a number of replicas that nobody has given yet, as upstream has it.
const NO_REPLICAS: i64 = i32::MIN as i64;

/// The scale of an object that is to change, with the managed fields that concern it.
fn with_managers(resource: &Resource, object: &Value) -> Result<Value, Refusal> {
    let mut scale = match &resource.origin {
        Origin::Builtin(_) => of(resource, object)?,
        Origin::Custom(_) => {
            let paths = custom_paths(resource);
            scale::of_custom_or(object, &paths, NO_REPLICAS)
                .map_err(|error| Box::new(Status::internal_error(error)))?
        }
    };
    let managed = apply::scale_from_parent(managed_fields(object), &replicas_paths(resource))
        .map_err(|error| Box::new(Status::internal_error(error)))?;
    if !managed.is_empty() {
        meta::of(&mut scale).insert("managedFields".to_owned(), managed.into());
    }
    Ok(scale)
}

/// Scales of a resource as if they were objects of their own.
pub(crate) fn resource(parent: &Resource) -> Resource {
    parent.below(GroupVersionKind::new("autoscaling", "v1", "Scale"))
}

impl Revise for Through<'_> {
    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        let Some(live) = live else { return Err(write.not_found()) };
        let scale = View::revise(self, write, Some(live))?;
        self.put(write, live, &scale)
    }

    fn expected_uid(&self) -> Option<&str> {
        self.revise.expected_uid()
    }

    fn view(&self) -> Option<&dyn View> {
        Some(self)
    }
}

impl View for Through<'_> {
    fn resource(&self) -> &Resource {
        self.scale
    }

    fn part(&self) -> &'static str {
        "scale"
    }

    fn of(&self, write: &Write<'_>, object: &Value) -> Result<Value, Refusal> {
        with_managers(write.resource, object)
    }

    fn revise(&self, write: &Write<'_>, live: Option<&Value>) -> Result<Value, Refusal> {
        let Some(live) = live else { return Err(write.not_found()) };
        let scale = with_managers(write.resource, live)?;
        let scale_write =
            Write { resource: self.scale, part: Some("scale"), asked: None, ..*write };
        let revised = self.revise.revise(&scale_write, Some(&scale))?;
        scale_write.check_name(&revised)?;
        Ok(revised)
    }

    fn put(&self, write: &Write<'_>, live: &Value, revised: &Value) -> Result<Value, Refusal> {
        let replicas = revised["spec"]["replicas"].as_i64().unwrap_or_default();
        let mut object = live.clone();
        match &write.resource.origin {
            Origin::Builtin(_) => {
                check(revised)?;
                object["spec"]["replicas"] = replicas.into();
            }
            // Whether the number makes sense is judged with the object that it is in.
            Origin::Custom(_) => {
                let path = custom_paths(write.resource).spec_replicas;
                if replicas == NO_REPLICAS {
                    let why = format!("the spec replicas field {path:?} cannot be empty");
                    return Err(Box::new(Status::bad_request(why)));
                }
                scale::set_replicas(&mut object, &path, replicas)
                    .map_err(|error| Box::new(Status::internal_error(error)))?;
            }
        }
        let managed = apply::scale_to_parent(
            managed_fields(live),
            managed_fields(revised),
            &write.resource.gvk.api_version(),
            &replicas_paths(write.resource),
        )
        .map_err(|error| Box::new(Status::internal_error(error)))?;
        let metadata = meta::of(&mut object);
        match managed.is_empty() {
            true => metadata.shift_remove("managedFields"),
            false => metadata.insert("managedFields".to_owned(), managed.into()),
        };
        // The client has seen the scale as it sees objects: by version.
        let version = meta::text(revised, "resourceVersion");
        match version.is_empty() {
            true => metadata.shift_remove("resourceVersion"),
            false => metadata.insert("resourceVersion".to_owned(), json!(version)),
        };
        if write.resource.takes_protobuf() || !version.is_empty() {
            return Ok(object);
        }
        // Without one, the object as it is was meant, also where objects must say it.
        restore_version(&mut object, live);
        Ok(object)
    }
}

fn restore_version(object: &mut Value, live: &Value) {
    let version = live["metadata"]["resourceVersion"].clone();
    meta::of(object).insert("resourceVersion".to_owned(), version);
}

fn check(scale: &Value) -> Result<(), Refusal> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or_default();
    if replicas >= 0 {
        return Ok(());
    }
    let spec = Path::new("spec");
    let error =
        Error::invalid(&spec.child("replicas"), replicas, "must be greater than or equal to 0");
    let kind = GroupKind::new("autoscaling", "Scale");
    Err(Box::new(Status::invalid(&kind, meta::text(scale, "name"), &[error])))
}

fn managed_fields(object: &Value) -> &[Value] {
    let managed = object["metadata"].get("managedFields").and_then(Value::as_array);
    managed.map(Vec::as_slice).unwrap_or_default()
}

fn custom_paths(resource: &Resource) -> Paths {
    let Origin::Custom(custom) = &resource.origin else { unreachable!("built-ins have no paths") };
    custom.scale_paths().expect("it has a scale")
}

/// Where each version keeps the number of replicas.
fn replicas_paths(resource: &Resource) -> ReplicasPaths {
    let steps = |path: &str| -> Vec<PathElement> {
        path.trim_start_matches('.').split('.').map(PathElement::field).collect()
    };
    match &resource.origin {
        Origin::Builtin(builtin) => {
            let kinds = builtin::kinds().iter().filter(|kind| kind.kind == builtin.kind.kind);
            kinds
                .map(|kind| {
                    let version = GroupVersion::new(kind.group, kind.version).to_string();
                    (version, Some(steps("spec.replicas")))
                })
                .collect()
        }
        Origin::Custom(custom) => {
            let definition = &custom.definition;
            definition
                .versions()
                .iter()
                .map(|version| {
                    let scale =
                        version.subresources.as_ref().and_then(|parts| parts.scale.as_ref());
                    let path = scale.map(|scale| steps(&scale.spec_replicas_path));
                    (format!("{}/{}", definition.spec.group, version.name), path)
                })
                .collect()
        }
    }
}
