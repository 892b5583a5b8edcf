Kinds of one's own.

  $ kubectl create namespace custom
  namespace/custom created
  $ kubectl config set-context --current --namespace=custom >&-
  $ cat > crd.yaml <<'END'
  > apiVersion: apiextensions.k8s.io/v1
  > kind: CustomResourceDefinition
  > metadata: {name: ships.transcript.example.com}
  > spec:
  >   group: transcript.example.com
  >   scope: Namespaced
  >   names: {plural: ships, singular: ship, kind: Ship, listKind: ShipList, shortNames: [sh], categories: [fleet]}
  >   versions:
  >   - name: v1
  >     served: true
  >     storage: true
  >     subresources:
  >       status: {}
  >       scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.crew}
  >     selectableFields: [{jsonPath: .spec.port}]
  >     additionalPrinterColumns:
  >     - {name: Port, type: string, jsonPath: .spec.port}
  >     - {name: Crew, type: integer, jsonPath: .spec.crew}
  >     - {name: Phase, type: string, jsonPath: .status.phase, priority: 1}
  >     - {name: Age, type: date, jsonPath: .metadata.creationTimestamp}
  >     schema:
  >       openAPIV3Schema:
  >         type: object
  >         description: A ship of the fleet.
  >         required: [spec]
  >         properties:
  >           spec:
  >             type: object
  >             description: What the ship shall be.
  >             required: [port]
  >             properties:
  >               port: {type: string, description: Where it lies., enum: [Oslo, Kiel]}
  >               crew: {type: integer, minimum: 1, default: 3, description: How many sail it.}
  >               cargo:
  >                 type: array
  >                 items: {type: object, properties: {name: {type: string}, tons: {type: number}}}
  >           status:
  >             type: object
  >             properties: {phase: {type: string}, crew: {type: integer}}
  > END
  $ kubectl apply -f crd.yaml
  customresourcedefinition.apiextensions.k8s.io/ships.transcript.example.com created
  $ kubectl wait --for=condition=Established crd/ships.transcript.example.com
  customresourcedefinition.apiextensions.k8s.io/ships.transcript.example.com condition met
  $ kubectl get crd ships.transcript.example.com
  NAME  CREATED AT
  ships.transcript.example.com  <time>
  $ kubectl get crd ships.transcript.example.com -o yaml
  apiVersion: apiextensions.k8s.io/v1
  kind: CustomResourceDefinition
  metadata:
    annotations:
      kubectl.kubernetes.io/last-applied-configuration: |
        {"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"annotations":{},"name":"ships.transcript.example.com"},"spec":{"group":"transcript.example.com","names":{"categories":["fleet"],"kind":"Ship","listKind":"ShipList","plural":"ships","shortNames":["sh"],"singular":"ship"},"scope":"Namespaced","versions":[{"additionalPrinterColumns":[{"jsonPath":".spec.port","name":"Port","type":"string"},{"jsonPath":".spec.crew","name":"Crew","type":"integer"},{"jsonPath":".status.phase","name":"Phase","priority":1,"type":"string"},{"jsonPath":".metadata.creationTimestamp","name":"Age","type":"date"}],"name":"v1","schema":{"openAPIV3Schema":{"description":"A ship of the fleet.","properties":{"spec":{"description":"What the ship shall be.","properties":{"cargo":{"items":{"properties":{"name":{"type":"string"},"tons":{"type":"number"}},"type":"object"},"type":"array"},"crew":{"default":3,"description":"How many sail it.","minimum":1,"type":"integer"},"port":{"description":"Where it lies.","enum":["Oslo","Kiel"],"type":"string"}},"required":["port"],"type":"object"},"status":{"properties":{"crew":{"type":"integer"},"phase":{"type":"string"}},"type":"object"}},"required":["spec"],"type":"object"}},"selectableFields":[{"jsonPath":".spec.port"}],"served":true,"storage":true,"subresources":{"scale":{"specReplicasPath":".spec.crew","statusReplicasPath":".status.crew"},"status":{}}}]}}
    creationTimestamp: "<time>"
    generation: 1
    name: ships.transcript.example.com
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    conversion:
      strategy: None
    group: transcript.example.com
    names:
      categories:
      - fleet
      kind: Ship
      listKind: ShipList
      plural: ships
      shortNames:
      - sh
      singular: ship
    scope: Namespaced
    versions:
    - additionalPrinterColumns:
      - jsonPath: .spec.port
        name: Port
        type: string
      - jsonPath: .spec.crew
        name: Crew
        type: integer
      - jsonPath: .status.phase
        name: Phase
        priority: 1
        type: string
      - jsonPath: .metadata.creationTimestamp
        name: Age
        type: date
      name: v1
      schema:
        openAPIV3Schema:
          description: A ship of the fleet.
          properties:
            spec:
              description: What the ship shall be.
              properties:
                cargo:
                  items:
                    properties:
                      name:
                        type: string
                      tons:
                        type: number
                    type: object
                  type: array
                crew:
                  default: 3
                  description: How many sail it.
                  minimum: 1
                  type: integer
                port:
                  description: Where it lies.
                  enum:
                  - Oslo
                  - Kiel
                  type: string
              required:
              - port
              type: object
            status:
              properties:
                crew:
                  type: integer
                phase:
                  type: string
              type: object
          required:
          - spec
          type: object
      selectableFields:
      - jsonPath: .spec.port
      served: true
      storage: true
      subresources:
        scale:
          specReplicasPath: .spec.crew
          statusReplicasPath: .status.crew
        status: {}
  status:
    acceptedNames:
      categories:
      - fleet
      kind: Ship
      listKind: ShipList
      plural: ships
      shortNames:
      - sh
      singular: ship
    conditions:
    - lastTransitionTime: "<time>"
      message: no conflicts found
      reason: NoConflicts
      status: "True"
      type: NamesAccepted
    - lastTransitionTime: "<time>"
      message: the initial names have been accepted
      reason: InitialNamesAccepted
      status: "True"
      type: Established
    storedVersions:
    - v1
  $ kubectl api-resources --api-group=transcript.example.com -o wide
  NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND  VERBS  CATEGORIES
  ships  sh  transcript.example.com/v1  true  Ship  delete,deletecollection,get,list,patch,create,update,watch  fleet
  $ until kubectl explain ship >/dev/null 2>&1; do sleep 1; done
  $ kubectl explain ship
  GROUP:  transcript.example.com
  KIND:  Ship
  VERSION:  v1
  |
  DESCRIPTION:
      A ship of the fleet.
  |
  FIELDS:
    apiVersion	<string>
      APIVersion defines the versioned schema of this representation of an object.
      Servers should convert recognized schemas to the latest internal value, and
      may reject unrecognized values. More info:
      https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources
  |
    kind	<string>
      Kind is a string value representing the REST resource this object
      represents. Servers may infer this from the endpoint the client submits
      requests to. Cannot be updated. In CamelCase. More info:
      https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds
  |
    metadata	<ObjectMeta>
      Standard object's metadata. More info:
      https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
  |
    spec	<Object> -required-
      What the ship shall be.
  |
    status	<Object>
      <no description>
  $ kubectl explain ship.spec --recursive
  GROUP:  transcript.example.com
  KIND:  Ship
  VERSION:  v1
  |
  FIELD: spec <Object>
  |
  |
  DESCRIPTION:
      What the ship shall be.
  |
  FIELDS:
    cargo	<[]Object>
      name	<string>
      tons	<number>
    crew	<integer>
    port	<string> -required-
    enum: Oslo, Kiel
  $ kubectl explain ship.spec.port
  GROUP:  transcript.example.com
  KIND:  Ship
  VERSION:  v1
  |
  FIELD: port <string>
  ENUM:
      Oslo
      Kiel
  |
  DESCRIPTION:
      Where it lies.
  $ kubectl get ships
  No resources found in custom namespace.
  $ cat > ship.yaml <<'END'
  > apiVersion: transcript.example.com/v1
  > kind: Ship
  > metadata: {name: fram}
  > spec: {port: Oslo, cargo: [{name: oil, tons: 1.5}]}
  > END
  $ kubectl apply -f ship.yaml
  ship.transcript.example.com/fram created
  $ kubectl apply -f ship.yaml
  ship.transcript.example.com/fram unchanged
  $ kubectl apply --server-side -f ship.yaml
  ship.transcript.example.com/fram serverside-applied
  $ kubectl get sh -o wide
  NAME  PORT  CREW  PHASE  AGE
  fram  Oslo  3  <age>
  $ kubectl get fleet
  NAME  PORT  CREW  AGE
  fram  Oslo  3  <age>
  $ kubectl get ships.v1.transcript.example.com fram -o name
  ship.transcript.example.com/fram
  $ kubectl get ships --field-selector spec.port=Oslo
  NAME  PORT  CREW  AGE
  fram  Oslo  3  <age>
  $ kubectl get ships --field-selector spec.port=Kiel
  No resources found in custom namespace.
  $ kubectl get ships --field-selector spec.crew=3
  Error from server (BadRequest): Unable to find "transcript.example.com/v1, Resource=ships" that match label selector "", field selector "spec.crew=3": field label not supported: spec.crew
  [1]
  $ kubectl describe ship fram
  Name:  fram
  Namespace:  custom
  Labels:  <none>
  Annotations:  <none>
  API Version:  transcript.example.com/v1
  Kind:  Ship
  Metadata:
    Creation Timestamp:  <time>
    Generation:  1
    Resource Version:  <version>
    UID:  <uid>
  Spec:
    Cargo:
      Name:  oil
      Tons:  1.5
    Crew:  3
    Port:  Oslo
  Events:  <none>
  $ kubectl scale ship fram --replicas=7
  ship.transcript.example.com/fram scaled
  $ kubectl get ship fram --subresource=scale -o yaml
  apiVersion: autoscaling/v1
  kind: Scale
  metadata:
    creationTimestamp: "<time>"
    name: fram
    namespace: custom
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    replicas: 7
  status:
    replicas: 0
  $ kubectl patch ship fram --subresource=status --type=merge -p '{"status":{"phase":"Sailing","crew":7},"spec":{"port":"Kiel"}}'
  ship.transcript.example.com/fram patched
  $ kubectl patch ship fram --type=merge -p '{"status":{"phase":"Sunk"}}'
  ship.transcript.example.com/fram patched (no change)
  $ kubectl get ship fram -o wide
  NAME  PORT  CREW  PHASE  AGE
  fram  Oslo  7  Sailing  <age>
  $ kubectl patch ship fram -p '{"spec":{"crew":8}}'
  error: application/strategic-merge-patch+json is not supported by transcript.example.com/v1, Kind=Ship: the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
  [1]
  $ kubectl patch ship fram --type=merge -p '{"spec":{"crew":0}}'
  The Ship "fram" is invalid: spec.crew: Invalid value: 0: spec.crew in body should be greater than or equal to 1
  [1]
  $ kubectl patch ship fram --type=merge -p '{"spec":{"port":"Rome"}}'
  The Ship "fram" is invalid: spec.port: Unsupported value: "Rome": supported values: "Oslo", "Kiel"
  [1]
  $ kubectl label ship fram a=b && kubectl annotate ship fram c=d
  ship.transcript.example.com/fram labeled
  ship.transcript.example.com/fram annotated
  $ KUBE_EDITOR='sed -i s/Oslo/Kiel/' kubectl edit ship fram
  ship.transcript.example.com/fram edited
  $ kubectl diff -f ship.yaml | sed 's/^\(---\|+++\|diff\).*/\1/'
  diff
  ---
  +++
  @@ -6,7 +6,7 @@
       kubectl.kubernetes.io/last-applied-configuration: |
         {"apiVersion":"transcript.example.com/v1","kind":"Ship","metadata":{"name":"fram","namespace":"custom"},"spec":{"cargo":[{"name":"oil","tons":1.5}],"port":"Kiel"}}
     creationTimestamp: "<time>"
  -  generation: 3
  +  generation: 4
     labels:
       a: b
     name: fram
  @@ -18,7 +18,7 @@
     - name: oil
       tons: 1.5
     crew: 7
  -  port: Kiel
  +  port: Oslo
   status:
     crew: 7
     phase: Sailing
  $ kubectl wait --for=jsonpath='{.status.phase}'=Sailing ship/fram
  ship.transcript.example.com/fram condition met
  $ kubectl create -f - <<'END'
  > apiVersion: transcript.example.com/v1
  > kind: Ship
  > metadata: {name: wrong}
  > spec: {prot: Oslo, crew: many}
  > END
  Error from server (BadRequest): error when creating "STDIN": Ship in version "v1" cannot be handled as a Ship: strict decoding error: unknown field "spec.prot"
  [1]
  $ kubectl create --validate=false -f - <<'END'
  > apiVersion: transcript.example.com/v1
  > kind: Ship
  > metadata: {name: wrong}
  > spec: {prot: Oslo, crew: many}
  > END
  The Ship "wrong" is invalid:
  * spec.crew: Invalid value: "string": spec.crew in body must be of type integer: "string"
  * spec.port: Required value
  * .spec.crew: Invalid value: 0: .spec.crew accessor error: many is of the type string, expected int64
  [1]
  $ kubectl create -f - <<'END'
  > apiVersion: transcript.example.com/v2
  > kind: Ship
  > metadata: {name: wrong}
  > END
  error: resource mapping not found for name: "wrong" namespace: "" from "STDIN": no matches for kind "Ship" in version "transcript.example.com/v2"
  ensure CRDs are installed first
  [1]
  $ kubectl create -f - <<'END'
  > apiVersion: apiextensions.k8s.io/v1
  > kind: CustomResourceDefinition
  > metadata: {name: wrong}
  > spec: {group: transcript.example.com, scope: Somewhere, names: {plural: wrongs, kind: Wrong}, versions: [{name: v1, served: true, storage: false}]}
  > END
  The CustomResourceDefinition "wrong" is invalid:
  * metadata.name: Invalid value: "wrong": must be spec.names.plural+"."+spec.group
  * spec.scope: Unsupported value: "Somewhere": supported values: "Cluster", "Namespaced"
  * spec.versions[0].schema.openAPIV3Schema: Required value
  * spec.versions: Invalid value: [{"Name":"v1","Served":true,"Storage":false,"Deprecated":false,"DeprecationWarning":null,"Schema":null,"Subresources":null,"AdditionalPrinterColumns":null,"SelectableFields":null}]: must have exactly one version marked as storage version
  * status.storedVersions: Invalid value: null: must have at least one stored version
  [1]
  $ kubectl patch crd ships.transcript.example.com --type=json -p '[{"op":"copy","from":"/spec/versions/0","path":"/spec/versions/1"},{"op":"replace","path":"/spec/versions/1/name","value":"v1beta1"},{"op":"replace","path":"/spec/versions/1/storage","value":false},{"op":"add","path":"/spec/versions/1/deprecated","value":true}]'
  customresourcedefinition.apiextensions.k8s.io/ships.transcript.example.com patched
  $ kubectl get ships.v1beta1.transcript.example.com
  Warning: transcript.example.com/v1beta1 Ship is deprecated; use transcript.example.com/v1 Ship
  NAME  PORT  CREW  AGE
  fram  Kiel  7  <age>
  $ kubectl api-resources --api-group=transcript.example.com
  NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
  ships  sh  transcript.example.com/v1  true  Ship
  $ kubectl delete ship fram
  ship.transcript.example.com "fram" deleted from custom namespace
  $ kubectl apply -f ship.yaml && kubectl delete crd ships.transcript.example.com
  ship.transcript.example.com/fram created
  customresourcedefinition.apiextensions.k8s.io "ships.transcript.example.com" deleted
  $ kubectl get ships
  Error from server (NotFound): Unable to list "transcript.example.com/v1, Resource=ships": the server could not find the requested resource (get ships.transcript.example.com)
  [1]
