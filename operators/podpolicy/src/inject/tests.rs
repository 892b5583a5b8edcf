use k8s_openapi::api::core::v1::PodSpec;

use super::*;

fn pod(containers: &[&str]) -> Pod {
    let container = |name: &&str| Container { name: (*name).to_owned(), ..Container::default() };
    let containers = containers.iter().map(container).collect();
    Pod { spec: Some(PodSpec { containers, ..PodSpec::default() }), ..Pod::default() }
}

/// The containers of a pod after it was seen to.
fn check(pod: &mut Pod, expected: &[&str]) {
    inject(pod, &sidecar("agent:1"));
    let spec = pod.spec.as_ref().expect("a spec");
    let names: Vec<_> = spec.containers.iter().map(|container| container.name.as_str()).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_pod_gets_the_sidecar_once() {
    let mut pod = pod(&["app"]);
    check(&mut pod, &["app", SIDECAR]);
    let once = pod.clone();
    check(&mut pod, &["app", SIDECAR]);
    assert_eq!(pod, once);
}

#[test]
fn all_containers_share_the_logs() {
    let mut pod = pod(&["one", "two"]);
    check(&mut pod, &["one", "two", SIDECAR]);
    let spec = pod.spec.expect("a spec");
    assert_eq!(spec.volumes.expect("volumes").len(), 1);
    for container in spec.containers {
        let mounts = container.volume_mounts.expect("mounts");
        assert_eq!((mounts[0].name.as_str(), mounts[0].mount_path.as_str()), (VOLUME, LOGS));
    }
}

#[test]
fn what_is_mounted_in_its_place_stays() {
    let mut pod = pod(&["app"]);
    let own = VolumeMount { name: "own".to_owned(), ..mount() };
    pod.spec.as_mut().expect("a spec").containers[0].volume_mounts = Some(vec![own.clone()]);
    check(&mut pod, &["app", SIDECAR]);
    assert_eq!(pod.spec.expect("a spec").containers[0].volume_mounts, Some(vec![own]));
}

#[test]
fn a_pod_can_do_without() {
    let mut pod = pod(&["app"]);
    let labels = BTreeMap::from([(INJECT.to_owned(), DISABLED.to_owned())]);
    pod.metadata.labels = Some(labels);
    check(&mut pod, &["app"]);
}
