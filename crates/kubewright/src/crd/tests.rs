//! Types against what becomes of their definitions.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::*;

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[kube(group = "example.com", version = "v1", kind = "Pet", namespaced, status = "PetStatus")]
#[serde(rename_all = "camelCase")]
struct PetSpec {
    #[x_kube(validation = Rule::new("self == oldSelf").message("a name stays"))]
    name: String,
    legs: u8,
    /// In grams.
    weight: u32,
    steps: Option<u64>,
    friends: Vec<i16>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
struct PetStatus {
    #[serde(default)]
    conditions: Vec<Condition>,
}

fn schema(definition: &CustomResourceDefinition, path: &str) -> Value {
    let value = json!(definition);
    let schema = &value["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema.pointer(path).unwrap_or_else(|| panic!("no {path} in {schema}")).clone()
}

#[test]
fn a_definition_that_the_server_takes_is_complete() {
    let definition = definition::<Pet>().expect("it is taken");
    let number = |name: &str| {
        let mut field = schema(&definition, &format!("/properties/spec/properties/{name}"));
        field.as_object_mut().expect("an object").remove("description");
        field
    };
    assert_eq!(
        number("legs"),
        json!({"type": "integer", "format": "int32", "minimum": 0.0, "maximum": 255.0})
    );
    assert_eq!(
        number("weight"),
        json!({"type": "integer", "format": "int64", "minimum": 0.0, "maximum": 4_294_967_295.0})
    );
    assert_eq!(
        number("steps"),
        json!({"type": "integer", "format": "int64", "minimum": 0.0, "nullable": true})
    );
    assert_eq!(number("friends")["items"]["format"], "int32");
    let conditions = schema(&definition, "/properties/status/properties/conditions");
    assert_eq!(conditions["x-kubernetes-list-type"], "map");
    assert_eq!(conditions["x-kubernetes-list-map-keys"], json!(["type"]));
}

/// All that is wrong with a definition, as `where: what` in a few words.
fn check_refused<K: CustomResourceExt>(expected: &[&str]) {
    let CrdError::Refused { name, faults } = definition::<K>().expect_err("it is refused") else {
        panic!("it is refused for another reason");
    };
    assert_eq!(name, K::crd_name());
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.contains(expected), "{fault}");
    }
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[kube(group = "example.com", version = "v1", kind = "Typo", namespaced)]
struct TypoSpec {
    #[x_kube(validation = Rule::new("self.size( < 3"))]
    first: String,
    #[x_kube(validation = Rule::new("self > 3"))]
    second: String,
}

#[test]
fn rules_that_do_not_compile_are_told_with_their_place() {
    check_refused::<Typo>(&[
        "properties[spec].properties[first].x-kubernetes-validations[0].rule",
        "found no matching overload for '_>_' applied to '(string, int)'",
    ]);
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[kube(group = "example.com", version = "v1", kind = "Costly", namespaced)]
#[x_kube(validation = Rule::new("self.names.all(a, self.names.all(b, self.names.all(c, a != b || b != c)))"))]
struct CostlySpec {
    names: Vec<String>,
}

#[test]
fn a_rule_that_costs_too_much_is_refused() {
    let error = definition::<Costly>().expect_err("it is refused").to_string();
    assert!(error.contains("estimated rule cost exceeds budget"), "{error}");
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "example.com",
    version = "one",
    kind = "Named",
    namespaced,
    selectable = "spec.other"
)]
struct NamedSpec {
    name: String,
}

#[test]
fn names_and_paths_are_checked_too() {
    let error = definition::<Named>().expect_err("it is refused").to_string();
    assert!(error.contains("spec.selectableFields[0].jsonPath: Invalid value"), "{error}");
}

mod v2 {
    use super::*;

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.com", version = "v2", kind = "Pet", namespaced, storage = false)]
    pub(super) struct PetSpec {
        title: String,
    }
}

#[test]
fn versions_become_one_definition() {
    let definition = versions(vec![v2::Pet::crd(), Pet::crd()], "v1").expect("it is taken");
    let names: Vec<_> =
        definition.spec.versions.iter().map(|it| (it.name.as_str(), it.storage)).collect();
    assert_eq!(names, [("v1", true), ("v2", false)]);
    let error = versions(vec![Pet::crd(), Typo::crd()], "v1").expect_err("they are two kinds");
    assert!(matches!(error, CrdError::Versions(_)));
}
