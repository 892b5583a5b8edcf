What is refused, and with which words.

  $ kubectl create namespace wrong
  namespace/wrong created
  $ kubectl config set-context --current --namespace=wrong >&-
  $ kubectl wait --for=create serviceaccount/default --timeout=30s >&-

Documents.

  $ echo '{' | kubectl create -f -
  error: error parsing STDIN: unexpected EOF
  [1]
  $ echo 'a: b' | kubectl create -f -
  error: error validating "STDIN": error validating data: [apiVersion not set, kind not set]; if you choose to ignore these errors, turn validation off with --validate=false
  [1]
  $ echo 'kind: Pod' | kubectl create -f -
  error: error validating "STDIN": error validating data: apiVersion not set; if you choose to ignore these errors, turn validation off with --validate=false
  [1]
  $ printf 'a:\n\t- b' | kubectl create -f -
  error: error parsing STDIN: error converting YAML to JSON: yaml: line 2: found character that cannot start any token
  [1]
  $ printf '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"containers":[{"name":"c","image":"i"},]}}' | kubectl create -f -
  pod/a created
  $ echo '' | kubectl create -f -
  error: no objects passed to create
  [1]
  $ kubectl create -f absent.yaml
  error: the path "absent.yaml" does not exist
  [1]
  $ kubectl create -f .
  error: error reading [.]: recognized file extensions are [.json .yaml .yml]
  [1]
  $ kubectl create
  error: must specify one of -f and -k
  [1]
  $ echo '{apiVersion: v9, kind: Pod, metadata: {name: a}}' | kubectl create -f -
  error: resource mapping not found for name: "a" namespace: "" from "STDIN": no matches for kind "Pod" in version "v9"
  ensure CRDs are installed first
  [1]
  $ echo '{apiVersion: apps/v1, kind: Pod, metadata: {name: a}}' | kubectl create -f -
  error: resource mapping not found for name: "a" namespace: "" from "STDIN": no matches for kind "Pod" in version "apps/v1"
  ensure CRDs are installed first
  [1]
  $ echo '{apiVersion: extensions/v1beta1, kind: Deployment, metadata: {name: a}}' | kubectl apply -f -
  error: resource mapping not found for name: "a" namespace: "" from "STDIN": no matches for kind "Deployment" in version "extensions/v1beta1"
  ensure CRDs are installed first
  [1]
  $ echo '{apiVersion: a/b/c, kind: Pod, metadata: {name: a}}' | kubectl create -f -
  error: error validating "STDIN": error validating data: unexpected GroupVersion string: a/b/c; if you choose to ignore these errors, turn validation off with --validate=false
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {}}' | kubectl create -f -
  The ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: A_b}}' | kubectl create -f -
  The ConfigMap "A_b" is invalid: metadata.name: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a/b}}' | kubectl create -f -
  The ConfigMap "a/b" is invalid: metadata.name: Invalid value: "a/b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: ..}}' | kubectl create -f -
  The ConfigMap ".." is invalid: metadata.name: Invalid value: "..": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: other}}' | kubectl create -n wrong -f -
  error: the namespace from the provided object "other" does not match the namespace "wrong". You must pass '--namespace=other' to perform this operation.
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {"a b": c}, annotations: {"-": d}, finalizers: [x]}}' | kubectl create -f -
  The ConfigMap "a" is invalid:
  * metadata.labels: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
  * metadata.annotations: Invalid value: "-": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
  * metadata.finalizers[0]: Invalid value: "x": name is neither a standard finalizer name nor is it fully qualified
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, ownerReferences: [{kind: Pod}]}}' | kubectl create -f -
  The ConfigMap "a" is invalid:
  * metadata.ownerReferences.apiVersion: Invalid value: "": version must not be empty
  * metadata.ownerReferences.name: Invalid value: "": must not be empty
  * metadata.ownerReferences.uid: Invalid value: "": must not be empty
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, uid: 1}}' | kubectl create -f -
  error: unable to decode "STDIN": json: cannot unmarshal number into Go struct field ObjectMeta.metadata.uid of type types.UID
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, resourceVersion: "1"}}' | kubectl create -f -
  configmap/a created
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a, creationTimestamp: yesterday}}' | kubectl create -f -
  error: unable to decode "STDIN": parsing time "yesterday" as "<time>07:00": cannot parse "yesterday" as "2006"
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: [1]}' | kubectl create -f -
  Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a: b}, binaryData: {a: Yg==}}' | kubectl create -f -
  The ConfigMap "a" is invalid: data[a]: Invalid value: "a": duplicate of key present in binaryData
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {a/b: c}}' | kubectl create -f -
  The ConfigMap "a" is invalid: data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
  [1]
  $ echo '{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, binaryData: {a: "%"}}' | kubectl create -f -
  Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a ConfigMap: illegal base64 data at input byte 0
  [1]
  $ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b, a: c}\n' | kubectl create -f -
  Error from server (AlreadyExists): error when creating "STDIN": configmaps "a" already exists
  [1]
  $ printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: dup}\ndata: {a: b}\ndata: {c: d}\n' | kubectl create --validate=warn -f -
  configmap/dup created
  $ echo '{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: l}}, {apiVersion: v1, kind: Nope, metadata: {name: n}}]}' | kubectl create -f -
  configmap/l created
  unable to recognize no matches for kind "Nope" in version "v1"
  [1]
  $ echo '{apiVersion: v1, kind: Secret, metadata: {name: a}, data: {a: b}, stringData: {c: 1}}' | kubectl create -f -
  Error from server (BadRequest): error when creating "STDIN": Secret in version "v1" cannot be handled as a Secret: illegal base64 data at input byte 0
  [1]
  $ echo '{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/dockerconfigjson, data: {}}' | kubectl create -f -
  The Secret "a" is invalid: data[.dockerconfigjson]: Required value
  [1]
  $ echo '{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/basic-auth}' | kubectl create -f -
  The Secret "a" is invalid:
  * data[username]: Required value
  * data[password]: Required value
  [1]
  $ echo '{apiVersion: v1, kind: Secret, metadata: {name: a}, type: kubernetes.io/service-account-token}' | kubectl create -f -
  The Secret "a" is invalid: metadata.annotations[kubernetes.io/service-account.name]: Required value
  [1]
  $ echo '{apiVersion: v1, kind: Namespace, metadata: {name: Wrong.Name}}' | kubectl create -f -
  The Namespace "Wrong.Name" is invalid: metadata.name: Invalid value: "Wrong.Name": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
  [1]
  $ echo '{apiVersion: v1, kind: ServiceAccount, metadata: {name: -a}}' | kubectl create -f -
  The ServiceAccount "-a" is invalid: metadata.name: Invalid value: "-a": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  [1]

Pods and what makes them.

  $ cat > pod.yaml <<'END'
  > apiVersion: v1
  > kind: Pod
  > metadata: {name: pod}
  > spec:
  >   containers:
  >   - {name: c, image: i}
  > END
  $ edit() { sed "s|{name: c, image: i}|$1|" pod.yaml | kubectl create -f -; }; edit '{name: c}'
  The Pod "pod" is invalid: spec.containers[0].image: Required value
  [1]
  $ echo 'edit() { sed "s|{name: c, image: i}|$1|" pod.yaml | kubectl create -f -; }' > edit.sh
  $ . ./edit.sh; edit '{image: i}'
  The Pod "pod" is invalid: spec.containers[0].name: Required value
  [1]
  $ . ./edit.sh; edit '{name: c, image: " i"}'
  The Pod "pod" is invalid: spec.containers[0].image: Invalid value: " i": must not have leading or trailing whitespace
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, imagePulPolicy: Always}'
  Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.containers[0].imagePulPolicy"
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, env: [{name: A, value: 1}]}'
  Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, env: [{name: "A=", value: b}, {name: B, value: c, valueFrom: {fieldRef: {fieldPath: metadata.absent}}}]}'
  The Pod "pod" is invalid:
  * spec.containers[0].env[0].name: Invalid value: "A=": a valid environment variable name must consist only of printable ASCII characters other than '='
  * spec.containers[0].env[1].valueFrom.fieldRef.fieldPath: Invalid value: "metadata.absent": error converting fieldPath: field label not supported: metadata.absent
  * spec.containers[0].env[1].valueFrom: Invalid value: "": may not be specified when `value` is not empty
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, envFrom: [{}]}'
  The Pod "pod" is invalid: spec.containers[0].envFrom: Invalid value: "": must specify one of: `configMapRef` or `secretRef`
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, ports: [{containerPort: 80}, {containerPort: 80}, {containerPort: 70000, name: UPPER, protocol: ICMP}]}'
  The Pod "pod" is invalid:
  * spec.containers[0].ports[2].name: Invalid value: "UPPER": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
  * spec.containers[0].ports[2].name: Invalid value: "UPPER": must contain at least one letter (a-z)
  * spec.containers[0].ports[2].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive
  * spec.containers[0].ports[2].protocol: Unsupported value: "ICMP": supported values: "SCTP", "TCP", "UDP"
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, command: sleep}'
  Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: json: cannot unmarshal string into Go struct field Container.spec.containers.command of type []string
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, resources: {limits: {cpu: -1, memory: 1Q}, requests: {cpu: x}}}'
  Error from server (BadRequest): error when creating "STDIN": Pod in version "v1" cannot be handled as a Pod: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, livenessProbe: {periodSeconds: -1}}'
  The Pod "pod" is invalid:
  * spec.containers[0].livenessProbe: Required value: must specify a handler type
  * spec.containers[0].livenessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, livenessProbe: {httpGet: {port: 0}, successThreshold: 2, exec: {command: [a]}}}'
  The Pod "pod" is invalid:
  * spec.containers[0].livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type
  * spec.containers[0].livenessProbe.successThreshold: Invalid value: 2: must be 1
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, lifecycle: {preStop: {}}}'
  The Pod "pod" is invalid: spec.containers[0].lifecycle.preStop: Required value: must specify a handler type
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, volumeMounts: [{name: absent, mountPath: /a}]}'
  The Pod "pod" is invalid: spec.containers[0].volumeMounts[0].name: Not found: "absent"
  [1]
  $ . ./edit.sh; edit '{name: c, image: i, securityContext: {runAsUser: -1, privileged: true, allowPrivilegeEscalation: false}}'
  The Pod "pod" is invalid:
  * spec.containers[0].securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive
  * spec.containers[0].securityContext: Invalid value: {"Capabilities":null,"Privileged":true,"SELinuxOptions":null,"WindowsOptions":null,"RunAsUser":-1,"RunAsGroup":null,"RunAsNonRoot":null,"ReadOnlyRootFilesystem":null,"AllowPrivilegeEscalation":false,"ProcMount":null,"SeccompProfile":null,"AppArmorProfile":null}: cannot set `allowPrivilegeEscalation` to false and `privileged` to true
  [1]
  $ . ./edit.sh; edit '{name: c, image: i}, {name: c, image: j}'
  error: error parsing STDIN: error converting YAML to JSON: yaml: line 5: did not find expected key
  [1]
  $ sed 's/spec:/spec:\n  restartPolicy: Never\n  volumes: [{name: a}, {name: a, emptyDir: {}}, {name: b, emptyDir: {}, hostPath: {path: x}}]/' pod.yaml | kubectl create -f -
  The Pod "pod" is invalid:
  * spec.volumes[1].name: Duplicate value: "a"
  * spec.volumes[2].hostPath: Forbidden: may not specify more than 1 volume type
  [1]
  $ sed 's/spec:/spec:\n  restartPolicy: Perhaps\n  dnsPolicy: Mine\n  terminationGracePeriodSeconds: -1\n  activeDeadlineSeconds: 0\n  nodeSelector: {"a b": c}/' pod.yaml | kubectl create -f -
  The Pod "pod" is invalid:
  * spec.restartPolicy: Unsupported value: "Perhaps": supported values: "Always", "OnFailure", "Never"
  * spec.dnsPolicy: Unsupported value: "Mine": supported values: "ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"
  * spec.nodeSelector: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
  * spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive
  [1]
  $ sed 's/spec:/spec:\n  tolerations: [{key: a, operator: Exists, value: b}, {effect: NoExecute, operator: Equal}, {key: c, tolerationSeconds: 3, effect: NoSchedule}]/' pod.yaml | kubectl create -f -
  The Pod "pod" is invalid:
  * spec.tolerations[0].operator: Invalid value: "b": value must be empty when `operator` is 'Exists'
  * spec.tolerations[1].operator: Invalid value: "Equal": operator must be Exists when `key` is empty, which means "match all values and all keys"
  * spec.tolerations[2].effect: Invalid value: "NoSchedule": effect must be 'NoExecute' when `tolerationSeconds` is set
  [1]
  $ sed 's/spec:/spec:\n  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}, podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {a: b}}}]}}/' pod.yaml | kubectl create -f -
  The Pod "pod" is invalid:
  * spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term
  * spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Required value: can not be empty
  * spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must be non-empty
  * spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: Invalid value: "": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
  [1]
  $ sed 's/spec:/spec:\n  serviceAccountName: absent/' pod.yaml | kubectl create -f -
  Error from server (Forbidden): error when creating "STDIN": pods "pod" is forbidden: error looking up service account wrong/absent: serviceaccount "absent" not found
  [1]
  $ sed 's/spec:/spec:\n  priorityClassName: absent/' pod.yaml | kubectl create -f -
  Error from server (Forbidden): error when creating "STDIN": pods "pod" is forbidden: no PriorityClass with name absent was found
  [1]
  $ sed 's/spec:/spec:\n  priority: 7/' pod.yaml | kubectl create -f -
  Error from server (Forbidden): error when creating "STDIN": pods "pod" is forbidden: the integer value of priority (7) must not be provided in pod spec; priority admission controller computed 0 from the given PriorityClass name
  [1]
  $ sed 's/spec:/spec:\n  runtimeClassName: absent/' pod.yaml | kubectl create -f -
  Error from server (Forbidden): error when creating "STDIN": pods "pod" is forbidden: pod rejected: RuntimeClass "absent" not found
  [1]
  $ sed 's/spec:/spec:\n  hostname: A_b\n  subdomain: ""\n  hostAliases: [{ip: x}]/' pod.yaml | kubectl create -f -
  The Pod "pod" is invalid:
  * spec.hostname: Invalid value: "A_b": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
  * spec.hostAliases[0].ip: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
  [1]
  $ sed 's/spec:/spec:\n  topologySpreadConstraints: [{maxSkew: 0, topologyKey: "", whenUnsatisfiable: Maybe}]/' pod.yaml | kubectl create -f -
  The Pod "pod" is invalid:
  * spec.topologySpreadConstraints[0].maxSkew: Invalid value: 0: must be greater than zero
  * spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty
  * spec.topologySpreadConstraints[0].whenUnsatisfiable: Unsupported value: "Maybe": supported values: "DoNotSchedule", "ScheduleAnyway"
  [1]
  $ sed 's/spec:/spec:\n  ephemeralContainers: [{name: e, image: i}]/' pod.yaml | kubectl create -f -
  The Pod "pod" is invalid: spec.ephemeralContainers: Forbidden: cannot be set on create
  [1]
  $ sed 's/spec:/spec:\n  imagePullSecrets: [{name: ""}]\n  overhead: {cpu: 1}/' pod.yaml | kubectl create -f -
  Warning: spec.imagePullSecrets[0].name: invalid empty name ""
  Error from server (Forbidden): error when creating "STDIN": pods "pod" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead
  [1]
  $ echo '{apiVersion: v1, kind: Pod, metadata: {name: none}, spec: {}}' | kubectl create -f -
  The Pod "none" is invalid: spec.containers: Required value
  [1]
  $ echo '{apiVersion: v1, kind: Pod, metadata: {name: none}}' | kubectl create -f -
  The Pod "none" is invalid: spec.containers: Required value
  [1]
  $ kubectl run 'Bad Name' --image=i
  The Pod "Bad Name" is invalid:
  * metadata.name: Invalid value: "Bad Name": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  * metadata.labels: Invalid value: "Bad Name": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
  * spec.containers[0].name: Invalid value: "Bad Name": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
  [1]
  $ kubectl run a --image='bad image'
  error: Invalid image name "bad image": invalid reference format
  [1]
  $ kubectl run a
  error: required flag(s) "image" not set
  [1]
  $ kubectl create deployment a
  error: required flag(s) "image" not set
  [1]
  $ kubectl create deployment A --image=i
  error: failed to create deployment: Deployment.apps "A" is invalid: metadata.name: Invalid value: "A": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  [1]
  $ kubectl create deployment a --image=i --replicas=-1
  error: failed to create deployment: Deployment.apps "a" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0
  [1]
  $ kubectl create job a
  error: either --image or --from must be specified
  [1]
  $ kubectl create job a --from=cronjob/absent
  Error from server (NotFound): cronjobs.batch "absent" not found
  [1]
  $ kubectl create cronjob a --image=i --schedule='61 * * * *'
  error: failed to create cronjob: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "61 * * * *": end of range (61) above maximum (59): 61
  [1]
  $ kubectl create cronjob a --image=i --schedule='TZ=UTC * * * * *'
  error: failed to create cronjob: CronJob.batch "a" is invalid: spec.schedule: Invalid value: "TZ=UTC * * * * *": cannot use TZ or CRON_TZ in schedule, use timeZone field instead
  [1]
  $ echo '{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {parallelism: -1, template: {spec: {containers: [{name: c, image: i}]}}}}' | kubectl create -f -
  The Job "a" is invalid:
  * spec.parallelism: Invalid value: -1: must be greater than or equal to 0
  * spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"
  [1]
  $ echo '{apiVersion: batch/v1, kind: Job, metadata: {name: a}, spec: {completionMode: Indexed, selector: {matchLabels: {a: b}}, template: {spec: {restartPolicy: Always, containers: [{name: c, image: i}]}}}}' | kubectl create -f -
  The Job "a" is invalid:
  * spec.selector: Invalid value: {"matchLabels":{"a":"b","batch.kubernetes.io/controller-uid":"<uid>"}}: `selector` not auto-generated
  * spec.template.spec.restartPolicy: Required value: valid values: "OnFailure", "Never"
  * spec.template.metadata.labels: Invalid value: {"batch.kubernetes.io/controller-uid":"<uid>","batch.kubernetes.io/job-name":"a","controller-uid":"<uid>","job-name":"a"}: `selector` does not match template `labels`
  [1]
  $ echo '{apiVersion: batch/v1, kind: CronJob, metadata: {name: a-name-that-is-much-too-long-for-any-cron-job-to-have}, spec: {schedule: "* * * * *", concurrencyPolicy: Often, timeZone: Mars/Base, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}' | kubectl create -f -
  The CronJob "a-name-that-is-much-too-long-for-any-cron-job-to-have" is invalid:
  * spec.timeZone: Invalid value: "Mars/Base": unknown time zone Mars/Base
  * spec.concurrencyPolicy: Unsupported value: "Often": supported values: "Allow", "Forbid", "Replace"
  * metadata.name: Invalid value: "a-name-that-is-much-too-long-for-any-cron-job-to-have": must be no more than 52 characters
  [1]
  $ echo '{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {}, strategy: {type: Recreate, rollingUpdate: {}}, template: {metadata: {labels: {a: b}}, spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}' | kubectl create -f -
  The Deployment "a" is invalid:
  * spec.selector: Invalid value: {}: empty selector is invalid for deployment
  * spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"
  * spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'
  [1]
  $ echo '{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0}}, minReadySeconds: -1, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}' | kubectl create -f -
  The Deployment "a" is invalid:
  * spec.selector: Required value
  * spec.template.metadata.labels: Invalid value: {"a":"b"}: `selector` does not match template `labels`
  * spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0
  * spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0
  [1]
  $ echo '{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}, matchExpressions: [{key: c, operator: Like, values: [d]}, {key: e, operator: Exists, values: [f]}]}, strategy: {rollingUpdate: {maxSurge: x}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}' | kubectl create -f -
  The Deployment "a" is invalid:
  * spec.selector.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator
  * spec.selector.matchExpressions[1].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'
  * spec.selector: Invalid value: {"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Like","values":["d"]},{"key":"e","operator":"Exists","values":["f"]}]}: invalid label selector
  * spec.strategy.rollingUpdate.maxSurge: Invalid value: "x": a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')
  [1]
  $ echo '{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, podManagementPolicy: Random, updateStrategy: {type: Now}, template: {metadata: {labels: {a: c}}, spec: {containers: [{name: c, image: i}]}}}}' | kubectl create -f -
  The StatefulSet "a" is invalid:
  * spec.podManagementPolicy: Invalid value: "Random": must be 'OrderedReady' or 'Parallel'
  * spec.updateStrategy: Invalid value: {"Type":"Now","RollingUpdate":null}: must be 'RollingUpdate' or 'OnDelete'
  * spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`
  [1]
  $ echo '{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: a}, spec: {selector: {matchLabels: {a: b}}, updateStrategy: {rollingUpdate: {maxUnavailable: 0}}, template: {metadata: {labels: {a: b}}, spec: {activeDeadlineSeconds: 1, containers: [{name: c, image: i}]}}}}' | kubectl create -f -
  The DaemonSet "a" is invalid:
  * spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in DaemonSet is not Supported
  * spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0
  [1]
  $ echo '{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: a}, spec: {replicas: -3}}' | kubectl create -f -
  The ReplicaSet "a" is invalid:
  * spec.replicas: Invalid value: -3: must be greater than or equal to 0
  * spec.selector: Required value
  * spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`
  * spec.template.spec.containers: Required value
  [1]
  $ echo '{apiVersion: v1, kind: ReplicationController, metadata: {name: a}, spec: {selector: {a: b}, template: {metadata: {labels: {c: d}}, spec: {containers: []}}}}' | kubectl create -f -
  The ReplicationController "a" is invalid:
  * spec.template.metadata.labels: Invalid value: {"c":"d"}: `selector` does not match template `labels`
  * spec.template.spec.containers: Required value
  [1]

Changes.

  $ kubectl create -f pod.yaml
  pod/pod created
  $ kubectl patch pod pod -p '{"spec":{"containers":[{"name":"c","env":[{"name":"A","value":"b"}]}]}}'
  The Pod "pod" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
  @@ -98,7 +98,13 @@
      "WorkingDir": "",
      "Ports": null,
      "EnvFrom": null,
  -  "Env": null,
  +  "Env": [
  +  {
  +  "Name": "A",
  +  "Value": "b",
  +  "ValueFrom": null
  +  }
  +  ],
      "Resources": {
       "Limits": null,
       "Requests": null,
  [1]
  $ kubectl patch pod pod -p '{"spec":{"nodeName":"one"}}'
  The Pod "pod" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
  @@ -140,7 +140,7 @@
    "NodeSelector": null,
    "ServiceAccountName": "default",
    "AutomountServiceAccountToken": null,
  - "NodeName": "",
  + "NodeName": "one",
    "SecurityContext": {
     "HostNetwork": false,
     "HostPID": false,
  [1]
  $ kubectl patch pod pod -p '{"spec":{"activeDeadlineSeconds":5}}'
  pod/pod patched
  $ kubectl patch pod pod -p '{"spec":{"activeDeadlineSeconds":6}}'
  The Pod "pod" is invalid: spec.activeDeadlineSeconds: Invalid value: 6: must be less than or equal to previous value
  [1]
  $ kubectl patch pod pod -p '{"spec":{"tolerations":[]}}'
  pod/pod patched (no change)
  $ kubectl patch pod pod --type=merge -p '{"spec":{"terminationGracePeriodSeconds":1}}'
  The Pod "pod" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
  @@ -134,7 +134,7 @@
    ],
    "EphemeralContainers": null,
    "RestartPolicy": "Always",
  - "TerminationGracePeriodSeconds": 30,
  + "TerminationGracePeriodSeconds": 1,
    "ActiveDeadlineSeconds": 5,
    "DNSPolicy": "ClusterFirst",
    "NodeSelector": null,
  [1]
  $ kubectl patch pod pod -p '{"status":{"phase":"Running"}}'
  pod/pod patched (no change)
  $ kubectl patch pod pod --subresource=status -p '{"status":{"phase":"Sleeping"}}'
  pod/pod patched
  $ kubectl patch pod pod --subresource=absent -p '{}'
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl patch pod pod --type=sideways -p '{}'
  error: --type must be one of [json merge strategic], not "sideways"
  [1]
  $ kubectl patch pod pod --type=json -p '{}'
  Error from server (BadRequest): error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp
  [1]
  $ kubectl patch pod pod --type=json -p '[{"op":"jump","path":"/a"}]'
  The request is invalid: the server rejected our request due to an error in our request
  [1]
  $ kubectl patch pod pod --type=json -p '[{"op":"replace","path":"/spec/absent/deeper","value":1}]'
  The request is invalid: the server rejected our request due to an error in our request
  [1]
  $ kubectl patch pod pod -p 'not json'
  Error from server (BadRequest): json: cannot unmarshal string into Go value of type map[string]interface {}
  [1]
  $ kubectl patch pod pod -p '[]'
  Error from server (BadRequest): json: cannot unmarshal array into Go value of type map[string]interface {}
  [1]
  $ kubectl patch pod pod -p '{"spec":{"containers":[{"image":"j"}]}}'
  Error from server: map: map[image:j] does not contain declared merge key: name
  [1]
  $ kubectl patch pod pod -p '{"spec":{"containers":{"$patch":"jump"}}}'
  The Pod "pod" is invalid:
  * spec.containers: Required value
  * spec.containers: Forbidden: pod updates may not add or remove containers
  [1]
  $ kubectl patch pod pod -p '{"metadata":{"lables":{"a":"b"}}}'
  Warning: unknown field "metadata.lables"
  pod/pod patched (no change)
  $ kubectl patch pod pod -p '{"metadata":{"resourceVersion":"1","labels":{"a":"b"}}}'
  Error from server (Conflict): Operation cannot be fulfilled on pods "pod": the object has been modified; please apply your changes to the latest version and try again
  [1]
  $ kubectl patch pod pod -p '{"metadata":{"creationTimestamp":"2020-01-01T00:00:00Z"}}'
  pod/pod patched (no change)
  $ kubectl patch pod pod -p '{"kind":"Service"}'
  pod/pod patched (no change)
  $ kubectl patch pod pod -p '{"apiVersion":"v2"}'
  pod/pod patched (no change)
  $ kubectl patch pod pod -p '{"kind":1}'
  The request is invalid: patch: Invalid value: "map[kind:1]": cannot convert int64 to string
  [1]
  $ kubectl create configmap typed --from-literal=a=b
  configmap/typed created
  $ for patch in '{"kind":"Service"}' '{"kind":"Nope"}' '{"apiVersion":"v2"}' '{"apiVersion":"a/b/c"}' '{"kind":1}' '{"kind":null}' '{"metadata":5}' '{"metadata":null}'; do kubectl patch configmap typed --type=merge -p "$patch"; done
  The request is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"b\"},\"kind\":\"Service\",\"metadata\":{\"name\":\"typed\",\"namespace\":\"wrong\",\"uid\":\"<uid>\",\"resourceVersion\":\"<version>\",\"creationTimestamp\":\"<time>\",\"managedFields\":[{\"manager\":\"kubectl-create\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"<time>\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\".\":{},\"f:a\":{}}}}]}}": converting (v1.Service) to (core.ConfigMap): unknown conversion
  The request is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"b\"},\"kind\":\"Nope\",\"metadata\":{\"name\":\"typed\",\"namespace\":\"wrong\",\"uid\":\"<uid>\",\"resourceVersion\":\"<version>\",\"creationTimestamp\":\"<time>\",\"managedFields\":[{\"manager\":\"kubectl-create\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"<time>\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\".\":{},\"f:a\":{}}}}]}}": no kind "Nope" is registered for version "v1" in scheme <scheme>
  The request is invalid: patch: Invalid value: "{\"apiVersion\":\"v2\",\"data\":{\"a\":\"b\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"typed\",\"namespace\":\"wrong\",\"uid\":\"<uid>\",\"resourceVersion\":\"<version>\",\"creationTimestamp\":\"<time>\",\"managedFields\":[{\"manager\":\"kubectl-create\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"<time>\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\".\":{},\"f:a\":{}}}}]}}": no kind "ConfigMap" is registered for version "v2" in scheme <scheme>
  The request is invalid: patch: Invalid value: "{\"apiVersion\":\"a/b/c\",\"data\":{\"a\":\"b\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"typed\",\"namespace\":\"wrong\",\"uid\":\"<uid>\",\"resourceVersion\":\"<version>\",\"creationTimestamp\":\"<time>\",\"managedFields\":[{\"manager\":\"kubectl-create\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"<time>\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\".\":{},\"f:a\":{}}}}]}}": unexpected GroupVersion string: a/b/c
  The request is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"b\"},\"kind\":1,\"metadata\":{\"name\":\"typed\",\"namespace\":\"wrong\",\"uid\":\"<uid>\",\"resourceVersion\":\"<version>\",\"creationTimestamp\":\"<time>\",\"managedFields\":[{\"manager\":\"kubectl-create\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"<time>\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\".\":{},\"f:a\":{}}}}]}}": couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string
  configmap/typed patched (no change)
  The request is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"a\":\"b\"},\"kind\":\"ConfigMap\",\"metadata\":5}": json: cannot unmarshal number into Go struct field ConfigMap.metadata of type v1.ObjectMeta
  Error from server (BadRequest): the name of the object (typed based on URL) was undeterminable: name must be provided
  [1]
  $ kubectl patch configmap typed --type=json -p '[{"op":"replace","path":"","value":[]}]'
  The request is invalid: patch: Invalid value: "[]": couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }
  [1]
  $ for object in '{"kind":"Service","apiVersion":"v1"}' '{"kind":"ConfigMap","apiVersion":"v2"}' '{"kind":"ConfigMapList","apiVersion":"v1"}' '[]' '{"kind":1}' '"a"' ''; do echo "$object" | kubectl create --raw /api/v1/namespaces/wrong/configmaps -f -; done
  Error from server (BadRequest): Service in version "v1" cannot be handled as a ConfigMap: converting (v1.Service) to (core.ConfigMap): unknown conversion
  Error from server (BadRequest): ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme <scheme>
  Error from server (BadRequest): ConfigMapList in version "v1" cannot be handled as a ConfigMap: converting (v1.ConfigMapList) to (core.ConfigMap): unknown conversion
  Error from server (BadRequest): the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d0a)
  Error from server (BadRequest): the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string ({"kind":1}
  )
  Error from server (BadRequest): the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (2261220a)
  Error from server (BadRequest): the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: unexpected end of JSON input (0a)
  [1]
  $ kubectl patch pod pod
  error: must specify --patch or --patch-file containing the contents of the patch
  [1]
  $ kubectl patch pod -p '{}'
  error: resource(s) were provided, but no name was specified
  [1]
  $ sed 's/image: i/image: j, tty: true/' pod.yaml | kubectl replace -f -
  The Pod "pod" is invalid:
  * spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value
  * spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
  @@ -1,93 +1,5 @@
   {
  - "Volumes": [
  -  {
  -  "Name": "kube-api-access-<random>",
  -  "HostPath": null,
  -  "EmptyDir": null,
  -  "GCEPersistentDisk": null,
  -  "AWSElasticBlockStore": null,
  -  "GitRepo": null,
  -  "Secret": null,
  -  "NFS": null,
  -  "ISCSI": null,
  -  "Glusterfs": null,
  -  "PersistentVolumeClaim": null,
  -  "RBD": null,
  -  "Quobyte": null,
  -  "FlexVolume": null,
  -  "Cinder": null,
  -  "CephFS": null,
  -  "Flocker": null,
  -  "DownwardAPI": null,
  -  "FC": null,
  -  "AzureFile": null,
  -  "ConfigMap": null,
  -  "VsphereVolume": null,
  -  "AzureDisk": null,
  -  "PhotonPersistentDisk": null,
  -  "Projected": {
  -  "Sources": [
  -  {
  -  "Secret": null,
  -  "DownwardAPI": null,
  -  "ConfigMap": null,
  -  "ServiceAccountToken": {
  -  "Audience": "",
  -  "ExpirationSeconds": 3607,
  -  "Path": "token"
  -  },
  -  "ClusterTrustBundle": null,
  -  "PodCertificate": null
  -  },
  -  {
  -  "Secret": null,
  -  "DownwardAPI": null,
  -  "ConfigMap": {
  -  "Name": "kube-root-ca.crt",
  -  "Items": [
  -  {
  -  "Key": "ca.crt",
  -  "Path": "ca.crt",
  -  "Mode": null
  -  }
  -  ],
  -  "Optional": null
  -  },
  -  "ServiceAccountToken": null,
  -  "ClusterTrustBundle": null,
  -  "PodCertificate": null
  -  },
  -  {
  -  "Secret": null,
  -  "DownwardAPI": {
  -  "Items": [
  -  {
  -  "Path": "namespace",
  -  "FieldRef": {
  -  "APIVersion": "v1",
  -  "FieldPath": "metadata.namespace"
  -  },
  -  "ResourceFieldRef": null,
  -  "Mode": null
  -  }
  -  ]
  -  },
  -  "ConfigMap": null,
  -  "ServiceAccountToken": null,
  -  "ClusterTrustBundle": null,
  -  "PodCertificate": null
  -  }
  -  ],
  -  "DefaultMode": 420
  -  },
  -  "PortworxVolume": null,
  -  "ScaleIO": null,
  -  "StorageOS": null,
  -  "CSI": null,
  -  "Ephemeral": null,
  -  "Image": null
  -  }
  - ],
  + "Volumes": null,
    "InitContainers": null,
    "Containers": [
     {
  @@ -107,17 +19,7 @@
      "ResizePolicy": null,
      "RestartPolicy": null,
      "RestartPolicyRules": null,
  -  "VolumeMounts": [
  -  {
  -  "Name": "kube-api-access-<random>",
  -  "ReadOnly": true,
  -  "RecursiveReadOnly": null,
  -  "MountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
  -  "SubPath": "",
  -  "MountPropagation": null,
  -  "SubPathExpr": ""
  -  }
  -  ],
  +  "VolumeMounts": null,
      "VolumeDevices": null,
      "LivenessProbe": null,
      "ReadinessProbe": null,
  @@ -129,7 +31,7 @@
      "SecurityContext": null,
      "Stdin": false,
      "StdinOnce": false,
  -  "TTY": false
  +  "TTY": true
     }
    ],
    "EphemeralContainers": null,
  @@ -138,7 +40,7 @@
    "ActiveDeadlineSeconds": 5,
    "DNSPolicy": "ClusterFirst",
    "NodeSelector": null,
  - "ServiceAccountName": "default",
  + "ServiceAccountName": "",
    "AutomountServiceAccountToken": null,
    "NodeName": "",
    "SecurityContext": {
  [1]
  $ sed 's/image: i/image: j/' pod.yaml | kubectl apply -f -
  Warning: resource pods/pod is missing the kubectl.kubernetes.io/last-applied-configuration annotation which is required by kubectl apply. kubectl apply should only be used on resources created declaratively by either kubectl create --save-config or kubectl apply. The missing annotation will be patched automatically.
  pod/pod configured
  $ sed 's/name: pod/name: absent/' pod.yaml | kubectl replace -f -
  Error from server (NotFound): error when replacing "STDIN": pods "absent" not found
  [1]
  $ KUBE_EDITOR='sed -i s/IfNotPresent/Often/' kubectl edit pod pod 2>&1 | sed 's|/tmp/[^"]*|<file>|g' | head -20
  Edit cancelled, no changes made.
  $ KUBE_EDITOR='sed -i s/containers:/contaners:/' kubectl edit pod pod 2>&1 | sed 's|/tmp/[^"]*|<file>|g' | head -20
  error: pods "pod" is invalid
  A copy of your changes has been stored to "<file>"
  error: Edit cancelled, no valid changes were saved.
  $ KUBE_EDITOR=false kubectl edit pod pod 2>&1 | sed 's|/tmp/[^"]*|<file>|g'
  error: there was a problem with the editor "false"
  $ kubectl edit pod absent
  Error from server (NotFound): pods "absent" not found
  [1]
  $ kubectl label pod pod a=b,c=d; kubectl label pod pod; kubectl label pod pod a; kubectl label pods --all=false a=b
  error: invalid label spec: a=b,c=d
  error: at least one label update is required
  error: at least one label update is required
  error: resource(s) were provided, but no name was specified
  [1]
  $ kubectl annotate pod pod 'a b=c'; kubectl annotate pod pod a- ; kubectl annotate pod absent a=b
  The Pod "pod" is invalid: metadata.annotations: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
  pod/pod annotated
  Error from server (NotFound): pods "absent" not found
  [1]
  $ kubectl scale pod pod --replicas=2
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl scale deployment absent --replicas=2
  Error from server (NotFound): deployments.apps "absent" not found
  [1]
  $ kubectl scale deployment --replicas=2
  error: resource(s) were provided, but no name was specified
  [1]
  $ kubectl autoscale deployment absent --max=2
  Error from server (NotFound): deployments.apps "absent" not found
  [1]
  $ kubectl expose pod pod
  error: couldn't retrieve selectors via --selector flag or introspection: the pod has no labels and cannot be exposed
  [1]
  $ kubectl expose pod absent --port=80
  Error from server (NotFound): pods "absent" not found
  [1]
  $ kubectl rollout status pod/pod
  error: no status viewer has been implemented for Pod
  [1]
  $ kubectl rollout undo deployment/absent
  Error from server (NotFound): deployments.apps "absent" not found
  [1]
  $ kubectl set image pod/pod c=
  error: failed to patch image update to pod template: Pod "pod" is invalid: spec.containers[0].image: Required value
  [1]
  $ kubectl set image pod/pod c=k
  pod/pod image updated
  $ kubectl get pod pod -o jsonpath='{.spec.containers[0].image} {.metadata.generation}{"\n"}'
  k 4
  $ kubectl wait --for=condition=Ready pod/pod --timeout=0
  error: condition not met for pods/pod
  [1]
  $ kubectl wait --for=nothing pod/pod
  error: unrecognized condition: "nothing"
  [1]
  $ kubectl wait --for=condition=Ready pod/absent
  Error from server (NotFound): pods "absent" not found
  [1]
  $ kubectl wait --for=condition=Ready pods -l absent=yes
  error: no matching resources found
  [1]
  $ kubectl delete pod
  error: resource(s) were provided, but no name was specified
  [1]
  $ kubectl delete pod --all --field-selector metadata.name=absent
  error: setting 'all' parameter but found a non empty selector.
  [1]
  $ kubectl delete pod absent
  Error from server (NotFound): pods "absent" not found
  [1]
  $ kubectl delete pod pod --grace-period=-5 --dry-run=server
  pod "pod" deleted from wrong namespace (server dry run)
  $ kubectl delete pod pod --cascade=sideways
  error: invalid cascade value (sideways). Must be "background", "foreground", or "orphan"
  [1]
  $ kubectl delete nothing a
  error: the server doesn't have a resource type "nothing"
  [1]
  $ kubectl delete pods a --all
  error: name cannot be provided when a selector is specified
  [1]
  $ kubectl delete --raw /api/v1/namespaces/wrong/pods/absent
  Error from server (NotFound): pods "absent" not found
  [1]
  $ kubectl create --raw /api/v1/namespaces/wrong/absent -f pod.yaml
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl replace --raw /api/v1/namespaces/wrong/pods/absent -f pod.yaml
  Error from server (BadRequest): the object provided is unrecognized (must be of type Pod): couldn't get version/kind; json parse error: invalid character 'a' looking for beginning of value (61706956657273696f6e3a2076310a6b696e643a20506f640a6d65746164 ...)
  [1]
  $ kubectl delete pod pod --grace-period=0 --force
  Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
  pod "pod" force deleted from wrong namespace

Networks.

  $ kubectl create service clusterip a --tcp=0
  error: failed to create ClusterIP service: Service "a" is invalid: [spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive, spec.ports[0].targetPort: Invalid value: 0: must be between 1 and 65535, inclusive]
  [1]
  $ kubectl create service clusterip a --tcp=x
  error: strconv.ParseUint: parsing "x": invalid syntax
  [1]
  $ kubectl create service clusterip a
  error: at least one tcp port specifier must be provided
  [1]
  $ kubectl create service clusterip A --tcp=80
  error: failed to create ClusterIP service: Service "A" is invalid: metadata.name: Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
  [1]
  $ kubectl create service nodeport a --tcp=80 --node-port=80
  error: failed to create NodePort service: Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. The range of valid ports is <port>-32767
  [1]
  $ kubectl create service externalname a --external-name='not a name'
  error: invalid service external name not a name
  [1]
  $ kubectl create service clusterip a --clusterip=1.2.3.4 --tcp=80
  error: failed to create ClusterIP service: Service "a" is invalid: spec.clusterIPs: Invalid value: ["1.2.3.4"]: failed to allocate IP 1.2.3.4: the provided network does not match the current range
  [1]
  $ kubectl create service clusterip a --clusterip=x --tcp=80
  error: failed to create ClusterIP service: Service "a" is invalid: spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)
  [1]
  $ echo '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80}, {port: 81}]}}' | kubectl create -f -
  The Service "a" is invalid:
  * spec.ports[0].name: Required value
  * spec.ports[1].name: Required value
  [1]
  $ echo '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ports: [{port: 80, name: a}, {port: 80, name: a}], sessionAffinity: Always, externalTrafficPolicy: Local, type: ClusterIP}}' | kubectl create -f -
  The Service "a" is invalid:
  * spec.ports[1].name: Duplicate value: "a"
  * spec.sessionAffinity: Unsupported value: "Always": supported values: "ClientIP", "None"
  * spec.ports[1]: Duplicate value: {"Name":"","Protocol":"TCP","AppProtocol":null,"Port":80,"TargetPort":0,"NodePort":0}
  * spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services
  [1]
  $ echo '{apiVersion: v1, kind: Service, metadata: {name: 1a}, spec: {selector: {"a b": c}, ports: [{port: 80, targetPort: TOO_LONG_OR_WRONG}]}}' | kubectl create -f -
  The Service "1a" is invalid:
  * spec.ports[0].targetPort: Invalid value: "TOO_LONG_OR_WRONG": must be no more than 15 characters
  * spec.ports[0].targetPort: Invalid value: "TOO_LONG_OR_WRONG": must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)
  * spec.ports[0].targetPort: Invalid value: "TOO_LONG_OR_WRONG": must contain at least one letter (a-z)
  * spec.selector: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
  [1]
  $ echo '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {clusterIP: None, type: NodePort, ports: [{port: 80}]}}' | kubectl create -f -
  The Service "a" is invalid: spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services
  [1]
  $ echo '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {ipFamilies: [IPv6], ipFamilyPolicy: SingleStack, ports: [{port: 80}]}}' | kubectl create -f -
  The Service "a" is invalid: spec.ipFamilies[0]: Invalid value: "IPv6": not configured on this cluster
  [1]
  $ echo '{apiVersion: v1, kind: Service, metadata: {name: a}, spec: {}}' | kubectl create -f -
  The Service "a" is invalid: spec.ports: Required value
  [1]
  $ kubectl create ingress a --rule=x
  error: rule x is invalid and should be in format host/path=svcname:svcport[,tls[=secret]]
  [1]
  $ kubectl create ingress a --rule='A_b/=s:80'
  error: failed to create ingress: Ingress.networking.k8s.io "a" is invalid: spec.rules[0].host: Invalid value: "A_b": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  [1]
  $ echo '{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {}}' | kubectl create -f -
  The Ingress "a" is invalid: spec: Invalid value: null: either `defaultBackend` or `rules` must be specified
  [1]
  $ echo '{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a}, spec: {rules: [{host: 1.2.3.4, http: {paths: [{path: a, backend: {service: {name: s}}}]}}]}}' | kubectl create -f -
  The Ingress "a" is invalid:
  * spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address
  * spec.rules[0].http.paths[0].pathType: Required value: pathType must be specified
  [1]
  $ echo '{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: a}, spec: {podSelector: {}, policyTypes: [Both], ingress: [{from: [{ipBlock: {cidr: 1.2.3.4}}], ports: [{port: 0}]}]}}' | kubectl create -f -
  The NetworkPolicy "a" is invalid:
  * spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive
  * spec.ingress[0].from[0].ipBlock.cidr: Invalid value: "1.2.3.4": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
  * spec.policyTypes[0]: Unsupported value: "Both": supported values: "Ingress", "Egress"
  [1]
  $ echo '{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: a}, addressType: IPv5, endpoints: [{addresses: []}]}' | kubectl create -f -
  The EndpointSlice "a" is invalid:
  * addressType: Unsupported value: "IPv5": supported values: "FQDN", "IPv4", "IPv6"
  * endpoints[0].addresses: Required value: must contain at least 1 address
  [1]

The rest.

  $ kubectl create quota a --hard=pods=x
  error: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
  [1]
  $ kubectl create quota a --hard=pods=-1
  error: failed to create quota: ResourceQuota "a" is invalid: spec.hard[pods]: Invalid value: "-1": must be greater than or equal to 0
  [1]
  $ kubectl create quota a --hard=nothing=1
  error: failed to create quota: ResourceQuota "a" is invalid: [spec.hard[nothing]: Invalid value: "nothing": must be a standard resource type or fully qualified, spec.hard[nothing]: Invalid value: "nothing": must be a standard resource for quota]
  [1]
  $ kubectl create quota a --hard=pods=1 --scopes=Sometimes
  error: failed to create quota: ResourceQuota "a" is invalid: spec.scopes: Invalid value: ["Sometimes"]: unsupported scope
  [1]
  $ kubectl create pdb a --selector=a=b
  error: one of min-available or max-unavailable must be specified
  [1]
  $ kubectl create pdb a --selector=a=b --min-available=150%
  error: failed to create poddisruptionbudgets: PodDisruptionBudget.policy "a" is invalid: spec.minAvailable: Invalid value: "150%": must not be greater than 100%
  [1]
  $ echo '{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: a}, spec: {minAvailable: 1, maxUnavailable: 1}}' | kubectl create -f -
  The PodDisruptionBudget "a" is invalid: spec: Invalid value: {"MinAvailable":1,"Selector":null,"MaxUnavailable":1,"UnhealthyPodEvictionPolicy":null}: minAvailable and maxUnavailable cannot be both set
  [1]
  $ kubectl create priorityclass a --value=2000000000
  error: failed to create priorityclass: PriorityClass.scheduling.k8s.io "a" is invalid: value: Forbidden: maximum allowed value of a user defined priority is 1000000000
  [1]
  $ kubectl create priorityclass system-a --value=1
  error: failed to create priorityclass: PriorityClass.scheduling.k8s.io "system-a" is invalid: metadata.name: Forbidden: priority class names with 'system-' prefix are reserved for system use only. error: system-a is not a known system priority class
  [1]
  $ kubectl create priorityclass a --value=1 --preemption-policy=Maybe
  error: failed to create priorityclass: PriorityClass.scheduling.k8s.io "a" is invalid: preemptionPolicy: Unsupported value: "Maybe": supported values: "PreemptLowerPriority", "Never"
  [1]
  $ kubectl create role a --verb=get
  error: at least one resource must be specified
  [1]
  $ kubectl create role a --verb=get --resource=nothing
  the server doesn't have a resource type "nothing"
  [1]
  $ kubectl create role a --verb=eat --resource=pods
  Warning: 'eat' is not a standard resource verb
  role.rbac.authorization.k8s.io/a created
  $ kubectl create rolebinding a --user=b
  error: exactly one of clusterrole or role must be specified
  [1]
  $ kubectl create clusterrole a --verb=get --non-resource-url=x
  error: nonResourceURL should start with /
  [1]
  $ kubectl create secret tls a --cert=absent --key=absent
  error: Cannot read file absent, open absent: no such file or directory
  [1]
  $ kubectl create secret generic a --from-literal=x
  error: invalid literal source x, expected key=value
  [1]
  $ kubectl create configmap a --from-file=absent
  error: error reading absent: no such file or directory
  [1]
  $ kubectl create token absent
  error: failed to create token: serviceaccounts "absent" not found
  [1]
  $ kubectl create nothing a
  error: Unexpected args: [nothing a]
  See 'kubectl create -h' for help and examples
  [1]
  $ echo '{apiVersion: v1, kind: LimitRange, metadata: {name: a}, spec: {limits: [{type: Container, min: {cpu: 2}, max: {cpu: 1}, default: {cpu: 3}}, {type: Pod, default: {cpu: 1}}]}}' | kubectl create -f -
  The LimitRange "a" is invalid:
  * spec.limits[0].min[cpu]: Invalid value: "2": min value 2 is greater than max value 1
  * spec.limits[0].defaultRequest[cpu]: Invalid value: "3": default request value 3 is greater than max value 1
  * spec.limits[0].default[cpu]: Invalid value: "1": default value 3 is greater than max value 1
  * spec.limits[1].default: Forbidden: may not be specified when `type` is 'Pod'
  [1]
  $ echo '{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: a}, spec: {scaleTargetRef: {kind: Deployment}, minReplicas: 3, maxReplicas: 1, metrics: [{type: Resource}]}}' | kubectl create -f -
  The HorizontalPodAutoscaler "a" is invalid:
  * spec.maxReplicas: Invalid value: 1: must be greater than or equal to `minReplicas`
  * spec.scaleTargetRef.name: Required value
  * spec.scaleTargetRef.apiVersion: Invalid value: "": apiVersion must specify API group
  * spec.metrics[0].resource: Required value: must populate information for the given metric source
  [1]
  $ echo '{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: a}, spec: {accessModes: [Often], resources: {requests: {storage: -1Gi}}}}' | kubectl create -f -
  The PersistentVolumeClaim "a" is invalid:
  * spec.accessModes: Unsupported value: "Often": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"
  * spec.resources[storage]: Invalid value: "-1Gi": must be greater than zero
  [1]
  $ echo '{apiVersion: v1, kind: PersistentVolume, metadata: {name: a}, spec: {capacity: {cpu: 1}, accessModes: []}}' | kubectl create -f -
  The PersistentVolume "a" is invalid:
  * spec.accessModes: Required value
  * spec.capacity: Unsupported value: {"cpu":"1"}: supported values: "storage"
  * spec: Required value: must specify a volume type
  [1]
  $ echo '{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: a}, provisioner: "", reclaimPolicy: Keep, volumeBindingMode: Soon}' | kubectl create -f -
  The StorageClass "a" is invalid:
  * provisioner: Required value
  * reclaimPolicy: Unsupported value: "Keep": supported values: "Delete", "Retain"
  * volumeBindingMode: Unsupported value: "Soon": supported values: "Immediate", "WaitForFirstConsumer"
  [1]
  $ echo '{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: a}, spec: {leaseDurationSeconds: 0}}' | kubectl create -f -
  The Lease "a" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0
  [1]
  $ echo '{apiVersion: v1, kind: Event, metadata: {name: a, namespace: wrong}, involvedObject: {kind: Pod, namespace: other}}' | kubectl create -f -
  The Event "a" is invalid: involvedObject.namespace: Invalid value: "other": does not match event.namespace
  [1]
  $ echo '{apiVersion: v1, kind: Node, metadata: {name: a}, spec: {podCIDR: x, taints: [{key: a, effect: Never}]}}' | kubectl create -f -
  The Node "a" is invalid:
  * metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"
  * spec.podCIDRs[0]: Invalid value: "x": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)
  [1]
  $ echo '{apiVersion: v1, kind: Endpoints, metadata: {name: a}, subsets: [{addresses: [{ip: 127.0.0.1}], ports: [{port: 0}]}]}' | kubectl create -f -
  Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice
  The Endpoints "a" is invalid:
  * subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)
  * subsets[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive
  [1]
  $ echo '{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: a.b}, spec: {group: c, scope: Everywhere, names: {plural: As, kind: a}, versions: [{name: 1, served: true, storage: false}]}}' | kubectl create -f -
  Error from server (BadRequest): error when creating "STDIN": CustomResourceDefinition in version "v1" cannot be handled as a CustomResourceDefinition: json: cannot unmarshal number into Go struct field CustomResourceDefinitionVersion.spec.versions.name of type string
  [1]
  $ echo '{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: as.wrong.example.com}, spec: {group: wrong.example.com, scope: Namespaced, names: {plural: as, kind: A}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {properties: {a: {type: text}, b: {items: {}}}}}}]}}' | kubectl create -f -
  The CustomResourceDefinition "as.wrong.example.com" is invalid:
  * spec.validation.openAPIV3Schema.properties[b].items.type: Required value: must not be empty for specified array items
  * spec.validation.openAPIV3Schema.properties[b].type: Required value: must not be empty for specified object fields
  * spec.validation.openAPIV3Schema.type: Required value: must not be empty at the root
  * spec.validation.openAPIV3Schema.properties[a].type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"
  [1]
  $ echo '{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: a}, webhooks: [{name: short, clientConfig: {}}]}' | kubectl create -f -
  The ValidatingWebhookConfiguration "a" is invalid:
  * webhooks[0].name: Invalid value: "short": should be a domain with at least three segments separated by dots
  * webhooks[0].sideEffects: Required value: must specify one of None, NoneOnDryRun
  * webhooks[0].clientConfig: Required value: exactly one of url or service is required
  * webhooks[0].admissionReviewVersions: Required value: must specify one of v1, v1beta1
  [1]
  $ echo '{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: a}, spec: {request: YQ==, signerName: x}}' | kubectl create -f -
  The CertificateSigningRequest "a" is invalid:
  * spec.request: Invalid value: "YQ==": PEM block type must be CERTIFICATE REQUEST
  * spec.usages: Required value
  * spec.signerName: Invalid value: "x": must be a fully qualified domain and path of the form 'example.com/signer-name'
  [1]
  $ kubectl config use-context absent
  error: no context exists with the name: "absent"
  [1]
  $ kubectl get pods --context=absent
  Error in configuration: context was not found for specified context: absent
  [1]
  $ kubectl get pods --kubeconfig=absent
  error: stat absent: no such file or directory
  [1]
  $ kubectl get pods --server=https://127.0.0.1:1 2>&1 | sed 's/^E.*memcache.*/<log>/'
  <log>
  <log>
  <log>
  <log>
  <log>
  The connection to the server <server> was refused - did you specify the right host or port?
  $ kubectl get pods --token=wrong --kubeconfig=/dev/null --server="$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}')" --insecure-skip-tls-verify 2>&1 | grep -v memcache
  error: You must be logged in to the server (Unauthorized)
  $ kubectl get pods --username=a --password=b --kubeconfig=/dev/null --server="$(kubectl config view --minify -o jsonpath='{.clusters[0].cluster.server}')" --insecure-skip-tls-verify 2>&1 | grep -v memcache
  Error from server (Forbidden): pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "default"
  $ kubectl sideways
  error: unknown command "sideways" for "kubectl"
  [1]
  $ kubectl get pods --sideways
  error: unknown flag: --sideways
  See 'kubectl get --help' for usage.
  [1]
