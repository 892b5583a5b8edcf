use kube::api::ObjectMeta;

use super::*;
use crate::pet::v1alpha1::PetSpec;

fn thor() -> Pet {
    let birthday = "2021-04-01T00:00:00Z".parse().expect("a moment");
    let spec = PetSpec { name: "Thor".to_owned(), kind: PetType::Dog, birthday };
    let metadata = ObjectMeta { uid: Some("u".to_owned()), ..ObjectMeta::default() };
    Pet { metadata, spec, status: None }
}

fn stored(id: &str) -> proto::Pet {
    proto::Pet { id: id.to_owned(), ..wanted(&thor()) }
}

#[test]
fn a_pet_that_is_not_there_is_added_under_the_uid() {
    let Plan::Add(added) = plan(wanted(&thor()), None) else { panic!("it is not added") };
    assert_eq!((added.id.as_str(), added.key.as_str()), ("", "u"));
    assert_eq!((added.name.as_str(), added.r#type()), ("Thor", proto::PetType::Dog));
    assert_eq!(added.birthday, Some(prost_types::Timestamp { seconds: 1_617_235_200, nanos: 0 }));
}

#[test]
fn a_pet_that_is_as_it_should_be_is_left_alone() {
    assert_eq!(plan(wanted(&thor()), Some(stored("1"))), Plan::Nothing { id: "1".to_owned() });
    // Whatever brought it there.
    let other = proto::Pet { key: "other".to_owned(), ..stored("1") };
    assert_eq!(plan(wanted(&thor()), Some(other)), Plan::Nothing { id: "1".to_owned() });
}

#[test]
fn a_pet_that_differs_is_updated() {
    let before = |change: fn(&mut proto::Pet)| {
        let mut found = stored("1");
        change(&mut found);
        assert_eq!(plan(wanted(&thor()), Some(found)), Plan::Update(stored("1")));
    };
    before(|pet| pet.name = "Tron".to_owned());
    before(|pet| pet.set_type(proto::PetType::Cat));
    before(|pet| pet.birthday = None);
}

#[test]
fn moments_before_1970_are_moments() {
    let check = |moment: &str, seconds: i64, nanos: i32| {
        let moment: Timestamp = moment.parse().expect("a moment");
        assert_eq!(timestamp(moment), prost_types::Timestamp { seconds, nanos });
    };
    check("1970-01-01T00:00:00.25Z", 0, 250_000_000);
    check("1969-12-31T23:59:59Z", -1, 0);
    check("1969-12-31T23:59:59.75Z", -1, 750_000_000);
}
