//! Judges what is to become of objects of the kind `Guestbook`.

use kube::ResourceExt as _;
use kubewright::webhook::{Cause, Change, Denied, Operation, Review, Warnings, Webhook};

use super::v1::Guestbook;

/// Labels are no longer than this, and what belongs to an object is labelled with its name.
const NAME_MAX: usize = 63;

/// Whoever judges deletions is needed for them: while it is away, nothing can be deleted. Leave
/// them out if they do not matter.
pub fn webhook() -> Webhook {
    let judged = [Operation::Create, Operation::Update, Operation::Delete];
    Webhook::validating(judge).operations(judged)
}

fn judge(change: Change<'_, Guestbook>, _: &Review) -> Result<Warnings, Denied> {
    match change {
        Change::Create(object) if object.name_any().len() > NAME_MAX => {
            let detail = format!("must have no more than {NAME_MAX} characters");
            Err(Denied::invalid([Cause::invalid("metadata.name", object.name_any(), &detail)]))
        }
        Change::Create(_) | Change::Update { .. } | Change::Delete(_) => Ok(Warnings::new()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_no_label_is_refused() {
        let judge_name = |name: &str| {
            let object = Guestbook::new(name, Default::default());
            judge(Change::Create(&object), &Review::default())
        };
        assert!(judge_name(&"a".repeat(NAME_MAX)).is_ok());
        assert!(judge_name(&"a".repeat(NAME_MAX + 1)).is_err());
    }

    #[test]
    fn what_is_there_can_be_changed_and_deleted() {
        let object = Guestbook::new("one", Default::default());
        let update = Change::Update { old: &object, new: &object };
        assert!(judge(update, &Review::default()).is_ok());
        assert!(judge(Change::Delete(&object), &Review::default()).is_ok());
    }
}
