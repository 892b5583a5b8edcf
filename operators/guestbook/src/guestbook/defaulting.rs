//! Completes objects of the kind `Guestbook` before they are judged and stored.

use kubewright::webhook::{Denied, Review, Webhook};

use super::v1::Guestbook;

const NAME: &str = "app.kubernetes.io/name";

pub fn webhook() -> Webhook {
    Webhook::defaulting(complete)
}

/// What is changed in `object` is sent to the server, and nothing else.
fn complete(object: &mut Guestbook, _: &Review) -> Result<(), Denied> {
    let labels = object.metadata.labels.get_or_insert_default();
    labels.entry(NAME.to_owned()).or_insert_with(|| "guestbook".to_owned());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_that_is_missing_is_added_and_one_that_is_there_stays() {
        let mut object = Guestbook::new("one", Default::default());
        complete(&mut object, &Review::default()).expect("completed");
        let labels = object.metadata.labels.get_or_insert_default();
        assert_eq!(labels[NAME], "guestbook");

        labels.insert(NAME.to_owned(), "mine".to_owned());
        complete(&mut object, &Review::default()).expect("completed");
        assert_eq!(object.metadata.labels.expect("labels")[NAME], "mine");
    }
}
