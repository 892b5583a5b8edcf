use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubewright_apimachinery::yaml;

use super::*;

fn order(pod: &str) -> Order {
    let pod: Pod = serde_json::from_value(yaml::decode(pod).expect("YAML").value).expect("a pod");
    let container = pod.spec.as_ref().expect("a specification").containers[0].clone();
    Order {
        pod: Arc::new(pod),
        container: Arc::new(container),
        is_init: false,
        number: 3,
        addresses: Vec::new(),
        host: std::net::Ipv4Addr::LOCALHOST.into(),
    }
}

#[test]
fn a_container_is_asked_for_as_kubelet_does() {
    let order = order(
        "{metadata: {name: p, namespace: shop, uid: u1},
          spec: {terminationGracePeriodSeconds: 7, containers: [{
            name: c, image: 'busybox:1', command: [sh, -c], args: ['echo $(GREETING) $(OTHER)'],
            terminationMessagePath: /dev/termination-log, terminationMessagePolicy: File,
            workingDir: /tmp, stdin: true, ports: [{containerPort: 80}],
            lifecycle: {preStop: {exec: {command: ['true']}}}}]}}",
    );
    let parts = Parts {
        owner: "/node".to_owned(),
        image: Image { id: "sha256:1".to_owned(), ..Image::default() },
        variables: BTreeMap::from([("GREETING".to_owned(), "hello".to_owned())]),
        mounts: Vec::new(),
        target: None,
        memory_bytes: 1 << 30,
        profiles: PathBuf::new(),
    };
    let config = config(&order, parts).expect("it can be");
    assert_eq!(config.command, ["sh", "-c"]);
    assert_eq!(config.args, ["echo hello $(OTHER)"]);
    assert_eq!(config.log_path, "c/3.log");
    assert!(config.stdin && !config.tty);
    let image = config.image.expect("an image");
    assert_eq!(
        (image.image.as_str(), image.user_specified_image.as_str()),
        ("sha256:1", "busybox:1")
    );
    assert_eq!(config.labels.get(NAME).map(String::as_str), Some("c"));
    let annotations = [
        (RESTARTS, "3"),
        (MESSAGE_PATH, "/dev/termination-log"),
        (MESSAGE_POLICY, "File"),
        (GRACE, "7"),
        (PORTS, r#"[{"containerPort":80}]"#),
        (PRE_STOP, r#"{"exec":{"command":["true"]}}"#),
    ];
    for (key, value) in annotations {
        assert_eq!(config.annotations.get(key).map(String::as_str), Some(value), "{key}");
    }
}

#[test]
fn volumes_are_where_the_container_wants_them() {
    let order = order(
        "{spec: {containers: [{name: c, volumeMounts: [
            {name: data, mountPath: /data, readOnly: true},
            {name: logs, mountPath: logs, subPathExpr: $(POD), mountPropagation: HostToContainer}
          ]}]}}",
    );
    let variables = BTreeMap::from([("POD".to_owned(), "p-0".to_owned())]);
    let mounts = mounts(&order.pod, &order.container, &variables, |volume, path| {
        Ok(PathBuf::from("/volumes").join(volume).join(path))
    });
    let mounts = mounts.expect("they are there");
    assert_eq!((mounts[0].host_path.as_str(), mounts[0].readonly), ("/volumes/data/", true));
    assert_eq!(mounts[1].container_path, "/logs");
    assert_eq!(mounts[1].host_path, "/volumes/logs/p-0");
    assert_eq!(mounts[1].propagation(), MountPropagation::PropagationHostToContainer);
    let missing =
        super::mounts(&order.pod, &order.container, &variables, |volume, _| Err(volume.to_owned()));
    assert_eq!(missing, Err("data".to_owned()));
}

/// A container that could write in them had the agent remove what its links lead to.
#[test]
fn what_the_node_fills_is_read_only_whatever_a_container_asks_for() {
    let order = order(
        "{spec: {
          volumes: [
            {name: map, configMap: {name: m}}, {name: secret, secret: {secretName: s}},
            {name: token, projected: {sources: []}}, {name: own, downwardAPI: {items: []}},
            {name: kept, persistentVolumeClaim: {claimName: c, readOnly: true}},
            {name: claim, persistentVolumeClaim: {claimName: c}}, {name: empty, emptyDir: {}}],
          containers: [{name: c, volumeMounts: [
            {name: map, mountPath: /a}, {name: secret, mountPath: /b, readOnly: false},
            {name: token, mountPath: /c}, {name: own, mountPath: /d}, {name: kept, mountPath: /e},
            {name: claim, mountPath: /f}, {name: empty, mountPath: /g}]}]}}",
    );
    let mounts = mounts(&order.pod, &order.container, &BTreeMap::new(), |volume, _| {
        Ok(PathBuf::from(volume))
    });
    let read_only: Vec<bool> =
        mounts.expect("they are there").iter().map(|it| it.readonly).collect();
    assert_eq!(read_only, [true, true, true, true, true, false, false]);
}
