//! Plays cases against an endpoint and keeps what it answers, with the volatile parts made
//! constant, so that playing again on an unchanged server changes nothing.

mod equivalence;
mod fence;
mod place;

use std::fs;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::case::{self, Case, Clock, Seen, Step};
use crate::endpoint::{Answer, Endpoint};
use crate::scrub::Scrubber;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Write each recording beside its case.
    Write,
    /// Only compare with the recording that is there.
    Compare,
}

/// Plays the chosen cases of `dir`, printing a line for each; returns how many failed.
pub async fn run(
    endpoint: &Endpoint,
    dir: &Path,
    only: &[String],
    mode: Mode,
    jobs: usize,
) -> Result<usize> {
    let cases = case::load(dir, only)?;
    let total = cases.len();
    let fence = fence::Fence::new(endpoint);
    let mut outcomes = stream::iter(&cases)
        .map(|case| async { (&case.id, record(endpoint, &fence, case, mode).await) })
        .buffer_unordered(jobs.max(1));
    let mut failures = 0;
    while let Some((id, outcome)) = outcomes.next().await {
        match outcome {
            Ok(outcome) => println!("{id}: {outcome}"),
            Err(error) => {
                failures += 1;
                println!("{id}: FAILED: {error:#}");
            }
        }
    }
    drop(outcomes);
    fence.remove().await?;
    println!("{} recorded, {failures} failed", total - failures);
    Ok(failures)
}

async fn record(
    endpoint: &Endpoint,
    fence: &fence::Fence,
    case: &Case,
    mode: Mode,
) -> Result<&'static str> {
    place::clear(endpoint, case).await.context("clear the place")?;
    place::make(endpoint, case).await.context("make the namespace")?;
    let played = play(endpoint, fence, case).await;
    place::clear(endpoint, case).await.context("clear the place afterwards")?;

    let recording = played?;
    let file = case.recording_file();
    let before = fs::read_to_string(&file).unwrap_or_default();
    let before: Value = serde_json::from_str(&before).unwrap_or_default();
    match mode {
        _ if equivalence::same(&before, &recording) => Ok("unchanged"),
        Mode::Compare => bail!("differs: {}", equivalence::difference(&before, &recording)),
        Mode::Write => {
            let text = format!("{recording:#}\n");
            fs::write(&file, text).with_context(|| format!("write {}", file.display()))?;
            Ok("written")
        }
    }
}

async fn play(endpoint: &Endpoint, fence: &fence::Fence, case: &Case) -> Result<Value> {
    let mut scrubber = Scrubber::new(Timestamp::now(), case.clock);
    let mut seen = Seen { resource_version: String::new(), uid: String::new() };
    let mut steps = Vec::new();
    for (step, recorded_request) in case.steps.iter().zip(case.recorded_requests()) {
        let context = || format!("step {}: {} {}", steps.len() + 1, step.method, step.path);
        if case.clock == Clock::Steps {
            next_second().await;
        }
        scrubber.step_sent(Timestamp::now());
        let step = step.with(&seen);
        let answer = endpoint.send(&step.to_request()?).await.with_context(context)?;
        fence::settle(endpoint, fence, &step, &answer).await.with_context(context)?;
        if let Ok(object) = answer.json() {
            learn(&object, &mut seen);
        }
        steps.push(json!({
            "request": recorded_request,
            "answer": recorded_answer(&step, &answer, &mut scrubber),
        }));
    }
    Ok(json!({ "about": case.about, "steps": steps }))
}

/// Waits until the wall clock shows a second not seen before.
async fn next_second() {
    let now = Timestamp::now();
    let millis = 1_000 - now.as_millisecond().rem_euclid(1_000);
    tokio::time::sleep(Duration::from_millis(millis.unsigned_abs())).await;
}

fn learn(object: &Value, seen: &mut Seen) {
    // Collections and statuses have no uid; their versions are not an object's.
    let metadata = |key: &str| object["metadata"][key].as_str().map(str::to_owned);
    if let (Some(uid), Some(resource_version)) = (metadata("uid"), metadata("resourceVersion")) {
        *seen = Seen { resource_version, uid };
    }
}

fn recorded_answer(step: &Step, answer: &Answer, scrubber: &mut Scrubber) -> Value {
    let mut recorded = json!({ "status": answer.status, "warnings": answer.warnings() });
    let media_type = answer.content_type();
    if media_type != "application/json" {
        recorded["type"] = media_type.into();
    }
    let text = match std::str::from_utf8(&answer.bytes) {
        Ok(text) => text,
        Err(_) => {
            recorded["base64"] = BASE64.encode(&answer.bytes).into();
            return recorded;
        }
    };
    if step.is_watch() && answer.is_success() {
        let events = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let mut events: Value = events.map_while(Result::ok).collect();
        scrubber.scrub(&mut events);
        recorded["events"] = events;
    } else if let Ok(mut body) = serde_json::from_str(text) {
        scrubber.scrub(&mut body);
        recorded["body"] = body;
    } else {
        recorded["text"] = text.into();
    }
    recorded
}

/// The cases below `dir` whose recording is missing or answers other requests than theirs.
pub fn stale(dir: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for case in case::load(dir, &[])? {
        let recorded = fs::read_to_string(case.recording_file())
            .ok()
            .and_then(|text| serde_json::from_str::<Value>(&text).ok())
            .unwrap_or_default();
        let steps = recorded["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
        let requests: Vec<Value> = steps.iter().map(|step| step["request"].clone()).collect();
        if recorded["about"] != case.about || requests != case.recorded_requests() {
            faults.push(format!("{0}: not recorded as written: cargo xtask record {0}", case.id));
        }
    }
    Ok(faults)
}
