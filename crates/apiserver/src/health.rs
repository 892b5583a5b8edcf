//! `/healthz`, `/livez`, `/readyz`: whether the server works, and whether it should be asked.
//!
//! Checks have upstream's names, where this server has what they check. Why one fails is told only
//! to those who may ask for that check by its own path: the summary is open to everybody.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{Response, StatusCode};
use kubewright_apimachinery::json::go_quote;
use tokio_util::sync::CancellationToken;

use crate::document;
use crate::index::Store;
use crate::query::Query;

/// How far the server has come.
#[derive(Debug, Default)]
pub(crate) struct Health {
    has_begun: AtomicBool,
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

/// Everything that is asked under one of the paths.
const CHECKS: [Check; 14] = [
    check("ping", Looks::Nowhere),
    check("log", Looks::Nowhere),
    check("etcd", Looks::Storage),
    check("etcd-readiness", Looks::Storage),
    check("poststarthook/priority-and-fairness-config-consumer", Looks::Beginning),
    check("poststarthook/start-apiextensions-controllers", Looks::Beginning),
    check("poststarthook/crd-informer-synced", Looks::Beginning),
    check("poststarthook/start-system-namespaces-controller", Looks::Beginning),
    check("poststarthook/start-service-ip-repair-controllers", Looks::Beginning),
    check("poststarthook/rbac/bootstrap-roles", Looks::Beginning),
    check("poststarthook/scheduling/bootstrap-system-priority-classes", Looks::Beginning),
    check("poststarthook/priority-and-fairness-config-producer", Looks::Beginning),
    check("poststarthook/bootstrap-controller", Looks::Beginning),
    check("shutdown", Looks::Shutdown),
];

/// Only asked of whoever is to be sent requests.
const OF_READINESS: [&str; 2] = ["etcd-readiness", "shutdown"];

const fn check(name: &'static str, looks_at: Looks) -> Check {
    Check { name, looks_at }
}

/// The paths of all summaries and all checks.
pub(crate) fn paths() -> impl Iterator<Item = String> {
    ["healthz", "livez", "readyz"].into_iter().flat_map(|root| {
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
        let root = ["healthz", "livez", "readyz"].into_iter().find(|known| *known == root)?;
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
            match self.ask(check.looks_at, scene).await {
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
