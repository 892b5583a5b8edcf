//! Manifests: from paths to decoded documents.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use kubewright_apimachinery::json::{self, Decoded};
use kubewright_apimachinery::yaml;
use serde_json::Value;

/// One document.
pub(super) struct Manifest {
    pub(super) file: PathBuf,
    /// Or what is wrong with the text.
    pub(super) object: Result<Decoded, String>,
}

/// The documents at all paths, in order. Items of a `List` count as documents.
pub(super) fn read(paths: &[PathBuf]) -> Result<Vec<Manifest>> {
    let mut manifests = Vec::new();
    for path in paths {
        if path.as_os_str() == "-" {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("read standard input")?;
            split(Path::new("-"), &text, &mut manifests);
            continue;
        }
        for file in files(path)? {
            let text =
                fs::read_to_string(&file).with_context(|| format!("read {}", file.display()))?;
            split(&file, &text, &mut manifests);
        }
    }
    if manifests.is_empty() {
        bail!("there is no manifest at the given paths");
    }
    Ok(manifests)
}

/// The file itself, or all manifests below a folder.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    let context = || format!("read {}", path.display());
    if !path.metadata().with_context(context)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path).with_context(context)?;
    let mut entries: Vec<PathBuf> =
        entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>().with_context(context)?;
    entries.sort();
    let mut found = Vec::new();
    for entry in entries {
        let is_manifest =
            entry.extension().is_some_and(|end| ["yaml", "yml", "json"].iter().any(|e| end == *e));
        if entry.is_dir() {
            found.extend(files(&entry)?);
        } else if is_manifest {
            found.push(entry);
        }
    }
    Ok(found)
}

fn split(file: &Path, text: &str, manifests: &mut Vec<Manifest>) {
    let documents = match yaml::documents(text) {
        Ok(documents) => documents,
        Err(problem) => {
            let object = Err(problem.to_string());
            manifests.push(Manifest { file: file.to_owned(), object });
            return;
        }
    };
    for document in documents {
        match decode(document) {
            Ok(object) if object.value.is_null() => {}
            Ok(Decoded { value: Value::Object(mut list), violations })
                if list.get("kind").is_some_and(|kind| kind == "List") =>
            {
                let items = list.remove("items").unwrap_or_default();
                for value in items.as_array().into_iter().flatten().cloned() {
                    let object = Ok(Decoded { value, violations: violations.clone() });
                    manifests.push(Manifest { file: file.to_owned(), object });
                }
            }
            object => manifests.push(Manifest { file: file.to_owned(), object }),
        }
    }
}

fn decode(document: &str) -> Result<Decoded, String> {
    match yaml::is_json(document.as_bytes()) {
        true => json::decode(document.as_bytes()).map_err(|error| error.to_string()),
        false => yaml::decode(document).map_err(|error| error.to_string()),
    }
}
