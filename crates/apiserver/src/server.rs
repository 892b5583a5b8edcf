//! The server: from a request to its answer.
//!
//! Stages consume one type and give the next, so none can be left out: a request is identified
//! ([`User`]), read ([`Target`]), permitted (`Authorized`), and only then routed to a handler,
//! which decodes, admits, commits and encodes.

mod route;
mod router;
#[cfg(test)]
pub(crate) mod tests;

use std::ops::RangeInclusive;
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::FutureExt as _;
use http::header::{ACCEPT, USER_AGENT, X_CONTENT_TYPE_OPTIONS};
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use jiff::Timestamp;
use kubewright_apimachinery::status::Status;
use kubewright_store::Unavailable;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::admission::{self, Admission, PluginSet};
use crate::aggregate::{self, proxy};
use crate::audit::{self, Trail};
use crate::authn::Authenticator;
use crate::authn::token::Issuer;
use crate::authz::{self, Authorizer, Decision};
use crate::begin;
use crate::body::Body;
use crate::catalog::Catalog;
use crate::connect::{self, Kubelets};
use crate::crd::{self, Shelf};
use crate::delete::{Delete, Whose};
use crate::discovery;
use crate::document;
use crate::draft::Draft;
use crate::edge;
use crate::encode::{self, Encoder};
use crate::flow::{self, Flows};
use crate::genesis;
use crate::health::Health;
use crate::index::{self, Store};
use crate::metrics::Metrics;
use crate::negotiate::Accept;
use crate::observe::Observed;
use crate::openapi;
use crate::options::{DeleteOptions, WriteOptions};
use crate::query::Query;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::services::Services;
use crate::target::{self, Target};
use crate::user::User;
use crate::warnings::Warnings;
use crate::write::{Revise, Write};

/// The body of a request, as it comes.
type Sent = UnsyncBoxBody<Bytes, Box<dyn std::error::Error + Send + Sync>>;

/// What a request may bring.
const BODY_BYTES_MAX: usize = 3 << 20;

/// The Kubernetes API over a store. A clone is another handle on the same server.
#[derive(Clone)]
pub struct Server(Arc<Inner>);

/// What a server must be told.
pub struct Settings {
    pub store: Store,
    pub authenticator: Authenticator,
    /// Issues the tokens of service accounts.
    pub issuer: Option<Issuer>,
    /// Host and port at which clients reach the server.
    pub address: String,
    /// Where Services get their addresses from, the main network first.
    pub service_cidrs: Vec<String>,
    /// Which ports of nodes Services may have.
    pub node_ports: RangeInclusive<u16>,
    /// Who this server is to those behind it, which believe it who asks.
    pub identity: Option<aggregate::Identity>,
    /// How nodes are reached.
    pub kubelets: connect::Access,
    /// Ends watches, so that the server can stop.
    pub shutdown: CancellationToken,
    /// Is told of requests. To be run by whoever made it.
    pub audit: Option<audit::Log>,
    /// The other parts of a control plane that live and die with this server, by the names under
    /// which their state is asked for: `controller-manager`, `scheduler`.
    pub companions: Vec<&'static str>,
    /// Who has a say about writes.
    pub admission: PluginSet,
    /// Whether containers may be privileged.
    pub allows_privileged: bool,
    /// Which version this is, to those who ask.
    pub version: String,
}

pub(crate) struct Inner {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) health: Health,
    pub(crate) store: Store,
    pub(crate) authenticator: Authenticator,
    pub(crate) issuer: Option<Issuer>,
    pub(crate) authorizer: Arc<Authorizer>,
    pub(crate) admission: Admission,
    pub(crate) flows: Flows,
    pub(crate) shelf: Arc<Shelf>,
    pub(crate) encoder: Encoder,
    pub(crate) services: Services,
    pub(crate) kubelets: Kubelets,
    /// Where clients reach the server.
    pub(crate) address: String,
    /// The lease that says that this server lives.
    pub(crate) identity: OnceLock<Value>,
    pub(crate) shutdown: CancellationToken,
    pub(crate) audit: Option<audit::Log>,
    pub(crate) companions: Vec<&'static str>,
    pub(crate) version: String,
}

/// A request that its user may make. Only [`Inner::permit`] makes one.
pub(crate) struct Authorized {
    pub(crate) user: Arc<User>,
    pub(crate) target: Target,
    pub(crate) parts: Parts,
    pub(crate) query: Query,
    pub(crate) warnings: Warnings,
}

impl Server {
    /// Reads what all servers of a process share and the first one would have to wait for. To be
    /// called while there is something else to wait for; need not be.
    pub fn prepare() {
        Catalog::prepare();
        genesis::flow::prepare();
    }

    /// What else the first fresh server of a process would have to wait for, unless it is known
    /// already. It takes a while, so it is best done on a thread of its own.
    pub fn left_to_prepare() -> Option<fn()> {
        begin::is_unprepared().then_some(begin::prepare)
    }

    pub fn new(settings: Settings) -> Self {
        let Settings { store, authenticator, issuer, address, .. } = settings;
        let metrics = Arc::new(Metrics::default());
        let store = store.observed(Arc::<Metrics>::clone(&metrics));
        let paths = route::paths();
        let clock = store.config().clock.clone();
        let about = discovery::Server { address: address.clone(), paths };
        let services = Services::new(&store, &settings.service_cidrs, settings.node_ports);
        let shelf = Arc::new({
            let metrics = Arc::clone(&metrics);
            Shelf::new(store.clone(), metrics, about, settings.identity)
        });
        Server(Arc::new(Inner {
            health: Health::default(),
            services,
            kubelets: Kubelets::new(settings.kubelets),
            address,
            identity: OnceLock::new(),
            shutdown: settings.shutdown,
            audit: settings.audit,
            companions: settings.companions,
            version: settings.version,
            authorizer: Arc::clone(&authenticator.authorizer),
            admission: Admission::new(
                store.clone(),
                Arc::clone(&authenticator.authorizer),
                settings.admission,
                settings.allows_privileged,
                Arc::clone(&metrics),
                Arc::clone(&shelf),
            ),
            flows: Flows::new(store.clone(), Arc::clone(&metrics)),
            shelf,
            encoder: Encoder::new(clock, Arc::new(openapi::describe)),
            authenticator,
            issuer,
            store,
            metrics,
        }))
    }

    /// Creates what a fresh server has, and puts right what must be. Safe to repeat.
    pub async fn begin(&self, settings: &genesis::Settings<'_>) -> Result<(), Unavailable> {
        begin::run(&self.0, settings).await?;
        self.0.shelf.refresh();
        self.0.flows.refresh();
        self.0.health.begun();
        Ok(())
    }

    /// Does what the server does by itself, until `shutdown`: follows definitions, APIServices and
    /// flow control, lets Events expire, says that it lives. Returns when everything it started has
    /// ended.
    pub async fn run(&self, shutdown: CancellationToken) {
        let definitions = crd::life::run(Arc::clone(&self.0), shutdown.clone());
        let flows = flow::upkeep::run(Arc::clone(&self.0), shutdown.clone());
        let expiry = async {
            tokio::select! {
                error = self.0.store.run_expiry() => tracing::warn!(%error, "nothing expires"),
                () = shutdown.cancelled() => {}
            }
        };
        let registrations = aggregate::run(Arc::clone(&self.0), shutdown.clone());
        let life = shutdown.run_until_cancelled(begin::live(&self.0));
        tokio::join!(definitions, registrations, flows, expiry, life);
    }

    /// Ends watches, when it comes.
    pub(crate) fn shutdown(&self) -> &CancellationToken {
        &self.0.shutdown
    }

    /// Answers a request. Whoever calls in the same process says who it is with an extension of
    /// type `Arc<`[`User`]`>`.
    pub async fn call<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        // Kept here, since the rest of the request goes on.
        let accepted = parts.headers.get(ACCEPT).cloned();
        let accept = Accept::of(
            text(accepted.as_ref()),
            text(parts.headers.get(USER_AGENT)),
            parts.uri.query().unwrap_or_default(),
        );
        let observed = Observed::begin(&self.0.metrics);
        // A request that fails half-way leaves nothing that others see.
        let responding =
            AssertUnwindSafe(Box::pin(self.0.respond(parts, body, &accept, &observed)));
        let response = match responding.catch_unwind().await {
            Ok(Ok(response)) => response,
            Ok(Err(refusal)) => encode::failure(&refusal, accept.failure()),
            Err(panic) => {
                observed.panicked(&*panic);
                resume_unwind(panic);
            }
        };
        observed.answered(response, accept.plain().is_some())
    }
}

impl Inner {
    async fn respond<B>(
        &self,
        parts: Parts,
        body: B,
        accept: &Accept<'_>,
        observed: &Observed,
    ) -> Result<Response<Body>, Refusal>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        if target::unescape(parts.uri.path()).is_none() {
            return Ok(document::bad_request().map(Body::from));
        }
        let user = self.identify(&parts, observed).await?;
        edge::identified(&parts.extensions, &user);
        let authorized = match self.permit(user, parts, observed) {
            Ok(authorized) => authorized,
            Err(refusal) => {
                let mut response = encode::failure(&refusal, accept.failure());
                if response.status() == StatusCode::FORBIDDEN {
                    let headers = response.headers_mut();
                    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
                }
                return Ok(response);
            }
        };
        let catalog = self.shelf.catalog();
        let path = target::unescape(authorized.parts.uri.path()).unwrap_or_default();
        let behind = catalog.roster.behind(&path).map(|found| found.name.as_str());
        let behind = behind.or_else(|| catalog.open_api.behind(&path));
        if let Some((registration, line)) = behind.and_then(|name| catalog.roster.remote(name)) {
            let believed = self.authenticator.front_proxy.as_ref();
            return Ok(proxy::pass_on(registration, line, believed, authorized, body).await);
        }
        match &authorized.target {
            Target::Path { .. } => self.document(&authorized, observed).await,
            Target::Resource(target) => {
                let body = Sent::new(body.map_err(Into::into));
                let answered = self.resource(&authorized, target, body, accept, observed).await;
                let mut response = match answered {
                    Ok(response) => response,
                    Err(refusal) => encode::failure(&refusal, accept.failure()),
                };
                for (key, text) in authorized.warnings.notes() {
                    observed.annotate(key, || text);
                }
                authorized.warnings.write(response.headers_mut());
                Ok(response)
            }
        }
    }

    /// Tells who makes a request, or on whose behalf.
    async fn identify(&self, parts: &Parts, observed: &Observed) -> Result<Arc<User>, Refusal> {
        let begun = Instant::now();
        let mut authenticated = self.authenticator.authenticate(parts);
        if authenticated.is_err() && self.authenticator.catch_up_with(parts).await {
            authenticated = self.authenticator.authenticate(parts);
        }
        observed.authenticated(authenticated.as_deref().ok(), begun);
        if let Some(peer) = parts.extensions.get::<Arc<edge::Peer>>()
            && let Some(Some(certified)) = peer.certified.get()
        {
            let lifetime = certified.not_after - self.now().as_second();
            self.metrics.certified(Duration::from_secs(u64::try_from(lifetime).unwrap_or(0)));
        }
        if let Some(log) = &self.audit
            && let Some(trail) = Trail::begin(log, authenticated.as_deref().ok(), parts).await
        {
            observed.follow(trail);
        }
        let user = authenticated?;
        let Some(impersonated) = self.authenticator.impersonate(&user, parts)? else {
            return Ok(user);
        };
        observed.impersonated(&impersonated);
        Ok(Arc::new(impersonated.user))
    }

    /// Lets a request through if its user may make it.
    fn permit(
        &self,
        user: Arc<User>,
        parts: Parts,
        observed: &Observed,
    ) -> Result<Authorized, Refusal> {
        let query = Query::parse(parts.uri.query());
        let target = Target::of(&parts, &query);
        if let Some(flow) = self.flows.find(&user, &target) {
            let limited = edge::limit(&parts.extensions, flow.is_exempt);
            observed.belongs_to(flow, target.is_watch(), limited.is_ok());
            limited?;
        }
        let begun = Instant::now();
        let decision = self.authorizer.permit(&user, &target);
        observed.decided(&decision, begun);
        match decision {
            Decision::Allowed(_) => {
                let warnings = observed.warnings();
                Ok(Authorized { user, target, parts, query, warnings })
            }
            Decision::Denied(denial) => {
                let attributes = authz::Attributes::of(&target);
                Err(authz::forbidden(&user, &attributes, &denial.to_string()))
            }
        }
    }

    /// Writes the status of an object of which the server itself tells what becomes of it.
    pub(crate) async fn write_status(
        &self,
        resource: &Resource,
        name: &str,
        options: &WriteOptions,
        revise: &dyn Revise,
    ) -> Result<(), Refusal> {
        self.update(resource, name, Some("status"), options, revise).await
    }

    /// Writes an object of which the server itself is the owner.
    pub(crate) async fn update(
        &self,
        resource: &Resource,
        name: &str,
        part: Option<&str>,
        options: &WriteOptions,
        revise: &dyn Revise,
    ) -> Result<(), Refusal> {
        let (user, warnings) = (User::apiserver(), Warnings::default());
        let write = self.write(&user, &warnings, resource, options);
        // Boxed, as below, since the compiler gives up on types that are nested too deep.
        Box::pin(Write { name, part, ..write }.update(revise)).await.map(drop)
    }

    /// Creates an object of which the server itself is the owner.
    pub(crate) async fn create(
        &self,
        resource: &Resource,
        options: &WriteOptions,
        object: Value,
    ) -> Result<(), Refusal> {
        let (user, warnings) = (User::apiserver(), Warnings::default());
        let write = self.write(&user, &warnings, resource, options);
        Box::pin(write.create(Draft::of_server(object))).await.map(drop)
    }

    /// Deletes an object of which the server itself is the owner.
    pub(crate) async fn delete(
        &self,
        resource: &Resource,
        name: &str,
        options: &DeleteOptions,
    ) -> Result<(), Refusal> {
        let delete = Delete {
            store: &self.store,
            admission: &self.admission,
            user: &User::apiserver(),
            resource,
            namespace: None,
            options,
            now: self.now(),
            warnings: &Warnings::default(),
            whose: Whose::Client,
            deadline: admission::deadline(None),
        };
        Box::pin(delete.run(name)).await.map(drop)
    }

    /// A write of the server's own.
    fn write<'a>(
        &'a self,
        user: &'a User,
        warnings: &'a Warnings,
        resource: &'a Resource,
        options: &'a WriteOptions,
    ) -> Write<'a> {
        Write {
            store: &self.store,
            admission: &self.admission,
            services: &self.services,
            user,
            resource,
            namespace: None,
            name: "",
            part: None,
            options,
            now: self.now(),
            warnings,
            deadline: admission::deadline(None),
            may_create: &|| Ok(()),
            asked: None,
        }
    }

    /// The time, as the store has it.
    pub(crate) fn now(&self) -> Timestamp {
        index::now(&self.store)
    }
}

/// The value of a header; empty when there is none, or none that is text.
fn text(value: Option<&HeaderValue>) -> &str {
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Reads a whole body, if it is not too long.
async fn read<B>(body: B) -> Result<Bytes, Refusal>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    match Limited::new(body, BODY_BYTES_MAX).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let why = format!("limit is {BODY_BYTES_MAX}");
            Err(Box::new(Status::request_entity_too_large(why)))
        }
        Err(error) => Err(Box::new(Status::bad_request(format!("read the body: {error}")))),
    }
}
