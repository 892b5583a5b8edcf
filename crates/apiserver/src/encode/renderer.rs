//! The forms in which a revision leaves, each made once and kept with it.
//!
//! Stored bytes that are in the version of the resource already are sent as they are. What was
//! made is kept under three numbers: the version, the schema it was read through, the encoding.
//! Custom resources are read through their schema before they leave, since it may be younger than
//! they are; mostly that changes nothing, and then only this fact is kept.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use kubewright_apimachinery::status::{Reason, Status};
use kubewright_apimachinery::{builtin, conversion, json, proto, yaml};
use kubewright_store::{Form, Rev, Revision};
use serde_json::Value;

use super::{custom, view};
use crate::index::{self, Index, Parts, Stored};
use crate::negotiate::{Encoding, MetaVersion};
use crate::resource::{Origin, Resource};
use crate::selection::text;

/// Renders revisions of one resource.
#[derive(Debug, Clone)]
pub struct Renderer {
    resource: Arc<Resource>,
}

/// How the objects of a resource begin.
#[derive(Debug)]
pub(crate) struct Heads {
    /// Stored bytes that are in the version of the resource.
    own: Box<[u8]>,
    /// On the wire.
    opening: Box<[u8]>,
    version: u64,
    schema: u64,
}

/// The JSON of an object, without the beginning that says what it is.
#[derive(Debug)]
pub enum Piece<'a> {
    Spliced(Parts<'a>, Revision),
    Whole(Bytes),
}

// What is kept with revisions.
const JSON: u64 = 1;
const MESSAGE: u64 = 2;
const METADATA: u64 = 3;
const METADATA_MESSAGE: u64 = 4;
const SELECTABLE: u64 = 5;
const CONVERTED: u64 = 6;

/// Names what a webhook made of a value for the readers of a version.
pub(crate) fn converted_form(api_version: &str, schema: u64) -> Form {
    Form { version: hash(api_version), schema, encoding: CONVERTED }
}

fn hash(api_version: &str) -> u64 {
    let mut version = DefaultHasher::new();
    api_version.hash(&mut version);
    version.finish()
}

impl Heads {
    fn of(resource: &Resource) -> Self {
        let gvk = &resource.gvk;
        let (kind, api_version) = (&gvk.kind, gvk.api_version());
        let own = format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#);
        let (opening, schema) = match &resource.origin {
            Origin::Builtin(_) => (own.clone(), 0),
            Origin::Custom(custom) => {
                let opening = format!(r#"{{"apiVersion":"{api_version}","kind":"{kind}","#);
                (opening, custom.schema_hash)
            }
        };
        Heads {
            own: own.into_bytes().into(),
            opening: opening.into_bytes().into(),
            version: hash(&api_version),
            schema,
        }
    }
}

impl Renderer {
    pub fn new(resource: &Arc<Resource>) -> Self {
        Renderer { resource: Arc::clone(resource) }
    }

    fn heads(&self) -> &Heads {
        self.resource.heads.get_or_init(|| Heads::of(&self.resource))
    }

    pub fn resource(&self) -> &Arc<Resource> {
        &self.resource
    }

    /// Tells renderings apart; `encoding` is the caller's.
    pub(crate) fn form(&self, encoding: u64) -> Form {
        let Heads { version, schema, .. } = *self.heads();
        Form { version, schema, encoding }
    }

    /// How an object begins on the wire: the brace and what it is.
    pub fn opening(&self) -> &[u8] {
        &self.heads().opening
    }

    /// How an item of a list begins. Items of built-in kinds do not say what they are.
    pub fn item_opening(&self) -> &[u8] {
        match &self.resource.origin {
            Origin::Builtin(_) => b"{",
            Origin::Custom(_) => self.opening(),
        }
    }

    /// A whole answer.
    pub(crate) fn object(&self, rev: &Stored, encoding: Encoding) -> Result<Bytes, Box<Status>> {
        Ok(match encoding {
            Encoding::Json => {
                let piece = self.json(rev, rev.revision)?;
                let opening = self.opening();
                let mut bytes = Vec::with_capacity(opening.len() + piece.bytes_max() + 1);
                bytes.extend_from_slice(opening);
                piece.write(&mut bytes);
                bytes.push(b'\n');
                bytes.into()
            }
            Encoding::JsonPretty => {
                json::to_string_pretty(&super::value(&self.resource, rev)?).into()
            }
            Encoding::Yaml => yaml::to_string(&super::value(&self.resource, rev)?).into(),
            Encoding::Protobuf => self.sealed(rev, rev.revision)?.into(),
        })
    }

    /// The JSON of a value as of `revision`, which is its own, or that of its deletion.
    pub fn json<'r>(
        &self,
        rev: &'r Rev<Index>,
        revision: Revision,
    ) -> Result<Piece<'r>, Box<Status>> {
        check(rev)?;
        let parts = rev.extracted.parts(&rev.value);
        let is_own = *parts.type_meta == *self.heads().own;
        let as_stored = match &self.resource.origin {
            Origin::Builtin(_) => is_own,
            Origin::Custom(_) => rev.extracted.is_shown(),
        };
        if as_stored {
            return Ok(Piece::Spliced(parts, revision));
        }
        let render = || -> Result<Bytes, Box<Status>> {
            let object = shown(&self.resource, rev)?;
            if is_own && is_as_stored(&object, &parts) {
                return Ok(Bytes::new());
            }
            Ok(without_type_meta(object, rev.revision))
        };
        let rendered = rev.rendered(self.form(JSON), render)?;
        if rendered.is_empty() {
            return Ok(Piece::Spliced(parts, revision));
        }
        if revision == rev.revision {
            return Ok(Piece::Whole(rendered));
        }
        let object = shown(&self.resource, rev)?;
        Ok(Piece::Whole(without_type_meta(object, revision)))
    }

    /// The protobuf of a value without its envelope.
    pub(crate) fn message(
        &self,
        rev: &Rev<Index>,
        revision: Revision,
    ) -> Result<Bytes, Box<Status>> {
        let Origin::Builtin(builtin) = &self.resource.origin else {
            return Err(Box::new(Status::internal_error("custom resources have no protobuf")));
        };
        let render = || {
            let mut object = shown(&self.resource, rev)?;
            index::set_resource_version(&mut object, revision);
            let message = proto::encode_message(builtin.kind.ty(), &object);
            message.map(Bytes::from).map_err(|error| Box::new(Status::internal_error(error)))
        };
        match revision == rev.revision {
            true => rev.rendered(self.form(MESSAGE), render),
            false => render(),
        }
    }

    /// The protobuf of a value in its envelope.
    pub(crate) fn sealed(
        &self,
        rev: &Rev<Index>,
        revision: Revision,
    ) -> Result<Vec<u8>, Box<Status>> {
        let gvk = &self.resource.gvk;
        Ok(proto::seal(&gvk.api_version(), &gvk.kind, &self.message(rev, revision)?))
    }

    /// Writes the `metadata` of a value in the form it has in a PartialObjectMetadata.
    fn write_metadata(
        &self,
        rev: &Rev<Index>,
        revision: Revision,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Box<Status>> {
        check(rev)?;
        if matches!(self.resource.origin, Origin::Builtin(_)) {
            // Found again as quickly as it could be kept, and everything is watched like this.
            let metadata = rev.extracted.metadata(&rev.value).map_err(broken)?;
            Piece::Spliced(metadata, revision).write(bytes);
            return Ok(());
        }
        let render = || -> Result<Bytes, Box<Status>> {
            let mut object = shown(&self.resource, rev)?;
            index::set_resource_version(&mut object, revision);
            Ok(json::to_vec(&view::metadata(&object)).into())
        };
        let metadata = match revision == rev.revision {
            true => rev.rendered(self.form(METADATA), render)?,
            false => render()?,
        };
        bytes.extend_from_slice(&metadata);
        Ok(())
    }

    /// What the selectable fields of a custom resource are, in the order of its definition.
    pub(crate) fn selectable(&self, rev: &Rev<Index>) -> Vec<String> {
        let Origin::Custom(custom) = &self.resource.origin else { return Vec::new() };
        let render = || -> Result<Bytes, Box<Status>> {
            let object = shown(&self.resource, rev)?;
            let at = |path: &str| {
                let mut path = path.trim_start_matches('.').split('.');
                text(path.try_fold(&object, |value, key| value.get(key)))
            };
            let fields = custom.version().selectable_fields.iter();
            let texts: Vec<Value> = fields.map(|field| at(&field.json_path).into()).collect();
            Ok(json::to_vec(&Value::Array(texts)).into())
        };
        let rendered = rev.rendered(self.form(SELECTABLE), render).unwrap_or_default();
        serde_json::from_slice(&rendered).unwrap_or_default()
    }

    /// The protobuf of a PartialObjectMetadata without its envelope.
    pub(crate) fn metadata_message(
        &self,
        rev: &Rev<Index>,
        revision: Revision,
    ) -> Result<Bytes, Box<Status>> {
        // Before the message is made: while one form of a revision is, none can be asked for.
        let mut metadata = Vec::new();
        self.write_metadata(rev, revision, &mut metadata)?;
        let render = || {
            let metadata: Value = serde_json::from_slice(&metadata).map_err(broken)?;
            let object = serde_json::json!({"metadata": metadata});
            let kind = builtin::kind("meta.k8s.io", "v1", "PartialObjectMetadata");
            let ty = kind.expect("it is in the table").ty();
            let message = proto::encode_message(ty, &object);
            message.map(Bytes::from).map_err(|error| Box::new(Status::internal_error(error)))
        };
        match revision == rev.revision {
            true => rev.rendered(self.form(METADATA_MESSAGE), render),
            false => render(),
        }
    }

    /// A whole PartialObjectMetadata.
    pub(crate) fn partial(
        &self,
        rev: &Rev<Index>,
        revision: Revision,
        version: MetaVersion,
        encoding: Encoding,
    ) -> Result<Bytes, Box<Status>> {
        match encoding {
            Encoding::Protobuf => {
                let message = self.metadata_message(rev, revision)?;
                let sealed = proto::seal(version.api_version(), "PartialObjectMetadata", &message);
                Ok(sealed.into())
            }
            Encoding::Json => {
                let mut bytes = Vec::new();
                self.write_partial(rev, revision, version, &mut bytes)?;
                bytes.push(b'\n');
                Ok(bytes.into())
            }
            Encoding::JsonPretty | Encoding::Yaml => {
                let mut bytes = Vec::new();
                self.write_partial(rev, revision, version, &mut bytes)?;
                let value: Value = serde_json::from_slice(&bytes).map_err(broken)?;
                super::encode(&value, encoding)
            }
        }
    }

    /// The JSON of a PartialObjectMetadata.
    pub(crate) fn write_partial(
        &self,
        rev: &Rev<Index>,
        revision: Revision,
        version: MetaVersion,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Box<Status>> {
        bytes.extend_from_slice(br#"{"kind":"PartialObjectMetadata","apiVersion":""#);
        bytes.extend_from_slice(version.api_version().as_bytes());
        bytes.extend_from_slice(br#"","metadata":"#);
        self.write_metadata(rev, revision, bytes)?;
        bytes.push(b'}');
        Ok(())
    }
}

impl Piece<'_> {
    /// At most how long it is.
    pub fn bytes_max(&self) -> usize {
        match self {
            Piece::Spliced(parts, _) => parts.before.len() + parts.after.len() + SPLICED_MAX,
            Piece::Whole(bytes) => bytes.len(),
        }
    }

    pub fn write(&self, bytes: &mut Vec<u8>) {
        match self {
            Piece::Spliced(parts, revision) => {
                bytes.extend_from_slice(parts.before);
                bytes.extend_from_slice(br#""resourceVersion":""#);
                // Without the machinery of formats, which takes longer than all else here.
                bytes.extend_from_slice(itoa::Buffer::new().format(revision.get()).as_bytes());
                bytes.extend_from_slice(br#"","#);
                bytes.extend_from_slice(parts.after);
            }
            Piece::Whole(whole) => bytes.extend_from_slice(whole),
        }
    }
}

/// `"resourceVersion":"9223372036854775807",`
const SPLICED_MAX: usize = 40;

/// The stored object as a tree in its hub version, with its `resourceVersion`.
pub(super) fn hub(resource: &Resource, rev: &Rev<Index>) -> Result<Value, Box<Status>> {
    let mut object = index::object(rev).ok_or_else(|| unreadable(rev))?;
    if matches!(resource.origin, Origin::Builtin(_)) {
        // Others may have stored it in a version that is the same in all but name.
        let hub = resource.hub.group_version();
        if object["apiVersion"] != *hub.to_string() {
            object = conversion::convert(object.clone(), &hub).unwrap_or_else(|_| {
                object["apiVersion"] = hub.to_string().into();
                object
            });
        }
    }
    Ok(object)
}

/// The stored object as a tree in the version of the resource, with its `resourceVersion`. Custom
/// resources are read through their schema, as upstream does when they come out of storage.
pub(super) fn shown(resource: &Resource, rev: &Rev<Index>) -> Result<Value, Box<Status>> {
    let object = hub(resource, rev)?;
    match rev.extracted.is_shown() {
        true => Ok(object),
        false => in_version(resource, object),
    }
}

/// An object of the resource in the version of the resource.
pub(super) fn in_version(resource: &Resource, mut object: Value) -> Result<Value, Box<Status>> {
    match &resource.origin {
        Origin::Builtin(_) => {
            let version = resource.group_version();
            let converted = conversion::convert(object, &version);
            Ok(converted.expect("served versions convert to each other"))
        }
        Origin::Custom(custom) => {
            custom::read(&mut object, &resource.gvk, custom)
                .map_err(|why| Box::new(Status::failure(500, Reason::Unknown, why)))?;
            Ok(object)
        }
    }
}

/// Fails unless the value could be read as an object.
pub(crate) fn check(rev: &Rev<Index>) -> Result<(), Box<Status>> {
    if rev.extracted.is_object() { Ok(()) } else { Err(unreadable(rev)) }
}

fn unreadable(rev: &Rev<Index>) -> Box<Status> {
    Box::new(Status::internal_error(format!("unable to decode an object of key {}", rev.key)))
}

/// Whether an object has the bytes that are stored.
fn is_as_stored(object: &Value, parts: &Parts<'_>) -> bool {
    let bytes = index::to_bytes(object);
    let stored = [parts.type_meta, parts.before, parts.after];
    bytes.len() == stored.iter().map(|part| part.len()).sum::<usize>()
        && stored.iter().try_fold(&bytes[..], |rest, part| rest.strip_prefix(*part)).is_some()
}

/// The JSON of an object behind the place where it has said what it is.
fn without_type_meta(mut object: Value, revision: Revision) -> Bytes {
    index::set_resource_version(&mut object, revision);
    if let Some(members) = object.as_object_mut() {
        members.shift_remove("kind");
        members.shift_remove("apiVersion");
    }
    Bytes::from(json::to_vec(&object)).slice(1..)
}

fn broken(error: serde_json::Error) -> Box<Status> {
    Box::new(Status::internal_error(error))
}
