What a namespace allows, and who lives in it.

  $ kubectl create namespace namespaces
  namespace/namespaces created
  $ kubectl config set-context --current --namespace=namespaces >&-
  $ kubectl wait --for=create serviceaccount/default --timeout=30s >&-
  $ kubectl create namespace namespaces --dry-run=server
  Error from server (AlreadyExists): namespaces "namespaces" already exists
  [1]
  $ kubectl create namespace namespaces-dry --save-config --dry-run=client -o yaml
  apiVersion: v1
  kind: Namespace
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"kind":"Namespace","apiVersion":"v1","metadata":{"name":"namespaces-dry"},"spec":{},"status":{}}
    name: namespaces-dry
  spec: {}
  status: {}
  $ kubectl get namespace namespaces -o yaml
  apiVersion: v1
  kind: Namespace
  metadata:
    creationTimestamp: "<time>"
    labels:
      kubernetes.io/metadata.name: namespaces
    name: namespaces
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    finalizers:
    - kubernetes
  status:
    phase: Active
  $ kubectl patch namespace namespaces --type=merge -p '{"spec":{"finalizers":["example.com/x"]}}'
  namespace/namespaces patched
  $ kubectl get namespace namespaces -o jsonpath='{.spec.finalizers} {.status.phase}{"\n"}'
  ["kubernetes"] Active
  $ kubectl label namespace namespaces kubernetes.io/metadata.name=other --overwrite
  namespace/namespaces labeled
  $ kubectl get namespace namespaces --show-labels
  NAME  STATUS  AGE  LABELS
  namespaces  Active  <age>  kubernetes.io/metadata.name=namespaces

Quotas.

  $ kubectl create quota cap --hard=count/configmaps=4,pods=2
  resourcequota/cap created
  $ kubectl create quota slow --hard=pods=1 --scopes=Terminating
  resourcequota/slow created
  $ kubectl create quota slow --hard=configmaps=1 --scopes=Terminating,NotTerminating
  error: failed to create quota: ResourceQuota "slow" is invalid: [spec.scopes: Invalid value: ["Terminating","NotTerminating"]: unsupported scope applied to resource, spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes]
  [1]
  $ kubectl wait --for=jsonpath='{.status.used.count/configmaps}'=1 quota/cap --timeout=30s
  resourcequota/cap condition met
  $ kubectl get quota
  NAME  REQUEST  LIMIT  AGE
  cap  count/configmaps: 1/4, pods: 0/2  <age>
  slow  pods: 0/1  <age>
  $ kubectl describe quota cap
  Name:  cap
  Namespace:  namespaces
  Resource  Used  Hard
  --------  ----  ----
  count/configmaps  1  4
  pods  0  2
  $ for name in a b c d; do kubectl create configmap $name; done
  configmap/a created
  configmap/b created
  configmap/c created
  error: failed to create configmap: configmaps "d" is forbidden: exceeded quota: cap, requested: count/configmaps=1, used: count/configmaps=4, limited: count/configmaps=4
  [1]
  $ for name in a b c; do kubectl run $name --image=i; done
  pod/a created
  pod/b created
  Error from server (Forbidden): pods "c" is forbidden: exceeded quota: cap, requested: pods=1, used: pods=2, limited: pods=2
  [1]
  $ kubectl wait --for=jsonpath='{.status.used.pods}'=2 quota/cap --timeout=30s
  resourcequota/cap condition met
  $ kubectl get quota cap -o yaml
  apiVersion: v1
  kind: ResourceQuota
  metadata:
    creationTimestamp: "<time>"
    name: cap
    namespace: namespaces
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    hard:
      count/configmaps: "4"
      pods: "2"
  status:
    hard:
      count/configmaps: "4"
      pods: "2"
    used:
      count/configmaps: "4"
      pods: "2"
  $ kubectl get quota cap -o json --show-managed-fields | grep "\"manager\"\|\"operation\"\|\"subresource\"" | sort
                  "manager": "kube-apiserver",
                  "manager": "kube-controller-manager",
                  "manager": "kubectl-create",
                  "operation": "Update",
                  "operation": "Update",
                  "operation": "Update",
                  "subresource": "status",
                  "subresource": "status",
  $ kubectl delete pod a --force --grace-period=0
  Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
  pod "a" force deleted from namespaces namespace
  $ kubectl wait --for=jsonpath='{.status.used.pods}'=1 quota/cap --timeout=30s
  resourcequota/cap condition met
  $ kubectl run c --image=i
  pod/c created
  $ kubectl patch quota cap --type=merge -p '{"spec":{"hard":{"pods":"x"}}}' 2>&1 | sed 's/value: "{.*}"/value: .../'
  The request is invalid: patch: Invalid value: ...: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
  $ kubectl patch quota cap --type=merge -p '{"spec":{"scopes":["BestEffort"]}}'
  The ResourceQuota "cap" is invalid: spec.scopes: Invalid value: ["BestEffort"]: field is immutable
  [1]
  $ kubectl describe namespace namespaces
  Name:  namespaces
  Labels:  kubernetes.io/metadata.name=namespaces
  Annotations:  <none>
  Status:  Active
  |
  Resource Quotas
    Name:  cap
    Resource  Used  Hard
    --------  ---  ---
    count/configmaps  4  4
    pods  2  2
    Name:  slow
    Scopes:  Terminating
    * Matches all pods that have an active deadline. These pods have a limited lifespan on a node before being actively terminated by the system.
    Resource  Used  Hard
    --------  ---  ---
    pods  0  1
  |
  No LimitRange resource.
  $ kubectl delete quota cap slow
  resourcequota "cap" deleted from namespaces namespace
  resourcequota "slow" deleted from namespaces namespace

Accounts.

  $ kubectl get serviceaccount default -o yaml
  apiVersion: v1
  kind: ServiceAccount
  metadata:
    creationTimestamp: "<time>"
    name: default
    namespace: namespaces
    resourceVersion: "<version>"
    uid: <uid>
  $ kubectl describe serviceaccount default
  Name:  default
  Namespace:  namespaces
  Labels:  <none>
  Annotations:  <none>
  Image pull secrets:  <none>
  Events:  <none>
  $ kubectl create serviceaccount pulls
  serviceaccount/pulls created
  $ kubectl patch serviceaccount pulls -p '{"imagePullSecrets":[{"name":"p"}],"automountServiceAccountToken":false}'
  serviceaccount/pulls patched
  $ kubectl run pulled --image=i --overrides='{"spec":{"serviceAccountName":"pulls"}}' -o jsonpath='{.spec.imagePullSecrets} {.spec.volumes}{"\n"}'
  [{"name":"p"}]
  $ kubectl create token default --bound-object-kind=Pod --bound-object-name=pulled
  error: failed to create token: cannot bind token for serviceaccount "default" to pod running with different serviceaccount name.
  [1]
  $ kubectl create token pulls --bound-object-kind=Pod --bound-object-name=pulled | wc -w
  1
  $ kubectl create token default --bound-object-kind=Pod --bound-object-name=absent
  error: failed to create token: pods "absent" not found
  [1]
  $ kubectl create token default --bound-object-kind=Thing --bound-object-name=absent
  error: supported --bound-object-kind values are Node, Pod, Secret
  [1]
  $ kubectl get configmap kube-root-ca.crt -o jsonpath='{.metadata.annotations}{"\n"}'
  {"kubernetes.io/description":"Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."}

Secrets.

  $ kubectl create secret tls empty --cert=/dev/null --key=/dev/null
  error: tls: failed to find any PEM data in certificate input
  [1]
  $ kubectl create secret generic s --from-literal=a=b
  secret/s created
  $ kubectl get secret s -o yaml
  apiVersion: v1
  data:
    a: Yg==
  kind: Secret
  metadata:
    creationTimestamp: "<time>"
    name: s
    namespace: namespaces
    resourceVersion: "<version>"
    uid: <uid>
  type: Opaque
  $ kubectl patch secret s -p '{"stringData":{"c":"d"}}'
  secret/s patched
  $ kubectl get secret s -o jsonpath='{.data}{"\n"}'
  {"a":"Yg==","c":"ZA=="}
  $ kubectl patch secret s -p '{"type":"other"}'
  The Secret "s" is invalid: type: Invalid value: "other": field is immutable
  [1]
  $ kubectl patch secret s -p '{"data":{"a":"not base 64"}}'
  The request is invalid: patch: Invalid value: "map[data:map[a:not base 64]]": error decoding from json: illegal base64 data at input byte 3
  [1]
  $ kubectl patch secret s --type=merge -p '{"immutable":true}'
  secret/s patched
  $ kubectl patch secret s --type=merge -p '{"immutable":null}'
  The Secret "s" is invalid: immutable: Forbidden: field is immutable when `immutable` is set
  [1]

Levels of security.

  $ kubectl label namespace namespaces pod-security.kubernetes.io/enforce=restricted
  Warning: existing pods in namespace "namespaces" violate the new PodSecurity enforce level "restricted:latest"
  Warning: b (and 2 other pods): allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile
  namespace/namespaces labeled
  $ kubectl run refused --image=i
  Error from server (Forbidden): pods "refused" is forbidden: violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "refused" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "refused" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "refused" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "refused" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")
  [1]
  $ kubectl create deployment warned --image=i
  Warning: would violate PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "i" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "i" must set securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "i" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container "i" must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")
  deployment.apps/warned created
  $ kubectl label namespace namespaces pod-security.kubernetes.io/warn=baseline pod-security.kubernetes.io/enforce- --overwrite
  namespace/namespaces modified
  $ kubectl run warned --image=i --privileged
  Warning: would violate PodSecurity "baseline:latest": privileged (container "warned" must not set securityContext.privileged=true)
  pod/warned created
  $ kubectl label namespace namespaces pod-security.kubernetes.io/warn=sometimes --overwrite
  The Namespace "namespaces" is invalid: metadata.labels[pod-security.kubernetes.io/warn]: Invalid value: "sometimes": must be one of privileged, baseline, restricted
  [1]
