//! Pets whose birthdays are days.
//!
//! What this version has no field for, the time of the day, is kept in an annotation, so that
//! nothing is lost on the way there and back. Days are those of UTC.

#[cfg(test)]
mod tests;

use jiff::Timestamp;
use jiff::civil::{Date, Time};
use jiff::tz::TimeZone;
use kube::CustomResource;
use kubewright::webhook::{ConversionError, Spoke};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::{NAMELESS, PetStatus, PetType, v1alpha1};

/// The moment of a birthday that is not the beginning of a day.
const BIRTHDAY: &str = "petstore.example.com/birthday";

/// A pet that is kept in the store.
#[derive(CustomResource, Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[kube(group = "petstore.example.com", version = "v1beta1", kind = "Pet", namespaced)]
#[kube(status = "PetStatus", derive = "PartialEq")]
#[kube(printcolumn = r#"{"name":"Pet", "type":"string", "jsonPath":".spec.name"}"#)]
#[kube(printcolumn = r#"{"name":"Kind", "type":"string", "jsonPath":".spec.kind"}"#)]
#[kube(printcolumn = r#"{"name":"Birthday", "type":"string", "jsonPath":".spec.birthday"}"#)]
#[kube(
    printcolumn = r#"{"name":"Ready", "type":"string", "jsonPath":".status.conditions[?(@.type==\"Ready\")].status"}"#
)]
#[kube(printcolumn = r#"{"name":"ID", "type":"string", "jsonPath":".status.id", "priority":1}"#)]
#[kube(printcolumn = r#"{"name":"Age", "type":"date", "jsonPath":".metadata.creationTimestamp"}"#)]
pub struct PetSpec {
    /// What the pet is called.
    #[schemars(extend("x-kubernetes-validations" = [{"rule": "self != ''", "message": NAMELESS}]))]
    pub name: String,
    /// What it is.
    pub kind: PetType,
    /// When it was born, as `2021-04-01`.
    #[schemars(schema_with = "date")]
    pub birthday: Date,
}

impl Spoke for Pet {
    type Hub = v1alpha1::Pet;

    /// The same pet as it is stored. Only a birthday before all time is an error, which the schema
    /// lets nobody write.
    fn into_hub(self) -> Result<v1alpha1::Pet, ConversionError> {
        let Pet { mut metadata, spec, status } = self;
        let annotations = metadata.annotations.as_mut();
        let moment = annotations.and_then(|annotations| annotations.remove(BIRTHDAY));
        let moment = moment.and_then(|moment| moment.parse().ok());
        // It is out of date if the day was changed.
        let birthday = match moment.filter(|&moment| date_of(moment) == spec.birthday) {
            Some(moment) => moment,
            None => TimeZone::UTC.to_timestamp(spec.birthday.to_datetime(Time::midnight()))?,
        };
        let spec = v1alpha1::PetSpec { name: spec.name, kind: spec.kind, birthday };
        Ok(v1alpha1::Pet { metadata, spec, status })
    }

    fn from_hub(hub: v1alpha1::Pet) -> Result<Self, ConversionError> {
        let v1alpha1::Pet { mut metadata, spec, status } = hub;
        let v1alpha1::PetSpec { name, kind, birthday } = spec;
        if birthday.to_zoned(TimeZone::UTC).time() == Time::midnight() {
            if let Some(annotations) = &mut metadata.annotations {
                annotations.remove(BIRTHDAY);
            }
        } else {
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.insert(BIRTHDAY.to_owned(), birthday.to_string());
        }
        let spec = PetSpec { name, kind, birthday: date_of(birthday) };
        Ok(Pet { metadata, spec, status })
    }
}

fn date_of(moment: Timestamp) -> Date {
    moment.to_zoned(TimeZone::UTC).date()
}

fn date(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date"})
}
