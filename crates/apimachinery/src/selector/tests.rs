use serde_json::{Map, Value};

use super::{field, label};
use crate::field::Path;
use crate::fixtures::{self, Step};
use crate::gvk::GroupKind;
use crate::status::Status;

#[test]
fn upstream_chooses_and_refuses_the_same() {
    for case in fixtures::load("selectors") {
        let mut made = Vec::new();
        for step in case.steps {
            let label = format!("{}: {:?} {:?}", case.name, step.request.query, step.request.body);
            if let Some(selector) = step.request.query.get("labelSelector") {
                let selector = label::Selector::parse(selector).map_err(|error| error.to_string());
                check(&step, &label, selector, |selector| chosen_by_label(&made, &selector));
            } else if let Some(selector) = step.request.query.get("fieldSelector") {
                let selector = parse_fields(selector, step.request.more.get("known"));
                check(&step, &label, selector, |selector| chosen_by_field(&made, &selector));
            } else if step.request.more.contains_key("kind") {
                check_object(&step, &label);
            } else {
                made.push(step.answer.body.unwrap()["metadata"].clone());
            }
        }
    }
}

/// The answer to a list is the names that `choose` gives, or the error.
fn check<S>(
    step: &Step,
    label: &str,
    selector: Result<S, String>,
    choose: impl Fn(S) -> Vec<String>,
) {
    let body = step.answer.body.as_ref().unwrap();
    match selector {
        Err(message) => assert_eq!(body["message"], message.as_str(), "{label}"),
        Ok(selector) => {
            assert_eq!(step.answer.status, 200, "{label}: {body}");
            let items = body["items"].as_array().into_iter().flatten();
            let names = items.map(|item| item["metadata"]["name"].as_str().unwrap());
            // Every namespace has a config map that the controllers put there, when they run.
            let names: Vec<_> = names.filter(|name| *name != "kube-root-ca.crt").collect();
            assert_eq!(names, choose(selector), "{label}");
        }
    }
}

fn chosen_by_label(made: &[Value], selector: &label::Selector) -> Vec<String> {
    let chosen = made.iter().filter(|metadata| selector.matches(&metadata["labels"].as_object()));
    chosen.map(name).collect()
}

fn chosen_by_field(made: &[Value], selector: &field::Selector) -> Vec<String> {
    let chosen = made.iter().filter(|metadata| {
        selector.matches(|field| match field {
            "metadata.name" => metadata["name"].as_str().unwrap(),
            "metadata.namespace" => metadata["namespace"].as_str().unwrap(),
            other => panic!("{other} was not refused"),
        })
    });
    chosen.map(name).collect()
}

fn name(metadata: &Value) -> String {
    metadata["name"].as_str().unwrap().to_owned()
}

fn parse_fields(selector: &str, known: Option<&Value>) -> Result<field::Selector, String> {
    let selector = field::Selector::parse(selector).map_err(|error| error.to_string())?;
    let supported = match known.and_then(Value::as_array) {
        Some(known) => selector.only(&known.iter().filter_map(Value::as_str).collect::<Vec<_>>()),
        None => selector.only_metadata(),
    };
    supported.map(|()| selector).map_err(|error| error.to_string())
}

fn check_object(step: &Step, label: &str) {
    let what = |map: &Map<String, Value>, key: &str| map[key].as_str().unwrap().to_owned();
    let body = step.request.body.as_ref().unwrap();
    let selector: label::LabelSelector =
        serde_json::from_value(body["spec"]["podSelector"].clone()).unwrap();
    let spec = Path::new("spec");
    let errors = selector.validate(label::Leniency::default(), &spec.child("podSelector"));
    if errors.is_empty() {
        assert_eq!(step.answer.status, 201, "{label}");
        return;
    }
    let more = &step.request.more;
    let status =
        Status::invalid(&GroupKind::new(what(more, "group"), what(more, "kind")), "a", &errors);
    assert_eq!(Some(serde_json::to_value(status).unwrap()), step.answer.body, "{label}");
}
