//! What a change of a definition means for those who have objects of its kind.
//!
//! [`compare`] is a pure function of two definitions. Each [`Finding`] says what changed, how bad it
//! is, and whom it hurts: objects that are stored, or clients that write and read them. Whether the
//! API server takes the new definition at all is asked of the server's own rules.
//!
//! What a tightened rule does to stored objects depends on how the server ratchets: since 1.33 an
//! update may keep a value that breaks a rule, as long as it does not change it. Rules about values
//! therefore hurt those who write such values, and rules that are not ratcheted (`required`, kinds
//! of lists, combinations of schemas) hurt stored objects as well.

mod definition;
mod report;
mod schema;
#[cfg(test)]
mod tests;
mod values;

use kubewright_apimachinery::schema::crd::Definition;
use kubewright_apimachinery::schema::{ParseError, crd};
use serde::Serialize;
use serde_json::Value;

pub use self::report::{json, text};

/// One change, and what follows from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    pub severity: Severity,
    /// Who has to do something about it; nobody if it is compatible.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hurts: Vec<Hurt>,
    /// A word for the kind of change, which scripts can go by.
    pub change: &'static str,
    /// None if it is about the definition, not about one of its versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The field of objects, or of the definition.
    pub path: String,
    pub message: String,
}

/// How bad a change is. The worst comes last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Whoever worked before works as before.
    Compatible,
    /// Something behaves otherwise; somebody should look.
    Warning,
    /// Something that worked is refused, lost, or means something else.
    Breaking,
}

/// Who is hurt by a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Hurt {
    /// Objects that are there: they lose fields, or cannot be written as they are.
    Stored,
    /// Those who write or read objects.
    Clients,
}

/// Why definitions cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    #[error("read the {which} definition")]
    Parse { which: &'static str, source: ParseError },
}

/// Everything that changed from one definition to the other, the worst first.
///
/// # Errors
/// One of them has fields of the wrong type.
pub fn compare(old: &Value, new: &Value) -> Result<Vec<Finding>, CompareError> {
    let parse = |value: &Value, which| {
        let mut value = value.clone();
        crd::default(&mut value);
        let parsed = Definition::parse(&value);
        parsed.map_err(|source| CompareError::Parse { which, source })
    };
    let (old, new) = (parse(old, "old")?, parse(new, "new")?);
    let mut findings = Findings::default();
    definition::compare(&old, &new, &mut findings);
    let mut findings = findings.0;
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    Ok(findings)
}

/// A definition that there is no more.
pub fn gone(name: &str) -> Finding {
    Finding {
        severity: Severity::Breaking,
        hurts: vec![Hurt::Stored, Hurt::Clients],
        change: "definition-removed",
        version: None,
        path: String::new(),
        message: format!("{name} is gone, and all its objects with it"),
    }
}

/// How bad the worst of them is.
pub fn worst(findings: &[Finding]) -> Severity {
    findings.iter().map(|it| it.severity).max().unwrap_or(Severity::Compatible)
}

/// What was found so far, in the order of the definition.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

/// Where in the definition a change is.
#[derive(Debug, Clone)]
struct Place {
    version: Option<String>,
    path: String,
}

impl Place {
    fn definition(path: &str) -> Self {
        Place { version: None, path: path.to_owned() }
    }

    fn version(name: &str) -> Self {
        Place { version: Some(name.to_owned()), path: String::new() }
    }

    fn field(&self, name: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        Place { path: format!("{}{dot}{name}", self.path), ..self.clone() }
    }

    /// Any element of a list, or any value of a map.
    fn element(&self) -> Self {
        Place { path: format!("{}[]", self.path), ..self.clone() }
    }
}

impl Findings {
    fn breaking(&mut self, at: &Place, hurts: &[Hurt], change: &'static str, message: String) {
        self.push(Severity::Breaking, at, hurts, change, message);
    }

    fn warning(&mut self, at: &Place, hurts: &[Hurt], change: &'static str, message: String) {
        self.push(Severity::Warning, at, hurts, change, message);
    }

    fn compatible(&mut self, at: &Place, change: &'static str, message: String) {
        self.push(Severity::Compatible, at, &[], change, message);
    }

    fn push(
        &mut self,
        severity: Severity,
        at: &Place,
        hurts: &[Hurt],
        change: &'static str,
        message: String,
    ) {
        let Place { version, path } = at.clone();
        self.0.push(Finding { severity, hurts: hurts.to_vec(), change, version, path, message });
    }
}
