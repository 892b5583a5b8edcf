use rcgen::{CertificateParams, DnType, KeyPair};
use x509_parser::pem::Pem;

use super::*;

/// How long after its signature a certificate for so long ends, and what it says of its use. Time
/// stands still meanwhile.
fn signed(lifetime: Duration, usages: &[&str]) -> (Duration, Vec<String>, String) {
    let clock = Clock::started_now();
    let authority = Authority::new("test", clock.now()).expect("an authority");
    let issuer = Pem::iter_from_buffer(authority.pair.certificate.as_bytes()).next();
    let issuer = issuer.expect("a certificate").expect("PEM");
    let mut params = CertificateParams::new(vec!["web.example.com".to_owned()]).expect("names");
    params.distinguished_name.push(DnType::CommonName, "alice");
    let key = KeyPair::generate().expect("a key");
    let request = params.serialize_request(&key).expect("a request");
    let usages: Vec<String> = usages.iter().map(|&usage| usage.to_owned()).collect();
    let order = Order { request: request.der(), usages: &usages, lifetime };
    let began = clock.now();
    let pem = Signing::new(authority, clock).sign(&order).expect("signed");

    let block = Pem::iter_from_buffer(pem.as_bytes()).next().expect("a block").expect("PEM");
    let certificate = block.parse_x509().expect("a certificate");
    let issuer = issuer.parse_x509().expect("a certificate");
    certificate.verify_signature(Some(issuer.public_key())).expect("of the authority");
    assert!(!certificate.is_ca(), "it is no authority");
    let until = u64::try_from(certificate.validity().not_after.timestamp()).expect("a time");
    let mut said = Vec::new();
    for extension in certificate.extensions() {
        said.push(extension.oid.to_id_string());
    }
    let names = certificate.subject_alternative_name().expect("read").expect("names");
    let names = format!("{:?}", names.value.general_names);
    (Duration::from_secs(until).saturating_sub(began), said, names)
}

#[tokio::test(start_paused = true)]
async fn a_request_is_signed_with_its_names_for_what_it_may_be_used() {
    let year = Duration::from_hours(365 * 24);
    let (lasts, said, names) = signed(year, &["digital signature", "client auth"]);
    assert_eq!(names, "[DNSName(\"web.example.com\")]");
    // Constraints, usage, the authority's key, purposes, names.
    assert_eq!(said, ["2.5.29.19", "2.5.29.15", "2.5.29.35", "2.5.29.37", "2.5.29.17"]);
    let short_by = year - lasts;
    // Certificates know whole seconds.
    assert!((BACKDATED..BACKDATED + Duration::from_secs(1)).contains(&short_by), "{short_by:?}");
}

#[tokio::test(start_paused = true)]
async fn a_short_certificate_lasts_as_long_as_it_says() {
    let (lasts, said, _) = signed(Duration::from_mins(10), &["server auth"]);
    assert!(lasts > Duration::from_secs(10 * 60 - 1), "{lasts:?}");
    assert!(!said.contains(&"2.5.29.15".to_owned()), "no usage of the key was asked for");
}

#[tokio::test(start_paused = true)]
async fn nothing_outlasts_its_authority() {
    let (lasts, ..) = signed(Duration::from_hours(20 * 365 * 24), &["client auth"]);
    assert!(lasts <= super::super::AUTHORITY_LIFETIME, "{lasts:?}");
}
