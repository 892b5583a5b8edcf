//! Judges what is to become of objects of the kind `Deployment`, which is defined elsewhere.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kubewright::webhook::{Cause, Change, Denied, Review, Warnings, Webhook};

use super::Deployment;

/// Labels are no longer than this, and what belongs to an object is labelled with its name.
const NAME_MAX: usize = 63;

/// Asked about objects of namespaces with this label, set to `enabled`. While the operator is away, these
/// cannot be changed: what it is made of itself should not be among them.
const ASKED: &str = "harbor.my.domain/webhooks";

pub fn webhook() -> Webhook {
    let labels = [(ASKED.to_owned(), "enabled".to_owned())];
    let asked = LabelSelector { match_labels: Some(labels.into()), ..LabelSelector::default() };
    Webhook::validating(judge).namespaces(asked)
}

fn judge(change: Change<'_, Deployment>, _: &Review) -> Result<Warnings, Denied> {
    match change {
        Change::Create(object) => judge_name(&object.metadata),
        // What was let in once can be changed.
        Change::Update { .. } | Change::Delete(_) => Ok(Warnings::new()),
    }
}

fn judge_name(metadata: &ObjectMeta) -> Result<Warnings, Denied> {
    let name = metadata.name.as_deref().unwrap_or_default();
    if name.len() > NAME_MAX {
        let detail = format!("must have no more than {NAME_MAX} characters");
        return Err(Denied::invalid([Cause::invalid("metadata.name", name, &detail)]));
    }
    Ok(Warnings::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_label_is_refused() {
        let judged =
            |name: String| judge_name(&ObjectMeta { name: Some(name), ..ObjectMeta::default() });
        assert!(judged("a".repeat(NAME_MAX)).is_ok());
        assert!(judged("a".repeat(NAME_MAX + 1)).is_err());
    }
}
