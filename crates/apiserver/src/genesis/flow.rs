//! Flow control as it is from the start: `data/flow-control.json`.

use std::sync::LazyLock;

use serde_json::Value;

static DATA: LazyLock<Value> = LazyLock::new(|| {
    let text = include_str!("../../data/flow-control.json");
    serde_json::from_str(text).expect("the file is well-formed")
});

/// Without these two no request would find its level. They cannot be changed.
pub(crate) const MANDATORY: [&str; 2] = ["exempt", "catch-all"];

/// Reads the file, before somebody waits for it.
pub(crate) fn prepare() {
    LazyLock::force(&DATA);
}

/// The names and specs of all FlowSchemas.
pub(super) fn schemas() -> impl Iterator<Item = (&'static str, &'static Value)> {
    entries("schemas")
}

/// The names and specs of all PriorityLevelConfigurations.
pub(super) fn levels() -> impl Iterator<Item = (&'static str, &'static Value)> {
    entries("levels")
}

/// The spec that a FlowSchema of this name must have.
pub(crate) fn mandatory_schema(name: &str) -> Option<&'static Value> {
    mandatory(name, schemas())
}

/// The spec that a PriorityLevelConfiguration of this name must have.
pub(crate) fn mandatory_level(name: &str) -> Option<&'static Value> {
    mandatory(name, levels())
}

pub(super) fn is_mandatory(name: &str) -> bool {
    MANDATORY.contains(&name)
}

fn mandatory(
    name: &str,
    mut entries: impl Iterator<Item = (&'static str, &'static Value)>,
) -> Option<&'static Value> {
    if !is_mandatory(name) {
        return None;
    }
    entries.find(|(entry, _)| *entry == name).map(|(_, spec)| spec)
}

fn entries(list: &str) -> impl Iterator<Item = (&'static str, &'static Value)> {
    let entries = DATA[list].as_array().expect("the file has both lists");
    entries.iter().map(|entry| {
        let name = entry["name"].as_str().expect("every entry has a name");
        (name, &entry["spec"])
    })
}
