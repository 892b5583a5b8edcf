//! What a namespace that is to end says about it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::NamespaceCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::findings::Findings;

/// One condition: its type, then reason and message while all is well.
struct Kind(&'static str, &'static str, &'static str);

const DISCOVERY: Kind = Kind(
    "NamespaceDeletionDiscoveryFailure",
    "ResourcesDiscovered",
    "All resources successfully discovered",
);
/// Never true here: the documents that are read give group and version apart.
const PARSING: Kind = Kind(
    "NamespaceDeletionGroupVersionParsingFailure",
    "ParsedGroupVersions",
    "All legacy kube types successfully parsed",
);
const DELETION: Kind = Kind(
    "NamespaceDeletionContentFailure",
    "ContentDeleted",
    "All content successfully deleted, may be waiting on finalization",
);
const CONTENT: Kind =
    Kind("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed");
const FINALIZERS: Kind = Kind(
    "NamespaceFinalizersRemaining",
    "ContentHasNoFinalizers",
    "All content-preserving finalizers finished",
);

/// The conditions after these findings; none if they stay as they are.
pub(super) fn update(
    before: &[NamespaceCondition],
    findings: &Findings,
    now: Timestamp,
) -> Option<Vec<NamespaceCondition>> {
    let mut conditions = before.to_vec();
    for new in conditions_of(findings, now) {
        match conditions.iter_mut().find(|old| old.type_ == new.type_) {
            None => conditions.push(new),
            Some(old) => {
                let since = match old.status == new.status {
                    true => old.last_transition_time.take(),
                    false => new.last_transition_time,
                };
                *old = NamespaceCondition { last_transition_time: since, ..new };
            }
        }
    }
    (conditions != before).then_some(conditions)
}

fn conditions_of(findings: &Findings, now: Timestamp) -> [NamespaceCondition; 5] {
    let undeleted = (!findings.undeleted.is_empty()).then(|| {
        let mut errors = findings.undeleted.clone();
        errors.sort();
        format!(
            "Failed to delete all resource types, {} remaining: {}",
            errors.len(),
            errors.join(", ")
        )
    });
    let remaining = counted(&findings.remaining, "has", "resource instances")
        .map(|counts| format!("Some resources are remaining: {counts}"));
    let finalizers = counted(&findings.finalizers, "in", "resource instances")
        .map(|counts| format!("Some content in the namespace has finalizers remaining: {counts}"));
    [
        (DISCOVERY, "DiscoveryFailed", findings.undiscovered.clone()),
        (PARSING, "GroupVersionParsingFailed", None),
        (DELETION, "ContentDeletionFailed", undeleted),
        (CONTENT, "SomeResourcesRemain", remaining),
        (FINALIZERS, "SomeFinalizersRemain", finalizers),
    ]
    .map(|(Kind(type_, well, all_is_well), ill, problem)| {
        let (status, reason) = if problem.is_some() { ("True", ill) } else { ("False", well) };
        NamespaceCondition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(problem.unwrap_or_else(|| all_is_well.to_owned())),
            last_transition_time: Some(Time(now)),
        }
    })
}

fn counted(counts: &BTreeMap<String, usize>, verb: &str, noun: &str) -> Option<String> {
    let mut counts: Vec<String> =
        counts.iter().map(|(name, count)| format!("{name} {verb} {count} {noun}")).collect();
    // By the whole text, as upstream has it, which a long name may show.
    counts.sort();
    (!counts.is_empty()).then(|| counts.join(", "))
}
