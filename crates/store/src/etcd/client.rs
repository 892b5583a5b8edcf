//! One logical connection to an etcd cluster: which member is asked, TLS, the login token, and which
//! failed calls are worth repeating. What is asked, and what the answers mean, belongs to the callers.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::Stream;
use tokio::time::{Instant, sleep};
use tonic::metadata::{AsciiMetadataValue, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, ConnectError, IntoStreamingRequest, Request, Response, Status, Streaming};

use super::session::{Session, Ticket};
use super::wire::{
    CompactionRequest, CompactionResponse, LeaseGrantRequest, LeaseGrantResponse,
    LeaseRevokeRequest, LeaseRevokeResponse, RangeRequest, RangeResponse, StatusRequest,
    StatusResponse, TxnRequest, TxnResponse, WatchRequest, WatchResponse, kv_client::KvClient,
    lease_client::LeaseClient, maintenance_client::MaintenanceClient, watch_client::WatchClient,
};
use super::{Config, ConfigError, Tls};

#[cfg(test)]
mod tests;

/// Speaks to one member at a time and moves on to the next when it does not answer, so that reads,
/// writes and the watch normally see the same member.
pub struct Client {
    members: Vec<Member>,
    /// Index of the member to ask.
    current: AtomicUsize,
    session: Option<Session>,
    /// How long a call is repeated before it fails.
    patience: Duration,
}

/// Why etcd did not do what it was asked, as far as the next step of the caller depends on it.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Wait, or tell the user. A write may have happened all the same.
    #[error("reach etcd at {endpoint}")]
    Unavailable {
        endpoint: String,
        #[source]
        cause: Cause,
    },
    /// Read at a newer revision.
    #[error("read a revision that etcd has compacted")]
    Compacted,
    /// Read at an older revision.
    #[error("read a revision that etcd has not reached")]
    Future,
    /// No retry will help.
    #[error("send etcd a request beyond its size limit")]
    TooLarge,
    /// A person must free space and disarm etcd's alarm.
    #[error("write to etcd, whose space quota is exhausted")]
    NoSpace,
    /// Grant another lease.
    #[error("use an etcd lease that is gone")]
    LeaseGone,
    /// The login or its permissions are wrong.
    #[error("be let in by etcd")]
    Denied(#[source] Cause),
    /// etcd and we disagree about the protocol.
    #[error("be understood by etcd")]
    Unexpected(#[source] Cause),
}

/// What is behind a failed call. Of all that gRPC wraps around it, the innermost is told.
#[derive(Debug)]
pub struct Cause(Box<Status>);

struct Member {
    endpoint: String,
    channel: Channel,
}

/// Whether asking twice may do something that asking once does not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Freely,
    OnlyIfUnsent,
}

impl From<Status> for Cause {
    fn from(status: Status) -> Self {
        Cause(Box::new(status))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let causes = std::iter::successors(self.0.source(), |&cause| cause.source());
        match causes.last() {
            Some(innermost) => write!(f, "{innermost}"),
            None => f.write_str(self.0.message()),
        }
    }
}

impl Error for Cause {}

impl Client {
    /// Prepares the connection; the first call opens it.
    pub fn new(config: &Config) -> Result<Self, ConfigError> {
        if config.endpoints.is_empty() {
            return Err(ConfigError::NoEndpoint);
        }
        let members = config
            .endpoints
            .iter()
            .map(|endpoint| {
                let channel = channel(endpoint, config)?;
                Ok(Member { endpoint: endpoint.clone(), channel })
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            members,
            current: AtomicUsize::new(0),
            session: config.login.clone().map(Session::new),
            patience: config.patience,
        })
    }

    pub async fn range(&self, request: RangeRequest) -> Result<RangeResponse, CallError> {
        self.call(Repeat::Freely, request, |channel, request| async move {
            kv(channel).range(request).await
        })
        .await
    }

    /// Sent once: whether a transaction whose answer was lost has happened is for the caller to find
    /// out.
    pub async fn txn(&self, request: TxnRequest) -> Result<TxnResponse, CallError> {
        self.call(Repeat::OnlyIfUnsent, request, |channel, request| async move {
            kv(channel).txn(request).await
        })
        .await
    }

    pub async fn compact(&self, revision: i64) -> Result<CompactionResponse, CallError> {
        let request = CompactionRequest { revision, physical: false };
        self.call(Repeat::Freely, request, |channel, request| async move {
            kv(channel).compact(request).await
        })
        .await
    }

    /// A repeated grant leaves at worst a lease without keys, which expires by itself.
    pub async fn lease_grant(&self, ttl_seconds: i64) -> Result<LeaseGrantResponse, CallError> {
        let request = LeaseGrantRequest { ttl: ttl_seconds, id: 0 };
        self.call(Repeat::Freely, request, |channel, request| async move {
            LeaseClient::new(channel).lease_grant(request).await
        })
        .await
    }

    pub async fn lease_revoke(&self, id: i64) -> Result<LeaseRevokeResponse, CallError> {
        let request = LeaseRevokeRequest { id };
        self.call(Repeat::Freely, request, |channel, request| async move {
            LeaseClient::new(channel).lease_revoke(request).await
        })
        .await
    }

    /// What the member that is being asked says about itself.
    pub async fn status(&self) -> Result<StatusResponse, CallError> {
        self.call(Repeat::Freely, StatusRequest {}, |channel, request| async move {
            MaintenanceClient::new(channel).status(request).await
        })
        .await
    }

    /// Opens a watch stream. `requests` must already hold the first request, since etcd answers
    /// nothing, not even headers, before it has read one.
    pub async fn watch(
        &self,
        requests: impl Stream<Item = WatchRequest> + Send + 'static,
    ) -> Result<Streaming<WatchResponse>, CallError> {
        let (index, member) = self.member();
        let ticket = self.log_in(member).await?;
        let mut request = requests.into_streaming_request();
        // A member cut off from its leader ends the stream, instead of staying silent for ever.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        carry(ticket.as_ref(), request.metadata_mut());

        let mut stub =
            WatchClient::new(member.channel.clone()).max_decoding_message_size(usize::MAX);
        let status = match stub.watch(request).await {
            Ok(answer) => return Ok(answer.into_inner()),
            Err(status) => status,
        };
        if let (true, Some(session), Some(ticket)) = (ticket_spent(&status), &self.session, &ticket)
        {
            session.forget(ticket);
        }
        self.leave(index);
        Err(failure(&member.endpoint, status))
    }

    /// Another member is asked from now on, unless somebody has already moved on from this one.
    fn leave(&self, index: usize) {
        let next = (index + 1) % self.members.len();
        let _ = self.current.compare_exchange(index, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    fn member(&self) -> (usize, &Member) {
        let index = self.current.load(Ordering::Relaxed);
        (index, &self.members[index])
    }

    async fn log_in(&self, member: &Member) -> Result<Option<Ticket>, CallError> {
        match &self.session {
            None => Ok(None),
            Some(session) => session.ticket(&member.endpoint, &member.channel).await.map(Some),
        }
    }

    async fn call<Q, A, F>(
        &self,
        repeat: Repeat,
        message: Q,
        send: impl Fn(Channel, Request<Q>) -> F,
    ) -> Result<A, CallError>
    where
        Q: Clone,
        F: Future<Output = Result<Response<A>, Status>>,
    {
        let give_up = Instant::now() + self.patience;
        let mut backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1));
        let mut logged_in_again = false;
        loop {
            let (index, member) = self.member();
            let (error, again) = match self.log_in(member).await {
                // Nothing has been sent yet.
                Err(error) => {
                    let again = matches!(error, CallError::Unavailable { .. });
                    (error, again)
                }
                Ok(ticket) => {
                    let mut request = Request::new(message.clone());
                    carry(ticket.as_ref(), request.metadata_mut());
                    let status = match send(member.channel.clone(), request).await {
                        Ok(answer) => return Ok(answer.into_inner()),
                        Err(status) => status,
                    };
                    if let (true, false, Some(session), Some(ticket)) =
                        (ticket_spent(&status), logged_in_again, &self.session, &ticket)
                    {
                        session.forget(ticket);
                        logged_in_again = true;
                        continue;
                    }
                    let again = repeat == Repeat::Freely || unsent(&status);
                    let error = failure(&member.endpoint, status);
                    let again = again && matches!(error, CallError::Unavailable { .. });
                    (error, again)
                }
            };
            if matches!(error, CallError::Unavailable { .. }) {
                self.leave(index);
            }
            let pause = backoff.pause();
            if !again || Instant::now() + pause > give_up {
                return Err(error);
            }
            sleep(pause).await;
        }
    }
}

/// How long to wait before the next attempt: doubling, up to a bound.
pub(super) struct Backoff {
    first: Duration,
    next: Duration,
    max: Duration,
}

impl Backoff {
    pub(super) fn new(first: Duration, max: Duration) -> Self {
        Self { first, next: first, max }
    }

    pub(super) fn pause(&mut self) -> Duration {
        let pause = self.next;
        self.next = (pause * 2).min(self.max);
        pause
    }

    pub(super) fn reset(&mut self) {
        self.next = self.first;
    }
}

/// What a failed call means.
pub(super) fn failure(endpoint: &str, status: Status) -> CallError {
    let says = |text: &str| status.message().contains(text);
    match status.code() {
        Code::OutOfRange if says("has been compacted") => CallError::Compacted,
        Code::OutOfRange if says("future revision") => CallError::Future,
        Code::InvalidArgument if says("request is too large") => CallError::TooLarge,
        // gRPC's own limit, a little above etcd's, strikes first for much larger requests.
        Code::ResourceExhausted if says("larger than max") => CallError::TooLarge,
        Code::ResourceExhausted if says("database space exceeded") => CallError::NoSpace,
        Code::NotFound if says("lease not found") => CallError::LeaseGone,
        Code::PermissionDenied | Code::Unauthenticated => CallError::Denied(status.into()),
        Code::InvalidArgument
            if says("invalid user ID or password")
                || says("user name is empty")
                || says("revision of auth store is old") =>
        {
            CallError::Denied(status.into())
        }
        // A connection that breaks under a call shows as one of the last three.
        Code::Unavailable
        | Code::DeadlineExceeded
        | Code::ResourceExhausted
        | Code::Unknown
        | Code::Internal
        | Code::Cancelled => {
            CallError::Unavailable { endpoint: endpoint.to_owned(), cause: status.into() }
        }
        _ => CallError::Unexpected(status.into()),
    }
}

/// etcd no longer honours the token: it expired, the member restarted, or roles changed.
fn ticket_spent(status: &Status) -> bool {
    let says = |text: &str| status.message().contains(text);
    match status.code() {
        Code::Unauthenticated => says("invalid auth token"),
        Code::InvalidArgument => {
            says("revision of auth store is old") || says("user name is empty")
        }
        _ => false,
    }
}

/// The request cannot have had an effect: there was no connection to send it on.
fn unsent(status: &Status) -> bool {
    let mut source = std::error::Error::source(status);
    while let Some(error) = source {
        if error.is::<ConnectError>() {
            return true;
        }
        source = error.source();
    }
    false
}

fn carry(ticket: Option<&Ticket>, metadata: &mut tonic::metadata::MetadataMap) {
    if let Some(ticket) = ticket {
        let token: AsciiMetadataValue = ticket.token().clone();
        metadata.insert("token", token);
    }
}

fn kv(channel: Channel) -> KvClient<Channel> {
    // etcd bounds requests, not answers; pages are bounded by what we ask for.
    KvClient::new(channel).max_decoding_message_size(usize::MAX)
}

/// A connection to one member, opened by its first call.
pub(super) fn channel(endpoint: &str, config: &Config) -> Result<Channel, ConfigError> {
    let invalid = |source| ConfigError::Endpoint { endpoint: endpoint.to_owned(), source };
    let mut settings = Endpoint::from_shared(endpoint.to_owned())
        .map_err(invalid)?
        .connect_timeout(config.connect_timeout)
        // Until the head of the answer: a watch lives as long as it likes.
        .timeout(config.request_timeout)
        // A silent peer is noticed while the watch is open, which is always.
        .http2_keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(10))
        // A page of the initial load fits without waiting for window updates.
        .initial_stream_window_size(8 << 20)
        .initial_connection_window_size(16 << 20);
    if let Some(tls) = &config.tls {
        settings = settings.tls_config(tls_config(tls)).map_err(invalid)?;
    }
    Ok(settings.connect_lazy())
}

fn tls_config(tls: &Tls) -> ClientTlsConfig {
    let mut config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca_pem));
    if let Some(identity) = &tls.identity {
        config = config
            .identity(Identity::from_pem(&identity.certificate_pem, &identity.private_key_pem));
    }
    if let Some(name) = &tls.server_name {
        config = config.domain_name(name);
    }
    config
}
