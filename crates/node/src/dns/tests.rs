//! Names that lead to others, beside another server.

use kubewright_apimachinery::yaml;

use super::message::{A, question};
use super::*;

/// Pods got the other name alone, and most resolvers took that for no answer.
#[tokio::test]
async fn an_external_name_comes_with_the_addresses_that_others_know() {
    let other = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a place");
    let service = "{metadata: {name: docs, namespace: default},
                    spec: {type: ExternalName, externalName: docs.example.test}}";
    let service = serde_json::from_value(yaml::decode(service).expect("YAML").value);
    let services = [Arc::new(service.expect("a service"))];
    let (_tell, zone) = watch::channel(Arc::new(Zone::new(DOMAIN, &services, &[])));
    let known = Known { zone, servers: vec![other.local_addr().expect("a place")] };
    let answering = async {
        let mut bytes = [0; 512];
        let (length, from) = other.recv_from(&mut bytes).await.expect("it is asked");
        assert_eq!(bytes[..length], question(7, "docs.example.test", A));
        // The name, another that it leads to, and its address; names refer to earlier ones.
        let mut answer = bytes[..length].to_vec();
        answer[2..8].copy_from_slice(&[0x81, 0x80, 0, 1, 0, 2]);
        answer.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 4, 1, b'x', 0xc0, 17]);
        let target = u8::try_from(length + 12).expect("it is short");
        answer.extend([0xc0, target, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 1]);
        other.send_to(&answer, from).await.expect("it is sent");
    };
    let asked = question(7, "docs.default.svc.cluster.local", A);
    let (answer, ()) = tokio::join!(known.answer(&asked, true), answering);
    let records = read_answer(&answer.expect("an answer")).expect("it is one");
    let lines: Vec<String> =
        records.iter().map(|record| format!("{} {:?}", record.name, record.data)).collect();
    assert_eq!(
        lines,
        [
            "docs.default.svc.cluster.local Cname(\"docs.example.test\")",
            "docs.example.test Cname(\"x.example.test\")",
            "x.example.test A(192.0.2.1)",
        ]
    );
}
