//! What was found, for people and for programs.

use std::fmt::Write as _;

use serde_json::{Value, json as value};

use super::{Finding, Hurt, Severity, worst};

/// A line for each finding, and one that counts them.
pub fn text(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        let place: Vec<_> = [finding.version.as_deref().unwrap_or_default(), finding.path.as_str()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        let hurt = |hurt: &Hurt| match hurt {
            Hurt::Stored => "stored objects",
            Hurt::Clients => "clients",
        };
        let hurts: Vec<_> = finding.hurts.iter().map(hurt).collect();
        let hurts =
            if hurts.is_empty() { String::new() } else { format!(" [{}]", hurts.join(", ")) };
        let place = if place.is_empty() { "definition".to_owned() } else { place.join(" ") };
        let (word, message) = (word(finding.severity), &finding.message);
        writeln!(text, "{word:<10} {place}: {message}{hurts}").expect("strings take any text");
    }
    let count = |severity| findings.iter().filter(|it| it.severity == severity).count();
    let (breaking, warnings) = (count(Severity::Breaking), count(Severity::Warning));
    let compatible = count(Severity::Compatible);
    writeln!(text, "{breaking} breaking, {warnings} to look at, {compatible} compatible")
        .expect("strings take any text");
    text
}

/// The same as a document.
pub fn json(findings: &[Finding]) -> Value {
    value!({"worst": worst(findings), "findings": findings})
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Compatible => "compatible",
        Severity::Warning => "warning",
        Severity::Breaking => "breaking",
    }
}
