//! Loads what upstream answered: the recordings below `fixtures/`, one file per case.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Deserialize)]
pub(crate) struct Case {
    /// The file's name without its extension.
    #[serde(skip)]
    pub(crate) name: String,
    /// The claim that the recording settles.
    pub(crate) about: String,
    pub(crate) steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    pub(crate) request: Request,
    pub(crate) answer: Answer,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) query: BTreeMap<String, String>,
    #[serde(rename = "type")]
    pub(crate) content_type: String,
    pub(crate) accept: String,
    pub(crate) body: Option<Value>,
    pub(crate) text: Option<String>,
    /// Keys of the step that the recorder does not know.
    #[serde(flatten)]
    pub(crate) more: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) warnings: Vec<String>,
    pub(crate) body: Option<Value>,
    pub(crate) text: Option<String>,
    /// What a watch sent, when the step was one.
    #[serde(default)]
    pub(crate) events: Vec<Value>,
}

/// All recordings of `fixtures/<area>`, in order of their names.
///
/// # Panics
/// When there are none, or one cannot be read: a test without its fixtures proves nothing.
pub(crate) fn load(area: &str) -> Vec<Case> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(area);
    let entries = fs::read_dir(&dir).unwrap_or_else(|error| panic!("{}: {error}", dir.display()));
    let mut cases: Vec<Case> = entries
        .map(|entry| entry.expect("a folder that opens can be listed").path())
        .filter_map(|path| {
            let name = path.file_name()?.to_str()?.strip_suffix(".recorded.json")?.to_owned();
            let text = fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let case: Case = serde_json::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            Some(Case { name, ..case })
        })
        .collect();
    assert!(!cases.is_empty(), "{} holds no recordings", dir.display());
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

#[test]
fn every_recording_is_whole() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let areas = fs::read_dir(&fixtures).into_iter().flatten().map(|area| area.unwrap().file_name());
    for area in areas {
        let area = area.into_string().unwrap();
        for Case { name, about, steps } in load(&area) {
            assert!(!about.is_empty() && !steps.is_empty(), "{area}/{name} claims nothing");
            for Step { request, answer } in steps {
                let line = format!("{area}/{name}: {} {}", request.method, request.path);
                assert!(request.path.starts_with('/'), "{line}: no path");
                assert!(!request.accept.is_empty() && !request.content_type.is_empty(), "{line}");
                assert!(request.query.keys().all(|key| !key.is_empty()), "{line}: empty key");
                assert!(request.more.keys().all(|key| key != "request"), "{line}: nested step");
                assert!(request.body.is_none() || request.text.is_none(), "{line}: two bodies");
                assert!((200..600).contains(&answer.status), "{line}: status {}", answer.status);
                assert!(answer.warnings.iter().all(|text| !text.is_empty()), "{line}: warnings");
                assert!(
                    answer.body.is_none() || answer.text.is_none() && answer.events.is_empty(),
                    "{line}: two answers"
                );
            }
        }
    }
}
