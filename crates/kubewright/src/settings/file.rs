//! What a file says of the settings.

use std::path::{Path, PathBuf};
use std::{fs, io};

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Layer;

/// A file of settings, as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    pub path: PathBuf,
    pub text: String,
}

/// Why a file is not understood.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("read {}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("read {}:{line}: there is no setting {key:?}{}", path.display(), meant(nearest.as_deref()))]
    Unknown {
        path: PathBuf,
        line: u64,
        key: String,
        /// The one that was probably meant.
        nearest: Option<String>,
    },
    #[error("read {}: {message}", path.display())]
    Invalid {
        path: PathBuf,
        /// Which says where, too.
        message: String,
    },
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|nearest| format!("; is {nearest:?} meant?")).unwrap_or_default()
}

impl File {
    pub(super) fn read(path: &Path) -> Result<Self, FileError> {
        let text = fs::read_to_string(path);
        let text = text.map_err(|source| FileError::Read { path: path.to_owned(), source })?;
        Ok(File { path: path.to_owned(), text })
    }

    /// What it says of the library's settings.
    pub(super) fn layer(&self) -> Result<Layer, FileError> {
        Ok(self.parse::<Option<Layer>>()?.unwrap_or_default())
    }

    /// What it says of the author's settings.
    pub(super) fn own<T: DeserializeOwned + Default>(&self) -> Result<T, FileError> {
        #[derive(Deserialize)]
        #[serde(bound = "T: DeserializeOwned + Default")]
        struct Whole<T> {
            #[serde(default)]
            operator: T,
        }
        let whole = self.parse::<Option<Whole<T>>>()?;
        Ok(whole.map_or_else(T::default, |whole| whole.operator))
    }

    fn parse<T: DeserializeOwned>(&self) -> Result<T, FileError> {
        let options = serde_saphyr::options! { with_snippet: false };
        serde_saphyr::from_str_with_options(&self.text, options).map_err(|error| {
            let line = error.location().map_or(0, |location| location.line());
            let path = self.path.clone();
            match error.without_snippet() {
                serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => {
                    let nearest = nearest(field, expected).map(str::to_owned);
                    FileError::Unknown { path, line, key: field.clone(), nearest }
                }
                other => FileError::Invalid { path, message: other.to_string() },
            }
        })
    }
}

/// The known key that is most like one that is not, if any is like it.
fn nearest<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    let plain = |text: &str| -> Vec<char> {
        text.to_lowercase().chars().filter(|c| c.is_alphanumeric()).collect()
    };
    let key = plain(key);
    let distances = known.iter().map(|&known| (distance(&key, &plain(known)), known));
    let (distance, nearest) = distances.min_by_key(|&(distance, _)| distance)?;
    (distance <= key.len().div_ceil(3)).then_some(nearest)
}

/// How many characters must be put in, taken away or replaced to make one of the other.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[to.len()]
}
