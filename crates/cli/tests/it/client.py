"""What a user of the Python client does, told in one line per step. Takes a kubeconfig."""

import sys
import threading

from kubernetes import client, config, dynamic, watch

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
apps = client.AppsV1Api()
NAMESPACE = "python"


def status_of(call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except client.ApiException as refusal:
        return refusal.status
    return None


core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=NAMESPACE)))

# Typed: create, read, replace, patch in each language, list, delete.
made = core.create_namespaced_config_map(
    NAMESPACE,
    client.V1ConfigMap(metadata=client.V1ObjectMeta(name="a", labels={"of": "us"}), data={"k": "1"}),
)
print("created", made.metadata.name, made.data)
print("again", status_of(core.create_namespaced_config_map, NAMESPACE, made.__class__(
    metadata=client.V1ObjectMeta(name="a"))))
made.data["k"] = "2"
replaced = core.replace_namespaced_config_map("a", NAMESPACE, made)
print("replaced", replaced.data)
print("stale", status_of(core.replace_namespaced_config_map, "a", NAMESPACE, made))
merged = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"k": None, "l": "3"}})
print("patched", merged.data)
patched = core.patch_namespaced_config_map(
    "a", NAMESPACE, [{"op": "add", "path": "/data/m", "value": "4"}])
print("patched", patched.data)
dry = core.patch_namespaced_config_map("a", NAMESPACE, {"data": {"n": "5"}}, dry_run="All")
print("dry", dry.data, core.read_namespaced_config_map("a", NAMESPACE).data)
for name in ["b", "c", "d"]:
    core.create_namespaced_config_map(NAMESPACE, {"metadata": {"name": name, "labels": {"of": "us"}}})
first = core.list_namespaced_config_map(NAMESPACE, label_selector="of=us", limit=3)
rest = core.list_namespaced_config_map(
    NAMESPACE, label_selector="of=us", limit=3, _continue=first.metadata._continue)
print("listed", [item.metadata.name for item in first.items], [item.metadata.name for item in rest.items])
print("absent", status_of(core.read_namespaced_config_map, "absent", NAMESPACE))

# A watch from the list on tells everything since, in order.
deployment = {
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        },
    },
}
since = apps.list_namespaced_deployment(NAMESPACE).metadata.resource_version


def change():
    apps.create_namespaced_deployment(NAMESPACE, deployment)
    apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 3}})
    apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")


changes = threading.Thread(target=change)
changes.start()
watching = watch.Watch()
for event in watching.stream(
        apps.list_namespaced_deployment, NAMESPACE, resource_version=since, timeout_seconds=60):
    print("saw", event["type"], event["object"].metadata.name, event["object"].spec.replicas)
    if event["type"] == "DELETED":
        watching.stop()
changes.join()

# A kind of one's own, found by discovery.
extensions = client.ApiextensionsV1Api()
extensions.create_custom_resource_definition({
    "metadata": {"name": "boats.python.example.com"},
    "spec": {
        "group": "python.example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
        "versions": [{
            "name": "v1",
            "served": True,
            "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {
                    "spec": {"type": "object", "properties": {
                        "sails": {"type": "integer", "default": 1, "minimum": 0}}},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                },
            }},
        }],
    },
})
custom = client.CustomObjectsApi()
for event in watch.Watch().stream(
        extensions.list_custom_resource_definition,
        field_selector="metadata.name=boats.python.example.com", timeout_seconds=60):
    conditions = event["object"].status.conditions or []
    if any(c.type == "Established" and c.status == "True" for c in conditions):
        break
place = ("python.example.com", "v1", NAMESPACE, "boats")
boat = custom.create_namespaced_custom_object(*place, {
    "apiVersion": "python.example.com/v1", "kind": "Boat", "metadata": {"name": "one"}, "spec": {}})
print("custom", boat["spec"], boat["metadata"]["generation"])
boat = custom.patch_namespaced_custom_object(*place, "one", {"spec": {"sails": 2}})
print("custom", boat["spec"], boat["metadata"]["generation"])
boat = custom.patch_namespaced_custom_object_status(*place, "one", {"status": {"afloat": True}})
print("custom", boat["status"], boat["metadata"]["generation"])
print("refused", status_of(custom.patch_namespaced_custom_object, *place, "one", {"spec": {"sails": -1}}))

# The dynamic client.
anything = dynamic.DynamicClient(client.ApiClient())
boats = anything.resources.get(api_version="python.example.com/v1", kind="Boat")
applied = boats.server_side_apply(
    body={"apiVersion": "python.example.com/v1", "kind": "Boat",
          "metadata": {"name": "two", "namespace": NAMESPACE}, "spec": {"sails": 4}},
    name="two", namespace=NAMESPACE, field_manager="python")
print("applied", applied.spec.sails, [entry.manager for entry in applied.metadata.managedFields])
print("dynamic", [item.metadata.name for item in boats.get(namespace=NAMESPACE).items])
boats.delete(name="one", namespace=NAMESPACE)
print("dynamic", [item.metadata.name for item in boats.get(namespace=NAMESPACE).items])
services = anything.resources.get(api_version="v1", kind="Service")
service = services.create(namespace=NAMESPACE, body={
    "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}})
print("service", service.spec.type, service.spec.ports[0].targetPort)

# Collections, and who may do what.
core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="of=us")
print("left", [item.metadata.name for item in core.list_namespaced_config_map(
    NAMESPACE, label_selector="of=us").items])
review = client.AuthorizationV1Api().create_self_subject_access_review({
    "spec": {"resourceAttributes": {"verb": "delete", "resource": "nodes"}}})
print("allowed", review.status.allowed)
extensions.delete_custom_resource_definition("boats.python.example.com")
core.delete_namespace(NAMESPACE)
