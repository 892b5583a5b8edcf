//! Remembers what children were promised, and compares it with what is found on disk.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use super::child::SIZES;
use crate::Revision;
use crate::embedded::Disk;

/// What all children of one store reported.
#[derive(Default)]
pub(super) struct Witness {
    keys: BTreeMap<String, Known>,
    numbers: HashSet<i64>,
    /// The highest number that any child but the current one reported.
    highest: i64,
}

/// A promise that was broken.
#[derive(Debug, thiserror::Error)]
pub(super) enum Lie {
    #[error("{key} was written at {revision} but found at {found:?}")]
    Lost { key: String, revision: i64, found: Option<Revision> },
    #[error("{key} at {revision} is not what was written")]
    Altered { key: String, revision: i64 },
    #[error("revision {revision} came again")]
    Repeated { revision: i64 },
    #[error("a write was acknowledged after the storage had failed")]
    AcknowledgedAfterFailure,
    #[error("the store does not open: {0:?}")]
    DoesNotOpen(crate::embedded::OpenError),
}

#[derive(Debug)]
struct Known {
    revision: i64,
    /// None if it was deleted.
    value: Option<String>,
    /// A deletion was asked for but never answered.
    maybe_deleted: bool,
}

impl Witness {
    pub(super) fn acknowledged(&self) -> usize {
        self.numbers.len()
    }

    /// Takes in what one child said, and compares everything with the store in `dir`.
    pub(super) fn hear(&mut self, report: &str, dir: &Path) -> Result<(), Lie> {
        let before = self.highest;
        for line in report.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[..] {
                ["put", revision, key, value] => {
                    self.saw(key, self.number(revision, before)?, Some(value.into()));
                }
                ["deleted", revision, key] => {
                    self.saw(key, self.number(revision, before)?, None);
                }
                ["event", revision] => {
                    let revision = self.number(revision, before)?;
                    self.highest = self.highest.max(revision);
                    self.numbers.insert(revision);
                }
                ["deleting", key] => {
                    if let Some(known) = self.keys.get_mut(key) {
                        known.maybe_deleted = true;
                    }
                }
                ["broken-promise"] => return Err(Lie::AcknowledgedAfterFailure),
                ["failed" | "reads" | "closed"] => {}
                // A report that is not understood would be missed later on.
                _ => assert!(is_of_harness(line), "a child reported {line:?}"),
            }
        }
        self.compare(dir)
    }

    fn number(&self, text: &str, before: i64) -> Result<i64, Lie> {
        let revision = text.parse().unwrap();
        if revision <= before || self.numbers.contains(&revision) {
            return Err(Lie::Repeated { revision });
        }
        Ok(revision)
    }

    fn saw(&mut self, key: &str, revision: i64, value: Option<String>) {
        self.highest = self.highest.max(revision);
        self.numbers.insert(revision);
        let known = self.keys.entry(key.into()).or_insert(Known {
            revision: 0,
            value: None,
            maybe_deleted: false,
        });
        // Reports of several writers overtake each other.
        if revision > known.revision {
            *known = Known { revision, value, maybe_deleted: false };
        }
    }

    fn compare(&self, dir: &Path) -> Result<(), Lie> {
        let (_, loaded) = Disk::open(dir, SIZES).map_err(Lie::DoesNotOpen)?;
        let found: BTreeMap<&str, _> =
            loaded.stored.iter().map(|stored| (stored.key.as_str(), stored)).collect();
        for (key, known) in &self.keys {
            let Known { revision, value, maybe_deleted } = known;
            let revision = *revision;
            let stored = found.get(key.as_str());
            let at = stored.map(|stored| stored.revision.get());
            let kept = match value {
                Some(_) => at >= Some(revision) || (at.is_none() && *maybe_deleted),
                None => at.is_none_or(|at| at > revision),
            };
            if !kept {
                let found = stored.map(|stored| stored.revision);
                return Err(Lie::Lost { key: key.clone(), revision, found });
            }
            let same = match (stored, value) {
                (Some(stored), Some(value)) if at == Some(revision) => {
                    stored.value.starts_with(format!("{value} ").as_bytes())
                }
                _ => true,
            };
            if !same {
                return Err(Lie::Altered { key: key.clone(), revision });
            }
        }
        Ok(())
    }
}

/// Whether it is a line that libtest prints around the child's own.
fn is_of_harness(line: &str) -> bool {
    let begins =
        line.starts_with("test ") && (line.ends_with(" ... ") || line.ends_with(" ... ok"));
    let ends = line == "ok" || line.starts_with("test result: ok");
    begins || ends || line.is_empty() || line == "running 1 test"
}

/// Xorshift: a crash that happened once happens again.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(super) fn below(&mut self, bound: u64) -> u64 {
        // The low bits of a xorshift are its worst.
        (self.next() >> 16) % bound
    }
}
