//! How defaulting and preparing change the tree of an object: filling in, restoring, and counting
//! generations, which most kinds do that keep what is wanted (`spec`) apart from what is
//! (`status`).

use kubewright_apimachinery::builtin::{self, Field, Ty, Type};
use serde_json::{Value, json};

use super::Context;
use crate::meta;

/// Fills in a field that is absent or null. What is not a struct is left alone.
pub(super) fn fill(object: &mut Value, field: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut()
        && fields.get(field).is_none_or(Value::is_null)
    {
        fields.insert(field.to_owned(), value.into());
    }
}

/// Fills in a text that is absent or empty.
pub(super) fn fill_text(object: &mut Value, field: &str, value: &str) {
    if object[field].as_str().is_none_or(str::is_empty) {
        object[field] = value.into();
    }
}

/// The items of a list, of which there are none when it is absent.
pub(super) fn items<'a>(object: &'a mut Value, pointer: &str) -> &'a mut [Value] {
    object.pointer_mut(pointer).and_then(Value::as_array_mut).map_or(&mut [], Vec::as_mut_slice)
}

/// Calls `f` with each item of a list, if it is there.
pub(super) fn each(object: &mut Value, list: &str, f: impl FnMut(&mut Value)) {
    if let Some(items) = object.get_mut(list).and_then(Value::as_array_mut) {
        items.iter_mut().for_each(f);
    }
}

/// Calls `f` with a field that is a struct, if it is there.
pub(super) fn within(object: &mut Value, field: &str, f: impl FnOnce(&mut Value)) {
    if let Some(value) = object.get_mut(field).filter(|value| value.is_object()) {
        f(value);
    }
}

/// The text at a JSON pointer, empty when absent.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// The field as the old object has it, or not at all.
pub(super) fn restore(object: &mut Value, old: &Value, field: &str) {
    let Some(fields) = object.as_object_mut() else { return };
    match old.get(field) {
        Some(value) => {
            fields.insert(field.to_owned(), value.clone());
        }
        None => {
            fields.shift_remove(field);
        }
    }
}

pub(super) fn remove(object: &mut Value, field: &str) {
    if let Some(fields) = object.as_object_mut() {
        fields.shift_remove(field);
    }
}

/// These fields of metadata as the old object has them.
pub(super) fn restore_meta(object: &mut Value, old: &Value, fields: &[&str]) {
    for field in fields {
        meta::restore(object, old, field);
    }
}

/// What a client may not say through `status`: everything in metadata that others decide on.
pub(super) fn restore_meta_for_status(object: &mut Value, old: &Value) {
    const DECIDED: [&str; 6] = [
        "annotations",
        "deletionTimestamp",
        "finalizers",
        "generation",
        "labels",
        "ownerReferences",
    ];
    restore_meta(object, old, &DECIDED);
}

/// An update of the status leaves the rest as it was.
pub(super) fn keep_spec(object: &mut Value, old: &Value, _: &Context<'_>) {
    restore(object, old, "spec");
    count_generation(object, old, false);
}

/// An update leaves the status as it was, and is a new generation when it wants something else.
pub(super) fn keep_status(object: &mut Value, old: &Value, _: &Context<'_>) {
    restore(object, old, "status");
    next_generation(object, old, "spec");
}

/// A new object of a kind that counts its generations.
pub(super) fn first_generation(object: &mut Value) {
    object["metadata"]["generation"] = json!(1);
}

/// Counts a generation if this field means something else than it did.
pub(super) fn next_generation(object: &mut Value, old: &Value, field: &str) {
    let changed = !same(object, old, &[field]);
    count_generation(object, old, changed);
}

/// The generation after a change, or the old one; none where the old object has none.
pub(super) fn count_generation(object: &mut Value, old: &Value, changed: bool) {
    let Some(generation) = old["metadata"]["generation"].as_i64() else { return };
    object["metadata"]["generation"] = json!(generation + i64::from(changed));
}

/// Whether two objects of a built-in kind mean the same at a path of fields.
pub(super) fn same(a: &Value, b: &Value, path: &[&str]) -> bool {
    let Some((last, parents)) = path.split_last() else { return a == b };
    let (mut ty, mut a, mut b) = (type_of(a), Some(a), Some(b));
    for &parent in parents {
        ty = struct_of(field_of(ty, parent));
        a = a.and_then(|value| value.get(parent));
        b = b.and_then(|value| value.get(parent));
    }
    let (a, b) = (a.and_then(|value| value.get(last)), b.and_then(|value| value.get(last)));
    builtin::equal_member(field_of(ty, last), a, b)
}

fn type_of(object: &Value) -> &'static Type {
    let version = text(object, "/apiVersion");
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    let kind = builtin::kind(group, version, text(object, "/kind"));
    kind.expect("objects say what they are").ty()
}

fn field_of(ty: &'static Type, name: &str) -> &'static Field {
    ty.field(name).expect("rules name fields that there are")
}

fn struct_of(field: &'static Field) -> &'static Type {
    match field.ty {
        Ty::Struct(id) => id.get(),
        _ => unreachable!("rules only look into structs"),
    }
}
