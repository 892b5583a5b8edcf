Kinds of one's own, and what their schema makes of objects.

  $ kubectl create namespace schema
  namespace/schema created
  $ kubectl config set-context --current --namespace=schema >&-
  $ cat > crd.yaml <<'END'
  > apiVersion: apiextensions.k8s.io/v1
  > kind: CustomResourceDefinition
  > metadata: {name: trains.schema.example.com}
  > spec:
  >   group: schema.example.com
  >   scope: Namespaced
  >   names: {plural: trains, kind: Train, shortNames: [tr], categories: [rolling]}
  >   versions:
  >   - name: v1
  >     served: true
  >     storage: true
  >     subresources:
  >       status: {}
  >       scale: {specReplicasPath: .spec.cars, statusReplicasPath: .status.cars, labelSelectorPath: .status.selector}
  >     additionalPrinterColumns:
  >     - {name: Cars, type: integer, jsonPath: .spec.cars}
  >     - {name: Speed, type: string, jsonPath: .spec.speed, priority: 1}
  >     - {name: Ready, type: string, jsonPath: '.status.conditions[?(@.type=="Ready")].status'}
  >     - {name: Since, type: date, jsonPath: .metadata.creationTimestamp}
  >     schema:
  >       openAPIV3Schema:
  >         description: A train.
  >         type: object
  >         required: [spec]
  >         properties:
  >           spec:
  >             description: How it should be.
  >             type: object
  >             required: [cars]
  >             properties:
  >               cars: {type: integer, minimum: 1, maximum: 10, description: How many cars.}
  >               speed: {type: string, pattern: '^[0-9]+km/h$'}
  >               class: {type: string, enum: [first, second], default: second}
  >               stops:
  >                 type: array
  >                 maxItems: 3
  >                 items: {type: object, required: [name], properties: {name: {type: string}, minutes: {type: integer}}}
  >                 x-kubernetes-list-type: map
  >                 x-kubernetes-list-map-keys: [name]
  >               extra: {type: object, x-kubernetes-preserve-unknown-fields: true}
  >               tags: {type: array, items: {type: string}, x-kubernetes-list-type: set}
  >               any: {x-kubernetes-int-or-string: true}
  >           status:
  >             type: object
  >             properties:
  >               cars: {type: integer}
  >               selector: {type: string}
  >               conditions:
  >                 type: array
  >                 items: {type: object, properties: {type: {type: string}, status: {type: string}, observedGeneration: {type: integer}}}
  > END
  $ kubectl apply -f crd.yaml
  customresourcedefinition.apiextensions.k8s.io/trains.schema.example.com created
  $ kubectl wait --for=condition=Established crd/trains.schema.example.com
  customresourcedefinition.apiextensions.k8s.io/trains.schema.example.com condition met
  $ until kubectl explain train >/dev/null 2>&1; do sleep 1; done
  $ kubectl explain train --recursive
  GROUP:  schema.example.com
  KIND:  Train
  VERSION:  v1
  |
  DESCRIPTION:
      A train.
  |
  FIELDS:
    apiVersion	<string>
    kind	<string>
    metadata	<ObjectMeta>
      annotations	<map[string]string>
      creationTimestamp	<string>
      deletionGracePeriodSeconds	<integer>
      deletionTimestamp	<string>
      finalizers	<[]string>
      generateName	<string>
      generation	<integer>
      labels	<map[string]string>
      managedFields	<[]ManagedFieldsEntry>
        apiVersion	<string>
        fieldsType	<string>
        fieldsV1	<FieldsV1>
        manager	<string>
        operation	<string>
        subresource	<string>
        time	<string>
      name	<string>
      namespace	<string>
      ownerReferences	<[]OwnerReference>
        apiVersion	<string> -required-
        blockOwnerDeletion	<boolean>
        controller	<boolean>
        kind	<string> -required-
        name	<string> -required-
        uid	<string> -required-
      resourceVersion	<string>
      selfLink	<string>
      uid	<string>
    spec	<Object> -required-
      any	<Object>
      cars	<integer> -required-
      class	<string>
      enum: first, second
      extra	<Object>
      speed	<string>
      stops	<[]Object>
        minutes	<integer>
        name	<string> -required-
      tags	<[]string>
    status	<Object>
      cars	<integer>
      conditions	<[]Object>
        observedGeneration	<integer>
        status	<string>
        type	<string>
      selector	<string>
  $ kubectl explain train.spec.stops
  GROUP:  schema.example.com
  KIND:  Train
  VERSION:  v1
  |
  FIELD: stops <[]Object>
  |
  |
  DESCRIPTION:
      <empty>
  FIELDS:
    minutes	<integer>
      <no description>
  |
    name	<string> -required-
      <no description>
  $ kubectl explain train.spec.class
  GROUP:  schema.example.com
  KIND:  Train
  VERSION:  v1
  |
  FIELD: class <string>
  ENUM:
      first
      second
  |
  DESCRIPTION:
      <empty>
  $ kubectl explain train.spec.absent
  GROUP:  schema.example.com
  KIND:  Train
  VERSION:  v1
  |
  error: field "absent" does not exist
  [1]
  $ cat > train.yaml <<'END'
  > apiVersion: schema.example.com/v1
  > kind: Train
  > metadata: {name: one}
  > spec:
  >   cars: 3
  >   speed: 90km/h
  >   stops: [{name: a, minutes: 1}, {name: b}]
  >   extra: {free: {form: [1, 2]}}
  >   tags: [x]
  > END
  $ kubectl diff -f train.yaml >/dev/null; echo $?
  1
  $ kubectl apply -f train.yaml
  train.schema.example.com/one created
  $ kubectl diff -f train.yaml; echo $?
  0
  $ kubectl get train one -o yaml
  apiVersion: schema.example.com/v1
  kind: Train
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"schema.example.com/v1","kind":"Train","metadata":{"annotations":{},"name":"one","namespace":"schema"},"spec":{"cars":3,"extra":{"free":{"form":[1,2]}},"speed":"90km/h","stops":[{"minutes":1,"name":"a"},{"name":"b"}],"tags":["x"]}}
    creationTimestamp: "<time>"
    generation: 1
    name: one
    namespace: schema
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    cars: 3
    class: second
    extra:
      free:
        form:
        - 1
        - 2
    speed: 90km/h
    stops:
    - minutes: 1
      name: a
    - name: b
    tags:
    - x
  $ kubectl get trains
  NAME  CARS  READY  SINCE
  one  3  <age>
  $ kubectl get tr -o wide
  NAME  CARS  SPEED  READY  SINCE
  one  3  90km/h  <age>
  $ kubectl get rolling
  NAME  CARS  READY  SINCE
  one  3  <age>
  $ kubectl get trains -A
  NAMESPACE  NAME  CARS  READY  SINCE
  schema  one  3  <age>
  $ kubectl get trains -o custom-columns=N:.metadata.name,C:.spec.cars
  N  C
  one  3
  $ kubectl get trains --sort-by=.spec.cars --no-headers
  one  3  <age>
  $ kubectl get train one --show-labels -L x
  NAME  CARS  READY  SINCE  X  LABELS
  one  3  <age>  <none>
  $ kubectl wait --for=condition=Ready train/one --timeout=1s
  error: timed out waiting for the condition on trains/one
  [1]
  $ kubectl patch train one --subresource=status --type=merge -p '{"status":{"cars":3,"selector":"app=train","conditions":[{"type":"Ready","status":"True"}]}}'
  train.schema.example.com/one patched
  $ kubectl wait --for=condition=Ready train/one
  train.schema.example.com/one condition met
  $ kubectl get trains
  NAME  CARS  READY  SINCE
  one  3  True  <age>
  $ kubectl scale train one --replicas=5
  train.schema.example.com/one scaled
  $ kubectl scale train one --current-replicas=2 --replicas=5
  error: Expected replicas to be 2, was 5
  [1]
  $ kubectl scale train one --replicas=50
  The Train "one" is invalid: spec.cars: Invalid value: 50: spec.cars in body should be less than or equal to 10
  [1]
  $ kubectl get train one --subresource=scale -o yaml
  apiVersion: autoscaling/v1
  kind: Scale
  metadata:
    creationTimestamp: "<time>"
    name: one
    namespace: schema
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    replicas: 5
  status:
    replicas: 3
    selector: app=train
  $ kubectl get train one --subresource=status -o jsonpath='{.status.selector}{"\n"}'
  app=train
  $ kubectl get train one --subresource=absent
  Error from server (NotFound): trains.schema.example.com "one" not found
  [1]
  $ kubectl autoscale train one --max=5
  horizontalpodautoscaler.autoscaling/one autoscaled
  $ kubectl describe train one
  Name:  one
  Namespace:  schema
  Labels:  <none>
  Annotations:  <none>
  API Version:  schema.example.com/v1
  Kind:  Train
  Metadata:
    Creation Timestamp:  <time>
    Generation:  2
    Resource Version:  <version>
    UID:  <uid>
  Spec:
    Cars:  5
    Class:  second
    Extra:
      Free:
        Form:
          1
          2
    Speed:  90km/h
    Stops:
      Minutes:  1
      Name:  a
      Name:  b
    Tags:
      x
  Status:
    Cars:  3
    Conditions:
      Status:  True
      Type:  Ready
    Selector:  app=train
  Events:  <none>
  $ sed 's/cars: 3/cars: 11/' train.yaml | kubectl apply -f -
  The Train "one" is invalid: spec.cars: Invalid value: 11: spec.cars in body should be less than or equal to 10
  [1]
  $ sed 's/cars: 3/cars: many/' train.yaml | kubectl apply -f -
  The Train "one" is invalid:
  * spec.cars: Invalid value: "string": spec.cars in body must be of type integer: "string"
  * .spec.cars: Invalid value: 0: .spec.cars accessor error: many is of the type string, expected int64
  [1]
  $ sed 's/cars: 3/cras: 3/' train.yaml | kubectl apply -f -
  The request is invalid: patch: Invalid value: "{\"apiVersion\":\"schema.example.com/v1\",\"kind\":\"Train\",\"metadata\":{\"annotations\":{\"kubectl.kubernetes.io/last-applied-configuration\":\"{\\\"apiVersion\\\":\\\"schema.example.com/v1\\\",\\\"kind\\\":\\\"Train\\\",\\\"metadata\\\":{\\\"annotations\\\":{},\\\"name\\\":\\\"one\\\",\\\"namespace\\\":\\\"schema\\\"},\\\"spec\\\":{\\\"cras\\\":3,\\\"extra\\\":{\\\"free\\\":{\\\"form\\\":[1,2]}},\\\"speed\\\":\\\"90km/h\\\",\\\"stops\\\":[{\\\"minutes\\\":1,\\\"name\\\":\\\"a\\\"},{\\\"name\\\":\\\"b\\\"}],\\\"tags\\\":[\\\"x\\\"]}}\\n\"},\"creationTimestamp\":\"<time>\",\"generation\":2,\"managedFields\":[{\"apiVersion\":\"schema.example.com/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:cars\":{}}},\"manager\":\"kubectl\",\"operation\":\"Update\",\"subresource\":\"scale\"},{\"apiVersion\":\"schema.example.com/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:kubectl.kubernetes.io/last-applied-configuration\":{}}},\"f:spec\":{\".\":{},\"f:class\":{},\"f:extra\":{\".\":{},\"f:free\":{\".\":{},\"f:form\":{}}},\"f:speed\":{},\"f:stops\":{\".\":{},\"k:{\\\"name\\\":\\\"a\\\"}\":{\".\":{},\"f:minutes\":{},\"f:name\":{}},\"k:{\\\"name\\\":\\\"b\\\"}\":{\".\":{},\"f:name\":{}}},\"f:tags\":{\".\":{},\"v:\\\"x\\\"\":{}}}},\"manager\":\"kubectl-client-side-apply\",\"operation\":\"Update\",\"time\":\"<time>\"},{\"apiVersion\":\"schema.example.com/v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\".\":{},\"f:cars\":{},\"f:conditions\":{},\"f:selector\":{}}},\"manager\":\"kubectl-patch\",\"operation\":\"Update\",\"subresource\":\"status\",\"time\":\"<time>\"}],\"name\":\"one\",\"namespace\":\"schema\",\"resourceVersion\":\"<version>\",\"uid\":\"<uid>\"},\"spec\":{\"class\":\"second\",\"cras\":3,\"extra\":{\"free\":{\"form\":[1,2]}},\"speed\":\"90km/h\",\"stops\":[{\"minutes\":1,\"name\":\"a\"},{\"name\":\"b\"}],\"tags\":[\"x\"]},\"status\":{\"cars\":3,\"conditions\":[{\"status\":\"True\",\"type\":\"Ready\"}],\"selector\":\"app=train\"}}": strict decoding error: unknown field "spec.cras"
  [1]
  $ sed 's/cars: 3/cras: 3/' train.yaml | kubectl apply --validate=warn -f -
  Warning: unknown field "spec.cras"
  The Train "one" is invalid: spec.cars: Required value
  [1]
  $ sed 's/90km/fast/' train.yaml | kubectl apply -f -
  The Train "one" is invalid: spec.speed: Invalid value: "fast/h": spec.speed in body should match '^[0-9]+km/h$'
  [1]
  $ sed 's/tags: .*/tags: [x, x]/' train.yaml | kubectl apply -f -
  The Train "one" is invalid: spec.tags[1]: Duplicate value: "x"
  [1]
  $ sed 's/name: b/name: a/' train.yaml | kubectl apply -f -
  The Train "one" is invalid: spec.stops[1]: Duplicate value: {"name":"a"}
  [1]
  $ sed 's/name: one/name: two/; s/name: b/nam: b/' train.yaml | kubectl create -f -
  Error from server (BadRequest): error when creating "STDIN": Train in version "v1" cannot be handled as a Train: strict decoding error: unknown field "spec.stops[1].nam"
  [1]
  $ sed 's/name: one/name: two/; s/  tags: .*/  any: [1]/' train.yaml | kubectl create -f -
  The Train "two" is invalid: spec.any: Invalid value: "array": spec.any in body must be of type integer,string: "array"
  [1]
  $ sed 's/name: one/name: two/; s/  tags: .*/  class: third/' train.yaml | kubectl create -f -
  The Train "two" is invalid: spec.class: Unsupported value: "third": supported values: "first", "second"
  [1]
  $ sed 's/name: one/name: Two/' train.yaml | kubectl create -f -
  The Train "Two" is invalid: metadata.name: Invalid value: "Two": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')
  [1]
  $ sed 's/name: one/name: two/' train.yaml | kubectl create -f - --dry-run=server -o yaml
  apiVersion: schema.example.com/v1
  kind: Train
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    name: two
    namespace: schema
    uid: <uid>
  spec:
    cars: 3
    class: second
    extra:
      free:
        form:
        - 1
        - 2
    speed: 90km/h
    stops:
    - minutes: 1
      name: a
    - name: b
    tags:
    - x
  $ kubectl patch train one -p '{"spec":{"cars":2}}'
  error: application/strategic-merge-patch+json is not supported by schema.example.com/v1, Kind=Train: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
  [1]
  $ kubectl patch train one --type=json -p '[{"op":"replace","path":"/spec/cars","value":"x"}]'
  The Train "one" is invalid:
  * spec.cars: Invalid value: "string": spec.cars in body must be of type integer: "string"
  * .spec.cars: Invalid value: 0: .spec.cars accessor error: x is of the type string, expected int64
  [1]
  $ kubectl patch train one --type=merge -p '{"spec":{"cars":null}}'
  The Train "one" is invalid: spec.cars: Required value
  [1]
  $ kubectl patch train one --type=merge -p '{"spec":{"class":null}}'
  train.schema.example.com/one patched (no change)
  $ kubectl get train one -o jsonpath='{.spec.class} {.metadata.generation}{"\n"}'
  second 2
  $ kubectl apply --server-side --field-manager=a -f - <<'END'
  > apiVersion: schema.example.com/v1
  > kind: Train
  > metadata: {name: one}
  > spec: {cars: 9, stops: [{name: c, minutes: 9}]}
  > END
  error: Apply failed with 1 conflict: conflict with "kubectl" with subresource "scale" using schema.example.com/v1: .spec.cars
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
  $ kubectl apply --server-side --field-manager=a --force-conflicts -f - <<'END'
  > apiVersion: schema.example.com/v1
  > kind: Train
  > metadata: {name: one}
  > spec: {cars: 9, stops: [{name: c, minutes: 9}]}
  > END
  train.schema.example.com/one serverside-applied
  $ kubectl get train one -o jsonpath='{.spec.cars} {.spec.stops}{"\n"}'
  9 [{"minutes":9,"name":"c"}]
  $ KUBE_EDITOR='sed -i s/cars:.9/cars:\ 8/' kubectl edit train one
  train.schema.example.com/one edited
  $ for patch in '{"kind":"Service"}' '{"kind":null}' '{"kind":1}' '{"apiVersion":"a/b/c"}' '{"apiVersion":"apps/v1","kind":"Deployment"}' '{"metadata":null}'; do kubectl patch train one --type=merge -p "$patch" 2>&1 | sed 's/Invalid value: .*}"/Invalid value: .../; s/missing in .{.*/missing in .../'; done
  The Service "one" is invalid: kind: Invalid value: "Service": must be Train
  The request is invalid: patch: Invalid value: ...:{".":{},"f:minutes":{},"f:name":{}}}}},"manager":"a","operation":"Apply","time":"<time>"},{"apiVersion":"schema.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:status":{".":{},"f:cars":{},"f:conditions":{},"f:selector":{}}},"manager":"kubectl-patch","operation":"Update","subresource":"status","time":"<time>"},{"apiVersion":"schema.example.com/v1","fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:cars":{}}},"manager":"kubectl-edit","operation":"Update","time":"<time>"}],"name":"one","namespace":"schema","resourceVersion":"<version>","uid":"<uid>"},"spec":{"cars":8,"class":"second","stops":[{"minutes":9,"name":"c"}]},"status":{"cars":3,"conditions":[{"status":"True","type":"Ready"}],"selector":"app=train"}}'
  The request is invalid: patch: Invalid value: ...: couldn't get version/kind; json parse error: json: cannot unmarshal number into Go struct field .kind of type string
  The request is invalid: patch: Invalid value: ...: unexpected GroupVersion string: a/b/c
  The Deployment "one" is invalid:
  * kind: Invalid value: "Deployment": must be Train
  * apiVersion: Invalid value: "apps/v1": must be schema.example.com/v1
  Error from server (BadRequest): the name of the object (one based on URL) was undeterminable: name must be provided
  $ for object in '{"kind":"Service","apiVersion":"schema.example.com/v1","metadata":{"name":"x"},"spec":{"cars":1}}' '{"kind":"Train","metadata":{"name":"x"}}' '{"metadata":{"name":"x"}}' '{"kind":"Pod","apiVersion":"v1"}' '{"kind":"Train","apiVersion":"schema.example.com/v3"}' '[]' ''; do echo "$object" | kubectl create --raw /apis/schema.example.com/v1/namespaces/schema/trains -f -; done
  The Service "x" is invalid: kind: Invalid value: "Service": must be Train
  Error from server (BadRequest): the API version in the data () does not match the expected API version (schema.example.com/v1)
  Error from server (BadRequest): the object provided is unrecognized (must be of type Train): Object 'Kind' is missing in '{"metadata":{"name":"x"}}
  ' ({"metadata":{"name":"x"}}
  )
  Error from server (BadRequest): the API version in the data (v1) does not match the expected API version (schema.example.com/v1)
  Error from server (BadRequest): the API version in the data (schema.example.com/v3) does not match the expected API version (schema.example.com/v1)
  Error from server (BadRequest): the object provided is unrecognized (must be of type Train): couldn't get version/kind; json parse error: json: cannot unmarshal array into Go value of type struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" } (5b5d0a)
  Error from server (BadRequest): the object provided is unrecognized (must be of type Train): couldn't get version/kind; json parse error: unexpected end of JSON input (0a)
  [1]
  $ kubectl label train one a=b; kubectl annotate train one c=d
  train.schema.example.com/one labeled
  train.schema.example.com/one annotated
  $ kubectl get trains -l a=b -o name
  train.schema.example.com/one
  $ kubectl get trains --field-selector metadata.name=one -o name
  train.schema.example.com/one
  $ kubectl get trains --field-selector spec.cars=8
  Error from server (BadRequest): Unable to find "schema.example.com/v1, Resource=trains" that match label selector "", field selector "spec.cars=8": field label not supported: spec.cars
  [1]
  $ kubectl get trains --watch --request-timeout=2s
  NAME  CARS  READY  SINCE
  one  8  True  <age>
  $ kubectl set image train/one a=b
  error: no kind "Train" is registered for version "schema.example.com/v1" in scheme <scheme>
  [1]
  $ kubectl rollout status train/one
  error: no kind "Train" is registered for version "schema.example.com/v1" in scheme <scheme>
  [1]
  $ kubectl expose train one --port=80
  error: no kind "Train" is registered for version "schema.example.com/v1" in scheme <scheme>
  [1]
  $ kubectl replace -f train.yaml
  train.schema.example.com/one replaced
  $ kubectl replace --force -f train.yaml
  train.schema.example.com "one" deleted from schema namespace
  train.schema.example.com/one replaced
  $ kubectl create -f train.yaml
  Error from server (AlreadyExists): error when creating "train.yaml": trains.schema.example.com "one" already exists
  [1]
  $ kubectl delete -f train.yaml --cascade=foreground
  train.schema.example.com "one" deleted from schema namespace
  $ kubectl get crd trains.schema.example.com -o jsonpath='{.status.acceptedNames} {.status.storedVersions}{"\n"}'
  {"categories":["rolling"],"kind":"Train","listKind":"TrainList","plural":"trains","shortNames":["tr"],"singular":"train"} ["v1"]
  $ kubectl describe crd trains.schema.example.com | head -30
  Name:  trains.schema.example.com
  Namespace:
  Labels:  <none>
  Annotations:  <none>
  API Version:  apiextensions.k8s.io/v1
  Kind:  CustomResourceDefinition
  Metadata:
    Creation Timestamp:  <time>
    Generation:  1
    Resource Version:  <version>
    UID:  <uid>
  Spec:
    Conversion:
      Strategy:  None
    Group:  schema.example.com
    Names:
      Categories:
        rolling
      Kind:  Train
      List Kind:  TrainList
      Plural:  trains
      Short Names:
        tr
      Singular:  train
    Scope:  Namespaced
    Versions:
      Additional Printer Columns:
        Json Path:  .spec.cars
        Name:  Cars
        Type:  integer
  $ kubectl patch crd trains.schema.example.com --type=json -p '[{"op":"replace","path":"/spec/scope","value":"Cluster"}]'
  The CustomResourceDefinition "trains.schema.example.com" is invalid: spec.scope: Invalid value: "Cluster": field is immutable
  [1]
  $ kubectl patch crd trains.schema.example.com --type=json -p '[{"op":"replace","path":"/spec/versions/0/served","value":false}]'
  customresourcedefinition.apiextensions.k8s.io/trains.schema.example.com patched
  $ kubectl delete crd trains.schema.example.com
  customresourcedefinition.apiextensions.k8s.io "trains.schema.example.com" deleted
  $ kubectl get trains.schema.example.com
  error: the server doesn't have a resource type "trains"
  [1]
