//! What expressions that make patches have beyond others: objects to make, by the names of their
//! types, and keys as they stand in a JSON pointer.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Body, Table};
use crate::cel::types::{Object, Type};
use crate::cel::value::{Failure, Val};

/// Part of what an object looks like. Types of its parts are named after the way to them:
/// `Object.spec.template`.
pub(in crate::cel) const OBJECT: &str = "Object";
/// A step of a JSON patch.
pub(in crate::cel) const STEP: &str = "JSONPatch";

const ESCAPE_KEY: &str = "jsonpatch.escapeKey";

pub(super) fn declare(table: &mut Table) {
    let body = Body::Typed(|args| match args {
        [Val::String(key)] => Ok(Val::text(key.replace('~', "~0").replace('/', "~1"))),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    });
    table.global(ESCAPE_KEY, "string_jsonpatch_escapeKey_string", "string -> string", body);
}

/// Whether only patches have this function.
pub(in crate::cel) fn is_function(name: &str) -> bool {
    name == ESCAPE_KEY
}

/// The type of what a name makes.
pub(in crate::cel) fn type_named(name: &str) -> Option<Type> {
    let is_object =
        name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    if is_object {
        let object = Object {
            name: name.to_owned(),
            fields: BTreeMap::new(),
            is_open: true,
            is_hidden: false,
        };
        return Some(Type::Object(Arc::new(object)));
    }
    (name == STEP).then(|| {
        let texts = ["op", "path", "from"].map(|field| (field.into(), Type::String));
        let value = ("value".into(), Type::Dyn);
        Type::object(STEP, texts.into_iter().chain([value]).collect())
    })
}
