//! Events as they travel: a line of JSON, or a message with its length before it.

use std::sync::Arc;

use bytes::Bytes;
use kubewright_apimachinery::proto::{self, WatchEvent};
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::table::Include;
use kubewright_apimachinery::{builtin, json};
use kubewright_store::{Bunch, Event, Rev, Revision, Run};
use serde_json::{Value, json};

use crate::encode::{self, Encoder, Renderer, Tables, partial};
use crate::index::Index;
use crate::metrics::Histogram;
use crate::negotiate::{Encoding, MetaVersion, View};
use crate::read::Reader;
use crate::resource::{Origin, Resource};

/// Makes frames for one watch.
pub(super) struct Frames {
    renderer: Renderer,
    shape: Shape,
    is_protobuf: bool,
    encoder: Encoder,
    /// Tables say what their columns are only once.
    has_headers: bool,
    /// The sizes of all frames.
    sizes: Arc<Histogram>,
}

/// What of an object is shown.
enum Shape {
    Object,
    Partial(MetaVersion),
    Table { tables: Arc<Tables>, version: MetaVersion, include: Include },
}

/// What happened to an object, as a watch tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    /// What an event is to someone who sees everything.
    fn of(event: &Event<Index>) -> Option<Self> {
        Change::between(event.previous.is_some(), event.current.is_some())
    }

    /// What it is that something was there for somebody, and is: whatever comes into sight is new,
    /// whatever leaves it is gone.
    pub(super) fn between(was: bool, is: bool) -> Option<Self> {
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(Change::Added),
            (true, true) => Some(Change::Modified),
            (true, false) => Some(Change::Deleted),
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Change::Added => "ADDED",
            Change::Modified => "MODIFIED",
            Change::Deleted => "DELETED",
        }
    }
}

impl Frames {
    /// # Errors
    /// The view that was asked for cannot be given.
    pub(super) fn new(reader: &Reader<'_>, sizes: Arc<Histogram>) -> Result<Self, Box<Status>> {
        let shape = match &reader.format.view {
            View::Object | View::PartialObjectMetadataList(_) => Shape::Object,
            View::PartialObjectMetadata(version) => Shape::Partial(*version),
            View::Table { version, include } => {
                let include = encode::include(include)?;
                let tables = Arc::new(reader.encoder.table(reader.resource, include));
                Shape::Table { tables, version: *version, include }
            }
        };
        Ok(Frames {
            renderer: Renderer::new(reader.resource),
            has_headers: matches!(shape, Shape::Table { .. }),
            shape,
            is_protobuf: reader.format.encoding == Encoding::Protobuf,
            encoder: reader.encoder.clone(),
            sizes,
        })
    }

    pub(super) fn renderer(&self) -> &Renderer {
        &self.renderer
    }

    /// A change as history has it, which watches that want it like this share.
    pub(super) fn event(
        &mut self,
        change: Change,
        event: &Event<Index>,
    ) -> Result<Bytes, Box<Status>> {
        let (rev, revision) = shown_by(change, event);
        if self.has_headers {
            return self.object(change, rev, revision);
        }
        let form = self.renderer.form(self.number(change));
        let frame = event.rendered(form, || self.render(change, rev, revision, false))?;
        Ok(self.counted(frame))
    }

    /// Whether an event looks the same to everyone who wants it in this shape.
    pub(super) fn is_shared(&self) -> bool {
        !self.has_headers
    }

    /// All of a bunch, which watches that want everything like this share.
    pub(super) fn bunch(&self, bunch: &Bunch<Index>) -> Result<Bytes, Box<Status>> {
        let form = self.renderer.form(self.number(Change::Added));
        let run = bunch.rendered(form, || self.run(bunch))?;
        self.sizes.observe_all(&run.lengths);
        Ok(run.bytes)
    }

    fn run(&self, bunch: &Bunch<Index>) -> Result<Run, Box<Status>> {
        let shown =
            bunch.iter().filter_map(|event| Change::of(event).map(|change| (change, event)));
        let mut bytes = Vec::new();
        let mut lengths = Vec::with_capacity(bunch.len());
        for (change, event) in shown {
            let start = bytes.len();
            let (rev, revision) = shown_by(change, event);
            match (&self.shape, self.is_protobuf) {
                // Written again as quickly as it could be kept.
                (Shape::Object, false) => self.write(change, rev, revision, &mut bytes)?,
                _ => {
                    let form = self.renderer.form(self.number(change));
                    let render = || self.render(change, rev, revision, false);
                    bytes.extend_from_slice(&event.rendered(form, render)?);
                }
            }
            lengths.push(bytes.len() - start);
        }
        Ok(Run { bytes: bytes.into(), lengths: lengths.into() })
    }

    /// An object as of some revision.
    pub(super) fn object(
        &mut self,
        change: Change,
        rev: &Rev<Index>,
        revision: Revision,
    ) -> Result<Bytes, Box<Status>> {
        let headers = std::mem::take(&mut self.has_headers);
        let frame = self.render(change, rev, revision, headers)?;
        Ok(self.counted(frame))
    }

    /// Tells how far the watch has come; `is_initial` ends its beginning.
    pub(super) fn bookmark(&mut self, revision: Revision, is_initial: bool) -> Bytes {
        let object = empty(self.renderer.resource(), revision, is_initial);
        let headers = std::mem::take(&mut self.has_headers);
        let object = match &self.shape {
            Shape::Object => object,
            Shape::Partial(version) => partial(&object, *version),
            Shape::Table { tables, version, .. } => {
                let now = self.encoder.now();
                let table = tables.table(&object, *version, now, headers);
                let mut table = table.expect("a bookmark is in no other version");
                if is_initial && table["rows"][0]["object"].is_null() {
                    // Without it nobody could tell that this is the end of the beginning.
                    table["rows"][0]["object"] = partial(&object, *version);
                }
                table
            }
        };
        self.counted(self.framed("BOOKMARK", &object))
    }

    /// The last thing that a watch tells.
    pub(super) fn error(&self, status: &Status) -> Bytes {
        let status = serde_json::to_value(status).expect("a status is JSON");
        self.counted(self.framed("ERROR", &status))
    }

    fn counted(&self, frame: Bytes) -> Bytes {
        self.sizes.observe(frame.len() as u64);
        frame
    }

    fn render(
        &self,
        change: Change,
        rev: &Rev<Index>,
        revision: Revision,
        headers: bool,
    ) -> Result<Bytes, Box<Status>> {
        let ty = change.as_str();
        match (&self.shape, self.is_protobuf) {
            (Shape::Object, false) => {
                let mut bytes = Vec::new();
                self.write(change, rev, revision, &mut bytes)?;
                Ok(kept(bytes))
            }
            (Shape::Object, true) => Ok(sealed(ty, self.renderer.sealed(rev, revision)?)),
            (Shape::Partial(version), false) => {
                let mut bytes = line(ty, rev.value.len());
                self.renderer.write_partial(rev, revision, *version, &mut bytes)?;
                Ok(end(bytes))
            }
            (Shape::Partial(version), true) => {
                let encoding = Encoding::Protobuf;
                let object = self.renderer.partial(rev, revision, *version, encoding)?;
                Ok(sealed(ty, object.to_vec()))
            }
            (Shape::Table { tables, version, .. }, _) => {
                let mut object = tables.row(rev)?;
                crate::index::set_resource_version(&mut object, revision);
                let table = tables.table(&object, *version, self.encoder.now(), headers)?;
                Ok(self.framed(ty, &table))
            }
        }
    }

    /// Writes an event about a whole object as a line of JSON.
    fn write(
        &self,
        change: Change,
        rev: &Rev<Index>,
        revision: Revision,
        bytes: &mut Vec<u8>,
    ) -> Result<(), Box<Status>> {
        let piece = self.renderer.json(rev, revision)?;
        let opening = self.renderer.opening();
        bytes.reserve(LINE_BYTES + opening.len() + piece.bytes_max());
        begin(change.as_str(), bytes);
        bytes.extend_from_slice(opening);
        piece.write(bytes);
        bytes.extend_from_slice(END);
        Ok(())
    }

    fn framed(&self, ty: &str, object: &Value) -> Bytes {
        if self.is_protobuf {
            let object = encode::encode(object, Encoding::Protobuf);
            let object = object.expect("it was agreed that there is protobuf of it");
            return sealed(ty, object.to_vec());
        }
        let mut bytes = line(ty, 256);
        bytes.extend_from_slice(&json::to_vec(object));
        end(bytes)
    }

    /// Tells apart all the ways to write an event of one version of a resource.
    fn number(&self, change: Change) -> u64 {
        let shape = match &self.shape {
            Shape::Object => 0,
            Shape::Partial(MetaVersion::V1) => 1,
            Shape::Partial(MetaVersion::V1Beta1) => 2,
            Shape::Table { version, include, .. } => {
                let include = match include {
                    Include::None => 0,
                    Include::Metadata => 1,
                    Include::Object => 2,
                };
                3 + include * 2 + u64::from(*version == MetaVersion::V1)
            }
        };
        (shape * 2 + u64::from(self.is_protobuf)) * 3 + change as u64
    }
}

/// The object that an event shows, and as of when: what is gone is shown as it was last, at the
/// revision at which it went.
fn shown_by(change: Change, event: &Event<Index>) -> (&Rev<Index>, Revision) {
    let rev = match change {
        Change::Deleted => &event.previous,
        Change::Added | Change::Modified => &event.current,
    };
    (rev.as_ref().expect("what is selected is there"), event.revision)
}

/// About what a line of JSON has besides the object.
const LINE_BYTES: usize = 64;

const END: &[u8] = b"}\n";

/// The beginning of a line of JSON.
fn line(ty: &str, bytes: usize) -> Vec<u8> {
    let mut line = Vec::with_capacity(bytes + LINE_BYTES);
    begin(ty, &mut line);
    line
}

fn begin(ty: &str, line: &mut Vec<u8>) {
    line.extend_from_slice(br#"{"type":""#);
    line.extend_from_slice(ty.as_bytes());
    line.extend_from_slice(br#"","object":"#);
}

fn end(mut line: Vec<u8>) -> Bytes {
    line.extend_from_slice(END);
    kept(line)
}

/// It is kept for others who watch, and would keep the room that it did not need.
fn kept(line: Vec<u8>) -> Bytes {
    line.into_boxed_slice().into()
}

fn sealed(ty: &str, object: Vec<u8>) -> Bytes {
    proto::frame(&WatchEvent { event: ty.to_owned(), object }.encode()).into()
}

/// An object of which only the revision is known.
fn empty(resource: &Resource, revision: Revision, is_initial: bool) -> Value {
    let mut metadata = json!({"resourceVersion": revision.to_string()});
    if is_initial {
        metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
    }
    let mut object = json!({
        "kind": resource.gvk.kind,
        "apiVersion": resource.gvk.api_version(),
        "metadata": metadata,
    });
    match &resource.origin {
        Origin::Builtin(builtin) => match builtin::decode(builtin.kind, object) {
            Ok(decoded) => decoded.value,
            Err(error) => unreachable!("metadata is read by every kind: {error}"),
        },
        Origin::Custom(_) => {
            json::sort_keys(&mut object);
            object
        }
    }
}
