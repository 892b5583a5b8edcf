//! What an update may touch, and how generations are counted: the same for most kinds that keep
//! what is wanted (`spec`) apart from what is (`status`).

use kubewright_apimachinery::builtin::{self, Field, Ty, Type};
use serde_json::Value;

use super::{Context, edit};

/// The first generation. An update counts on from there.
pub(super) fn begin(object: &mut Value) {
    object["metadata"]["generation"] = 1.into();
}

/// An update of the status leaves the rest as it was.
pub(super) fn keep_spec(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(object, old, "spec");
    count(object, old, false);
}

/// An update leaves the status as it was, and is a new generation when it wants something else.
pub(super) fn keep_status(object: &mut Value, old: &Value, _: &Context<'_>) {
    edit::restore(object, old, "status");
    let changed = !same(object, old, &["spec"]);
    count(object, old, changed);
}

/// The generation after a change, or the old one.
pub(super) fn count(object: &mut Value, old: &Value, changed: bool) {
    let Some(generation) = old["metadata"]["generation"].as_i64() else { return };
    object["metadata"]["generation"] = (generation + i64::from(changed)).into();
}

/// Whether two objects of a built-in kind mean the same at a path of fields.
pub(super) fn same(a: &Value, b: &Value, path: &[&str]) -> bool {
    let Some((last, parents)) = path.split_last() else { return a == b };
    let (mut ty, mut a, mut b) = (type_of(a), Some(a), Some(b));
    for &parent in parents {
        ty = struct_of(field(ty, parent));
        a = a.and_then(|value| value.get(parent));
        b = b.and_then(|value| value.get(parent));
    }
    let (a, b) = (a.and_then(|value| value.get(last)), b.and_then(|value| value.get(last)));
    builtin::equal_member(field(ty, last), a, b)
}

fn type_of(object: &Value) -> &'static Type {
    let text = |name: &str| object[name].as_str().unwrap_or_default();
    let version = text("apiVersion");
    let (group, version) = version.rsplit_once('/').unwrap_or(("", version));
    builtin::kind(group, version, text("kind")).expect("objects say what they are").ty()
}

fn field(ty: &'static Type, name: &str) -> &'static Field {
    ty.field(name).expect("rules name fields that there are")
}

fn struct_of(field: &'static Field) -> &'static Type {
    match field.ty {
        Ty::Struct(id) => id.get(),
        _ => unreachable!("rules only look into structs"),
    }
}
