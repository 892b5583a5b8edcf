The same objects in every form.

  $ kubectl create namespace shown
  namespace/shown created
  $ kubectl config set-context --current --namespace=shown >&-
  $ kubectl wait --for=create serviceaccount/default --timeout=30s >&-
  $ cat > web.yaml <<'END'
  > apiVersion: v1
  > kind: List
  > items:
  > - apiVersion: v1
  >   kind: Pod
  >   metadata: {name: front, labels: {app: web, tier: front}}
  >   spec:
  >     automountServiceAccountToken: false
  >     containers: [{name: c, image: "nginx:1"}, {name: side, image: "side:1"}]
  > - apiVersion: v1
  >   kind: Pod
  >   metadata: {name: back, labels: {app: web, tier: back}, annotations: {note: kept}}
  >   spec:
  >     automountServiceAccountToken: false
  >     initContainers: [{name: first, image: first}]
  >     containers: [{name: c, image: "redis:1"}]
  >     readinessGates: [{conditionType: example.com/gate}]
  > - apiVersion: apps/v1
  >   kind: Deployment
  >   metadata: {name: web}
  >   spec:
  >     selector: {matchLabels: {app: deployed}}
  >     template: {metadata: {labels: {app: deployed}}, spec: {containers: [{name: c, image: i}]}}
  > END
  $ kubectl create -f web.yaml
  pod/front created
  pod/back created
  deployment.apps/web created
  $ kubectl create -f web.yaml
  Error from server (AlreadyExists): error when creating "web.yaml": pods "front" already exists
  Error from server (AlreadyExists): error when creating "web.yaml": pods "back" already exists
  Error from server (AlreadyExists): error when creating "web.yaml": deployments.apps "web" already exists
  [1]
  $ kubectl get -f web.yaml
  NAME  READY  STATUS  RESTARTS  AGE
  pod/front  0/2  Pending  0  <age>
  pod/back  0/1  Pending  0  <age>
  |
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  deployment.apps/web  0/1  0  0  <age>
  $ kubectl get -f web.yaml -o name
  pod/front
  pod/back
  deployment.apps/web
  $ kubectl get pods
  NAME  READY  STATUS  RESTARTS  AGE
  back  0/1  Pending  0  <age>
  front  0/2  Pending  0  <age>
  $ kubectl get pods -o wide
  NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES
  back  0/1  Pending  0  <age>  <none>  <none>  <none>  0/1
  front  0/2  Pending  0  <age>  <none>  <none>  <none>  <none>
  $ kubectl get pods,deployments
  NAME  READY  STATUS  RESTARTS  AGE
  pod/back  0/1  Pending  0  <age>
  pod/front  0/2  Pending  0  <age>
  |
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  deployment.apps/web  0/1  0  0  <age>
  $ kubectl get pods --show-labels
  NAME  READY  STATUS  RESTARTS  AGE  LABELS
  back  0/1  Pending  0  <age>  app=web,tier=back
  front  0/2  Pending  0  <age>  app=web,tier=front
  $ kubectl get pods -L app -L tier,absent
  NAME  READY  STATUS  RESTARTS  AGE  APP  TIER  ABSENT
  back  0/1  Pending  0  <age>  web  back
  front  0/2  Pending  0  <age>  web  front
  $ kubectl get pods --no-headers
  back  0/1  Pending  0  <age>
  front  0/2  Pending  0  <age>
  $ kubectl get pods --show-kind
  NAME  READY  STATUS  RESTARTS  AGE
  pod/back  0/1  Pending  0  <age>
  pod/front  0/2  Pending  0  <age>
  $ kubectl get pods --label-columns=tier --show-labels
  NAME  READY  STATUS  RESTARTS  AGE  TIER  LABELS
  back  0/1  Pending  0  <age>  back  app=web,tier=back
  front  0/2  Pending  0  <age>  front  app=web,tier=front
  $ kubectl get pods -o name
  pod/back
  pod/front
  $ kubectl get pod front -o json
  {
      "apiVersion": "v1",
      "kind": "Pod",
      "metadata": {
          "creationTimestamp": "<time>",
          "generation": 1,
          "labels": {
              "app": "web",
              "tier": "front"
          },
          "name": "front",
          "namespace": "shown",
          "resourceVersion": "<version>",
          "uid": "<uid>"
      },
      "spec": {
          "automountServiceAccountToken": false,
          "containers": [
              {
                  "image": "nginx:1",
                  "imagePullPolicy": "IfNotPresent",
                  "name": "c",
                  "resources": {},
                  "terminationMessagePath": "/dev/termination-log",
                  "terminationMessagePolicy": "File"
              },
              {
                  "image": "side:1",
                  "imagePullPolicy": "IfNotPresent",
                  "name": "side",
                  "resources": {},
                  "terminationMessagePath": "/dev/termination-log",
                  "terminationMessagePolicy": "File"
              }
          ],
          "dnsPolicy": "ClusterFirst",
          "enableServiceLinks": true,
          "preemptionPolicy": "PreemptLowerPriority",
          "priority": 0,
          "restartPolicy": "Always",
          "schedulerName": "default-scheduler",
          "securityContext": {},
          "serviceAccount": "default",
          "serviceAccountName": "default",
          "terminationGracePeriodSeconds": 30,
          "tolerations": [
              {
                  "effect": "NoExecute",
                  "key": "node.kubernetes.io/not-ready",
                  "operator": "Exists",
                  "tolerationSeconds": 300
              },
              {
                  "effect": "NoExecute",
                  "key": "node.kubernetes.io/unreachable",
                  "operator": "Exists",
                  "tolerationSeconds": 300
              }
          ]
      },
      "status": {
          "phase": "Pending",
          "qosClass": "BestEffort"
      }
  }
  $ kubectl get pods back -o yaml
  apiVersion: v1
  kind: Pod
  metadata:
    annotations:
      note: kept
    creationTimestamp: "<time>"
    generation: 1
    labels:
      app: web
      tier: back
    name: back
    namespace: shown
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    automountServiceAccountToken: false
    containers:
    - image: redis:1
      imagePullPolicy: IfNotPresent
      name: c
      resources: {}
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: File
    dnsPolicy: ClusterFirst
    enableServiceLinks: true
    initContainers:
    - image: first
      imagePullPolicy: Always
      name: first
      resources: {}
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: File
    preemptionPolicy: PreemptLowerPriority
    priority: 0
    readinessGates:
    - conditionType: example.com/gate
    restartPolicy: Always
    schedulerName: default-scheduler
    securityContext: {}
    serviceAccount: default
    serviceAccountName: default
    terminationGracePeriodSeconds: 30
    tolerations:
    - effect: NoExecute
      key: node.kubernetes.io/not-ready
      operator: Exists
      tolerationSeconds: 300
    - effect: NoExecute
      key: node.kubernetes.io/unreachable
      operator: Exists
      tolerationSeconds: 300
  status:
    phase: Pending
    qosClass: BestEffort
  $ kubectl get pods -o jsonpath='{.items[*].metadata.name}{"\n"}'
  back front
  $ kubectl get pods -o jsonpath='{range .items[*]}{.metadata.name}{"\t"}{.spec.containers[*].image}{"\n"}{end}'
  back	redis:1
  front	nginx:1 side:1
  $ kubectl get pods -o jsonpath='{.items[?(@.metadata.labels.tier=="back")].spec.containers[0].name}{"\n"}'
  c
  $ kubectl get pods -o jsonpath='{.kind} {.apiVersion} {.items[0].kind}{"\n"}'
  List v1 Pod
  $ kubectl get pod front -o jsonpath='{.absent}{"\n"}'
  $ kubectl get pod front -o jsonpath='{.absent' 
  error: error parsing jsonpath {.absent, unclosed action
  [1]
  $ printf '{.metadata.name} {.status.phase}\n' > path; kubectl get pod front -o jsonpath-file=path
  front Pending
  $ kubectl get pods -o jsonpath-as-json='{.items[*].metadata.labels}'
  [
      {
          "app": "web",
          "tier": "back"
      },
      {
          "app": "web",
          "tier": "front"
      }
  ]
  $ kubectl get pods -o go-template='{{range .items}}{{.metadata.name}} {{.status.qosClass}}{{"\n"}}{{end}}'
  back BestEffort
  front BestEffort
  $ printf '{{.metadata.name}}{{"\\n"}}' > template; kubectl get pod front -o go-template-file=template
  front
  $ kubectl get pod front -o go-template='{{.absent.deeper}}'
  <no value>
  $ kubectl get pods -o template --template='{{len .items}}{{"\n"}}'
  2
  $ kubectl get pods -o custom-columns=NAME:.metadata.name,IMAGES:.spec.containers[*].image,NODE:.spec.nodeName
  NAME  IMAGES  NODE
  back  redis:1  <none>
  front  nginx:1,side:1  <none>
  $ printf 'NAME PHASE\n.metadata.name .status.phase\n' > columns; kubectl get pods -o custom-columns-file=columns
  NAME  PHASE
  back  Pending
  front  Pending
  $ kubectl get pods -o custom-columns=NAME --no-headers
  error: unexpected custom-columns spec: NAME, expected <header>:<json-path-expr>
  [1]
  $ kubectl get pods -o kyaml --field-selector metadata.name=absent
  ---
  {
    apiVersion: "v1",
    items: [],
    kind: "List",
    metadata: {
      resourceVersion: "",
    },
  }
  $ kubectl get deployment web -o kyaml
  ---
  {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: {
      creationTimestamp: "<time>",
      generation: 1,
      name: "web",
      namespace: "shown",
      resourceVersion: "<version>",
      uid: "<uid>",
    },
    spec: {
      progressDeadlineSeconds: 600,
      replicas: 1,
      revisionHistoryLimit: 10,
      selector: {
        matchLabels: {
          app: "deployed",
        },
      },
      strategy: {
        rollingUpdate: {
          maxSurge: "25%",
          maxUnavailable: "25%",
        },
        type: "RollingUpdate",
      },
      template: {
        metadata: {
          labels: {
            app: "deployed",
          },
        },
        spec: {
          containers: [{
            image: "i",
            imagePullPolicy: "Always",
            name: "c",
            resources: {},
            terminationMessagePath: "/dev/termination-log",
            terminationMessagePolicy: "File",
          }],
          dnsPolicy: "ClusterFirst",
          restartPolicy: "Always",
          schedulerName: "default-scheduler",
          securityContext: {},
          terminationGracePeriodSeconds: 30,
        },
      },
    },
    status: {},
  }
  $ kubectl get pods -o sideways
  error: unable to match a printer suitable for the output format "sideways", allowed formats are: custom-columns,custom-columns-file,go-template,go-template-file,json,jsonpath,jsonpath-as-json,jsonpath-file,kyaml,name,template,templatefile,wide,yaml
  [1]
  $ kubectl get pods --sort-by=.metadata.name
  NAME  READY  STATUS  RESTARTS  AGE
  back  0/1  Pending  0  <age>
  front  0/2  Pending  0  <age>
  $ kubectl get pods --sort-by='{.spec.containers[0].image}' -o name
  pod/front
  pod/back
  $ kubectl get pods --sort-by=.metadata.name -o name
  pod/back
  pod/front
  $ kubectl get pods --sort-by=.spec.absent
  No resources found in shown namespace.
  $ kubectl get pods -l app=web,tier!=back
  NAME  READY  STATUS  RESTARTS  AGE
  front  0/2  Pending  0  <age>
  $ kubectl get pods -l 'tier notin (back),app'
  NAME  READY  STATUS  RESTARTS  AGE
  front  0/2  Pending  0  <age>
  $ kubectl get pods -l '!app' 
  No resources found in shown namespace.
  $ kubectl get pods --selector=app==web -o name
  pod/back
  pod/front
  $ kubectl get pods -l 'a in ('
  Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "a in (", field selector "": unable to parse requirement: found '', expected: ',', ')' or identifier
  [1]
  $ kubectl get pods --field-selector status.phase=Pending -o name
  pod/back
  pod/front
  $ kubectl get pods --field-selector status.phase!=Pending
  No resources found in shown namespace.
  $ kubectl get pods --field-selector metadata.namespace=shown,spec.restartPolicy=Always -o name
  pod/back
  pod/front
  $ kubectl get pods --field-selector metadata.labels.app=web
  Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", field selector "metadata.labels.app=web": field label not supported: metadata.labels.app
  [1]
  $ kubectl get pods --field-selector '='
  NAME  READY  STATUS  RESTARTS  AGE
  back  0/1  Pending  0  <age>
  front  0/2  Pending  0  <age>
  $ kubectl get pods -A -l app=web
  NAMESPACE  NAME  READY  STATUS  RESTARTS  AGE
  shown  back  0/1  Pending  0  <age>
  shown  front  0/2  Pending  0  <age>
  $ kubectl get pods -A -l app=web --no-headers -o wide
  shown  back  0/1  Pending  0  <age>  <none>  <none>  <none>  0/1
  shown  front  0/2  Pending  0  <age>  <none>  <none>  <none>  <none>
  $ kubectl get pods -n absent
  No resources found in absent namespace.
  $ kubectl get pod absent
  Error from server (NotFound): pods "absent" not found
  [1]
  $ kubectl get pod absent front
  NAME  READY  STATUS  RESTARTS  AGE
  front  0/2  Pending  0  <age>
  Error from server (NotFound): pods "absent" not found
  [1]
  $ kubectl get pod absent --ignore-not-found
  $ kubectl get pod front back --ignore-not-found absent -o name
  pod/front
  pod/back
  $ kubectl get pods/front deployment/web
  NAME  READY  STATUS  RESTARTS  AGE
  pod/front  0/2  Pending  0  <age>
  |
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  deployment.apps/web  0/1  0  0  <age>
  $ kubectl get po,deploy -o wide
  NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES
  pod/back  0/1  Pending  0  <age>  <none>  <none>  <none>  0/1
  pod/front  0/2  Pending  0  <age>  <none>  <none>  <none>  <none>
  |
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE  CONTAINERS  IMAGES  SELECTOR
  deployment.apps/web  0/1  0  0  <age>  c  i  app=deployed
  $ kubectl get deployments.apps web; kubectl get deployments.v1.apps web; kubectl get deployments.v1beta1.apps web
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  web  0/1  0  0  <age>
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  web  0/1  0  0  <age>
  error: the server doesn't have a resource type "deployments"
  [1]
  $ kubectl get Pod front; kubectl get PODS front
  NAME  READY  STATUS  RESTARTS  AGE
  front  0/2  Pending  0  <age>
  NAME  READY  STATUS  RESTARTS  AGE
  front  0/2  Pending  0  <age>
  $ kubectl get pods --server-print=false
  NAME  AGE
  back  <age>
  front  <age>
  $ kubectl get pods --chunk-size=1
  NAME  READY  STATUS  RESTARTS  AGE
  back  0/1  Pending  0  <age>
  front  0/2  Pending  0  <age>
  $ kubectl get pods --output-watch-events
  error: --output-watch-events option can only be used with --watch or --watch-only
  [1]
  $ kubectl get pod front --watch --request-timeout=2s -o custom-columns=NAME:.metadata.name,PHASE:.status.phase
  NAME  PHASE
  front  Pending
  $ cat > watch.sh <<'END'
  > kubectl get configmaps --watch-only --output-watch-events --field-selector metadata.name=seen > seen &
  > for attempt in $(seq 30); do
  >   grep -q ADDED seen && tail -1 seen | grep -q DELETED && break
  >   kubectl create configmap seen
  >   kubectl label configmap seen a=b
  >   kubectl delete configmap seen
  > done > log 2>&1
  > kill $!
  > head -1 seen; tail -3 seen
  > END
  $ sh watch.sh
  EVENT  NAME  DATA  AGE
  ADDED  seen  0  <age>
  MODIFIED  seen  0  <age>
  DELETED  seen  0  <age>
  $ kubectl get all
  NAME  READY  STATUS  RESTARTS  AGE
  pod/back  0/1  Pending  0  <age>
  pod/front  0/2  Pending  0  <age>
  |
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  deployment.apps/web  0/1  0  0  <age>
  $ kubectl get pods,absent
  error: the server doesn't have a resource type "absent"
  [1]
  $ kubectl get
  You must specify the type of resource to get. Use "kubectl api-resources" for a complete list of supported resources.
  |
  error: Required resource not specified.
  Use "kubectl explain <resource>" for a detailed description of that resource (e.g. kubectl explain pods).
  See 'kubectl get -h' for help and examples
  [1]
  $ kubectl get pods --raw /api
  error: arguments may not be passed when --raw is specified
  [1]
  $ kubectl get pod front -o yaml --show-managed-fields | sed -n '/managedFields/,/manager:/p'
    managedFields:
    - apiVersion: v1
      fieldsType: FieldsV1
      fieldsV1:
        f:metadata:
          f:labels:
            .: {}
            f:app: {}
            f:tier: {}
        f:spec:
          f:automountServiceAccountToken: {}
          f:containers:
            k:{"name":"c"}:
              .: {}
              f:image: {}
              f:imagePullPolicy: {}
              f:name: {}
              f:resources: {}
              f:terminationMessagePath: {}
              f:terminationMessagePolicy: {}
            k:{"name":"side"}:
              .: {}
              f:image: {}
              f:imagePullPolicy: {}
              f:name: {}
              f:resources: {}
              f:terminationMessagePath: {}
              f:terminationMessagePolicy: {}
          f:dnsPolicy: {}
          f:enableServiceLinks: {}
          f:restartPolicy: {}
          f:schedulerName: {}
          f:securityContext: {}
          f:terminationGracePeriodSeconds: {}
      manager: kubectl-create
  $ kubectl get pods -o json --field-selector metadata.name=front | head -30
  {
      "apiVersion": "v1",
      "items": [
          {
              "apiVersion": "v1",
              "kind": "Pod",
              "metadata": {
                  "creationTimestamp": "<time>",
                  "generation": 1,
                  "labels": {
                      "app": "web",
                      "tier": "front"
                  },
                  "name": "front",
                  "namespace": "shown",
                  "resourceVersion": "<version>",
                  "uid": "<uid>"
              },
              "spec": {
                  "automountServiceAccountToken": false,
                  "containers": [
                      {
                          "image": "nginx:1",
                          "imagePullPolicy": "IfNotPresent",
                          "name": "c",
                          "resources": {},
                          "terminationMessagePath": "/dev/termination-log",
                          "terminationMessagePolicy": "File"
                      },
                      {
  $ kubectl get --raw '/api/v1/namespaces/shown/pods?limit=1' | head -c 50; echo
  {"kind":"PodList","apiVersion":"v1","metadata":{"r
  $ kubectl get --raw '/api/v1/namespaces/shown/pods?limit=x'
  Error from server (BadRequest): strconv.ParseInt: parsing "x": invalid syntax
  [1]
  $ kubectl get --raw '/api/v1/namespaces/shown/pods?fieldSelector=a%3Db'
  Error from server (BadRequest): field label not supported: a
  [1]
  $ kubectl get --raw '/api/v1/namespaces/shown/pods?labelSelector=%21%21'
  Error from server (BadRequest): unable to parse requirement: found '!', expected: identifier
  [1]
  $ kubectl get --raw '/api/v1/namespaces/shown/pods?resourceVersion=x'
  Error from server (BadRequest): invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax
  [1]
  $ kubectl get --raw '/api/v1/namespaces/shown/pods?continue=x'
  Error from server (BadRequest): invalid continue token: continue key is not valid: illegal base64 data at input byte 0
  [1]
  $ kubectl get --raw '/api/v1/namespaces/shown/pods?resourceVersionMatch=Exact'
  The ListOptions "" is invalid: resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided
  [1]
  $ kubectl get --raw '/api/v1/namespaces/shown/pods/front/absent'
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl get --raw '/api/v1/absent'
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl get --raw '/api/v2'
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl get --raw '/apis/apps/v9/deployments'
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl get --raw '/readyz?verbose' | grep 'ping\|log\|etcd\|shutdown\|passed'
  [+]ping ok
  [+]log ok
  [+]etcd ok
  [+]etcd-readiness ok
  [+]shutdown ok
  readyz check passed
  $ kubectl get --raw '/livez?exclude=etcd'; echo
  ok
  $ kubectl get --raw '/readyz/ping'; echo
  ok
  $ kubectl get --raw '/readyz/absent'
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl delete -f web.yaml --wait=false --grace-period=0 --force
  Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
  pod "front" force deleted from shown namespace
  pod "back" force deleted from shown namespace
  deployment.apps "web" force deleted from shown namespace
