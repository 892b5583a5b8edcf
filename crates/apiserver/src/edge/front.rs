//! What every request goes through before and after the handler.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures::FutureExt as _;
use http::header::{
    CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, VARY,
};
use http::{Extensions, Method, Request, Response, StatusCode};
use kubewright_apimachinery::status::{Reason, Status};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument as _, Level, debug_span, enabled, error, info};
use uuid::Uuid;

use super::class::{self, Class};
use super::connection::UnderWay;
use super::reply::{Content, End, Reply};
use super::{Limits, gzip};
use crate::body::Body;
use crate::refusal::Refusal;
use crate::user::User;

/// The target of the one line that is logged for each request.
pub const REQUEST_LOG: &str = "kubewright::request";

/// Joins a request, its answer and the audit log.
pub(crate) static AUDIT_ID: HeaderName = HeaderName::from_static("audit-id");

/// In the extensions of a request that finds the server at its limit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Crowded;

/// In the extensions of a request that is to be logged: where to put who made it.
#[derive(Debug, Clone, Default)]
struct Caller(Arc<OnceLock<String>>);

/// To be told of every request, with its extensions, who made it.
pub(crate) fn identified(extensions: &Extensions, user: &User) {
    if let Some(Caller(name)) = extensions.get() {
        // A request is made by one user, so whoever was first was right.
        let _ = name.set(user.name.clone());
    }
}

/// Refuses a request, of which this takes the extensions, if the server is at its limit and the
/// request is not exempt from it.
pub(crate) fn limit(extensions: &Extensions, is_exempt: bool) -> Result<(), Refusal> {
    match extensions.get::<Crowded>() {
        Some(Crowded) if !is_exempt => Err(Box::new(Status::too_many_requests(
            "Too many requests, please try again later.",
            1,
        ))),
        _ => Ok(()),
    }
}

pub(super) struct Front {
    read_only: Arc<Semaphore>,
    mutating: Arc<Semaphore>,
    request_max: Duration,
    is_logged: bool,
    shutdown: CancellationToken,
}

impl Front {
    pub(super) fn new(limits: &Limits, is_logged: bool, shutdown: CancellationToken) -> Self {
        Front {
            read_only: Arc::new(Semaphore::new(limits.read_only_max)),
            mutating: Arc::new(Semaphore::new(limits.mutating_max)),
            request_max: limits.request_max,
            is_logged,
            shutdown,
        }
    }

    pub(super) async fn answer<B, F>(
        &self,
        mut request: Request<B>,
        under_way: UnderWay,
        handler: impl FnOnce(Request<B>) -> F,
    ) -> Response<Reply>
    where
        F: Future<Output = Response<Body>>,
    {
        let started = Instant::now();
        let class = Class::of(request.method(), request.uri());
        let audit_id = audit_id(&mut request);
        let gzip = class != Class::LongRunning
            && request.method() != Method::HEAD
            && gzip::is_accepted(request.headers());
        let (method, path) = (request.method(), request.uri().path());
        let span = debug_span!("request", %method, path, audit_id = ?audit_id);

        let is_logged = self.is_logged && enabled!(target: REQUEST_LOG, Level::INFO);
        let logged = is_logged.then(|| (method.clone(), path.to_owned(), Caller::default()));
        if let Some((.., caller)) = &logged {
            request.extensions_mut().insert(caller.clone());
        }
        let permit = self.permit(class);
        if permit.is_none() && class != Class::LongRunning {
            request.extensions_mut().insert(Crowded);
        }
        let deadline = match (class, class::asked_timeout(request.uri())) {
            (Class::LongRunning, _) => Ok(None),
            (_, Ok(asked)) => {
                let most = self.request_max;
                Ok(Some(started + asked.map_or(most, |asked| asked.min(most))))
            }
            (_, Err(error)) => Err(Status::bad_request(format!(
                "invalid timeout specified in the request URL - {error}"
            ))),
        };
        let (mut response, deadline) = match deadline {
            Ok(deadline) => {
                let call = async { handler(request).await };
                (bounded(call, deadline).instrument(span).await, deadline)
            }
            Err(status) => (refusal(&status), None),
        };

        let headers = response.headers_mut();
        headers.entry(&AUDIT_ID).or_insert(audit_id);
        headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
        if let Some((method, path, Caller(name))) = logged {
            info!(
                target: REQUEST_LOG,
                %method,
                path,
                user = name.get().map_or("", String::as_str),
                status = response.status().as_u16(),
                ms = started.elapsed().as_secs_f64() * 1000.0,
                "request"
            );
        }
        self.wrap(response, class, deadline, gzip, under_way, permit).await
    }

    /// None if the limit is reached, or if there is none.
    fn permit(&self, class: Class) -> Option<OwnedSemaphorePermit> {
        let semaphore = match class {
            Class::LongRunning => return None,
            Class::ReadOnly => &self.read_only,
            Class::Mutating => &self.mutating,
        };
        Arc::clone(semaphore).try_acquire_owned().ok()
    }

    async fn wrap(
        &self,
        response: Response<Body>,
        class: Class,
        deadline: Option<Instant>,
        gzip: bool,
        under_way: UnderWay,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Response<Reply> {
        let (mut parts, body) = response.into_parts();
        let end = match (&body, deadline) {
            (Body::Whole(_), _) => End::Never,
            (Body::Stream(_) | Body::Passed(_), Some(deadline)) => {
                End::Broken(tokio::time::sleep_until(deadline).boxed())
            }
            (Body::Stream(_) | Body::Passed(_), None) if class == Class::LongRunning => {
                End::Whole(self.shutdown.clone().cancelled_owned().boxed())
            }
            (Body::Stream(_) | Body::Passed(_), None) => End::Never,
        };
        let content = if gzip && !parts.headers.contains_key(CONTENT_ENCODING) {
            match gzip::choose(body).await {
                gzip::Choice::Plain(body) => Content::Plain(body),
                gzip::Choice::Compressed(gzip) => {
                    parts.headers.remove(CONTENT_LENGTH);
                    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                    parts.headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
                    Content::Compressed(gzip)
                }
            }
        } else {
            Content::Plain(body)
        };
        Response::from_parts(parts, Reply::new(content, end, under_way, permit))
    }
}

/// The answer of a handler, or the edge's own when the handler takes too long or panics.
async fn bounded(
    call: impl Future<Output = Response<Body>>,
    deadline: Option<Instant>,
) -> Response<Body> {
    // A handler shares with others only what is sound after a panic: the store, and locks
    // that say when they were left half-done.
    let call = AssertUnwindSafe(call).catch_unwind();
    let outcome = match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, call).await,
        None => Ok(call.await),
    };
    match outcome {
        Ok(Ok(response)) => response,
        Ok(Err(panic)) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            error!(panic = text.unwrap_or("of unknown kind"), "request handler panicked");
            refusal(&Status::failure(
                500,
                Reason::InternalError,
                "This request caused apiserver to panic. Look in the logs for details.",
            ))
        }
        Err(_) => {
            refusal(&Status::timeout("request did not complete within the allotted timeout", 0))
        }
    }
}

/// The id of the request: the one it brought, or a new one, which it has from now on.
fn audit_id<B>(request: &mut Request<B>) -> HeaderValue {
    let brought = request.headers().get(&AUDIT_ID).filter(|id| !id.is_empty());
    if let Some(id) = brought {
        return id.clone();
    }
    let mut text = Uuid::encode_buffer();
    let id = Uuid::new_v4().hyphenated().encode_lower(&mut text);
    let id = HeaderValue::from_str(id).expect("a UUID is ASCII");
    request.headers_mut().insert(&AUDIT_ID, id.clone());
    id
}

/// What the edge itself answers.
fn refusal(status: &Status) -> Response<Body> {
    let mut body = serde_json::to_vec(status).expect("a status is JSON");
    body.push(b'\n');
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = u16::try_from(status.code)
        .ok()
        .and_then(|code| StatusCode::from_u16(code).ok())
        .expect("the edge answers with codes of HTTP");
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
