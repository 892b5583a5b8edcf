//! Replays of what upstream answered: definitions that it took or refused, and objects that went
//! through the schemas of those it took.

use serde_json::{Map, Value};

use super::crd::{self, Definition};
use super::*;
use crate::field::Path;
use crate::fixtures::{self, Answer, Request, Step};
use crate::json;
use crate::json::strict::{self, Violation};

#[test]
fn definitions_are_judged_as_upstream_judges_them() {
    replay("crd");
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    replay("prune");
}

#[test]
fn defaults_are_filled_in() {
    replay("default");
}

#[test]
fn values_are_judged_in_upstreams_words() {
    replay("validate");
}

#[test]
fn what_was_wrong_and_has_not_changed_may_stay() {
    replay("ratchet");
}

#[test]
fn rules_are_compiled_priced_and_enforced_as_upstream_does() {
    replay("rules");
}

fn replay(area: &str) {
    let mut steps = 0;
    let mut wrong = Vec::new();
    for case in fixtures::load(area) {
        let mut server = Server::default();
        for (index, step) in case.steps.iter().enumerate() {
            steps += 1;
            if let Err(difference) = server.play(step) {
                let tests = step.request.more.get("tests").and_then(Value::as_str).unwrap_or("");
                wrong.push(format!("{area}/{} step {index} ({tests}):\n{difference}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {steps} differ\n{}", wrong.len(), wrong.join("\n\n"));
}

/// What upstream holds between the steps of a case.
#[derive(Default)]
struct Server {
    definition: Option<Value>,
    objects: Map<String, Value>,
}

/// What came of a request: the object that is stored and what was warned of, or a refusal.
enum Verdict {
    Stored {
        object: Value,
        warnings: Vec<String>,
    },
    Invalid(Vec<crate::field::Error>),
    /// The end of the message of a request that cannot be read.
    Unreadable(String),
}

impl Server {
    fn play(&mut self, Step { request, answer }: &Step) -> Result<(), String> {
        let is_definition = request.path.contains("/customresourcedefinitions");
        if request.method == "GET" {
            self.store(answer, is_definition);
            return Ok(());
        }
        let body = as_read(request.body.as_ref().expect("every write has a body"));
        let verdict = match is_definition {
            true => self.judge_definition(&body, request),
            false => self.judge_object(&body, request),
        };
        if answer.status < 300 && !request.query.contains_key("dryRun") {
            self.store(answer, is_definition);
        }
        compare(verdict, answer, is_definition)
    }

    fn store(&mut self, answer: &Answer, is_definition: bool) {
        let stored = as_read(answer.body.as_ref().expect("what is stored is answered"));
        match is_definition {
            true => self.definition = Some(stored),
            false => {
                self.objects.insert(name(&stored), stored);
            }
        }
    }

    fn judge_definition(&self, body: &Value, request: &Request) -> Verdict {
        let mut object = body.clone();
        crd::default(&mut object);
        let Ok(mut definition) = Definition::parse(&object) else {
            return Verdict::Unreadable(String::new());
        };
        let (errors, warnings) = match request.method.as_str() {
            "POST" => {
                crd::prepare_create(&mut definition);
                (crd::validate_create(&definition), crd::warnings(&definition, None))
            }
            _ => {
                let old = self.definition.as_ref().expect("there is one to change");
                let old = Definition::parse(old).expect("upstream's answer is well formed");
                // A recording does not keep what the server fills in.
                for field in ["uid", "creationTimestamp", "generation"] {
                    if let Some(value) = old.metadata.get(field) {
                        definition.metadata.insert(field.to_owned(), value.clone());
                    }
                }
                crd::prepare_update(&mut definition, &old);
                let warnings = crd::warnings(&definition, Some(&old));
                (crd::validate_update(&definition, &old), warnings)
            }
        };
        match errors.is_empty() {
            true => Verdict::Stored { object, warnings },
            false => Verdict::Invalid(errors),
        }
    }

    fn judge_object(&self, body: &Value, request: &Request) -> Verdict {
        let definition = self.definition.as_ref().expect("objects need a definition");
        let definition = Definition::parse(definition).expect("upstream's answer is well formed");
        let version = definition.storage_version().expect("one version is stored");
        let mut schema = version.open_api_v3_schema().expect("it has a schema").clone();
        prune_defaults(&mut schema);

        let mut object = body.clone();
        let kind = &definition.spec.names.kind;
        if object["kind"] != kind.as_str() {
            return Verdict::Unreadable(String::new());
        }
        let mut unknown: Vec<String> =
            match normalize_object_meta(&object["metadata"], Malformed::Refuse) {
                Ok(normal) => {
                    normal.unknown.iter().map(|path| format!("metadata.{path}")).collect()
                }
                Err(error) => return Verdict::Unreadable(error),
            };
        unknown.extend(prune(&mut object, &schema));
        drop_nulls(&mut object, &schema);
        match coerce(&mut object, &schema, Malformed::Refuse) {
            Ok(paths) => unknown.extend(paths),
            Err(error) => return Verdict::Unreadable(error.to_string()),
        }
        let unknown: Vec<Violation> =
            unknown.into_iter().map(Violation::UnspecifiedField).collect();
        let mut warnings = match request.query.get("fieldValidation").map(String::as_str) {
            Some("Strict") if !unknown.is_empty() => {
                return Verdict::Unreadable(strict::error(&unknown));
            }
            Some("Ignore") => Vec::new(),
            _ => strict::warnings(&unknown),
        };
        default(&mut object, &schema);

        let old = self.objects.get(&name(body));
        let mut errors = if request.path.ends_with("/status") {
            let status = object.get_mut("status").map(Value::take);
            object = old.expect("only objects have a status").clone();
            put(&mut object, "status", status);
            validate_status(&object, old.expect("as above"), &schema)
        } else {
            if version.has_status() {
                put(&mut object, "status", old.and_then(|old| old.get("status")).cloned());
            }
            validate(&object, old, &schema)
        };
        if let Some(rules) = Rules::new(&schema) {
            let findings = rules.validate(&object, old, &schema, &errors);
            errors.extend(findings.errors);
            warnings.extend(findings.warnings);
        }
        match errors.is_empty() {
            true => Verdict::Stored { object, warnings },
            false => Verdict::Invalid(errors),
        }
    }
}

/// A tree as the decoder of requests makes it.
fn as_read(value: &Value) -> Value {
    json::decode(value.to_string().as_bytes()).expect("it is JSON").value
}

/// A tree as a client sees it, where `1.0` and `1` are the same.
fn as_written(value: &Value) -> Value {
    json::decode(&json::to_vec(value)).expect("it is JSON").value
}

fn put(object: &mut Value, name: &str, value: Option<Value>) {
    let map = object.as_object_mut().expect("objects are objects");
    match value {
        Some(value) => map.insert(name.to_owned(), value),
        None => map.remove(name),
    };
}

fn name(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn compare(verdict: Verdict, answer: &Answer, is_definition: bool) -> Result<(), String> {
    let body = answer.body.as_ref().expect("every answer has a body");
    let message = body["message"].as_str().unwrap_or_default();
    match (verdict, answer.status) {
        (Verdict::Stored { object, mut warnings }, 200 | 201) => {
            let mut expected = answer.warnings.clone();
            // Upstream finds them in no particular order.
            warnings.sort();
            expected.sort();
            if !is_definition {
                same(
                    &without_metadata(&as_written(&object)),
                    &without_metadata(&as_written(body)),
                )?;
            }
            same(&warnings, &expected)
        }
        (Verdict::Invalid(errors), 422) => {
            let mut found: Vec<_> = errors
                .iter()
                .map(|error| format!("{} {}: {}", error.kind.reason(), error.field, error.body()))
                .collect();
            let causes = body["details"]["causes"].as_array().expect("a refusal has causes");
            let mut expected: Vec<_> = causes
                .iter()
                .map(|cause| {
                    let text = |name: &str| cause[name].as_str().unwrap_or_default();
                    format!("{} {}: {}", text("reason"), text("field"), text("message"))
                })
                .collect();
            // Upstream walks through maps in no particular order.
            found.sort();
            expected.sort();
            same(&found, &expected)
        }
        (Verdict::Unreadable(why), 400) => match message.ends_with(&why) {
            true => Ok(()),
            false => Err(format!("  ours:     {why}\n  upstream: {message}")),
        },
        (verdict, status) => {
            let ours = match verdict {
                Verdict::Stored { .. } => "stored".to_owned(),
                Verdict::Invalid(errors) => format!("invalid: {errors:?}"),
                Verdict::Unreadable(why) => format!("unreadable: {why}"),
            };
            Err(format!("  ours:     {ours}\n  upstream: {status} {message}"))
        }
    }
}

fn without_metadata(object: &Value) -> Value {
    let mut object = object.clone();
    put(&mut object, "metadata", None);
    object
}

fn same<T: PartialEq + std::fmt::Debug>(found: &T, expected: &T) -> Result<(), String> {
    match found == expected {
        true => Ok(()),
        false => Err(format!("  ours:     {found:#?}\n  upstream: {expected:#?}")),
    }
}

#[test]
fn wide_and_wrong_input_costs_bounded_time_and_memory() {
    let schema = Structural::parse(&serde_json::json!({
        "type": "object",
        "properties": {
            "list": {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
            "map": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1}},
        },
    }))
    .expect("a schema");
    let list: Vec<Value> = (0..200_000).map(|index| Value::from(format!("{index}"))).collect();
    let map: Map<String, Value> =
        (0..100_000).map(|index| (format!("key-{index}"), "long".into())).collect();
    let mut object = serde_json::json!({"list": list, "map": map});
    let errors = validate(&object, Some(&object.clone()), &schema);
    assert!(errors.is_empty(), "nothing changed: {:?}", errors.first());
    let errors = validate(&object, None, &schema);
    assert_eq!(errors.len(), 10_000);

    for index in 0..100_000 {
        object[format!("unknown-{index}")] = Value::Null;
    }
    let unknown = prune(&mut object, &schema);
    assert_eq!(object.as_object().map(Map::len), Some(2));
    assert!(unknown.len() < 100_000 && unknown.is_sorted());
}

#[test]
fn a_schema_of_a_wrong_form_is_refused() {
    let check = |schema: Value, expected: &str| {
        let error = Structural::parse(&schema).expect_err("it is refused");
        assert_eq!(error.to_string(), expected);
    };
    check(serde_json::json!([]), "schema: JSON schema expected");
    check(serde_json::json!({"type": 5}), "type: string expected");
    check(serde_json::json!({"maxLength": 1.5}), "maxLength: integer expected");
    check(
        serde_json::json!({"properties": {"a": {"additionalProperties": "x"}}}),
        "additionalProperties: boolean or JSON schema expected",
    );
}

#[test]
fn embedded_objects_of_the_store_lose_what_cannot_be_read() {
    let schema = Structural::parse(&serde_json::json!({
        "type": "object",
        "x-kubernetes-embedded-resource": true,
        "x-kubernetes-preserve-unknown-fields": true,
    }))
    .expect("a schema");
    let mut object = serde_json::json!({
        "apiVersion": 1, "kind": "Pod",
        "metadata": {"name": "x", "labels": {"a": 1}, "generation": 2, "odd": true},
    });
    let unknown = coerce(&mut object, &schema, Malformed::Drop).expect("nothing is refused");
    assert_eq!(unknown, ["metadata.odd"]);
    assert_eq!(
        object,
        serde_json::json!({"kind": "Pod", "metadata": {"name": "x", "generation": 2}})
    );
    assert_eq!(
        validate_embedded(&object, &schema),
        [crate::field::Error::required(&Path::new("apiVersion"), "")],
    );
}
