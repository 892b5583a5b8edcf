Who may do what.

  $ kubectl create namespace access
  namespace/access created
  $ kubectl config set-context --current --namespace=access >&-
  $ kubectl auth whoami --as=jane --as-group=devs --as-uid=7 --as-user-extra=a=b
  ATTRIBUTE  VALUE
  Username  jane
  UID  7
  Groups  [devs system:authenticated]
  Extra: a  [b]
  $ kubectl auth whoami -o yaml --as=jane
  apiVersion: authentication.k8s.io/v1
  kind: SelfSubjectReview
  metadata:
    creationTimestamp: "<time>"
  status:
    userInfo:
      groups:
      - system:authenticated
      username: jane
  $ kubectl auth can-i '*' '*'
  yes
  $ kubectl auth can-i get pods --as=jane
  no
  [1]
  $ kubectl create role reader --verb=get,list,watch --resource=pods,configmaps,deployments.apps/scale
  role.rbac.authorization.k8s.io/reader created
  $ kubectl create role named --verb=get --resource=secrets --resource-name=one
  role.rbac.authorization.k8s.io/named created
  $ kubectl create rolebinding readers --role=reader --user=jane --group=devs --serviceaccount=access:robot
  rolebinding.rbac.authorization.k8s.io/readers created
  $ kubectl create clusterrole transcript-all --verb='*' --resource=nodes --non-resource-url=/healthz
  clusterrole.rbac.authorization.k8s.io/transcript-all created
  $ kubectl create clusterrole transcript-sum --aggregation-rule=transcript=yes
  clusterrole.rbac.authorization.k8s.io/transcript-sum created
  $ kubectl create clusterrolebinding transcript-all --clusterrole=transcript-all --user=jane
  clusterrolebinding.rbac.authorization.k8s.io/transcript-all created
  $ kubectl create rolebinding absent --role=absent --user=jane
  rolebinding.rbac.authorization.k8s.io/absent created
  $ kubectl get roles,rolebindings
  NAME  CREATED AT
  role.rbac.authorization.k8s.io/named  <time>
  role.rbac.authorization.k8s.io/reader  <time>
  |
  NAME  ROLE  AGE
  rolebinding.rbac.authorization.k8s.io/absent  Role/absent  <age>
  rolebinding.rbac.authorization.k8s.io/readers  Role/reader  <age>
  $ kubectl get roles,rolebindings -o wide
  NAME  CREATED AT
  role.rbac.authorization.k8s.io/named  <time>
  role.rbac.authorization.k8s.io/reader  <time>
  |
  NAME  ROLE  AGE  USERS  GROUPS  SERVICEACCOUNTS
  rolebinding.rbac.authorization.k8s.io/absent  Role/absent  <age>  jane
  rolebinding.rbac.authorization.k8s.io/readers  Role/reader  <age>  jane  devs  access/robot
  $ kubectl get role reader -o yaml
  apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata:
    creationTimestamp: "<time>"
    name: reader
    namespace: access
    resourceVersion: "<version>"
    uid: <uid>
  rules:
  - apiGroups:
    - ""
    resources:
    - pods
    - configmaps
    verbs:
    - get
    - list
    - watch
  - apiGroups:
    - apps
    resources:
    - deployments/scale
    verbs:
    - get
    - list
    - watch
  $ kubectl get rolebinding readers -o yaml
  apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata:
    creationTimestamp: "<time>"
    name: readers
    namespace: access
    resourceVersion: "<version>"
    uid: <uid>
  roleRef:
    apiGroup: rbac.authorization.k8s.io
    kind: Role
    name: reader
  subjects:
  - apiGroup: rbac.authorization.k8s.io
    kind: User
    name: jane
  - apiGroup: rbac.authorization.k8s.io
    kind: Group
    name: devs
  - kind: ServiceAccount
    name: robot
    namespace: access
  $ kubectl get clusterrole transcript-all transcript-sum -o yaml
  apiVersion: v1
  items:
  - apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      creationTimestamp: "<time>"
      name: transcript-all
      resourceVersion: "<version>"
      uid: <uid>
    rules:
    - apiGroups:
      - ""
      resources:
      - nodes
      verbs:
      - '*'
    - nonResourceURLs:
      - /healthz
      verbs:
      - '*'
  - aggregationRule:
      clusterRoleSelectors:
      - matchLabels:
          transcript: "yes"
    apiVersion: rbac.authorization.k8s.io/v1
    kind: ClusterRole
    metadata:
      creationTimestamp: "<time>"
      name: transcript-sum
      resourceVersion: "<version>"
      uid: <uid>
    rules: null
  kind: List
  metadata:
    resourceVersion: ""
  $ kubectl describe role reader
  Name:  reader
  Labels:  <none>
  Annotations:  <none>
  PolicyRule:
    Resources  Non-Resource URLs  Resource Names  Verbs
    ---------  -----------------  --------------  -----
    configmaps  []  []  [get list watch]
    pods  []  []  [get list watch]
    deployments.apps/scale  []  []  [get list watch]
  $ kubectl describe rolebinding readers
  Name:  readers
  Labels:  <none>
  Annotations:  <none>
  Role:
    Kind:  Role
    Name:  reader
  Subjects:
    Kind  Name  Namespace
    ----  ----  ---------
    User  jane
    Group  devs
    ServiceAccount  robot  access
  $ kubectl describe clusterrole system:basic-user
  Name:  system:basic-user
  Labels:  kubernetes.io/bootstrapping=rbac-defaults
  Annotations:  rbac.authorization.kubernetes.io/autoupdate: true
  PolicyRule:
    Resources  Non-Resource URLs  Resource Names  Verbs
    ---------  -----------------  --------------  -----
    selfsubjectreviews.authentication.k8s.io  []  []  [create]
    selfsubjectaccessreviews.authorization.k8s.io  []  []  [create]
    selfsubjectrulesreviews.authorization.k8s.io  []  []  [create]
  $ kubectl auth can-i get pods --as=jane
  yes
  $ kubectl auth can-i delete pods --as=jane
  no - RBAC: role.rbac.authorization.k8s.io "absent" not found
  [1]
  $ kubectl auth can-i get secrets/one --as=jane
  no - RBAC: role.rbac.authorization.k8s.io "absent" not found
  [1]
  $ kubectl auth can-i get /healthz --as=jane
  yes
  $ kubectl auth can-i list pods --as=system:serviceaccount:access:robot -A
  no
  [1]
  $ kubectl auth can-i get nothing --as=jane
  Warning: the server doesn't have a resource type 'nothing'
  |
  no - RBAC: role.rbac.authorization.k8s.io "absent" not found
  [1]
  $ kubectl auth can-i --list --as=jane
  Resources  Non-Resource URLs  Resource Names  Verbs
                                                  [/healthz]  []  [*]
  nodes  []  []  [*]
  selfsubjectreviews.authentication.k8s.io  []  []  [create]
  selfsubjectaccessreviews.authorization.k8s.io  []  []  [create]
  selfsubjectrulesreviews.authorization.k8s.io  []  []  [create]
  configmaps  []  []  [get list watch]
  pods  []  []  [get list watch]
  deployments.apps/scale  []  []  [get list watch]
                                                  [/api/*]  []  [get]
                                                  [/api]  []  [get]
                                                  [/apis/*]  []  [get]
                                                  [/apis]  []  [get]
                                                  [/healthz]  []  [get]
                                                  [/healthz]  []  [get]
                                                  [/livez]  []  [get]
                                                  [/livez]  []  [get]
                                                  [/openapi/*]  []  [get]
                                                  [/openapi]  []  [get]
                                                  [/readyz]  []  [get]
                                                  [/readyz]  []  [get]
                                                  [/version/]  []  [get]
                                                  [/version/]  []  [get]
                                                  [/version]  []  [get]
                                                  [/version]  []  [get]
  $ kubectl get pods --as=jane
  No resources found in access namespace.
  $ kubectl get secrets --as=jane
  Error from server (Forbidden): secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "access": RBAC: role.rbac.authorization.k8s.io "absent" not found
  [1]
  $ kubectl get node absent --as=jane
  Error from server (NotFound): nodes "absent" not found
  [1]
  $ kubectl get namespaces --as=jane
  Error from server (Forbidden): namespaces is forbidden: User "jane" cannot list resource "namespaces" in API group "" at the cluster scope
  [1]
  $ kubectl create configmap a --as=jane
  error: failed to create configmap: configmaps is forbidden: User "jane" cannot create resource "configmaps" in API group "" in the namespace "access": RBAC: role.rbac.authorization.k8s.io "absent" not found
  [1]
  $ kubectl create configmap b
  configmap/b created
  $ kubectl delete configmaps --field-selector metadata.name=b --as=jane
  Error from server (Forbidden): configmaps "b" is forbidden: User "jane" cannot delete resource "configmaps" in API group "" in the namespace "access": RBAC: role.rbac.authorization.k8s.io "absent" not found
  [1]
  $ kubectl get pods -n default --as=nobody --as-group=system:unauthenticated
  Error from server (Forbidden): pods is forbidden: User "nobody" cannot list resource "pods" in API group "" in the namespace "default"
  [1]
  $ kubectl create role more --verb=get --resource=secrets --as=jane
  Error from server (Forbidden): roles.rbac.authorization.k8s.io is forbidden: User "jane" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "access": RBAC: role.rbac.authorization.k8s.io "absent" not found
  [1]
  $ kubectl create rolebinding more --clusterrole=cluster-admin --user=jane --as=jane
  error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io is forbidden: User "jane" cannot create resource "rolebindings" in API group "rbac.authorization.k8s.io" in the namespace "access": RBAC: role.rbac.authorization.k8s.io "absent" not found
  [1]
  $ kubectl set subject rolebinding readers --user=john
  rolebinding.rbac.authorization.k8s.io/readers subjects updated
  $ kubectl patch rolebinding readers --type=merge -p '{"roleRef":{"name":"other"}}'
  The RoleBinding "readers" is invalid: roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io","Kind":"Role","Name":"other"}: cannot change roleRef
  [1]
  $ kubectl auth reconcile -f - <<'END'
  > apiVersion: rbac.authorization.k8s.io/v1
  > kind: Role
  > metadata: {name: reader, namespace: access}
  > rules: [{apiGroups: [""], resources: [services], verbs: [get]}]
  > END
  role.rbac.authorization.k8s.io/reader reconciled
  	reconciliation required update
  	missing rules added:
  		{Verbs:[get] APIGroups:[] Resources:[services] ResourceNames:[] NonResourceURLs:[]}
  $ kubectl create -f - <<'END'
  > apiVersion: rbac.authorization.k8s.io/v1
  > kind: Role
  > metadata: {name: wrong}
  > rules: [{apiGroups: [""], resources: [services]}, {verbs: [get], nonResourceURLs: [/a]}]
  > END
  The Role "wrong" is invalid:
  * rules[0].verbs: Required value: verbs must contain at least one value
  * rules[1].nonResourceURLs: Invalid value: ["/a"]: namespaced rules cannot apply to non-resource URLs
  [1]
  $ kubectl create serviceaccount robot
  serviceaccount/robot created
  $ kubectl create token robot | tr -d '\n' | wc -w
  1
  $ kubectl create token robot --duration=10s
  error: failed to create token: TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 10: may not specify a duration less than 10 minutes
  [1]
  $ kubectl create token absent
  error: failed to create token: serviceaccounts "absent" not found
  [1]
  $ kubectl config set-credentials robot --token="$(kubectl create token robot)" >&-
  $ kubectl config set-context robot --user=robot --cluster="$(kubectl config view --minify -o jsonpath='{.clusters[0].name}')" >&-
  $ kubectl auth whoami --context=robot
  ATTRIBUTE  VALUE
  Username  system:serviceaccount:access:robot
  UID  <uid>
  Groups  [system:serviceaccounts system:serviceaccounts:access system:authenticated]
  Extra: authentication.kubernetes.io/credential-id  [JTI=<uid>]
  $ kubectl get secrets --context=robot -n access
  Error from server (Forbidden): secrets is forbidden: User "system:serviceaccount:access:robot" cannot list resource "secrets" in API group "" in the namespace "access"
  [1]
  $ kubectl create token robot --audience=other --duration=1h -o jsonpath='{.spec.audiences}{"\n"}'
  ["other"]
  $ kubectl create -o yaml -f - <<'END'
  > apiVersion: authorization.k8s.io/v1
  > kind: SubjectAccessReview
  > spec: {user: jane, resourceAttributes: {namespace: access, verb: get, resource: configmaps}}
  > END
  apiVersion: authorization.k8s.io/v1
  kind: SubjectAccessReview
  metadata: {}
  spec:
    resourceAttributes:
      namespace: access
      resource: configmaps
      verb: get
    user: jane
  status:
    allowed: true
    reason: 'RBAC: allowed by RoleBinding "readers/access" of Role "reader" to User
      "jane"'
  $ kubectl create -f - <<'END'
  > apiVersion: authorization.k8s.io/v1
  > kind: SubjectAccessReview
  > spec: {}
  > END
  The request is invalid:
  * spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified
  * spec.user: Invalid value: "": at least one of user or group must be specified
  [1]

Nobody gives more than they have.

  $ kubectl create rolebinding eve --clusterrole=admin --user=eve
  rolebinding.rbac.authorization.k8s.io/eve created
  $ kubectl create role more --verb=get --resource=nodes --as=eve
  Error from server (Forbidden): roles.rbac.authorization.k8s.io "more" is forbidden: user "eve" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
  {APIGroups:[""], Resources:["nodes"], Verbs:["get"]}
  [1]
  $ kubectl create role more --verb=get,list --resource=secrets --as=eve
  role.rbac.authorization.k8s.io/more created
  $ kubectl create role all --verb='*' --resource='*' --as=eve
  Error from server (Forbidden): roles.rbac.authorization.k8s.io "all" is forbidden: user "eve" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
  {APIGroups:[""], Resources:["*"], Verbs:["*"]}
  [1]
  $ kubectl create rolebinding all --clusterrole=cluster-admin --user=eve --as=eve
  error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "all" is forbidden: user "eve" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held:
  {APIGroups:["*"], Resources:["*"], Verbs:["*"]}
  {NonResourceURLs:["*"], Verbs:["*"]}
  [1]
  $ kubectl create rolebinding view --clusterrole=view --user=joe --as=eve
  rolebinding.rbac.authorization.k8s.io/view created
  $ kubectl create clusterrole transcript-more --verb=get --resource=pods --as=eve
  Error from server (Forbidden): clusterroles.rbac.authorization.k8s.io is forbidden: User "eve" cannot create resource "clusterroles" in API group "rbac.authorization.k8s.io" at the cluster scope
  [1]
  $ kubectl auth can-i create rolebindings --as=eve; kubectl auth can-i escalate roles --as=eve; kubectl auth can-i bind clusterroles --as=eve
  yes
  no
  Warning: resource 'clusterroles' is not namespace scoped in group 'rbac.authorization.k8s.io'
  |
  no
  [1]
  $ kubectl auth can-i list pods --as=eve -n default
  no
  [1]
  $ kubectl auth can-i list pods --subresource=log --as=eve
  yes
  $ kubectl auth can-i get pods --as=joe --quiet; echo $?
  0
  $ kubectl auth can-i
  error: you must specify two arguments: verb resource or verb resource/resourceName.
  See 'kubectl auth can-i -h' for help and examples.
  [1]
  $ kubectl auth can-i get pods/one --as=joe
  yes
  $ kubectl auth can-i use podsecuritypolicies.policy --as=joe
  Warning: the server doesn't have a resource type 'podsecuritypolicies' in group 'policy'
  |
  no
  [1]
  $ kubectl auth can-i get nodes --as=joe
  Warning: resource 'nodes' is not namespace scoped
  |
  no
  [1]
  $ kubectl auth can-i --list --as=joe | sort
                                                  [/api/*]  []  [get]
                                                  [/api]  []  [get]
                                                  [/apis/*]  []  [get]
                                                  [/apis]  []  [get]
                                                  [/healthz]  []  [get]
                                                  [/healthz]  []  [get]
                                                  [/livez]  []  [get]
                                                  [/livez]  []  [get]
                                                  [/openapi/*]  []  [get]
                                                  [/openapi]  []  [get]
                                                  [/readyz]  []  [get]
                                                  [/readyz]  []  [get]
                                                  [/version/]  []  [get]
                                                  [/version/]  []  [get]
                                                  [/version]  []  [get]
                                                  [/version]  []  [get]
  Resources  Non-Resource URLs  Resource Names  Verbs
  bindings  []  []  [get list watch]
  configmaps  []  []  [get list watch]
  controllerrevisions.apps  []  []  [get list watch]
  cronjobs.batch  []  []  [get list watch]
  cronjobs.batch/status  []  []  [get list watch]
  daemonsets.apps  []  []  [get list watch]
  daemonsets.apps/status  []  []  [get list watch]
  daemonsets.extensions  []  []  [get list watch]
  daemonsets.extensions/status  []  []  [get list watch]
  deployments.apps  []  []  [get list watch]
  deployments.apps/scale  []  []  [get list watch]
  deployments.apps/status  []  []  [get list watch]
  deployments.extensions  []  []  [get list watch]
  deployments.extensions/scale  []  []  [get list watch]
  deployments.extensions/status  []  []  [get list watch]
  endpoints  []  []  [get list watch]
  endpointslices.discovery.k8s.io  []  []  [get list watch]
  events  []  []  [get list watch]
  events.events.k8s.io  []  []  [get list watch]
  horizontalpodautoscalers.autoscaling  []  []  [get list watch]
  horizontalpodautoscalers.autoscaling/status  []  []  [get list watch]
  ingresses.extensions  []  []  [get list watch]
  ingresses.extensions/status  []  []  [get list watch]
  ingresses.networking.k8s.io  []  []  [get list watch]
  ingresses.networking.k8s.io/status  []  []  [get list watch]
  jobs.batch  []  []  [get list watch]
  jobs.batch/status  []  []  [get list watch]
  limitranges  []  []  [get list watch]
  namespaces  []  []  [get list watch]
  namespaces/status  []  []  [get list watch]
  networkpolicies.extensions  []  []  [get list watch]
  networkpolicies.networking.k8s.io  []  []  [get list watch]
  persistentvolumeclaims  []  []  [get list watch]
  persistentvolumeclaims/status  []  []  [get list watch]
  poddisruptionbudgets.policy  []  []  [get list watch]
  poddisruptionbudgets.policy/status  []  []  [get list watch]
  pods  []  []  [get list watch]
  pods/log  []  []  [get list watch]
  pods/status  []  []  [get list watch]
  replicasets.apps  []  []  [get list watch]
  replicasets.apps/scale  []  []  [get list watch]
  replicasets.apps/status  []  []  [get list watch]
  replicasets.extensions  []  []  [get list watch]
  replicasets.extensions/scale  []  []  [get list watch]
  replicasets.extensions/status  []  []  [get list watch]
  replicationcontrollers  []  []  [get list watch]
  replicationcontrollers.extensions/scale  []  []  [get list watch]
  replicationcontrollers/scale  []  []  [get list watch]
  replicationcontrollers/status  []  []  [get list watch]
  resourceclaims.resource.k8s.io  []  []  [get list watch]
  resourceclaims.resource.k8s.io/status  []  []  [get list watch]
  resourceclaimtemplates.resource.k8s.io  []  []  [get list watch]
  resourcequotas  []  []  [get list watch]
  resourcequotas/status  []  []  [get list watch]
  selfsubjectaccessreviews.authorization.k8s.io  []  []  [create]
  selfsubjectreviews.authentication.k8s.io  []  []  [create]
  selfsubjectrulesreviews.authorization.k8s.io  []  []  [create]
  serviceaccounts  []  []  [get list watch]
  services  []  []  [get list watch]
  services/status  []  []  [get list watch]
  statefulsets.apps  []  []  [get list watch]
  statefulsets.apps/scale  []  []  [get list watch]
  statefulsets.apps/status  []  []  [get list watch]
  $ kubectl auth can-i --list --as=eve -n default | sort
                                                  [/api/*]  []  [get]
                                                  [/api]  []  [get]
                                                  [/apis/*]  []  [get]
                                                  [/apis]  []  [get]
                                                  [/healthz]  []  [get]
                                                  [/healthz]  []  [get]
                                                  [/livez]  []  [get]
                                                  [/livez]  []  [get]
                                                  [/openapi/*]  []  [get]
                                                  [/openapi]  []  [get]
                                                  [/readyz]  []  [get]
                                                  [/readyz]  []  [get]
                                                  [/version/]  []  [get]
                                                  [/version/]  []  [get]
                                                  [/version]  []  [get]
                                                  [/version]  []  [get]
  Resources  Non-Resource URLs  Resource Names  Verbs
  selfsubjectaccessreviews.authorization.k8s.io  []  []  [create]
  selfsubjectreviews.authentication.k8s.io  []  []  [create]
  selfsubjectrulesreviews.authorization.k8s.io  []  []  [create]
  $ kubectl get pods --as=joe --as-group=system:masters
  No resources found in access namespace.
  $ kubectl get pods --as=system:serviceaccount:access:default
  Error from server (Forbidden): pods is forbidden: User "system:serviceaccount:access:default" cannot list resource "pods" in API group "" in the namespace "access"
  [1]
  $ kubectl get nodes --as=system:serviceaccount:access:default
  Error from server (Forbidden): nodes is forbidden: User "system:serviceaccount:access:default" cannot list resource "nodes" in API group "" at the cluster scope
  [1]
  $ kubectl auth whoami --as=system:serviceaccount:access:default
  ATTRIBUTE  VALUE
  Username  system:serviceaccount:access:default
  Groups  [system:serviceaccounts system:serviceaccounts:access system:authenticated]
  $ kubectl auth whoami --as=system:anonymous
  error: the selfsubjectreviews API is not enabled in the cluster or you do not have permission to call it
  [1]
  $ kubectl get configmaps --as=eve --as-group=system:unauthenticated -o name
  configmap/b
  configmap/kube-root-ca.crt
  $ kubectl auth can-i impersonate users --as=eve
  no
  [1]
  $ kubectl get pods --as=joe --as-uid=1 -v=0
  No resources found in access namespace.
  $ kubectl describe clusterrole view | head -20
  Name:  view
  Labels:  kubernetes.io/bootstrapping=rbac-defaults
                rbac.authorization.k8s.io/aggregate-to-edit=true
  Annotations:  rbac.authorization.kubernetes.io/autoupdate: true
  PolicyRule:
    Resources  Non-Resource URLs  Resource Names  Verbs
    ---------  -----------------  --------------  -----
    bindings  []  []  [get list watch]
    configmaps  []  []  [get list watch]
    endpoints  []  []  [get list watch]
    events  []  []  [get list watch]
    limitranges  []  []  [get list watch]
    namespaces/status  []  []  [get list watch]
    namespaces  []  []  [get list watch]
    persistentvolumeclaims/status  []  []  [get list watch]
    persistentvolumeclaims  []  []  [get list watch]
    pods/log  []  []  [get list watch]
    pods/status  []  []  [get list watch]
    pods  []  []  [get list watch]
    replicationcontrollers/scale  []  []  [get list watch]
  $ kubectl describe clusterrolebinding cluster-admin
  Name:  cluster-admin
  Labels:  kubernetes.io/bootstrapping=rbac-defaults
  Annotations:  rbac.authorization.kubernetes.io/autoupdate: true
  Role:
    Kind:  ClusterRole
    Name:  cluster-admin
  Subjects:
    Kind  Name  Namespace
    ----  ----  ---------
    Group  system:masters
  $ kubectl create clusterrolebinding transcript-view --clusterrole=view --group=readers
  clusterrolebinding.rbac.authorization.k8s.io/transcript-view created
  $ kubectl get secrets --as=x --as-group=readers
  Error from server (Forbidden): secrets is forbidden: User "x" cannot list resource "secrets" in API group "" in the namespace "access"
  [1]
  $ kubectl get configmaps --as=x --as-group=readers -o name
  configmap/b
  configmap/kube-root-ca.crt
  $ kubectl delete clusterrolebinding transcript-view
  clusterrolebinding.rbac.authorization.k8s.io "transcript-view" deleted
  $ kubectl auth reconcile --remove-extra-permissions -f - <<'END'
  > apiVersion: rbac.authorization.k8s.io/v1
  > kind: Role
  > metadata: {name: more}
  > rules: []
  > END
  error: resource name may not be empty
  [1]
  $ kubectl get role more -o yaml
  apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata:
    creationTimestamp: "<time>"
    name: more
    namespace: access
    resourceVersion: "<version>"
    uid: <uid>
  rules:
  - apiGroups:
    - ""
    resources:
    - secrets
    verbs:
    - get
    - list
  $ kubectl config view --minify -o jsonpath='{.contexts[0].context.namespace}{"\n"}'
  access
  $ kubectl config current-context | wc -w
  1

  $ kubectl delete clusterrole transcript-all transcript-sum; kubectl delete clusterrolebinding transcript-all
  clusterrole.rbac.authorization.k8s.io "transcript-all" deleted
  clusterrole.rbac.authorization.k8s.io "transcript-sum" deleted
  clusterrolebinding.rbac.authorization.k8s.io "transcript-all" deleted
