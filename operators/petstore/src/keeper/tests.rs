use kube::api::ObjectMeta;
use serde_json::json;

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

#[test]
fn its_manifests_have_the_names_and_rights_that_it_needs() {
    let package = package(&Uri::from_static("http://store"));
    let manifests = package.render().expect("manifests");
    let find = |kind: &str, name: &str| {
        let found = manifests.iter().find(|it| it.kind() == kind && it.name() == name);
        found.unwrap_or_else(|| panic!("no {kind} {name}")).object.clone()
    };
    let deployment = find("Deployment", "petstore-operator-controller-manager");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["name"], "manager");
    let arguments = container["args"].as_array().expect("arguments");
    assert!(arguments.contains(&json!("--store=http://store/")), "{arguments:?}");
    let definition = find("CustomResourceDefinition", "pets.petstore.example.com");
    assert_eq!(definition["spec"]["conversion"]["strategy"], "Webhook");
    let versions = definition["spec"]["versions"].as_array().expect("versions");
    let versions: Vec<_> = versions.iter().map(|it| (&it["name"], &it["storage"])).collect();
    assert_eq!(versions, [(&json!("v1alpha1"), &json!(true)), (&json!("v1beta1"), &json!(false))]);
    let role = find("ClusterRole", "petstore-operator-manager-role");
    let rules = role["rules"].as_array().expect("rules");
    for resource in ["pets", "pets/status", "pets/finalizers"] {
        let is_there = |rule: &serde_json::Value| {
            rule["resources"].as_array().is_some_and(|all| all.contains(&json!(resource)))
        };
        assert!(rules.iter().any(is_there), "{resource}: {role}");
    }
}
