use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::builtin::Ty;
use crate::json;

/// An object as upstream encodes it.
struct Golden {
    name: String,
    json: String,
    /// The JSON of the object that was read from that.
    normal: String,
    /// Its protobuf; `None` for kinds without.
    wire: Option<Vec<u8>>,
    /// The JSON of the object that was read from the protobuf.
    back: String,
}

fn golden_text() -> String {
    let mut text = String::new();
    let packed = &include_bytes!("golden.txt.gz")[..];
    flate2::read::GzDecoder::new(packed).read_to_string(&mut text).expect("the fixture is whole");
    text
}

fn golden() -> Vec<Golden> {
    let parse = |line: &str| {
        let [name, json, normal, wire, back] = line.split('\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        let normal = if normal == "=" { json } else { normal };
        Some(Golden {
            name: name.to_owned(),
            json: json.to_owned(),
            normal: normal.to_owned(),
            wire: (wire != "-").then(|| STANDARD.decode(wire).expect("it is base64")),
            back: if back == "=" { normal } else { back }.to_owned(),
        })
    };
    let objects: Vec<_> = golden_text().lines().filter_map(parse).collect();
    assert_eq!(objects.len(), builtin::kinds().len() * 4, "each kind has its variants");
    objects
}

fn kind_of(name: &str) -> &'static Kind {
    let mut words = name.split([' ']);
    let (api_version, kind) = (words.next().unwrap(), words.next().unwrap());
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    builtin::kind(group, version, kind).unwrap_or_else(|| panic!("{name} is in the table"))
}

fn parse(json: &str) -> Value {
    json::decode(json.as_bytes()).expect("golden JSON is JSON").value
}

/// The first byte that differs, with what is around it.
fn difference(ours: &[u8], theirs: &[u8]) -> String {
    let at = ours.iter().zip(theirs).take_while(|(a, b)| a == b).count();
    let around = |bytes: &[u8]| {
        let end = bytes.len().min(at + 40);
        String::from_utf8_lossy(&bytes[at.saturating_sub(60).min(end)..end]).into_owned()
    };
    format!("at {at}\n  ours   {:?}\n  theirs {:?}", around(ours), around(theirs))
}

#[test]
fn the_objects_and_the_table_are_of_one_generator() {
    fn header(text: &str) -> Vec<&str> {
        text.lines().take(2).collect()
    }
    assert_eq!(header(&golden_text()), header(include_str!("../../data/types.txt")));
}

#[test]
fn every_kind_is_encoded_as_upstream_does() {
    for object in golden() {
        let (kind, value) = (kind_of(&object.name), parse(&object.normal));
        let encoded = match kind.kind {
            // It is a frame of a stream, not an object: it has no envelope.
            "WatchEvent" => encode_message(kind.ty(), &value),
            _ => encode(kind, &value),
        };
        match object.wire {
            Some(wire) => {
                let encoded = encoded.unwrap_or_else(|error| panic!("{}: {error}", object.name));
                assert!(encoded == wire, "{}: {}", object.name, difference(&encoded, &wire));
            }
            None => assert!(matches!(encoded, Err(EncodeError::NoProtobuf { .. }))),
        }
    }
}

#[test]
fn every_kind_is_decoded_as_upstream_does() {
    for object in golden() {
        let Some(wire) = object.wire else { continue };
        let kind = kind_of(&object.name);
        let decoded = match kind.kind {
            "WatchEvent" => decode_message(kind.ty(), &wire),
            _ => decode(&wire),
        };
        let decoded = decoded.unwrap_or_else(|error| panic!("{}: {error}", object.name));
        let decoded = json::to_string(&decoded);
        let (ours, theirs) = (decoded.as_bytes(), object.back.as_bytes());
        assert!(ours == theirs, "{}: {}", object.name, difference(ours, theirs));
    }
}

#[test]
fn every_kind_is_read_from_json_as_upstream_does() {
    for object in golden() {
        let decoded = builtin::decode(kind_of(&object.name), parse(&object.json));
        let decoded = decoded.unwrap_or_else(|error| panic!("{}: {error}", object.name));
        assert_eq!(decoded.violations, [], "{}", object.name);
        let printed = json::to_string(&decoded.value);
        let (ours, theirs) = (printed.as_bytes(), object.normal.as_bytes());
        assert!(ours == theirs, "{}: {}", object.name, difference(ours, theirs));
    }
}

#[test]
fn a_map_is_printed_in_the_order_of_its_keys() {
    let encode = |data| encode_message(config_map().ty(), &json!({ "data": data })).unwrap();
    let twice = [encode(json!({"b": "1"})), encode(json!({"a": "2"}))].concat();
    let merged = decode_message(config_map().ty(), &twice).unwrap();
    assert_eq!(json::to_string(&merged["data"]), r#"{"a":"2","b":"1"}"#);
}

#[test]
fn a_kind_without_protobuf_is_refused() {
    let table = builtin::kind("meta.k8s.io", "v1", "Table").unwrap();
    assert_eq!(encode(table, &json!({})), Err(EncodeError::NoProtobuf { kind: "Table" }));
    let sealed = seal("meta.k8s.io/v1", "Table", b"");
    assert_eq!(decode(&sealed), Err(DecodeError::NoProtobuf { kind: "Table" }));
}

fn config_map() -> &'static Kind {
    builtin::kind("", "v1", "ConfigMap").unwrap()
}

#[test]
fn what_is_not_an_object_is_refused_in_upstreams_words() {
    let check = |bytes: &[u8], message: &str| {
        assert_eq!(decode(bytes).unwrap_err().to_string(), message);
    };
    check(b"", "empty data");
    check(b"k8s\0", "empty body");
    check(
        b"{\"kind\":\"Pod\"}",
        "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]",
    );
    check(b"k8s\0\x0a\x05", "unexpected EOF");
    check(b"k8s\0\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow");
    check(&seal("v1", "ConfigMap", b"\x08\x01"), "proto: wrong wireType = 0 for field metadata");
    check(
        &seal("v1", "", b""),
        "Object 'Kind' is missing in 'runtime.TypeMeta{APIVersion:\"v1\", Kind:\"\"}'",
    );
    check(
        &seal("", "Pod", b""),
        "Object 'apiVersion' is missing in 'runtime.TypeMeta{APIVersion:\"\", Kind:\"Pod\"}'",
    );
    check(&seal("v1", "Nothing", b""), "no kind \"Nothing\" is registered for version \"v1\"");
}

#[test]
fn unknown_fields_are_skipped() {
    let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    let mut message = encode_message(config_map().ty(), &object).unwrap();
    // Number 1000 as a varint, eight bytes, a string, a group that holds a field, and four bytes.
    message
        .extend(b"\xc0\x3e\x07\xc1\x3e12345678\xc2\x3e\x01x\xc3\x3e\x08\x01\xc4\x3e\xc5\x3e1234");
    assert_eq!(decode(&seal("v1", "ConfigMap", &message)).unwrap(), object);
}

#[test]
fn a_message_that_comes_twice_is_merged() {
    let encode =
        |metadata| encode_message(config_map().ty(), &json!({ "metadata": metadata })).unwrap();
    let twice = [encode(json!({"labels": {"a": "1"}})), encode(json!({"labels": {"b": "2"}}))];
    let merged = decode_message(config_map().ty(), &twice.concat()).unwrap();
    assert_eq!(merged["metadata"]["labels"], json!({"a": "1", "b": "2"}));
}

#[test]
fn packed_numbers_are_read() {
    let context = builtin::kind("", "v1", "Pod").unwrap().ty();
    // spec.securityContext.supplementalGroups = [1, 2]
    let message = b"\x12\x06\x72\x04\x22\x02\x01\x02";
    let pod = decode_message(context, message).unwrap();
    assert_eq!(pod["spec"]["securityContext"]["supplementalGroups"], json!([1, 2]));
}

/// Puts bytes below the fields of a path, the way a message would hold them.
fn nest(ty: &'static Type, path: &[&str], inner: Vec<u8>) -> Vec<u8> {
    let Some((first, rest)) = path.split_first() else { return inner };
    let field = ty.field(first).unwrap_or_else(|| panic!("{} has {first}", ty.name));
    let mut of = &field.ty;
    if let Ty::List(element) = of {
        of = element;
    }
    let Ty::Struct(below) = of else { panic!("{first} is a message") };
    let mut writer = wire::Writer::default();
    writer.bytes(field.proto.unwrap(), &nest(below.get(), rest, inner));
    writer.finish()
}

#[test]
fn messages_nested_without_end_are_refused() {
    let definition = builtin::kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let definition = definition.unwrap().ty();
    let path = ["spec", "versions", "schema", "openAPIV3Schema"];
    let decode = |levels| {
        let path = [&path[..], &vec!["not"; levels]].concat();
        decode_message(definition, &nest(definition, &path, Vec::new()))
    };
    assert!(decode(100).is_ok());
    assert_eq!(decode(1_000), Err(DecodeError::TooDeep));
}

#[test]
fn a_watch_event_survives_its_frame() {
    let object = encode(config_map(), &json!({"metadata": {"name": "a"}})).unwrap();
    let event = WatchEvent { event: "ADDED".to_owned(), object };
    let stream = [frame(&event.encode()), frame(b""), frame(&event.encode())].concat();
    let mut frames = Frames::new(1 << 20);
    let mut messages = Vec::new();
    for byte in stream {
        frames.push(&[byte]);
        messages.extend(frames.next_message().unwrap());
    }
    assert_eq!(messages, [event.encode(), vec![], event.encode()]);
    assert_eq!(WatchEvent::decode(&messages[0]), Ok(event));
}

#[test]
fn a_frame_that_is_too_long_is_refused_before_it_comes() {
    let mut frames = Frames::new(10);
    frames.push(&[0, 0, 0, 11]);
    assert_eq!(frames.next_message(), Err(frame::FrameTooLarge { bytes: 11, bytes_max: 10 }));
}

proptest! {
    #[test]
    fn bytes_never_panic(bytes: Vec<u8>, kind in 0..builtin::kinds().len()) {
        let kind = &builtin::kinds()[kind];
        let _ = decode_message(kind.ty(), &bytes);
        let _ = decode(&bytes);
        let _ = WatchEvent::decode(&bytes);
    }

    #[test]
    fn objects_survive_protobuf(seed: u64) {
        let mut maker = builtin::Maker::new(seed, 0);
        let kind = maker.kind();
        let object = builtin::decode(kind, maker.object(kind)).expect("it is of its type").value;
        let again = builtin::decode(kind, object.clone()).expect("it is of its type").value;
        prop_assert_eq!(json::to_string(&again), json::to_string(&object));
        let Ok(wire) = encode(kind, &object) else { return Ok(()) };
        // Empty collections are gone after the first time.
        let read = decode(&wire).expect("we wrote it");
        let again = decode(&encode(kind, &read).expect("it is in normal form"));
        prop_assert_eq!(json::to_string(&again.expect("we wrote it")), json::to_string(&read));
    }

    /// Objects one byte away from real ones reach further than noise.
    #[test]
    fn damaged_objects_never_panic(object in 0..100_usize, at: prop::sample::Index, byte: u8) {
        thread_local! {
            static OBJECTS: Vec<Vec<u8>> = golden().into_iter().filter_map(|g| g.wire).collect();
        }
        OBJECTS.with(|objects| {
            let mut bytes = objects[object * objects.len() / 100].clone();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(value) = decode(&bytes) {
                let kind = value["kind"].as_str().unwrap_or_default().to_owned();
                let api_version = value["apiVersion"].as_str().unwrap_or_default().to_owned();
                let name = format!("{api_version} {kind}");
                let again = encode(kind_of(&name), &value);
                prop_assert_eq!(decode(&again.expect("what was decoded is normal")), Ok(value));
            }
            Ok(())
        })?;
    }
}
