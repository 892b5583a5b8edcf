use std::collections::BTreeMap;

use kube::api::ObjectMeta;

use super::*;

fn stored(birthday: &str, annotations: &[(&str, &str)]) -> v1alpha1::Pet {
    let birthday = birthday.parse().expect("a moment");
    let spec = v1alpha1::PetSpec { name: "Thor".to_owned(), kind: PetType::Dog, birthday };
    let status = Some(PetStatus { id: Some("1".to_owned()), ..PetStatus::default() });
    v1alpha1::Pet { metadata: metadata(annotations), spec, status }
}

fn daily(birthday: &str, annotations: &[(&str, &str)]) -> Pet {
    let birthday = birthday.parse().expect("a day");
    let spec = PetSpec { name: "Thor".to_owned(), kind: PetType::Dog, birthday };
    let status = Some(PetStatus { id: Some("1".to_owned()), ..PetStatus::default() });
    Pet { metadata: metadata(annotations), spec, status }
}

fn metadata(annotations: &[(&str, &str)]) -> ObjectMeta {
    let owned = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
    let annotations: BTreeMap<_, _> = annotations.iter().map(owned).collect();
    let annotations = Some(annotations).filter(|annotations| !annotations.is_empty());
    ObjectMeta { name: Some("thor".to_owned()), annotations, ..ObjectMeta::default() }
}

/// Both say the same, on the way there and back.
fn check(stored: &v1alpha1::Pet, daily: &Pet) {
    assert_eq!(&Pet::from_hub(stored.clone()).expect("a day"), daily);
    let mut back = daily.clone().into_hub().expect("a moment");
    // No annotations are as good as none.
    back.metadata.annotations = back.metadata.annotations.filter(|them| !them.is_empty());
    assert_eq!(&back, stored);
}

#[test]
fn a_day_begins_at_midnight() {
    check(&stored("2021-04-01T00:00:00Z", &[]), &daily("2021-04-01", &[]));
    check(&stored("1969-12-31T00:00:00Z", &[]), &daily("1969-12-31", &[]));
    check(&stored("2020-02-29T00:00:00Z", &[("a", "b")]), &daily("2020-02-29", &[("a", "b")]));
}

#[test]
fn the_time_of_the_day_is_kept_aside() {
    let noon = "2021-04-01T12:00:00Z";
    check(&stored(noon, &[]), &daily("2021-04-01", &[(BIRTHDAY, noon)]));
    check(&stored(noon, &[("a", "b")]), &daily("2021-04-01", &[("a", "b"), (BIRTHDAY, noon)]));
    let exact = "1969-12-31T23:59:59.000000001Z";
    check(&stored(exact, &[]), &daily("1969-12-31", &[(BIRTHDAY, exact)]));
    // The day is that of UTC.
    let late = stored("2021-04-01T00:30:00+02:00", &[]);
    check(&late, &daily("2021-03-31", &[(BIRTHDAY, "2021-03-31T22:30:00Z")]));
}

#[test]
fn a_day_that_is_changed_begins_at_midnight() {
    for aside in ["2021-04-01T12:00:00Z", "nonsense"] {
        let pet = daily("2021-04-02", &[(BIRTHDAY, aside)]).into_hub().expect("a moment");
        assert_eq!(pet.spec.birthday, "2021-04-02T00:00:00Z".parse().expect("a moment"));
        assert_eq!(pet.metadata.annotations, Some(BTreeMap::new()));
    }
}

#[test]
fn a_day_before_all_time_is_refused() {
    assert!(daily("-009999-01-01", &[]).into_hub().is_err());
}
