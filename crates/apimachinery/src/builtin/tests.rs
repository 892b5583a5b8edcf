use std::collections::HashSet;

use super::*;

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
