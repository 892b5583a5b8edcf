//! An object that reads from protobuf travels as protobuf again.

#![no_main]

use kubewright_apimachinery::{builtin, gvk::GroupVersionKind, proto};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(object) = proto::decode(input) else { return };
    let kind = GroupVersionKind::interpret(&object).expect("an object says what it is");
    let kind =
        builtin::kind(&kind.group, &kind.version, &kind.kind).expect("it was read by its kind");
    let _ = proto::encode(kind, &object);
});
