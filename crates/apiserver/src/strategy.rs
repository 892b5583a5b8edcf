//! What is special about the objects of a resource, whoever defined it: defaults, what a request
//! may change, when an object is valid.
//!
//! Built-in kinds are judged in their hub version by [`crate::kinds`], custom resources in the
//! version of the request by its schema.

use std::borrow::Cow;

use kubewright_apimachinery::apply::{
    BuiltinVersions, PathElement, Pattern, ResetFields, ResetFilter, Schema, Set, Versions,
};
use kubewright_apimachinery::conversion::scale::{self, Paths};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_apimachinery::name::Rule;
use kubewright_apimachinery::name::object_meta::{self, Scope};
use kubewright_apimachinery::schema::{self, Findings};
use kubewright_apimachinery::{builtin, conversion, json};
use serde_json::{Map, Value, json};

use crate::index;
use crate::kinds::{self, Context};
use crate::resource::{Custom, Origin, Resource};

/// What every write of a resource needs to know of it, made by the first.
#[derive(Debug)]
pub(crate) struct Tracking {
    /// An object of this kind in which nothing is set.
    pub(crate) empty: Value,
    /// By endpoint.
    reset: Vec<(Option<&'static str>, ResetFields)>,
    none: ResetFields,
}

impl Resource {
    /// Fills in what a client left out.
    pub(crate) fn default(&self, object: &mut Value) {
        match &self.origin {
            Origin::Builtin(builtin) => (builtin.rules.default)(object),
            Origin::Custom(custom) => schema::default(object, &custom.schema),
        }
    }

    /// Why an object that fits its type cannot be read all the same.
    pub(crate) fn unreadable(&self, object: &Value) -> Option<String> {
        match &self.origin {
            Origin::Builtin(builtin) => (builtin.rules.unreadable)(object),
            Origin::Custom(_) => None,
        }
    }

    /// From the version of the request to the one in which objects are judged.
    pub(crate) fn to_hub(&self, object: Value) -> Value {
        match &self.origin {
            Origin::Builtin(_) if self.hub != self.gvk => {
                conversion::convert(object, &self.hub.group_version())
                    .expect("served versions convert into each other")
            }
            _ => object,
        }
    }

    /// From the version in which objects are judged to the one of the request.
    pub(crate) fn to_request(&self, object: Value) -> Value {
        match &self.origin {
            Origin::Builtin(_) if self.hub != self.gvk => {
                conversion::convert(object, &self.gvk.group_version())
                    .expect("served versions convert into each other")
            }
            _ => object,
        }
    }

    /// The same, of an object that stays.
    pub(crate) fn shown_to_request<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        match self.hub == self.gvk {
            true => Cow::Borrowed(object),
            false => Cow::Owned(self.to_request(object.clone())),
        }
    }

    /// Makes an object what it will be when it is read again.
    pub(crate) fn normalize(&self, object: &mut Value) {
        if let Origin::Builtin(origin) = &self.origin {
            // Upstream keeps these two as JSON, and all others in protobuf.
            let is_json =
                matches!(self.hub.kind.as_str(), "CustomResourceDefinition" | "APIService");
            if !is_json {
                builtin::forget_empty(origin.hub.ty(), object);
            }
            builtin::arrange(origin.hub.ty(), object);
        }
    }

    /// The bytes to store.
    pub(crate) fn to_bytes(&self, object: &mut Value) -> bytes::Bytes {
        match &self.origin {
            Origin::Builtin(_) => {
                crate::meta::arrange(object);
                index::to_bytes(object)
            }
            // Sorted, as they are sent.
            Origin::Custom(_) => {
                let mut stored = object.clone();
                stored["apiVersion"] = self.hub.api_version().into();
                json::sort_keys(&mut stored);
                index::to_bytes(&stored)
            }
        }
    }

    /// Clears what a create may not set, and numbers the first generation.
    pub(crate) fn prepare_create(&self, object: &mut Value, context: &Context<'_>) {
        match &self.origin {
            Origin::Builtin(builtin) => (builtin.rules.prepare_create)(object, context),
            Origin::Custom(custom) => {
                if custom.has_status() {
                    remove(object, "status");
                }
                crate::meta::of(object).insert("generation".to_owned(), 1.into());
            }
        }
    }

    /// Restores what an update through this endpoint may not change, and counts the generation.
    pub(crate) fn prepare_update(
        &self,
        part: Option<&str>,
        object: &mut Value,
        old: &Value,
        context: &Context<'_>,
    ) {
        match (&self.origin, part) {
            (Origin::Builtin(builtin), None) => {
                (builtin.rules.prepare_update)(object, old, context);
            }
            (Origin::Builtin(builtin), Some(part)) => {
                if let Some(part) = builtin.rules.part(part) {
                    (part.prepare_update)(object, old, context);
                }
            }
            (Origin::Custom(custom), None) => prepare_custom(custom, object, old),
            (Origin::Custom(_), Some("status")) => prepare_custom_status(object, old),
            (Origin::Custom(_), Some(_)) => {}
        }
    }

    /// Everything that is wrong with a new object.
    pub(crate) fn validate_create(&self, object: &Value) -> Vec<Error> {
        let metadata = metadata(object);
        let path = Path::new("metadata");
        match &self.origin {
            Origin::Builtin(builtin) => {
                let rules = builtin.rules;
                let mut errors = object_meta::validate(metadata, self.scope(), rules.name, &path);
                errors.extend(self.validate_finalizers(metadata, &path));
                add_new(&mut errors, (rules.validate)(object));
                errors
            }
            Origin::Custom(custom) => {
                let mut errors =
                    object_meta::validate(metadata, self.scope(), Rule::Subdomain, &path);
                errors.extend(schema::validate(object, None, &custom.schema));
                errors.extend(custom.validate_scale(object));
                let findings = custom.validate_rules(object, None, &errors);
                errors.extend(findings.errors);
                errors
            }
        }
    }

    /// The privileged containers of an object, as errors where the cluster allows none.
    pub(crate) fn privileged_containers(&self, object: &Value) -> Vec<Error> {
        match &self.origin {
            Origin::Builtin(_) => kinds::pod_spec::privileged_containers(&self.hub.kind, object),
            Origin::Custom(_) => Vec::new(),
        }
    }

    /// Finalizers of built-in kinds have qualified names, apart from a few; so those kinds ask that
    /// upstream does not judge by rules that it has for all servers.
    fn validate_finalizers(&self, metadata: &Map<String, Value>, path: &Path<'_>) -> Vec<Error> {
        const LENIENT: [&str; 6] = [
            "admissionregistration.k8s.io",
            "apiextensions.k8s.io",
            "apiregistration.k8s.io",
            "coordination.k8s.io",
            "node.k8s.io",
            "policy",
        ];
        let is_strict = matches!(self.origin, Origin::Builtin(_))
            && !LENIENT.contains(&self.hub.group.as_str())
            && self.hub.kind != "Event";
        match is_strict {
            true => object_meta::validate_builtin_finalizers(metadata, path),
            false => Vec::new(),
        }
    }

    /// Everything that is wrong with an object that takes the place of another, and what is only
    /// warned of because it was wrong before.
    pub(crate) fn validate_update(
        &self,
        part: Option<&str>,
        object: &Value,
        old: &Value,
    ) -> Findings {
        let path = Path::new("metadata");
        let (new_meta, old_meta) = (metadata(object), metadata(old));
        let mut errors = object_meta::validate(new_meta, self.scope(), Rule::PathSegment, &path);
        add_new(&mut errors, object_meta::validate_update(new_meta, old_meta, &path));
        errors.extend(self.validate_finalizers(new_meta, &path));
        match (&self.origin, part) {
            (Origin::Builtin(builtin), None) => {
                add_new(&mut errors, (builtin.rules.validate_update)(object, old));
            }
            (Origin::Builtin(builtin), Some(part)) => {
                if let Some(part) = builtin.rules.part(part) {
                    add_new(&mut errors, (part.validate_update)(object, old));
                }
            }
            (Origin::Custom(custom), Some("status")) => {
                errors.extend(schema::validate_status(object, old, &custom.schema));
                errors.extend(custom.validate_scale_status(object));
            }
            (Origin::Custom(custom), _) => {
                errors.extend(schema::validate(object, Some(old), &custom.schema));
                errors.extend(custom.validate_scale(object));
            }
        }
        let mut warnings = Vec::new();
        if let Origin::Custom(custom) = &self.origin {
            let findings = custom.validate_rules(object, Some(old), &errors);
            errors.extend(findings.errors);
            warnings = findings.warnings;
        }
        Findings { errors, warnings }
    }

    pub(crate) fn warnings(
        &self,
        part: Option<&str>,
        object: &Value,
        old: Option<&Value>,
    ) -> Vec<String> {
        match &self.origin {
            Origin::Builtin(builtin) => match part {
                None => (builtin.rules.warnings)(object, old),
                Some(part) => builtin
                    .rules
                    .part(part)
                    .map(|part| (part.warnings)(object, old))
                    .unwrap_or_default(),
            },
            Origin::Custom(_) => Vec::new(),
        }
    }

    /// An update need not say which version of the object it changes.
    pub(crate) fn unconditional_update(&self) -> bool {
        match &self.origin {
            Origin::Builtin(builtin) => builtin.rules.unconditional_update,
            Origin::Custom(_) => false,
        }
    }

    /// An update of what is not there creates it.
    pub(crate) fn create_on_update(&self) -> bool {
        match &self.origin {
            Origin::Builtin(builtin) => builtin.rules.create_on_update,
            Origin::Custom(_) => false,
        }
    }

    pub(crate) fn scope(&self) -> Scope {
        match self.namespaced {
            true => Scope::Namespaced,
            false => Scope::Cluster,
        }
    }

    /// What apply knows of a version of this kind, if there is such a version.
    pub(crate) fn apply_schema(&self, gvk: &GroupVersionKind) -> Option<Schema> {
        self.with_versions(|versions| versions.schema(&gvk.api_version()).ok().cloned())
    }

    /// What apply must know of the versions of this kind.
    pub(crate) fn with_versions<T>(&self, use_them: impl FnOnce(&dyn Versions) -> T) -> T {
        match &self.origin {
            Origin::Builtin(builtin) => use_them(builtin_versions(builtin.kind.kind)),
            Origin::Custom(custom) => use_them(&*custom.versions),
        }
    }

    /// What the record of who owns which field starts from.
    pub(crate) fn tracking(&self) -> &Tracking {
        self.tracking.get_or_init(|| {
            let parts: Vec<&'static str> = match &self.origin {
                Origin::Builtin(builtin) => {
                    builtin.rules.parts.iter().map(|(name, _)| *name).collect()
                }
                Origin::Custom(_) => vec!["status"],
            };
            let endpoints = [None].into_iter().chain(parts.into_iter().map(Some));
            Tracking {
                empty: self.empty(),
                reset: endpoints.map(|part| (part, self.reset(part))).collect(),
                none: ResetFields::none(),
            }
        })
    }

    fn empty(&self) -> Value {
        let bare = json!({"kind": self.gvk.kind, "apiVersion": self.gvk.api_version()});
        match &self.origin {
            Origin::Builtin(builtin) => {
                builtin::decode(builtin.kind, bare).expect("nothing in it has a wrong type").value
            }
            Origin::Custom(_) => bare,
        }
    }

    fn reset(&self, part: Option<&str>) -> ResetFields {
        match &self.origin {
            Origin::Builtin(builtin) => {
                let fields = match part {
                    None => builtin.rules.reset,
                    Some(part) => builtin.rules.part(part).map(|part| part.reset).unwrap_or(&[]),
                };
                if fields.is_empty() {
                    return ResetFields::none();
                }
                let mut reset = ResetFields::none();
                for kind in builtin::kinds().iter().filter(|kind| kind.kind == builtin.kind.kind) {
                    let mut set = Set::new();
                    for field in fields {
                        set.insert(field.split('.').map(PathElement::field));
                    }
                    let version = match kind.group {
                        "" => kind.version.to_owned(),
                        group => format!("{group}/{}", kind.version),
                    };
                    reset = reset.with(&version, ResetFilter::Except(set));
                }
                reset
            }
            Origin::Custom(custom) => custom.reset(part),
        }
    }
}

impl Tracking {
    /// The fields that a write through this endpoint has no say over.
    pub(crate) fn reset(&self, part: Option<&str>) -> &ResetFields {
        let found = self.reset.iter().find(|(known, _)| *known == part);
        found.map_or(&self.none, |(_, reset)| reset)
    }
}

impl Custom {
    pub(crate) fn has_status(&self) -> bool {
        self.version().subresources.as_ref().is_some_and(|parts| parts.status)
    }

    fn reset(&self, part: Option<&str>) -> ResetFields {
        let mut reset = ResetFields::none();
        for version in self.definition.versions() {
            let has_status = version.subresources.as_ref().is_some_and(|parts| parts.status);
            let status = || PathElement::field("status");
            let filter = match part {
                None if has_status => ResetFilter::Except({
                    let mut set = Set::new();
                    set.insert([status()]);
                    set
                }),
                Some("status") => ResetFilter::Only(Pattern::prefixes([vec![Some(status())]])),
                _ => continue,
            };
            let name = format!("{}/{}", self.definition.spec.group, version.name);
            reset = reset.with(&name, filter);
        }
        reset
    }

    /// Where the objects keep their numbers of replicas, if they can be scaled.
    pub(crate) fn scale_paths(&self) -> Option<Paths> {
        let scale = self.version().subresources.as_ref()?.scale.as_ref()?;
        Some(Paths {
            spec_replicas: scale.spec_replicas_path.clone(),
            status_replicas: scale.status_replicas_path.clone(),
            label_selector: scale.label_selector_path.clone(),
        })
    }

    /// What the scale of the object could not show.
    fn validate_scale(&self, object: &Value) -> Vec<Error> {
        let Some(paths) = self.scale_paths() else { return Vec::new() };
        let mut errors = scale::validate_spec(object, &paths);
        errors.extend(scale::validate_status(object, &paths));
        errors
    }

    /// What breaks the schema's rules, after `errors` of other kinds.
    fn validate_rules(&self, object: &Value, old: Option<&Value>, errors: &[Error]) -> Findings {
        match self.rules() {
            Some(rules) => rules.validate(object, old, &self.schema, errors),
            None => Findings::default(),
        }
    }

    fn validate_scale_status(&self, object: &Value) -> Vec<Error> {
        self.scale_paths().map(|paths| scale::validate_status(object, &paths)).unwrap_or_default()
    }
}

/// Built once per kind: the versions never change.
fn builtin_versions(kind: &'static str) -> &'static BuiltinVersions {
    use std::collections::HashMap;
    use std::sync::{Mutex, PoisonError};
    static MADE: Mutex<Option<HashMap<&'static str, &'static BuiltinVersions>>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    made.get_or_insert_default()
        .entry(kind)
        .or_insert_with(|| Box::leak(Box::new(BuiltinVersions::new(kind))))
}

fn prepare_custom(custom: &Custom, object: &mut Value, old: &Value) {
    if custom.has_status() {
        match old.get("status") {
            Some(status) => object["status"] = status.clone(),
            None => remove(object, "status"),
        }
    }
    if !same_but_metadata(object, old) {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or_default();
        crate::meta::of(object).insert("generation".to_owned(), (generation + 1).into());
    }
}

/// Only the status, and the managed fields that go with it, may change.
fn prepare_custom_status(object: &mut Value, old: &Value) {
    let status = object.get("status").cloned();
    let managed = object["metadata"].get("managedFields").cloned();
    *object = old.clone();
    match status {
        Some(status) => object["status"] = status,
        None => remove(object, "status"),
    }
    let metadata = crate::meta::of(object);
    match managed {
        Some(managed) => metadata.insert("managedFields".to_owned(), managed),
        None => metadata.shift_remove("managedFields"),
    };
}

fn same_but_metadata(left: &Value, right: &Value) -> bool {
    let fields = |object: &Value| -> Vec<String> {
        let keys = object.as_object().into_iter().flatten().map(|(key, _)| key.clone());
        keys.filter(|key| key != "metadata" && key != "apiVersion").collect()
    };
    let (keys, others) = (fields(left), fields(right));
    keys.len() == others.len() && keys.iter().all(|key| right.get(key) == left.get(key))
}

/// Kinds look at metadata too; what was found twice is told once.
fn add_new(errors: &mut Vec<Error>, more: Vec<Error>) {
    let known = errors.len();
    errors.extend(more);
    let (told, more) = errors.split_at(known);
    let new: Vec<Error> = more.iter().filter(|error| !told.contains(error)).cloned().collect();
    errors.truncate(known);
    errors.extend(new);
}

fn remove(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut() {
        object.shift_remove(field);
    }
}

fn metadata(object: &Value) -> &Map<String, Value> {
    object["metadata"].as_object().expect("an object has metadata")
}
