"""An operator on kopf, and what its user does, told in one line per step. Takes a kubeconfig."""

import asyncio
import os
import queue
import sys
import threading

os.environ["KUBECONFIG"] = sys.argv[1]

import kopf
from kubernetes import client, config, watch

config.load_kube_config(sys.argv[1])
core = client.CoreV1Api()
custom = client.CustomObjectsApi()
extensions = client.ApiextensionsV1Api()
NAMESPACE = "kopf"
PLACE = ("kopf.example.com", "v1", NAMESPACE, "boats")
CRD = "boats.kopf.example.com"

#: What handlers were told, in order.
told = queue.Queue()


def tell(what, *values):
    told.put(" ".join(str(value) for value in (what, *values)))


@kopf.on.startup()
def configure(settings, **_):
    settings.persistence.finalizer = "kopf.example.com/finalizer"


@kopf.index("kopf.example.com", "v1", "boats")
def oars(name, spec, **_):
    return {name: spec["oars"]}


@kopf.on.create("kopf.example.com", "v1", "boats")
def create(name, spec, patch, **_):
    berth = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"oars": str(spec["oars"])}}
    kopf.adopt(berth)
    kopf.label(berth, {"of": name})
    core.create_namespaced_config_map(NAMESPACE, berth)
    patch.status["afloat"] = True
    tell("create", name, spec["oars"])
    return {"berth": "made"}


@kopf.on.update("kopf.example.com", "v1", "boats", field="spec.oars")
def update(name, old, new, oars, **_):
    tell("update", name, old, new, list(oars[name]))


attempts = []


@kopf.on.update("kopf.example.com", "v1", "boats", field="metadata.labels.paint", backoff=0.1)
def paint(name, new, **_):
    attempts.append(new)
    if len(attempts) < 3:
        raise kopf.TemporaryError("the paint is wet", delay=0.1)
    tell("paint", name, new, len(attempts))


@kopf.daemon("kopf.example.com", "v1", "boats")
async def guard(name, stopped, **_):
    tell("guard", name)
    await stopped.wait()
    tell("guarded", name)


@kopf.on.delete("kopf.example.com", "v1", "boats")
def delete(name, body, **_):
    kopf.info(body, reason="Sunk", message="as wished")
    tell("delete", name)


@kopf.on.event("configmaps", labels={"of": kopf.PRESENT})
def berth(type, labels, **_):
    tell("berth", type, labels["of"])


def next_told(*expected):
    """The next things told, which may come in any order."""
    lines = sorted(told.get(timeout=30) for _ in range(len(expected)))
    print(*lines, sep="\n")


core.create_namespace({"metadata": {"name": NAMESPACE}})
anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
extensions.create_custom_resource_definition({
    "metadata": {"name": CRD},
    "spec": {
        "group": "kopf.example.com",
        "scope": "Namespaced",
        "names": {"plural": "boats", "singular": "boat", "kind": "Boat"},
        "versions": [{
            "name": "v1", "served": True, "storage": True,
            "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {
                "type": "object", "properties": {"spec": anything, "status": anything}}},
        }],
    },
})
for event in watch.Watch().stream(
        extensions.list_custom_resource_definition,
        field_selector=f"metadata.name={CRD}", timeout_seconds=60):
    conditions = event["object"].status.conditions or []
    if any(c.type == "Established" and c.status == "True" for c in conditions):
        break

ready, stop = threading.Event(), threading.Event()
operator = threading.Thread(target=lambda: asyncio.run(kopf.operator(
    namespaces=[NAMESPACE], standalone=True, ready_flag=ready, stop_flag=stop)))
operator.start()
try:
    assert ready.wait(30), "the operator does not start"
    made = custom.create_namespaced_custom_object(*PLACE, {
        "apiVersion": "kopf.example.com/v1", "kind": "Boat",
        "metadata": {"name": "one"}, "spec": {"oars": 2}})
    next_told("guard", "create", "berth")

    # Until the operator has written down what came of it.
    for event in watch.Watch().stream(
            custom.list_namespaced_custom_object, *PLACE, timeout_seconds=30):
        boat = event["object"]
        if "afloat" in boat.get("status", {}) and "kopf" not in boat["status"]:
            break
    print("status", boat["status"]["afloat"], boat["status"]["create"], boat["metadata"]["generation"])
    print("finalizers", boat["metadata"]["finalizers"])
    print("annotations", sorted(boat["metadata"]["annotations"]))
    custom.patch_namespaced_custom_object(*PLACE, "one", {"spec": {"oars": 4}})
    next_told("update")
    custom.patch_namespaced_custom_object(*PLACE, "one", {"metadata": {"labels": {"paint": "red"}}})
    next_told("paint")

    custom.delete_namespaced_custom_object(*PLACE, "one")
    next_told("guarded", "delete", "berth")
    for event in watch.Watch().stream(
            core.list_namespaced_event, NAMESPACE, timeout_seconds=30,
            field_selector=f"involvedObject.uid={made['metadata']['uid']},reason=Sunk"):
        sunk = event["object"]
        print("event", sunk.type, sunk.message, sunk.source.component)
        break
finally:
    stop.set()
    operator.join()
left = custom.list_namespaced_custom_object(*PLACE)["items"]
print("left", [item["metadata"]["name"] for item in left])
