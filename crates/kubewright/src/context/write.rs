//! How what has changed in an object is sent.

use kube::Client;
use serde_json::Value;

use super::{Kind, Site};
use crate::difference::{self, Difference, hold_to};
use crate::endpoint::Endpoint;
use crate::key::ObjectKey;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// What is different, as a patch: what others change meanwhile stays.
    Difference,
    /// The object as it is wanted, in the place of the version that was read.
    Whole,
}

/// Which part was not taken.
pub(crate) enum Unsent {
    Status(kube::Error),
    Object(kube::Error),
}

/// What is written at an address of its own.
#[derive(Clone, Copy)]
enum Part {
    Object,
    Status,
}

impl Site {
    /// What must be known of an object of the controller's own kind, before and after, to write it.
    /// Most of it is the same, and is left as text.
    pub(crate) fn to_compare(
        &self,
        before: &[u8],
        after: &[u8],
    ) -> Result<(Value, Value), serde_json::Error> {
        match self.write {
            Write::Difference => difference::to_compare(before, after),
            Write::Whole => Ok((serde_json::from_slice(before)?, serde_json::from_slice(after)?)),
        }
    }

    /// Writes an object of the controller's own kind.
    pub(crate) async fn write<K: Kind>(
        &self,
        client: &Client,
        key: &ObjectKey,
        before: &Value,
        after: Value,
    ) -> Result<Option<K>, Unsent> {
        self.write_by(client, self.write, key, before, after).await
    }

    /// Sends what has changed. Gives the object as it was last written, if it was.
    pub(crate) async fn write_by<K: Kind>(
        &self,
        client: &Client,
        write: Write,
        key: &ObjectKey,
        before: &Value,
        mut after: Value,
    ) -> Result<Option<K>, Unsent> {
        let Difference { object, status } = Difference::new(before, &after);
        let endpoint = Endpoint::of::<K>(client, key.namespace());
        let (name, manager) = (key.name(), &*self.manager);
        // The status last, since it tells of the rest: a claim that is bound names its volume. But
        // without its finalizer an object that is being deleted may be gone at once, and a whole
        // status may carry annotations: those of a Deployment then raise no generation.
        let is_leaving = before["metadata"].get("deletionTimestamp").is_some();
        let is_carried = write == Write::Whole && object.as_ref().is_some_and(is_metadata_alone);
        let mut parts = [(Part::Object, object), (Part::Status, status)];
        if is_leaving || is_carried {
            parts.reverse();
        }
        let mut written: Option<K> = None;
        for (part, patch) in parts {
            let Some(mut patch) = patch else { continue };
            hold_to(&mut patch, before);
            if let Some(written) = &written {
                let version = Value::from(written.meta().resource_version.clone());
                if patch["metadata"].get("resourceVersion").is_some() {
                    patch["metadata"]["resourceVersion"] = version.clone();
                }
                after["metadata"]["resourceVersion"] = version;
            }
            let sent = match (write, part) {
                (Write::Difference, Part::Object) => endpoint.merge(name, manager, &patch).await,
                (Write::Difference, Part::Status) => {
                    endpoint.merge_status(name, manager, &patch).await
                }
                (Write::Whole, Part::Object) => endpoint.replace(name, None, manager, &after).await,
                (Write::Whole, Part::Status) => {
                    endpoint.replace(name, Some("status"), manager, &after).await
                }
            };
            written = Some(sent.map_err(|error| match part {
                Part::Object => Unsent::Object(error),
                Part::Status => Unsent::Status(error),
            })?);
        }
        Ok(written)
    }
}

fn is_metadata_alone(patch: &Value) -> bool {
    patch.as_object().is_some_and(|patch| patch.keys().all(|field| field == "metadata"))
}
