//! Versions of one kind, by way of one of them.
//!
//! The *hub* is the version that all others, the *spokes*, can become and be made of; so each
//! version more costs its author two functions, however many there are. What the server lets no
//! webhook change, the metadata but for labels and annotations, is taken from the object that was
//! sent, whether or not the author thought of it.

use std::collections::BTreeMap;
use std::error::Error as StdError;

use kube::Resource;
use serde_json::{Map, Value, json};

use super::admission::Object;
use super::registration::{Purpose, Registration};
use crate::chain::chain;

/// Why an object has no form in another version.
pub type ConversionError = Box<dyn StdError + Send + Sync>;

/// A version of a kind beside its hub.
///
/// The metadata may be moved over as it is; then its labels and annotations can be changed, for
/// instance to keep what the other version has no field for. If it is left empty instead, labels
/// and annotations stay, and what is set is added.
pub trait Spoke: Object {
    type Hub: Object;

    /// # Errors
    /// If the hub has no form for this object. Objects that are stored already would become
    /// unreadable: better to find some form for all.
    fn into_hub(self) -> Result<Self::Hub, ConversionError>;

    /// # Errors
    /// If this version has no form for the object; see [`Spoke::into_hub`].
    fn from_hub(hub: Self::Hub) -> Result<Self, ConversionError>;
}

/// The versions of one kind.
pub struct Conversion {
    pub(super) registration: Registration,
    group: String,
    kind: String,
    versions: Box<dyn Versions>,
}

impl Conversion {
    /// The version that all others are converted by.
    pub fn hub<H: Object>() -> Hub<H> {
        Hub { spokes: BTreeMap::new() }
    }

    fn is_of(&self, group: &str, kind: &str) -> bool {
        (self.group.as_str(), self.kind.as_str()) == (group, kind)
    }
}

/// A hub that is being told of its spokes.
pub struct Hub<H> {
    spokes: BTreeMap<String, Functions<H>>,
}

struct Functions<H> {
    into_hub: fn(Value) -> Result<H, ConversionError>,
    from_hub: fn(H) -> Result<Value, ConversionError>,
}

impl<H: Object> Hub<H> {
    /// Adds a version.
    ///
    /// # Panics
    /// If it is of another kind than the hub, or of a version that is there already.
    pub fn spoke<S: Spoke<Hub = H>>(mut self) -> Self {
        let same = S::group(&()) == H::group(&()) && S::kind(&()) == H::kind(&());
        assert!(same, "{} and {} are not of one kind", api_version::<S>(), api_version::<H>());
        let version = S::version(&()).into_owned();
        let functions = Functions {
            into_hub: |object| serde_json::from_value::<S>(object)?.into_hub(),
            from_hub: |hub| Ok(serde_json::to_value(S::from_hub(hub)?)?),
        };
        let is_hub = version == H::version(&());
        let former = self.spokes.insert(version, functions);
        assert!(former.is_none() && !is_hub, "{} is there twice", api_version::<S>());
        self
    }
}

impl<H: Object> From<Hub<H>> for Conversion {
    fn from(hub: Hub<H>) -> Self {
        Conversion {
            registration: Registration::of::<H>(Purpose::Convert),
            group: H::group(&()).into_owned(),
            kind: H::kind(&()).into_owned(),
            versions: Box::new(hub),
        }
    }
}

/// Brings objects from version to version.
trait Versions: Send + Sync {
    /// None if one of the versions is unknown.
    fn convert(
        &self,
        object: &Value,
        from: &str,
        to: &str,
    ) -> Option<Result<Value, ConversionError>>;
}

impl<H: Object> Versions for Hub<H> {
    fn convert(
        &self,
        object: &Value,
        from: &str,
        to: &str,
    ) -> Option<Result<Value, ConversionError>> {
        let hub_version = H::version(&());
        let into_hub = match self.spokes.get(from) {
            Some(spoke) => spoke.into_hub,
            None if from == hub_version => |object| Ok(serde_json::from_value(object)?),
            None => return None,
        };
        let from_hub = match self.spokes.get(to) {
            Some(spoke) => spoke.from_hub,
            None if to == hub_version => |hub| Ok(serde_json::to_value(hub)?),
            None => return None,
        };
        Some(into_hub(object.clone()).and_then(from_hub))
    }
}

/// All that can be converted.
#[derive(Default)]
pub(super) struct Conversions(Vec<Conversion>);

impl Conversions {
    /// # Panics
    /// If the kind has one.
    pub(super) fn add(&mut self, conversion: Conversion) {
        let Conversion { group, kind, .. } = &conversion;
        let is_there = self.0.iter().any(|other| other.is_of(group, kind));
        assert!(!is_there, "{kind} of {group:?} has a conversion already");
        self.0.push(conversion);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Answers a `ConversionReview`; none if it is none.
    pub(super) fn answer(&self, review: &Value) -> Option<Value> {
        let request = review.get("request").filter(|request| request.is_object())?;
        let mut answer = review.as_object()?.clone();
        answer.remove("request");
        let mut response = match self.convert_all(request) {
            Ok(objects) => json!({
                "convertedObjects": objects,
                "result": { "metadata": {}, "status": "Success" },
            }),
            Err(message) => failure(&message),
        };
        response["uid"] = request.get("uid").cloned().unwrap_or_default();
        answer.insert("response".to_owned(), response);
        Some(Value::Object(answer))
    }

    fn convert_all(&self, request: &Value) -> Result<Vec<Value>, String> {
        let desired = text(request, "desiredAPIVersion");
        let objects = request.get("objects").and_then(Value::as_array);
        objects.into_iter().flatten().map(|object| self.convert(object, desired)).collect()
    }

    fn convert(&self, object: &Value, desired: &str) -> Result<Value, String> {
        let (api_version, kind) = (text(object, "apiVersion"), text(object, "kind"));
        if api_version == desired {
            return Ok(object.clone());
        }
        let convert = || -> Result<Value, ConversionError> {
            let ((group, from), (group_desired, to)) = (split(api_version), split(desired));
            let known = self.0.iter().find(|conversion| conversion.is_of(group, kind));
            let converted = known
                .filter(|_| group == group_desired)
                .and_then(|known| known.versions.convert(object, from, to))
                .ok_or("no such conversion is known")??;
            keep_metadata(object, converted, desired)
        };
        convert().map_err(|error| {
            let metadata = &object["metadata"];
            let (namespace, name) = (text(metadata, "namespace"), text(metadata, "name"));
            let slash = if namespace.is_empty() { "" } else { "/" };
            let error = chain(&*error);
            format!(
                "convert {kind} \"{namespace}{slash}{name}\" from {api_version} to {desired}: \
                 {error}"
            )
        })
    }
}

/// The answer to a review that a bug kept from being answered.
pub(super) fn broken(review: &Value) -> Value {
    let mut response = failure("internal error occurred during conversion");
    response["uid"] = review["request"].get("uid").cloned().unwrap_or_default();
    json!({
        "kind": review.get("kind"), "apiVersion": review.get("apiVersion"), "response": response,
    })
}

fn failure(message: &str) -> Value {
    json!({ "result": { "metadata": {}, "status": "Failure", "message": message } })
}

/// The metadata of the object as it was sent, with the labels and annotations of the converted one.
fn keep_metadata(
    sent: &Value,
    converted: Value,
    api_version: &str,
) -> Result<Value, ConversionError> {
    const OPEN: [&str; 2] = ["labels", "annotations"];
    let Value::Object(mut converted) = converted else { return Err("it is no object".into()) };
    let fields = |value: Option<&Value>| value.and_then(Value::as_object).cloned();
    let mut metadata = fields(sent.get("metadata")).unwrap_or_default();
    let made = fields(converted.get("metadata")).unwrap_or_default();
    let is_moved = is_moved(&metadata, &made);
    for name in OPEN {
        let mut kept = match is_moved {
            true => Map::new(),
            false => fields(metadata.get(name)).unwrap_or_default(),
        };
        kept.extend(fields(made.get(name)).unwrap_or_default());
        match kept.is_empty() {
            true => metadata.remove(name),
            false => metadata.insert(name.to_owned(), Value::Object(kept)),
        };
    }
    converted.insert("metadata".to_owned(), Value::Object(metadata));
    converted.insert("apiVersion".to_owned(), Value::from(api_version));
    converted.insert("kind".to_owned(), sent["kind"].clone());
    Ok(Value::Object(converted))
}

/// Whether an author moved the metadata over, so that labels that are missing are meant to be: it
/// says whose object it is.
fn is_moved(sent: &Map<String, Value>, made: &Map<String, Value>) -> bool {
    const IDENTITY: [&str; 4] = ["name", "generateName", "namespace", "uid"];
    IDENTITY.iter().any(|name| made.contains_key(*name))
        && IDENTITY.iter().all(|name| sent.get(*name) == made.get(*name))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Group and version.
fn split(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

fn api_version<K: Resource<DynamicType = ()>>() -> String {
    format!("{}, kind {}", K::api_version(&()), K::kind(&()))
}
