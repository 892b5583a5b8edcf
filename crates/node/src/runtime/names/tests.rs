use std::net::Ipv4Addr;

use kubewright_apimachinery::yaml;

use super::*;

fn pod(text: &str) -> Pod {
    serde_json::from_value(yaml::decode(text).expect("YAML").value).expect("a pod")
}

#[test]
fn a_pod_knows_its_own_names() {
    let address = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 5));
    let file = |spec: &str| {
        let pod = pod(&format!("{{metadata: {{name: db-0, namespace: shop}}, spec: {spec}}}"));
        hosts(&pod, &[address], "cluster.local", "127.0.0.1\tlocalhost\n")
    };
    let own = file("{containers: [], subdomain: db, hostname: db-0}");
    assert!(own.ends_with("10.1.0.5\tdb-0.db.shop.svc.cluster.local\tdb-0\n"), "{own}");
    let aliased =
        file("{containers: [], hostAliases: [{ip: 192.0.2.5, hostnames: [a.test, b.test]}]}");
    let end = "10.1.0.5\tdb-0\n\n# Entries added by HostAliases.\n192.0.2.5\ta.test\tb.test\n";
    assert!(aliased.ends_with(end), "{aliased}");
    let own = file("{containers: [], subdomain: db, hostname: db-0, hostnameOverride: me.test}");
    assert!(own.ends_with("10.1.0.5\tme.test\n"), "{own}");
    let on_host = file("{containers: [], hostNetwork: true}");
    assert_eq!(on_host, "# Kubernetes-managed hosts file (host network).\n127.0.0.1\tlocalhost\n");
}

#[test]
fn a_long_name_is_cut_for_the_kernel() {
    let name = format!("{}-.x", "a".repeat(61));
    let pod = pod(&format!("{{metadata: {{name: {name}}}, spec: {{containers: []}}}}"));
    assert_eq!(kernel_hostname(&pod, "cluster.local"), "a".repeat(61));
}

#[test]
fn a_pod_may_call_itself_what_it_likes() {
    let spec = "{containers: [], subdomain: db, hostname: a, hostnameOverride: me.test}";
    let pod = pod(&format!("{{metadata: {{name: db-0, namespace: shop}}, spec: {spec}}}"));
    assert_eq!(kernel_hostname(&pod, "cluster.local"), "me.test");
}
