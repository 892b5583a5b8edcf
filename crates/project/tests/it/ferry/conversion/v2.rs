//! Objects of `v2` as objects of `v1`, and back.
//!
//! Fields of the same name and form are carried over. What becomes of others is to be written here;
//! what a version has no field for can be kept in an annotation.

use kubewright::webhook::{ConversionError, Spoke};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::ferry::v1::Ferry as Hub;
use crate::ferry::v2::Ferry;

impl Spoke for Ferry {
    type Hub = Hub;

    fn into_hub(self) -> Result<Hub, ConversionError> {
        let Ferry { metadata, spec, status } = self;
        Ok(Hub { metadata, spec: carried(spec)?, status: carried(status)? })
    }

    fn from_hub(hub: Hub) -> Result<Self, ConversionError> {
        let Hub { metadata, spec, status } = hub;
        Ok(Ferry { metadata, spec: carried(spec)?, status: carried(status)? })
    }
}

/// What has the same fields in both versions.
fn carried<A: Serialize, B: DeserializeOwned>(part: A) -> Result<B, ConversionError> {
    Ok(serde_json::from_value(serde_json::to_value(part)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_comes_back_as_it_was() {
        let object = Ferry::new("one", Default::default());
        let back = Ferry::from_hub(object.clone().into_hub().expect("a hub")).expect("back");
        assert_eq!(back, object);
    }
}
