What there is.

  $ kubectl version | grep Server
  Server Version: v1.36.4
  $ kubectl api-versions
  admissionregistration.k8s.io/v1
  apiextensions.k8s.io/v1
  apiregistration.k8s.io/v1
  apps/v1
  authentication.k8s.io/v1
  authorization.k8s.io/v1
  autoscaling/v1
  autoscaling/v2
  batch/v1
  certificates.k8s.io/v1
  coordination.k8s.io/v1
  discovery.k8s.io/v1
  events.k8s.io/v1
  flowcontrol.apiserver.k8s.io/v1
  networking.k8s.io/v1
  node.k8s.io/v1
  policy/v1
  rbac.authorization.k8s.io/v1
  resource.k8s.io/v1
  scheduling.k8s.io/v1
  storage.k8s.io/v1
  v1
  $ kubectl api-resources
  NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
  bindings  v1  true  Binding
  componentstatuses  cs  v1  false  ComponentStatus
  configmaps  cm  v1  true  ConfigMap
  endpoints  ep  v1  true  Endpoints
  events  ev  v1  true  Event
  limitranges  limits  v1  true  LimitRange
  namespaces  ns  v1  false  Namespace
  nodes  no  v1  false  Node
  persistentvolumeclaims  pvc  v1  true  PersistentVolumeClaim
  persistentvolumes  pv  v1  false  PersistentVolume
  pods  po  v1  true  Pod
  podtemplates  v1  true  PodTemplate
  replicationcontrollers  rc  v1  true  ReplicationController
  resourcequotas  quota  v1  true  ResourceQuota
  secrets  v1  true  Secret
  serviceaccounts  sa  v1  true  ServiceAccount
  services  svc  v1  true  Service
  mutatingadmissionpolicies  admissionregistration.k8s.io/v1  false  MutatingAdmissionPolicy
  mutatingadmissionpolicybindings  admissionregistration.k8s.io/v1  false  MutatingAdmissionPolicyBinding
  mutatingwebhookconfigurations  admissionregistration.k8s.io/v1  false  MutatingWebhookConfiguration
  validatingadmissionpolicies  admissionregistration.k8s.io/v1  false  ValidatingAdmissionPolicy
  validatingadmissionpolicybindings  admissionregistration.k8s.io/v1  false  ValidatingAdmissionPolicyBinding
  validatingwebhookconfigurations  admissionregistration.k8s.io/v1  false  ValidatingWebhookConfiguration
  customresourcedefinitions  crd,crds  apiextensions.k8s.io/v1  false  CustomResourceDefinition
  apiservices  apiregistration.k8s.io/v1  false  APIService
  controllerrevisions  apps/v1  true  ControllerRevision
  daemonsets  ds  apps/v1  true  DaemonSet
  deployments  deploy  apps/v1  true  Deployment
  replicasets  rs  apps/v1  true  ReplicaSet
  statefulsets  sts  apps/v1  true  StatefulSet
  selfsubjectreviews  authentication.k8s.io/v1  false  SelfSubjectReview
  tokenreviews  authentication.k8s.io/v1  false  TokenReview
  localsubjectaccessreviews  authorization.k8s.io/v1  true  LocalSubjectAccessReview
  selfsubjectaccessreviews  authorization.k8s.io/v1  false  SelfSubjectAccessReview
  selfsubjectrulesreviews  authorization.k8s.io/v1  false  SelfSubjectRulesReview
  subjectaccessreviews  authorization.k8s.io/v1  false  SubjectAccessReview
  horizontalpodautoscalers  hpa  autoscaling/v2  true  HorizontalPodAutoscaler
  cronjobs  cj  batch/v1  true  CronJob
  jobs  batch/v1  true  Job
  certificatesigningrequests  csr  certificates.k8s.io/v1  false  CertificateSigningRequest
  leases  coordination.k8s.io/v1  true  Lease
  endpointslices  discovery.k8s.io/v1  true  EndpointSlice
  events  ev  events.k8s.io/v1  true  Event
  flowschemas  flowcontrol.apiserver.k8s.io/v1  false  FlowSchema
  prioritylevelconfigurations  flowcontrol.apiserver.k8s.io/v1  false  PriorityLevelConfiguration
  ingressclasses  networking.k8s.io/v1  false  IngressClass
  ingresses  ing  networking.k8s.io/v1  true  Ingress
  ipaddresses  ip  networking.k8s.io/v1  false  IPAddress
  networkpolicies  netpol  networking.k8s.io/v1  true  NetworkPolicy
  servicecidrs  networking.k8s.io/v1  false  ServiceCIDR
  runtimeclasses  node.k8s.io/v1  false  RuntimeClass
  poddisruptionbudgets  pdb  policy/v1  true  PodDisruptionBudget
  clusterrolebindings  rbac.authorization.k8s.io/v1  false  ClusterRoleBinding
  clusterroles  rbac.authorization.k8s.io/v1  false  ClusterRole
  rolebindings  rbac.authorization.k8s.io/v1  true  RoleBinding
  roles  rbac.authorization.k8s.io/v1  true  Role
  deviceclasses  resource.k8s.io/v1  false  DeviceClass
  resourceclaims  resource.k8s.io/v1  true  ResourceClaim
  resourceclaimtemplates  resource.k8s.io/v1  true  ResourceClaimTemplate
  resourceslices  resource.k8s.io/v1  false  ResourceSlice
  priorityclasses  pc  scheduling.k8s.io/v1  false  PriorityClass
  csidrivers  storage.k8s.io/v1  false  CSIDriver
  csinodes  storage.k8s.io/v1  false  CSINode
  csistoragecapacities  storage.k8s.io/v1  true  CSIStorageCapacity
  storageclasses  sc  storage.k8s.io/v1  false  StorageClass
  volumeattachments  storage.k8s.io/v1  false  VolumeAttachment
  volumeattributesclasses  vac  storage.k8s.io/v1  false  VolumeAttributesClass
  $ kubectl api-resources -o wide --namespaced=false
  NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND  VERBS  CATEGORIES
  componentstatuses  cs  v1  false  ComponentStatus  get,list
  namespaces  ns  v1  false  Namespace  create,delete,get,list,patch,update,watch
  nodes  no  v1  false  Node  create,delete,deletecollection,get,list,patch,update,watch
  persistentvolumes  pv  v1  false  PersistentVolume  create,delete,deletecollection,get,list,patch,update,watch
  mutatingadmissionpolicies  admissionregistration.k8s.io/v1  false  MutatingAdmissionPolicy  create,delete,deletecollection,get,list,patch,update,watch  api-extensions
  mutatingadmissionpolicybindings  admissionregistration.k8s.io/v1  false  MutatingAdmissionPolicyBinding  create,delete,deletecollection,get,list,patch,update,watch  api-extensions
  mutatingwebhookconfigurations  admissionregistration.k8s.io/v1  false  MutatingWebhookConfiguration  create,delete,deletecollection,get,list,patch,update,watch  api-extensions
  validatingadmissionpolicies  admissionregistration.k8s.io/v1  false  ValidatingAdmissionPolicy  create,delete,deletecollection,get,list,patch,update,watch  api-extensions
  validatingadmissionpolicybindings  admissionregistration.k8s.io/v1  false  ValidatingAdmissionPolicyBinding  create,delete,deletecollection,get,list,patch,update,watch  api-extensions
  validatingwebhookconfigurations  admissionregistration.k8s.io/v1  false  ValidatingWebhookConfiguration  create,delete,deletecollection,get,list,patch,update,watch  api-extensions
  customresourcedefinitions  crd,crds  apiextensions.k8s.io/v1  false  CustomResourceDefinition  create,delete,deletecollection,get,list,patch,update,watch  api-extensions
  apiservices  apiregistration.k8s.io/v1  false  APIService  create,delete,deletecollection,get,list,patch,update,watch  api-extensions
  selfsubjectreviews  authentication.k8s.io/v1  false  SelfSubjectReview  create
  tokenreviews  authentication.k8s.io/v1  false  TokenReview  create
  selfsubjectaccessreviews  authorization.k8s.io/v1  false  SelfSubjectAccessReview  create
  selfsubjectrulesreviews  authorization.k8s.io/v1  false  SelfSubjectRulesReview  create
  subjectaccessreviews  authorization.k8s.io/v1  false  SubjectAccessReview  create
  certificatesigningrequests  csr  certificates.k8s.io/v1  false  CertificateSigningRequest  create,delete,deletecollection,get,list,patch,update,watch
  flowschemas  flowcontrol.apiserver.k8s.io/v1  false  FlowSchema  create,delete,deletecollection,get,list,patch,update,watch
  prioritylevelconfigurations  flowcontrol.apiserver.k8s.io/v1  false  PriorityLevelConfiguration  create,delete,deletecollection,get,list,patch,update,watch
  ingressclasses  networking.k8s.io/v1  false  IngressClass  create,delete,deletecollection,get,list,patch,update,watch
  ipaddresses  ip  networking.k8s.io/v1  false  IPAddress  create,delete,deletecollection,get,list,patch,update,watch
  servicecidrs  networking.k8s.io/v1  false  ServiceCIDR  create,delete,deletecollection,get,list,patch,update,watch
  runtimeclasses  node.k8s.io/v1  false  RuntimeClass  create,delete,deletecollection,get,list,patch,update,watch
  clusterrolebindings  rbac.authorization.k8s.io/v1  false  ClusterRoleBinding  create,delete,deletecollection,get,list,patch,update,watch
  clusterroles  rbac.authorization.k8s.io/v1  false  ClusterRole  create,delete,deletecollection,get,list,patch,update,watch
  deviceclasses  resource.k8s.io/v1  false  DeviceClass  create,delete,deletecollection,get,list,patch,update,watch
  resourceslices  resource.k8s.io/v1  false  ResourceSlice  create,delete,deletecollection,get,list,patch,update,watch
  priorityclasses  pc  scheduling.k8s.io/v1  false  PriorityClass  create,delete,deletecollection,get,list,patch,update,watch
  csidrivers  storage.k8s.io/v1  false  CSIDriver  create,delete,deletecollection,get,list,patch,update,watch
  csinodes  storage.k8s.io/v1  false  CSINode  create,delete,deletecollection,get,list,patch,update,watch
  storageclasses  sc  storage.k8s.io/v1  false  StorageClass  create,delete,deletecollection,get,list,patch,update,watch
  volumeattachments  storage.k8s.io/v1  false  VolumeAttachment  create,delete,deletecollection,get,list,patch,update,watch
  volumeattributesclasses  vac  storage.k8s.io/v1  false  VolumeAttributesClass  create,delete,deletecollection,get,list,patch,update,watch
  $ kubectl api-resources --verbs=deletecollection,list -o name | sort
  apiservices.apiregistration.k8s.io
  certificatesigningrequests.certificates.k8s.io
  clusterrolebindings.rbac.authorization.k8s.io
  clusterroles.rbac.authorization.k8s.io
  configmaps
  controllerrevisions.apps
  cronjobs.batch
  csidrivers.storage.k8s.io
  csinodes.storage.k8s.io
  csistoragecapacities.storage.k8s.io
  customresourcedefinitions.apiextensions.k8s.io
  daemonsets.apps
  deployments.apps
  deviceclasses.resource.k8s.io
  endpoints
  endpointslices.discovery.k8s.io
  events
  events.events.k8s.io
  flowschemas.flowcontrol.apiserver.k8s.io
  horizontalpodautoscalers.autoscaling
  ingressclasses.networking.k8s.io
  ingresses.networking.k8s.io
  ipaddresses.networking.k8s.io
  jobs.batch
  leases.coordination.k8s.io
  limitranges
  mutatingadmissionpolicies.admissionregistration.k8s.io
  mutatingadmissionpolicybindings.admissionregistration.k8s.io
  mutatingwebhookconfigurations.admissionregistration.k8s.io
  networkpolicies.networking.k8s.io
  nodes
  persistentvolumeclaims
  persistentvolumes
  poddisruptionbudgets.policy
  pods
  podtemplates
  priorityclasses.scheduling.k8s.io
  prioritylevelconfigurations.flowcontrol.apiserver.k8s.io
  replicasets.apps
  replicationcontrollers
  resourceclaims.resource.k8s.io
  resourceclaimtemplates.resource.k8s.io
  resourcequotas
  resourceslices.resource.k8s.io
  rolebindings.rbac.authorization.k8s.io
  roles.rbac.authorization.k8s.io
  runtimeclasses.node.k8s.io
  secrets
  serviceaccounts
  servicecidrs.networking.k8s.io
  services
  statefulsets.apps
  storageclasses.storage.k8s.io
  validatingadmissionpolicies.admissionregistration.k8s.io
  validatingadmissionpolicybindings.admissionregistration.k8s.io
  validatingwebhookconfigurations.admissionregistration.k8s.io
  volumeattachments.storage.k8s.io
  volumeattributesclasses.storage.k8s.io
  $ kubectl api-resources --categories=all
  NAME  SHORTNAMES  APIVERSION  NAMESPACED  KIND
  pods  po  v1  true  Pod
  replicationcontrollers  rc  v1  true  ReplicationController
  services  svc  v1  true  Service
  daemonsets  ds  apps/v1  true  DaemonSet
  deployments  deploy  apps/v1  true  Deployment
  replicasets  rs  apps/v1  true  ReplicaSet
  statefulsets  sts  apps/v1  true  StatefulSet
  horizontalpodautoscalers  hpa  autoscaling/v2  true  HorizontalPodAutoscaler
  cronjobs  cj  batch/v1  true  CronJob
  jobs  batch/v1  true  Job
  $ kubectl explain pod
  KIND:  Pod
  VERSION:  v1
  |
  DESCRIPTION:
      Pod is a collection of containers that can run on a host. This resource is
      created by clients and scheduled onto hosts.
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
    spec	<PodSpec>
      Specification of the desired behavior of the pod. More info:
      https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
  |
    status	<PodStatus>
      Most recently observed status of the pod. This data may not be up to date.
      Populated by the system. Read-only. More info:
      https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
  $ kubectl explain pod.spec.containers.resources
  KIND:  Pod
  VERSION:  v1
  |
  FIELD: resources <ResourceRequirements>
  |
  |
  DESCRIPTION:
      Compute Resources required by this container. Cannot be updated. More info:
      https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
      ResourceRequirements describes the compute resource requirements.
  |
  FIELDS:
    claims	<[]ResourceClaim>
      Claims lists the names of resources, defined in spec.resourceClaims, that
      are used by this container.
  |
      This field depends on the DynamicResourceAllocation feature gate.
  |
      This field is immutable. It can only be set for containers.
  |
    limits	<map[string]Quantity>
      Limits describes the maximum amount of compute resources allowed. More info:
      https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
  |
    requests	<map[string]Quantity>
      Requests describes the minimum amount of compute resources required. If
      Requests is omitted for a container, it defaults to Limits if that is
      explicitly specified, otherwise to an implementation-defined value. Requests
      cannot exceed Limits. More info:
      https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/
  $ kubectl explain deployment.spec.strategy --recursive
  GROUP:  apps
  KIND:  Deployment
  VERSION:  v1
  |
  FIELD: strategy <DeploymentStrategy>
  |
  |
  DESCRIPTION:
      The deployment strategy to use to replace existing pods with new ones.
      DeploymentStrategy describes how to replace existing pods with new ones.
  |
  FIELDS:
    rollingUpdate	<RollingUpdateDeployment>
      maxSurge	<IntOrString>
      maxUnavailable	<IntOrString>
    type	<string>
    enum: Recreate, RollingUpdate
  $ kubectl explain cronjob.spec.schedule
  GROUP:  batch
  KIND:  CronJob
  VERSION:  v1
  |
  FIELD: schedule <string>
  |
  |
  DESCRIPTION:
      The schedule in Cron format, see https://en.wikipedia.org/wiki/Cron.
  $ kubectl explain pod.absent
  KIND:  Pod
  VERSION:  v1
  |
  error: field "absent" does not exist
  [1]
  $ kubectl explain absent
  the server doesn't have a resource type "absent"
  [1]
  $ kubectl explain service.spec --output=plaintext-openapiv2 | head -40
  KIND:  Service
  VERSION:  v1
  |
  RESOURCE: spec <Object>
  |
  DESCRIPTION:
       Spec defines the behavior of a service.
       https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status
  |
       ServiceSpec describes the attributes that a user creates on a service.
  |
  FIELDS:
     allocateLoadBalancerNodePorts	<boolean>
       allocateLoadBalancerNodePorts defines if NodePorts will be automatically
       allocated for services with type LoadBalancer. Default is "true". It may be
       set to "false" if the cluster load-balancer does not rely on NodePorts. If
       the caller requests specific NodePorts (by specifying a value), those
       requests will be respected, regardless of this field. This field may only
       be set for services with type LoadBalancer and will be cleared if the type
       is changed to any other type.
  |
     clusterIP	<string>
       clusterIP is the IP address of the service and is usually assigned
       randomly. If an address is specified manually, is in-range (as per system
       configuration), and is not in use, it will be allocated to the service;
       otherwise creation of the service will fail. This field may not be changed
       through updates unless the type field is also being changed to ExternalName
       (which requires this field to be blank) or the type field is being changed
       from ExternalName (in which case this field may optionally be specified, as
       describe above). Valid values are "None", empty string (""), or a valid IP
       address. Setting this to "None" makes a "headless service" (no virtual IP),
       which is useful when direct endpoint connections are preferred and proxying
       is not required. Only applies to types ClusterIP, NodePort, and
       LoadBalancer. If this field is specified when creating a Service of type
       ExternalName, creation will fail. This field will be wiped when updating a
       Service to type ExternalName. More info:
       https://kubernetes.io/docs/concepts/services-networking/service/#virtual-ips-and-service-proxies
  |
     clusterIPs	<[]string>
       ClusterIPs is a list of IP addresses assigned to this service, and are
  $ kubectl explain hpa --api-version=autoscaling/v1
  GROUP:  autoscaling
  KIND:  HorizontalPodAutoscaler
  VERSION:  v1
  |
  DESCRIPTION:
      configuration of a horizontal pod autoscaler.
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
      Standard object metadata. More info:
      https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata
  |
    spec	<HorizontalPodAutoscalerSpec> -required-
      spec defines the behaviour of autoscaler. More info:
      https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status.
  |
    status	<HorizontalPodAutoscalerStatus>
      status is the current information about the autoscaler.
  $ kubectl get --raw /healthz; echo
  ok
  $ kubectl get --raw /api/v1 | head -c 60; echo
  {"kind":"APIResourceList","groupVersion":"v1","resources":[{
  $ kubectl get --raw /nothing
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl get --raw /apis/absent.example.com
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl cluster-info | head -1
  Kubernetes control plane is running at https://<server>
  $ kubectl get namespaces default kube-system kube-public kube-node-lease --show-labels
  NAME  STATUS  AGE  LABELS
  default  Active  <age>  kubernetes.io/metadata.name=default
  kube-system  Active  <age>  kubernetes.io/metadata.name=kube-system
  kube-public  Active  <age>  kubernetes.io/metadata.name=kube-public
  kube-node-lease  Active  <age>  kubernetes.io/metadata.name=kube-node-lease
  $ kubectl get componentstatuses 2>&1 | head -1
  Warning: v1 ComponentStatus is deprecated in v1.19+
  $ kubectl get endpoints -n default 2>&1 | head -1
  Warning: v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice
  $ kubectl get service -n default
  NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)  AGE
  kubernetes  ClusterIP  <ip>  <none>  443/TCP  <age>
  $ kubectl get prioritylevelconfigurations,flowschemas
  NAME  TYPE  NOMINALCONCURRENCYSHARES  QUEUES  HANDSIZE  QUEUELENGTHLIMIT  AGE
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/catch-all  Limited  5  <none>  <none>  <none>  <age>
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/exempt  Exempt  <none>  <none>  <none>  <none>  <age>
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/global-default  Limited  20  128  6  50  <age>
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/leader-election  Limited  10  16  4  50  <age>
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/node-high  Limited  40  64  6  50  <age>
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/system  Limited  30  64  6  50  <age>
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/workload-high  Limited  40  128  6  50  <age>
  prioritylevelconfiguration.flowcontrol.apiserver.k8s.io/workload-low  Limited  100  128  6  50  <age>
  |
  NAME  PRIORITYLEVEL  MATCHINGPRECEDENCE  DISTINGUISHERMETHOD  AGE  MISSINGPL
  flowschema.flowcontrol.apiserver.k8s.io/exempt  exempt  1  <none>  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/probes  exempt  2  <none>  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/system-leader-election  leader-election  100  ByUser  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/system-node-high  node-high  400  ByUser  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/system-nodes  system  500  ByUser  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/kube-controller-manager  workload-high  800  ByNamespace  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/kube-scheduler  workload-high  800  ByNamespace  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/kube-system-service-accounts  workload-high  900  ByNamespace  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/service-accounts  workload-low  9000  ByUser  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/global-default  global-default  9900  ByUser  <age>  False
  flowschema.flowcontrol.apiserver.k8s.io/catch-all  catch-all  10000  ByUser  <age>  False
  $ kubectl get priorityclasses
  NAME  VALUE  GLOBAL-DEFAULT  AGE  PREEMPTIONPOLICY
  system-cluster-critical  2000000000  false  <age>  PreemptLowerPriority
  system-node-critical  2000001000  false  <age>  PreemptLowerPriority
  $ kubectl get clusterroles
  NAME  CREATED AT
  admin  <time>
  cluster-admin  <time>
  edit  <time>
  system:aggregate-to-admin  <time>
  system:aggregate-to-edit  <time>
  system:aggregate-to-view  <time>
  system:auth-delegator  <time>
  system:basic-user  <time>
  system:certificates.k8s.io:certificatesigningrequests:nodeclient  <time>
  system:certificates.k8s.io:certificatesigningrequests:selfnodeclient  <time>
  system:certificates.k8s.io:kube-apiserver-client-approver  <time>
  system:certificates.k8s.io:kube-apiserver-client-kubelet-approver  <time>
  system:certificates.k8s.io:kubelet-serving-approver  <time>
  system:certificates.k8s.io:legacy-unknown-approver  <time>
  system:controller:attachdetach-controller  <time>
  system:controller:certificate-controller  <time>
  system:controller:clusterrole-aggregation-controller  <time>
  system:controller:cronjob-controller  <time>
  system:controller:daemon-set-controller  <time>
  system:controller:deployment-controller  <time>
  system:controller:device-taint-eviction-controller  <time>
  system:controller:disruption-controller  <time>
  system:controller:endpoint-controller  <time>
  system:controller:endpointslice-controller  <time>
  system:controller:endpointslicemirroring-controller  <time>
  system:controller:ephemeral-volume-controller  <time>
  system:controller:expand-controller  <time>
  system:controller:generic-garbage-collector  <time>
  system:controller:horizontal-pod-autoscaler  <time>
  system:controller:job-controller  <time>
  system:controller:legacy-service-account-token-cleaner  <time>
  system:controller:namespace-controller  <time>
  system:controller:node-controller  <time>
  system:controller:persistent-volume-binder  <time>
  system:controller:pod-garbage-collector  <time>
  system:controller:pv-protection-controller  <time>
  system:controller:pvc-protection-controller  <time>
  system:controller:replicaset-controller  <time>
  system:controller:replication-controller  <time>
  system:controller:resource-claim-controller  <time>
  system:controller:resourcequota-controller  <time>
  system:controller:root-ca-cert-publisher  <time>
  system:controller:route-controller  <time>
  system:controller:selinux-warning-controller  <time>
  system:controller:service-account-controller  <time>
  system:controller:service-cidrs-controller  <time>
  system:controller:service-controller  <time>
  system:controller:statefulset-controller  <time>
  system:controller:ttl-after-finished-controller  <time>
  system:controller:ttl-controller  <time>
  system:controller:validatingadmissionpolicy-status-controller  <time>
  system:controller:volumeattributesclass-protection-controller  <time>
  system:discovery  <time>
  system:heapster  <time>
  system:kube-aggregator  <time>
  system:kube-controller-manager  <time>
  system:kube-dns  <time>
  system:kube-scheduler  <time>
  system:kubelet-api-admin  <time>
  system:monitoring  <time>
  system:node  <time>
  system:node-bootstrapper  <time>
  system:node-problem-detector  <time>
  system:node-proxier  <time>
  system:persistent-volume-provisioner  <time>
  system:public-info-viewer  <time>
  system:service-account-issuer-discovery  <time>
  system:volume-scheduler  <time>
  view  <time>
  $ kubectl get clusterrolebindings -o wide
  NAME  ROLE  AGE  USERS  GROUPS  SERVICEACCOUNTS
  cluster-admin  ClusterRole/cluster-admin  <age>  system:masters
  system:basic-user  ClusterRole/system:basic-user  <age>  system:authenticated
  system:controller:attachdetach-controller  ClusterRole/system:controller:attachdetach-controller  <age>  kube-system/attachdetach-controller
  system:controller:certificate-controller  ClusterRole/system:controller:certificate-controller  <age>  kube-system/certificate-controller
  system:controller:clusterrole-aggregation-controller  ClusterRole/system:controller:clusterrole-aggregation-controller  <age>  kube-system/clusterrole-aggregation-controller
  system:controller:cronjob-controller  ClusterRole/system:controller:cronjob-controller  <age>  kube-system/cronjob-controller
  system:controller:daemon-set-controller  ClusterRole/system:controller:daemon-set-controller  <age>  kube-system/daemon-set-controller
  system:controller:deployment-controller  ClusterRole/system:controller:deployment-controller  <age>  kube-system/deployment-controller
  system:controller:device-taint-eviction-controller  ClusterRole/system:controller:device-taint-eviction-controller  <age>  kube-system/device-taint-eviction-controller
  system:controller:disruption-controller  ClusterRole/system:controller:disruption-controller  <age>  kube-system/disruption-controller
  system:controller:endpoint-controller  ClusterRole/system:controller:endpoint-controller  <age>  kube-system/endpoint-controller
  system:controller:endpointslice-controller  ClusterRole/system:controller:endpointslice-controller  <age>  kube-system/endpointslice-controller
  system:controller:endpointslicemirroring-controller  ClusterRole/system:controller:endpointslicemirroring-controller  <age>  kube-system/endpointslicemirroring-controller
  system:controller:ephemeral-volume-controller  ClusterRole/system:controller:ephemeral-volume-controller  <age>  kube-system/ephemeral-volume-controller
  system:controller:expand-controller  ClusterRole/system:controller:expand-controller  <age>  kube-system/expand-controller
  system:controller:generic-garbage-collector  ClusterRole/system:controller:generic-garbage-collector  <age>  kube-system/generic-garbage-collector
  system:controller:horizontal-pod-autoscaler  ClusterRole/system:controller:horizontal-pod-autoscaler  <age>  kube-system/horizontal-pod-autoscaler
  system:controller:job-controller  ClusterRole/system:controller:job-controller  <age>  kube-system/job-controller
  system:controller:legacy-service-account-token-cleaner  ClusterRole/system:controller:legacy-service-account-token-cleaner  <age>  kube-system/legacy-service-account-token-cleaner
  system:controller:namespace-controller  ClusterRole/system:controller:namespace-controller  <age>  kube-system/namespace-controller
  system:controller:node-controller  ClusterRole/system:controller:node-controller  <age>  kube-system/node-controller
  system:controller:persistent-volume-binder  ClusterRole/system:controller:persistent-volume-binder  <age>  kube-system/persistent-volume-binder
  system:controller:pod-garbage-collector  ClusterRole/system:controller:pod-garbage-collector  <age>  kube-system/pod-garbage-collector
  system:controller:pv-protection-controller  ClusterRole/system:controller:pv-protection-controller  <age>  kube-system/pv-protection-controller
  system:controller:pvc-protection-controller  ClusterRole/system:controller:pvc-protection-controller  <age>  kube-system/pvc-protection-controller
  system:controller:replicaset-controller  ClusterRole/system:controller:replicaset-controller  <age>  kube-system/replicaset-controller
  system:controller:replication-controller  ClusterRole/system:controller:replication-controller  <age>  kube-system/replication-controller
  system:controller:resource-claim-controller  ClusterRole/system:controller:resource-claim-controller  <age>  kube-system/resource-claim-controller
  system:controller:resourcequota-controller  ClusterRole/system:controller:resourcequota-controller  <age>  kube-system/resourcequota-controller
  system:controller:root-ca-cert-publisher  ClusterRole/system:controller:root-ca-cert-publisher  <age>  kube-system/root-ca-cert-publisher
  system:controller:route-controller  ClusterRole/system:controller:route-controller  <age>  kube-system/route-controller
  system:controller:selinux-warning-controller  ClusterRole/system:controller:selinux-warning-controller  <age>  kube-system/selinux-warning-controller
  system:controller:service-account-controller  ClusterRole/system:controller:service-account-controller  <age>  kube-system/service-account-controller
  system:controller:service-cidrs-controller  ClusterRole/system:controller:service-cidrs-controller  <age>  kube-system/service-cidrs-controller
  system:controller:service-controller  ClusterRole/system:controller:service-controller  <age>  kube-system/service-controller
  system:controller:statefulset-controller  ClusterRole/system:controller:statefulset-controller  <age>  kube-system/statefulset-controller
  system:controller:ttl-after-finished-controller  ClusterRole/system:controller:ttl-after-finished-controller  <age>  kube-system/ttl-after-finished-controller
  system:controller:ttl-controller  ClusterRole/system:controller:ttl-controller  <age>  kube-system/ttl-controller
  system:controller:validatingadmissionpolicy-status-controller  ClusterRole/system:controller:validatingadmissionpolicy-status-controller  <age>  kube-system/validatingadmissionpolicy-status-controller
  system:controller:volumeattributesclass-protection-controller  ClusterRole/system:controller:volumeattributesclass-protection-controller  <age>  kube-system/volumeattributesclass-protection-controller
  system:discovery  ClusterRole/system:discovery  <age>  system:authenticated
  system:kube-controller-manager  ClusterRole/system:kube-controller-manager  <age>  system:kube-controller-manager
  system:kube-dns  ClusterRole/system:kube-dns  <age>  kube-system/kube-dns
  system:kube-scheduler  ClusterRole/system:kube-scheduler  <age>  system:kube-scheduler
  system:monitoring  ClusterRole/system:monitoring  <age>  system:monitoring
  system:node  ClusterRole/system:node  <age>
  system:node-proxier  ClusterRole/system:node-proxier  <age>  system:kube-proxy
  system:public-info-viewer  ClusterRole/system:public-info-viewer  <age>  system:authenticated, system:unauthenticated
  system:service-account-issuer-discovery  ClusterRole/system:service-account-issuer-discovery  <age>  system:serviceaccounts
  system:volume-scheduler  ClusterRole/system:volume-scheduler  <age>  system:kube-scheduler
  $ kubectl get roles,rolebindings -A -l kubernetes.io/bootstrapping=rbac-defaults
  NAMESPACE  NAME  CREATED AT
  kube-public  role.rbac.authorization.k8s.io/system:controller:bootstrap-signer  <time>
  kube-system  role.rbac.authorization.k8s.io/extension-apiserver-authentication-reader  <time>
  kube-system  role.rbac.authorization.k8s.io/system::leader-locking-kube-controller-manager  <time>
  kube-system  role.rbac.authorization.k8s.io/system::leader-locking-kube-scheduler  <time>
  kube-system  role.rbac.authorization.k8s.io/system:controller:bootstrap-signer  <time>
  kube-system  role.rbac.authorization.k8s.io/system:controller:cloud-provider  <time>
  kube-system  role.rbac.authorization.k8s.io/system:controller:token-cleaner  <time>
  |
  NAMESPACE  NAME  ROLE  AGE
  kube-public  rolebinding.rbac.authorization.k8s.io/system:controller:bootstrap-signer  Role/system:controller:bootstrap-signer  <age>
  kube-system  rolebinding.rbac.authorization.k8s.io/system::extension-apiserver-authentication-reader  Role/extension-apiserver-authentication-reader  <age>
  kube-system  rolebinding.rbac.authorization.k8s.io/system::leader-locking-kube-controller-manager  Role/system::leader-locking-kube-controller-manager  <age>
  kube-system  rolebinding.rbac.authorization.k8s.io/system::leader-locking-kube-scheduler  Role/system::leader-locking-kube-scheduler  <age>
  kube-system  rolebinding.rbac.authorization.k8s.io/system:controller:bootstrap-signer  Role/system:controller:bootstrap-signer  <age>
  kube-system  rolebinding.rbac.authorization.k8s.io/system:controller:cloud-provider  Role/system:controller:cloud-provider  <age>
  kube-system  rolebinding.rbac.authorization.k8s.io/system:controller:token-cleaner  Role/system:controller:token-cleaner  <age>
  $ kubectl get apiservices
  NAME  SERVICE  AVAILABLE  AGE
  v1.  Local  True  <age>
  v1.admissionregistration.k8s.io  Local  True  <age>
  v1.apiextensions.k8s.io  Local  True  <age>
  v1.apps  Local  True  <age>
  v1.authentication.k8s.io  Local  True  <age>
  v1.authorization.k8s.io  Local  True  <age>
  v1.autoscaling  Local  True  <age>
  v1.batch  Local  True  <age>
  v1.certificates.k8s.io  Local  True  <age>
  v1.coordination.k8s.io  Local  True  <age>
  v1.discovery.k8s.io  Local  True  <age>
  v1.events.k8s.io  Local  True  <age>
  v1.flowcontrol.apiserver.k8s.io  Local  True  <age>
  v1.networking.k8s.io  Local  True  <age>
  v1.node.k8s.io  Local  True  <age>
  v1.policy  Local  True  <age>
  v1.rbac.authorization.k8s.io  Local  True  <age>
  v1.resource.k8s.io  Local  True  <age>
  v1.scheduling.k8s.io  Local  True  <age>
  v1.storage.k8s.io  Local  True  <age>
  v2.autoscaling  Local  True  <age>
  $ kubectl get validatingadmissionpolicies,validatingadmissionpolicybindings
  No resources found
  $ kubectl get servicecidrs,ipaddresses
  NAME  CIDRS  AGE
  servicecidr.networking.k8s.io/kubernetes  <ip>/24  <age>
  |
  NAME  PARENTREF
  ipaddress.networking.k8s.io/<ip>  services/default/kubernetes
