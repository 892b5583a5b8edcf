use std::sync::Arc;

use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::json;

use super::{Kept, Opener, Project};
use crate::panics::Panics;

fn opener(is_text: bool) -> Opener<ConfigMap> {
    let project = |object: &mut ConfigMap| object.metadata.managed_fields = None;
    let texts = is_text.then(Arc::default);
    let project: Project<ConfigMap> = Arc::new(project);
    let panics = Panics::of("ConfigMap");
    Opener { kind: "ConfigMap".into(), project: Some(project), write: None, texts, panics }
}

fn map() -> String {
    let fields = json!({ "f:data": { "f:a": {} } });
    json!({
        "metadata": {
            "name": "map",
            "namespace": "shop",
            "resourceVersion": "7",
            "managedFields": [{ "manager": "me", "fieldsV1": fields }],
            "labels": { "app": "shop" },
        },
        "data": { "a": "[1]" },
    })
    .to_string()
}

#[test]
fn an_object_is_the_same_however_it_is_kept() {
    let [text, object] = [true, false].map(|is_text| {
        let opener = opener(is_text);
        let arrival = opener.take(&map(), false).unwrap_or_else(|_| panic!("it is a ConfigMap"));
        assert_eq!((arrival.key.as_str(), arrival.version.as_str()), ("shop/map", "7"));
        assert_eq!(matches!(arrival.kept, Kept::Text { .. }), is_text);
        opener.open(&arrival.kept).expect("a ConfigMap")
    });
    assert_eq!(text, object);
    assert_eq!(text.metadata.managed_fields, None);
    assert_eq!(text.data.as_ref().expect("data")["a"], "[1]");
}

#[test]
fn a_text_is_kept_without_the_record_of_who_set_what() {
    let opener = opener(true);
    let arrival = opener.take(&map(), false).unwrap_or_else(|_| panic!("it is a ConfigMap"));
    let Kept::Text { short, bytes } = arrival.kept else { panic!("it is kept as text") };
    let text = opener.text(&short).expect("there was a text");
    assert_eq!(text.len(), bytes);
    assert!(text.contains(r#""managedFields":[]"#), "{text}");
    assert!(text.contains(r#""labels":{"app":"shop"}"#), "{text}");
}

#[test]
fn what_is_not_of_the_kind_is_left_out() {
    let misfit = json!({
        "metadata": { "name": "map", "resourceVersion": "7" }, "data": "none",
    });
    let refused = opener(false).take(&misfit.to_string(), true).err().expect("it is refused");
    assert_eq!((refused.key.as_str(), refused.version.as_str()), ("map", "7"));
    let opener = opener(true);
    assert!(opener.take(&misfit.to_string(), true).is_err());
    let taken = opener.take(&misfit.to_string(), false);
    let taken = taken.unwrap_or_else(|_| panic!("a text is not looked into"));
    assert_eq!(opener.open(&taken.kept), None);
}
