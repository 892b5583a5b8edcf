//! What is noted about a request while it is answered.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures::Stream;
use futures::stream::BoxStream;
use http::{Response, StatusCode};
use http_body::Body as _;

use crate::authz::Decision;
use crate::body::Body;
use crate::flow::Flow;
use crate::metrics::{Metrics, Route, Series, UnderWay};
use crate::user::User;

/// A request from its arrival until its answer was sent, or given up.
pub(crate) struct Observed {
    metrics: Arc<Metrics>,
    received: Instant,
    /// Unset while nobody knows what the request is about, and for what nobody counts.
    series: OnceLock<Arc<Series>>,
    under_way: OnceLock<UnderWay>,
    /// Unset while nobody is identified, and for streams.
    flow: OnceLock<Flow>,
    answer: Option<Answer>,
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
            answer: None,
        }
    }

    /// Somebody was identified, or not.
    pub(crate) fn authenticated(&self, user: Option<&User>, begun: Instant) {
        self.metrics.authenticated(user, begun.elapsed());
    }

    /// It belongs to a flow, which its answer is to name.
    pub(crate) fn belongs_to(&self, flow: Flow) {
        self.flow.get_or_init(|| flow);
    }

    /// It was decided whether they may.
    pub(crate) fn decided(&self, decision: &Decision, begun: Instant) {
        self.metrics.authorized(decision, begun.elapsed());
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

    /// It was answered. What is left to be sent is followed to its end.
    pub(crate) fn answered(mut self, response: Response<Body>) -> Response<Body> {
        let (mut parts, body) = response.into_parts();
        if let Some(flow) = self.flow.get() {
            flow.write(&mut parts.headers);
        }
        let bytes = body.size_hint().exact().unwrap_or_default();
        self.answer = Some(Answer { code: parts.status, bytes });
        let body = match body {
            Body::Stream(stream) => Body::stream(Sending { stream, observed: self }),
            whole @ Body::Whole(_) => whole,
        };
        Response::from_parts(parts, body)
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
        if let (Poll::Ready(Some(bytes)), Some(answer)) = (&next, &mut sending.observed.answer) {
            answer.bytes += bytes.len() as u64;
        }
        next
    }
}
