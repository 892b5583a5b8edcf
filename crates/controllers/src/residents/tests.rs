use super::*;

fn published(pem: &str) -> ConfigMap {
    match plan_root_ca(pem, None) {
        Plan::Create(made) => made,
        other => panic!("nothing was there, and yet {other:?}"),
    }
}

#[test]
fn an_account_that_is_there_stays_as_it_is() {
    assert_eq!(plan_service_account(Some(&ServiceAccount::default())), Plan::Keep);
    let made = ServiceAccount { metadata: named("default"), ..Default::default() };
    assert_eq!(plan_service_account(None), Plan::Create(made));
}

#[test]
fn what_was_published_is_kept() {
    let made = published("PEM");
    assert_eq!(made.metadata.name.as_deref(), Some("kube-root-ca.crt"));
    assert_eq!(plan_root_ca("PEM", Some(&made)), Plan::Keep);
}

#[test]
fn another_certificate_replaces_the_first() {
    let Plan::Replace(replaced) = plan_root_ca("NEW", Some(&published("OLD"))) else {
        panic!("the old one stayed");
    };
    assert_eq!(replaced, published("NEW"));
}

#[test]
fn what_somebody_added_goes_and_labels_stay() {
    let mut edited = published("PEM");
    edited.metadata.annotations = None;
    edited.metadata.labels = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
    let mut expected = published("PEM");
    expected.metadata.labels.clone_from(&edited.metadata.labels);
    edited.data.get_or_insert_default().insert("extra".to_owned(), "x".to_owned());
    assert_eq!(plan_root_ca("PEM", Some(&edited)), Plan::Replace(expected));
}
