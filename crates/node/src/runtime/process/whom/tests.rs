use k8s_openapi::api::core::v1::PodSpec;
use kubewright_apimachinery::yaml;

use super::*;

/// `is_root` is whether the agent is.
fn check(is_root: bool, pods: &str, own: &str, expected: &str) {
    let spec = format!(
        "{{securityContext: {{{pods}}}, containers: [{{name: c, securityContext: {{{own}}}}}]}}"
    );
    let value = yaml::decode(&spec).unwrap_or_else(|error| panic!("{error}")).value;
    let spec: PodSpec = serde_json::from_value(value).expect("a specification");
    let mut pod = Pod { spec: Some(spec), ..Pod::default() };
    pod.metadata.name = Some("p".to_owned());
    pod.metadata.namespace = Some("d".to_owned());
    pod.metadata.uid = Some("u".to_owned());
    let container = pod.spec.as_ref().expect("a spec").containers[0].clone();
    let told = match Whom::of(&pod, &container, is_root) {
        Ok(whom) => whom.words().join(" "),
        Err(why) => why,
    };
    assert_eq!(told, expected, "{pods} {own}");
}

#[test]
fn containers_run_as_whom_they_or_their_pods_name() {
    check(true, "", "", "");
    check(true, "runAsUser: 1234", "", "setpriv --reuid=1234 --regid=1234 --clear-groups --");
    check(
        true,
        "runAsUser: 1234, runAsGroup: 7, fsGroup: 9, supplementalGroups: [11, 12]",
        "runAsUser: 5",
        "setpriv --reuid=5 --regid=7 --groups=9,11,12 --",
    );
    check(true, "fsGroup: 9", "", "setpriv --groups=9 --");
}

#[test]
fn root_is_refused_where_it_must_not_be() {
    let image = "container has runAsNonRoot and image will run as root \
                 (pod: \"p_d(u)\", container: c)";
    check(true, "runAsNonRoot: true", "", image);
    check(true, "", "runAsNonRoot: true", image);
    check(true, "runAsNonRoot: true", "runAsNonRoot: false", "");
    let named = "container's runAsUser breaks non-root policy (pod: \"p_d(u)\", container: c)";
    check(true, "runAsNonRoot: true", "runAsUser: 0", named);
    check(
        true,
        "runAsNonRoot: true, runAsUser: 1234",
        "",
        "setpriv --reuid=1234 --regid=1234 --clear-groups --",
    );
    // Who is not root does not run anything as root.
    check(false, "runAsNonRoot: true", "", "");
}

#[test]
fn a_user_is_at_home_where_the_machine_says() {
    let users =
        "root:x:0:0:root:/root:/bin/sh\nodd\nweb:x:33:33::/var/www:/bin/false\nno:x:7:7:::\n";
    assert_eq!(home(users, 0), "/root");
    assert_eq!(home(users, 33), "/var/www");
    assert_eq!(home(users, 7), "/");
    assert_eq!(home(users, 1234), "/");
}
