//! OpenAPI: what every kind looks like and what can be done with it, for `kubectl explain`, for
//! clients that check before they send, and for generators of code.
//!
//! An [`OpenApi`] speaks of one set of custom resource definitions and of what servers behind this
//! one have told; when that changes, make another. Documents are made when they are first asked for. Those about built-in versions are
//! the same for all sets, and kept for the life of the process.
//!
//! The protobuf forms are made of the JSON, as upstream does, and have its hashes.

mod custom;
mod describe;
mod merge;
mod model;
mod operation;
mod protobuf;
mod upgrade;
mod v2;
mod v3;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use bytes::Bytes;
use http::header::{
    ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, EXPIRES, IF_NONE_MATCH, LOCATION, VARY,
};
use http::{HeaderValue, Response, StatusCode};
use jiff::{Timestamp, ToSpan as _, tz::TimeZone};
use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::crd::Definition;
use serde_json::{Map, Value, json};

use crate::document::{self, Question, respond};
use v3::Subject;

pub use describe::describe;
pub(crate) use merge::below;

/// The documents about what is served with one set of definitions.
#[derive(Debug)]
pub struct OpenApi {
    definitions: Vec<Arc<Definition>>,
    /// What other servers have told, best first.
    told: Vec<Told>,
    v2: Document,
    custom: OnceLock<BTreeMap<String, V3>>,
    /// Of servers that have only v2.
    upgraded: OnceLock<BTreeMap<String, V3>>,
    index: OnceLock<Bytes>,
}

/// What another server has told.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    /// The name of the APIService that names it.
    pub(crate) name: String,
    /// The version that it answers for, as a path: `apis/example.com/v1`.
    pub(crate) version: String,
    /// Which documents it has, by their paths, with their addresses.
    pub(crate) documents: BTreeMap<String, Value>,
    pub(crate) swagger: Option<Swagger>,
    /// All of its OpenAPI v2, if it has no v3.
    pub(crate) only_swagger: Option<Swagger>,
}

/// A document of OpenAPI v2. Equal to itself only: they are long.
#[derive(Debug, Clone)]
pub struct Swagger(pub Arc<Value>);

impl Eq for Swagger {}

impl PartialEq for Swagger {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A document that is made when it is needed.
#[derive(Debug, Default)]
struct Document {
    /// Known before the document is kept: an index needs all hashes, but few documents are read.
    hash: OnceLock<String>,
    json: OnceLock<Bytes>,
    protobuf: OnceLock<Bytes>,
}

/// A form that a document comes in.
struct Form {
    /// What clients ask for.
    names: &'static [&'static str],
    /// What they get: `@` may not stand in a media type.
    content_type: &'static str,
    encode: fn(&Value) -> Vec<u8>,
}

const JSON: Form =
    Form { names: &["application/json"], content_type: "application/json", encode: json::to_vec };

const V2_PROTOBUF: Form = Form {
    names: &[
        "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    ],
    content_type: "application/com.github.proto-openapi.spec.v2.v1.0+protobuf",
    encode: protobuf::v2,
};

const V3_PROTOBUF: Form = Form {
    names: &[
        "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
        "application/com.github.proto-openapi.spec.v3@v1.0+protobuf",
    ],
    content_type: "application/com.github.proto-openapi.spec.v3.v1.0+protobuf",
    encode: protobuf::v3,
};

#[derive(Debug)]
struct V3 {
    subject: Subject,
    document: Document,
}

static BUILTIN: LazyLock<BTreeMap<String, V3>> = LazyLock::new(|| of(v3::builtin_subjects()));

fn of(subjects: BTreeMap<String, Subject>) -> BTreeMap<String, V3> {
    let document = |subject| V3 { subject, document: Document::default() };
    subjects.into_iter().map(|(path, subject)| (path, document(subject))).collect()
}

impl OpenApi {
    /// Definitions that are not established are left out.
    pub fn new(definitions: Vec<Arc<Definition>>) -> Self {
        OpenApi {
            definitions,
            told: Vec::new(),
            v2: Document::default(),
            custom: OnceLock::new(),
            upgraded: OnceLock::new(),
            index: OnceLock::new(),
        }
    }

    /// The same, with what other servers have told.
    pub(crate) fn with(self, told: Vec<Told>) -> Self {
        OpenApi { told, ..self }
    }

    /// What other servers have told.
    pub(crate) fn told(&self) -> &[Told] {
        &self.told
    }

    /// The name of the APIService whose server has the document at a path.
    pub(crate) fn behind(&self, path: &str) -> Option<&str> {
        let path = path.strip_prefix("/openapi/v3/").filter(|_| !self.told.is_empty())?;
        let has = |told: &&Told| told.documents.contains_key(path);
        let own = self.told.iter().filter(has).find(|told| told.version == path);
        // Of what every server has, ours is told.
        let any = || self.told.iter().find(has).filter(|_| self.find(path).is_none());
        own.or_else(any).map(|told| told.name.as_str())
    }

    /// Answers `/openapi/v2`, `/openapi/v3` and what is below that; `None` for other paths.
    pub fn answer(&self, question: Question<'_>, now: Timestamp) -> Option<Response<Bytes>> {
        match question.path() {
            "/openapi/v2" => Some(self.v2(question)),
            // Upstream lets its library guess what this is.
            "/openapi/v3" => Some(respond("text/plain; charset=utf-8", self.index())),
            path => Some(self.v3(path.strip_prefix("/openapi/v3/")?, question, now)),
        }
    }

    fn v2(&self, question: Question<'_>) -> Response<Bytes> {
        match form(question, [JSON, V2_PROTOBUF]) {
            Some(form) => self.v2.answer(question, &form, || self.v2_document()),
            None => not_acceptable(),
        }
    }

    fn v2_document(&self) -> Value {
        let mut document = v2::document(&self.definitions);
        for swagger in self.told.iter().filter_map(|told| told.swagger.as_ref()) {
            merge::merge(&mut document, &swagger.0);
        }
        document
    }

    fn v3(&self, path: &str, question: Question<'_>, now: Timestamp) -> Response<Bytes> {
        let Some(V3 { subject, document }) = self.find(path) else {
            return empty(StatusCode::NOT_FOUND);
        };
        let Some(form) = form(question, [JSON, V3_PROTOBUF]) else { return not_acceptable() };
        let make = || v3::document(subject, &self.definitions);
        let asked = form_urlencoded::parse(question.query().as_bytes())
            .find(|(name, value)| name == "hash" && !value.is_empty());
        let Some((_, asked)) = asked else {
            return document.answer(question, &form, make);
        };
        let hash = document.hash(make);
        if asked != hash {
            let mut response = empty(StatusCode::MOVED_PERMANENTLY);
            identify(&mut response, hash, &form);
            let location = relative_url(path, hash);
            response.headers_mut().insert(LOCATION, header(&location));
            return response;
        }
        // What has a hash in its address never changes.
        let mut response = document.answer(question, &form, make);
        let headers = response.headers_mut();
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, immutable"));
        let expires = now.to_zoned(TimeZone::UTC).saturating_add(1.year());
        headers.insert(EXPIRES, header(&expires.strftime("%a, %d %b %Y %H:%M:%S UTC").to_string()));
        response
    }

    fn find(&self, path: &str) -> Option<&V3> {
        let own = || BUILTIN.get(path).or_else(|| self.custom().get(path));
        self.upgraded().get(path).or_else(own)
    }

    fn upgraded(&self) -> &BTreeMap<String, V3> {
        self.upgraded.get_or_init(|| {
            let told = self.told.iter().filter_map(|told| {
                let swagger = told.only_swagger.clone()?;
                Some((told.version.clone(), Subject::Upgraded(swagger)))
            });
            of(told.collect())
        })
    }

    fn custom(&self) -> &BTreeMap<String, V3> {
        self.custom.get_or_init(|| of(v3::custom_subjects(&self.definitions)))
    }

    fn index(&self) -> Bytes {
        let make = || {
            let mut entries: BTreeMap<&String, &V3> = BUILTIN.iter().chain(self.custom()).collect();
            entries.extend(self.upgraded());
            let own = entries.into_iter().map(|(path, V3 { subject, document })| {
                let hash = document.hash(|| v3::document(subject, &self.definitions));
                (path.clone(), json!({"serverRelativeURL": relative_url(path, hash)}))
            });
            let mut paths: Map<String, Value> = own.collect();
            for told in self.told.iter().rev() {
                for (path, entry) in &told.documents {
                    if self.behind(&format!("/openapi/v3/{path}")) == Some(&told.name) {
                        paths.insert(path.clone(), entry.clone());
                    }
                }
            }
            paths.sort_keys();
            json::to_vec(&json!({"paths": paths})).into()
        };
        self.index.get_or_init(make).clone()
    }
}

fn relative_url(path: &str, hash: &str) -> String {
    format!("/openapi/v3/{path}?hash={hash}")
}

/// The form that the client likes best. Parameters of media types are overlooked.
fn form(question: Question<'_>, forms: [Form; 2]) -> Option<Form> {
    if question.header(&ACCEPT).is_empty() {
        return forms.into_iter().next();
    }
    let place = question.accept().best(&forms.each_ref().map(|form| form.names))?;
    forms.into_iter().nth(place)
}

fn not_acceptable() -> Response<Bytes> {
    let mut response = empty(StatusCode::NOT_ACCEPTABLE);
    response.headers_mut().insert(VARY, HeaderValue::from_static("Accept"));
    response
}

impl Document {
    fn hash(&self, make: impl Fn() -> Value) -> &str {
        self.hash.get_or_init(|| match self.json.get() {
            Some(json) => document::hash(json),
            None => document::hash(&json::to_vec(&make())),
        })
    }

    fn answer(
        &self,
        question: Question<'_>,
        form: &Form,
        make: impl Fn() -> Value,
    ) -> Response<Bytes> {
        let is_json = form.content_type == JSON.content_type;
        let body = if is_json { &self.json } else { &self.protobuf };
        let body = body.get_or_init(|| (form.encode)(&make()).into());
        let hash = self.hash(make);
        let tag = format!("\"{hash}\"");
        let known = question.header(&IF_NONE_MATCH);
        let mut response = if known == "*" || known.split(',').any(|known| known.trim() == tag) {
            empty(StatusCode::NOT_MODIFIED)
        } else {
            Response::new(body.clone())
        };
        identify(&mut response, hash, form);
        if response.status() == StatusCode::NOT_MODIFIED {
            response.headers_mut().remove(CONTENT_TYPE);
        }
        response
    }
}

fn identify(response: &mut Response<Bytes>, hash: &str, form: &Form) {
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(form.content_type));
    headers.insert(ETAG, header(&format!("\"{hash}\"")));
    headers.insert(VARY, HeaderValue::from_static("Accept"));
}

fn empty(code: StatusCode) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    *response.status_mut() = code;
    response
}

fn header(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("groups, versions and hashes are fit for a header")
}
