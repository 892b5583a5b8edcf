//! What a client is told besides the answer: `Warning` headers.

use std::sync::{Mutex, PoisonError};

use http::{HeaderMap, HeaderValue};
use kubewright_apimachinery::json;

/// How much all warnings may hold, and how much one may when they hold more.
const TOTAL_BYTES_MAX: usize = 4 << 10;
const TEXT_CHARACTERS_MAX: usize = 256;

/// The warnings of one request, each once.
#[derive(Debug, Default)]
pub struct Warnings(Mutex<Vec<String>>);

impl Warnings {
    pub fn add(&self, text: impl Into<String>) {
        let text = text.into();
        let mut texts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !text.is_empty() && !texts.contains(&text) {
            texts.push(text);
        }
    }

    pub fn extend(&self, texts: impl IntoIterator<Item = String>) {
        texts.into_iter().for_each(|text| self.add(text));
    }

    #[cfg(test)]
    pub(crate) fn texts(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets what was said, because the write is tried again from the start.
    pub(crate) fn truncate(&self, count: usize) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).truncate(count);
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Writes the headers. When there is too much to say, each text is shortened, and what still
    /// does not fit is left out, as upstream does.
    pub fn write(self, headers: &mut HeaderMap) {
        let texts = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
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

/// A quoted string of HTTP: controls have no place in one.
fn quoted(text: &str) -> String {
    let text: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    match text.is_ascii() {
        true => json::go_quote(&text),
        false => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
    }
}
