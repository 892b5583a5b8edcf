use std::net::{IpAddr, Ipv4Addr};

use kubewright_apimachinery::yaml;

use super::*;

fn pod(text: &str) -> Pod {
    serde_json::from_value(yaml::decode(text).expect("YAML").value).expect("a pod")
}

fn resolver() -> Resolver {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    Resolver {
        cluster: Some(IpAddr::V4(Ipv4Addr::new(169, 254, 20, 10))),
        domain: "cluster.local".to_owned(),
        host: DnsConfig {
            servers: words(&["192.0.2.1"]),
            searches: words(&["corp.test"]),
            options: words(&["rotate"]),
        },
    }
}

/// The file that a pod gets, in one line.
fn check_names(spec: &str, expected: &str) {
    let pod = pod(&format!("{{metadata: {{name: p, namespace: shop}}, spec: {spec}}}"));
    let DnsConfig { servers, searches, options } = resolver().config(&pod);
    let text = format!("{} / {} / {}", servers.join(" "), searches.join(" "), options.join(" "));
    assert_eq!(text, expected, "{spec}");
}

#[test]
fn names_are_found_as_the_policy_says() {
    let of_cluster = "169.254.20.10 / shop.svc.cluster.local svc.cluster.local cluster.local \
                      corp.test / ndots:5";
    check_names("{containers: []}", of_cluster);
    check_names("{containers: [], dnsPolicy: ClusterFirst}", of_cluster);
    check_names(
        "{containers: [], dnsPolicy: ClusterFirstWithHostNet, hostNetwork: true}",
        of_cluster,
    );
    let of_host = "192.0.2.1 / corp.test / rotate";
    check_names("{containers: [], dnsPolicy: ClusterFirst, hostNetwork: true}", of_host);
    check_names("{containers: [], dnsPolicy: Default}", of_host);
    check_names(
        "{containers: [], dnsPolicy: None, dnsConfig: {nameservers: [192.0.2.9],
          searches: [a.test], options: [{name: ndots, value: '2'}, {name: edns0}]}}",
        "192.0.2.9 / a.test / ndots:2 edns0",
    );
    check_names(
        "{containers: [], dnsConfig: {nameservers: [169.254.20.10, 192.0.2.9],
          options: [{name: ndots, value: '2'}]}}",
        "169.254.20.10 192.0.2.9 / shop.svc.cluster.local svc.cluster.local cluster.local \
         corp.test / ndots:2",
    );
}

#[test]
fn a_sandbox_is_labelled_as_kubelet_does() {
    let pod = pod(
        "{metadata: {name: p, namespace: shop, uid: u1, labels: {app: web}, annotations: {a: b}},
          spec: {containers: [{name: c, ports: [{containerPort: 80, hostPort: 8080},
                                                {containerPort: 53, protocol: UDP}]}]}}",
    );
    let config = config(&pod, 2, "/node", Path::new("/logs/shop_p_u1"), &resolver());
    let metadata = config.metadata.expect("it is named");
    assert_eq!((metadata.uid.as_str(), metadata.attempt), ("u1", 2));
    assert_eq!(config.hostname, "p");
    let labels = [(POD_NAME, "p"), (POD_NAMESPACE, "shop"), (POD_UID, "u1"), ("app", "web")];
    for (key, value) in labels {
        assert_eq!(config.labels.get(key).map(String::as_str), Some(value));
    }
    assert_eq!(config.annotations.get("a").map(String::as_str), Some("b"));
    let ports: Vec<_> =
        config.port_mappings.iter().map(|it| (it.host_port, it.container_port)).collect();
    assert_eq!(ports, [(8080, 80)]);
}
