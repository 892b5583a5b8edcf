//! A case of the recorder: a claim, and the requests that settle it.
//!
//! ```yaml
//! about: One sentence, the claim.
//! clock: steps                 # optional: each step gets a second of its own
//! steps:
//! - request: PATCH /apis/{group}/v1/namespaces/{ns}/widgets/w?fieldManager=a
//!   type: application/apply-patch+yaml   # default application/json
//!   accept: application/json             # the default
//!   headers: {Impersonate-User: someone} # optional
//!   body: {apiVersion: "{group}/v1", ...}   # or `text:` or `base64:`, sent as is
//! ```
//! `{ns}` and `{group}` are replaced in the file's text; both derive from the case's name, so that
//! cases never meet. `{rv}` and `{uid}` in a string are those of the object answered last.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::endpoint::Request;

/// What stands in a recording for every uid the server chose.
pub const UID: &str = "00000000-0000-0000-0000-000000000000";
/// What stands in a recording for every resource version.
pub const RESOURCE_VERSION: &str = "1";

#[derive(Debug)]
pub struct Case {
    pub file: PathBuf,
    pub id: Id,
    pub about: String,
    pub clock: Clock,
    pub steps: Vec<Step>,
}

/// `<area>/<case>`: the file's place, and all the names that derive from it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    pub area: String,
    pub name: String,
}

/// What a recording says about the times the server wrote.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Clock {
    /// Every time is the same constant, as if all steps had happened in one second.
    #[default]
    Still,
    /// Step `i` happens in second `i`, so the order of times is part of the recording.
    Steps,
}

#[derive(Debug, Clone)]
pub struct Step {
    pub method: Method,
    pub path: String,
    /// As on the wire, without the question mark.
    pub query: String,
    pub content_type: String,
    pub accept: String,
    pub payload: Payload,
    /// Keys the recorder does not know; the test that reads the recording does.
    pub more: Map<String, Value>,
}

#[derive(Debug, Clone)]
pub enum Payload {
    None,
    Body(Value),
    Text(String),
    Base64(String),
}

/// The server's choices that a later step may need.
#[derive(Debug, Clone)]
pub struct Seen {
    pub resource_version: String,
    pub uid: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    about: String,
    #[serde(default)]
    clock: Clock,
    steps: Vec<StepFile>,
}

#[derive(Deserialize)]
struct StepFile {
    request: String,
    body: Option<Value>,
    text: Option<String>,
    base64: Option<String>,
    #[serde(rename = "type")]
    content_type: Option<String>,
    accept: Option<String>,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// All cases below `dir`, in order of their names; `only` holds `AREA` or `AREA/CASE`.
pub fn load(dir: &Path, only: &[String]) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for area in sorted_entries(dir)? {
        if !area.is_dir() {
            continue;
        }
        for file in sorted_entries(&area)? {
            if file.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            let id = Id::of(&file)?;
            if only.is_empty() || only.iter().any(|only| id.matches(only)) {
                cases.push(Case::read(file, id)?);
            }
        }
    }
    if let Some(unknown) = only.iter().find(|only| !cases.iter().any(|case| case.id.matches(only)))
    {
        bail!("no case {unknown} in {}", dir.display());
    }
    Ok(cases)
}

fn sorted_entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut entries = fs::read_dir(dir)
        .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>())
        .with_context(|| format!("read {}", dir.display()))?;
    entries.sort();
    Ok(entries)
}

impl Id {
    fn of(file: &Path) -> Result<Self> {
        let part = |path: Option<&std::ffi::OsStr>| Some(path?.to_str()?.to_owned());
        part(file.parent().and_then(Path::file_name))
            .zip(part(file.file_stem()))
            .map(|(area, name)| Self { area, name })
            .with_context(|| format!("{} is not <area>/<case>.yaml", file.display()))
    }

    fn matches(&self, only: &str) -> bool {
        match only.split_once('/') {
            None => self.area == only,
            Some((area, name)) => self.area == area && self.name == name,
        }
    }

    pub fn namespace(&self) -> String {
        format!("{}-{}", self.area, self.name)
    }

    pub fn group(&self) -> String {
        format!("{}.{}.kubewright.dev", self.name, self.area)
    }
}

impl std::fmt::Display for Id {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.area, self.name)
    }
}

impl Case {
    fn read(file: PathBuf, id: Id) -> Result<Self> {
        let text = fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
        Self::parse(file.clone(), id, &text).with_context(|| format!("parse {}", file.display()))
    }

    pub fn parse(file: PathBuf, id: Id, text: &str) -> Result<Self> {
        let text = text.replace("{ns}", &id.namespace()).replace("{group}", &id.group());
        // Through a tree, so that scalars keep the types YAML gives them.
        let tree: Value = serde_saphyr::from_str(&text)?;
        let CaseFile { about, clock, steps } = serde_json::from_value(tree)?;
        let steps = steps
            .into_iter()
            .enumerate()
            .map(|(i, step)| Step::parse(step).with_context(|| format!("step {}", i + 1)))
            .collect::<Result<_>>()?;
        Ok(Self { file, id, about, clock, steps })
    }

    pub fn recording_file(&self) -> PathBuf {
        self.file.with_extension("recorded.json")
    }

    /// What the recording says was asked: a function of the case alone.
    pub fn recorded_requests(&self) -> Vec<Value> {
        self.steps.iter().map(Step::to_recorded).collect()
    }
}

impl Step {
    fn parse(step: StepFile) -> Result<Self> {
        let (method, target) =
            step.request.split_once(' ').context("`request` is METHOD, a space, and a path")?;
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let payload = match (step.body, step.text, step.base64) {
            (None, None, None) => Payload::None,
            (Some(body), None, None) => Payload::Body(body),
            (None, Some(text), None) => Payload::Text(text),
            (None, None, Some(base64)) => Payload::Base64(base64),
            _ => bail!("only one of `body`, `text` and `base64`"),
        };
        Ok(Self {
            method: method.parse().context("read the method")?,
            path: path.to_owned(),
            query: query.to_owned(),
            content_type: step.content_type.unwrap_or_else(|| "application/json".to_owned()),
            accept: step.accept.unwrap_or_else(|| "application/json".to_owned()),
            payload,
            more: step.more,
        })
    }

    /// The step with the server's own choices filled in.
    pub fn with(&self, seen: &Seen) -> Self {
        let fill =
            |text: &str| text.replace("{rv}", &seen.resource_version).replace("{uid}", &seen.uid);
        Self {
            path: fill(&self.path),
            query: fill(&self.query),
            payload: match &self.payload {
                Payload::Body(body) => Payload::Body(map_strings(body, &fill)),
                Payload::Text(text) => Payload::Text(fill(text)),
                other => other.clone(),
            },
            ..self.clone()
        }
    }

    pub fn to_request(&self) -> Result<Request> {
        let target = match self.query.as_str() {
            "" => self.path.clone(),
            query => format!("{}?{query}", self.path),
        };
        let bytes = match &self.payload {
            Payload::None => Vec::new(),
            Payload::Body(body) => body.to_string().into_bytes(),
            Payload::Text(text) => text.clone().into_bytes(),
            Payload::Base64(base64) => BASE64.decode(base64).context("decode base64")?,
        };
        let mut request = Request::new(self.method.clone(), target)
            .content_type(&self.content_type)
            .accept(&self.accept)
            .body(bytes);
        // They are part of the recording like any other key.
        let headers = self.more.get("headers").and_then(Value::as_object);
        for (name, value) in headers.into_iter().flatten() {
            let name = name.parse().with_context(|| format!("read header {name}"))?;
            request = request.header(name, value.as_str().context("a header is text")?);
        }
        Ok(request)
    }

    fn to_recorded(&self) -> Value {
        let constants = Seen { resource_version: RESOURCE_VERSION.to_owned(), uid: UID.to_owned() };
        let step = self.with(&constants);
        let query: Map<String, Value> = form_urlencoded::parse(step.query.as_bytes())
            .map(|(key, value)| (key.into_owned(), Value::String(value.into_owned())))
            .collect();
        let mut request = json!({
            "method": step.method.as_str(),
            "path": step.path,
            "query": query,
            "type": step.content_type,
            "accept": step.accept,
        });
        match step.payload {
            Payload::None => {}
            Payload::Body(body) => request["body"] = body,
            Payload::Text(text) => request["text"] = text.into(),
            Payload::Base64(base64) => request["base64"] = base64.into(),
        }
        for (key, value) in step.more {
            request[key] = value;
        }
        request
    }

    pub fn is_watch(&self) -> bool {
        self.query_has("watch", |value| matches!(value, "1" | "true"))
    }

    pub fn is_dry_run(&self) -> bool {
        self.query_has("dryRun", |value| value == "All")
    }

    fn query_has(&self, wanted: &str, test: impl Fn(&str) -> bool) -> bool {
        form_urlencoded::parse(self.query.as_bytes())
            .any(|(key, value)| key == wanted && test(&value))
    }
}

/// The tree with every string, keys too, replaced.
pub(crate) fn map_strings(value: &Value, map: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(map(text)),
        Value::Array(items) => items.iter().map(|item| map_strings(item, map)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (map(key), map_strings(value, map)))
            .collect::<Map<_, _>>()
            .into(),
        scalar => scalar.clone(),
    }
}

#[cfg(test)]
mod tests;
