//! The bodies of requests and answers, kept as they travelled until somebody writes them down.

use bytes::Bytes;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::{json, proto, yaml};
use serde::Deserialize as _;
use serde_json::Value;

/// What a client sent.
#[derive(Debug, Clone)]
pub(super) enum Sent {
    Object(Content),
    /// Instructions to change one, in JSON or YAML; of no kind.
    Patch(Bytes),
}

/// A body, in as many pieces as it was sent.
#[derive(Debug, Clone)]
pub(super) struct Content {
    media: Media,
    pieces: Vec<Bytes>,
}

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Media {
    Json,
    Yaml,
    Protobuf,
}

impl Media {
    /// `None` for what is no object: text, metrics.
    pub(super) fn of(content_type: &[u8]) -> Option<Self> {
        let media = content_type.split(|byte| *byte == b';').next()?;
        match media.trim_ascii() {
            b"application/json" => Some(Media::Json),
            b"application/yaml" => Some(Media::Yaml),
            b"application/vnd.kubernetes.protobuf" => Some(Media::Protobuf),
            _ => None,
        }
    }
}

impl Sent {
    pub(super) fn len(&self) -> usize {
        match self {
            Sent::Object(content) => content.len(),
            Sent::Patch(patch) => patch.len(),
        }
    }

    /// JSON on one line. What is neither JSON nor YAML cannot be told; upstream loses the whole
    /// event then, and also if it is YAML.
    pub(super) fn line(&self, omit_managed_fields: bool) -> Option<Bytes> {
        match self {
            Sent::Object(content) => content.line(omit_managed_fields),
            Sent::Patch(patch) => {
                let tree = match json::decode(patch) {
                    Ok(decoded) => decoded.value,
                    Err(_) => yaml::decode(std::str::from_utf8(patch).ok()?).ok()?.value,
                };
                Some(json::to_vec(&tree).into())
            }
        }
    }
}

impl Content {
    pub(super) fn new(media: Media, bytes: Bytes) -> Self {
        Content { media, pieces: vec![bytes] }
    }

    /// To be filled.
    pub(super) fn empty(media: Media) -> Self {
        Content { media, pieces: Vec::new() }
    }

    pub(super) fn push(&mut self, bytes: Bytes) {
        self.pieces.push(bytes);
    }

    pub(super) fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether it may be a Status, which is worth looking into at every level. Lists and objects
    /// of any size are passed over at a glance.
    pub(super) fn may_be_status(&self) -> bool {
        let Some(bytes) = self.pieces.first() else { return false };
        let start = &bytes[..bytes.len().min(40)];
        let says = |word: &[u8]| start.windows(word.len()).any(|at| at == word);
        match self.media {
            // Their first field is the kind.
            Media::Json => says(b"\"Status\""),
            Media::Protobuf => says(b"Status"),
            Media::Yaml => bytes.split(|byte| *byte == b'\n').any(|line| line == b"kind: Status"),
        }
    }

    /// The Status, if it is one.
    pub(super) fn status(&self) -> Option<Status> {
        let tree = self.may_be_status().then(|| self.tree()).flatten()?;
        let is_status = tree["kind"] == "Status" && tree["apiVersion"] == "v1";
        is_status.then(|| Status::deserialize(tree).ok()).flatten()
    }

    /// JSON on one line, if this is an object that says its kind.
    pub(super) fn line(&self, omit_managed_fields: bool) -> Option<Bytes> {
        if self.media == Media::Json && !omit_managed_fields {
            let bytes = self.bytes();
            let line = bytes.trim_ascii();
            let says_kind =
                line.starts_with(b"{\"kind\":") || line.starts_with(b"{\"apiVersion\":");
            let is_whole = line.ends_with(b"}") && !line.contains(&b'\n');
            if says_kind && is_whole {
                return Some(bytes.slice_ref(line));
            }
        }
        let mut tree = self.tree()?;
        if !(tree["kind"].is_string() && tree["apiVersion"].is_string()) {
            return None;
        }
        if omit_managed_fields {
            drop_managed_fields(&mut tree);
        }
        Some(json::to_vec(&tree).into())
    }

    /// What it says, if it is whole.
    fn tree(&self) -> Option<Value> {
        let bytes = self.bytes();
        match self.media {
            Media::Json => Some(json::decode(&bytes).ok()?.value),
            Media::Yaml => Some(yaml::decode(std::str::from_utf8(&bytes).ok()?).ok()?.value),
            Media::Protobuf => proto::decode(&bytes).ok(),
        }
    }

    fn bytes(&self) -> Bytes {
        match self.pieces.as_slice() {
            [whole] => whole.clone(),
            pieces => pieces.concat().into(),
        }
    }
}

/// Drops them from an object, the items of a list, or the objects in the rows of a table.
fn drop_managed_fields(tree: &mut Value) {
    if let Some(metadata) = tree.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    let is_table = tree["kind"] == "Table";
    let is_list = tree["kind"].as_str().is_some_and(|kind| kind.ends_with("List"));
    let items = match (is_table, is_list) {
        (true, _) => tree.get_mut("rows"),
        (_, true) => tree.get_mut("items"),
        _ => None,
    };
    for item in items.and_then(Value::as_array_mut).into_iter().flatten() {
        let object = if is_table { item.get_mut("object") } else { Some(item) };
        let metadata = object.and_then(|object| object.get_mut("metadata"));
        if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
            metadata.shift_remove("managedFields");
        }
    }
}
