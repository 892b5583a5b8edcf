Objects are made, shown in every form, changed in every way, and deleted.

  $ kubectl create namespace objects
  namespace/objects created
  $ kubectl config set-context --current --namespace=objects >&-

ConfigMaps and Secrets, from all that kubectl makes them of.

  $ printf 'colour=blue\nsize=9\n' > game.env; printf 'hello\n' > greeting.txt; printf '\377\376' > raw
  $ kubectl create configmap game --from-env-file=game.env
  configmap/game created
  $ kubectl create configmap files --from-file=greeting.txt --from-file=raw --from-literal=k=v
  configmap/files created
  $ kubectl create configmap game --from-literal=a=b
  error: failed to create configmap: configmaps "game" already exists
  [1]
  $ kubectl create secret generic pass --from-literal=password=s3cret --type=example.com/own
  secret/pass created
  $ kubectl create secret docker-registry pull --docker-server=r.example.com --docker-username=u --docker-password=p
  secret/pull created
  $ kubectl create secret generic broken --type=kubernetes.io/tls --from-literal=a=b
  error: failed to create secret Secret "broken" is invalid: [data[tls.crt]: Required value, data[tls.key]: Required value]
  [1]
  $ kubectl create configmap UPPER --from-literal=a=b
  error: failed to create configmap: ConfigMap "UPPER" is invalid: metadata.name: Invalid value: "UPPER": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  [1]
  $ kubectl create configmap k --from-literal='a b=c'
  error: "a b" is not a valid key name for a ConfigMap: a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')
  [1]
  $ kubectl get configmap files -o yaml
  apiVersion: v1
  binaryData:
    raw: //4=
  data:
    greeting.txt: |
      hello
    k: v
  kind: ConfigMap
  metadata:
    creationTimestamp: "<time>"
    name: files
    namespace: objects
    resourceVersion: "<version>"
    uid: <uid>
  $ kubectl get secrets
  NAME  TYPE  DATA  AGE
  pass  example.com/own  1  <age>
  pull  kubernetes.io/dockerconfigjson  1  <age>
  $ kubectl describe secret pass
  Name:  pass
  Namespace:  objects
  Labels:  <none>
  Annotations:  <none>
  |
  Type:  example.com/own
  |
  Data
  ====
  password:  6 bytes
  $ kubectl describe configmap files
  Name:  files
  Namespace:  objects
  Labels:  <none>
  Annotations:  <none>
  |
  Data
  ====
  greeting.txt:
  ----
  hello
  |
  |
  k:
  ----
  v
  |
  |
  BinaryData
  ====
  raw: 2 bytes
  |
  Events:  <none>

One object in every form.

  $ kubectl label configmap game tier=front game=yes
  configmap/game labeled
  $ kubectl annotate configmap game example.com/note='a b'
  configmap/game annotated
  $ kubectl get configmap game
  NAME  DATA  AGE
  game  2  <age>
  $ kubectl get configmap game -o wide
  NAME  DATA  AGE
  game  2  <age>
  $ kubectl get configmap game -o yaml
  apiVersion: v1
  data:
    colour: blue
    size: "9"
  kind: ConfigMap
  metadata:
    annotations:
      example.com/note: a b
    creationTimestamp: "<time>"
    labels:
      game: "yes"
      tier: front
    name: game
    namespace: objects
    resourceVersion: "<version>"
    uid: <uid>
  $ kubectl get configmap game -o json
  {
      "apiVersion": "v1",
      "data": {
          "colour": "blue",
          "size": "9"
      },
      "kind": "ConfigMap",
      "metadata": {
          "annotations": {
              "example.com/note": "a b"
          },
          "creationTimestamp": "<time>",
          "labels": {
              "game": "yes",
              "tier": "front"
          },
          "name": "game",
          "namespace": "objects",
          "resourceVersion": "<version>",
          "uid": "<uid>"
      }
  }
  $ kubectl get configmap game -o name
  configmap/game
  $ kubectl get configmap game -o jsonpath='{.data.colour}{"\n"}'
  blue
  $ kubectl get configmap game -o jsonpath-as-json='{.data}'
  [
      {
          "colour": "blue",
          "size": "9"
      }
  ]
  $ kubectl get configmap game -o go-template='{{range $k, $v := .data}}{{$k}}={{$v}}{{"\n"}}{{end}}'
  colour=blue
  size=9
  $ kubectl get configmap game -o custom-columns=NAME:.metadata.name,COLOUR:.data.colour,NONE:.spec.none
  NAME  COLOUR  NONE
  game  blue  <none>
  $ kubectl get configmap game --show-labels
  NAME  DATA  AGE  LABELS
  game  2  <age>  game=yes,tier=front
  $ kubectl get configmap game -L tier,absent
  NAME  DATA  AGE  TIER  ABSENT
  game  2  <age>  front
  $ kubectl get configmap game --no-headers
  game  2  <age>
  $ kubectl get configmap game --show-kind
  NAME  DATA  AGE
  configmap/game  2  <age>
  $ kubectl get configmap game --output-watch-events --watch --request-timeout=1s 2>&-
  EVENT  NAME  DATA  AGE
  ADDED  game  2  <age>
  $ kubectl get --raw /api/v1/namespaces/objects/configmaps/game | head -c 90; echo
  {"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"game","namespace":"objects","uid
  $ kubectl get --raw /api/v1/namespaces/objects/configmaps/absent
  Error from server (NotFound): configmaps "absent" not found
  [1]

Many objects, chosen and sorted.

  $ kubectl get configmaps -l tier=front
  NAME  DATA  AGE
  game  2  <age>
  $ kubectl get configmaps -l 'tier in (front, back),game' -o name
  configmap/game
  $ kubectl get configmaps -l 'tier!=front' --field-selector metadata.name!=kube-root-ca.crt -o name
  configmap/files
  $ kubectl get configmaps -l '!tier' --field-selector metadata.name!=kube-root-ca.crt -o name
  configmap/files
  $ kubectl get configmaps -l 'tier=!'
  Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector "tier=!", field selector "": unable to parse requirement: found '!', expected: identifier
  [1]
  $ kubectl get configmaps --field-selector metadata.name=game
  NAME  DATA  AGE
  game  2  <age>
  $ kubectl get configmaps --field-selector metadata.name!=game,metadata.name!=kube-root-ca.crt -o name
  configmap/files
  $ kubectl get configmaps --field-selector data.colour=blue
  Error from server (BadRequest): Unable to find "/v1, Resource=configmaps" that match label selector "", field selector "data.colour=blue": "data.colour" is not a known field selector: only "metadata.name", "metadata.namespace"
  [1]
  $ kubectl get secrets --field-selector type=example.com/own
  NAME  TYPE  DATA  AGE
  pass  example.com/own  1  <age>
  $ kubectl get configmaps,secrets --sort-by=.metadata.name -o name --field-selector metadata.name!=kube-root-ca.crt
  configmap/files
  configmap/game
  secret/pass
  secret/pull
  $ kubectl get configmaps --sort-by='{.metadata.name}' --chunk-size=1 --field-selector metadata.name!=kube-root-ca.crt
  NAME  DATA  AGE
  files  3  <age>
  game  2  <age>
  $ kubectl get configmaps -A -l tier
  NAMESPACE  NAME  DATA  AGE
  objects  game  2  <age>
  $ kubectl get configmaps game absent
  NAME  DATA  AGE
  game  2  <age>
  Error from server (NotFound): configmaps "absent" not found
  [1]
  $ kubectl get configmap/game secret/pass
  NAME  DATA  AGE
  configmap/game  2  <age>
  |
  NAME  TYPE  DATA  AGE
  secret/pass  example.com/own  1  <age>
  $ kubectl get configmaps -o jsonpath='{range .items[*]}{.metadata.name} {end}{"\n"}' --chunk-size=1 --field-selector metadata.name!=kube-root-ca.crt
  files game
  $ kubectl get all
  No resources found in objects namespace.
  $ kubectl get nothing
  error: the server doesn't have a resource type "nothing"
  [1]
  $ kubectl get configmaps --namespace nowhere
  No resources found in nowhere namespace.
  $ kubectl get configmap --server-print=false game
  NAME  AGE
  game  <age>

Changed.

  $ kubectl label configmap game tier=back
  error: 'tier' already has a value (front), and --overwrite is false
  [1]
  $ kubectl label configmap game tier=back --overwrite
  configmap/game labeled
  $ kubectl label configmap game tier-
  configmap/game unlabeled
  $ kubectl label configmap game 'bad key=1'
  The ConfigMap "game" is invalid: metadata.labels: Invalid value: "bad key": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
  [1]
  $ kubectl label configmap game tier='-bad-'
  error: invalid label value: "tier=-bad-": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')
  [1]
  $ kubectl label configmap game --list
  game=yes
  $ kubectl annotate configmap game example.com/note-
  configmap/game annotated
  $ kubectl patch configmap game -p '{"data":{"size":"10"}}'
  configmap/game patched
  $ kubectl patch configmap game -p '{"data":{"size":"10"}}'
  configmap/game patched (no change)
  $ kubectl patch configmap game --type=merge -p '{"data":{"colour":null,"new":"1"}}'
  configmap/game patched
  $ kubectl patch configmap game --type=json -p '[{"op":"test","path":"/data/new","value":"1"},{"op":"replace","path":"/data/new","value":"2"},{"op":"add","path":"/data/more","value":"3"}]' -o jsonpath='{.data}{"\n"}'
  {"more":"3","new":"2","size":"10"}
  $ kubectl patch configmap game --type=json -p '[{"op":"test","path":"/data/new","value":"1"}]'
  The request is invalid: the server rejected our request due to an error in our request
  [1]
  $ kubectl patch configmap game --type=json -p '[{"op":"remove","path":"/data/absent"}]'
  The request is invalid: the server rejected our request due to an error in our request
  [1]
  $ kubectl patch configmap game --type=merge -p '{"data":{"n":5}}'
  The request is invalid: patch: Invalid value: "{\"apiVersion\":\"v1\",\"data\":{\"more\":\"3\",\"n\":5,\"new\":\"2\",\"size\":\"10\"},\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"game\",\"namespace\":\"objects\",\"uid\":\"<uid>\",\"resourceVersion\":\"<version>\",\"creationTimestamp\":\"<time>\",\"labels\":{\"game\":\"yes\"},\"managedFields\":[{\"manager\":\"kubectl-create\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"<time>\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{}}},{\"manager\":\"kubectl-label\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"<time>\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:labels\":{\".\":{},\"f:game\":{}}}}},{\"manager\":\"kubectl-patch\",\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":\"<time>\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:data\":{\"f:more\":{},\"f:new\":{},\"f:size\":{}}}}]}}": json: cannot unmarshal number into Go struct field ConfigMap.data of type string
  [1]
  $ kubectl patch configmap game --type=merge -p '{"data":'
  Error from server (BadRequest): error decoding patch: unexpected end of JSON input
  [1]
  $ kubectl patch configmap game --type=merge -p '{"metadata":{"uid":"other"}}'
  The ConfigMap "game" is invalid: metadata.uid: Invalid value: "other": field is immutable
  [1]
  $ kubectl patch configmap game --type=merge -p '{"metadata":{"name":"other"}}'
  Error from server (BadRequest): the name of the object (other) does not match the name on the URL (game)
  [1]
  $ kubectl patch configmap absent -p '{}'
  Error from server (NotFound): configmaps "absent" not found
  [1]
  $ kubectl get configmap game -o yaml | sed 's/size: "10"/size: "11"/' > game.yaml
  $ kubectl replace -f game.yaml
  configmap/game replaced
  $ kubectl replace -f game.yaml
  Error from server (Conflict): error when replacing "game.yaml": Operation cannot be fulfilled on configmaps "game": the object has been modified; please apply your changes to the latest version and try again
  [1]
  $ kubectl replace --force -f game.yaml
  configmap "game" deleted from objects namespace
  configmap/game replaced
  $ KUBE_EDITOR='sed -i /size/s/11/12/' kubectl edit configmap game
  configmap/game edited
  $ KUBE_EDITOR=true kubectl edit configmap game
  Edit cancelled, no changes made.
  $ kubectl get configmap game -o jsonpath='{.data}{"\n"}'
  {"more":"3","new":"2","size":"12"}
  $ kubectl patch configmap game --type=merge -p '{"immutable":true}'
  configmap/game patched
  $ kubectl patch configmap game --type=merge -p '{"data":{"size":"1"}}'
  The ConfigMap "game" is invalid: data: Forbidden: field is immutable when `immutable` is set
  [1]

Only as if.

  $ kubectl create configmap dry --from-literal=a=b --dry-run=server -o yaml
  apiVersion: v1
  data:
    a: b
  kind: ConfigMap
  metadata:
    creationTimestamp: "<time>"
    name: dry
    namespace: objects
    uid: <uid>
  $ kubectl create configmap dry --from-literal=a=b --dry-run=client -o yaml
  apiVersion: v1
  data:
    a: b
  kind: ConfigMap
  metadata:
    name: dry
  $ kubectl delete configmap files --dry-run=server
  configmap "files" deleted from objects namespace (server dry run)
  $ kubectl get configmap dry
  Error from server (NotFound): configmaps "dry" not found
  [1]
  $ kubectl get configmap files -o name
  configmap/files

Said wrongly.

  $ kubectl create -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: typo, lable: {a: b}}
  > dat: {a: b}
  > END
  Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dat", unknown field "metadata.lable"
  [1]
  $ kubectl create --validate=warn -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: typo}
  > dat: {a: b}
  > END
  Warning: unknown field "dat"
  configmap/typo created
  $ kubectl create --validate=ignore -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: typo2}
  > dat: {a: b}
  > END
  configmap/typo2 created
  $ kubectl create -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: types}
  > data: {a: 1, b: true}
  > END
  Error from server (BadRequest): error when creating "STDIN": ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string
  [1]
  $ kubectl create -f - <<'END'
  > apiVersion: v1
  > kind: Konfigmap
  > metadata: {name: a}
  > END
  error: resource mapping not found for name: "a" namespace: "" from "STDIN": no matches for kind "Konfigmap" in version "v1"
  ensure CRDs are installed first
  [1]
  $ kubectl create -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: a, namespace: elsewhere}
  > END
  Error from server (NotFound): error when creating "STDIN": namespaces "elsewhere" not found
  [1]
  $ kubectl create -n elsewhere -f - <<'END'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {name: a}
  > END
  Error from server (NotFound): error when creating "STDIN": namespaces "elsewhere" not found
  [1]
  $ kubectl create -f - <<'END' | sed 's/made-...../made-*/'
  > apiVersion: v1
  > kind: ConfigMap
  > metadata: {generateName: made-}
  > END
  configmap/made-* created

And gone.

  $ kubectl delete configmap typo typo2 absent
  configmap "typo" deleted from objects namespace
  configmap "typo2" deleted from objects namespace
  Error from server (NotFound): configmaps "absent" not found
  [1]
  $ kubectl delete configmap absent --ignore-not-found
  $ kubectl delete secrets -l absent
  No resources found
  $ kubectl delete secret pass --now -o name
  secret/pass
  $ kubectl delete configmaps --all --wait=false -o name | sed 's/made-.*/made-*/' | grep -v kube-root-ca
  configmap/files
  configmap/game
  configmap/made-*
  $ kubectl get secrets -o name
  secret/pull
