//! What lines look like.

use std::sync::{Arc, Mutex};

use serde_json::Value;
use tracing::span::{Attributes, Id};
use tracing::{debug, debug_span, info, info_span};
use tracing_subscriber::layer::{Context, Identity};

use super::*;

/// Collects what is written.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("nobody panicked").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is logged at a level, in a format, while something happens.
fn logged(level: &str, format: LogFormat, happens: impl FnOnce()) -> String {
    let lines = Lines::default();
    let writer = lines.clone();
    let logs = Logs { level: level.to_owned(), format };
    let subscriber = subscriber(&logs, None::<Identity>, move || writer.clone(), false);
    tracing::subscriber::with_default(subscriber.expect("a subscriber"), happens);
    let lines = lines.0.lock().expect("nobody panicked");
    String::from_utf8(lines.clone()).expect("text")
}

fn reconcile() {
    let reconcile = info_span!("reconcile", controller = "pets", key = "shop/thor");
    let _in_reconcile = reconcile.enter();
    info_span!("call", verb = "GET").in_scope(|| info!(legs = 4, "found"));
    debug!("done");
}

#[test]
fn a_line_for_people_has_the_fields_of_its_spans() {
    let text = logged("info", LogFormat::Text, reconcile);
    assert_eq!(text.lines().count(), 1, "{text}");
    let spans = "reconcile{controller=\"pets\" key=\"shop/thor\"}:call{verb=\"GET\"}";
    assert!(text.contains(spans) && text.contains("found legs=4"), "{text}");
}

#[test]
fn a_line_for_programs_has_the_fields_of_its_spans() {
    let text = logged("info", LogFormat::Json, reconcile);
    let line: Value = serde_json::from_str(&text).expect("one line of JSON");
    assert_eq!(line["message"], "found");
    assert_eq!(line["legs"], 4);
    assert_eq!(line["level"], "INFO");
    assert_eq!(line["spans"][0]["controller"], "pets");
    assert_eq!(line["spans"][0]["key"], "shop/thor");
    assert_eq!(line["spans"][1]["name"], "call");
}

/// The names of spans.
#[derive(Clone, Default)]
struct Spans(Arc<Mutex<Vec<&'static str>>>);

impl<S: Subscriber> Layer<S> for Spans {
    fn on_new_span(&self, span: &Attributes<'_>, _: &Id, _: Context<'_, S>) {
        self.0.lock().expect("nobody panicked").push(span.metadata().name());
    }
}

#[test]
fn calls_of_the_api_are_traced_and_not_in_lines() {
    let (lines, spans) = (Lines::default(), Spans::default());
    let writer = lines.clone();
    let logs = Logs { level: "info".to_owned(), format: LogFormat::Text };
    let subscriber = subscriber(&logs, Some(spans.clone()), move || writer.clone(), false);
    tracing::subscriber::with_default(subscriber.expect("a subscriber"), || {
        let _in_reconcile = info_span!("reconcile").entered();
        debug_span!(target: "kube_client::client::builder", "HTTP").in_scope(|| info!("called"));
        debug_span!("details").in_scope(|| ());
    });
    assert_eq!(*spans.0.lock().expect("nobody panicked"), ["reconcile", "HTTP"]);
    let text = String::from_utf8(lines.0.lock().expect("nobody panicked").clone()).expect("text");
    assert!(text.contains("reconcile: ") && !text.contains("HTTP"), "{text}");
}

#[test]
fn levels_can_be_said_by_module() {
    let text = logged("warn,kubewright::logging=debug", LogFormat::Text, reconcile);
    assert_eq!(text.lines().count(), 2, "{text}");
    assert!(logged("error", LogFormat::Text, reconcile).is_empty());
}

#[test]
fn a_level_that_is_none_is_refused() {
    let logs = Logs { level: "info,=".to_owned(), format: LogFormat::Text };
    let error = subscriber(&logs, None::<Identity>, io::stderr, false).err().expect("no level");
    assert!(error.to_string().starts_with("log at the level \"info,=\": "), "{error}");
}
