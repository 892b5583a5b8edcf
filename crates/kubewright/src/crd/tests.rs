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

/// `kubectl explain` began with a sentence about a macro of Rust.
#[test]
fn a_kind_is_what_its_spec_is_unless_its_author_says_it() {
    /// A ship.
    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Ship", namespaced)]
    struct ShipSpec {}

    #[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Boat", namespaced, doc = "A small one.")]
    struct BoatSpec {}

    fn check<K: CustomResourceExt>(expected: Option<&str>) {
        let whole = schema(&definition::<K>().expect("it is taken"), "");
        assert_eq!(whole["description"].as_str(), expected);
    }
    check::<Ship>(Some("A ship."));
    check::<Boat>(Some("A small one."));
    // Nobody has said anything.
    check::<Pet>(None);
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

#[derive(Clone, Debug, PartialEq, Union)]
enum Food {
    Nothing,
    /// From a can.
    Canned(Can),
    #[union(value = "fresh", field = "namespace")]
    Fresh(Fresh),
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
struct Can {
    grams: u16,
}

#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
struct Fresh {
    kind: String,
}

#[derive(CustomResource, Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Meal", namespaced)]
struct MealSpec {
    food: Food,
    dessert: Option<Food>,
}

#[test]
fn a_union_has_a_field_for_each_variant_and_one_that_says_which() {
    let round_trip = |food: Food, object: Value| {
        assert_eq!(json!(food), object);
        assert_eq!(serde_json::from_value::<Food>(object).expect("a union"), food);
    };
    round_trip(Food::Nothing, json!({"type": "Nothing"}));
    round_trip(
        Food::Canned(Can { grams: 400 }),
        json!({"type": "Canned", "canned": {"grams": 400}}),
    );
    round_trip(
        Food::Fresh(Fresh { kind: "fish".to_owned() }),
        json!({"type": "fresh", "namespace": {"kind": "fish"}}),
    );
}

#[test]
fn a_union_without_its_field_is_refused_and_another_passed_over() {
    let read = |object: Value| serde_json::from_value::<Food>(object);
    let refusal = |object: Value| read(object).expect_err("it is refused").to_string();
    assert_eq!(refusal(json!({"type": "Canned"})), "missing field `canned`");
    assert_eq!(refusal(json!({"canned": {"grams": 1}})), "missing field `type`");
    let unknown = "unknown variant `Frozen`, expected one of `Nothing`, `Canned`, `fresh`";
    assert_eq!(refusal(json!({"type": "Frozen"})), unknown);
    let other = read(json!({"type": "Nothing", "canned": {"grams": 1}}));
    assert_eq!(other.expect("a union"), Food::Nothing);
}

#[test]
fn the_server_takes_the_schema_of_a_union_and_its_rules() {
    let definition = definition::<Meal>().expect("it is taken");
    let food = schema(&definition, "/properties/spec/properties/food");
    assert_eq!(food["properties"]["type"]["enum"], json!(["Nothing", "Canned", "fresh"]));
    assert_eq!(food["properties"]["canned"]["description"], "From a can.");
    assert_eq!(food["required"], json!(["type"]));
    let rules: Vec<_> = food["x-kubernetes-validations"]
        .as_array()
        .expect("rules")
        .iter()
        .map(|rule| rule["rule"].as_str().expect("a rule"))
        .collect();
    assert_eq!(
        rules,
        [
            "has(self.canned) == (self.type == 'Canned')",
            "has(self.__namespace__) == (self.type == 'fresh')",
        ]
    );
    let dessert = schema(&definition, "/properties/spec/properties/dessert");
    assert_eq!(dessert["nullable"], true);
    assert_eq!(dessert["type"], "object");
}
