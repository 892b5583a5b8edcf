//! Webhooks: what an operator says when others write its objects.
//!
//! A [`Webhook`] completes objects ([`Defaulter`]), judges changes of them ([`Validator`]) or
//! answers any review ([`Handler`]); a [`Conversion`] brings objects from version to version.
//! [`Webhooks`] are all those of an operator. They answer HTTP requests, wherever these come from,
//! and say how the server is to call them ([`Registration`]). A [`Server`] lets it call them.
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use kubewright::webhook::{Change, Denied, Review, Webhook, Webhooks};
//!
//! let webhooks = Webhooks::new()
//!     .with(Webhook::defaulting(|it: &mut ConfigMap, _: &Review| {
//!         it.data.get_or_insert_default().entry("greeting".into()).or_insert("hello".into());
//!         Ok(())
//!     }))
//!     .with(Webhook::validating(|change: Change<'_, ConfigMap>, _: &Review| match change {
//!         Change::Create(it) | Change::Update { new: it, .. } if it.data.is_none() => {
//!             Err(Denied::new("say something"))
//!         }
//!         _ => Ok(vec![]),
//!     }));
//! let paths: Vec<_> = webhooks.registrations().map(|it| it.path.as_str()).collect();
//! assert_eq!(paths, ["/mutate--v1-configmap", "/validate--v1-configmap"]);
//! ```

mod admission;
mod conversion;
mod denied;
mod former;
mod install;
mod metrics;
mod patch;
mod reach;
mod registration;
mod review;
mod server;
#[cfg(test)]
mod tests;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error as StdError;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt as _;
use http::{HeaderMap, StatusCode, header};
use http_body::Body;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use k8s_openapi::api::admissionregistration::v1::MatchCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::Client;
use serde::Deserialize as _;
use serde_json::Value;
use tracing::{debug, error, warn};

use crate::cache::Cache;
use crate::chain::chain;
use crate::context::{Informers, Kind as Readable, is_namespaced};
use crate::informer::{Scope, State};
use crate::serve::{self, Answer as HttpAnswer, Check};

use self::admission::{Answer, Defaulting, Validating};
use self::conversion::Conversions;

pub use self::admission::{Change, Defaulter, Handler, Object, Validator};
pub use self::conversion::{Conversion, ConversionError, Hub, Spoke};
pub use self::denied::{Cause, Denied};
pub use self::former::is_loopback;
pub use self::install::{InstallError, Installation, install};
pub use self::metrics::Metrics;
pub use self::patch::Operation as PatchOperation;
pub(crate) use self::reach::{Reach, ask};
pub use self::registration::{
    Configurations, FailurePolicy, INJECT_CA_FROM, MatchPolicy, Place, Purpose, Registration,
    Reinvocation, SideEffects, Trust,
};
pub use self::review::{Kind, Operation, ResourceName, Response, Review, Warnings};
pub use self::server::{LocalError, Server};

/// Where the server listens unless it is told otherwise.
pub const PORT: u16 = 9443;

/// Where objects of all kinds are converted.
const CONVERT_PATH: &str = "/convert";
/// A review has at most two objects, of 3 MiB each, and a little besides.
const REVIEW_BYTES_MAX: usize = 7 << 20;
/// A list is converted all at once, so this is as large as lists are.
const CONVERSION_BYTES_MAX: usize = 256 << 20;

/// One webhook for admission.
pub struct Webhook {
    registration: Registration,
    handler: Box<dyn Answer>,
}

/// All webhooks of an operator.
#[derive(Default)]
pub struct Webhooks {
    admission: BTreeMap<String, Webhook>,
    conversions: Conversions,
    converted: Vec<Registration>,
    client: Option<Client>,
    /// Kinds that reviews look up, before and after they are followed.
    read: Vec<Box<Follow>>,
    informers: Option<Arc<Informers>>,
    unlisted: Arc<[Box<Unlisted>]>,
    /// What says that a server can call all of these.
    reach: Option<Webhook>,
}

/// Begins to look at a kind.
type Follow = dyn Fn(&Cache, &BTreeSet<String>, &mut Informers) -> Box<Unlisted> + Send + Sync;

/// Names a kind while it is listed for the first time.
type Unlisted = dyn Fn() -> Option<String> + Send + Sync;

impl Webhook {
    /// Completes objects of a kind, at `/mutate-<group>-<version>-<kind>`.
    pub fn defaulting<K: Object>(defaulter: impl Defaulter<K>) -> Self {
        let registration = Registration::of::<K>(Purpose::Mutate);
        Webhook::new(registration, Defaulting::<K, _>::new(defaulter))
    }

    /// Judges changes of objects of a kind, at `/validate-<group>-<version>-<kind>`.
    pub fn validating<K: Object>(validator: impl Validator<K>) -> Self {
        let registration = Registration::of::<K>(Purpose::Validate);
        Webhook::new(registration, Validating::<K, _>::new(validator))
    }

    /// Answers reviews of whatever it is registered for.
    pub fn new(registration: Registration, handler: impl Handler) -> Self {
        Webhook { registration, handler: Box::new(handler) }
    }

    /// What it is asked about: creations and updates, unless said otherwise.
    pub fn operations(mut self, operations: impl IntoIterator<Item = Operation>) -> Self {
        self.registration.operations = operations.into_iter().collect();
        self
    }

    /// What becomes of requests when it does not answer: they fail, unless said otherwise.
    pub fn failure_policy(mut self, policy: FailurePolicy) -> Self {
        self.registration.failure_policy = policy;
        self
    }

    /// How long the server waits for it: ten seconds, unless said otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.registration.timeout = timeout;
        self
    }

    /// Asked only about objects in such namespaces.
    pub fn namespaces(mut self, selector: LabelSelector) -> Self {
        self.registration.namespace_selector = Some(selector);
        self
    }

    /// Asked only about such objects.
    pub fn objects(mut self, selector: LabelSelector) -> Self {
        self.registration.object_selector = Some(selector);
        self
    }

    /// Asked only if this expression says so.
    pub fn when(mut self, name: &str, expression: &str) -> Self {
        let condition = MatchCondition { name: name.into(), expression: expression.into() };
        self.registration.match_conditions.push(condition);
        self
    }

    /// Whatever else the server should know of it.
    pub fn registered(mut self, change: impl FnOnce(&mut Registration)) -> Self {
        change(&mut self.registration);
        self
    }
}

impl Webhooks {
    pub fn new() -> Self {
        Webhooks::default()
    }

    /// Adds a webhook.
    ///
    /// # Panics
    /// If there is one at its path.
    pub fn with(mut self, webhook: Webhook) -> Self {
        let path = webhook.registration.path.clone();
        let former = self.admission.insert(path, webhook);
        let path = former.map(|former| former.registration.path);
        assert!(path.is_none(), "two webhooks at {}", path.unwrap_or_default());
        self
    }

    /// Adds the versions of a kind, which are converted at `/convert`.
    ///
    /// # Panics
    /// If the kind is there already.
    pub fn converting(mut self, conversion: impl Into<Conversion>) -> Self {
        let conversion = conversion.into();
        self.converted.push(conversion.registration.clone());
        self.conversions.add(conversion);
        self
    }

    /// Lets webhooks look into the cluster: [`Review::client`].
    pub fn client(self, client: Client) -> Self {
        Webhooks { client: Some(client), ..self }
    }

    /// Lets webhooks look at the objects of a kind in the cache: [`Review::informer`].
    pub fn reads<T: Readable>(mut self) -> Self {
        self.read.push(Box::new(|cache, namespaces, informers| {
            let namespaces = namespaces.iter().filter(|_| is_namespaced::<T>());
            let scope = Scope::within(namespaces);
            cache.declare::<T>(true);
            let informer = cache.informer::<T>(&scope);
            informers.insert(scope, informer.clone());
            Box::new(move || {
                (informer.state() == State::Listing).then(|| informer.kind().to_owned())
            })
        }));
        self
    }

    /// Begins to look at what they [read](Webhooks::reads), in these namespaces or in all, for as
    /// long as the cache informs.
    pub fn informed(self, cache: &Cache, namespaces: &BTreeSet<String>) -> Self {
        let mut informers = Informers::default();
        let unlisted = self.read.iter().map(|follow| follow(cache, namespaces, &mut informers));
        Webhooks { unlisted: unlisted.collect(), informers: Some(Arc::new(informers)), ..self }
    }

    /// Whether they look at anything, and have begun to.
    pub(crate) fn read_any(&self) -> bool {
        !self.unlisted.is_empty()
    }

    /// Whether all that they read was listed, or cannot be: whoever is called before has nothing to
    /// judge by.
    pub fn listed(&self) -> Check {
        let unlisted = Arc::clone(&self.unlisted);
        Check::new(move || {
            let kinds: Vec<String> = unlisted.iter().filter_map(|kind| kind()).collect();
            async move {
                match kinds.is_empty() {
                    true => Ok(()),
                    false => Err(format!("{} is not listed yet", kinds.join(", "))),
                }
            }
        })
    }

    /// Answers whoever [asks](ask) whether webhooks are reached.
    pub(crate) fn reached(self) -> Self {
        Webhooks { reach: Some(reach::webhook()), ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.admission.is_empty() && self.conversions.is_empty()
    }

    /// How the server is to call them.
    pub fn registrations(&self) -> impl Iterator<Item = &Registration> {
        self.admission.values().map(|webhook| &webhook.registration).chain(&self.converted)
    }

    /// Answers a request as a server of webhooks would.
    pub async fn answer<B>(&self, request: http::Request<B>, metrics: &Metrics) -> HttpAnswer
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>>,
    {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        if let Some(webhook) = self.reach.as_ref().filter(|it| it.registration.path == path) {
            return self.review(webhook, &parts.headers, body, metrics).await;
        }
        let webhook = self.admission.get(path);
        let is_conversion = path == CONVERT_PATH && !self.conversions.is_empty();
        if webhook.is_none() && !is_conversion {
            return serve::not_found();
        }
        let (started, _in_flight) = (tokio::time::Instant::now(), metrics.begin(path));
        let answer = match webhook {
            Some(webhook) => self.review(webhook, &parts.headers, body, metrics).await,
            None => convert(&self.conversions, body, metrics).await,
        };
        metrics.end(path, answer.status().as_u16(), started.elapsed());
        answer
    }

    /// Answers a review. Whatever is wrong with it is said in the answer, which always is a 200.
    async fn review<B>(
        &self,
        webhook: &Webhook,
        headers: &HeaderMap,
        body: B,
        metrics: &Metrics,
    ) -> HttpAnswer
    where
        B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>>,
    {
        let (api_version, mut review) = match read(headers, body).await {
            Ok(read) => read,
            Err(denied) => {
                warn!(path = webhook.registration.path, error = %denied, "review not understood");
                return serve::json(StatusCode::OK, &Response::unreadable(&denied));
            }
        };
        review.serve(self.client.clone(), self.informers.clone());
        let answering = async { webhook.handler.answer(&review).await };
        let response = AssertUnwindSafe(answering).catch_unwind().await.unwrap_or_else(|panic| {
            metrics.panics.inc();
            let panic = told(&*panic);
            error!(path = webhook.registration.path, panic, uid = review.uid, "webhook panicked");
            Response::denied(Denied::internal(format!("panic: {panic} [recovered]")))
        });
        let answer = response.into_review(&api_version, &review);
        debug!(
            path = webhook.registration.path,
            uid = review.uid,
            user = review.user_info.username.as_deref(),
            namespace = review.namespace,
            name = review.name,
            allowed = %answer["response"]["allowed"],
            "review answered",
        );
        serve::json(StatusCode::OK, &answer)
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        let convert = (!self.conversions.is_empty()).then_some(CONVERT_PATH);
        self.admission.keys().map(String::as_str).chain(convert)
    }
}

/// The version of a review, and what it asks.
async fn read<B>(headers: &HeaderMap, body: B) -> Result<(String, Review), Denied>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>>,
{
    let body = collect(body, REVIEW_BYTES_MAX).await.map_err(|error| match error {
        Uncollected::TooLarge => {
            let message = format!("request entity is too large; limit is {REVIEW_BYTES_MAX} bytes");
            Denied::bad_request(message).with_code(413, "")
        }
        Uncollected::Broken(error) => Denied::bad_request(chain(&*error)),
    })?;
    if body.is_empty() {
        return Err(Denied::bad_request("request body is empty"));
    }
    let media_type = headers.get(header::CONTENT_TYPE).map_or("", |it| it.to_str().unwrap_or("?"));
    if media_type != "application/json" {
        let message = format!("contentType={media_type}, expected application/json");
        return Err(Denied::bad_request(message));
    }
    let unreadable = |error: serde_json::Error| Denied::bad_request(error.to_string());
    let mut review: Value = serde_json::from_slice(&body).map_err(unreadable)?;
    let text = |name: &str| review.get(name).and_then(Value::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion").to_owned(), text("kind"));
    let api_version = match (api_version.as_str(), kind) {
        ("" | "admission.k8s.io/v1", "" | "AdmissionReview") => "admission.k8s.io/v1",
        ("admission.k8s.io/v1beta1", "AdmissionReview") => "admission.k8s.io/v1beta1",
        _ => {
            let message =
                format!("no kind {kind:?} is known in version {api_version:?}, only reviews");
            return Err(Denied::bad_request(message));
        }
    };
    let request = review.get_mut("request").map(Value::take).unwrap_or_default();
    if request.is_null() {
        return Err(Denied::bad_request("the review has no request"));
    }
    Ok((api_version.to_owned(), Review::deserialize(request).map_err(unreadable)?))
}

async fn convert<B>(conversions: &Conversions, body: B, metrics: &Metrics) -> HttpAnswer
where
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>>,
{
    let review = match collect(body, CONVERSION_BYTES_MAX).await {
        Ok(body) => serde_json::from_slice::<Value>(&body).map_err(|error| error.to_string()),
        Err(Uncollected::TooLarge) => return serve::text(StatusCode::PAYLOAD_TOO_LARGE, ""),
        Err(Uncollected::Broken(error)) => Err(chain(&*error)),
    };
    let review = match review {
        Ok(review) => review,
        Err(error) => {
            warn!(error, "conversion not understood");
            return serve::text(StatusCode::BAD_REQUEST, "");
        }
    };
    let answer = std::panic::catch_unwind(AssertUnwindSafe(|| conversions.answer(&review)));
    let answer = answer.unwrap_or_else(|panic| {
        metrics.conversion_panics.inc();
        error!(panic = told(&*panic), "conversion panicked");
        Some(conversion::broken(&review))
    });
    match answer {
        Some(answer) => {
            if let Some(error) = answer["response"]["result"]["message"].as_str() {
                warn!(error, "objects not converted");
            }
            serve::json(StatusCode::OK, &answer)
        }
        None => {
            warn!("conversion without a request");
            serve::text(StatusCode::BAD_REQUEST, "")
        }
    }
}

enum Uncollected {
    TooLarge,
    Broken(Box<dyn StdError + Send + Sync>),
}

/// A body of less than `limit` bytes.
async fn collect<B>(body: B, limit: usize) -> Result<Bytes, Uncollected>
where
    B: Body<Data = Bytes, Error: Into<Box<dyn StdError + Send + Sync>>>,
{
    let body = std::pin::pin!(Limited::new(body, limit - 1));
    match body.collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Uncollected::TooLarge),
        Err(error) => Err(Uncollected::Broken(error)),
    }
}

/// What a panic said.
fn told(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text")
}
