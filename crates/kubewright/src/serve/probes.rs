//! Whether an operator is alive and ready, for those who may restart it or send it requests.
//!
//! `/healthz` and `/readyz` are `ok` or a 500 that says which of the named checks fail; each check
//! has its own page below, which says why. `?verbose` lists all, `?exclude=name` leaves one out.
//! Some are only told of: people should know, but nobody should be restarted or passed over for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::future::{BoxFuture, join_all};
use http::{Request, StatusCode};
use tokio_util::sync::CancellationToken;

use super::{Answer, Bind, Listener, not_found, text};

/// Where probes are answered unless said otherwise.
pub const BIND: Bind = Bind::Port(8081);

/// A question with an answer: nothing, or what is wrong.
#[derive(Clone)]
pub struct Check(Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>);

/// Checks by name.
#[derive(Clone, Default)]
pub struct Checks(BTreeMap<String, Named>);

#[derive(Clone)]
struct Named {
    check: Check,
    /// Whether all fails when this one does.
    counts: bool,
}

/// What is asked at `/healthz` and at `/readyz`.
#[derive(Clone, Default)]
pub struct Probes {
    /// Those whose failure only a restart can mend.
    pub health: Checks,
    pub readiness: Checks,
}

impl Check {
    pub fn new<F>(check: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        Check(Arc::new(move || Box::pin(check())))
    }

    pub async fn ask(&self) -> Result<(), String> {
        (self.0)().await
    }
}

impl Checks {
    /// Adds a check, or replaces the one of that name.
    pub fn add(&mut self, name: &str, check: Check) {
        self.0.insert(name.to_owned(), Named { check, counts: true });
    }

    /// The same for one that is told of and does not count: all is well though it fails.
    pub fn tell(&mut self, name: &str, check: Check) {
        self.0.insert(name.to_owned(), Named { check, counts: false });
    }

    /// What they say below `root`, asked for what follows it in the path.
    async fn answer(&self, rest: &str, query: &str) -> Answer {
        match rest.trim_matches('/') {
            "" => self.all(query).await,
            name => match self.0.get(name) {
                Some(named) => alone(named.check.ask().await),
                None if self.0.is_empty() && name == "ping" => alone(Ok(())),
                None => not_found(),
            },
        }
    }

    async fn all(&self, query: &str) -> Answer {
        let asked: Vec<_> = form_urlencoded::parse(query.as_bytes()).collect();
        let is_verbose = asked.iter().any(|(name, _)| name == "verbose");
        let excluded: BTreeSet<&str> =
            asked.iter().filter(|(name, _)| name == "exclude").map(|(_, it)| it.as_ref()).collect();
        let verdicts = join_all(self.0.iter().map(async |(name, Named { check, counts })| {
            let verdict = match excluded.contains(name.as_str()) {
                true => Verdict::Excluded,
                false if check.ask().await.is_ok() => Verdict::Passed,
                false if *counts => Verdict::Failed,
                false => Verdict::Told,
            };
            (name.as_str(), verdict)
        }));
        let mut verdicts = verdicts.await;
        if verdicts.is_empty() {
            verdicts.push(("ping", Verdict::Passed));
        }
        let unknown = excluded.iter().filter(|name| !self.0.contains_key(**name)).copied();
        report(&verdicts, &unknown.collect::<Vec<_>>(), is_verbose)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Passed,
    Excluded,
    /// It failed, and does not count.
    Told,
    Failed,
}

/// In the form that Kubernetes' own servers have. Reasons are left to the pages of the checks.
fn report(verdicts: &[(&str, Verdict)], unknown: &[&str], is_verbose: bool) -> Answer {
    let has_failed = verdicts.iter().any(|(_, verdict)| *verdict == Verdict::Failed);
    if !has_failed && !is_verbose {
        return text(StatusCode::OK, "ok");
    }
    let mut lines: Vec<String> = verdicts
        .iter()
        .map(|(name, verdict)| match verdict {
            Verdict::Passed => format!("[+]{name} ok\n"),
            Verdict::Excluded => format!("[+]{name} excluded: ok\n"),
            Verdict::Told => format!("[-]{name} failed, which does not count: reason withheld\n"),
            Verdict::Failed => format!("[-]{name} failed: reason withheld\n"),
        })
        .collect();
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.iter().map(|name| format!("{name:?}")).collect();
        lines.push(format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            names.join(", ")
        ));
    }
    let status = match has_failed {
        true => StatusCode::INTERNAL_SERVER_ERROR,
        false => StatusCode::OK,
    };
    let verdict = if has_failed { "failed" } else { "passed" };
    lines.push(format!("healthz check {verdict}\n"));
    text(status, lines.concat())
}

fn alone(verdict: Result<(), String>) -> Answer {
    match verdict {
        Ok(()) => text(StatusCode::OK, "ok"),
        Err(why) => {
            let text_of = format!("internal server error: {why}\n");
            text(StatusCode::INTERNAL_SERVER_ERROR, text_of)
        }
    }
}

impl Probes {
    /// Answers a request as a server of probes would.
    pub async fn answer<B>(&self, request: &Request<B>) -> Answer {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        for (root, checks) in [("/healthz", &self.health), ("/readyz", &self.readiness)] {
            match path.strip_prefix(root) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    return checks.answer(rest, query).await;
                }
                _ => {}
            }
        }
        not_found()
    }

    /// Answers there until `shutdown`.
    pub async fn run(self, listener: Listener, shutdown: CancellationToken) {
        let probes = Arc::new(self);
        let answer = move |request: Request<hyper::body::Incoming>| {
            let probes = Arc::clone(&probes);
            async move { probes.answer(&request).await }
        };
        listener.run(answer, shutdown).await;
    }
}
