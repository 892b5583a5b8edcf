//! `/version`: which Kubernetes this behaves as, and who says so.

use std::env::consts::{ARCH, OS};

use kubewright_apimachinery::json;
use serde_json::{Value, json};

use crate::document::{Answer, Question, respond};

/// The release whose behaviour is served, as servers report it that are told nothing else. The part
/// after `+` is ours; clients that compare versions overlook it.
pub const GIT_VERSION: &str = "v1.36.4+kubewright";

/// Answers `/version`; `None` for other paths.
pub fn answer(reported: &str, question: Question<'_>) -> Option<Answer> {
    if !matches!(question.path(), "/version" | "/version/") {
        return None;
    }
    let document = || respond("application/json", json::to_string_pretty(&version(reported)));
    Some(question.routed(&["application/json"]).map(|()| document()))
}

pub(crate) fn version(reported: &str) -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": reported,
        "gitCommit": "unknown",
        "gitTreeState": "clean",
        // Builds are reproducible, so they have no date.
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": concat!("rust", env!("CARGO_PKG_RUST_VERSION")),
        "compiler": "rustc",
        "platform": platform(),
    })
}

/// The platform in Go's words, which clients look for.
fn platform() -> String {
    let os = match OS {
        "macos" => "darwin",
        other => other,
    };
    let arch = match ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    format!("{os}/{arch}")
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn every_field_that_clients_read_is_there() {
        let (parts, ()) = Request::get("/version").body(()).unwrap().into_parts();
        let response = answer(GIT_VERSION, Question::new(&parts)).unwrap().unwrap();
        let body: Value = serde_json::from_slice(response.body()).unwrap();
        let fields: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(
            fields.join(" "),
            "major minor emulationMajor emulationMinor minCompatibilityMajor \
             minCompatibilityMinor gitVersion gitCommit gitTreeState buildDate goVersion compiler \
             platform"
        );
        assert!(body.as_object().unwrap().values().all(|value| value != ""));
    }

    #[test]
    fn only_json_is_given_and_only_to_get() {
        let status = |request: Request<()>| {
            let (parts, ()) = request.into_parts();
            answer(GIT_VERSION, Question::new(&parts)).unwrap().unwrap_err()
        };
        let yaml = Request::get("/version").header("accept", "application/yaml").body(()).unwrap();
        assert_eq!(
            status(yaml).message,
            "406: Not Acceptable\n\nAvailable representations: application/json"
        );
        assert_eq!(status(Request::post("/version").body(()).unwrap()).code, 405);
    }
}
