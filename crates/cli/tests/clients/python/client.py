"""What a user of the Python client does, told in one line per step. Takes a kubeconfig."""

import sys
import tempfile
import threading

from kubernetes import client, config, dynamic, utils, watch

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

# From files, and by parts.
manifest = """
apiVersion: v1
kind: ConfigMap
metadata: {name: filed}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: filed}
spec:
  selector: {matchLabels: {app: filed}}
  template: {metadata: {labels: {app: filed}}, spec: {containers: [{name: c, image: i}]}}
"""
with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
    file.write(manifest)
    file.flush()
    made = utils.create_from_yaml(client.ApiClient(), file.name, namespace=NAMESPACE)
    print("filed", [item.kind for items in made for item in items])
    try:
        utils.create_from_yaml(client.ApiClient(), file.name, namespace=NAMESPACE)
    except utils.FailToCreateError as refusals:
        print("filed", [refusal.status for refusal in refusals.api_exceptions])
filed = apps.read_namespaced_deployment("filed", NAMESPACE)
filed.status = client.V1DeploymentStatus(replicas=2, observed_generation=1)
filed = apps.replace_namespaced_deployment_status("filed", NAMESPACE, filed)
print("status", filed.status.replicas, filed.metadata.generation, filed.spec.strategy.rolling_update.max_surge)
scale = apps.read_namespaced_deployment_scale("filed", NAMESPACE)
scale.spec.replicas = 5
print("scale", apps.replace_namespaced_deployment_scale("filed", NAMESPACE, scale).spec.replicas)
filed = apps.patch_namespaced_deployment("filed", NAMESPACE, {
    "spec": {"template": {"spec": {"containers": [{"name": "d", "image": "j"}]}}}})
print("strategic", [container.name for container in filed.spec.template.spec.containers])
apply = dict(namespace=NAMESPACE, name="applied", _content_type="application/apply-patch+yaml")
wish = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"k": "1"}}
print("applied", core.patch_namespaced_config_map(body=wish, field_manager="one", **apply).data)
wish["data"]["k"] = "2"
print("conflict", status_of(core.patch_namespaced_config_map, body=wish, field_manager="two", **apply))
print("forced", core.patch_namespaced_config_map(body=wish, field_manager="two", force=True, **apply).data)
other = client.V1DeleteOptions(preconditions=client.V1Preconditions(uid="another"))
print("another", status_of(core.delete_namespaced_config_map, "filed", NAMESPACE, body=other))
token = core.create_namespaced_service_account_token
for event in watch.Watch().stream(
        core.list_namespaced_service_account, NAMESPACE,
        field_selector="metadata.name=default", timeout_seconds=60):
    break
print("token", token("default", NAMESPACE, {"spec": {}}).status.token.count("."))
pod = core.create_namespaced_pod(NAMESPACE, {
    "metadata": {"generateName": "p-"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
print("pod", pod.metadata.name.startswith("p-"), pod.status.phase, pod.spec.service_account_name)
print("log", core.read_namespaced_pod_log(pod.metadata.name, NAMESPACE))
print("evicted", status_of(core.create_namespaced_pod_eviction, pod.metadata.name, NAMESPACE, {
    "metadata": {"name": pod.metadata.name}}))
print("invalid", status_of(core.create_namespaced_pod, NAMESPACE, {
    "metadata": {"name": "bad"}, "spec": {"containers": []}}))

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
for event in boats.watch(namespace=NAMESPACE, timeout=60):
    print("dynamic", event["type"], event["object"].metadata.name)
    break
try:
    boats.create(namespace=NAMESPACE, body={
        "apiVersion": "python.example.com/v1", "kind": "Boat", "metadata": {"name": "two"}})
except dynamic.exceptions.ConflictError as refusal:
    print("dynamic", refusal.summary())
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
