//! The audit log: who asked for what, when, and what came of it, as kube-apiserver tells it.
//!
//! A [`Policy`] says which requests are logged and how much of them. A request that is has a
//! `Trail`, which gathers what becomes known on the way and leaves an event at each stage. The
//! [`Log`] writes them, beside the requests and in their order.

mod content;
mod event;
mod file;
mod log;
mod policy;
mod source;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, USER_AGENT};
use http::request::Parts;
use kubewright_apimachinery::json;
use kubewright_apimachinery::status::{Reason, Status};
use serde_json::Value;
use uuid::Uuid;

use self::content::{Content, Media, Sent};
use self::event::{Event, Noted, ObjectReference, Response, Subject};
use self::policy::{Stage, Verdict};
use crate::authn::Impersonated;
use crate::authz::Decision;
use crate::body::Body;
use crate::edge::AUDIT_ID;
use crate::query::Query;
use crate::target::Target;
use crate::user::User;

pub use self::file::Rotation;
pub use self::log::{Config, Log, OpenError, Output};
pub use self::policy::{Level, Policy, PolicyError};

/// How much of the name of a client is logged.
const USER_AGENT_BYTES_MAX: usize = 1024;

/// What a request that is logged leaves behind.
pub(crate) struct Trail {
    log: Log,
    subject: Arc<Subject>,
    verdict: Verdict,
    /// Whether the answer may take a while, so that its beginning is told.
    lasts: bool,
    /// Who was not identified is told so, and that is the end of it.
    is_identified: bool,
    noted: Mutex<Noted>,
    is_over: AtomicBool,
}

impl Trail {
    /// Begins one, if the policy wants it, when it is known who made a request. Waits while the log
    /// is too far behind: whoever makes requests faster than they can be written down must slow
    /// down.
    pub(crate) async fn begin(log: &Log, user: Option<&User>, parts: &Parts) -> Option<Self> {
        let target = Target::of(parts, &Query::parse(parts.uri.query()));
        let verdict = log.judge(user, &target);
        if verdict.level == Level::None {
            return None;
        }
        let received = log.now();
        log.room().await;
        let header =
            |name| parts.headers.get(name).map(|value: &http::HeaderValue| value.as_bytes());
        let id = header(&AUDIT_ID).filter(|id| !id.is_empty());
        let trail = Trail {
            subject: Arc::new(Subject {
                level: verdict.level,
                omit_managed_fields: verdict.omit_managed_fields,
                id: id.map_or_else(|| Uuid::new_v4().to_string(), text),
                uri: parts.uri.path_and_query().map_or("/", |uri| uri.as_str()).to_owned(),
                verb: target.verb().to_owned(),
                user: user.cloned(),
                sources: source::addresses(parts),
                agent: header(&USER_AGENT).map(agent).unwrap_or_default(),
                received,
            }),
            lasts: target.is_long_running(),
            is_identified: user.is_some(),
            noted: Mutex::new(Noted { object: ObjectReference::of(&target), ..Noted::default() }),
            is_over: AtomicBool::new(false),
            verdict,
            log: log.clone(),
        };
        if trail.is_identified {
            trail.leave(Stage::RequestReceived);
        }
        Some(trail)
    }

    /// The request is made on behalf of somebody else.
    pub(crate) fn impersonated(&self, impersonated: &Impersonated) {
        self.noted().impersonated = Some(Arc::new(impersonated.clone()));
    }

    /// It was decided whether they may.
    pub(crate) fn decided(&self, decision: &Decision) {
        let (decision, reason) = match decision {
            Decision::Allowed(grant) => ("allow", grant.to_string()),
            Decision::Denied(denial) => ("forbid", denial.to_string()),
        };
        self.annotate("authorization.k8s.io/decision", decision.to_owned());
        self.annotate("authorization.k8s.io/reason", reason);
    }

    pub(crate) fn annotate(&self, key: impl Into<Cow<'static, str>>, value: String) {
        self.noted().annotations.entry(key.into()).or_insert(value);
    }

    /// Whether the log tells what is in objects.
    pub(crate) fn shows_objects(&self) -> bool {
        self.verdict.level >= Level::Request
    }

    /// What was asked for should not be used any more.
    pub(crate) fn deprecated(&self) {
        self.noted().is_deprecated = true;
    }

    /// What the client sent, with defaults.
    pub(crate) fn received(&self, object: &Value) {
        let is_shown = self.verdict.level >= Level::Request;
        let shown = is_shown.then(|| Content::new(Media::Json, json::to_vec(object).into()));
        let mut noted = self.noted();
        if let Some(reference) = &mut noted.object {
            reference.complete(object);
        }
        noted.request = shown.map(Sent::Object);
    }

    /// What the client sent to change an object, as it was sent.
    pub(crate) fn received_patch(&self, patch: &Bytes) {
        if self.verdict.level >= Level::Request {
            self.noted().request = Some(Sent::Patch(patch.clone()));
        }
    }

    /// The request was answered, and what is left to be sent follows. A failure that was not
    /// negotiated, because the client accepts nothing that we have, is not looked into: upstream
    /// logs only its code.
    pub(crate) fn answered(
        &self,
        code: StatusCode,
        headers: &HeaderMap,
        body: &Body,
        is_negotiated: bool,
    ) {
        let media = headers.get(CONTENT_TYPE).and_then(|value| Media::of(value.as_bytes()));
        let is_told = is_negotiated || code.is_success();
        let is_stream = self.lasts && code.is_success();
        let wants_all = self.verdict.level >= Level::RequestResponse;
        let content = match (media.filter(|_| is_told && !is_stream), body) {
            (Some(media), Body::Whole(Some(bytes))) => {
                let content = Content::new(media, bytes.clone());
                (wants_all || content.may_be_status()).then_some(content)
            }
            (Some(media), Body::Stream(_)) if wants_all => Some(Content::empty(media)),
            _ => None,
        };
        self.noted().response = Some(Response { status: None, code, content });
        if self.lasts || !self.is_identified {
            self.leave(Stage::ResponseStarted);
        }
    }

    /// A part of the answer was sent.
    pub(crate) fn sent(&self, bytes: &Bytes) {
        if self.lasts || self.verdict.level < Level::RequestResponse {
            return;
        }
        if let Some(Response { content: Some(content), .. }) = &mut self.noted().response {
            content.push(bytes.clone());
        }
    }

    /// The server failed while it answered.
    pub(crate) fn panicked(&self, why: &str) {
        let message = format!("APIServer panic'd: {why}");
        let status = Status::failure(500, Reason::InternalError, message);
        self.noted().response = Some(Response::of(status));
        self.leave(Stage::Panic);
        self.is_over.store(true, Relaxed);
    }

    /// The client left, or the time was up, before there was an answer.
    fn abandoned(&self) {
        let message = "Connection closed early".to_owned();
        let status = Status { message, code: 200, ..Status::success() };
        self.noted().response = Some(Response::of(status));
        if self.lasts {
            self.leave(Stage::ResponseStarted);
        }
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn leave(&self, stage: Stage) {
        if !self.verdict.wants(stage) {
            return;
        }
        let at = match stage {
            Stage::RequestReceived => self.subject.received,
            _ => self.log.now(),
        };
        let noted = self.noted().clone();
        self.log.take(Event { subject: Arc::clone(&self.subject), noted, stage, at });
    }
}

impl Drop for Trail {
    /// The last byte was sent, or nobody waits for it any more.
    fn drop(&mut self) {
        if self.is_over.load(Relaxed) || !self.is_identified {
            return;
        }
        if self.noted().response.is_none() {
            self.abandoned();
        }
        if self.noted().is_deprecated {
            self.annotate("k8s.io/deprecated", "true".to_owned());
        }
        self.leave(Stage::ResponseComplete);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn agent(bytes: &[u8]) -> String {
    match bytes.get(..USER_AGENT_BYTES_MAX) {
        Some(start) if bytes.len() > USER_AGENT_BYTES_MAX => text(start) + "...TRUNCATED",
        _ => text(bytes),
    }
}
