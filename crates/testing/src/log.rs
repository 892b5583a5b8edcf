//! What is logged during a test.

use std::cell::RefCell;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Once;

use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
use tracing_subscriber::registry;

/// What a crate logs on this thread for as long as this is there: under [`crate::on_cluster`] that
/// is all of it.
pub struct Log {
    /// It is of the thread it was made on.
    _here: PhantomData<*const ()>,
}

/// Whose lines are kept on a thread, and those there are.
struct Kept {
    crate_name: &'static str,
    lines: Vec<String>,
}

thread_local! {
    static KEPT: RefCell<Option<Kept>> = const { RefCell::new(None) };
}

/// One for all threads: had each its own, what is logged first on one that keeps nothing would be
/// off for all.
static STARTED: Once = Once::new();

impl Log {
    /// Begins to keep what a crate logs.
    pub fn of(crate_name: &'static str) -> Self {
        STARTED.call_once(|| {
            let started = tracing::subscriber::set_global_default(registry().with(Keeper));
            started.expect("tests log nowhere else");
        });
        KEPT.set(Some(Kept { crate_name, lines: Vec::new() }));
        Log { _here: PhantomData }
    }

    /// What was logged so far, a line each: the message, and the fields after it.
    pub fn lines(&self) -> Vec<String> {
        KEPT.with_borrow(|kept| kept.as_ref().map(|kept| kept.lines.clone()).unwrap_or_default())
    }

    /// Makes sure that these lines were logged in this order, among others.
    ///
    /// # Panics
    /// If they were not; it says which is missing.
    pub fn has_in_order(&self, expected: &[&str]) {
        let lines = self.lines();
        let mut left = lines.iter();
        for line in expected {
            let is_there = left.any(|logged| logged == line);
            assert!(is_there, "{line:?} is not, or not so late, in {lines:#?}");
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        KEPT.set(None);
    }
}

struct Keeper;

impl<S: Subscriber> Layer<S> for Keeper {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        KEPT.with_borrow_mut(|kept| {
            let Some(Kept { crate_name, lines }) = kept else { return };
            if event.metadata().target().split("::").next() == Some(crate_name) {
                let mut line = Line::default();
                event.record(&mut line);
                lines.push(line.message + &line.fields);
            }
        });
    }
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            // A field may have the same name; the message comes first.
            "message" if self.message.is_empty() => self.message = format!("{value:?}"),
            name => self.fields += &format!(" {name}={value:?}"),
        }
    }
}
