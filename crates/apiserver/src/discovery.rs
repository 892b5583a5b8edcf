//! Discovery: which groups, versions and resources are served.
//!
//! A [`Discovery`] speaks of one set of custom resource definitions and of servers behind this one;
//! when a set changes, make another. Nothing is computed until a client asks. Clients ask in two ways: new ones for
//! everything at once (`apidiscovery.k8s.io/v2` at `/api` and `/apis`), old ones a group and a
//! version at a time.

mod aggregated;
mod legacy;
mod served;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use http::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH, VARY};
use http::{HeaderValue, StatusCode};
use kubewright_apimachinery::builtin::Kind;
use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::crd::Definition;
use kubewright_apimachinery::status::Status;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::aggregate::Roster;
use crate::document::{self, Answer, MEDIA_TYPES, Question, kind_of, respond};
use crate::negotiate::{Clause, Encoding};

/// What is told of the server besides its resources.
#[derive(Debug, Clone, Default)]
pub struct Server {
    /// Host and port at which clients from anywhere reach it.
    pub address: String,
    /// Paths that are no part of discovery (`/healthz`, `/version`), for the list at `/`.
    pub paths: Vec<String>,
}

/// What is served with one set of definitions.
#[derive(Debug)]
pub struct Discovery {
    server: Arc<Server>,
    definitions: Vec<Arc<Definition>>,
    roster: Arc<Roster>,
    documents: OnceLock<Documents>,
}

/// Every document, as compact JSON.
#[derive(Debug)]
struct Documents {
    /// By path, without the slash at the end.
    legacy: HashMap<String, Legacy>,
    core: Aggregated,
    groups: Aggregated,
    /// Every path, for the list at `/`.
    root: Bytes,
}

#[derive(Debug)]
struct Legacy {
    kind: &'static str,
    /// Built-in versions are behind a router that is stricter about methods and media types.
    routed: bool,
    json: Bytes,
}

#[derive(Debug)]
struct Aggregated {
    json: Bytes,
    etag: HeaderValue,
}

impl Discovery {
    /// Definitions that are not established are left out. Versions that other servers answer for
    /// are in the roster.
    pub fn new(
        server: Arc<Server>,
        definitions: Vec<Arc<Definition>>,
        roster: Arc<Roster>,
    ) -> Self {
        Discovery { server, definitions, roster, documents: OnceLock::new() }
    }

    /// Answers `/`, `/api`, `/apis` and the paths of groups and versions below them; `None` for
    /// other paths.
    pub fn answer(&self, question: Question<'_>) -> Option<Answer> {
        let path = question.path();
        if matches!(path, "/" | "/index.html") {
            return Some(Ok(respond("application/json", self.documents().root.clone())));
        }
        let path = path.strip_suffix('/').unwrap_or(path);
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        if !matches!(parts[..], ["api"] | ["api", _] | ["apis"] | ["apis", _] | ["apis", _, _]) {
            return None;
        }
        let documents = self.documents();
        let aggregated = match path {
            "/api" => Some(&documents.core),
            "/apis" => Some(&documents.groups),
            _ => None,
        };
        let aggregated = aggregated.zip(aggregated_encoding(question));
        Some(match (documents.legacy.get(path), aggregated) {
            (Some(legacy), Some((aggregated, encoding))) => {
                let routed = if legacy.routed { question.routed(&MEDIA_TYPES) } else { Ok(()) };
                routed.map(|()| aggregated.answer(question, encoding))
            }
            (Some(legacy), _) => legacy.answer(question),
            // Upstream's router knows the built-in groups and answers for them; below others there
            // is nothing at all.
            (None, _) if parts[0] == "api" || served::is_builtin(parts[1]) => {
                Err(Box::new(Status::generic(404, "", "")))
            }
            (None, _) => Ok(document::page_not_found()),
        })
    }

    fn documents(&self) -> &Documents {
        self.documents.get_or_init(|| {
            let versions = served::versions(&self.definitions, &self.roster);
            let legacy = legacy::documents(&versions, &self.server.address);
            let root = root(&versions, &legacy, &self.server.paths);
            let core = versions.iter().filter(|version| version.group.is_empty());
            let groups = versions.iter().filter(|version| !version.group.is_empty());
            Documents {
                core: Aggregated::new(aggregated::items(core)),
                groups: Aggregated::new(aggregated::items(groups)),
                legacy,
                root,
            }
        })
    }
}

/// What identifies the version that a resource is stored in.
pub fn storage_version_hash(group: &str, version: &str, kind: &str) -> String {
    use base64::Engine as _;
    let digest = Sha256::digest(format!("{group}/{version}/{kind}"));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

/// The encoding of the aggregated form, if the client asks for that form at all.
fn aggregated_encoding(question: Question<'_>) -> Option<Encoding> {
    let aggregated = |clause: &Clause, encoding| {
        let is = |name, value| clause.parameter(name) == Some(value);
        (is("g", "apidiscovery.k8s.io")
            && is("v", "v2")
            && is("as", "APIGroupDiscoveryList")
            && clause.is_unversioned(encoding))
        .then_some(())
    };
    question.accept().first_match(aggregated).map(|(encoding, ())| encoding)
}

impl Legacy {
    fn answer(&self, question: Question<'_>) -> Answer {
        if self.routed {
            question.routed(&MEDIA_TYPES)?;
        }
        let encoding = question.plain_encoding()?;
        let kind = kind_of("", "v1", self.kind);
        let body = encoded(&self.json, kind, encoding);
        Ok(respond(encoding.media_type(), body))
    }
}

impl Aggregated {
    fn new(items: Value) -> Self {
        let list = json!({"metadata": {}, "items": items});
        let etag = format!("\"{}\"", document::hash(&json::to_vec(&list)));
        let mut value = json!({
            "kind": "APIGroupDiscoveryList",
            "apiVersion": "apidiscovery.k8s.io/v2",
        });
        if let (Value::Object(value), Value::Object(list)) = (&mut value, list) {
            value.extend(list);
        }
        let kind = kind_of("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList");
        Aggregated {
            json: document::encode(kind, &value, Encoding::Json),
            etag: HeaderValue::from_str(&etag).expect("hexadecimal digits are fit for a header"),
        }
    }

    fn answer(&self, question: Question<'_>, encoding: Encoding) -> Response<Bytes> {
        let unchanged = question.header(&IF_NONE_MATCH).as_bytes() == self.etag.as_bytes();
        let mut response = if unchanged {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::NOT_MODIFIED;
            response
        } else {
            let kind = kind_of("apidiscovery.k8s.io", "v2", "APIGroupDiscoveryList");
            let mut response = Response::new(encoded(&self.json, kind, encoding));
            let content_type = HeaderValue::from_static(match encoding {
                Encoding::Json | Encoding::JsonPretty => {
                    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                }
                Encoding::Yaml => {
                    "application/yaml;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                }
                Encoding::Protobuf => {
                    "application/vnd.kubernetes.protobuf;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
                }
            });
            response.headers_mut().insert(CONTENT_TYPE, content_type);
            response
        };
        let headers = response.headers_mut();
        headers.insert(ETAG, self.etag.clone());
        headers.insert(VARY, HeaderValue::from_static("Accept"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public"));
        response
    }
}

/// A document that is kept as compact JSON, in another form if need be.
fn encoded(json: &Bytes, kind: &'static Kind, encoding: Encoding) -> Bytes {
    if encoding == Encoding::Json {
        return json.clone();
    }
    let value = serde_json::from_slice(json).expect("what was written can be read");
    document::encode(kind, &value, encoding)
}

fn root(
    versions: &[served::Version<'_>],
    legacy: &HashMap<String, Legacy>,
    others: &[String],
) -> Bytes {
    let versions: Vec<String> = versions.iter().map(served::Version::path).collect();
    let paths = legacy.keys().chain(others).chain(&versions);
    let mut paths: Vec<&str> = paths.map(String::as_str).collect();
    // The list of groups is served under both names.
    paths.push("/apis/");
    paths.sort_unstable();
    paths.dedup();
    json::to_string_pretty(&json!({"paths": paths})).into()
}
