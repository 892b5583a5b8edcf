//! Runs scenarios against an endpoint and holds it to its list of expected failures.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::mem;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::endpoint::Endpoint;
use crate::scenario::{self, Context, Scenario};

/// No scenario needs as long, on any machine.
const SCENARIO_MAX: Duration = Duration::from_secs(120);

/// How an endpoint did.
#[derive(Debug, Default)]
pub struct Verdict {
    passed: usize,
    /// What failed, a line for each.
    failed: Vec<(Scenario, String)>,
    /// Failed as expected.
    skipped: usize,
}

impl Verdict {
    pub fn is_pass(&self) -> bool {
        self.failed.is_empty()
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed.len())?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        self.failed.iter().try_for_each(|(_, line)| write!(f, "\n{line}"))
    }
}

/// The scenarios that `target` is known to fail: one name per line, `#` for comments.
pub fn expected_failures(target: &str) -> Result<BTreeSet<String>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("expected").join(format!("{target}.txt"));
    let text = fs::read_to_string(&file)
        .with_context(|| format!("read the expected failures of {target}: {}", file.display()))?;
    let names = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let names: BTreeSet<String> =
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    let known: BTreeSet<&str> = scenario::every().iter().map(|scenario| scenario.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(name.as_str())) {
        bail!("{} names no scenario: {unknown}", file.display());
    }
    Ok(names)
}

/// How scenarios are run.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// So many at once.
    pub jobs: usize,
    /// What fails is run once more, alone; what fails twice is wrong. For servers on machines that
    /// are busy with other things.
    pub is_patient: bool,
}

/// Runs each of these scenarios that matches, a line for each. An expected failure that passes is a
/// failure: the list must be made shorter.
pub async fn run_these(
    endpoint: &Endpoint,
    scenarios: Vec<Scenario>,
    filter: Option<&str>,
    expected: &BTreeSet<String>,
    manner: Manner,
) -> Result<Verdict> {
    let chosen: Vec<Scenario> =
        scenarios.into_iter().filter(|scenario| scenario.matches(filter)).collect();
    if chosen.is_empty() {
        bail!("no scenario matches");
    }
    let (alone, together): (Vec<_>, Vec<_>) =
        chosen.into_iter().partition(|scenario| scenario.alone);
    let mut verdict = Verdict::default();
    verdict.hear(endpoint, together, expected, manner.jobs).await?;
    verdict.hear(endpoint, alone, expected, 1).await?;
    if manner.is_patient {
        let failed = mem::take(&mut verdict.failed);
        let again = failed.into_iter().map(|(scenario, _)| scenario).collect();
        verdict.hear(endpoint, again, expected, 1).await?;
    }
    Ok(verdict)
}

impl Verdict {
    /// Runs these scenarios, so many at a time.
    async fn hear(
        &mut self,
        endpoint: &Endpoint,
        scenarios: Vec<Scenario>,
        expected: &BTreeSet<String>,
        jobs: usize,
    ) -> Result<()> {
        let permits = Arc::new(Semaphore::new(jobs.max(1)));
        let mut running = JoinSet::new();
        for scenario in scenarios {
            let (endpoint, permits) = (endpoint.clone(), permits.clone());
            running.spawn(async move {
                let _permit = permits.acquire_owned().await.expect("nobody closes the semaphore");
                let started = Instant::now();
                let outcome = play(&endpoint, scenario).await;
                (scenario, outcome, started.elapsed())
            });
        }
        while let Some(joined) = running.join_next().await {
            let (scenario, outcome, took) = joined.context("a scenario's task broke")?;
            let Scenario { name, proves, .. } = scenario;
            let told = match (&outcome, expected.contains(name)) {
                (Ok(()), false) => "ok".to_owned(),
                (Err(_), true) => "fails as expected".to_owned(),
                (Ok(()), true) => {
                    "PASSES, but is listed as an expected failure: take it off the list".to_owned()
                }
                (Err(error), false) => format!("FAILED: {error:#}"),
            };
            let line = format!("{name} [{}] {} ms: {told}", proves.join(" "), took.as_millis());
            println!("{line}");
            match (outcome.is_ok(), expected.contains(name)) {
                (true, false) => self.passed += 1,
                (false, true) => self.skipped += 1,
                _ => self.failed.push((scenario, line)),
            }
        }
        Ok(())
    }
}

async fn play(endpoint: &Endpoint, scenario: Scenario) -> Result<()> {
    let context = Context::new(endpoint.clone()).await?;
    let place = context.clone();
    // A task of its own, so that a panic is this scenario's failure and no one else's.
    let mut task = JoinSet::new();
    task.spawn(async move { tokio::time::timeout(SCENARIO_MAX, (scenario.run)(context)).await });
    let outcome = match task.join_next().await.expect("one task was spawned") {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_)) => Err(anyhow!("not done after {SCENARIO_MAX:?}")),
        Err(_) => Err(anyhow!("panicked")),
    };
    place.leave().await?;
    outcome
}
