use k8s_openapi::api::core::v1::{PodSecurityContext, PodSpec, Sysctl};

use super::*;

fn check(name: &str, (host_network, host_ipc): (bool, bool), expected: Option<&str>) {
    let sysctl = Sysctl { name: name.to_owned(), value: "1".to_owned() };
    let context = PodSecurityContext { sysctls: Some(vec![sysctl]), ..Default::default() };
    let spec = PodSpec {
        security_context: Some(context),
        host_network: Some(host_network),
        host_ipc: Some(host_ipc),
        ..PodSpec::default()
    };
    let pod = Pod { spec: Some(spec), ..Pod::default() };
    assert_eq!(refusal(&pod).as_deref(), expected, "{name}");
}

#[test]
fn a_pod_has_settings_that_are_its_own() {
    check("kernel.shm_rmid_forced", (true, false), None);
    check("net/ipv4/tcp_syncookies", (false, true), None);
    check(
        "kernel.msgmax",
        (false, false),
        Some("forbidden sysctl: \"kernel.msgmax\" not allowlisted"),
    );
    check(
        "net/ipv4/tcp_syncookies",
        (true, false),
        Some("forbidden sysctl: \"net.ipv4.tcp_syncookies\" not allowed with host Net enabled"),
    );
    check(
        "kernel.shm_rmid_forced",
        (false, true),
        Some("forbidden sysctl: \"kernel.shm_rmid_forced\" not allowed with host IPC enabled"),
    );
}

#[test]
fn names_have_dots_between_their_parts() {
    assert_eq!(normal("net.ipv4.conf.eno2/100.rp_filter"), "net.ipv4.conf.eno2/100.rp_filter");
    assert_eq!(normal("net/ipv4/conf/eno2.100/rp_filter"), "net.ipv4.conf.eno2/100.rp_filter");
    assert_eq!(normal("plain"), "plain");
}
