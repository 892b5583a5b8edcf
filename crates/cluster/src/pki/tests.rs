//! Certificates as another library reads them.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use x509_parser::prelude::{FromDer as _, GeneralName, X509Certificate};

use super::*;

/// 2026-01-01.
const NOW: Duration = Duration::from_secs(1_767_225_600);
const YEAR: Duration = Duration::from_hours(365 * 24);
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn der(pair: &Pair) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pair.certificate.as_bytes()).expect("a certificate")
}

fn is_client_of(client: &Pair, authority: &Pair, now: Duration) -> bool {
    let mut roots = RootCertStore::empty();
    roots.add(der(authority)).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .build()
        .expect("a verifier");
    let now = UnixTime::since_unix_epoch(now);
    verifier.verify_client_cert(&der(client), &[], now).is_ok()
}

#[test]
fn the_admin_is_a_client_of_the_authority_for_a_year() {
    let pki = Pki::in_memory(LOOPBACK, NOW).expect("keys");
    assert!(is_client_of(&pki.admin, &pki.ca, NOW));
    assert!(!is_client_of(&pki.admin, &pki.ca, NOW + YEAR + Duration::from_secs(1)));
    assert!(!is_client_of(&pki.admin, &pki.front_proxy_ca, NOW));
    assert!(is_client_of(&pki.front_proxy_client, &pki.front_proxy_ca, NOW));
    assert!(is_client_of(&pki.kubelet_client, &pki.ca, NOW));
    assert!(!is_client_of(&pki.server, &pki.ca, NOW), "a server is no client");

    let der = der(&pki.admin);
    let (_, admin) = X509Certificate::from_der(&der).expect("a certificate");
    assert_eq!(admin.subject().to_string(), "O=system:masters, CN=kubernetes-admin");
}

#[test]
fn the_server_answers_to_every_name_clients_use() {
    let pki = Pki::in_memory("192.0.2.7".parse().expect("an address"), NOW).expect("keys");
    let der = der(&pki.server);
    let (_, server) = X509Certificate::from_der(&der).expect("a certificate");
    let names = server.subject_alternative_name().expect("readable").expect("there");
    let names: Vec<String> = names
        .value
        .general_names
        .iter()
        .map(|name| match name {
            GeneralName::DNSName(name) => (*name).to_owned(),
            GeneralName::IPAddress(octets) => format!("{octets:?}"),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        names,
        [
            "localhost",
            "kubernetes",
            "kubernetes.default",
            "kubernetes.default.svc",
            "kubernetes.default.svc.cluster",
            "kubernetes.default.svc.cluster.local",
            "[127, 0, 0, 1]",
            "[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]",
            "[10, 0, 0, 1]",
            "[192, 0, 2, 7]",
        ]
    );
}

#[test]
fn keys_are_kept_for_their_owner_alone_and_renewed_when_they_must_be() {
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path().join("pki");
    let make = |address: &str, now| {
        Pki::in_dir(&dir, address.parse().expect("an address"), now).expect("keys")
    };
    let first = make("127.0.0.1", NOW);
    for entry in std::fs::read_dir(&dir).expect("a directory") {
        let mode = entry.expect("a file").metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    let again = make("127.0.0.1", NOW + YEAR / 2);
    assert!(again.server == first.server && again.admin == first.admin);
    assert_eq!(again.service_account_key, first.service_account_key);

    let elsewhere = make("192.0.2.7", NOW);
    assert!(elsewhere.server != first.server, "it is served at a new address");
    assert!(elsewhere.ca == first.ca && elsewhere.admin == first.admin);

    let late = make("192.0.2.7", NOW + YEAR - Duration::from_hours(24));
    assert!(late.server != elsewhere.server && late.admin != elsewhere.admin);
    assert!(late.ca == first.ca, "clients still trust it");
    assert!(is_client_of(&late.admin, &first.ca, NOW + YEAR));
}

#[test]
fn a_server_that_joins_a_cluster_has_its_roots_and_certificates_of_its_own() {
    let dir = tempfile::tempdir().expect("a directory");
    let first = Pki::in_memory(LOOPBACK, NOW).expect("keys");
    let alone = Pki::in_dir(dir.path(), LOOPBACK, NOW).expect("keys");
    let joined = Pki::adopt(dir.path(), &first.roots(), LOOPBACK, NOW).expect("keys");
    assert!(joined.roots() == first.roots() && joined.roots() != alone.roots());
    assert!(is_client_of(&joined.admin, &first.ca, NOW));
    assert!(is_client_of(&joined.front_proxy_client, &first.front_proxy_ca, NOW));
    assert_eq!(joined.service_account_public_key, first.service_account_public_key);
    let again = Pki::in_dir(dir.path(), LOOPBACK, NOW).expect("keys");
    assert!(again.roots() == first.roots() && again.server == joined.server, "it stays so");
}
