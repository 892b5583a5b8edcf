//! What is said of a request besides its answer: to the client in `Warning` headers, to the audit
//! log in annotations.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use http::{HeaderMap, HeaderValue};
use kubewright_apimachinery::{json, name};

/// How much all warnings may hold, and how much one may when they hold more.
const TOTAL_BYTES_MAX: usize = 4 << 10;
const TEXT_CHARACTERS_MAX: usize = 256;

/// The warnings of one request, each once.
#[derive(Debug, Default)]
pub struct Warnings {
    texts: Mutex<Vec<String>>,
    /// None where there is no audit log to be told.
    notes: Option<Mutex<Notes>>,
    /// Whether the audit log is told of objects, too.
    shows_objects: bool,
}

type Notes = BTreeMap<Cow<'static, str>, String>;

impl Warnings {
    /// Those of a request that is also to be annotated.
    pub(crate) fn annotated(shows_objects: bool) -> Self {
        Warnings { notes: Some(Mutex::default()), shows_objects, ..Warnings::default() }
    }

    pub(crate) fn is_annotated(&self) -> bool {
        self.notes.is_some()
    }

    /// Whether annotations may tell what is in objects.
    pub(crate) fn shows_objects(&self) -> bool {
        self.shows_objects
    }

    /// Annotates the request, if anybody wants to know.
    pub(crate) fn note(&self, key: &'static str, text: impl FnOnce() -> String) {
        if let Some(notes) = &self.notes {
            lock(notes).insert(key.into(), text());
        }
    }

    /// Annotates the request under a name that others chose. What was said first stays.
    pub(crate) fn annotate(&self, key: String, text: impl FnOnce() -> String) {
        let is_sound = key.matches('/').count() == 1 && name::label_key(&key).is_empty();
        if let Some(notes) = self.notes.as_ref().filter(|_| is_sound) {
            lock(notes).entry(key.into()).or_insert_with(text);
        }
    }

    /// Takes the annotations.
    pub(crate) fn notes(&self) -> Notes {
        let notes = self.notes.as_ref();
        notes.map(|notes| std::mem::take(&mut *lock(notes))).unwrap_or_default()
    }

    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut texts = lock(&self.texts);
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }

    pub fn extend(&self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add(text));
    }

    pub(crate) fn texts(&self) -> Vec<String> {
        lock(&self.texts).clone()
    }

    /// Forgets what was said, because the write is tried again from the start.
    pub(crate) fn truncate(&self, count: usize) {
        lock(&self.texts).truncate(count);
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.texts).len()
    }

    /// Writes the headers. When there is too much to say, each text is shortened, and what still
    /// does not fit is left out, as upstream does.
    pub fn write(self, headers: &mut HeaderMap) {
        let texts = self.texts.into_inner().unwrap_or_else(PoisonError::into_inner);
        let long = texts.iter().map(String::len).sum::<usize>() > TOTAL_BYTES_MAX;
        let mut written = 0;
        for text in &texts {
            let text: String = match long {
                true => text.chars().take(TEXT_CHARACTERS_MAX).collect(),
                false => text.clone(),
            };
            let header = format!("299 - {}", quoted(&text));
            written += header.len();
            if long && written > TOTAL_BYTES_MAX {
                break;
            }
            if let Ok(value) = HeaderValue::from_bytes(header.as_bytes()) {
                headers.append("Warning", value);
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A quoted string of HTTP: controls have no place in one.
fn quoted(text: &str) -> String {
    let text: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match text.is_ascii() {
        true => json::go_quote(&text),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
