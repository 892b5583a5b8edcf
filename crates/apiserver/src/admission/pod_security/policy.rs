//! What a namespace asks of its pods, which its labels say.

use std::cmp::Ordering;
use std::fmt;

use kubewright_apimachinery::field::{Error, Path};
use serde_json::Value;

use super::super::text;

const LEVELS: &str = "must be one of privileged, baseline, restricted";
const VERSIONS: &str = r#"must be "latest" or "v1.x""#;

/// How much a pod may do, from most to least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Privileged,
    Baseline,
    Restricted,
}

/// Whose idea of a level is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    Minor(i64),
    Latest,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Standard {
    pub(super) level: Level,
    pub(super) version: Version,
}

/// What happens to pods that do not conform: they are refused, noted, or warned about.
#[derive(Debug, Clone, Copy)]
pub(super) struct Policy {
    pub(super) enforce: Standard,
    pub(super) audit: Standard,
    pub(super) warn: Standard,
}

impl Policy {
    /// Whether anything goes, and nobody hears of it.
    pub(super) fn is_privileged(&self) -> bool {
        [self.enforce, self.audit, self.warn].iter().all(|one| one.level == Level::Privileged)
    }
}

impl Standard {
    const PRIVILEGED: Standard = Standard { level: Level::Privileged, version: Version::Latest };
}

/// The policy of a namespace, and what is wrong with the labels that say it. Pods are refused
/// rather than let through when that is unclear; nobody is warned for it.
pub(super) fn of_namespace(namespace: &Value) -> (Policy, Vec<Error>) {
    let mut labels = Labels { labels: &namespace["metadata"]["labels"], errors: Vec::new() };
    let enforce_level = labels.level("enforce");
    let privileged = Standard::PRIVILEGED;
    let mut policy = Policy { enforce: privileged, audit: privileged, warn: privileged };
    if let Some(level) = enforce_level {
        policy.enforce.level = level.unwrap_or(Level::Restricted);
    }
    if let Some(version) = labels.version("enforce") {
        policy.enforce.version = version;
    }
    if let Some(level) = labels.level("audit") {
        policy.audit.level = level.unwrap_or(Level::Privileged);
    }
    if let Some(version) = labels.version("audit") {
        policy.audit.version = version;
    }
    let warn_level = labels.level("warn");
    if let Some(level) = warn_level {
        policy.warn.level = level.unwrap_or(Level::Privileged);
    }
    let warn_version = labels.version("warn");
    if let Some(version) = warn_version {
        policy.warn.version = version;
    }
    // Who makes templates for pods that will be refused should hear of it.
    if let (None, Some(Some(level))) = (warn_level, enforce_level)
        && level.cmp(&policy.warn.level) == Ordering::Greater
    {
        policy.warn.level = level;
        policy.warn.version = warn_version.unwrap_or(policy.enforce.version);
    }
    (policy, labels.errors)
}

/// The labels of a namespace, and what was found to be wrong with them.
struct Labels<'a> {
    labels: &'a Value,
    errors: Vec<Error>,
}

impl Labels<'_> {
    /// The level for a mode: `None` when no label says it, and `Some(None)` when it says nonsense.
    fn level(&mut self, mode: &str) -> Option<Option<Level>> {
        self.read(mode, |text| match text {
            "privileged" => Ok(Level::Privileged),
            "baseline" => Ok(Level::Baseline),
            "restricted" => Ok(Level::Restricted),
            _ => Err(LEVELS),
        })
    }

    fn version(&mut self, mode: &str) -> Option<Version> {
        let version = self.read(&format!("{mode}-version"), |text| match text {
            "latest" => Ok(Version::Latest),
            text => minor(text).map(Version::Minor).ok_or(VERSIONS),
        });
        version.map(|version| version.unwrap_or(Version::Latest))
    }

    fn read<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, &'static str>,
    ) -> Option<Option<T>> {
        let label = format!("pod-security.kubernetes.io/{name}");
        let value = text(self.labels.get(&label)?);
        let parsed = parse(value).map_err(|problem| {
            let path = Path::new("metadata.labels");
            self.errors.push(Error::invalid(&path.key(&label), value, problem));
        });
        Some(parsed.ok())
    }
}

fn minor(text: &str) -> Option<i64> {
    let digits = text.strip_prefix("v1.")?;
    let is_number = digits.bytes().all(|digit| digit.is_ascii_digit());
    let is_short = digits == "0" || !digits.starts_with('0');
    digits.parse().ok().filter(|_| is_number && is_short)
}

impl fmt::Display for Standard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let level = match self.level {
            Level::Privileged => "privileged",
            Level::Baseline => "baseline",
            Level::Restricted => "restricted",
        };
        match self.version {
            Version::Minor(minor) => write!(f, "{level}:v1.{minor}"),
            Version::Latest => write!(f, "{level}:latest"),
        }
    }
}
