//! CustomResourceDefinitions in files: found, and brought to `apiextensions.k8s.io/v1`.

#[cfg(test)]
mod tests;
mod upgrade;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use kubewright_apimachinery::{json, yaml};
use serde_json::Value;

pub use self::upgrade::upgrade;

/// A definition, and where it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Source {
    pub file: PathBuf,
    /// The first line of its document, counted from 1.
    pub line: usize,
    /// In `apiextensions.k8s.io/v1`, whatever it was written in.
    pub definition: Value,
}

/// Why no definition comes of a file.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("read {file:?}: is the path right?")]
    File { file: PathBuf, source: io::Error },
    #[error("{file:?}, line {line}: {problem}")]
    Syntax { file: PathBuf, line: usize, problem: String },
    #[error(
        "{file:?} has no CustomResourceDefinition; kinds there: {kinds:?}. Name a file that has one"
    )]
    NoDefinition { file: PathBuf, kinds: Vec<String> },
    #[error("{file:?}, line {line}: the definition {problem}")]
    Incomplete { file: PathBuf, line: usize, problem: String },
}

/// All definitions of a file, or of standard input if it is called `-`.
///
/// # Errors
/// It cannot be read, or there is none.
pub fn read(file: &Path) -> Result<Vec<Source>, ReadError> {
    let failed = |source| ReadError::File { file: file.to_owned(), source };
    let text = if file == Path::new("-") {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text).map_err(failed)?;
        text
    } else {
        fs::read_to_string(file).map_err(failed)?
    };
    parse(file, &text)
}

/// All definitions of a text.
///
/// # Errors
/// It is no YAML, or there is none.
pub fn parse(file: &Path, text: &str) -> Result<Vec<Source>, ReadError> {
    let syntax = |line, problem: String| ReadError::Syntax { file: file.to_owned(), line, problem };
    let documents =
        yaml::documents(text).map_err(|error| syntax(separator_line(text), error.to_string()))?;
    let (mut sources, mut kinds) = (Vec::new(), Vec::new());
    for document in documents {
        let begin = document.as_ptr() as usize - text.as_ptr() as usize;
        let line = 1 + text[..begin].matches('\n').count();
        let decoded = match yaml::is_json(document.as_bytes()) {
            true => json::decode(document.as_bytes()).map_err(|error| in_json(document, &error)),
            false => yaml::decode(document).map_err(in_yaml),
        };
        let object = decoded.map_err(|(below, problem)| syntax(line + below, problem))?.value;
        let objects = match object["items"].as_array() {
            Some(items) => items.clone(),
            None => vec![object],
        };
        for object in objects {
            let kind = object["kind"].as_str().unwrap_or_default().to_owned();
            if kind != "CustomResourceDefinition" {
                kinds.extend((!kind.is_empty()).then_some(kind));
                continue;
            }
            let incomplete =
                |problem| ReadError::Incomplete { file: file.to_owned(), line, problem };
            let definition = upgrade(object).map_err(incomplete)?;
            sources.push(Source { file: file.to_owned(), line, definition });
        }
    }
    if sources.is_empty() {
        kinds.dedup();
        return Err(ReadError::NoDefinition { file: file.to_owned(), kinds });
    }
    Ok(sources)
}

/// How many lines below the first of its document a mistake is, and what it is.
fn in_yaml(error: yaml::DecodeError) -> (usize, String) {
    match error {
        // Counted from 1, and 0 if it is not known.
        yaml::DecodeError::Syntax { line, problem } => {
            (line.saturating_sub(1), format!("yaml: {problem}"))
        }
        other => (0, other.to_string()),
    }
}

fn in_json(document: &str, error: &json::DecodeError) -> (usize, String) {
    let below = match error {
        json::DecodeError::Syntax { offset, .. } => {
            document.bytes().take(*offset).filter(|byte| *byte == b'\n').count()
        }
        json::DecodeError::NumberOutOfRange { .. } => 0,
    };
    (below, error.to_string())
}

/// The first line that begins as one between documents, and goes on as none may.
fn separator_line(text: &str) -> usize {
    let is_wrong = |line: &str| {
        let rest = line.strip_prefix("---").map(str::trim);
        rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('#'))
    };
    1 + text.lines().position(is_wrong).unwrap_or(0)
}

/// The name of a definition, `plural.group`.
pub fn name(definition: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    match definition["metadata"]["name"].as_str() {
        Some(name) => name.to_owned(),
        None => format!(
            "{}.{}",
            text(&definition["spec"]["names"]["plural"]),
            text(&definition["spec"]["group"])
        ),
    }
}
