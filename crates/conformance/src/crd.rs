//! CustomResourceDefinitions as a client sees them: accepted at once, served a little later.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::endpoint::{Answer, Endpoint, Request};

pub const PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until every served version answers; false when the names are not accepted, and the
/// definition will therefore never be served.
pub async fn wait_until_served(endpoint: &Endpoint, name: &str) -> Result<bool> {
    let get = Request::get(format!("{PATH}/{name}"));
    let decided = |answer: &Answer| {
        answer.json().is_ok_and(|crd| {
            condition(&crd, "Established") == Some("True")
                || condition(&crd, "NamesAccepted") == Some("False")
        })
    };
    let crd = endpoint.poll(&get, PATIENCE, decided).await?.json()?;
    if condition(&crd, "Established") != Some("True") {
        return Ok(false);
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let group = text(&crd["spec"]["group"]);
    let plural = text(&crd["spec"]["names"]["plural"]);
    for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
        if version["served"] == true {
            let list = format!("/apis/{group}/{}/{plural}?limit=1", text(&version["name"]));
            // A conversion that fails is an answer too; only "no such resource" is not.
            let served = |answer: &Answer| !matches!(answer.status, 404 | 503);
            endpoint.poll(&Request::get(list), PATIENCE, served).await?;
        }
    }
    Ok(true)
}

/// The status of a condition, if the definition has it.
pub fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a str> {
    let conditions = crd["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind)?["status"].as_str()
}
