//! `/metrics`: what the server did, counted under upstream's names.
//!
//! Whoever counts holds a handle on the counter, found once per request; to count is then a few
//! atomic additions. Everything else is done when somebody reads the page.

mod conversions;
mod flows;
mod histogram;
mod policies;
mod process;
mod requests;
mod slis;
mod steps;
#[cfg(test)]
mod tests;
mod text;
mod webhooks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http::header::{HeaderName, HeaderValue};
use kubewright_apimachinery::gvk::GroupVersionResource;
use kubewright_store::{Observed, Observer, Operation};

use self::histogram::{DECISION_SECONDS, EVENT_BYTES, LIFETIME_SECONDS, REQUEST_SECONDS};
use self::text::{Kind, Page};
use crate::admission::{self, Role};
use crate::aggregate::SERVICES;
use crate::audit;
use crate::authz::{Decision, Grant};
use crate::catalog::Catalog;
use crate::conditions;
use crate::document;
use crate::health::Health;
use crate::index::{self, Store};
use crate::resource::Resource;
use crate::user::User;
use crate::version;

pub(crate) use self::conversions::{Converted, Failure as ConversionFailure};
pub(crate) use self::flows::{Executing, Meter};
pub(crate) use self::histogram::Histogram;
pub(crate) use self::policies::{
    ConditionsTried, Enforcement, Failure as PolicyFailure, PolicyCheck,
};
pub(crate) use self::requests::{Route, Series};
pub(crate) use self::steps::Step;
pub(crate) use self::webhooks::WebhookCall;

/// Where the metrics are.
pub(crate) const PATH: &str = "/metrics";

pub(crate) use self::slis::PATH as SLIS_PATH;

/// All that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: requests::Requests,
    in_flight: InFlight,
    watches: RwLock<BTreeMap<[String; 3], Arc<Histogram>>>,
    writes: RwLock<HashMap<Box<str>, Arc<[Writes; 3]>>>,
    authentication: [Histogram; 2],
    /// By [`USERNAMES`].
    users: [AtomicU64; USERNAMES.len()],
    authorization: [Histogram; 2],
    rbac_allowed: AtomicU64,
    node_allowed: AtomicU64,
    /// How long the certificates are good for by which clients are identified.
    certificates: Histogram,
    flows: flows::Meters,
    admission: steps::Steps,
    webhooks: webhooks::Webhooks,
    policies: policies::Policies,
    conversions: conversions::Conversions,
    /// By name and reason.
    lost_services: RwLock<BTreeMap<[String; 2], u64>>,
    /// By group and resource.
    lists: RwLock<BTreeMap<[String; 2], Arc<Lists>>>,
    /// Group, resource, subresource and version of what was asked for though it is deprecated.
    deprecated: RwLock<BTreeSet<[String; 4]>>,
}

/// How many requests are being answered, of those that do not last.
#[derive(Debug, Default)]
struct InFlight {
    mutating: AtomicI64,
    read_only: AtomicI64,
}

/// Writes of one kind to one resource.
#[derive(Debug)]
struct Writes {
    duration: Histogram,
    errors: AtomicU64,
}

/// Lists of one resource.
#[derive(Debug, Default)]
struct Lists {
    count: AtomicU64,
    fetched: AtomicU64,
    returned: AtomicU64,
}

/// What a server has, besides what it counts.
pub(crate) struct Scene<'a> {
    pub(crate) store: &'a Store,
    pub(crate) catalog: &'a Catalog,
    pub(crate) audit: Option<&'a audit::Log>,
    pub(crate) version: &'a str,
}

/// A request that is being answered; counted until dropped.
pub(crate) struct UnderWay {
    metrics: Arc<Metrics>,
    is_mutating: bool,
}

/// Users that are told apart; the rest are other.
const USERNAMES: [&str; 7] = [
    "admin",
    "client",
    "email_id",
    "kube_proxy",
    "kubelet",
    "other",
    "system:serviceaccount:kube-system:default",
];

const OPERATIONS: [&str; 3] = ["create", "delete", "update"];

impl Default for Metrics {
    fn default() -> Self {
        let decisions = || [(); 2].map(|()| Histogram::new(&DECISION_SECONDS));
        Metrics {
            requests: Default::default(),
            in_flight: InFlight::default(),
            watches: RwLock::default(),
            writes: RwLock::default(),
            authentication: decisions(),
            users: Default::default(),
            authorization: decisions(),
            rbac_allowed: AtomicU64::default(),
            node_allowed: AtomicU64::default(),
            certificates: Histogram::new(&LIFETIME_SECONDS),
            flows: flows::Meters::default(),
            admission: steps::Steps::default(),
            webhooks: webhooks::Webhooks::default(),
            policies: policies::Policies::default(),
            conversions: conversions::Conversions::default(),
            lost_services: RwLock::default(),
            lists: RwLock::default(),
            deprecated: RwLock::default(),
        }
    }
}

impl Metrics {
    /// Where requests about this are counted.
    pub(crate) fn series(&self, route: &Route<'_>) -> Arc<Series> {
        self.requests.series(route)
    }

    /// A request that does not last is being answered.
    pub(crate) fn under_way(self: &Arc<Self>, is_mutating: bool) -> UnderWay {
        self.in_flight.of(is_mutating).fetch_add(1, Relaxed);
        UnderWay { metrics: Arc::clone(self), is_mutating }
    }

    /// Somebody was identified, or not.
    pub(crate) fn authenticated(&self, user: Option<&User>, elapsed: Duration) {
        self.authentication[usize::from(user.is_some())].observe_time(elapsed);
        let Some(user) = user else { return };
        let name = match user.name.as_str() {
            name if name.contains('@') => "email_id",
            name => name,
        };
        let at = USERNAMES.binary_search(&name).ok();
        let other = || USERNAMES.iter().position(|name| *name == "other");
        self.users[at.or_else(other).unwrap_or_default()].fetch_add(1, Relaxed);
    }

    /// It was decided whether somebody may make a request.
    pub(crate) fn authorized(&self, decision: &Decision, elapsed: Duration) {
        let allowed = matches!(decision, Decision::Allowed(_));
        self.authorization[usize::from(!allowed)].observe_time(elapsed);
        match decision {
            Decision::Allowed(Grant::Rule { .. }) => self.rbac_allowed.fetch_add(1, Relaxed),
            Decision::Allowed(Grant::Node) => self.node_allowed.fetch_add(1, Relaxed),
            _ => 0,
        };
    }

    /// Somebody was identified by a certificate that is good for so long.
    pub(crate) fn certified(&self, lifetime: Duration) {
        self.certificates.observe(lifetime.as_secs());
    }

    /// Where requests are counted that belong to a flow.
    pub(crate) fn flow(&self, schema: &str, level: &str) -> Arc<Meter> {
        self.flows.of(schema, level)
    }

    /// A step of admission has ended.
    pub(crate) fn admitted(
        &self,
        step: Step,
        operation: admission::Operation,
        is_rejected: bool,
        elapsed: Duration,
    ) {
        self.admission.took(step, operation, is_rejected, elapsed);
    }

    /// A webhook was asked.
    pub(crate) fn asked_webhook(&self, call: &WebhookCall<'_>) {
        self.webhooks.asked(call);
    }

    /// A webhook was not asked because of its conditions.
    pub(crate) fn excluded_webhook(&self, name: &str, role: Role, operation: admission::Operation) {
        self.policies.excluded(name, role, operation);
    }

    /// Conditions do not hold, or failed.
    pub(crate) fn tried_conditions(&self, tried: &ConditionsTried<'_>) {
        self.policies.tried(tried);
    }

    /// A policy judged, and something came of it.
    pub(crate) fn judged_by_policy(&self, check: &PolicyCheck<'_>, enforcement: Enforcement) {
        self.policies.judged(check, enforcement);
    }

    /// A policy changed an object, or failed to.
    pub(crate) fn changed_by_policy(&self, check: &PolicyCheck<'_>) {
        self.policies.changed(check);
    }

    /// A webhook was asked for other versions of objects.
    pub(crate) fn converted(&self, conversion: &Converted<'_>) {
        self.conversions.converted(conversion);
    }

    /// The server of an APIService was there, and is not any more.
    pub(crate) fn lost_service(&self, name: &str, reason: &str) {
        let mut lost = self.lost_services.write().unwrap_or_else(PoisonError::into_inner);
        *lost.entry([name, reason].map(str::to_owned)).or_default() += 1;
    }

    /// A list was answered for which so many objects were looked at.
    pub(crate) fn listed(&self, gvr: &GroupVersionResource, fetched: usize, returned: usize) {
        let key = [gvr.group.clone(), gvr.resource.clone()];
        let found = self.lists.read().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
        let lists = found.unwrap_or_else(|| {
            let mut lists = self.lists.write().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(lists.entry(key).or_default())
        });
        lists.count.fetch_add(1, Relaxed);
        lists.fetched.fetch_add(fetched as u64, Relaxed);
        lists.returned.fetch_add(returned as u64, Relaxed);
    }

    /// Something was asked for that is deprecated.
    pub(crate) fn deprecated(&self, gvr: &GroupVersionResource, part: &str) {
        let key = [gvr.group.as_str(), &gvr.resource, part, &gvr.version].map(str::to_owned);
        let known = self.deprecated.read().unwrap_or_else(PoisonError::into_inner).contains(&key);
        if !known {
            self.deprecated.write().unwrap_or_else(PoisonError::into_inner).insert(key);
        }
    }

    /// Where the sizes of events are counted that watches of this resource are sent.
    pub(crate) fn watch(&self, gvr: &GroupVersionResource) -> Arc<Histogram> {
        let key = [gvr.group.clone(), gvr.resource.clone(), gvr.version.clone()];
        let mut watches = self.watches.write().unwrap_or_else(PoisonError::into_inner);
        let new = || Arc::new(Histogram::new(&EVENT_BYTES));
        Arc::clone(watches.entry(key).or_insert_with(new))
    }

    /// The page.
    pub(crate) fn answer(&self, scene: &Scene<'_>) -> Response<Bytes> {
        respond(self.page(scene))
    }

    /// Families in the order of their names, as upstream has them.
    fn page(&self, scene: &Scene<'_>) -> String {
        let mut page = Page::default();
        let requests = self.requests.sorted();
        self.write_services(&mut page, scene.store);
        self.policies.write_conditions(&mut page);
        self.admission.write(&mut page);
        self.webhooks.write(&mut page);
        write_audit(&mut page, scene.audit);
        self.write_decisions(&mut page);
        self.write_lists(&mut page);
        self.write_certificates(&mut page);
        self.conversions.write(&mut page);
        self.write_in_flight(&mut page);
        self.flows.write(&mut page);
        requests::write_long_running(&mut page, &requests);
        self.policies.write_changes(&mut page);
        requests::write_durations(&mut page, &requests);
        requests::write_terminations(&mut page, &requests);
        requests::write_totals(&mut page, &requests);
        self.write_deprecated(&mut page);
        let objects = Objects::count(scene);
        objects.write_resources(&mut page);
        requests::write_sizes(&mut page, &requests);
        objects.write_storage(&mut page);
        self.policies.write_judgements(&mut page);
        self.write_cache(&mut page, &objects, scene.store.revision().get());
        self.write_watches(&mut page);
        self.write_authentication(&mut page);
        self.write_authorization(&mut page);
        self.write_writes(&mut page, &objects);
        write_build(&mut page, scene.version);
        process::write(&mut page);
        write_version(&mut page, scene.version);
        page.finish()
    }

    /// Whether what other servers register can be reached.
    fn write_services(&self, page: &mut Page, store: &Store) {
        page.family(
            "aggregator_unavailable_apiservice",
            Kind::Gauge,
            "[ALPHA] Gauge of APIServices which are marked as unavailable broken down by APIService \
             name.",
        );
        for rev in store.snapshot().range(SERVICES, None, None).iter() {
            let Some(service) = index::object(rev) else { continue };
            let is_available = conditions::is_true(&service["status"], "Available");
            let name = rev.key.as_str().strip_prefix(SERVICES).unwrap_or_default();
            page.sample(&[("name", name)], f64::from(u8::from(!is_available)));
        }
        page.family(
            "aggregator_unavailable_apiservice_total",
            Kind::Counter,
            "[ALPHA] Counter of APIServices which are marked as unavailable broken down by \
             APIService name and reason.",
        );
        let lost = self.lost_services.read().unwrap_or_else(PoisonError::into_inner);
        for ([name, reason], count) in &*lost {
            page.sample(&[("name", name), ("reason", reason)], *count as f64);
        }
    }

    fn write_decisions(&self, page: &mut Page) {
        page.family(
            "apiserver_authorization_decisions_total",
            Kind::Counter,
            "[ALPHA] Total number of terminal decisions made by an authorizer split by authorizer \
             type, name, and decision.",
        );
        let by_mode = [("node", "Node", &self.node_allowed), ("rbac", "RBAC", &self.rbac_allowed)];
        for (name, mode, allowed) in by_mode {
            let allowed = allowed.load(Relaxed);
            if allowed > 0 {
                let labels = [("decision", "allowed"), ("name", name), ("type", mode)];
                page.sample(&labels, allowed as f64);
            }
        }
    }

    fn write_in_flight(&self, page: &mut Page) {
        page.family(
            "apiserver_current_inflight_requests",
            Kind::Gauge,
            "[STABLE] Maximal number of currently used inflight request limit of this apiserver \
             per request kind in last second.",
        );
        for (kind, is_mutating) in [("mutating", true), ("readOnly", false)] {
            let count = self.in_flight.of(is_mutating).load(Relaxed);
            page.sample(&[("request_kind", kind)], count as f64);
        }
        page.family(
            "apiserver_current_inqueue_requests",
            Kind::Gauge,
            "[ALPHA] Maximal number of queued requests in this apiserver per request kind in last \
             second.",
        );
        for kind in ["mutating", "readOnly"] {
            // Who cannot be answered at once is told so.
            page.sample(&[("request_kind", kind)], 0.0);
        }
    }

    /// Lists are answered from memory, as upstream does from its cache.
    fn write_lists(&self, page: &mut Page) {
        let lists = self.lists.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = |name, help, index: bool, value: fn(&Lists) -> &AtomicU64| {
            page.family(name, Kind::Counter, help);
            for ([group, resource], lists) in lists.iter() {
                let value = value(lists).load(Relaxed) as f64;
                let (group, resource) =
                    (("group", group.as_str()), ("resource", resource.as_str()));
                match index {
                    // No index is ever used.
                    true => page.sample(&[group, ("index", ""), resource], value),
                    false => page.sample(&[group, resource], value),
                }
            }
        };
        all(
            "apiserver_cache_list_fetched_objects_total",
            "[ALPHA] Number of objects read from watch cache in the course of serving a LIST \
             request",
            true,
            |lists| &lists.fetched,
        );
        all(
            "apiserver_cache_list_returned_objects_total",
            "[ALPHA] Number of objects returned for a LIST request from watch cache",
            false,
            |lists| &lists.returned,
        );
        all(
            "apiserver_cache_list_total",
            "[ALPHA] Number of LIST requests served from watch cache",
            true,
            |lists| &lists.count,
        );
    }

    fn write_certificates(&self, page: &mut Page) {
        page.family(
            "apiserver_client_certificate_expiration_seconds",
            Kind::Histogram,
            "[ALPHA] Distribution of the remaining lifetime on the certificate used to \
             authenticate a request.",
        );
        page.histogram(&[], &self.certificates);
    }

    fn write_deprecated(&self, page: &mut Page) {
        page.family(
            "apiserver_requested_deprecated_apis",
            Kind::Gauge,
            "[STABLE] Gauge of deprecated APIs that have been requested, broken out by API group, \
             version, resource, subresource, and removed_release.",
        );
        let deprecated = self.deprecated.read().unwrap_or_else(PoisonError::into_inner);
        for [group, resource, part, version] in deprecated.iter() {
            let labels = [
                ("group", group.as_str()),
                // No release is known to remove any of them.
                ("removed_release", ""),
                ("resource", resource),
                ("subresource", part),
                ("version", version),
            ];
            page.sample(&labels, 1.0);
        }
    }

    /// What is in memory, under the names of upstream's cache: every resource is in it, up to the
    /// same revision.
    fn write_cache(&self, page: &mut Page, objects: &Objects, revision: i64) {
        let writes = self.writes.read().unwrap_or_else(PoisonError::into_inner);
        let watches = self.watches.read().unwrap_or_else(PoisonError::into_inner);
        let mut all = |name, kind, help, value: &dyn Fn(&Row) -> u64| {
            page.family(name, kind, help);
            for row in &objects.0 {
                let value = value(row);
                if value > 0 {
                    let labels = [("group", row.group.as_str()), ("resource", &row.resource)];
                    page.sample(&labels, value as f64);
                }
            }
        };
        let dispatched = |row: &Row| {
            let of_row = watches.iter().filter(|([group, resource, _], _)| {
                *group == row.group && *resource == row.resource
            });
            of_row.map(|(_, sizes)| sizes.count()).sum()
        };
        let received = |row: &Row| {
            let Some(writes) = writes.get(row.prefix.as_str()) else { return 0 };
            let done = |writes: &Writes| {
                writes.duration.count().saturating_sub(writes.errors.load(Relaxed))
            };
            writes.iter().map(done).sum()
        };
        all(
            "apiserver_watch_cache_events_dispatched_total",
            Kind::Counter,
            "[ALPHA] Counter of events dispatched in watch cache broken by resource type.",
            &dispatched,
        );
        all(
            "apiserver_watch_cache_events_received_total",
            Kind::Counter,
            "[ALPHA] Counter of events received in watch cache broken by resource type.",
            &received,
        );
        all(
            "apiserver_watch_cache_resource_version",
            Kind::Gauge,
            "[ALPHA] Current resource version of watch cache broken by resource type. This is \
             truncated to the 15 least significant digits.",
            &|_| revision.unsigned_abs() % 1_000_000_000_000_000,
        );
    }

    fn write_watches(&self, page: &mut Page) {
        let watches = self.watches.read().unwrap_or_else(PoisonError::into_inner);
        let used = || watches.iter().filter(|(_, sizes)| sizes.count() > 0);
        let labels = |key: &[String; 3]| -> [(&'static str, String); 3] {
            let [group, resource, version] = key.clone();
            [("group", group), ("resource", resource), ("version", version)]
        };
        page.family(
            "apiserver_watch_events_sizes",
            Kind::Histogram,
            "[ALPHA] Watch event size distribution in bytes",
        );
        for (key, sizes) in used() {
            page.histogram(&labels(key).each_ref().map(|(n, v)| (*n, v.as_str())), sizes);
        }
        page.family(
            "apiserver_watch_events_total",
            Kind::Counter,
            "[ALPHA] Number of events sent in watch clients",
        );
        for (key, sizes) in used() {
            let labels = labels(key);
            page.sample(&labels.each_ref().map(|(n, v)| (*n, v.as_str())), sizes.count() as f64);
        }
    }

    fn write_authentication(&self, page: &mut Page) {
        page.family(
            "authenticated_user_requests",
            Kind::Counter,
            "[ALPHA] Counter of authenticated requests broken out by username.",
        );
        for (name, count) in USERNAMES.iter().zip(&self.users) {
            let count = count.load(Relaxed);
            if count > 0 {
                page.sample(&[("username", name)], count as f64);
            }
        }
        let results: Vec<_> = ["error", "success"].into_iter().zip(&self.authentication).collect();
        page.family(
            "authentication_attempts",
            Kind::Counter,
            "[ALPHA] Counter of authenticated attempts.",
        );
        write_attempts(page, &results);
        page.family(
            "authentication_duration_seconds",
            Kind::Histogram,
            "[ALPHA] Authentication duration in seconds broken out by result.",
        );
        write_attempt_durations(page, &results);
    }

    fn write_authorization(&self, page: &mut Page) {
        let results: Vec<_> =
            ["allowed", "no-opinion"].into_iter().zip(&self.authorization).collect();
        page.family(
            "authorization_attempts_total",
            Kind::Counter,
            "[ALPHA] Counter of authorization attempts broken down by result. It can be either \
             'allowed', 'denied', 'no-opinion' or 'error'.",
        );
        write_attempts(page, &results);
        page.family(
            "authorization_duration_seconds",
            Kind::Histogram,
            "[ALPHA] Authorization duration in seconds broken out by result.",
        );
        write_attempt_durations(page, &results);
    }

    /// Writes to the storage, under the names that upstream has for requests to etcd, whatever the
    /// storage is: dashboards ask for these.
    fn write_writes(&self, page: &mut Page, objects: &Objects) {
        let writes = self.writes.read().unwrap_or_else(PoisonError::into_inner);
        let mut rows = Vec::new();
        for row in &objects.0 {
            let Some(writes) = writes.get(row.prefix.as_str()) else { continue };
            for (at, operation) in OPERATIONS.into_iter().enumerate() {
                let labels = [
                    ("group", row.group.as_str()),
                    ("operation", operation),
                    ("resource", row.resource.as_str()),
                ];
                rows.push((labels, Arc::clone(writes), at));
            }
        }
        rows.retain(|(_, writes, at)| writes[*at].duration.count() > 0);
        rows.sort_by_key(|(name, ..)| *name);
        page.family(
            "etcd_request_duration_seconds",
            Kind::Histogram,
            "[ALPHA] Etcd request latency in seconds for each operation and object type.",
        );
        for (labels, writes, at) in &rows {
            page.histogram(labels, &writes[*at].duration);
        }
        page.family(
            "etcd_request_errors_total",
            Kind::Counter,
            "[ALPHA] Etcd failed request counts for each operation and object type.",
        );
        for (labels, writes, at) in &rows {
            let errors = writes[*at].errors.load(Relaxed);
            if errors > 0 {
                page.sample(labels, errors as f64);
            }
        }
        page.family(
            "etcd_requests_total",
            Kind::Counter,
            "[ALPHA] Etcd request counts for each operation and object type.",
        );
        for (labels, writes, at) in &rows {
            page.sample(labels, writes[*at].duration.count() as f64);
        }
    }
}

/// The page about the health of the server.
pub(crate) fn answer_slis(health: &Health) -> Response<Bytes> {
    respond(slis::page(&health.records(), process::start_seconds()))
}

fn respond(page: String) -> Response<Bytes> {
    let mut response = document::respond(text::MEDIA_TYPE, page);
    if let Some(seconds) = process::start_seconds() {
        let name = HeaderName::from_static("process-start-time-unix");
        response.headers_mut().insert(name, HeaderValue::from(seconds as u64));
    }
    response
}

/// The store tells how long its writes take.
impl Observer for Metrics {
    fn wrote(&self, write: &Observed<'_>) {
        let resource = index::resource_of(write.key.as_str());
        let found = {
            let writes = self.writes.read().unwrap_or_else(PoisonError::into_inner);
            writes.get(resource).cloned()
        };
        let writes = found.unwrap_or_else(|| {
            let mut writes = self.writes.write().unwrap_or_else(PoisonError::into_inner);
            let new = || Arc::new([(); 3].map(|()| Writes::default()));
            Arc::clone(writes.entry(resource.into()).or_insert_with(new))
        });
        let writes = &writes[match write.operation {
            Operation::Create => 0,
            Operation::Delete => 1,
            Operation::Update => 2,
        }];
        writes.duration.observe_time(write.elapsed);
        if write.failed {
            writes.errors.fetch_add(1, Relaxed);
        }
    }
}

impl Default for Writes {
    fn default() -> Self {
        let duration = Histogram::new(&REQUEST_SECONDS);
        Writes { duration, errors: AtomicU64::default() }
    }
}

impl InFlight {
    fn of(&self, is_mutating: bool) -> &AtomicI64 {
        match is_mutating {
            true => &self.mutating,
            false => &self.read_only,
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.metrics.in_flight.of(self.is_mutating).fetch_sub(1, Relaxed);
    }
}

/// How many objects there are of each resource, in the order of groups and names.
struct Objects(Vec<Row>);

struct Row {
    group: String,
    resource: String,
    prefix: String,
    count: usize,
    bytes: usize,
}

impl Objects {
    fn count(scene: &Scene<'_>) -> Self {
        let snapshot = scene.store.snapshot();
        // A resource is kept once, however many versions it has.
        let mut rows = BTreeMap::new();
        let mut add = |resource: &Resource| {
            let name = (resource.gvr.group.clone(), resource.gvr.resource.clone());
            if resource.has_verb("get") {
                rows.entry(name).or_insert_with(|| resource.prefix.clone());
            }
        };
        Catalog::builtin().for_each(|resource| add(resource));
        scene.catalog.custom().for_each(|resource| add(resource));
        let row = |((group, resource), prefix): ((String, String), String)| {
            let range = snapshot.range(&prefix, None, None);
            let bytes = range.iter().map(|rev| rev.value.len()).sum();
            Row { group, resource, count: snapshot.count(&prefix), bytes, prefix }
        };
        Objects(rows.into_iter().map(row).collect())
    }

    fn write_resources(&self, page: &mut Page) {
        let labels =
            |row: &'_ Row| [("group", row.group.clone()), ("resource", row.resource.clone())];
        let mut all = |name, help, value: fn(&Row) -> usize| {
            page.family(name, Kind::Gauge, help);
            for row in &self.0 {
                let labels = labels(row);
                page.sample(&labels.each_ref().map(|(n, v)| (*n, v.as_str())), value(row) as f64);
            }
        };
        all(
            "apiserver_resource_objects",
            "[ALPHA] Number of stored objects at the time of last check split by kind. In case of \
             a fetching error, the value will be -1.",
            |row| row.count,
        );
        all(
            "apiserver_resource_size_estimate_bytes",
            "[ALPHA] Estimated size of stored objects in database. Estimate is based on sum of \
             last observed sizes of serialized objects. In case of a fetching error, the value \
             will be -1.",
            |row| row.bytes,
        );
    }

    fn write_storage(&self, page: &mut Page) {
        page.family(
            "apiserver_storage_objects",
            Kind::Gauge,
            "[STABLE] (Deprecated since 1.34.0) [DEPRECATED, consider using \
             apiserver_resource_objects instead] Number of stored objects at the time of last \
             check split by kind. In case of a fetching error, the value will be -1.",
        );
        let name = |row: &Row| match row.group.is_empty() {
            true => row.resource.clone(),
            false => format!("{}.{}", row.resource, row.group),
        };
        let mut rows: Vec<(String, usize)> =
            self.0.iter().map(|row| (name(row), row.count)).collect();
        rows.sort();
        for (name, count) in rows {
            page.sample(&[("resource", &name)], count as f64);
        }
    }
}

fn write_attempts(page: &mut Page, results: &[(&str, &Histogram)]) {
    for (result, attempts) in results.iter().filter(|(_, attempts)| attempts.count() > 0) {
        page.sample(&[("result", result)], attempts.count() as f64);
    }
}

fn write_attempt_durations(page: &mut Page, results: &[(&str, &Histogram)]) {
    for (result, attempts) in results.iter().filter(|(_, attempts)| attempts.count() > 0) {
        page.histogram(&[("result", result)], attempts);
    }
}

fn write_audit(page: &mut Page, log: Option<&audit::Log>) {
    let counts = log.map(audit::Log::counts).unwrap_or_default();
    let counter = Kind::Counter;
    page.family(
        "apiserver_audit_error_total",
        counter,
        "[ALPHA] Counter of audit events that failed to be audited properly. Plugin identifies \
         the plugin affected by the error.",
    );
    if counts.errors > 0 {
        page.sample(&[("plugin", "log")], counts.errors as f64);
    }
    page.family(
        "apiserver_audit_event_total",
        counter,
        "[ALPHA] Counter of audit events generated and sent to the audit backend.",
    );
    page.sample(&[], counts.events as f64);
    page.family(
        "apiserver_audit_level_total",
        counter,
        "[ALPHA] Counter of policy levels for audit events (1 per request).",
    );
    let levels: BTreeMap<&str, u64> =
        counts.levels.into_iter().map(|(level, count)| (level.as_str(), count)).collect();
    for (level, count) in levels.into_iter().filter(|(_, count)| *count > 0) {
        page.sample(&[("level", level)], count as f64);
    }
    page.family(
        "apiserver_audit_requests_rejected_total",
        counter,
        "[ALPHA] Counter of apiserver requests rejected due to an error in audit logging backend.",
    );
    // A log that cannot be written refuses nobody.
    page.sample(&[], 0.0);
}

fn write_build(page: &mut Page, reported: &str) {
    page.family(
        "kubernetes_build_info",
        Kind::Gauge,
        "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git \
         commit, git tree state, build date, Go version, and compiler from which Kubernetes was \
         built, and platform on which it is running.",
    );
    let version = version::version(reported);
    let text = |field: &str| version[field].as_str().unwrap_or_default();
    page.sample(
        &[
            ("build_date", text("buildDate")),
            ("compiler", text("compiler")),
            ("git_commit", text("gitCommit")),
            ("git_tree_state", text("gitTreeState")),
            ("git_version", text("gitVersion")),
            ("go_version", text("goVersion")),
            ("major", text("major")),
            ("minor", text("minor")),
            ("platform", text("platform")),
        ],
        1.0,
    );
}

fn write_version(page: &mut Page, reported: &str) {
    page.family(
        "version_info",
        Kind::Gauge,
        "[ALPHA] Provides the compatibility version info of the component. The component label is \
         the name of the component, usually kube, but is relevant for aggregated-apiservers.",
    );
    let version = version::version(reported);
    let text = |field: &str| version[field].as_str().unwrap_or_default();
    let emulation = format!("{}.{}", text("emulationMajor"), text("emulationMinor"));
    let least = format!("{}.{}", text("minCompatibilityMajor"), text("minCompatibilityMinor"));
    let binary = text("gitVersion").trim_start_matches('v').split('+').next().unwrap_or_default();
    page.sample(
        &[
            ("binary", binary),
            ("component", "kube"),
            ("emulation", &emulation),
            ("min_compat", &least),
        ],
        1.0,
    );
}
