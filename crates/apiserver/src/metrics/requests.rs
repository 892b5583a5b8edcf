//! Requests, counted by what they are about.
//!
//! Only what is served has a label: a resource that nobody defined, or a part that a resource does
//! not have, is not counted, so clients cannot make the page grow.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{Method, StatusCode};

use super::histogram::{Histogram, REQUEST_SECONDS, RESPONSE_BYTES};
use super::text::{Kind, Page};
use crate::query::Query;
use crate::target::{ResourceTarget, Verb};

/// What a request is about, as labels tell it. The fields are in the order of their labels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Route<'a> {
    component: &'static str,
    dry_run: &'static str,
    group: Cow<'a, str>,
    resource: Cow<'a, str>,
    scope: &'static str,
    subresource: Cow<'a, str>,
    verb: &'static str,
    version: Cow<'a, str>,
}

/// All requests about one thing.
#[derive(Debug)]
pub(crate) struct Series {
    route: Route<'static>,
    /// How many were answered with each of [`CODES`].
    codes: [AtomicU64; CODES.len()],
    duration: Histogram,
    /// Of answers to those who only read.
    sizes: Option<Histogram>,
    /// How many were given up before they were answered.
    terminations: AtomicU64,
    /// How many are open, of those that last.
    open: Option<AtomicI64>,
}

#[derive(Debug, Default)]
pub(super) struct Requests {
    series: RwLock<HashMap<Route<'static>, Arc<Series>>>,
}

/// The codes that are told apart; others count as the first of their hundred.
const CODES: [u16; 36] = [
    100, 101, 200, 201, 202, 203, 204, 206, 300, 301, 302, 304, 307, 400, 401, 403, 404, 405, 406,
    408, 409, 410, 411, 412, 413, 415, 422, 429, 431, 500, 501, 502, 503, 504, 505, 599,
];

const GROUP_VERSION_ROOTS: [&str; 2] = ["/api", "/apis"];

impl<'a> Route<'a> {
    /// A request about a resource that is served.
    pub(crate) fn resource(target: &'a ResourceTarget, parts: &Parts, query: &Query) -> Self {
        let scope = match target.verb {
            Verb::List | Verb::Watch | Verb::DeleteCollection => match &target.namespace {
                Some(_) => "namespace",
                None => "cluster",
            },
            _ => "resource",
        };
        let verb = verb(target, parts, query, scope);
        let is_write = matches!(verb, "APPLY" | "DELETE" | "PATCH" | "POST" | "PUT");
        Route {
            component: "apiserver",
            dry_run: if is_write { dry_run(query) } else { "" },
            group: Cow::Borrowed(&target.group),
            resource: Cow::Borrowed(&target.resource),
            scope,
            subresource: Cow::Borrowed(&target.subresource),
            verb,
            version: Cow::Borrowed(&target.version),
        }
    }

    /// A request for one of the few documents that upstream counts.
    pub(crate) fn document(method: &Method, path: &'a str) -> Option<Self> {
        let path = match path.strip_suffix('/') {
            Some(root) if GROUP_VERSION_ROOTS.contains(&root) => root,
            _ => path,
        };
        let (component, subresource) = match path {
            "/healthz" | "/livez" | "/readyz" => ("", path),
            "/api" | "/apis" => ("apiserver", &path[1..]),
            "/openapi/v3" => ("", "openapi/v3"),
            path if path.starts_with("/openapi/v3/") => ("", "openapi/v3/"),
            _ => return None,
        };
        Some(Route {
            component,
            dry_run: "",
            group: Cow::Borrowed(""),
            resource: Cow::Borrowed(""),
            scope: "",
            subresource: Cow::Borrowed(subresource),
            verb: match method.as_str() {
                "GET" | "HEAD" => "GET",
                "POST" => "POST",
                "PUT" => "PUT",
                "PATCH" => "PATCH",
                "DELETE" => "DELETE",
                "CONNECT" => "CONNECT",
                _ => "other",
            },
            version: Cow::Borrowed(""),
        })
    }

    fn owned(&self) -> Route<'static> {
        let own = |text: &Cow<'_, str>| Cow::Owned(text.clone().into_owned());
        Route {
            group: own(&self.group),
            resource: own(&self.resource),
            subresource: own(&self.subresource),
            version: own(&self.version),
            ..*self
        }
    }

    /// All labels but those that only some families have.
    fn labels(&self) -> [(&'static str, &str); 7] {
        [
            ("component", self.component),
            ("group", &self.group),
            ("resource", &self.resource),
            ("scope", self.scope),
            ("subresource", &self.subresource),
            ("verb", self.verb),
            ("version", &self.version),
        ]
    }

    fn labels_with_dry_run(&self) -> [(&'static str, &str); 8] {
        let [component, rest @ ..] = self.labels();
        let [group, resource, scope, subresource, verb, version] = rest;
        let dry_run = ("dry_run", self.dry_run);
        [component, dry_run, group, resource, scope, subresource, verb, version]
    }
}

impl Hash for Route<'_> {
    /// By what tells most of them apart: this is done for every request.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.resource.hash(state);
        self.verb.hash(state);
        self.subresource.hash(state);
    }
}

fn verb(target: &ResourceTarget, parts: &Parts, query: &Query, scope: &str) -> &'static str {
    if matches!(target.subresource.as_str(), "attach" | "exec" | "log" | "portforward" | "proxy") {
        return "CONNECT";
    }
    let asks_for_watch =
        parts.method == Method::GET && query.flag("watch").is_some_and(|watch| watch);
    match target.verb {
        Verb::Watch => "WATCH",
        Verb::Get | Verb::List if asks_for_watch => "WATCH",
        Verb::Get if scope == "resource" => "GET",
        Verb::Get | Verb::List => "LIST",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch => match parts.headers.get(CONTENT_TYPE).map(|value| value.as_bytes()) {
            Some(b"application/apply-patch+yaml") => "APPLY",
            _ => "PATCH",
        },
        Verb::Delete | Verb::DeleteCollection => "DELETE",
        Verb::Proxy => "PROXY",
        Verb::Other => "OTHER",
    }
}

fn dry_run(query: &Query) -> &'static str {
    let mut values = query.all("dryRun");
    let Some(first) = values.next() else { return "" };
    match first == "All" && values.all(|value| value == "All") {
        true => "All",
        false => "invalid",
    }
}

impl Series {
    fn new(route: Route<'static>) -> Self {
        let is_read = matches!(route.verb, "GET" | "LIST");
        let lasts = matches!(route.verb, "WATCH" | "CONNECT");
        Series {
            codes: [const { AtomicU64::new(0) }; CODES.len()],
            duration: Histogram::new(&REQUEST_SECONDS),
            sizes: is_read.then(|| Histogram::new(&RESPONSE_BYTES)),
            terminations: AtomicU64::default(),
            open: lasts.then(AtomicI64::default),
            route,
        }
    }

    /// A request begins.
    pub(crate) fn begin(&self) {
        if let Some(open) = &self.open {
            open.fetch_add(1, Relaxed);
        }
    }

    /// A request that began took too long, or nobody waits for it any more.
    pub(crate) fn terminate(&self, elapsed: Duration) {
        self.terminations.fetch_add(1, Relaxed);
        self.end(StatusCode::GATEWAY_TIMEOUT, elapsed, 0);
    }

    /// A request that began was answered, and the answer was sent.
    pub(crate) fn end(&self, code: StatusCode, elapsed: Duration, bytes: u64) {
        if let Some(open) = &self.open {
            open.fetch_sub(1, Relaxed);
        }
        let code = code.as_u16();
        let found = CODES.binary_search(&code);
        let at = found.or_else(|_| CODES.binary_search(&(code / 100 * 100))).unwrap_or_default();
        self.codes[at].fetch_add(1, Relaxed);
        self.duration.observe_time(elapsed);
        if let Some(sizes) = &self.sizes {
            sizes.observe(bytes);
        }
    }
}

impl Requests {
    /// Where requests about this are counted.
    pub(super) fn series(&self, route: &Route<'_>) -> Arc<Series> {
        let found = {
            let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
            // Labels that live for ever may be looked up by labels that do not.
            let series: &HashMap<Route<'_>, Arc<Series>> = &series;
            series.get(route).cloned()
        };
        found.unwrap_or_else(|| {
            let mut series = self.series.write().unwrap_or_else(PoisonError::into_inner);
            let route = route.owned();
            let new = || Arc::new(Series::new(route.clone()));
            Arc::clone(series.entry(route.clone()).or_insert_with(new))
        })
    }

    /// All series, in the order of their labels.
    pub(super) fn sorted(&self) -> Vec<Arc<Series>> {
        let series = self.series.read().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Arc<Series>> = series.values().cloned().collect();
        all.sort_by(|a, b| a.route.cmp(&b.route));
        all
    }
}

pub(super) fn write_long_running(page: &mut Page, all: &[Arc<Series>]) {
    page.family(
        "apiserver_longrunning_requests",
        Kind::Gauge,
        "[STABLE] Gauge of all active long-running apiserver requests broken out by verb, group, \
         version, resource, scope and component. Not all requests are tracked this way.",
    );
    for series in all {
        if let Some(open) = &series.open {
            page.sample(&series.route.labels(), open.load(Relaxed) as f64);
        }
    }
}

pub(super) fn write_durations(page: &mut Page, all: &[Arc<Series>]) {
    page.family(
        "apiserver_request_duration_seconds",
        Kind::Histogram,
        "[STABLE] Response latency distribution in seconds for each verb, dry run value, group, \
         version, resource, subresource, scope and component.",
    );
    for series in ended(all) {
        page.histogram(&series.route.labels_with_dry_run(), &series.duration);
    }
    page.family(
        "apiserver_request_sli_duration_seconds",
        Kind::Histogram,
        "[ALPHA] Response latency distribution (not counting webhook duration and priority & \
         fairness queue wait times) in seconds for each verb, group, version, resource, \
         subresource, scope and component.",
    );
    for series in ended(all).filter(|series| series.route.dry_run.is_empty()) {
        // Nobody waits in queues here; the buckets are the same from the third on.
        page.histogram_from(&series.route.labels(), &series.duration, 2);
    }
}

pub(super) fn write_terminations(page: &mut Page, all: &[Arc<Series>]) {
    page.family(
        "apiserver_request_terminations_total",
        Kind::Counter,
        "[ALPHA] Number of requests which apiserver terminated in self-defense.",
    );
    for series in all.iter().filter(|series| series.route.dry_run.is_empty()) {
        let count = series.terminations.load(Relaxed);
        if count > 0 {
            let route = series.route.labels();
            let labels: Vec<_> = [("code", "504")].into_iter().chain(route).collect();
            page.sample(&labels, count as f64);
        }
    }
}

pub(super) fn write_totals(page: &mut Page, all: &[Arc<Series>]) {
    page.family(
        "apiserver_request_total",
        Kind::Counter,
        "[STABLE] Counter of apiserver requests broken out for each verb, dry run value, group, \
         version, resource, scope, component, and HTTP response code.",
    );
    for (at, code) in CODES.iter().enumerate() {
        let code = code.to_string();
        for series in all {
            let count = series.codes[at].load(Relaxed);
            if count > 0 {
                let route = series.route.labels_with_dry_run();
                let labels: Vec<_> = [("code", code.as_str())].into_iter().chain(route).collect();
                page.sample(&labels, count as f64);
            }
        }
    }
}

pub(super) fn write_sizes(page: &mut Page, all: &[Arc<Series>]) {
    page.family(
        "apiserver_response_sizes",
        Kind::Histogram,
        "[STABLE] Response size distribution in bytes for each group, version, verb, resource, \
         subresource, scope and component.",
    );
    for series in ended(all) {
        if let Some(sizes) = &series.sizes {
            page.histogram(&series.route.labels(), sizes);
        }
    }
}

/// Those with a request that has ended: others have only begun to count.
fn ended(all: &[Arc<Series>]) -> impl Iterator<Item = &Arc<Series>> {
    all.iter().filter(|series| series.duration.count() > 0)
}
