use super::*;

/// Made with rcgen: CN=system:node:a, O=system:nodes, DNS a, IP 10.0.0.1.
fn made() -> String {
    let mut params =
        rcgen::CertificateParams::new(vec!["a".to_owned(), "10.0.0.1".to_owned()]).expect("names");
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, "system:node:a");
    params.distinguished_name.push(rcgen::DnType::OrganizationName, "system:nodes");
    let key = rcgen::KeyPair::generate().expect("a key");
    params.serialize_request(&key).expect("a request").pem().expect("PEM")
}

#[test]
fn a_request_tells_who_asks_for_what() {
    let request = Request::read(made().as_bytes()).expect("read");
    assert_eq!(request.common_name, "system:node:a");
    assert_eq!(request.organizations, ["system:nodes"]);
    assert_eq!((request.dns_names, request.addresses, request.emails, request.uris), (1, 1, 0, 0));
    assert!(!request.der.is_empty());
}

#[test]
fn what_is_no_request_is_not_read() {
    assert_eq!(Request::read(b"hello"), Err(ReadError::Pem));
    let other = made().replace("CERTIFICATE REQUEST", "CERTIFICATE");
    assert_eq!(Request::read(other.as_bytes()), Err(ReadError::Pem));
    let empty = "-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE REQUEST-----\n";
    assert_eq!(Request::read(empty.as_bytes()), Err(ReadError::Malformed));
}
