//! How much a claim of devices counts.

use serde_json::Value;

use super::count;
use crate::resources::{Amounts, add, items, text};

const OBJECTS: &str = "count/resourceclaims.resource.k8s.io";
const BY_DEVICE_CLASS: &str = ".deviceclass.resource.k8s.io/devices";
/// What a request for all devices of a class counts as: as many as a claim can hold.
const DEVICES_MAX: i64 = 32;

/// Whether a quota for this is about claims.
pub(super) fn counts(name: &str) -> bool {
    name == OBJECTS || name.ends_with(BY_DEVICE_CLASS)
}

pub(super) fn usage(claim: &Value) -> Amounts {
    let mut usage = Amounts::from([(OBJECTS.to_owned(), count(1))]);
    for request in items(&claim["spec"]["devices"]["requests"]) {
        // Of alternatives, the largest of each class counts.
        let mut most = Amounts::new();
        let alternatives = items(&request["firstAvailable"]).iter();
        let exactly = request.get("exactly").filter(|_| alternatives.len() == 0);
        for one in alternatives.chain(exactly) {
            let number = match text(&one["allocationMode"]) {
                "ExactCount" => one["count"].as_i64().unwrap_or_default(),
                "All" => DEVICES_MAX,
                _ => 0,
            };
            let name = format!("{}{BY_DEVICE_CLASS}", text(&one["deviceClassName"]));
            let most = most.entry(name).or_default();
            *most = count(number).max(most.clone());
        }
        add(&mut usage, &most);
    }
    usage
}
