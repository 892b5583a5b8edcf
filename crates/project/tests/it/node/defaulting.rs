//! Completes objects of the kind `Node`, which is defined elsewhere, before they are judged and
//! stored.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use kubewright::webhook::{Denied, Review, Webhook};

use super::Node;

const NAME: &str = "app.kubernetes.io/name";

/// Asked about objects with this label, set to `enabled`. While the operator is away, these
/// cannot be changed: what it is made of itself should not be among them.
const ASKED: &str = "harbor.my.domain/webhooks";

pub fn webhook() -> Webhook {
    let labels = [(ASKED.to_owned(), "enabled".to_owned())];
    let asked = LabelSelector { match_labels: Some(labels.into()), ..LabelSelector::default() };
    Webhook::defaulting(complete).objects(asked)
}

/// What is changed in `object` is sent to the server, and nothing else.
fn complete(object: &mut Node, _: &Review) -> Result<(), Denied> {
    label(&mut object.metadata);
    Ok(())
}

fn label(metadata: &mut ObjectMeta) {
    let labels = metadata.labels.get_or_insert_default();
    labels.entry(NAME.to_owned()).or_insert_with(|| "node".to_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_is_missing_is_added_and_one_that_is_there_stays() {
        let mut metadata = ObjectMeta::default();
        label(&mut metadata);
        let labels = metadata.labels.get_or_insert_default();
        assert_eq!(labels[NAME], "node");

        labels.insert(NAME.to_owned(), "mine".to_owned());
        label(&mut metadata);
        assert_eq!(metadata.labels.expect("labels")[NAME], "mine");
    }
}
