//! One event, and the line that tells it.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http::StatusCode;
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::{Metadata, Status};
use kubewright_apimachinery::time::MicroTime;
use serde_json::{Map, Value, json};

use super::content::{Content, Sent};
use super::policy::{Level, Stage};
use crate::authn::Impersonated;
use crate::meta;
use crate::target::Target;
use crate::user::User;

/// What is known of a request at one stage.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) subject: Arc<Subject>,
    pub(super) noted: Noted,
    pub(super) stage: Stage,
    /// Since the Unix epoch, as all times here.
    pub(super) at: Duration,
}

/// What is the same at every stage.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) level: Level,
    pub(super) omit_managed_fields: bool,
    pub(super) id: String,
    pub(super) uri: String,
    pub(super) verb: String,
    /// None for who was not identified.
    pub(super) user: Option<User>,
    pub(super) sources: Vec<IpAddr>,
    pub(super) agent: String,
    pub(super) received: Duration,
}

/// What becomes known on the way.
#[derive(Debug, Clone, Default)]
pub(super) struct Noted {
    pub(super) impersonated: Option<Arc<Impersonated>>,
    pub(super) object: Option<ObjectReference>,
    pub(super) request: Option<Sent>,
    pub(super) response: Option<Response>,
    pub(super) annotations: BTreeMap<Cow<'static, str>, String>,
    pub(super) is_deprecated: bool,
}

/// What the request is about, as far as its path and its body tell.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ObjectReference {
    resource: String,
    namespace: String,
    name: String,
    uid: String,
    api_group: String,
    api_version: String,
    resource_version: String,
    subresource: String,
}

/// How a request was answered.
#[derive(Debug, Clone)]
pub(super) struct Response {
    /// What is told of an answer that nobody got.
    pub(super) status: Option<Box<Status>>,
    pub(super) code: StatusCode,
    pub(super) content: Option<Content>,
}

impl ObjectReference {
    pub(super) fn of(target: &Target) -> Option<Self> {
        let Target::Resource(target) = target else { return None };
        Some(ObjectReference {
            resource: target.resource.clone(),
            namespace: target.namespace.clone().unwrap_or_default(),
            name: target.name.clone(),
            api_group: target.group.clone(),
            api_version: target.version.clone(),
            subresource: target.subresource.clone(),
            ..ObjectReference::default()
        })
    }

    /// Adds what only the body tells.
    pub(super) fn complete(&mut self, object: &Value) {
        let ObjectReference { namespace, name, uid, resource_version, .. } = self;
        let fields = [
            (namespace, "namespace"),
            (name, "name"),
            (uid, "uid"),
            (resource_version, "resourceVersion"),
        ];
        for (place, field) in fields {
            if place.is_empty() {
                meta::text(object, field).clone_into(place);
            }
        }
    }

    fn tree(&self) -> Value {
        texts(&[
            ("resource", &self.resource),
            ("namespace", &self.namespace),
            ("name", &self.name),
            ("uid", &self.uid),
            ("apiGroup", &self.api_group),
            ("apiVersion", &self.api_version),
            ("resourceVersion", &self.resource_version),
            ("subresource", &self.subresource),
        ])
        .into()
    }
}

impl Response {
    pub(super) fn of(status: Status) -> Self {
        let code = u16::try_from(status.code).ok().and_then(|code| StatusCode::from_u16(code).ok());
        Response {
            code: code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            status: Some(Box::new(status)),
            content: None,
        }
    }

    /// What the answer says of itself, if it is a Status, and in any case its code.
    fn status(&self) -> Value {
        let told = match &self.status {
            Some(status) => Some((**status).clone()),
            None => self.content.as_ref().and_then(Content::status),
        };
        let status = Status {
            kind: String::new(),
            api_version: String::new(),
            metadata: Metadata::default(),
            code: i32::from(self.code.as_u16()),
            ..told.unwrap_or_default()
        };
        serde_json::to_value(status).expect("a status is JSON")
    }
}

impl Event {
    /// How much memory it holds, about.
    pub(super) fn weight(&self) -> usize {
        let Noted { request, response, .. } = &self.noted;
        let answer = response.as_ref().and_then(|response| response.content.as_ref());
        1024 + request.as_ref().map_or(0, Sent::len) + answer.map_or(0, Content::len)
    }

    /// The event as a line of JSON, its fields in upstream's order.
    pub(super) fn line(&self) -> Vec<u8> {
        let Event { subject, noted, stage, at } = self;
        let mut line = Line::default();
        line.text("kind", "Event");
        line.text("apiVersion", "audit.k8s.io/v1");
        line.text("level", subject.level.as_str());
        line.text("auditID", &subject.id);
        line.text("stage", stage.as_str());
        line.text("requestURI", &subject.uri);
        line.text("verb", &subject.verb);
        line.tree("user", &subject.user.as_ref().map_or_else(|| json!({}), user));
        if let Some(impersonated) = &noted.impersonated {
            line.tree("impersonatedUser", &user(&impersonated.user));
            if let Some(constraint) = &impersonated.constraint {
                let constraint = json!({ "impersonationConstraint": constraint });
                line.tree("authenticationMetadata", &constraint);
            }
        }
        if !subject.sources.is_empty() {
            let sources = subject.sources.iter().map(|address| Value::from(address.to_string()));
            line.tree("sourceIPs", &sources.collect());
        }
        if !subject.agent.is_empty() {
            line.text("userAgent", &subject.agent);
        }
        if let Some(object) = &noted.object {
            line.tree("objectRef", &object.tree());
        }
        self.contents(&mut line);
        line.text("requestReceivedTimestamp", &time(subject.received));
        line.text("stageTimestamp", &time(*at));
        if !noted.annotations.is_empty() {
            line.tree("annotations", &json!(noted.annotations));
        }
        line.finish()
    }

    /// What was sent and what was answered.
    fn contents(&self, line: &mut Line) {
        let Noted { request, response, .. } = &self.noted;
        let Subject { level, omit_managed_fields, .. } = *self.subject;
        if let Some(response) = response {
            line.tree("responseStatus", &response.status());
        }
        if let Some(request) = request.as_ref().and_then(|sent| sent.line(omit_managed_fields)) {
            line.raw("requestObject", &request);
        }
        let content = response.as_ref().and_then(|response| response.content.as_ref());
        let content = content.filter(|_| level >= Level::RequestResponse);
        if let Some(object) = content.and_then(|content| content.line(omit_managed_fields)) {
            line.raw("responseObject", &object);
        }
    }
}

/// An object that is being written, field by field.
#[derive(Default)]
struct Line(Vec<u8>);

impl Line {
    fn text(&mut self, name: &str, text: &str) {
        self.tree(name, &Value::from(text));
    }

    fn tree(&mut self, name: &str, tree: &Value) {
        self.raw(name, &json::to_vec(tree));
    }

    /// Takes JSON as it is.
    fn raw(&mut self, name: &str, json: &[u8]) {
        let before = if self.0.is_empty() { "{\"" } else { ",\"" };
        for part in [before.as_bytes(), name.as_bytes(), b"\":", json] {
            self.0.extend_from_slice(part);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.0.extend_from_slice(b"}\n");
        self.0
    }
}

fn user(user: &User) -> Value {
    let mut tree = texts(&[("username", &user.name), ("uid", &user.uid)]);
    if !user.groups.is_empty() {
        tree.insert("groups".to_owned(), json!(user.groups));
    }
    if !user.extra.is_empty() {
        tree.insert("extra".to_owned(), json!(user.extra));
    }
    tree.into()
}

/// Those that are not empty.
fn texts(fields: &[(&str, &str)]) -> Map<String, Value> {
    let given = fields.iter().filter(|(_, text)| !text.is_empty());
    given.map(|(name, text)| ((*name).to_owned(), Value::from(*text))).collect()
}

fn time(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs().cast_signed();
    MicroTime::from_unix(seconds, since_epoch.subsec_nanos()).to_string()
}
