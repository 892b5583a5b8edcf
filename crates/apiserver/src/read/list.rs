//! Lists on their way out. A long one is written piece by piece, as fast as the client reads.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http::{Response, StatusCode};
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{builtin, proto};
use kubewright_store::Range;
use serde_json::{Map, Value, json};

use crate::body::Body;
use crate::encode::{self, Encoder, Renderer, field};
use crate::index::Index;
use crate::negotiate::{Encoding, Format, MetaVersion, View};
use crate::resource::Origin;

/// Objects of one moment, and how to get more.
pub(crate) struct List {
    pub(super) renderer: Renderer,
    pub(crate) items: Range<Index>,
    /// How many objects were looked at to find these.
    pub(crate) fetched: usize,
    /// Empty when there is nothing more.
    pub(super) continue_token: String,
    pub(super) remaining: Option<usize>,
}

/// What is written at a time.
const CHUNK_BYTES: usize = 64 << 10;

/// Shorter lists are written at once, so that the client learns their length.
const WHOLE_BYTES_MAX: usize = 128 << 10;

impl List {
    pub(crate) fn respond(
        self,
        encoder: &Encoder,
        format: &Format,
    ) -> Result<Response<Body>, Box<Status>> {
        for rev in self.items.iter() {
            encode::check(rev)?;
        }
        let body = match (&format.view, format.encoding) {
            (View::Object, Encoding::Json) => self.json().into_body(),
            (View::Object, Encoding::Protobuf) => self.protobuf()?.into_body(),
            (View::Object, encoding) => encode::encode(&self.tree()?, encoding)?.into(),
            (View::PartialObjectMetadataList(version), encoding) => {
                self.partial(*version, encoding)?
            }
            (View::PartialObjectMetadata(_), _) => {
                return Err(encode::not_an_object(self.renderer.resource()));
            }
            (View::Table { version, include }, encoding) => {
                let tables = encoder.table(self.renderer.resource(), encode::include(include)?);
                let objects = self.items.iter().map(|rev| tables.row(rev));
                let objects = objects.collect::<Result<Vec<_>, _>>()?;
                let list = self.envelope(objects);
                let table = tables.table(&list, *version, encoder.now(), true)?;
                encode::encode(&table, encoding)?.into()
            }
        };
        Ok(encode::respond(StatusCode::OK, format.encoding, body))
    }

    fn json(self) -> Chunks {
        let resource = Arc::clone(self.renderer.resource());
        let api_version = resource.gvk.api_version();
        let (kind, metadata) = (&resource.list_kind, self.metadata());
        let (opening, closing) = match &resource.origin {
            Origin::Builtin(_) => (
                format!(
                    r#"{{"kind":"{kind}","apiVersion":"{api_version}","metadata":{metadata},"items":["#
                ),
                "]}\n".to_owned(),
            ),
            Origin::Custom(_) => (
                format!(r#"{{"apiVersion":"{api_version}","items":["#),
                format!("],\"kind\":\"{kind}\",\"metadata\":{metadata}}}\n"),
            ),
        };
        let bytes = self.items.iter().map(|rev| rev.value.len() + ITEM_EXTRA_BYTES).sum();
        let List { renderer, items, .. } = self;
        let count = items.len();
        let mut items = items.walk();
        let write = move |_, bytes: &mut Vec<u8>| {
            let rev = items.next().expect("they were counted");
            bytes.extend_from_slice(renderer.item_opening());
            renderer.json(rev, rev.revision).expect("it was looked at").write(bytes);
        };
        Chunks::new(opening.into(), ",", closing.into(), count, bytes, write)
    }

    /// The metadata of the list, in the order its origin has it.
    fn metadata(&self) -> String {
        let (revision, token) = (self.items.revision, &self.continue_token);
        let remaining = self.remaining.map(|count| format!(r#""remainingItemCount":{count}"#));
        match &self.renderer.resource().origin {
            Origin::Builtin(_) => {
                let mut text = format!(r#"{{"resourceVersion":"{revision}""#);
                if !token.is_empty() {
                    text.push_str(&format!(r#","continue":"{token}""#));
                }
                text.extend(remaining.map(|remaining| format!(",{remaining}")));
                text + "}"
            }
            Origin::Custom(_) => {
                let remaining = remaining.map(|text| text + ",").unwrap_or_default();
                format!(r#"{{"continue":"{token}",{remaining}"resourceVersion":"{revision}"}}"#)
            }
        }
    }

    fn protobuf(self) -> Result<Chunks, Box<Status>> {
        let messages = self.items.iter().map(|rev| self.renderer.message(rev, rev.revision));
        let messages = messages.collect::<Result<Vec<_>, _>>()?;
        let resource = self.renderer.resource();
        self.messages(&resource.gvk.api_version(), &resource.list_kind, LIST, messages)
    }

    fn partial(self, version: MetaVersion, encoding: Encoding) -> Result<Body, Box<Status>> {
        const KIND: &str = "PartialObjectMetadataList";
        let api_version = version.api_version();
        match encoding {
            Encoding::Protobuf => {
                let messages = self.items.iter();
                let messages =
                    messages.map(|rev| self.renderer.metadata_message(rev, rev.revision));
                let messages = messages.collect::<Result<Vec<_>, _>>()?;
                let numbers = match version {
                    MetaVersion::V1 => LIST,
                    MetaVersion::V1Beta1 => BETA_LIST,
                };
                Ok(self.messages(api_version, KIND, numbers, messages)?.into_body())
            }
            Encoding::Json => {
                let metadata = Value::Object(self.list_meta());
                // Upstream makes no list where nothing is.
                let (begin, end) = match self.items.is_empty() {
                    true => ("null", "}\n"),
                    false => ("[", "]}\n"),
                };
                let opening = format!(
                    r#"{{"kind":"{KIND}","apiVersion":"{api_version}","metadata":{metadata},"items":{begin}"#
                );
                let bytes = self.items.iter().map(|rev| rev.value.len() + ITEM_EXTRA_BYTES).sum();
                let List { renderer, items, .. } = self;
                let count = items.len();
                let mut items = items.walk();
                let write = move |_, bytes: &mut Vec<u8>| {
                    let rev = items.next().expect("they were counted");
                    let written = renderer.write_partial(rev, rev.revision, version, bytes);
                    written.expect("it was looked at");
                };
                let closing = Bytes::from_static(end.as_bytes());
                Ok(Chunks::new(opening.into(), ",", closing, count, bytes, write).into_body())
            }
            Encoding::JsonPretty | Encoding::Yaml => {
                let metadata = Value::Object(self.list_meta());
                let items = self.items.iter().map(|rev| {
                    let mut bytes = Vec::new();
                    self.renderer.write_partial(rev, rev.revision, version, &mut bytes)?;
                    serde_json::from_slice(&bytes)
                        .map_err(|error| Box::new(Status::internal_error(error)))
                });
                let items = items.collect::<Result<Vec<Value>, Box<Status>>>()?;
                let list = json!({
                    "kind": KIND,
                    "apiVersion": api_version,
                    "metadata": metadata,
                    "items": (!items.is_empty()).then_some(items),
                });
                Ok(encode::encode(&list, encoding)?.into())
            }
        }
    }

    /// A list of messages in its envelope.
    fn messages(
        &self,
        api_version: &str,
        kind: &str,
        numbers: Numbers,
        messages: Vec<Bytes>,
    ) -> Result<Chunks, Box<Status>> {
        let ty = builtin::type_named("k8s.io/apimachinery/pkg/apis/meta/v1.ListMeta");
        let metadata = Value::Object(self.list_meta());
        let metadata = proto::encode_message(ty.expect("every list has one"), &metadata)
            .map_err(|error| Box::new(Status::internal_error(error)))?;
        let items: usize =
            messages.iter().map(|item| field(numbers.items, item.len()).len() + item.len()).sum();
        let metadata = [field(numbers.metadata, metadata.len()), metadata].concat();
        let length = metadata.len() + items;
        // Fields go by their numbers.
        let (before, after) = match numbers.metadata < numbers.items {
            true => (metadata, Vec::new()),
            false => (Vec::new(), metadata),
        };

        // The envelope of an empty message ends with the message and two empty texts.
        let envelope = proto::seal(api_version, kind, b"");
        let (head, tail) = envelope.split_at(envelope.len() - ENVELOPE_END.len());
        let mut opening = head.to_vec();
        opening.extend(field(RAW, length));
        opening.extend(before);
        let closing = [&after, &tail[2..]].concat().into();
        let count = messages.len();
        let write = move |n: usize, bytes: &mut Vec<u8>| {
            bytes.extend(field(numbers.items, messages[n].len()));
            bytes.extend_from_slice(&messages[n]);
        };
        Ok(Chunks::new(opening.into(), "", closing, count, items, write))
    }

    /// The list as a tree.
    fn tree(&self) -> Result<Value, Box<Status>> {
        let resource = self.renderer.resource();
        let items = self.items.iter().map(|rev| {
            let mut item = encode::value(resource, rev)?;
            if let (Origin::Builtin(_), Some(members)) = (&resource.origin, item.as_object_mut()) {
                members.shift_remove("kind");
                members.shift_remove("apiVersion");
            }
            Ok(item)
        });
        let items = items.collect::<Result<Vec<_>, Box<Status>>>()?;
        Ok(self.envelope(items))
    }

    fn envelope(&self, items: Vec<Value>) -> Value {
        let resource = self.renderer.resource();
        let metadata = self.metadata();
        let metadata: Value = serde_json::from_str(&metadata).expect("it is an object");
        let (kind, api_version) = (&resource.list_kind, resource.gvk.api_version());
        match &resource.origin {
            Origin::Builtin(_) => json!({
                "kind": kind,
                "apiVersion": api_version,
                "metadata": metadata,
                "items": items,
            }),
            Origin::Custom(_) => json!({
                "apiVersion": api_version,
                "items": items,
                "kind": kind,
                "metadata": metadata,
            }),
        }
    }

    /// The metadata in the order of its type.
    fn list_meta(&self) -> Map<String, Value> {
        let mut metadata = Map::new();
        metadata.insert("resourceVersion".to_owned(), self.items.revision.to_string().into());
        if !self.continue_token.is_empty() {
            metadata.insert("continue".to_owned(), self.continue_token.as_str().into());
        }
        if let Some(remaining) = self.remaining {
            metadata.insert("remainingItemCount".to_owned(), remaining.into());
        }
        metadata
    }
}

/// About what an item has on the wire that is not stored.
const ITEM_EXTRA_BYTES: usize = 48;

/// The field number of the message in an envelope.
const RAW: u8 = 2;

/// The field numbers of a list.
#[derive(Clone, Copy)]
struct Numbers {
    metadata: u8,
    items: u8,
}

const LIST: Numbers = Numbers { metadata: 1, items: 2 };
/// Of `PartialObjectMetadataList` in `meta.k8s.io/v1beta1`, and of no other.
const BETA_LIST: Numbers = Numbers { metadata: 2, items: 1 };

/// An empty message, then encoding and type, which are empty too.
const ENVELOPE_END: [u8; 6] = [0x12, 0, 0x1a, 0, 0x22, 0];

/// Writes the item of this number; asked for one after another.
type WriteItem = Box<dyn FnMut(usize, &mut Vec<u8>) + Send>;

/// A list as bytes, some at a time.
struct Chunks {
    opening: Bytes,
    separator: &'static str,
    closing: Bytes,
    /// About how long the items are.
    bytes: usize,
    next: usize,
    count: usize,
    write: WriteItem,
}

impl Chunks {
    fn new(
        opening: Bytes,
        separator: &'static str,
        closing: Bytes,
        count: usize,
        bytes: usize,
        write: impl FnMut(usize, &mut Vec<u8>) + Send + 'static,
    ) -> Self {
        Chunks { opening, separator, closing, bytes, next: 0, count, write: Box::new(write) }
    }

    fn into_body(mut self) -> Body {
        match self.bytes <= WHOLE_BYTES_MAX {
            true => self.chunk(usize::MAX).into(),
            false => Body::stream(Paced { chunks: self, has_given: false }),
        }
    }

    /// At least as many bytes as wanted, if there are.
    fn chunk(&mut self, wanted: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(wanted.min(self.bytes) + self.opening.len() + 2048);
        bytes.extend_from_slice(&std::mem::take(&mut self.opening));
        while self.next < self.count && bytes.len() < wanted {
            if self.next > 0 {
                bytes.extend_from_slice(self.separator.as_bytes());
            }
            (self.write)(self.next, &mut bytes);
            self.next += 1;
        }
        if self.next == self.count {
            bytes.extend_from_slice(&std::mem::take(&mut self.closing));
        }
        bytes
    }
}

/// A list that is sent while it is written.
struct Paced {
    chunks: Chunks,
    has_given: bool,
}

impl Stream for Paced {
    type Item = Bytes;

    /// Pauses behind every chunk. hyper takes up to a megabyte before it sends any; like this the
    /// client has something to do meanwhile, the bytes are still at hand when they are encrypted,
    /// and others have their turn.
    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if std::mem::take(&mut self.has_given) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let chunk = self.chunks.chunk(CHUNK_BYTES);
        self.has_given = true;
        Poll::Ready((!chunk.is_empty()).then(|| chunk.into()))
    }
}
