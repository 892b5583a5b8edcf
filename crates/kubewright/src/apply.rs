//! Objects that are applied: sent as a whole by their owner, who says only what it wants.
//!
//! What is already as it is wanted is not sent; [`settled`] decides that from the object in the
//! cache alone.

pub(crate) mod settled;

use serde::Serialize;
use serde_json::{Map, Value};

/// An object as it is applied: what its author said, named and typed.
pub(crate) fn wanted<K>(object: &K) -> Result<Value, serde_json::Error>
where
    K: kube::Resource<DynamicType = ()> + Serialize,
{
    let mut value = serde_json::to_value(object)?;
    if let Value::Object(fields) = &mut value {
        fields.insert("apiVersion".to_owned(), K::api_version(&()).into());
        fields.insert("kind".to_owned(), K::kind(&()).into());
        // Of the server, or of others.
        fields.remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            OF_THE_SERVER.iter().for_each(|field| drop(metadata.remove(*field)));
        }
        drop_nothing(fields);
    }
    Ok(value)
}

/// Metadata that an author never wants, but copies with an object that was read.
const OF_THE_SERVER: [&str; 7] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
];

/// Takes out what is null: whoever leaves out a field does not want it to be empty.
fn drop_nothing(fields: &mut Map<String, Value>) {
    fields.retain(|_, value| !value.is_null());
    for value in fields.values_mut() {
        if let Value::Object(fields) = value {
            drop_nothing(fields);
        }
    }
}
