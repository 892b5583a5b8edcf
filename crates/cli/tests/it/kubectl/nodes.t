Machines, volumes, and what a cluster's owner does with them; nothing runs on them here.

  $ kubectl create namespace nodes
  namespace/nodes created
  $ kubectl config set-context --current --namespace=nodes >&-
  $ kubectl wait --for=create serviceaccount/default --timeout=30s >&-
  $ kubectl create -f - <<'END'
  > apiVersion: v1
  > kind: Node
  > metadata:
  >   name: one
  >   labels: {kubernetes.io/hostname: one, node-role.kubernetes.io/worker: ""}
  > spec: {podCIDR: 10.1.0.0/24, podCIDRs: [10.1.0.0/24]}
  > ---
  > apiVersion: v1
  > kind: Node
  > metadata: {name: two}
  > END
  node/one created
  node/two created
  $ kubectl get nodes
  NAME  STATUS  ROLES  AGE  VERSION
  one  Unknown  worker  <age>
  two  Unknown  <none>  <age>
  $ kubectl get node one -o yaml
  apiVersion: v1
  kind: Node
  metadata:
    creationTimestamp: "<time>"
    labels:
      kubernetes.io/hostname: one
      node-role.kubernetes.io/worker: ""
    name: one
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    podCIDR: 10.1.0.0/24
    podCIDRs:
    - 10.1.0.0/24
    taints:
    - effect: NoSchedule
      key: node.kubernetes.io/not-ready
  status:
    daemonEndpoints:
      kubeletEndpoint:
        Port: 0
    nodeInfo:
      architecture: ""
      bootID: ""
      containerRuntimeVersion: ""
      kernelVersion: ""
      kubeProxyVersion: ""
      kubeletVersion: ""
      machineID: ""
      operatingSystem: ""
      osImage: ""
      systemUUID: ""
  $ kubectl patch node one --subresource=status --type=merge -p '{"status":{"capacity":{"cpu":"4","memory":"8Gi","pods":"110"},"allocatable":{"cpu":"3500m","memory":"7Gi","pods":"110"},"conditions":[{"type":"Ready","status":"True","reason":"KubeletReady","message":"ready","lastHeartbeatTime":"2026-01-01T00:00:00Z","lastTransitionTime":"2026-01-01T00:00:00Z"}],"addresses":[{"type":"InternalIP","address":"10.1.0.1"},{"type":"Hostname","address":"one"}],"nodeInfo":{"kubeletVersion":"v1.36.4","osImage":"Debian","kernelVersion":"6.12","containerRuntimeVersion":"containerd://2","architecture":"amd64","operatingSystem":"linux","machineID":"","systemUUID":"","bootID":"","kubeProxyVersion":""}}}'
  node/one patched
  $ kubectl get nodes -o wide
  NAME  STATUS  ROLES  AGE  VERSION  INTERNAL-IP  EXTERNAL-IP  OS-IMAGE  KERNEL-VERSION  CONTAINER-RUNTIME
  one  Ready  worker  <age>  v1.36.4  10.1.0.1  <none>  Debian  6.12 (amd64)  containerd://2
  two  Unknown  <none>  <age>  <none>  <none>  <age>  <age>  <age>
  $ kubectl get nodes --sort-by=.metadata.name -L kubernetes.io/hostname
  NAME  STATUS  ROLES  AGE  VERSION  HOSTNAME
  one  Ready  worker  <age>  v1.36.4  one
  two  Unknown  <none>  <age>
  $ kubectl taint node two node.kubernetes.io/not-ready:NoSchedule-
  node/two untainted
  $ kubectl taint node two key=value:NoSchedule other:NoExecute
  node/two tainted
  $ kubectl taint node two key=value:NoSchedule
  error: node two already has key taint(s) with same effect(s) and --overwrite is false
  [1]
  $ kubectl taint node two key=new:NoSchedule --overwrite
  node/two modified
  $ kubectl taint node two key=value:Sometimes
  error: invalid taint effect: Sometimes, unsupported taint effect
  See 'kubectl taint -h' for help and examples
  [1]
  $ kubectl taint node two other-
  node/two untainted
  $ kubectl taint node two other-
  error: taint "other" not found
  [1]
  $ kubectl taint node absent a=b:NoSchedule
  Error from server (NotFound): nodes "absent" not found
  [1]
  $ kubectl cordon one
  node/one cordoned
  $ kubectl cordon one
  node/one already cordoned
  $ kubectl get node one
  NAME  STATUS  ROLES  AGE  VERSION
  one  Ready,SchedulingDisabled  worker  <age>  v1.36.4
  $ kubectl uncordon one
  node/one uncordoned
  $ kubectl uncordon one absent
  Error from server (NotFound): nodes "absent" not found
  [1]
  $ kubectl label node one disk=fast && kubectl annotate node one note=kept
  node/one labeled
  node/one annotated
  $ kubectl get nodes -l disk=fast -o name
  node/one
  $ kubectl get nodes --field-selector spec.unschedulable=true
  No resources found
  $ kubectl patch node one -p '{"spec":{"podCIDR":"10.2.0.0/24"}}'
  The Node "one" is invalid: spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid
  [1]
  $ kubectl patch node one -p '{"spec":{"providerID":"a"}}'
  node/one patched
  $ kubectl patch node one -p '{"spec":{"providerID":"b"}}'
  The Node "one" is invalid: spec.providerID: Forbidden: node updates may not change providerID except from "" to valid
  [1]

  $ kubectl run bare --image=busybox --overrides='{"spec":{"nodeName":"one"}}' -- sleep 1
  pod/bare created
  $ kubectl create -f - <<'END'
  > apiVersion: v1
  > kind: Pod
  > metadata: {name: bound, labels: {app: bound}}
  > spec:
  >   containers:
  >   - {name: c, image: i, resources: {requests: {cpu: 250m, memory: 64Mi}, limits: {memory: 128Mi}}}
  > ---
  > apiVersion: v1
  > kind: Binding
  > metadata: {name: bound}
  > target: {kind: Node, name: one}
  > END
  pod/bound created
  status/<unknown> created
  $ kubectl get pods -o wide
  NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES
  bare  0/1  Pending  0  <age>  <none>  one  <none>  <none>
  bound  0/1  Pending  0  <age>  <none>  one  <none>  <none>
  $ kubectl get pods --field-selector spec.nodeName=one -o name
  pod/bare
  pod/bound
  $ kubectl describe node one
  Name:  one
  Roles:  worker
  Labels:  disk=fast
                      kubernetes.io/hostname=one
                      node-role.kubernetes.io/worker=
  Annotations:  note: kept
  CreationTimestamp:  <time>
  Taints:  node.kubernetes.io/not-ready:NoSchedule
  Unschedulable:  false
  Lease:  Failed to get lease: leases.coordination.k8s.io "one" not found
  Conditions:
    Type  Status  LastHeartbeatTime  LastTransitionTime  Reason  Message
    ----  ------  -----------------  ------------------  ------  -------
    Ready  True  <time>  <time>  KubeletReady  ready
  Addresses:
    InternalIP:  10.1.0.1
    Hostname:  one
  Capacity:
    cpu:  4
    memory:  8Gi
    pods:  110
  Allocatable:
    cpu:  <age>
    memory:  7Gi
    pods:  110
  System Info:
    Machine ID:
    System UUID:
    Boot ID:
    Kernel Version:  6.12
    OS Image:  Debian
    Operating System:  linux
    Architecture:  amd64
    Container Runtime Version:  containerd://2
    Kubelet Version:  v1.36.4
  PodCIDR:  10.1.0.0/24
  PodCIDRs:  10.1.0.0/24
  ProviderID:  a
  Non-terminated Pods:  (2 in total)
    Namespace  Name  CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
    ---------  ----  ------------  ----------  ---------------  -------------  ---
    nodes  bare  0 (0%)  0 (0%)  0 (0%)  0 (0%)  <age>
    nodes  bound  <age> (7%)  0 (0%)  64Mi (0%)  128Mi (1%)  <age>
  Allocated resources:
    (Total limits may be over 100 percent, i.e., overcommitted.)
    Resource  Requests  Limits
    --------  --------  ------
    cpu  <age> (7%)  0 (0%)
    memory  64Mi (0%)  128Mi (1%)
    ephemeral-storage  0 (0%)  0 (0%)
  Events:  <none>
  $ kubectl describe node two
  Name:  two
  Roles:  <none>
  Labels:  <none>
  Annotations:  <none>
  CreationTimestamp:  <time>
  Taints:  key=new:NoSchedule
  Unschedulable:  false
  Lease:  Failed to get lease: leases.coordination.k8s.io "two" not found
  Addresses:
  System Info:
    Machine ID:
    System UUID:
    Boot ID:
    Kernel Version:
    OS Image:
    Operating System:
    Architecture:
    Container Runtime Version:
    Kubelet Version:
  Non-terminated Pods:  (0 in total)
    Namespace  Name  CPU Requests  CPU Limits  Memory Requests  Memory Limits  Age
    ---------  ----  ------------  ----------  ---------------  -------------  ---
  Allocated resources:
    (Total limits may be over 100 percent, i.e., overcommitted.)
    Resource  Requests  Limits
    --------  --------  ------
    cpu  0 (0%)  0 (0%)
    memory  0 (0%)  0 (0%)
    ephemeral-storage  0 (0%)  0 (0%)
  Events:  <none>
  $ kubectl drain one --dry-run=client
  node/one cordoned (dry run)
  error: unable to drain node "one" due to error: cannot delete Pods that declare no controller (use --force to override): nodes/bare, nodes/bound, continuing command...
  There are pending nodes to be drained:
   one
  cannot delete Pods that declare no controller (use --force to override): nodes/bare, nodes/bound
  [1]
  $ kubectl drain one --dry-run=client --force 2>&1 | sort
  Warning: deleting Pods that declare no controller: nodes/bare, nodes/bound
  evicting pod nodes/bare (dry run)
  evicting pod nodes/bound (dry run)
  node/one cordoned (dry run)
  node/one drained (dry run)
  $ kubectl drain one --dry-run=server --force 2>&1 | sort
  Warning: deleting Pods that declare no controller: nodes/bare, nodes/bound
  evicting pod nodes/bare (server dry run)
  evicting pod nodes/bound (server dry run)
  node/one cordoned (server dry run)
  node/one drained (server dry run)
  $ kubectl drain two --dry-run=client
  node/two cordoned (dry run)
  node/two drained (dry run)
  $ kubectl drain absent
  Error from server (NotFound): nodes "absent" not found
  [1]
  $ kubectl create pdb guard --selector=app=bound --min-available=1
  poddisruptionbudget.policy/guard created
  $ kubectl create --raw /api/v1/namespaces/nodes/pods/bound/eviction -f - <<'END'
  > {"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"bound","namespace":"nodes"}}
  > END
  {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}
  $ kubectl patch pod bound --subresource=status --type=merge -p '{"status":{"phase":"Running","podIP":"10.1.0.7","podIPs":[{"ip":"10.1.0.7"}],"hostIP":"10.1.0.1","hostIPs":[{"ip":"10.1.0.1"}],"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"Ready","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-01-01T00:00:00Z"}],"containerStatuses":[{"name":"c","image":"i","imageID":"i@1","containerID":"c://1","ready":true,"started":true,"restartCount":2,"state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}},"lastState":{"terminated":{"exitCode":3,"reason":"Error","finishedAt":"2026-01-01T00:00:00Z","startedAt":"2026-01-01T00:00:00Z"}}}]}}'
  pod/bound patched
  $ kubectl get pod bound -o wide
  NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES
  bound  1/1  Terminating  2 (<age> ago)  <age>  10.1.0.7  one  <none>  <none>
  $ kubectl get pods
  NAME  READY  STATUS  RESTARTS  AGE
  bare  0/1  Pending  0  <age>
  bound  1/1  Terminating  2 (<age> ago)  <age>
  $ kubectl describe pod bound
  Name:  bound
  Namespace:  nodes
  Priority:  0
  Service Account:  default
  Node:  one/10.1.0.1
  Start Time:  <time>
  Labels:  app=bound
  Annotations:  <none>
  Status:  Terminating (lasts <invalid>)
  Termination Grace Period:  <age>
  IP:  10.1.0.7
  IPs:
    IP:  10.1.0.7
  Containers:
    c:
      Container ID:  c://1
      Image:  i
      Image ID:  i@1
      Port:  <none>
      Host Port:  <none>
      State:  Running
        Started:  <time>
      Last State:  Terminated
        Reason:  Error
        Exit Code:  3
        Started:  <time>
        Finished:  <time>
      Ready:  True
      Restart Count:  2
      Limits:
        memory:  128Mi
      Requests:
        cpu:  <age>
        memory:  64Mi
      Environment:  <none>
      Mounts:
        /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-<random> (ro)
  Conditions:
    Type  Status
    Ready  True
  Volumes:
    kube-api-access-<random>:
      Type:  Projected (a volume that contains injected data from multiple sources)
      TokenExpirationSeconds:  3607
      ConfigMapName:  kube-root-ca.crt
      Optional:  false
      DownwardAPI:  true
  QoS Class:  Burstable
  Node-Selectors:  <none>
  Tolerations:  node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                               node.kubernetes.io/unreachable:NoExecute op=Exists for 300s
  Events:  <none>
  $ kubectl wait --for=condition=Ready pod/bound
  pod/bound condition met
  $ kubectl logs absent
  error: error from server (NotFound): pods "absent" not found in namespace "nodes"
  [1]
  $ kubectl logs bare -c other
  error: container other is not valid for pod bare out of: bare
  [1]
  $ kubectl delete pod bound bare --grace-period=0 --force
  Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
  pod "bound" force deleted from nodes namespace
  pod "bare" force deleted from nodes namespace

Volumes.

  $ kubectl create -f - <<'END'
  > apiVersion: storage.k8s.io/v1
  > kind: StorageClass
  > metadata: {name: nodes-fast, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
  > provisioner: example.com/disk
  > parameters: {kind: ssd}
  > allowVolumeExpansion: true
  > ---
  > apiVersion: v1
  > kind: PersistentVolume
  > metadata: {name: nodes-volume}
  > spec:
  >   capacity: {storage: 10Gi}
  >   accessModes: [ReadWriteOnce, ReadOnlyMany]
  >   storageClassName: nodes-fast
  >   hostPath: {path: /data}
  > ---
  > apiVersion: v1
  > kind: PersistentVolumeClaim
  > metadata: {name: claim}
  > spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  > END
  storageclass.storage.k8s.io/nodes-fast created
  persistentvolume/nodes-volume created
  persistentvolumeclaim/claim created
  $ kubectl get sc,pv,pvc
  NAME  PROVISIONER  RECLAIMPOLICY  VOLUMEBINDINGMODE  ALLOWVOLUMEEXPANSION  AGE
  storageclass.storage.k8s.io/nodes-fast (default)  example.com/disk  Delete  Immediate  true  <age>
  |
  NAME  CAPACITY  ACCESS MODES  RECLAIM POLICY  STATUS  CLAIM  STORAGECLASS  VOLUMEATTRIBUTESCLASS  REASON  AGE
  persistentvolume/nodes-volume  10Gi  RWO,ROX  Retain  Pending  nodes-fast  <unset>  <age>
  |
  NAME  STATUS  VOLUME  CAPACITY  ACCESS MODES  STORAGECLASS  VOLUMEATTRIBUTESCLASS  AGE
  persistentvolumeclaim/claim  Pending  nodes-fast  <unset>  <age>
  $ kubectl get sc,pv,pvc -o wide
  NAME  PROVISIONER  RECLAIMPOLICY  VOLUMEBINDINGMODE  ALLOWVOLUMEEXPANSION  AGE
  storageclass.storage.k8s.io/nodes-fast (default)  example.com/disk  Delete  Immediate  true  <age>
  |
  NAME  CAPACITY  ACCESS MODES  RECLAIM POLICY  STATUS  CLAIM  STORAGECLASS  VOLUMEATTRIBUTESCLASS  REASON  AGE  VOLUMEMODE
  persistentvolume/nodes-volume  10Gi  RWO,ROX  Retain  Pending  nodes-fast  <unset>  <age>  Filesystem
  |
  NAME  STATUS  VOLUME  CAPACITY  ACCESS MODES  STORAGECLASS  VOLUMEATTRIBUTESCLASS  AGE  VOLUMEMODE
  persistentvolumeclaim/claim  Pending  nodes-fast  <unset>  <age>  Filesystem
  $ kubectl get pv nodes-volume -o yaml
  apiVersion: v1
  kind: PersistentVolume
  metadata:
    creationTimestamp: "<time>"
    finalizers:
    - kubernetes.io/pv-protection
    name: nodes-volume
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    accessModes:
    - ReadWriteOnce
    - ReadOnlyMany
    capacity:
      storage: 10Gi
    hostPath:
      path: /data
      type: ""
    persistentVolumeReclaimPolicy: Retain
    storageClassName: nodes-fast
    volumeMode: Filesystem
  status:
    lastPhaseTransitionTime: "<time>"
    phase: Pending
  $ kubectl get pvc claim -o yaml
  apiVersion: v1
  kind: PersistentVolumeClaim
  metadata:
    creationTimestamp: "<time>"
    finalizers:
    - kubernetes.io/pvc-protection
    name: claim
    namespace: nodes
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    accessModes:
    - ReadWriteOnce
    resources:
      requests:
        storage: 1Gi
    storageClassName: nodes-fast
    volumeMode: Filesystem
  status:
    phase: Pending
  $ kubectl get sc nodes-fast -o yaml
  allowVolumeExpansion: true
  apiVersion: storage.k8s.io/v1
  kind: StorageClass
  metadata:
    annotations:
      storageclass.kubernetes.io/is-default-class: "true"
    creationTimestamp: "<time>"
    name: nodes-fast
    resourceVersion: "<version>"
    uid: <uid>
  parameters:
    kind: ssd
  provisioner: example.com/disk
  reclaimPolicy: Delete
  volumeBindingMode: Immediate
  $ kubectl describe sc nodes-fast
  Name:  nodes-fast
  IsDefaultClass:  Yes
  Annotations:  storageclass.kubernetes.io/is-default-class=true
  Provisioner:  example.com/disk
  Parameters:  kind=ssd
  AllowVolumeExpansion:  True
  MountOptions:  <none>
  ReclaimPolicy:  Delete
  VolumeBindingMode:  Immediate
  Events:  <none>
  $ kubectl describe pv nodes-volume
  Name:  nodes-volume
  Labels:  <none>
  Annotations:  <none>
  Finalizers:  [kubernetes.io/pv-protection]
  StorageClass:  nodes-fast
  Status:  Pending
  Claim:
  Reclaim Policy:  Retain
  Access Modes:  RWO,ROX
  VolumeMode:  Filesystem
  Capacity:  10Gi
  Node Affinity:  <none>
  Message:
  Source:
      Type:  HostPath (bare host directory volume)
      Path:  /data
      HostPathType:
  Events:  <none>
  $ kubectl describe pvc claim
  Name:  claim
  Namespace:  nodes
  StorageClass:  nodes-fast
  Status:  Pending
  Volume:
  Labels:  <none>
  Annotations:  <none>
  Finalizers:  [kubernetes.io/pvc-protection]
  Capacity:
  Access Modes:
  VolumeMode:  Filesystem
  Used By:  <none>
  Events:  <none>
  $ kubectl patch pvc claim -p '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}'
  The PersistentVolumeClaim "claim" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims
  @@ -6,7 +6,7 @@
    "Resources": {
     "Limits": null,
     "Requests": {
  -  "storage": "1Gi"
  +  "storage": "2Gi"
     }
    },
    "VolumeName": "",
  [1]
  $ kubectl patch pvc claim -p '{"spec":{"storageClassName":"other"}}'
  The PersistentVolumeClaim "claim" is invalid: spec: Forbidden: spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims
  @@ -10,7 +10,7 @@
     }
    },
    "VolumeName": "",
  - "StorageClassName": "nodes-fast",
  + "StorageClassName": "other",
    "VolumeMode": "Filesystem",
    "DataSource": null,
    "DataSourceRef": null,
  [1]
  $ kubectl patch pv nodes-volume -p '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'
  persistentvolume/nodes-volume patched
  $ kubectl patch pv nodes-volume -p '{"spec":{"persistentVolumeReclaimPolicy":"Burn"}}'
  The PersistentVolume "nodes-volume" is invalid: spec.persistentVolumeReclaimPolicy: Unsupported value: "Burn": supported values: "Delete", "Recycle", "Retain"
  [1]
  $ kubectl patch sc nodes-fast -p '{"provisioner":"other"}'
  The StorageClass "nodes-fast" is invalid: provisioner: Invalid value: "other": field is immutable
  [1]
  $ kubectl delete sc nodes-fast
  storageclass.storage.k8s.io "nodes-fast" deleted
  $ kubectl delete pv nodes-volume; kubectl get pv nodes-volume
  persistentvolume "nodes-volume" deleted
  Error from server (NotFound): persistentvolumes "nodes-volume" not found
  [1]
  $ kubectl delete pvc claim; kubectl get pvc
  persistentvolumeclaim "claim" deleted from nodes namespace
  No resources found in nodes namespace.

Certificates.

  $ cat > csr.yaml <<'END'
  > apiVersion: certificates.k8s.io/v1
  > kind: CertificateSigningRequest
  > metadata: {name: nodes-jane}
  > spec:
  >   request: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIWU1JR0FBZ0VBTUI0eERUQUxCZ05WQkFNTUJHcGhibVV4RFRBTEJnTlZCQW9NQkdSbGRuTXdXVEFUQmdjcQpoa2pPUFFJQkJnZ3Foa2pPUFFNQkJ3TkNBQVNPSFR0TE1jZExnemp1amZCU3dnamdYVVo1RVhUaTNGUThIR2ZaClZhYkZmMmtmMFIyY1JvOW5ZZWZoY05PWW12RE03dUtrQThBTXJjZnBjbkFWeEsxN29BQXdDZ1lJS29aSXpqMEUKQXdJRFJ3QXdSQUlnRkRUai8wK0Z1WFFlTzRLVm9WSTJrY3ozeUhORC9oZU1vMXhvVUxoZ0JZa0NJQ1VHUzBNSgozUWM5dEw3L0xHNHJqMlBQSk92Qis1VS9ZVFBYelRuUXFJR0oKLS0tLS1FTkQgQ0VSVElGSUNBVEUgUkVRVUVTVC0tLS0tCg==
  >   signerName: kubernetes.io/kube-apiserver-client
  >   usages: [client auth]
  > END
  $ kubectl create -f csr.yaml --as=boss --as-group=system:masters
  certificatesigningrequest.certificates.k8s.io/nodes-jane created
  $ sed 's/request: .*/request: YQ==/' csr.yaml | kubectl create -f -
  The CertificateSigningRequest "nodes-jane" is invalid: spec.request: Invalid value: "YQ==": PEM block type must be CERTIFICATE REQUEST
  [1]
  $ sed 's/nodes-jane/nodes-joe/' csr.yaml | kubectl create -f - --as=boss --as-group=system:masters
  certificatesigningrequest.certificates.k8s.io/nodes-joe created
  $ kubectl get csr
  NAME  AGE  SIGNERNAME  REQUESTOR  REQUESTEDDURATION  CONDITION
  nodes-jane  <age>  kubernetes.io/kube-apiserver-client  boss  <none>  Pending
  nodes-joe  <age>  kubernetes.io/kube-apiserver-client  boss  <none>  Pending
  $ kubectl describe csr nodes-jane
  Name:  nodes-jane
  Labels:  <none>
  Annotations:  <none>
  CreationTimestamp:  <time>
  Requesting User:  boss
  Signer:  kubernetes.io/kube-apiserver-client
  Status:  Pending
  Subject:
           Common Name:  jane
           Serial Number:
           Organization:  devs
  Events:  <none>
  $ kubectl certificate approve nodes-jane
  certificatesigningrequest.certificates.k8s.io/nodes-jane approved
  $ kubectl certificate deny nodes-jane
  error: certificate signing request "nodes-jane" is already Approved
  [1]
  $ kubectl certificate deny nodes-joe
  certificatesigningrequest.certificates.k8s.io/nodes-joe denied
  $ kubectl certificate approve nodes-absent
  Error from server (NotFound): certificatesigningrequests.certificates.k8s.io "nodes-absent" not found
  [1]
  $ kubectl get csr nodes-jane -o jsonpath='{.spec.username} {.spec.groups} {.status.conditions[0].type} {.status.conditions[0].reason}{"\n"}'
  boss ["system:masters","system:authenticated"] Approved KubectlApprove
  $ kubectl patch csr nodes-jane --type=merge -p '{"spec":{"signerName":"example.com/other"}}'
  certificatesigningrequest.certificates.k8s.io/nodes-jane patched (no change)
  $ kubectl get csr
  NAME  AGE  SIGNERNAME  REQUESTOR  REQUESTEDDURATION  CONDITION
  nodes-jane  <age>  kubernetes.io/kube-apiserver-client  boss  <none>  Approved
  nodes-joe  <age>  kubernetes.io/kube-apiserver-client  boss  <none>  Denied
  $ kubectl delete csr nodes-jane nodes-joe
  certificatesigningrequest.certificates.k8s.io "nodes-jane" deleted
  certificatesigningrequest.certificates.k8s.io "nodes-joe" deleted

Others.

  $ kubectl create -f - <<'END'
  > apiVersion: coordination.k8s.io/v1
  > kind: Lease
  > metadata: {name: lead}
  > spec: {holderIdentity: me, leaseDurationSeconds: 15, renewTime: "2026-01-01T00:00:00.000000Z"}
  > END
  lease.coordination.k8s.io/lead created
  $ kubectl get leases
  NAME  HOLDER  AGE
  lead  me  <age>
  $ kubectl describe lease lead
  Name:  lead
  Namespace:  nodes
  Labels:  <none>
  Annotations:  <none>
  API Version:  coordination.k8s.io/v1
  Kind:  Lease
  Metadata:
    Creation Timestamp:  <time>
    Resource Version:  <version>
    UID:  <uid>
  Spec:
    Holder Identity:  me
    Lease Duration Seconds:  15
    Renew Time:  <time>
  Events:  <none>
  $ kubectl get runtimeclasses,csinodes,csidrivers,volumeattachments,ingressclasses
  No resources found
  $ kubectl top nodes
  error: Metrics API not available
  [1]
  $ kubectl delete nodes one two
  node "one" deleted
  node "two" deleted
