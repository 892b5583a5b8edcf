Declared objects: applied by the client and by the server, compared, and pruned.

  $ kubectl create namespace apply
  namespace/apply created
  $ kubectl config set-context --current --namespace=apply >&-
  $ cat > web.yaml <<'END'
  > apiVersion: apps/v1
  > kind: Deployment
  > metadata:
  >   name: web
  >   labels: {app: web}
  > spec:
  >   replicas: 2
  >   selector: {matchLabels: {app: web}}
  >   template:
  >     metadata: {labels: {app: web}}
  >     spec:
  >       containers:
  >       - name: nginx
  >         image: nginx:1
  >         ports: [{containerPort: 80}]
  >         resources: {requests: {cpu: "0.5", memory: 1Gi}}
  > ---
  > apiVersion: v1
  > kind: Service
  > metadata:
  >   name: web
  >   labels: {app: web}
  > spec:
  >   selector: {app: web}
  >   ports: [{port: 80}]
  > END

By the client.

  $ kubectl diff -f web.yaml | sed 's/^\(---\|+++\|diff\).*/\1/'
  diff
  ---
  +++
  @@ -0,0 +1,46 @@
  +apiVersion: apps/v1
  +kind: Deployment
  +metadata:
  +  creationTimestamp: "<time>"
  +  generation: 1
  +  labels:
  +  app: web
  +  name: web
  +  namespace: apply
  +  uid: <uid>
  +spec:
  +  progressDeadlineSeconds: 600
  +  replicas: 2
  +  revisionHistoryLimit: 10
  +  selector:
  +  matchLabels:
  +  app: web
  +  strategy:
  +  rollingUpdate:
  +  maxSurge: 25%
  +  maxUnavailable: 25%
  +  type: RollingUpdate
  +  template:
  +  metadata:
  +  labels:
  +  app: web
  +  spec:
  +  containers:
  +  - image: nginx:1
  +  imagePullPolicy: IfNotPresent
  +  name: nginx
  +  ports:
  +  - containerPort: 80
  +  protocol: TCP
  +  resources:
  +  requests:
  +  cpu: 500m
  +  memory: 1Gi
  +  terminationMessagePath: /dev/termination-log
  +  terminationMessagePolicy: File
  +  dnsPolicy: ClusterFirst
  +  restartPolicy: Always
  +  schedulerName: default-scheduler
  +  securityContext: {}
  +  terminationGracePeriodSeconds: 30
  +status: {}
  diff
  ---
  +++
  @@ -0,0 +1,27 @@
  +apiVersion: v1
  +kind: Service
  +metadata:
  +  creationTimestamp: "<time>"
  +  labels:
  +  app: web
  +  name: web
  +  namespace: apply
  +  uid: <uid>
  +spec:
  +  clusterIP: <ip>
  +  clusterIPs:
  +  - <ip>
  +  internalTrafficPolicy: Cluster
  +  ipFamilies:
  +  - IPv4
  +  ipFamilyPolicy: SingleStack
  +  ports:
  +  - port: 80
  +  protocol: TCP
  +  targetPort: 80
  +  selector:
  +  app: web
  +  sessionAffinity: None
  +  type: ClusterIP
  +status:
  +  loadBalancer: {}
  $ kubectl apply -f web.yaml
  deployment.apps/web created
  service/web created
  $ kubectl apply -f web.yaml
  deployment.apps/web configured
  service/web unchanged
  $ kubectl diff -f web.yaml
  $ kubectl get deployment web -o yaml
  apiVersion: apps/v1
  kind: Deployment
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"labels":{"app":"web"},"name":"web","namespace":"apply"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:1","name":"nginx","ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"0.5","memory":"1Gi"}}}]}}}}
    creationTimestamp: "<time>"
    generation: 1
    labels:
      app: web
    name: web
    namespace: apply
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    progressDeadlineSeconds: 600
    replicas: 2
    revisionHistoryLimit: 10
    selector:
      matchLabels:
        app: web
    strategy:
      rollingUpdate:
        maxSurge: 25%
        maxUnavailable: 25%
      type: RollingUpdate
    template:
      metadata:
        labels:
          app: web
      spec:
        containers:
        - image: nginx:1
          imagePullPolicy: IfNotPresent
          name: nginx
          ports:
          - containerPort: 80
            protocol: TCP
          resources:
            requests:
              cpu: 500m
              memory: 1Gi
          terminationMessagePath: /dev/termination-log
          terminationMessagePolicy: File
        dnsPolicy: ClusterFirst
        restartPolicy: Always
        schedulerName: default-scheduler
        securityContext: {}
        terminationGracePeriodSeconds: 30
  status: {}
  $ kubectl get service web -o yaml
  apiVersion: v1
  kind: Service
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"v1","kind":"Service","metadata":{"annotations":{},"labels":{"app":"web"},"name":"web","namespace":"apply"},"spec":{"ports":[{"port":80}],"selector":{"app":"web"}}}
    creationTimestamp: "<time>"
    labels:
      app: web
    name: web
    namespace: apply
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    clusterIP: <ip>
    clusterIPs:
    - <ip>
    internalTrafficPolicy: Cluster
    ipFamilies:
    - IPv4
    ipFamilyPolicy: SingleStack
    ports:
    - port: 80
      protocol: TCP
      targetPort: 80
    selector:
      app: web
    sessionAffinity: None
    type: ClusterIP
  status:
    loadBalancer: {}
  $ kubectl get deployment,service
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  deployment.apps/web  0/2  0  0  <age>
  |
  NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)  AGE
  service/web  ClusterIP  <ip>  <none>  80/TCP  <age>
  $ kubectl get deployment web -o wide
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE  CONTAINERS  IMAGES  SELECTOR
  web  0/2  0  0  <age>  nginx  nginx:1  app=web
  $ sed -i 's/nginx:1/nginx:2/; s/replicas: 2/replicas: 3/' web.yaml
  $ kubectl diff -f web.yaml | sed 's/^\(---\|+++\|diff\).*/\1/'
  diff
  ---
  +++
  @@ -5,7 +5,7 @@
       kubectl.kubernetes.io/last-applied-configuration: |
         {"apiVersion":"apps/v1","kind":"Deployment","metadata":{"annotations":{},"labels":{"app":"web"},"name":"web","namespace":"apply"},"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"nginx:1","name":"nginx","ports":[{"containerPort":80}],"resources":{"requests":{"cpu":"0.5","memory":"1Gi"}}}]}}}}
     creationTimestamp: "<time>"
  -  generation: 1
  +  generation: 2
     labels:
       app: web
     name: web
  @@ -14,7 +14,7 @@
     uid: <uid>
   spec:
     progressDeadlineSeconds: 600
  -  replicas: 2
  +  replicas: 3
     revisionHistoryLimit: 10
     selector:
       matchLabels:
  @@ -30,7 +30,7 @@
           app: web
       spec:
         containers:
  -  - image: nginx:1
  +  - image: nginx:2
           imagePullPolicy: IfNotPresent
           name: nginx
           ports:
  $ kubectl apply -f web.yaml --dry-run=server
  deployment.apps/web configured (server dry run)
  service/web unchanged (server dry run)
  $ kubectl apply -f web.yaml
  deployment.apps/web configured
  service/web unchanged
  $ kubectl apply view-last-applied deployment web
  apiVersion: apps/v1
  kind: Deployment
  metadata:
    annotations: {}
    labels:
      app: web
    name: web
    namespace: apply
  spec:
    replicas: 3
    selector:
      matchLabels:
        app: web
    template:
      metadata:
        labels:
          app: web
      spec:
        containers:
        - image: nginx:2
          name: nginx
          ports:
          - containerPort: 80
          resources:
            requests:
              cpu: "0.5"
              memory: 1Gi
  $ kubectl set image deployment/web nginx=nginx:3
  deployment.apps/web image updated
  $ kubectl apply -f web.yaml
  deployment.apps/web configured
  service/web unchanged
  $ kubectl get deployment web -o jsonpath='{.metadata.generation} {.spec.template.spec.containers[0].image}{"\n"}'
  4 nginx:2
  $ sed 's/app: web}}$/app: other}}/' web.yaml | kubectl apply -f -
  service/web unchanged
  The Deployment "web" is invalid: spec.selector: Invalid value: {"matchLabels":{"app":"other"}}: field is immutable
  [1]
  $ sed 's/cpu: "0.5"/cpu: half/' web.yaml | kubectl apply -f -
  service/web unchanged
  The request is invalid: patch: Invalid value: "map[metadata:map[annotations:map[kubectl.kubernetes.io/last-applied-configuration:{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"annotations\":{},\"labels\":{\"app\":\"web\"},\"name\":\"web\",\"namespace\":\"apply\"},\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{\"app\":\"web\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"image\":\"nginx:2\",\"name\":\"nginx\",\"ports\":[{\"containerPort\":80}],\"resources\":{\"requests\":{\"cpu\":\"half\",\"memory\":\"1Gi\"}}}]}}}}\n]] spec:map[template:map[spec:map[]]]]": quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
  [1]
  $ sed 's/replicas: 3/replicas: three/' web.yaml | kubectl apply -f -
  service/web unchanged
  The request is invalid: patch: Invalid value: "map[metadata:map[annotations:map[kubectl.kubernetes.io/last-applied-configuration:{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"annotations\":{},\"labels\":{\"app\":\"web\"},\"name\":\"web\",\"namespace\":\"apply\"},\"spec\":{\"replicas\":\"three\",\"selector\":{\"matchLabels\":{\"app\":\"web\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"image\":\"nginx:2\",\"name\":\"nginx\",\"ports\":[{\"containerPort\":80}],\"resources\":{\"requests\":{\"cpu\":\"0.5\",\"memory\":\"1Gi\"}}}]}}}}\n]] spec:map[replicas:three template:map[spec:map[]]]]": unrecognized type: int32
  [1]
  $ sed 's/replicas: 3/replicas: -1/' web.yaml | kubectl apply -f -
  service/web unchanged
  The Deployment "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0
  [1]
  $ sed 's/containerPort: 80/containerPort: 80000/; s/port: 80}/port: 0}/' web.yaml | kubectl apply -f -
  Error from server (Invalid): error when applying patch:
  {"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"metadata\":{\"annotations\":{},\"labels\":{\"app\":\"web\"},\"name\":\"web\",\"namespace\":\"apply\"},\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{\"app\":\"web\"}},\"template\":{\"metadata\":{\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":[{\"image\":\"nginx:2\",\"name\":\"nginx\",\"ports\":[{\"containerPort\":80000}],\"resources\":{\"requests\":{\"cpu\":\"0.5\",\"memory\":\"1Gi\"}}}]}}}}\n"}},"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"nginx"}],"containers":[{"$setElementOrder/ports":[{"containerPort":80000}],"name":"nginx","ports":[{"containerPort":80000},{"$patch":"delete","containerPort":80}],"resources":{"requests":{"cpu":"0.5"}}}]}}}}
  to:
  Resource: "apps/v1, Resource=deployments", GroupVersionKind: "apps/v1, Kind=Deployment"
  Name: "web", Namespace: "apply"
  for: "STDIN": error when patching "STDIN": Deployment.apps "web" is invalid: spec.template.spec.containers[0].ports[0].containerPort: Invalid value: 80000: must be between 1 and 65535, inclusive
  Error from server (Invalid): error when applying patch:
  {"metadata":{"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"kind\":\"Service\",\"metadata\":{\"annotations\":{},\"labels\":{\"app\":\"web\"},\"name\":\"web\",\"namespace\":\"apply\"},\"spec\":{\"ports\":[{\"port\":0}],\"selector\":{\"app\":\"web\"}}}\n"}},"spec":{"$setElementOrder/ports":[{"port":0}],"ports":[{"port":0},{"$patch":"delete","port":80}]}}
  to:
  Resource: "/v1, Resource=services", GroupVersionKind: "/v1, Kind=Service"
  Name: "web", Namespace: "apply"
  for: "STDIN": error when patching "STDIN": Service "web" is invalid: [spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]
  [1]

By the server.

  $ kubectl apply --server-side -f web.yaml
  service/web serverside-applied
  error: Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.template.spec.containers[name="nginx"].resources.requests.cpu
  Please review the fields above--they currently have other managers. Here
  are the ways you can resolve this warning:
  * If you intend to manage all of these fields, please re-run the apply
    command with the `--force-conflicts` flag.
  * If you do not intend to manage all of the fields, please edit your
    manifest to remove references to the fields that should keep their
    current managers.
  * You may co-own fields by updating your manifest to match the existing
    value; in this case, you'll become the manager if the other manager(s)
    stop managing the field (remove it from their configuration).
  See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
  [1]
  $ kubectl apply --server-side --field-manager=mine -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: shared}
  > data: {a: "1", b: "1"}
  > END
  configmap/shared serverside-applied
  $ kubectl apply --server-side --field-manager=yours -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: shared}
  > data: {b: "2", c: "2"}
  > END
  error: Apply failed with 1 conflict: conflict with "mine": .data.b
  Please review the fields above--they currently have other managers. Here
  are the ways you can resolve this warning:
  * If you intend to manage all of these fields, please re-run the apply
    command with the `--force-conflicts` flag.
  * If you do not intend to manage all of the fields, please edit your
    manifest to remove references to the fields that should keep their
    current managers.
  * You may co-own fields by updating your manifest to match the existing
    value; in this case, you'll become the manager if the other manager(s)
    stop managing the field (remove it from their configuration).
  See https://kubernetes.io/docs/reference/using-api/server-side-apply/#conflicts
  [1]
  $ kubectl apply --server-side --field-manager=yours --force-conflicts -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: shared}
  > data: {b: "2", c: "2"}
  > END
  configmap/shared serverside-applied
  $ kubectl apply --server-side --field-manager=yours -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: shared}
  > data: {b: "2"}
  > END
  configmap/shared serverside-applied
  $ kubectl get configmap shared -o jsonpath='{.data}{"\n"}'
  {"a":"1","b":"2"}
  $ kubectl diff --server-side --field-manager=mine -f - <<'END' | sed 's/^\(---\|+++\|diff\).*/\1/'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: shared}
  > data: {a: "3"}
  > END
  diff
  ---
  +++
  @@ -1,6 +1,6 @@
   apiVersion: v1
   data:
  -  a: "1"
  +  a: "3"
     b: "2"
   kind: ConfigMap
   metadata:
  $ kubectl apply --server-side -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: shared, managedFields: [{manager: x}]}
  > END
  Error from server (BadRequest): metadata.managedFields must be nil
  [1]
  $ kubectl apply --server-side -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: shared}
  > dta: {}
  > END
  Error from server: failed to create typed patch object (apply/shared; /v1, Kind=ConfigMap): .dta: field not declared in schema
  [1]

Pruned.

  $ for n in one two; do printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, labels: {set: a}}\n---\n' $n; done > set.yaml
  $ kubectl apply --prune -l set=a --prune-allowlist=core/v1/ConfigMap -f set.yaml
  configmap/one created
  configmap/two created
  $ sed -i '/two/,$d; /---/q' set.yaml; kubectl apply --prune -l set=a --prune-allowlist=core/v1/ConfigMap -f set.yaml
  configmap/one unchanged
  configmap/two pruned
  $ kubectl get configmaps -l set=a -o name
  configmap/one
  $ mkdir set; cp set.yaml set/; KUBECTL_APPLYSET=true kubectl apply --prune --applyset=owner -n apply -f set
  configmap/one configured
  $ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: three}\n' > set/set.yaml; KUBECTL_APPLYSET=true kubectl apply --prune --applyset=owner -n apply -f set
  configmap/three created
  configmap/one pruned
  $ kubectl get secret owner -o jsonpath='{.metadata.annotations}{"\n"}'
  {"applyset.kubernetes.io/additional-namespaces":"","applyset.kubernetes.io/contains-group-kinds":"ConfigMap","applyset.kubernetes.io/tooling":"kubectl/v1.36.4"}

Replaced, and deleted by file.

Over what was made otherwise, from folders, and by what was said last.

  $ kubectl create configmap owned --from-literal=a=1 --from-literal=b=2
  configmap/owned created
  $ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned}\ndata: {a: "9", c: "3"}\n' > owned.yaml
  $ kubectl diff -f owned.yaml > diff; echo $?
  1
  $ kubectl apply -f owned.yaml
  Warning: resource configmaps/owned is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
  configmap/owned configured
  $ kubectl get configmap owned -o jsonpath='{.data}{"\n"}'
  {"a":"9","b":"2","c":"3"}
  $ kubectl diff -f owned.yaml; echo $?
  0
  $ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: owned}\ndata: {c: "4"}\n' > owned.yaml
  $ kubectl apply -f owned.yaml -o jsonpath='{.data}{"\n"}'
  {"b":"2","c":"4"}
  $ sed 's/data: .*/data: [1]/' owned.yaml | kubectl diff -f -; echo $?
  error: unable to decode "STDIN": json: cannot unmarshal array into Go struct field metadataOnlyObject.metadata of type v1.ObjectMeta
  2
  $ kubectl diff -f absent.yaml; echo $?
  error: the path "absent.yaml" does not exist
  2
  $ kubectl patch configmap owned --patch-file=/dev/stdin <<'END'
  > data: {d: "5"}
  > END
  configmap/owned patched
  $ kubectl patch -f owned.yaml -p '{"data":{"e":"6"}}' --dry-run=server -o jsonpath='{.data}{"\n"}'
  {"b":"2","c":"4","d":"5","e":"6"}
  $ kubectl label -f owned.yaml x=y --resource-version=1
  Error from server (Conflict): Operation cannot be fulfilled on configmaps "owned": the object has been modified; please apply your changes to the latest version and try again
  [1]
  $ mkdir made; printf 'namePrefix: k-\nlabels: [{pairs: {a: b}, includeSelectors: true}]\nresources: [made.yaml]\nconfigMapGenerator: [{name: c, literals: [x=y]}]\n' > made/kustomization.yaml
  $ kubectl create deployment made --image=i --dry-run=client -o yaml > made/made.yaml
  $ kubectl apply -k made
  configmap/k-c-6gc9d749f7 created
  deployment.apps/k-made created
  $ kubectl diff -k made; echo $?
  0
  $ kubectl delete -k made
  configmap "k-c-6gc9d749f7" deleted from apply namespace
  deployment.apps "k-made" deleted from apply namespace
  $ kubectl create deployment kept --image=i --save-config
  deployment.apps/kept created
  $ kubectl create deployment kept --image=j --dry-run=client -o yaml > kept.yaml
  $ kubectl apply set-last-applied -f kept.yaml
  deployment.apps/kept configured
  $ KUBE_EDITOR='sed -i s/image:.j/image:\ k/' kubectl apply edit-last-applied deployment kept
  deployment.apps/kept edited
  $ kubectl apply view-last-applied deployment kept -o json | grep '"image"'
              "image": "k",
  $ kubectl apply -f kept.yaml
  deployment.apps/kept configured
  $ kubectl apply --server-side -f kept.yaml
  deployment.apps/kept serverside-applied
  $ kubectl get deployment kept -o json --show-managed-fields | grep '"manager"\|"operation"' | sort
                  "manager": "kubectl",
                  "manager": "kubectl-create",
                  "manager": "kubectl-last-applied",
                  "operation": "Apply"
                  "operation": "Apply",
                  "operation": "Update",
  $ kubectl delete deployment kept
  deployment.apps "kept" deleted from apply namespace

  $ kubectl replace -f web.yaml
  deployment.apps/web replaced
  service/web replaced
  $ kubectl delete -f web.yaml
  deployment.apps "web" deleted from apply namespace
  service "web" deleted from apply namespace
  $ kubectl delete -f web.yaml
  Error from server (NotFound): error when deleting "web.yaml": deployments.apps "web" not found
  Error from server (NotFound): error when deleting "web.yaml": services "web" not found
  [1]
