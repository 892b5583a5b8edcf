//! `/healthz`, `/livez`, `/readyz`: whether the server works, and whether it should be asked.
//!
//! Checks have upstream's names, where this server has what they check. Why one fails is told only
//! to those who may ask for that check by its own path: the summary is open to everybody.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use kubewright_apimachinery::json::go_quote;
use tokio_util::sync::CancellationToken;

use crate::document;
use crate::index::Store;
use crate::query::Query;

/// How far the server has come, and how it was whenever somebody asked.
#[derive(Debug)]
pub(crate) struct Health {
    has_begun: AtomicBool,
    tallies: [[Tally; CHECKS.len()]; ROOTS.len()],
}

impl Default for Health {
    fn default() -> Self {
        let tallies = std::array::from_fn(|_| std::array::from_fn(|_| Tally::default()));
        Health { has_begun: AtomicBool::new(false), tallies }
    }
}

/// What came of one check under one of the paths.
#[derive(Debug, Default)]
struct Tally {
    passed: AtomicU64,
    failed: AtomicU64,
    /// What came of the last one.
    is_well: AtomicBool,
}

/// What came of a check so far.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Record {
    pub(crate) check: &'static str,
    /// `healthz`, `livez` or `readyz`.
    pub(crate) root: &'static str,
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) is_well: bool,
}

/// What is looked at.
pub(crate) struct Scene<'a> {
    pub(crate) store: &'a Store,
    pub(crate) shutdown: &'a CancellationToken,
}

/// How long the storage may take to answer.
const STORAGE_MAX: Duration = Duration::from_secs(2);

#[derive(Debug, Clone, Copy)]
struct Check {
    name: &'static str,
    looks_at: Looks,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// Whoever answers is there.
    Nowhere,
    Storage,
    /// What the server does before it serves.
    Beginning,
    Shutdown,
}

/// Where the checks are summed up.
const ROOTS: [&str; 3] = ["healthz", "livez", "readyz"];

/// Everything that is asked under one of the paths, in upstream's order. What upstream does in the
/// background to fill its caches is done here once the store is open, so those checks look at the
/// beginning too.
const CHECKS: [Check; 33] = [
    check("ping", Looks::Nowhere),
    check("log", Looks::Nowhere),
    check("etcd", Looks::Storage),
    check("etcd-readiness", Looks::Storage),
    check("informer-sync", Looks::Beginning),
    check("poststarthook/start-apiserver-admission-initializer", Looks::Beginning),
    check("poststarthook/generic-apiserver-start-informers", Looks::Beginning),
    check("poststarthook/priority-and-fairness-config-consumer", Looks::Beginning),
    check("poststarthook/priority-and-fairness-filter", Looks::Beginning),
    check("poststarthook/start-apiextensions-informers", Looks::Beginning),
    check("poststarthook/start-apiextensions-controllers", Looks::Beginning),
    check("poststarthook/crd-informer-synced", Looks::Beginning),
    check("poststarthook/start-system-namespaces-controller", Looks::Beginning),
    check("poststarthook/start-cluster-authentication-info-controller", Looks::Beginning),
    check("poststarthook/start-kube-apiserver-identity-lease-controller", Looks::Beginning),
    check("poststarthook/storage-readiness", Looks::Storage),
    check("poststarthook/start-legacy-token-tracking-controller", Looks::Beginning),
    check("poststarthook/start-service-ip-repair-controllers", Looks::Beginning),
    check("poststarthook/rbac/bootstrap-roles", Looks::Beginning),
    check("poststarthook/scheduling/bootstrap-system-priority-classes", Looks::Beginning),
    check("poststarthook/priority-and-fairness-config-producer", Looks::Beginning),
    check("poststarthook/bootstrap-controller", Looks::Beginning),
    check("poststarthook/start-kubernetes-service-cidr-controller", Looks::Beginning),
    check("poststarthook/start-kube-aggregator-informers", Looks::Beginning),
    check("poststarthook/apiservice-status-local-available-controller", Looks::Beginning),
    check("poststarthook/apiservice-status-remote-available-controller", Looks::Beginning),
    check("poststarthook/apiservice-registration-controller", Looks::Beginning),
    check("poststarthook/apiservice-discovery-controller", Looks::Beginning),
    check("poststarthook/kube-apiserver-autoregistration", Looks::Beginning),
    check("autoregister-completion", Looks::Beginning),
    check("poststarthook/apiservice-openapi-controller", Looks::Beginning),
    check("poststarthook/apiservice-openapiv3-controller", Looks::Beginning),
    check("shutdown", Looks::Shutdown),
];

/// Only asked of whoever is to be sent requests.
const OF_READINESS: [&str; 3] = ["etcd-readiness", "informer-sync", "shutdown"];

const fn check(name: &'static str, looks_at: Looks) -> Check {
    Check { name, looks_at }
}

/// The paths of all summaries and all checks.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    ROOTS.into_iter().flat_map(|root| {
        let below = checks(root).map(move |check| format!("/{root}/{}", check.name));
        [format!("/{root}")].into_iter().chain(below)
    })
}

fn checks(root: &str) -> impl Iterator<Item = Check> {
    let is_ready = root == "readyz";
    CHECKS.into_iter().filter(move |check| is_ready || !OF_READINESS.contains(&check.name))
}

impl Health {
    /// The server has done what must be done before it serves.
    pub(crate) fn begun(&self) {
        self.has_begun.store(true, Ordering::Release);
    }

    /// Answers; `None` for other paths.
    pub(crate) async fn answer(
        &self,
        path: &str,
        query: &Query,
        scene: &Scene<'_>,
    ) -> Option<Response<Bytes>> {
        let path = path.strip_prefix('/')?;
        let (root, name) = match path.split_once('/') {
            Some((root, name)) => (root, Some(name)),
            None => (path, None),
        };
        let root = ROOTS.into_iter().find(|known| *known == root)?;
        let Some(name) = name else {
            return Some(self.summary(root, query, scene).await);
        };
        let check = checks(root).find(|check| check.name == name)?;
        Some(match self.ask(check.looks_at, scene).await {
            Ok(()) => document::respond(TEXT, "ok"),
            Err(why) => failed(format!("internal server error: {why}\n")),
        })
    }

    async fn summary(&self, root: &str, query: &Query, scene: &Scene<'_>) -> Response<Bytes> {
        let excluded: BTreeSet<&str> = query.all("exclude").collect();
        let mut unknown = excluded.clone();
        let mut text = String::new();
        let mut is_well = true;
        for check in checks(root) {
            let name = check.name;
            if excluded.contains(name) {
                unknown.remove(name);
                text.push_str(&format!("[+]{name} excluded: ok\n"));
                continue;
            }
            let answer = self.ask(check.looks_at, scene).await;
            self.note(root, name, answer.is_ok());
            match answer {
                Ok(()) => text.push_str(&format!("[+]{name} ok\n")),
                Err(why) => {
                    tracing::debug!(endpoint = root, check = name, why, "health check failed");
                    text.push_str(&format!("[-]{name} failed: reason withheld\n"));
                    is_well = false;
                }
            }
        }
        if !unknown.is_empty() {
            let unknown: Vec<String> = unknown.into_iter().map(go_quote).collect();
            text.push_str(&format!(
                "warn: some health checks cannot be excluded: no matches for {}\n",
                unknown.join(",")
            ));
        }
        if !is_well {
            return failed(format!("{text}{root} check failed\n"));
        }
        let body = match query.all("verbose").next() {
            Some(_) => format!("{text}{root} check passed\n"),
            None => "ok".to_owned(),
        };
        unsniffed(document::respond(TEXT, body))
    }

    /// What came of the checks that were made for a summary, in the order of their names.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for (root, tallies) in ROOTS.into_iter().zip(&self.tallies) {
            for (check, tally) in CHECKS.iter().zip(tallies) {
                records.push(Record {
                    check: check.name,
                    root,
                    passed: tally.passed.load(Ordering::Relaxed),
                    failed: tally.failed.load(Ordering::Relaxed),
                    is_well: tally.is_well.load(Ordering::Relaxed),
                });
            }
        }
        records.retain(|record| record.passed + record.failed > 0);
        records.sort();
        records
    }

    fn note(&self, root: &str, name: &str, is_well: bool) {
        let root = ROOTS.iter().position(|known| *known == root);
        let check = CHECKS.iter().position(|check| check.name == name);
        let (Some(root), Some(check)) = (root, check) else { return };
        let tally = &self.tallies[root][check];
        let count = if is_well { &tally.passed } else { &tally.failed };
        count.fetch_add(1, Ordering::Relaxed);
        tally.is_well.store(is_well, Ordering::Relaxed);
    }

    /// Whether the storage works.
    pub(crate) async fn storage(&self, scene: &Scene<'_>) -> Result<(), String> {
        self.ask(Looks::Storage, scene).await
    }

    async fn ask(&self, looks_at: Looks, scene: &Scene<'_>) -> Result<(), String> {
        match looks_at {
            Looks::Nowhere => Ok(()),
            Looks::Storage => match tokio::time::timeout(STORAGE_MAX, scene.store.latest()).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => Err(format!("the storage is unavailable: {error}")),
                Err(_) => Err("the storage did not answer in time".to_owned()),
            },
            Looks::Beginning if self.has_begun.load(Ordering::Acquire) => Ok(()),
            Looks::Beginning => Err("not finished".to_owned()),
            Looks::Shutdown if scene.shutdown.is_cancelled() => {
                Err("process is shutting down".to_owned())
            }
            Looks::Shutdown => Ok(()),
        }
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

fn failed(body: String) -> Response<Bytes> {
    let mut response = unsniffed(document::respond(TEXT, body));
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

fn unsniffed(mut response: Response<Bytes>) -> Response<Bytes> {
    response.headers_mut().insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
