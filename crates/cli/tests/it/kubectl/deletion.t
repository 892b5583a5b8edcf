What goes, what goes with it, and what stays.

  $ kubectl create namespace deletion
  namespace/deletion created
  $ kubectl config set-context --current --namespace=deletion >&-
  $ cat > family.sh <<'END'
  > kubectl create configmap $1 >&-
  > uid=$(kubectl get configmap $1 -o jsonpath='{.metadata.uid}')
  > kubectl create -f - <<CHILD
  > {apiVersion: v1, kind: ConfigMap, metadata: {name: $1-child, ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: $1, uid: $uid, blockOwnerDeletion: true}]}}
  > CHILD
  > END
  $ for name in background foreground orphan held-child; do sh family.sh $name; done
  configmap/background-child created
  configmap/foreground-child created
  configmap/orphan-child created
  configmap/held-child-child created
  $ kubectl delete configmap background --cascade=background
  configmap "background" deleted from deletion namespace
  $ kubectl wait --for=delete configmap/background-child --timeout=30s >&-
  $ kubectl get configmap background-child
  Error from server (NotFound): configmaps "background-child" not found
  [1]
  $ kubectl delete configmap foreground --cascade=foreground
  configmap "foreground" deleted from deletion namespace
  $ kubectl get configmap foreground-child
  Error from server (NotFound): configmaps "foreground-child" not found
  [1]
  $ kubectl delete configmap orphan --cascade=orphan
  configmap "orphan" deleted from deletion namespace
  $ kubectl get configmap orphan-child -o jsonpath='{.metadata.ownerReferences}{"\n"}'
  $ kubectl delete configmap orphan-child --cascade=sideways
  error: invalid cascade value (sideways). Must be "background", "foreground", or "orphan"
  [1]
  $ kubectl patch configmap held-child-child --type=merge -p '{"metadata":{"finalizers":["example.com/hold"]}}'
  configmap/held-child-child patched
  $ kubectl delete configmap held-child --cascade=foreground --wait=false
  configmap "held-child" deleted from deletion namespace
  $ kubectl wait --for=jsonpath='{.metadata.deletionTimestamp}' configmap/held-child-child --timeout=30s >&-
  $ kubectl get configmap held-child -o jsonpath='{.metadata.finalizers}{"\n"}'
  ["foregroundDeletion"]
  $ kubectl patch configmap held-child-child --type=merge -p '{"metadata":{"finalizers":null}}'
  configmap/held-child-child patched
  $ kubectl wait --for=delete configmap/held-child --timeout=30s >&-
  $ kubectl get configmap held-child
  Error from server (NotFound): configmaps "held-child" not found
  [1]

Finalizers hold an object.

  $ kubectl create -f - <<'END'
  > {apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}
  > END
  configmap/held created
  $ kubectl delete configmap held --wait=false
  configmap "held" deleted from deletion namespace
  $ kubectl delete configmap held --timeout=1s
  configmap "held" deleted from deletion namespace
  error: timed out waiting for the condition on configmaps/held
  [1]
  $ kubectl get configmap held -o yaml
  apiVersion: v1
  kind: ConfigMap
  metadata:
    creationTimestamp: "<time>"
    deletionGracePeriodSeconds: 0
    deletionTimestamp: "<time>"
    finalizers:
    - example.com/hold
    name: held
    namespace: deletion
    resourceVersion: "<version>"
    uid: <uid>
  $ kubectl label configmap held still=there
  configmap/held labeled
  $ kubectl create configmap held
  error: failed to create configmap: object is being deleted: configmaps "held" already exists
  [1]
  $ kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":["example.com/hold","example.com/more"]}}'
  The ConfigMap "held" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{"example.com/more"}
  [1]
  $ kubectl patch configmap held --type=merge -p '{"metadata":{"finalizers":null}}'
  configmap/held patched
  $ kubectl get configmap held
  Error from server (NotFound): configmaps "held" not found
  [1]
  $ kubectl create -f - <<'END'
  > {apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [hold]}}
  > END
  The ConfigMap "held" is invalid: metadata.finalizers[0]: Invalid value: "hold": name is neither a standard finalizer name nor is it fully qualified
  [1]

A pod on a node goes when its node says so.

  $ kubectl wait --for=create serviceaccount/default --timeout=30s >&-
  $ kubectl run slow --image=i --overrides='{"spec":{"nodeName":"somewhere"}}'
  pod/slow created
  $ kubectl delete pod slow --wait=false
  pod "slow" deleted from deletion namespace
  $ kubectl get pod slow
  NAME  READY  STATUS  RESTARTS  AGE
  slow  0/1  Terminating  0  <age>
  $ kubectl get pod slow -o jsonpath='{.metadata.deletionGracePeriodSeconds}{"\n"}'
  30
  $ kubectl delete pod slow --grace-period=5 --wait=false
  pod "slow" deleted from deletion namespace
  $ kubectl get pod slow -o jsonpath='{.metadata.deletionGracePeriodSeconds}{"\n"}'
  5
  $ kubectl delete pod slow --timeout=1s
  pod "slow" deleted from deletion namespace
  error: timed out waiting for the condition on pods/slow
  [1]
  $ kubectl delete pod slow --grace-period=0 --timeout=1s
  pod "slow" deleted from deletion namespace
  error: timed out waiting for the condition on pods/slow
  [1]
  $ kubectl delete pod slow --force
  Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
  pod "slow" force deleted from deletion namespace
  $ kubectl get pod slow
  Error from server (NotFound): pods "slow" not found
  [1]

Many at once.

  $ for name in a b c; do kubectl create configmap many-$name; kubectl label configmap many-$name of=many; done
  configmap/many-a created
  configmap/many-a labeled
  configmap/many-b created
  configmap/many-b labeled
  configmap/many-c created
  configmap/many-c labeled
  $ kubectl delete configmap -l of=many --dry-run=server
  configmap "many-a" deleted from deletion namespace (server dry run)
  configmap "many-b" deleted from deletion namespace (server dry run)
  configmap "many-c" deleted from deletion namespace (server dry run)
  $ kubectl delete configmap -l of=many --dry-run=client -o name
  configmap/many-a
  configmap/many-b
  configmap/many-c
  $ kubectl delete configmap --field-selector metadata.name=many-a
  configmap "many-a" deleted from deletion namespace
  $ kubectl delete configmap -l of=many
  configmap "many-b" deleted from deletion namespace
  configmap "many-c" deleted from deletion namespace
  $ kubectl create configmap raw
  configmap/raw created
  $ kubectl delete --raw /api/v1/namespaces/deletion/configmaps/raw | sed 's/"uid":"[^"]*"/"uid":"*"/'; echo
  {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","details":{"name":"raw","kind":"configmaps","uid":"*"}}

A namespace takes all that is in it.

  $ kubectl create namespace deletion-other
  namespace/deletion-other created
  $ kubectl create configmap a -n deletion-other
  configmap/a created
  $ kubectl create -n deletion-other -f - <<'END'
  > {apiVersion: v1, kind: ConfigMap, metadata: {name: held, finalizers: [example.com/hold]}}
  > END
  configmap/held created
  $ kubectl delete namespace deletion-other --wait=false
  namespace "deletion-other" deleted
  $ kubectl wait --for=condition=NamespaceFinalizersRemaining namespace/deletion-other --timeout=30s
  namespace/deletion-other condition met
  $ kubectl get namespace deletion-other
  NAME  STATUS  AGE
  deletion-other  Terminating  <age>
  $ kubectl get namespace deletion-other -o jsonpath='{range .status.conditions[*]}{.type} {.status} {.reason}: {.message}{"\n"}{end}'
  NamespaceDeletionDiscoveryFailure False ResourcesDiscovered: All resources successfully discovered
  NamespaceDeletionGroupVersionParsingFailure False ParsedGroupVersions: All legacy kube types successfully parsed
  NamespaceDeletionContentFailure False ContentDeleted: All content successfully deleted, may be waiting on finalization
  NamespaceContentRemaining True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances
  NamespaceFinalizersRemaining True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances
  $ kubectl create configmap late -n deletion-other
  error: failed to create configmap: configmaps "late" is forbidden: unable to create new content in namespace deletion-other because it is being terminated
  [1]
  $ kubectl patch configmap held -n deletion-other --type=merge -p '{"metadata":{"finalizers":null}}'
  configmap/held patched
  $ kubectl wait --for=delete namespace/deletion-other --timeout=60s >&-
  $ kubectl get namespace deletion-other
  Error from server (NotFound): namespaces "deletion-other" not found
  [1]
  $ kubectl delete namespace default
  Error from server (Forbidden): namespaces "default" is forbidden: this namespace may not be deleted
  [1]
  $ kubectl delete namespace absent
  Error from server (NotFound): namespaces "absent" not found
  [1]

What happened.

  $ kubectl get events
  No resources found in deletion namespace.
  $ kubectl events
  No events found in deletion namespace.
  $ kubectl create -f - <<'END'
  > apiVersion: v1
  > kind: Event
  > metadata: {name: held.1}
  > involvedObject: {apiVersion: v1, kind: ConfigMap, name: orphan-child, namespace: deletion}
  > reason: Kept
  > message: it stays
  > type: Normal
  > count: 3
  > source: {component: me}
  > ---
  > apiVersion: events.k8s.io/v1
  > kind: Event
  > metadata: {name: held.2}
  > regarding: {apiVersion: v1, kind: ConfigMap, name: other, namespace: deletion}
  > reason: Worried
  > action: Look
  > note: it went
  > type: Warning
  > eventTime: "2026-01-01T00:00:00.000000Z"
  > reportingController: example.com/me
  > reportingInstance: me-1
  > END
  event/held.1 created
  event.events.k8s.io/held.2 created
  $ kubectl get events
  LAST SEEN  TYPE  REASON  OBJECT  MESSAGE
  <unknown>  Normal  Kept  configmap/orphan-child  it stays
  <age>  Warning  Worried  configmap/other  it went
  $ kubectl get events -o wide
  LAST SEEN  TYPE  REASON  OBJECT  SUBOBJECT  SOURCE  MESSAGE  FIRST SEEN  COUNT  NAME
  <unknown>  Normal  Kept  configmap/orphan-child  me  it stays  <age>  3  held.1
  <age>  Warning  Worried  configmap/other  example.com/me, me-1  it went  <age>  1  held.2
  $ kubectl events
  LAST SEEN  TYPE  REASON  OBJECT  MESSAGE
  <unknown> (x3 over <unknown>)  Normal  Kept  ConfigMap/orphan-child  it stays
  <age>  Warning  Worried  ConfigMap/other  it went
  $ kubectl events --for configmap/orphan-child
  LAST SEEN  TYPE  REASON  OBJECT  MESSAGE
  <unknown> (x3 over <unknown>)  Normal  Kept  ConfigMap/orphan-child  it stays
  $ kubectl events --types=Warning
  LAST SEEN  TYPE  REASON  OBJECT  MESSAGE
  <age>  Warning  Worried  ConfigMap/other  it went
  $ kubectl get events --field-selector involvedObject.name=other,type=Warning -o name
  event/held.2
  $ kubectl get events --field-selector reason=Kept -o jsonpath='{.items[0].message}{"\n"}'
  it stays
  $ kubectl get events.events.k8s.io held.1 -o yaml
  apiVersion: events.k8s.io/v1
  deprecatedCount: 3
  deprecatedFirstTimestamp: null
  deprecatedLastTimestamp: null
  deprecatedSource:
    component: me
  eventTime: null
  kind: Event
  metadata:
    creationTimestamp: "<time>"
    name: held.1
    namespace: deletion
    resourceVersion: "<version>"
    uid: <uid>
  note: it stays
  reason: Kept
  regarding:
    apiVersion: v1
    kind: ConfigMap
    name: orphan-child
    namespace: deletion
  type: Normal
  $ kubectl get events held.2 -o yaml
  action: Look
  apiVersion: v1
  eventTime: "<time>"
  firstTimestamp: null
  involvedObject:
    apiVersion: v1
    kind: ConfigMap
    name: other
    namespace: deletion
  kind: Event
  lastTimestamp: null
  message: it went
  metadata:
    creationTimestamp: "<time>"
    name: held.2
    namespace: deletion
    resourceVersion: "<version>"
    uid: <uid>
  reason: Worried
  reportingComponent: example.com/me
  reportingInstance: me-1
  source: {}
  type: Warning
  $ kubectl describe configmap orphan-child
  Name:  orphan-child
  Namespace:  deletion
  Labels:  <none>
  Annotations:  <none>
  |
  Data
  ====
  |
  BinaryData
  ====
  |
  Events:  <none>
  $ kubectl delete events --all
  event "held.1" deleted from deletion namespace
  event "held.2" deleted from deletion namespace
