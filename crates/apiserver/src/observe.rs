//! What is noted about a request while it is answered.

use std::any::Any;
use std::borrow::Cow;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, TryStreamExt as _};
use http::{Response, StatusCode};
use http_body::Body as _;
use kubewright_apimachinery::gvk::GroupVersionResource;
use serde_json::Value;

use crate::audit::Trail;
use crate::authn::Impersonated;
use crate::authz::Decision;
use crate::body::Body;
use crate::flow::Flow;
use crate::metrics::{Executing, Metrics, Route, Series, UnderWay};
use crate::user::User;
use crate::warnings::Warnings;

/// A request from its arrival until its answer was sent, or given up.
pub(crate) struct Observed {
    metrics: Arc<Metrics>,
    received: Instant,
    /// Unset while nobody knows what the request is about, and for what nobody counts.
    series: OnceLock<Arc<Series>>,
    under_way: OnceLock<UnderWay>,
    /// Unset while nobody is identified, and for streams.
    flow: OnceLock<Arc<Flow>>,
    /// Until it is answered.
    executing: OnceLock<Executing>,
    answer: Option<Answer>,
    /// Of a request that the audit log is told of. Boxed, since most are not.
    trail: OnceLock<Box<Trail>>,
}

#[derive(Clone, Copy)]
struct Answer {
    code: StatusCode,
    bytes: u64,
}

impl Observed {
    /// A request has arrived.
    pub(crate) fn begin(metrics: &Arc<Metrics>) -> Self {
        Observed {
            metrics: Arc::clone(metrics),
            received: Instant::now(),
            series: OnceLock::new(),
            under_way: OnceLock::new(),
            flow: OnceLock::new(),
            executing: OnceLock::new(),
            answer: None,
            trail: OnceLock::new(),
        }
    }

    /// Somebody was identified, or not.
    pub(crate) fn authenticated(&self, user: Option<&User>, begun: Instant) {
        self.metrics.authenticated(user, begun.elapsed());
    }

    /// It belongs to a flow, which its answer is to name.
    pub(crate) fn belongs_to(&self, flow: Arc<Flow>, is_watch: bool, is_let_in: bool) {
        match is_let_in {
            true => drop(self.executing.set(flow.meter.dispatch(is_watch))),
            false => flow.meter.reject(),
        }
        self.flow.get_or_init(|| flow);
    }

    /// The audit log is to be told of it, from here on.
    pub(crate) fn follow(&self, trail: Trail) {
        // It is identified once.
        let _ = self.trail.set(Box::new(trail));
    }

    /// What is said of it besides its answer, which the audit log may want to be told.
    pub(crate) fn warnings(&self) -> Warnings {
        match self.trail.get() {
            Some(trail) => Warnings::annotated(trail.shows_objects()),
            None => Warnings::default(),
        }
    }

    /// It is made on behalf of somebody else.
    pub(crate) fn impersonated(&self, impersonated: &Impersonated) {
        self.trail(|trail| trail.impersonated(impersonated));
    }

    /// It was decided whether they may.
    pub(crate) fn decided(&self, decision: &Decision, begun: Instant) {
        self.metrics.authorized(decision, begun.elapsed());
        self.trail(|trail| trail.decided(decision));
    }

    /// It is being answered, and will not take long.
    pub(crate) fn under_way(&self, is_mutating: bool) {
        self.under_way.get_or_init(|| self.metrics.under_way(is_mutating));
    }

    /// It is about something that is served.
    pub(crate) fn about(&self, route: &Route<'_>) {
        self.series.get_or_init(|| {
            let series = self.metrics.series(route);
            series.begin();
            series
        });
    }

    /// It is about something that should not be used any more.
    pub(crate) fn deprecated(&self, gvr: &GroupVersionResource, part: &str) {
        self.metrics.deprecated(gvr, part);
        self.trail(Trail::deprecated);
    }

    /// It brought an object, or the options of a delete, here with defaults.
    pub(crate) fn received(&self, object: &Value) {
        self.trail(|trail| trail.received(object));
    }

    /// It brought a patch.
    pub(crate) fn received_patch(&self, patch: &Bytes) {
        self.trail(|trail| trail.received_patch(patch));
    }

    /// Something is worth being remembered of it.
    pub(crate) fn annotate(
        &self,
        key: impl Into<Cow<'static, str>>,
        value: impl FnOnce() -> String,
    ) {
        self.trail(|trail| trail.annotate(key, value()));
    }

    /// Answering it failed, by no fault of the client's.
    pub(crate) fn panicked(&self, panic: &(dyn Any + Send)) {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        self.trail(|trail| trail.panicked(text.unwrap_or_default()));
    }

    /// It was answered. What is left to be sent is followed to its end. A failure is negotiated
    /// unless the client accepts no form that we have.
    pub(crate) fn answered(
        mut self,
        response: Response<Body>,
        is_negotiated: bool,
    ) -> Response<Body> {
        let (mut parts, body) = response.into_parts();
        self.executing.take();
        if let Some(flow) = self.flow.get() {
            flow.write(&mut parts.headers);
        }
        self.trail(|trail| trail.answered(parts.status, &parts.headers, &body, is_negotiated));
        let bytes = body.size_hint().exact().unwrap_or_default();
        self.answer = Some(Answer { code: parts.status, bytes });
        let body = match body {
            Body::Stream(stream) => Body::stream(Sending { stream, observed: self }),
            Body::Passed(stream) => {
                let mut observed = self;
                Body::passed(stream.inspect_ok(move |bytes| observed.sent(bytes)))
            }
            whole @ Body::Whole(_) => whole,
        };
        Response::from_parts(parts, body)
    }

    /// A part of its answer was sent.
    fn sent(&mut self, bytes: &Bytes) {
        if let Some(answer) = &mut self.answer {
            answer.bytes += bytes.len() as u64;
        }
        self.trail(|trail| trail.sent(bytes));
    }

    fn trail(&self, tell: impl FnOnce(&Trail)) {
        if let Some(trail) = self.trail.get() {
            tell(trail);
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        let Some(series) = self.series.get() else { return };
        let elapsed = self.received.elapsed();
        match self.answer {
            Some(Answer { code, bytes }) => series.end(code, elapsed, bytes),
            None if std::thread::panicking() => {
                series.end(StatusCode::INTERNAL_SERVER_ERROR, elapsed, 0);
            }
            None => series.terminate(elapsed),
        }
    }
}

/// An answer that is being sent.
struct Sending {
    stream: BoxStream<'static, Bytes>,
    observed: Observed,
}

impl Stream for Sending {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let sending = self.get_mut();
        let next = sending.stream.as_mut().poll_next(context);
        if let Poll::Ready(Some(bytes)) = &next {
            sending.observed.sent(bytes);
        }
        next
    }
}
