use super::*;

fn pet(name: &str, kind: PetType, birthday: &str) -> Pet {
    let birthday: Timestamp = birthday.parse().expect("a moment");
    Pet {
        id: format!("id-of-{name}"),
        name: name.to_owned(),
        r#type: kind.into(),
        birthday: Some(prost_types::Timestamp { seconds: birthday.as_second(), nanos: 0 }),
        key: format!("key-of-{name}"),
    }
}

fn at(moment: &str) -> Option<prost_types::Timestamp> {
    pet("", PetType::Dog, moment).birthday
}

/// Says which of two dogs and a cat are found.
fn check_search(request: SearchPetsRequest, expected: &[&str]) {
    let pets = [
        pet("Thor", PetType::Dog, "2021-04-01T00:00:00Z"),
        pet("Tron", PetType::Cat, "2020-06-25T00:00:00Z"),
        pet("Rex", PetType::Dog, "2020-01-01T12:00:00Z"),
    ];
    let filter = Filter::new(request).expect("it can be asked for");
    let found: Vec<_> =
        pets.iter().filter(|pet| filter.fits(pet)).map(|pet| pet.name.as_str()).collect();
    assert_eq!(found, expected);
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn whatever_is_not_asked_for_does_not_matter() {
    check_search(SearchPetsRequest::default(), &["Thor", "Tron", "Rex"]);
}

#[test]
fn one_of_several_values_must_fit() {
    let request = |wanted: &[&str]| SearchPetsRequest {
        names: names(wanted),
        ..SearchPetsRequest::default()
    };
    check_search(request(&["Thor", "Rex", "Nobody"]), &["Thor", "Rex"]);
    check_search(request(&["thor"]), &[]);
    let types = vec![PetType::Cat.into(), PetType::Bird.into()];
    check_search(SearchPetsRequest { types, ..SearchPetsRequest::default() }, &["Tron"]);
}

#[test]
fn all_that_is_asked_for_must_fit() {
    let (names, types) = (names(&["Thor", "Tron"]), vec![PetType::Dog.into()]);
    check_search(SearchPetsRequest { names, types, ..SearchPetsRequest::default() }, &["Thor"]);
}

#[test]
fn a_range_begins_with_its_first_moment_and_ends_before_its_last() {
    let request = |from, until| SearchPetsRequest {
        birthdays: Some(BirthdayRange { from, until }),
        ..SearchPetsRequest::default()
    };
    let (tron, thor) = (at("2020-06-25T00:00:00Z"), at("2021-04-01T00:00:00Z"));
    check_search(request(tron, thor), &["Tron"]);
    check_search(request(tron, None), &["Thor", "Tron"]);
    check_search(request(None, tron), &["Rex"]);
    check_search(request(thor, tron), &[]);
}

#[test]
fn ids_and_keys_are_asked_for_like_anything_else() {
    let (ids, keys) = (names(&["id-of-Thor", "id-of-Rex"]), names(&["key-of-Rex"]));
    check_search(SearchPetsRequest { ids, keys, ..SearchPetsRequest::default() }, &["Rex"]);
}

#[test]
fn what_is_no_pet_is_told_why() {
    let thor = || pet("Thor", PetType::Dog, "2021-04-01T00:00:00Z");
    let check = |pet: Pet, expected: Result<(), &str>| {
        assert_eq!(check(&pet), expected.map_err(str::to_owned));
    };
    check(thor(), Ok(()));
    check(Pet { name: String::new(), ..thor() }, Err("a pet has a name"));
    check(Pet { r#type: 0, ..thor() }, Err("no type of pets is 0"));
    check(Pet { r#type: 9, ..thor() }, Err("no type of pets is 9"));
    check(Pet { birthday: None, ..thor() }, Err("a pet has a birthday"));
    let never = prost_types::Timestamp { seconds: i64::MAX, nanos: 0 };
    let refused = super::check(&Pet { birthday: Some(never), ..thor() });
    assert!(refused.expect_err("no moment").contains("is no moment"));
}
