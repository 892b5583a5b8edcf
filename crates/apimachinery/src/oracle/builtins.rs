//! Objects of built-in kinds, in JSON and in protobuf.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::agree;
use crate::builtin::{self, Kind, Maker};
use crate::{json as codec, proto};

/// A document of some kind, with `noise` things in 1,000 out of place.
fn document(noise: u64) -> impl Strategy<Value = (&'static Kind, String)> {
    any::<u64>().prop_map(move |seed| {
        let mut maker = Maker::new(seed, noise);
        let kind = maker.kind();
        (kind, codec::to_string(&maker.object(kind)))
    })
}

fn args((kind, text): &(&'static Kind, String)) -> Value {
    json!({"group": kind.group, "version": kind.version, "kind": kind.kind, "text": text})
}

fn read((kind, text): &(&'static Kind, String)) -> Result<Value, String> {
    let document = codec::decode_shaped(text.as_bytes(), builtin::shape(kind));
    let document = document.map_err(|error| error.to_string())?;
    let object = builtin::decode(kind, document.value).map_err(|error| error.to_string())?;
    assert_eq!(object.violations, document.violations, "both ways tell the same");
    let violations: Vec<_> = document.violations.iter().map(ToString::to_string).collect();
    let wire = match proto::encode(kind, &object.value) {
        Ok(wire) => Value::String(STANDARD.encode(wire)),
        Err(proto::EncodeError::NoProtobuf { .. }) => Value::Null,
        Err(error) => panic!("{text}: {error}"),
    };
    Ok(json!({"json": codec::to_string(&object.value), "violations": violations, "proto": wire}))
}

#[test]
fn objects_are_read_and_printed_as_upstream_does() {
    agree("builtin", document(0), args, read);
}

#[test]
fn objects_with_mistakes_are_read_or_refused_as_upstream_does() {
    agree("builtin", document(30), args, read);
}
