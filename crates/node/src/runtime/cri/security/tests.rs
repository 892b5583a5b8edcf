use kubewright_apimachinery::yaml;

use super::*;

fn of(pod: &str, image: &Image) -> Result<LinuxContainerSecurityContext, String> {
    let pod: Pod = serde_json::from_value(yaml::decode(pod).expect("YAML").value).expect("a pod");
    let container = pod.spec.as_ref().expect("a specification").containers[0].clone();
    of_container(&pod, &container, image, None, Path::new("/node/seccomp"))
}

fn image(uid: Option<i64>, username: &str) -> Image {
    Image { uid: uid.map(number), username: username.to_owned(), ..Image::default() }
}

#[test]
fn what_a_container_says_counts_more_than_what_its_pod_says() {
    let context = of(
        "{spec: {
           securityContext: {runAsUser: 1, runAsGroup: 2, fsGroup: 3, supplementalGroups: [4],
                             seccompProfile: {type: RuntimeDefault}},
           containers: [{name: a, securityContext: {
             runAsUser: 1000, readOnlyRootFilesystem: true, allowPrivilegeEscalation: false,
             capabilities: {add: [NET_ADMIN], drop: [ALL]}}}]}}",
        &image(Some(0), ""),
    );
    let context = context.expect("it can be");
    assert_eq!(context.run_as_user, Some(number(1000)));
    assert_eq!(context.run_as_group, Some(number(2)));
    assert_eq!(context.supplemental_groups, [3, 4]);
    assert!(context.readonly_rootfs && context.no_new_privs && !context.privileged);
    assert_eq!(context.seccomp, Some(profile(ProfileType::RuntimeDefault)));
    let capabilities = context.capabilities.expect("some");
    assert_eq!(capabilities.add_capabilities, ["NET_ADMIN"]);
    assert_eq!(capabilities.drop_capabilities, ["ALL"]);
}

#[test]
fn an_image_says_whom_it_runs_as_if_nobody_else_does() {
    let pod = "{spec: {containers: [{name: a}]}}";
    let by_number = of(pod, &image(Some(65532), "")).expect("it can be");
    assert_eq!(by_number.run_as_user, Some(number(65532)));
    let by_name = of(pod, &image(None, "www")).expect("it can be");
    assert_eq!((by_name.run_as_user, by_name.run_as_username.as_str()), (None, "www"));
    assert_eq!(by_name.seccomp, Some(profile(ProfileType::Unconfined)));
    assert_eq!(by_name.masked_paths.len(), MASKED.len());
}

/// The runtime was told the end of the path, and looked for it from where it was started.
#[test]
fn a_profile_of_the_node_is_below_its_root() {
    let seccomp = |profile: &str| {
        let pod = format!(
            "{{spec: {{containers: [{{name: a, securityContext: {{seccompProfile: {profile}}}}}]}}}}"
        );
        of(&pod, &image(None, "")).map(|context| context.seccomp.expect("one"))
    };
    let found = seccomp("{type: Localhost, localhostProfile: teams/a.json}").expect("it can be");
    assert_eq!(found.profile_type(), ProfileType::Localhost);
    assert_eq!(found.localhost_ref, "/node/seccomp/teams/a.json");
    let why = "localhostProfile must be set if seccompProfile type is Localhost.";
    assert_eq!(seccomp("{type: Localhost}"), Err(why.to_owned()));
    let unconfined = seccomp("{type: Unconfined}").expect("it can be");
    assert_eq!(unconfined, profile(ProfileType::Unconfined));
}

#[test]
fn who_must_not_be_root_is_not() {
    let check = |context: &str, image: &Image, expected: Option<&str>| {
        let pod = format!(
            "{{metadata: {{name: p, namespace: ns, uid: u}},
               spec: {{containers: [{{name: a, securityContext: {context}}}]}}}}"
        );
        assert_eq!(of(&pod, image).err().as_deref(), expected, "{context}");
    };
    let place = "(pod: \"p_ns(u)\", container: a)";
    check(
        "{runAsNonRoot: true, runAsUser: 0}",
        &image(None, ""),
        Some(&format!("container's runAsUser breaks non-root policy {place}")),
    );
    check(
        "{runAsNonRoot: true}",
        &image(Some(0), ""),
        Some(&format!("container has runAsNonRoot and image will run as root {place}")),
    );
    check(
        "{runAsNonRoot: true}",
        &image(None, "www"),
        Some(&format!(
            "container has runAsNonRoot and image has non-numeric user (www), cannot verify user \
             is non-root {place}"
        )),
    );
    check("{runAsNonRoot: true, runAsUser: 7}", &image(Some(0), ""), None);
    check("{runAsNonRoot: true}", &image(Some(7), ""), None);
}

#[test]
fn a_pod_shares_with_its_node_what_it_says() {
    let check = |spec: &str, expected: (NamespaceMode, NamespaceMode, NamespaceMode)| {
        let pod = yaml::decode(&format!("{{spec: {spec}}}")).expect("YAML").value;
        let pod: Pod = serde_json::from_value(pod).expect("a pod");
        let options = namespaces(&pod, None);
        assert_eq!((options.network(), options.pid(), options.ipc()), expected, "{spec}");
    };
    use NamespaceMode::{Container, Node, Pod as Shared};
    check("{containers: []}", (Shared, Container, Shared));
    check("{containers: [], hostNetwork: true, hostPID: true, hostIPC: true}", (Node, Node, Node));
    check("{containers: [], shareProcessNamespace: true}", (Shared, Shared, Shared));
}
