Workloads as they are declared; nothing runs them here.

  $ kubectl create namespace workloads
  namespace/workloads created
  $ kubectl config set-context --current --namespace=workloads >&-
  $ kubectl wait --for=create serviceaccount/default --timeout=30s >&-

Made from flags.

  $ kubectl create deployment web --image=nginx --replicas=2 --port=80
  deployment.apps/web created
  $ kubectl create deployment web --image=nginx
  error: failed to create deployment: deployments.apps "web" already exists
  [1]
  $ kubectl create deployment pair --image=a --image=b -- sleep 1
  error: cannot specify multiple --image options and command
  [1]
  $ kubectl create deployment dry --image=nginx --dry-run=client -o yaml
  apiVersion: apps/v1
  kind: Deployment
  metadata:
    labels:
      app: dry
    name: dry
  spec:
    replicas: 1
    selector:
      matchLabels:
        app: dry
    strategy: {}
    template:
      metadata:
        labels:
          app: dry
      spec:
        containers:
        - image: nginx
          name: nginx
          resources: {}
  status: {}
  $ kubectl create deployment dry --image=nginx --dry-run=server -o name
  deployment.apps/dry
  $ kubectl create job once --image=busybox -- true
  job.batch/once created
  $ kubectl create cronjob often --image=busybox --schedule='*/5 * * * *' -- date
  cronjob.batch/often created
  $ kubectl create cronjob wrong --image=busybox --schedule='sometimes'
  error: failed to create cronjob: CronJob.batch "wrong" is invalid: spec.schedule: Invalid value: "sometimes": expected exactly 5 fields, found 1: [sometimes]
  [1]
  $ kubectl create job again --from=cronjob/often
  job.batch/again created
  $ kubectl create service clusterip inner --tcp=80:8080
  service/inner created
  $ kubectl create service clusterip headless --clusterip=None
  service/headless created
  $ kubectl create service nodeport outer --tcp=80
  service/outer created
  $ kubectl create service externalname far --external-name=example.com
  service/far created
  $ kubectl create service loadbalancer ahead --tcp=443
  service/ahead created
  $ kubectl create ingress way --rule='example.com/a*=inner:80,tls=cert' --class=nginx
  ingress.networking.k8s.io/way created
  $ kubectl create ingress catch --default-backend=inner:80 --annotation=a=b
  ingress.networking.k8s.io/catch created
  $ kubectl create pdb some --selector=app=web --min-available=1
  poddisruptionbudget.policy/some created
  $ kubectl create priorityclass workloads-high --value=1000 --description='goes first'
  priorityclass.scheduling.k8s.io/workloads-high created
  $ kubectl create serviceaccount robot
  serviceaccount/robot created
  $ kubectl autoscale deployment web --min=1 --max=5 --cpu=80%
  horizontalpodautoscaler.autoscaling/web autoscaled
  $ kubectl expose deployment web --port=80 --target-port=8080
  service/web exposed
  $ kubectl expose deployment web --name=web-open --port=80 --type=NodePort --session-affinity=ClientIP
  service/web-open exposed
  $ kubectl run one --image=busybox --env=A=b --labels=app=one --restart=Never -- sleep 1
  pod/one created
  $ kubectl run one --image=busybox
  Error from server (AlreadyExists): pods "one" already exists
  [1]
  $ kubectl run two --image=busybox --port=80 --expose --command -- sleep 2
  service/two created
  pod/two created
  $ kubectl create -f - <<'END'
  > apiVersion: apps/v1
  > kind: StatefulSet
  > metadata: {name: set}
  > spec:
  >   serviceName: set
  >   selector: {matchLabels: {app: set}}
  >   template:
  >     metadata: {labels: {app: set}}
  >     spec:
  >       containers: [{name: c, image: i, volumeMounts: [{name: data, mountPath: /data}]}]
  >   volumeClaimTemplates:
  >   - metadata: {name: data}
  >     spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  > ---
  > apiVersion: apps/v1
  > kind: DaemonSet
  > metadata: {name: all}
  > spec:
  >   selector: {matchLabels: {app: all}}
  >   template:
  >     metadata: {labels: {app: all}}
  >     spec:
  >       containers: [{name: c, image: i}]
  > ---
  > apiVersion: apps/v1
  > kind: ReplicaSet
  > metadata: {name: few}
  > spec:
  >   replicas: 3
  >   selector: {matchLabels: {app: few}}
  >   template:
  >     metadata: {labels: {app: few}}
  >     spec:
  >       containers: [{name: c, image: i}]
  > ---
  > apiVersion: v1
  > kind: ReplicationController
  > metadata: {name: old}
  > spec:
  >   template:
  >     metadata: {labels: {app: old}}
  >     spec:
  >       containers: [{name: c, image: i}]
  > ---
  > apiVersion: networking.k8s.io/v1
  > kind: NetworkPolicy
  > metadata: {name: closed}
  > spec:
  >   podSelector: {matchLabels: {app: web}}
  >   ingress: [{from: [{namespaceSelector: {}}, {ipBlock: {cidr: 10.1.0.0/16, except: [10.1.2.0/24]}}], ports: [{port: 80}]}]
  > ---
  > apiVersion: v1
  > kind: LimitRange
  > metadata: {name: limits}
  > spec: {limits: [{type: Container, default: {cpu: 500m}, defaultRequest: {cpu: 100m}, max: {cpu: "2"}}]}
  > ---
  > apiVersion: discovery.k8s.io/v1
  > kind: EndpointSlice
  > metadata: {name: web-1, labels: {kubernetes.io/service-name: web}}
  > addressType: IPv4
  > ports: [{port: 8080}]
  > endpoints: [{addresses: [10.1.0.1]}, {addresses: [10.1.0.2], conditions: {ready: false}}]
  > END
  statefulset.apps/set created
  daemonset.apps/all created
  replicaset.apps/few created
  replicationcontroller/old created
  networkpolicy.networking.k8s.io/closed created
  limitrange/limits created
  endpointslice.discovery.k8s.io/web-1 created

Shown.

  $ kubectl get all
  NAME  READY  STATUS  RESTARTS  AGE
  pod/one  0/1  Pending  0  <age>
  pod/two  0/1  Pending  0  <age>
  |
  NAME  DESIRED  CURRENT  READY  AGE
  replicationcontroller/old  1  0  0  <age>
  |
  NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)  AGE
  service/ahead  LoadBalancer  <ip>  <pending>  443:<port>/TCP  <age>
  service/far  ExternalName  <none>  example.com  <none>  <age>
  service/headless  ClusterIP  None  <none>  <none>  <age>
  service/inner  ClusterIP  <ip>  <none>  80/TCP  <age>
  service/outer  NodePort  <ip>  <none>  80:<port>/TCP  <age>
  service/two  ClusterIP  <ip>  <none>  80/TCP  <age>
  service/web  ClusterIP  <ip>  <none>  80/TCP  <age>
  service/web-open  NodePort  <ip>  <none>  80:<port>/TCP  <age>
  |
  NAME  DESIRED  CURRENT  READY  UP-TO-DATE  AVAILABLE  NODE SELECTOR  AGE
  daemonset.apps/all  0  0  0  0  0  <none>  <age>
  |
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  deployment.apps/web  0/2  0  0  <age>
  |
  NAME  DESIRED  CURRENT  READY  AGE
  replicaset.apps/few  3  0  0  <age>
  |
  NAME  READY  AGE
  statefulset.apps/set  0/1  <age>
  |
  NAME  REFERENCE  TARGETS  MINPODS  MAXPODS  REPLICAS  AGE
  horizontalpodautoscaler.autoscaling/web  Deployment/web  cpu: <unknown>/80%  1  5  0  <age>
  |
  NAME  SCHEDULE  TIMEZONE  SUSPEND  ACTIVE  LAST SCHEDULE  AGE
  cronjob.batch/often  */5 * * * *  <none>  False  0  <none>  <age>
  |
  NAME  STATUS  COMPLETIONS  DURATION  AGE
  job.batch/again  Running  0/1  <age>
  job.batch/once  Running  0/1  <age>
  $ kubectl get deployments,replicasets,rc,statefulsets,daemonsets,jobs,cronjobs,services -o wide
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE  CONTAINERS  IMAGES  SELECTOR
  deployment.apps/web  0/2  0  0  <age>  nginx  nginx  app=web
  |
  NAME  DESIRED  CURRENT  READY  AGE  CONTAINERS  IMAGES  SELECTOR
  replicaset.apps/few  3  0  0  <age>  c  i  app=few
  |
  NAME  DESIRED  CURRENT  READY  AGE  CONTAINERS  IMAGES  SELECTOR
  replicationcontroller/old  1  0  0  <age>  c  i  app=old
  |
  NAME  READY  AGE  CONTAINERS  IMAGES
  statefulset.apps/set  0/1  <age>  c  i
  |
  NAME  DESIRED  CURRENT  READY  UP-TO-DATE  AVAILABLE  NODE SELECTOR  AGE  CONTAINERS  IMAGES  SELECTOR
  daemonset.apps/all  0  0  0  0  0  <none>  <age>  c  i  app=all
  |
  NAME  STATUS  COMPLETIONS  DURATION  AGE  CONTAINERS  IMAGES  SELECTOR
  job.batch/again  Running  0/1  <age>  often  busybox  batch.kubernetes.io/controller-uid=<uid>
  job.batch/once  Running  0/1  <age>  once  busybox  batch.kubernetes.io/controller-uid=<uid>
  |
  NAME  SCHEDULE  TIMEZONE  SUSPEND  ACTIVE  LAST SCHEDULE  AGE  CONTAINERS  IMAGES  SELECTOR
  cronjob.batch/often  */5 * * * *  <none>  False  0  <none>  <age>  often  busybox  <none>
  |
  NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)  AGE  SELECTOR
  service/ahead  LoadBalancer  <ip>  <pending>  443:<port>/TCP  <age>  app=ahead
  service/far  ExternalName  <none>  example.com  <none>  <age>  app=far
  service/headless  ClusterIP  None  <none>  <none>  <age>  app=headless
  service/inner  ClusterIP  <ip>  <none>  80/TCP  <age>  app=inner
  service/outer  NodePort  <ip>  <none>  80:<port>/TCP  <age>  app=outer
  service/two  ClusterIP  <ip>  <none>  80/TCP  <age>  run=two
  service/web  ClusterIP  <ip>  <none>  80/TCP  <age>  app=web
  service/web-open  NodePort  <ip>  <none>  80:<port>/TCP  <age>  app=web
  $ kubectl get ingress,pdb,hpa,limits,networkpolicy,endpointslices,serviceaccount
  NAME  CLASS  HOSTS  ADDRESS  PORTS  AGE
  ingress.networking.k8s.io/catch  <none>  *  80  <age>
  ingress.networking.k8s.io/way  nginx  example.com  80, 443  <age>
  |
  NAME  MIN AVAILABLE  MAX UNAVAILABLE  ALLOWED DISRUPTIONS  AGE
  poddisruptionbudget.policy/some  1  N/A  0  <age>
  |
  NAME  REFERENCE  TARGETS  MINPODS  MAXPODS  REPLICAS  AGE
  horizontalpodautoscaler.autoscaling/web  Deployment/web  cpu: <unknown>/80%  1  5  0  <age>
  |
  NAME  CREATED AT
  limitrange/limits  <time>
  |
  NAME  POD-SELECTOR  AGE
  networkpolicy.networking.k8s.io/closed  app=web  <age>
  |
  NAME  ADDRESSTYPE  PORTS  ENDPOINTS  AGE
  endpointslice.discovery.k8s.io/web-1  IPv4  8080  10.1.0.1,10.1.0.2  <age>
  |
  NAME  AGE
  serviceaccount/default  <age>
  serviceaccount/robot  <age>
  $ kubectl get pods -o wide
  NAME  READY  STATUS  RESTARTS  AGE  IP  NODE  NOMINATED NODE  READINESS GATES
  one  0/1  Pending  0  <age>  <none>  <none>  <none>  <none>
  two  0/1  Pending  0  <age>  <none>  <none>  <none>  <none>
  $ kubectl get pod one -o yaml
  apiVersion: v1
  kind: Pod
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    labels:
      app: one
    name: one
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    containers:
    - args:
      - sleep
      - "1"
      env:
      - name: A
        value: b
      image: busybox
      imagePullPolicy: Always
      name: one
      resources: {}
      terminationMessagePath: /dev/termination-log
      terminationMessagePolicy: File
      volumeMounts:
      - mountPath: /var/run/secrets/kubernetes.io/serviceaccount
        name: kube-api-access-<random>
        readOnly: true
    dnsPolicy: ClusterFirst
    enableServiceLinks: true
    preemptionPolicy: PreemptLowerPriority
    priority: 0
    restartPolicy: Never
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
    volumes:
    - name: kube-api-access-<random>
      projected:
        defaultMode: 420
        sources:
        - serviceAccountToken:
            expirationSeconds: 3607
            path: token
        - configMap:
            items:
            - key: ca.crt
              path: ca.crt
            name: kube-root-ca.crt
        - downwardAPI:
            items:
            - fieldRef:
                apiVersion: v1
                fieldPath: metadata.namespace
              path: namespace
  status:
    phase: Pending
    qosClass: BestEffort
  $ kubectl get pod two -o jsonpath='{.spec.containers[0]}{"\n"}'
  {"command":["sleep","2"],"image":"busybox","imagePullPolicy":"Always","name":"two","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","volumeMounts":[{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-<random>","readOnly":true}]}
  $ kubectl get deployment pair -o yaml
  Error from server (NotFound): deployments.apps "pair" not found
  [1]
  $ kubectl get job once -o yaml
  apiVersion: batch/v1
  kind: Job
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    labels:
      batch.kubernetes.io/controller-uid: <uid>
      batch.kubernetes.io/job-name: once
      controller-uid: <uid>
      job-name: once
    name: once
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    backoffLimit: 6
    completionMode: NonIndexed
    completions: 1
    manualSelector: false
    parallelism: 1
    podReplacementPolicy: TerminatingOrFailed
    selector:
      matchLabels:
        batch.kubernetes.io/controller-uid: <uid>
    suspend: false
    template:
      metadata:
        labels:
          batch.kubernetes.io/controller-uid: <uid>
          batch.kubernetes.io/job-name: once
          controller-uid: <uid>
          job-name: once
      spec:
        containers:
        - command:
          - "true"
          image: busybox
          imagePullPolicy: Always
          name: once
          resources: {}
          terminationMessagePath: /dev/termination-log
          terminationMessagePolicy: File
        dnsPolicy: ClusterFirst
        restartPolicy: Never
        schedulerName: default-scheduler
        securityContext: {}
        terminationGracePeriodSeconds: 30
  status: {}
  $ kubectl get job again -o jsonpath='{.metadata.annotations} {.metadata.ownerReferences[0].name}{"\n"}'
  {"cronjob.kubernetes.io/instantiate":"manual"} often
  $ kubectl get cronjob often -o yaml
  apiVersion: batch/v1
  kind: CronJob
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    name: often
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    concurrencyPolicy: Allow
    failedJobsHistoryLimit: 1
    jobTemplate:
      metadata:
        name: often
      spec:
        template:
          metadata: {}
          spec:
            containers:
            - command:
              - date
              image: busybox
              imagePullPolicy: Always
              name: often
              resources: {}
              terminationMessagePath: /dev/termination-log
              terminationMessagePolicy: File
            dnsPolicy: ClusterFirst
            restartPolicy: OnFailure
            schedulerName: default-scheduler
            securityContext: {}
            terminationGracePeriodSeconds: 30
    schedule: '*/5 * * * *'
    successfulJobsHistoryLimit: 3
    suspend: false
  status: {}
  $ kubectl get statefulset set -o yaml
  apiVersion: apps/v1
  kind: StatefulSet
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    name: set
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    persistentVolumeClaimRetentionPolicy:
      whenDeleted: Retain
      whenScaled: Retain
    podManagementPolicy: OrderedReady
    replicas: 1
    revisionHistoryLimit: 10
    selector:
      matchLabels:
        app: set
    serviceName: set
    template:
      metadata:
        labels:
          app: set
      spec:
        containers:
        - image: i
          imagePullPolicy: Always
          name: c
          resources: {}
          terminationMessagePath: /dev/termination-log
          terminationMessagePolicy: File
          volumeMounts:
          - mountPath: /data
            name: data
        dnsPolicy: ClusterFirst
        restartPolicy: Always
        schedulerName: default-scheduler
        securityContext: {}
        terminationGracePeriodSeconds: 30
    updateStrategy:
      rollingUpdate:
        partition: 0
      type: RollingUpdate
    volumeClaimTemplates:
    - apiVersion: v1
      kind: PersistentVolumeClaim
      metadata:
        name: data
      spec:
        accessModes:
        - ReadWriteOnce
        resources:
          requests:
            storage: 1Gi
        volumeMode: Filesystem
      status:
        phase: Pending
  status:
    availableReplicas: 0
    replicas: 0
  $ kubectl get daemonset all -o yaml
  apiVersion: apps/v1
  kind: DaemonSet
  metadata:
    annotations:
      deprecated.daemonset.template.generation: "1"
    creationTimestamp: "<time>"
    generation: 1
    name: all
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    revisionHistoryLimit: 10
    selector:
      matchLabels:
        app: all
    template:
      metadata:
        labels:
          app: all
      spec:
        containers:
        - image: i
          imagePullPolicy: Always
          name: c
          resources: {}
          terminationMessagePath: /dev/termination-log
          terminationMessagePolicy: File
        dnsPolicy: ClusterFirst
        restartPolicy: Always
        schedulerName: default-scheduler
        securityContext: {}
        terminationGracePeriodSeconds: 30
    updateStrategy:
      rollingUpdate:
        maxSurge: 0
        maxUnavailable: 1
      type: RollingUpdate
  status:
    currentNumberScheduled: 0
    desiredNumberScheduled: 0
    numberMisscheduled: 0
    numberReady: 0
  $ kubectl get replicaset few -o yaml
  apiVersion: apps/v1
  kind: ReplicaSet
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    name: few
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    replicas: 3
    selector:
      matchLabels:
        app: few
    template:
      metadata:
        labels:
          app: few
      spec:
        containers:
        - image: i
          imagePullPolicy: Always
          name: c
          resources: {}
          terminationMessagePath: /dev/termination-log
          terminationMessagePolicy: File
        dnsPolicy: ClusterFirst
        restartPolicy: Always
        schedulerName: default-scheduler
        securityContext: {}
        terminationGracePeriodSeconds: 30
  status:
    replicas: 0
  $ kubectl get rc old -o yaml
  apiVersion: v1
  kind: ReplicationController
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    labels:
      app: old
    name: old
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    replicas: 1
    selector:
      app: old
    template:
      metadata:
        labels:
          app: old
      spec:
        containers:
        - image: i
          imagePullPolicy: Always
          name: c
          resources: {}
          terminationMessagePath: /dev/termination-log
          terminationMessagePolicy: File
        dnsPolicy: ClusterFirst
        restartPolicy: Always
        schedulerName: default-scheduler
        securityContext: {}
        terminationGracePeriodSeconds: 30
  status:
    replicas: 0
  $ kubectl get hpa web -o yaml
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata:
    creationTimestamp: "<time>"
    name: web
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    maxReplicas: 5
    metrics:
    - resource:
        name: cpu
        target:
          averageUtilization: 80
          type: Utilization
      type: Resource
    minReplicas: 1
    scaleTargetRef:
      apiVersion: apps/v1
      kind: Deployment
      name: web
  status:
    currentMetrics: null
    desiredReplicas: 0
  $ kubectl get hpa.v1.autoscaling web -o yaml
  apiVersion: autoscaling/v2
  kind: HorizontalPodAutoscaler
  metadata:
    creationTimestamp: "<time>"
    name: web
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    maxReplicas: 5
    metrics:
    - resource:
        name: cpu
        target:
          averageUtilization: 80
          type: Utilization
      type: Resource
    minReplicas: 1
    scaleTargetRef:
      apiVersion: apps/v1
      kind: Deployment
      name: web
  status:
    currentMetrics: null
    desiredReplicas: 0
  $ kubectl get ingress way -o yaml
  apiVersion: networking.k8s.io/v1
  kind: Ingress
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    name: way
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    ingressClassName: nginx
    rules:
    - host: example.com
      http:
        paths:
        - backend:
            service:
              name: inner
              port:
                number: 80
          path: /a
          pathType: Prefix
    tls:
    - hosts:
      - example.com
      secretName: cert
  status:
    loadBalancer: {}
  $ kubectl get networkpolicy closed -o yaml
  apiVersion: networking.k8s.io/v1
  kind: NetworkPolicy
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    name: closed
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    ingress:
    - from:
      - namespaceSelector: {}
      - ipBlock:
          cidr: 10.1.0.0/16
          except:
          - 10.1.2.0/24
      ports:
      - port: 80
        protocol: TCP
    podSelector:
      matchLabels:
        app: web
    policyTypes:
    - Ingress
  $ kubectl get pdb some -o yaml
  apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    name: some
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    minAvailable: 1
    selector:
      matchLabels:
        app: web
  status:
    currentHealthy: 0
    desiredHealthy: 0
    disruptionsAllowed: 0
    expectedPods: 0
  $ kubectl get service outer -o yaml
  apiVersion: v1
  kind: Service
  metadata:
    creationTimestamp: "<time>"
    labels:
      app: outer
    name: outer
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    clusterIP: <ip>
    clusterIPs:
    - <ip>
    externalTrafficPolicy: Cluster
    internalTrafficPolicy: Cluster
    ipFamilies:
    - IPv4
    ipFamilyPolicy: SingleStack
    ports:
    - name: "80"
      nodePort: <port>
      port: 80
      protocol: TCP
      targetPort: 80
    selector:
      app: outer
    sessionAffinity: None
    type: NodePort
  status:
    loadBalancer: {}
  $ kubectl get service far -o yaml
  apiVersion: v1
  kind: Service
  metadata:
    creationTimestamp: "<time>"
    labels:
      app: far
    name: far
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    externalName: example.com
    selector:
      app: far
    sessionAffinity: None
    type: ExternalName
  status:
    loadBalancer: {}
  $ kubectl get service headless -o yaml
  apiVersion: v1
  kind: Service
  metadata:
    creationTimestamp: "<time>"
    labels:
      app: headless
    name: headless
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    clusterIP: None
    clusterIPs:
    - None
    internalTrafficPolicy: Cluster
    ipFamilies:
    - IPv4
    ipFamilyPolicy: SingleStack
    selector:
      app: headless
    sessionAffinity: None
    type: ClusterIP
  status:
    loadBalancer: {}
  $ kubectl get service ahead -o yaml
  apiVersion: v1
  kind: Service
  metadata:
    creationTimestamp: "<time>"
    labels:
      app: ahead
    name: ahead
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    allocateLoadBalancerNodePorts: true
    clusterIP: <ip>
    clusterIPs:
    - <ip>
    externalTrafficPolicy: Cluster
    internalTrafficPolicy: Cluster
    ipFamilies:
    - IPv4
    ipFamilyPolicy: SingleStack
    ports:
    - name: "443"
      nodePort: <port>
      port: 443
      protocol: TCP
      targetPort: 443
    selector:
      app: ahead
    sessionAffinity: None
    type: LoadBalancer
  status:
    loadBalancer: {}
  $ kubectl get limitrange limits -o yaml
  apiVersion: v1
  kind: LimitRange
  metadata:
    creationTimestamp: "<time>"
    name: limits
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    limits:
    - default:
        cpu: 500m
      defaultRequest:
        cpu: 100m
      max:
        cpu: "2"
      type: Container
  $ kubectl get endpointslice web-1 -o yaml
  addressType: IPv4
  apiVersion: discovery.k8s.io/v1
  endpoints:
  - addresses:
    - 10.1.0.1
    conditions: {}
  - addresses:
    - 10.1.0.2
    conditions:
      ready: false
  kind: EndpointSlice
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    labels:
      kubernetes.io/service-name: web
    name: web-1
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  ports:
  - name: ""
    port: 8080
    protocol: TCP
  $ kubectl get priorityclass workloads-high -o yaml
  apiVersion: scheduling.k8s.io/v1
  description: goes first
  kind: PriorityClass
  metadata:
    creationTimestamp: "<time>"
    generation: 1
    name: workloads-high
    resourceVersion: "<version>"
    uid: <uid>
  preemptionPolicy: PreemptLowerPriority
  value: 1000
  $ kubectl get pods --field-selector spec.nodeName=,status.phase=Pending -o name
  pod/one
  pod/two
  $ kubectl get pods --field-selector spec.nothing=1
  Error from server (BadRequest): Unable to find "/v1, Resource=pods" that match label selector "", field selector "spec.nothing=1": field label not supported: spec.nothing
  [1]
  $ kubectl get jobs --field-selector status.successful=0 -o name
  job.batch/again
  job.batch/once
  $ kubectl get replicasets --field-selector status.replicas=0 -o name
  Error from server (BadRequest): Unable to find "apps/v1, Resource=replicasets" that match label selector "", field selector "status.replicas=0": "status.replicas" is not a known field selector: only "metadata.name", "metadata.namespace"
  [1]

Described.

  $ kubectl describe deployment web
  Name:  web
  Namespace:  workloads
  CreationTimestamp:  <time>
  Labels:  app=web
  Annotations:  <none>
  Selector:  app=web
  Replicas:  2 desired | 0 updated | 0 total | 0 available | 0 unavailable
  StrategyType:  RollingUpdate
  MinReadySeconds:  0
  RollingUpdateStrategy:  25% max unavailable, 25% max surge
  Pod Template:
    Labels:  app=web
    Containers:
     nginx:
      Image:  nginx
      Port:  80/TCP
      Host Port:  0/TCP
      Environment:  <none>
      Mounts:  <none>
    Volumes:  <none>
    Node-Selectors:  <none>
    Tolerations:  <none>
  Events:  <none>
  $ kubectl describe pod one
  Name:  one
  Namespace:  workloads
  Priority:  0
  Service Account:  default
  Node:  <none>
  Labels:  app=one
  Annotations:  <none>
  Status:  Pending
  IP:
  IPs:  <none>
  Containers:
    one:
      Image:  busybox
      Port:  <none>
      Host Port:  <none>
      Args:
        sleep
        1
      Environment:
        A:  b
      Mounts:
        /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-<random> (ro)
  Volumes:
    kube-api-access-<random>:
      Type:  Projected (a volume that contains injected data from multiple sources)
      TokenExpirationSeconds:  3607
      ConfigMapName:  kube-root-ca.crt
      Optional:  false
      DownwardAPI:  true
  QoS Class:  BestEffort
  Node-Selectors:  <none>
  Tolerations:  node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                               node.kubernetes.io/unreachable:NoExecute op=Exists for 300s
  Events:  <none>
  $ kubectl describe pods -l run=two
  Name:  two
  Namespace:  workloads
  Priority:  0
  Service Account:  default
  Node:  <none>
  Labels:  run=two
  Annotations:  <none>
  Status:  Pending
  IP:
  IPs:  <none>
  Containers:
    two:
      Image:  busybox
      Port:  80/TCP
      Host Port:  0/TCP
      Command:
        sleep
        2
      Environment:  <none>
      Mounts:
        /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-<random> (ro)
  Volumes:
    kube-api-access-<random>:
      Type:  Projected (a volume that contains injected data from multiple sources)
      TokenExpirationSeconds:  3607
      ConfigMapName:  kube-root-ca.crt
      Optional:  false
      DownwardAPI:  true
  QoS Class:  BestEffort
  Node-Selectors:  <none>
  Tolerations:  node.kubernetes.io/not-ready:NoExecute op=Exists for 300s
                               node.kubernetes.io/unreachable:NoExecute op=Exists for 300s
  Events:  <none>
  $ kubectl describe service web --show-events=false
  Name:  web
  Namespace:  workloads
  Labels:  app=web
  Annotations:  <none>
  Selector:  app=web
  Type:  ClusterIP
  IP Family Policy:  SingleStack
  IP Families:  IPv4
  IP:  <ip>
  IPs:  <ip>
  Port:  <unset>  80/TCP
  TargetPort:  8080/TCP
  Endpoints:  10.1.0.1:8080
  Session Affinity:  None
  Internal Traffic Policy:  Cluster
  $ kubectl describe service far
  Name:  far
  Namespace:  workloads
  Labels:  app=far
  Annotations:  <none>
  Selector:  app=far
  Type:  ExternalName
  IP Families:  <none>
  IP:
  IPs:  <none>
  External Name:  example.com
  Session Affinity:  None
  Events:  <none>
  $ kubectl describe job once | sed 's/\(controller-uid\|Selector\).*/\1/'
  Name:  once
  Namespace:  workloads
  Selector
  Labels:  batch.kubernetes.io/controller-uid
                    batch.kubernetes.io/job-name=once
                    controller-uid
                    job-name=once
  Annotations:  <none>
  Parallelism:  1
  Completions:  1
  Completion Mode:  NonIndexed
  Suspend:  false
  Backoff Limit:  6
  Pods Statuses:  0 Active / 0 Succeeded / 0 Failed
  Pod Template:
    Labels:  batch.kubernetes.io/controller-uid
             batch.kubernetes.io/job-name=once
             controller-uid
             job-name=once
    Containers:
     once:
      Image:  busybox
      Port:  <none>
      Host Port:  <none>
      Command:
        true
      Environment:  <none>
      Mounts:  <none>
    Volumes:  <none>
    Node-Selector
    Tolerations:  <none>
  Events:  <none>
  $ kubectl describe cronjob often
  Name:  often
  Namespace:  workloads
  Labels:  <none>
  Annotations:  <none>
  Schedule:  */5 * * * *
  Concurrency Policy:  Allow
  Suspend:  False
  Time Zone:  <unset>
  Successful Job History Limit:  3
  Failed Job History Limit:  1
  Starting Deadline Seconds:  <unset>
  Selector:  <unset>
  Parallelism:  <unset>
  Completions:  <unset>
  Pod Template:
    Labels:  <none>
    Containers:
     often:
      Image:  busybox
      Port:  <none>
      Host Port:  <none>
      Command:
        date
      Environment:  <none>
      Mounts:  <none>
    Volumes:  <none>
    Node-Selectors:  <none>
    Tolerations:  <none>
  Last Schedule Time:  <unset>
  Active Jobs:  <none>
  Events:  <none>
  $ kubectl describe ingress way
  Name:  way
  Labels:  <none>
  Namespace:  workloads
  Address:
  Ingress Class:  nginx
  Default backend:  <default>
  TLS:
    cert terminates example.com
  Rules:
    Host  Path  Backends
    ----  ----  --------
    example.com
                 /a  inner:80 (<none>)
  Annotations:  <none>
  Events:  <none>
  $ kubectl describe statefulset set
  Name:  set
  Namespace:  workloads
  CreationTimestamp:  <time>
  Selector:  app=set
  Labels:  <none>
  Annotations:  <none>
  Replicas:  1 desired | 0 total
  Update Strategy:  RollingUpdate
    Partition:  0
  Pods Status:  0 Running / 0 Waiting / 0 Succeeded / 0 Failed
  Pod Template:
    Labels:  app=set
    Containers:
     c:
      Image:  i
      Port:  <none>
      Host Port:  <none>
      Environment:  <none>
      Mounts:
        /data from data (rw)
    Volumes:  <none>
    Node-Selectors:  <none>
    Tolerations:  <none>
  Volume Claims:
    Name:  data
    StorageClass:
    Labels:  <none>
    Annotations:  <none>
    Capacity:  1Gi
    Access Modes:  [ReadWriteOnce]
  Events:  <none>
  $ kubectl describe daemonset all
  Name:  all
  Namespace:  workloads
  Selector:  app=all
  Node-Selector:  <none>
  Labels:  <none>
  Annotations:  deprecated.daemonset.template.generation: 1
  Desired Number of Nodes Scheduled: 0
  Current Number of Nodes Scheduled: 0
  Number of Nodes Scheduled with Up-to-date Pods: 0
  Number of Nodes Scheduled with Available Pods: 0
  Number of Nodes Misscheduled: 0
  Pods Status:  0 Running / 0 Waiting / 0 Succeeded / 0 Failed
  Pod Template:
    Labels:  app=all
    Containers:
     c:
      Image:  i
      Port:  <none>
      Host Port:  <none>
      Environment:  <none>
      Mounts:  <none>
    Volumes:  <none>
    Node-Selectors:  <none>
    Tolerations:  <none>
  Events:  <none>
  $ kubectl describe replicaset few
  Name:  few
  Namespace:  workloads
  Selector:  app=few
  Labels:  <none>
  Annotations:  <none>
  Replicas:  0 current / 3 desired
  Pods Status:  0 Running / 0 Waiting / 0 Succeeded / 0 Failed
  Pod Template:
    Labels:  app=few
    Containers:
     c:
      Image:  i
      Port:  <none>
      Host Port:  <none>
      Environment:  <none>
      Mounts:  <none>
    Volumes:  <none>
    Node-Selectors:  <none>
    Tolerations:  <none>
  Events:  <none>
  $ kubectl describe rc old
  Name:  old
  Namespace:  workloads
  Selector:  app=old
  Labels:  app=old
  Annotations:  <none>
  Replicas:  0 current / 1 desired
  Pods Status:  0 Running / 0 Waiting / 0 Succeeded / 0 Failed
  Pod Template:
    Labels:  app=old
    Containers:
     c:
      Image:  i
      Port:  <none>
      Host Port:  <none>
      Environment:  <none>
      Mounts:  <none>
    Volumes:  <none>
    Node-Selectors:  <none>
    Tolerations:  <none>
  Events:  <none>
  $ kubectl describe hpa web
  Name:  web
  Namespace:  workloads
  Labels:  <none>
  Annotations:  <none>
  CreationTimestamp:  <time>
  Reference:  Deployment/web
  Metrics:  ( current / target )
    resource cpu on pods  (as a percentage of request):  <age> / 80%
  Min replicas:  1
  Max replicas:  5
  Deployment pods:  0 current / 0 desired
  Events:  <none>
  $ kubectl describe networkpolicy closed
  Name:  closed
  Namespace:  workloads
  Created on:  <time>
  Labels:  <none>
  Annotations:  <none>
  Spec:
    PodSelector:  app=web
    Allowing ingress traffic:
      To Port: 80/TCP
      From:
        NamespaceSelector: <none>
      From:
        IPBlock:
          CIDR: 10.1.0.0/16
          Except: 10.1.2.0/24
    Not affecting egress traffic
    Policy Types: Ingress
  $ kubectl describe limitrange limits
  Name:  limits
  Namespace:  workloads
  Type  Resource  Min  Max  Default Request  Default Limit  Max Limit/Request Ratio
  ----  --------  ---  ---  ---------------  -------------  -----------------------
  Container  cpu  -  2  <age>  <age>  -
  $ kubectl describe pdb some
  Name:  some
  Namespace:  workloads
  Min available:  1
  Selector:  app=web
  Status:
      Allowed disruptions:  0
      Current:  0
      Desired:  0
      Total:  0
  Events:  <none>
  $ kubectl describe endpointslice web-1
  Name:  web-1
  Namespace:  workloads
  Labels:  kubernetes.io/service-name=web
  Annotations:  <none>
  AddressType:  IPv4
  Ports:
    Name  Port  Protocol
    ----  ----  --------
    <unset>  8080  TCP
  Endpoints:
    - Addresses:  10.1.0.1
      Conditions:
        Ready:  <unset>
      Hostname:  <unset>
      NodeName:  <unset>
      Zone:  <unset>
    - Addresses:  10.1.0.2
      Conditions:
        Ready:  false
      Hostname:  <unset>
      NodeName:  <unset>
      Zone:  <unset>
  Events:  <none>
  $ kubectl describe serviceaccount robot
  Name:  robot
  Namespace:  workloads
  Labels:  <none>
  Annotations:  <none>
  Image pull secrets:  <none>
  Events:  <none>
  $ kubectl describe namespace workloads
  Name:  workloads
  Labels:  kubernetes.io/metadata.name=workloads
  Annotations:  <none>
  Status:  Active
  |
  No resource quota.
  |
  Resource Limits
   Type  Resource  Min  Max  Default Request  Default Limit  Max Limit/Request Ratio
   ----  --------  ---  ---  ---------------  -------------  -----------------------
   Container  cpu  -  2  <age>  <age>  -
  $ kubectl describe priorityclass workloads-high
  Name:  workloads-high
  Value:  1000
  GlobalDefault:  false
  PreemptionPolicy:  PreemptLowerPriority
  Description:  goes first
  Annotations:  <none>
  Events:  <none>
  $ kubectl describe deployment absent
  Error from server (NotFound): deployments.apps "absent" not found
  [1]
  $ kubectl describe deployments/web pods/absent 2>&1 | grep -c .
  1

Scaled and changed.

  $ kubectl scale deployment web --replicas=4
  deployment.apps/web scaled
  $ kubectl scale deployment web --current-replicas=2 --replicas=5
  error: Expected replicas to be 2, was 4
  [1]
  $ kubectl scale deployment web --replicas=-1
  error: The --replicas=COUNT flag is required, and COUNT must be greater than or equal to 0
  [1]
  $ kubectl scale deployment/web statefulset/set replicaset/few rc/old --replicas=2
  deployment.apps/web scaled
  statefulset.apps/set scaled
  replicaset.apps/few scaled
  replicationcontroller/old scaled
  $ kubectl scale job once --replicas=2
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl scale daemonset all --replicas=2
  Error from server (NotFound): the server could not find the requested resource
  [1]
  $ kubectl scale deployment web --replicas=3 --dry-run=server
  deployment.apps/web scaled (server dry run)
  $ kubectl get deployment web --subresource=scale
  NAME  DESIRED  AVAILABLE  AGE
  web  2  0  <age>
  $ kubectl get deployment web --subresource=scale -o yaml
  apiVersion: autoscaling/v1
  kind: Scale
  metadata:
    creationTimestamp: "<time>"
    name: web
    namespace: workloads
    resourceVersion: "<version>"
    uid: <uid>
  spec:
    replicas: 2
  status:
    replicas: 0
    selector: app=web
  $ kubectl patch deployment web --subresource=scale --type=merge -p '{"spec":{"replicas":6}}'
  scale.autoscaling/web patched
  $ kubectl patch deployment web --subresource=scale --type=json -p '[{"op":"test","path":"/spec/replicas","value":6}]'
  scale.autoscaling/web patched (no change)
  $ kubectl patch deployment web --subresource=status --type=merge -p '{"status":{"observedGeneration":1,"replicas":6,"readyReplicas":6,"availableReplicas":6,"updatedReplicas":6}}'
  deployment.apps/web patched
  $ kubectl get deployment web
  NAME  READY  UP-TO-DATE  AVAILABLE  AGE
  web  6/6  6  6  <age>
  $ kubectl set image deployment/web nginx=nginx:2 && kubectl set env deployment/web A=b C- && kubectl set resources deployment/web --limits=cpu=1 --requests=cpu=100m
  deployment.apps/web image updated
  deployment.apps/web env updated
  deployment.apps/web resource requirements updated
  $ kubectl set image deployments,daemonsets --all '*=any:1'
  deployment.apps/web image updated
  daemonset.apps/all image updated
  $ kubectl set env deployment/web --list
  # Deployment web, container nginx
  A=b
  $ kubectl set env deployment/web --from=configmap/kube-root-ca.crt --prefix=CA_
  Warning: key ca.crt transferred to CA_CRT
  deployment.apps/web env updated
  $ kubectl set serviceaccount deployment/web robot
  deployment.apps/web serviceaccount updated
  $ kubectl set selector service web app=other
  service/web selector updated
  $ kubectl set image deployment/web absent=nginx:2
  error: unable to find container named "absent"
  [1]
  $ kubectl set resources deployment/web --limits=cpu=half
  error: quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'
  [1]
  $ kubectl get deployment web -o jsonpath='{.spec.template.spec}{"\n"}'
  {"containers":[{"env":[{"name":"A","value":"b"},{"name":"CA_CA_CRT","valueFrom":{"configMapKeyRef":{"key":"ca.crt","name":"kube-root-ca.crt"}}}],"image":"any:1","imagePullPolicy":"Always","name":"nginx","ports":[{"containerPort":80,"protocol":"TCP"}],"resources":{"limits":{"cpu":"1"},"requests":{"cpu":"100m"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"serviceAccount":"robot","serviceAccountName":"robot","terminationGracePeriodSeconds":30}
  $ kubectl rollout history deployment/web
  deployment.apps/web
  No rollout history found.
  $ kubectl rollout pause deployment/web
  deployment.apps/web paused
  $ kubectl rollout pause deployment/web
  error: deployments.apps "web" is already paused
  [1]
  $ kubectl rollout resume deployment/web
  deployment.apps/web resumed
  $ kubectl rollout restart deployment/web statefulset/set daemonset/all
  deployment.apps/web restarted
  statefulset.apps/set restarted
  daemonset.apps/all restarted
  $ kubectl rollout status deployment/web --watch=false
  Waiting for deployment spec update to be observed...
  $ kubectl rollout status statefulset/set --watch=false
  Waiting for statefulset spec update to be observed...
  $ kubectl rollout status deployment/web --timeout=1s
  Waiting for deployment spec update to be observed...
  error: timed out waiting for the condition
  [1]
  $ kubectl rollout undo deployment/web
  error: no rollout history found for deployment "web"
  [1]
  $ kubectl rollout history statefulset/set
  statefulset.apps/set
  No rollout history found.
  $ kubectl wait --for=condition=Available deployment/web --timeout=0s
  error: condition not met for deployments/web
  [1]
  $ kubectl wait --for=jsonpath='{.spec.replicas}'=6 deployment/web
  deployment.apps/web condition met
  $ kubectl wait --for=delete pod/absent
  $ kubectl wait --for=condition=Ready pod/one --timeout=1s
  error: timed out waiting for the condition on pods/one
  [1]
  $ kubectl wait --for=create deployment/web
  deployment.apps/web condition met
  $ kubectl patch job once --subresource=status --type=merge -p '{"status":{"startTime":"2026-01-01T00:00:00Z","conditions":[{"type":"SuccessCriteriaMet","status":"True"}]}}'
  job.batch/once patched
  $ kubectl patch job once --type=merge -p '{"spec":{"suspend":true,"parallelism":2}}'
  job.batch/once patched
  $ kubectl get job once
  NAME  STATUS  COMPLETIONS  DURATION  AGE
  once  SuccessCriteriaMet  0/1  <age>  <age>
  $ kubectl patch job once --type=merge -p '{"spec":{"completions":2}}'
  The Job "once" is invalid: spec.completions: Invalid value: 2: field is immutable
  [1]
  $ kubectl patch cronjob often -p '{"spec":{"suspend":true,"schedule":"@daily"}}'
  cronjob.batch/often patched
  $ kubectl get cronjob often
  NAME  SCHEDULE  TIMEZONE  SUSPEND  ACTIVE  LAST SCHEDULE  AGE
  often  @daily  <none>  True  0  <none>  <age>
  $ kubectl patch statefulset set -p '{"spec":{"serviceName":"other"}}'
  The StatefulSet "set" is invalid: spec: Forbidden: updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden
  [1]
  $ kubectl patch deployment web --type=json -p '[{"op":"add","path":"/spec/template/spec/containers/-","value":{"name":"more","image":"more"}}]'
  deployment.apps/web patched
  $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"containers":[{"name":"more","$patch":"delete"}]}}}}'
  deployment.apps/web patched
  $ kubectl patch deployment web -p '{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"side"},{"name":"nginx"}],"containers":[{"name":"side","image":"side"}]}}}}'
  deployment.apps/web patched
  $ kubectl get deployment web -o jsonpath='{.spec.template.spec.containers[*].name}{"\n"}'
  side nginx
  $ kubectl patch service outer -p '{"spec":{"ports":[{"port":80,"protocol":"TCP","name":"x"}]}}'
  service/outer patched
  $ kubectl patch service inner -p '{"spec":{"type":"LoadBalancer"}}'
  service/inner patched
  $ kubectl get service inner
  NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)  AGE
  inner  LoadBalancer  <ip>  <pending>  80:<port>/TCP  <age>
  $ kubectl patch service inner --subresource=status --type=merge -p '{"status":{"loadBalancer":{"ingress":[{"ip":"192.0.2.1"}]}}}'
  service/inner patched
  $ kubectl get service inner
  NAME  TYPE  CLUSTER-IP  EXTERNAL-IP  PORT(S)  AGE
  inner  LoadBalancer  <ip>  192.0.2.1  80:<port>/TCP  <age>
  $ kubectl patch service inner -p '{"spec":{"type":"ClusterIP"}}'
  service/inner patched
  $ kubectl get service inner -o jsonpath='{.spec.type} {.status}{"\n"}'
  ClusterIP {"loadBalancer":{}}

Changed as they must not be.

  $ kubectl patch pod one -p '{"spec":{"containers":[{"name":"one","image":"busybox:2"}]}}'
  pod/one patched
  $ kubectl patch pod one -p '{"spec":{"restartPolicy":"Always"}}'
  The Pod "one" is invalid: spec: Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)
  @@ -142,7 +142,7 @@
     }
    ],
    "EphemeralContainers": null,
  - "RestartPolicy": "Never",
  + "RestartPolicy": "Always",
    "TerminationGracePeriodSeconds": 30,
    "ActiveDeadlineSeconds": null,
    "DNSPolicy": "ClusterFirst",
  [1]
  $ kubectl patch pod one --type=json -p '[{"op":"remove","path":"/spec/containers"}]'
  The Pod "one" is invalid:
  * spec.containers: Required value
  * spec.containers: Forbidden: pod updates may not add or remove containers
  [1]
  $ kubectl patch service web -p '{"spec":{"clusterIP":"10.0.1.250"}}'
  The Service "web" is invalid: spec.clusterIPs[0]: Invalid value: ["10.0.1.250"]: may not change once set
  [1]
  $ kubectl patch service web -p '{"spec":{"type":"NodePort"}}'
  service/web patched
  $ kubectl get service web -o jsonpath='{.spec.type}{"\n"}'
  NodePort
  $ kubectl patch limitrange limits --type=merge -p '{"spec":{"limits":[{"type":"Container","max":{"cpu":"10m"}}]}}'
  limitrange/limits patched
  $ kubectl run big --image=i
  pod/big created
  $ kubectl delete limitrange limits
  limitrange "limits" deleted from workloads namespace
  $ kubectl create quota cap --hard=services=1
  resourcequota/cap created
  $ kubectl delete priorityclass workloads-high
  priorityclass.scheduling.k8s.io "workloads-high" deleted
  $ kubectl delete pod one --grace-period=0 --force
  Warning: Immediate deletion does not wait for confirmation that the running resource has been terminated. The resource may continue to run on the cluster indefinitely.
  pod "one" force deleted from workloads namespace
  $ kubectl delete pod two --now
  pod "two" deleted from workloads namespace
  $ kubectl delete deployments,services,jobs --all
  deployment.apps "web" deleted from workloads namespace
  service "ahead" deleted from workloads namespace
  service "far" deleted from workloads namespace
  service "headless" deleted from workloads namespace
  service "inner" deleted from workloads namespace
  service "outer" deleted from workloads namespace
  service "two" deleted from workloads namespace
  service "web" deleted from workloads namespace
  service "web-open" deleted from workloads namespace
  job.batch "again" deleted from workloads namespace
  job.batch "once" deleted from workloads namespace
  $ kubectl get all -o name
  pod/big
  replicationcontroller/old
  daemonset.apps/all
  replicaset.apps/few
  statefulset.apps/set
  horizontalpodautoscaler.autoscaling/web
  cronjob.batch/often
