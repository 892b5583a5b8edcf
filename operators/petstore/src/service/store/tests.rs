use tempfile::TempDir;

use super::*;
use crate::proto::{PetType, SearchPetsRequest};

fn pet(name: &str, key: &str) -> Pet {
    Pet {
        name: name.to_owned(),
        r#type: PetType::Dog.into(),
        birthday: Some(prost_types::Timestamp { seconds: 0, nanos: 0 }),
        key: key.to_owned(),
        ..Pet::default()
    }
}

fn fresh() -> (TempDir, Store) {
    let dir = tempfile::tempdir().expect("a directory");
    let store = Store::open(dir.path()).expect("a store");
    (dir, store)
}

/// The names of the pets that fit, in alphabetical order.
fn names(store: &Store, request: SearchPetsRequest) -> Vec<String> {
    let filter = Filter::new(request).expect("it can be asked for");
    let found = store.search(filter).expect("an answer");
    let mut names: Vec<_> = found.map(|pet| pet.expect("a pet").name).collect();
    names.sort();
    names
}

fn all(store: &Store) -> Vec<String> {
    names(store, SearchPetsRequest::default())
}

#[test]
fn a_pet_that_is_added_again_is_the_same_pet() {
    let (_dir, store) = fresh();
    let first = store.add(vec![pet("Thor", "a"), pet("Tron", "b")]).expect("added");
    let again = store.add(vec![pet("Thorbert", "a"), pet("Rex", "c"), pet("Rex", "c")]);
    let again = again.expect("added");
    assert_eq!(first[0], again[0]);
    assert_eq!(again[1], again[2]);
    assert_eq!(all(&store), ["Rex", "Thor", "Tron"]);
    // Without keys nobody can tell.
    store.add(vec![pet("Rex", ""), pet("Rex", "")]).expect("added");
    assert_eq!(all(&store), ["Rex", "Rex", "Rex", "Thor", "Tron"]);
}

#[test]
fn all_pets_are_updated_or_none() {
    let (_dir, store) = fresh();
    let ids = store.add(vec![pet("Thor", "a")]).expect("added");
    let thorbert = Pet { id: ids[0].clone(), ..pet("Thorbert", "") };
    let nobody = Pet { id: "nobody".to_owned(), ..pet("Nobody", "") };
    let refused = store.update(vec![thorbert.clone(), nobody]);
    assert!(matches!(refused, Err(StoreError::Missing { id }) if id == "nobody"));
    assert_eq!(all(&store), ["Thor"]);
    store.update(vec![thorbert]).expect("updated");
    assert_eq!(all(&store), ["Thorbert"]);
    // It is still known by its key.
    assert_eq!(store.add(vec![pet("Thor", "a")]).expect("known"), ids);
}

#[test]
fn a_pet_goes_with_its_key() {
    let (_dir, store) = fresh();
    let first = store.add(vec![pet("Thor", "a")]).expect("added");
    store.delete(&[first[0].clone(), "nobody".to_owned(), String::new()]).expect("deleted");
    assert!(all(&store).is_empty());
    let second = store.add(vec![pet("Thor", "a")]).expect("added");
    assert_ne!(first, second);
}

#[test]
fn few_are_found_as_all_are() {
    let (_dir, store) = fresh();
    let ids = store.add(vec![pet("Thor", "a"), pet("Tron", "b"), pet("Rex", "c")]).expect("added");
    let request = |ids: &[&String], keys: &[&str], names: &[&str]| SearchPetsRequest {
        ids: ids.iter().map(|&id| id.clone()).collect(),
        keys: keys.iter().map(|&key| key.to_owned()).collect(),
        names: names.iter().map(|&name| name.to_owned()).collect(),
        ..SearchPetsRequest::default()
    };
    assert_eq!(names(&store, request(&[&ids[0], &"x".to_owned()], &[], &[])), ["Thor"]);
    assert_eq!(names(&store, request(&[], &["b", "c", "x"], &[])), ["Rex", "Tron"]);
    assert_eq!(names(&store, request(&[], &["b", "c"], &["Rex"])), ["Rex"]);
    assert_eq!(names(&store, request(&[&ids[0]], &["b"], &[])), [""; 0]);
}

#[test]
fn pets_survive_their_store() {
    let (dir, store) = fresh();
    let ids = store.add(vec![pet("Thor", "a"), pet("Tron", "b")]).expect("added");
    store.delete(&ids[1..]).expect("deleted");
    drop(store);
    let store = Store::open(dir.path()).expect("opened again");
    assert_eq!(all(&store), ["Thor"]);
    assert_eq!(store.add(vec![pet("Thor", "a")]).expect("known"), ids[..1]);
}

#[test]
fn a_directory_is_open_once() {
    let (dir, _store) = fresh();
    assert!(matches!(Store::open(dir.path()), Err(OpenError::Locked { .. })));
}
