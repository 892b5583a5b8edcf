use std::collections::HashSet;

use serde_json::json;

use super::*;
use crate::fixtures::{self, Request, Step};
use crate::json::{self, strict};
use crate::proto;

fn member(kind: &Kind, path: &str) -> &'static Field {
    let mut ty = kind.ty();
    let mut names = path.split('.').peekable();
    while let Some(name) = names.next() {
        let field = ty.field(name).unwrap_or_else(|| panic!("{} has {name}", ty.name));
        if names.peek().is_none() {
            return field;
        }
        ty = element(&field.ty).get();
    }
    panic!("{path} names a field")
}

fn element(ty: &Ty) -> TypeId {
    match ty {
        Ty::Struct(id) => *id,
        Ty::List(of) | Ty::Map(of) => element(of),
        other => panic!("{other:?} has no fields"),
    }
}

fn pod() -> &'static Kind {
    kind("", "v1", "Pod").expect("Pod is a kind")
}

#[test]
fn a_field_knows_what_go_says_of_it() {
    let field = member(pod(), "spec.terminationGracePeriodSeconds");
    assert_eq!(
        (&field.ty, field.pointer, field.omitempty, field.proto),
        (&Ty::Int64, true, true, Some(4))
    );
    assert_eq!(field.go, "*int64");
    let created = member(pod(), "metadata.creationTimestamp");
    assert_eq!((&created.ty, created.omitzero), (&Ty::Time, true));
}

#[test]
fn a_list_knows_its_keys_for_patch_and_for_apply() {
    let ports = member(pod(), "spec.containers.ports");
    assert!(ports.patch.merge);
    assert_eq!(ports.patch.merge_key, Some("containerPort"));
    assert_eq!(ports.topology, Topology::Map(vec!["containerPort", "protocol"]));
    let protocol = member(pod(), "spec.containers.ports.protocol");
    assert_eq!(protocol.default, Some(Value::from("TCP")));
    assert_eq!(protocol.enum_values, ["SCTP", "TCP", "UDP"]);
    let volumes = member(pod(), "spec.volumes");
    assert!(volumes.patch.merge && volumes.patch.retain_keys);
    assert_eq!(member(pod(), "spec.nodeSelector").topology, Topology::Atomic);
    let reference = member(pod(), "spec.containers.env.valueFrom.secretKeyRef");
    assert!(element(&reference.ty).get().atomic);
}

#[test]
fn an_inlined_field_is_found_by_its_name() {
    assert!(member(pod(), "spec.volumes.hostPath").pointer);
    assert_eq!(pod().ty().members().next().expect("it has fields").json, "kind");
    assert!(pod().ty().field("typeMeta").is_none());
    assert!(pod().ty().field("").is_none());
}

#[test]
fn names_in_a_struct_are_unique() {
    for kind in kinds() {
        let mut names = HashSet::new();
        for field in kind.ty().members() {
            assert!(names.insert(field.json), "{} has {} twice", kind.kind, field.json);
        }
    }
}

#[test]
fn options_are_found_in_every_group() {
    let options = kind("apps", "v1", "DeleteOptions").expect("it travels in every group");
    assert_eq!(options.ty().short_name(), "DeleteOptions");
    assert!(kind("apps", "v1", "Pod").is_none());
    assert!(kind("apps", "v9", "DeleteOptions").is_none());
}

#[test]
fn every_resource_and_subresource_has_a_kind() {
    for version in versions() {
        for resource in &version.resources {
            let found = kind(resource.group, resource.version, resource.kind);
            assert!(found.is_some(), "{}", resource.name);
            if resource.verbs.contains(&"list") {
                let list = format!("{}List", resource.kind);
                assert!(kind(resource.group, resource.version, &list).is_some(), "{list}");
            }
            if let Some(storage) = &resource.storage {
                let stored = kind(storage.group, storage.version, resource.kind);
                assert!(stored.is_some(), "{} as stored", resource.name);
            }
            for sub in &resource.subresources {
                let found = kind(sub.group, sub.version, sub.kind);
                assert!(found.is_some(), "{}/{}", resource.name, sub.name);
            }
        }
    }
}

#[test]
fn a_resource_is_as_discovery_tells() {
    let pods = resource("", "v1", "pods").expect("pods are served");
    assert_eq!((pods.kind, pods.singular, pods.namespaced), ("Pod", "pod", true));
    assert_eq!((&pods.short_names[..], &pods.categories[..]), (&["po"][..], &["all"][..]));
    let eviction = pods.subresources.iter().find(|sub| sub.name == "eviction");
    let eviction = eviction.expect("pods can be evicted");
    assert_eq!((eviction.group, eviction.version, eviction.kind), ("policy", "v1", "Eviction"));
    let events = resource("events.k8s.io", "v1", "events").expect("events are served");
    let storage = events.storage.as_ref().expect("events are stored");
    assert_eq!((storage.group, storage.version), ("", "v1"));
}

#[test]
fn the_newer_version_of_a_group_comes_first() {
    let autoscaling: Vec<_> =
        versions().iter().filter(|v| v.group == "autoscaling").map(|v| v.version).collect();
    assert_eq!(autoscaling, ["v2", "v1"]);
    assert_eq!(versions()[0].priority, Some(Priority { group: 18000, version: 1 }));
}

fn kind_in(object: &Value) -> &'static Kind {
    let api_version = object["apiVersion"].as_str().expect("objects have versions");
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    kind(group, version, object["kind"].as_str().expect("objects have kinds")).expect("a built-in")
}

fn text_of(request: &Request) -> Vec<u8> {
    match (&request.text, &request.body) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(body)) => json::to_vec(body),
        (None, None) => panic!("{} has a body", request.path),
    }
}

/// What a server says to a body that it cannot take, if anything.
fn refusal(request: &Request) -> Option<String> {
    let text = text_of(request);
    let kind = kind_in(&json::decode(&text).expect("bodies are JSON").value);
    let read = json::decode_shaped(&text, shape(kind)).expect("bodies are JSON");
    let is_strict = request.query.get("fieldValidation").is_some_and(|value| value == "Strict");
    let reason = match decode(kind, read.value) {
        Err(error) => error.to_string(),
        Ok(_) if is_strict && !read.violations.is_empty() => strict::error(&read.violations),
        Ok(_) => return None,
    };
    let Kind { version, kind, .. } = kind;
    Some(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {reason}"))
}

#[test]
fn refusals_are_in_upstreams_words() {
    let mut refused = 0;
    for case in fixtures::load("builtin") {
        for Step { request, answer } in case.steps.iter().filter(|s| s.request.method == "POST") {
            let body = answer.body.as_ref().expect("answers are objects");
            let expected = (answer.status == 400).then(|| body["message"].as_str().unwrap());
            refused += usize::from(expected.is_some());
            assert_eq!(refusal(request).as_deref(), expected, "{}", case.name);
        }
    }
    assert!(refused > 40, "the recordings hold refusals");
}

#[test]
fn warnings_are_in_upstreams_words() {
    for case in fixtures::load("builtin") {
        for Step { request, answer } in case.steps.iter().filter(|s| s.request.method == "POST") {
            let ignored = request.query.get("fieldValidation").is_some_and(|v| v == "Ignore");
            if answer.status == 400 || ignored {
                continue;
            }
            let text = text_of(request);
            let kind = kind_in(&json::decode(&text).unwrap().value);
            let read = json::decode_shaped(&text, shape(kind)).unwrap();
            assert_eq!(strict::warnings(&read.violations), answer.warnings, "{}", case.name);
        }
    }
}

#[test]
fn an_answer_of_upstreams_is_its_own_normal_form() {
    let mut objects = 0;
    for case in fixtures::load("builtin") {
        for Step { answer, .. } in &case.steps {
            let body = answer.body.as_ref().expect("answers are objects");
            let normal = decode(kind_in(body), body.clone()).expect("it is of its type");
            assert_eq!(normal.violations, [], "{}", case.name);
            assert_eq!(json::to_string(&normal.value), json::to_string(body), "{}", case.name);
            objects += 1;
        }
    }
    assert!(objects > 60, "the recordings hold objects");
}

/// The server keeps objects in protobuf, so what comes back went through both.
#[test]
fn what_was_sent_comes_back_in_normal_form() {
    const SET_BY_THE_SERVER: [&str; 5] =
        ["uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"];
    let without_server = |mut object: Value| {
        let metadata = object["metadata"].as_object_mut().expect("objects have metadata");
        metadata.retain(|name, _| !SET_BY_THE_SERVER.contains(&name.as_str()));
        json::to_string(&object)
    };
    let mut compared = 0;
    for case in fixtures::load("builtin") {
        let steps = case.steps.iter();
        for Step { request, answer } in steps.filter(|s| s.request.more.contains_key("normal")) {
            let sent = json::decode(&text_of(request)).unwrap().value;
            let kind = kind_in(&sent);
            let sent = decode(kind, sent).expect("it was accepted").value;
            let stored = proto::encode(kind, &sent).expect("it is in normal form");
            let read = proto::decode(&stored).expect("we wrote it");
            let answer = answer.body.clone().expect("answers are objects");
            assert_eq!(without_server(read), without_server(answer), "{}", case.name);
            compared += 1;
        }
    }
    assert!(compared > 8, "the recordings hold objects that were sent");
}

#[test]
fn unknown_fields_of_a_tree_are_reported_and_dropped() {
    let tree = json!({
        "metadata": {"name": "a", "nmae": 1},
        "spec": {"containers": [{"name": "c"}, {"name": "d", "imgae": "i"}]},
    });
    let decoded = decode(pod(), tree).unwrap();
    let expected = ["metadata.nmae", "spec.containers[1].imgae"];
    let expected = expected.map(|path| strict::Violation::UnknownField(path.to_owned()));
    assert_eq!(decoded.violations, expected);
    assert_eq!(
        decoded.value,
        json!({
            "metadata": {"name": "a"},
            "spec": {
                "containers": [{"name": "c", "resources": {}}, {"name": "d", "resources": {}}],
            },
            "status": {},
        })
    );
}

#[test]
fn a_struct_can_be_decoded_without_a_kind() {
    let metadata = type_named("k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta").unwrap();
    let decoded = decode_as(metadata, json!({"labels": {"b": "1", "a": "2"}, "x": 1})).unwrap();
    assert_eq!(json::to_string(&decoded.value), r#"{"labels":{"a":"2","b":"1"}}"#);
    let refused = decode_as(metadata, json!([])).unwrap_err().to_string();
    assert_eq!(refused, "json: cannot unmarshal array into Go value of type v1.ObjectMeta");
}

#[test]
fn base64_is_read_as_go_does() {
    let check = |text: &str, expected: Result<&[u8], usize>| {
        assert_eq!(base64::decode(text).as_deref().map_err(|at| *at), expected, "{text:?}");
    };
    check("", Ok(b""));
    check("YWJj", Ok(b"abc"));
    check("YW\r\nI=\n", Ok(b"ab"));
    check("YR==", Ok(b"a"));
    check("YQ=\n=", Ok(b"a"));
    check("Y", Err(0));
    check("YWJjY", Err(4));
    check("YQ=", Err(3));
    check("YQ==Y", Err(4));
    check("YWI=\nx", Err(5));
    check("Y===", Err(1));
    check("YW*j", Err(2));
}
