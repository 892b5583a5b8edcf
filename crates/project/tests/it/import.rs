//! Generated types are what is committed, compile, and keep objects as they are.

#[expect(dead_code, unreachable_pub, reason = "they are what a project would have")]
pub(crate) mod imported;
mod real;

use std::path::{Path, PathBuf};
use std::{env, fs};

use kube::Resource;
use kubewright_project::{definition, import};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use self::imported::zoo::v1::{
    Zoo, ZooFeeding, ZooMachine, ZooShift, ZooSpec, ZooTickets, ZooType,
};
use self::imported::{boat, harbor, option, zoo};

/// Set, the generated files are written and not compared.
const BLESS: &str = "KUBEWRIGHT_BLESS";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/import")
}

fn check_generated(crd: &str, module: &str) {
    let sources = definition::read(&folder().join("crds").join(crd)).expect("read");
    assert_eq!(import::module_name(&sources[0].definition), module);
    let options = import::Options::default();
    let text = import::generate(&sources[0].definition, &options).expect("generated");
    let path = folder().join("imported").join(format!("{module}.rs"));
    if env::var_os(BLESS).is_some() {
        fs::write(&path, text).expect("written");
        return;
    }
    let committed = fs::read_to_string(&path).expect("committed");
    assert_eq!(text, committed, "run with {BLESS}=1, and read what has changed");
}

#[test]
fn generated_modules_are_what_is_committed() {
    check_generated("zoo.yaml", "zoo");
    check_generated("ledger.yaml", "option");
    check_generated("boat.yaml", "boat");
    check_generated("harbor.yaml", "harbor");
}

/// Reads and writes the object, which stays as it is.
fn keep<K: DeserializeOwned + Serialize>(object: &Value) -> K {
    let read: K = serde_json::from_value(object.clone()).expect("it is read");
    assert_eq!(serde_json::to_value(&read).expect("it is written"), *object);
    read
}

#[test]
fn an_object_with_everything_is_kept() {
    let object = json!({
        "apiVersion": "example.com/v1",
        "kind": "Zoo",
        "metadata": {"name": "north", "namespace": "town", "labels": {"a": "b"}},
        "spec": {
            "name": "North", "type": "in-progress", "self": "s", "async": true,
            "podIPs": ["10.0.0.1"], "2nd-floor": false, "fooBar": "1", "foo_bar": "2",
            "size": 3, "area": 9_000_000_000_i64, "height": 1.5, "level": 2,
            "port": "http", "memory": 8_589_934_592_i64,
            "weights": {"lion": 190.5}, "labels": {"x": "y"},
            "keepers": {"lion": [{"name": "Ann", "shift": "Day"}, {"name": "Bob"}]},
            "maybe": ["a", null], "anything": [1, {"a": null}], "settings": {"deep": {"er": 1}},
            "options": {"rest": "r", "more": true},
            "template": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}},
            "job": {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"count": 1}},
            "feeding": {"machine": {"model": "x"}}, "tickets": {"price": 5},
            "gate": {"north": "n", "width": 2}, "marker": {},
            "zoo": {"zoo": {"name": "inner"}},
            "first": {"address": {"street": "a"}}, "second": {"address": {"street": "b"}},
            "third": {"address": {"mail": "c"}},
        },
        "status": {
            "observedGeneration": 4,
            "conditions": [{
                "lastTransitionTime": "2030-01-01T00:00:00Z", "message": "", "reason": "Fine",
                "status": "True", "type": "Ready",
            }],
        },
    });
    // The order of fields is the schema's; what an object says is not in it.
    let zoo: Zoo = keep(&object);
    assert_eq!(zoo.spec.r#type, ZooType::InProgress);
    assert_eq!(zoo.spec.keepers.expect("keepers")["lion"][0].shift, Some(ZooShift::Day));
    assert_eq!(zoo.spec.tickets, Some(ZooTickets::Price(5)));
    assert_eq!(zoo.spec.self_.as_deref(), Some("s"));
}

#[test]
fn values_that_the_definition_does_not_know_yet_are_kept() {
    let mut object = serde_json::to_value(minimal()).expect("written");
    object["spec"]["type"] = json!("Seasonal");
    let zoo: Zoo = keep(&object);
    assert_eq!(zoo.spec.r#type, ZooType::Other("Seasonal".to_owned()));
}

fn minimal() -> Zoo {
    Zoo::new(
        "small",
        ZooSpec {
            name: "Small".to_owned(),
            r#type: ZooType::Open,
            size: 1,
            weights: Default::default(),
            field_2nd_floor: false,
            feeding: ZooFeeding::Machine(ZooMachine { model: "x".to_owned() }),
            ..empty_spec()
        },
    )
}

/// A spec with a choice that must be made has no default.
fn empty_spec() -> ZooSpec {
    let fields = json!({
        "name": "", "type": "Open", "size": 0, "weights": {}, "2nd-floor": true,
        "feeding": {"byHand": {}},
    });
    serde_json::from_value(fields).expect("what is required is there")
}

#[test]
fn what_may_be_left_out_is_left_out() {
    assert_eq!(
        serde_json::to_value(minimal()).expect("written"),
        json!({
            "apiVersion": "example.com/v1",
            "kind": "Zoo",
            "metadata": {"name": "small"},
            "spec": {
                "name": "Small", "type": "Open", "size": 1, "weights": {}, "2nd-floor": false,
                "feeding": {"machine": {"model": "x"}},
            },
        })
    );
    let missing = json!({"metadata": {}, "spec": {"name": "x"}});
    serde_json::from_value::<Zoo>(missing).expect_err("what is required is not there");
}

#[test]
fn kinds_know_what_they_are_called() {
    assert_eq!(Zoo::plural(&()), "zoos");
    assert_eq!(Zoo::api_version(&()), "example.com/v1");
    assert_eq!(zoo::v1alpha1::Zoo::api_version(&()), "example.com/v1alpha1");
    assert_eq!(option::OptionResource::kind(&()), "Option");
    let path = option::OptionResource::url_path(&(), None);
    assert_eq!(path, "/apis/books.example.com/v1/options");
    keep::<zoo::v1alpha1::Zoo>(&json!({
        "apiVersion": "example.com/v1alpha1", "kind": "Zoo", "metadata": {},
    }));
}

#[test]
fn kinds_without_a_spec_or_without_a_schema_are_kept() {
    let object = json!({
        "apiVersion": "books.example.com/v1", "kind": "Option", "metadata": {"name": "a"},
        "entries": [{"amount": 1, "because": "x"}, {"amount": -2}],
        "security-labels": {"k": "v"},
    });
    let ledger: option::OptionResource = keep(&object);
    assert_eq!(ledger.entries[1].amount, -2);
    let made = option::OptionResource::new("a", Vec::new());
    assert_eq!(made.metadata.name.as_deref(), Some("a"));
    keep::<boat::Boat>(&json!({
        "apiVersion": "example.com/v1", "kind": "Boat", "metadata": {"name": "a"},
        "spec": {"oars": 2}, "status": {"afloat": true},
    }));
}

/// In `v1beta1` clusters keep what a schema does not name, at whatever depth; it used to be lost.
#[test]
fn what_a_definition_keeps_is_kept_at_any_depth() {
    let object = |version: &str| {
        json!({
            "apiVersion": format!("example.com/{version}"), "kind": "Harbor",
            "metadata": {"name": "north"}, "more": 1,
            "spec": {
                "depth": 9, "more": "m",
                "moorings": [{"place": "a", "more": [1]}],
                "pilots": {"x": {"name": "Ann", "more": true}},
                "dues": {"yearly": 5, "more": {}},
            },
            "status": {
                "conditions": [{
                    "lastTransitionTime": "2030-01-01T00:00:00Z", "message": "", "reason": "Fine",
                    "status": "True", "type": "Ready", "more": null,
                }],
            },
        })
    };
    let harbor: harbor::v1::Harbor = keep(&object("v1"));
    assert_eq!(harbor.spec.rest["more"], "m");
    keep::<harbor::v1alpha1::Harbor>(&object("v1alpha1"));
}

#[test]
fn clients_and_caches_are_typed() {
    // That it compiles is the claim: nothing is asked of a cluster here.
    fn uses(client: kube::Client, cache: &kubewright::Cache) {
        let _: kube::Api<Zoo> = Zoo::api(client.clone(), "town");
        let _: kube::Api<Zoo> = Zoo::api_everywhere(client.clone());
        let _: kube::Api<option::OptionResource> = option::OptionResource::api(client);
        let scope = kubewright::informer::Scope::default();
        let _: kubewright::informer::Informer<Zoo> = Zoo::cached(cache, &scope);
    }
    let _ = uses;
}
