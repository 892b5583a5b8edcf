//! What the server says, read no further than needed.

use std::borrow::Cow;
use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use serde::Deserialize;
use serde_json::value::RawValue;

/// One line of a watch.
#[derive(Deserialize)]
pub(super) struct Line<'a> {
    #[serde(rename = "type", borrow)]
    pub(super) event: Cow<'a, str>,
    #[serde(borrow)]
    pub(super) object: &'a RawValue,
}

/// A page of a list.
#[derive(Deserialize)]
pub(super) struct Page<'a> {
    #[serde(default)]
    pub(super) metadata: PageMeta,
    #[serde(borrow, default)]
    pub(super) items: Vec<&'a RawValue>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
pub(super) struct PageMeta {
    #[serde(default)]
    pub(super) resource_version: String,
    #[serde(default, rename = "continue")]
    pub(super) next: String,
}

/// As much of an object as every one has.
#[derive(Deserialize, Default)]
pub(super) struct Bare {
    #[serde(default)]
    pub(super) metadata: ObjectMeta,
}

/// What ends a watch before its time.
#[derive(Deserialize)]
pub(super) struct Ended {
    #[serde(default)]
    pub(super) code: u16,
    #[serde(default)]
    pub(super) message: String,
}

impl Bare {
    pub(super) fn version(&self) -> &str {
        self.metadata.resource_version.as_deref().unwrap_or_default()
    }

    /// Whether it is the bookmark after all that was there.
    pub(super) fn ends_initial_events(&self) -> bool {
        let annotations: Option<&BTreeMap<String, String>> = self.metadata.annotations.as_ref();
        annotations
            .and_then(|known| known.get("k8s.io/initial-events-end"))
            .is_some_and(|v| v == "true")
    }
}
