//! Certificates by value: what is kept, and what becomes of it as time passes.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use prometheus_client::registry::Registry;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier as _;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, RootCertStore};
use tokio_util::sync::CancellationToken;

use super::*;

const DAY: Duration = Duration::from_hours(24);

fn wanted() -> Wanted {
    Wanted::for_service("ns", "svc")
}

fn start() -> Timestamp {
    "2026-01-01T00:00:00Z".parse().expect("a time")
}

/// What a client says that believes a bundle, has come to a name, and was shown a certificate.
fn verify(bundle: &str, pair: &Pair, name: &str, now: Timestamp) -> Result<(), rustls::Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(bundle.as_bytes()) {
        roots.add(certificate.expect("a certificate")).expect("an authority");
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).expect("one");
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let now = UnixTime::since_unix_epoch(Duration::from_secs(now.as_second() as u64));
    let verifier = verifier.build().expect("a verifier");
    verifier.verify_server_cert(&certificate, &[], &name, &[], now).map(drop)
}

#[test]
fn a_certificate_is_good_for_its_names_and_its_time() {
    let kept = plan(&Kept::default(), &wanted(), false, start()).expect("certificates");
    let check =
        |name: &str, after: Duration| verify(&kept.bundle(), &kept.serving, name, start() + after);
    assert_eq!(check("svc.ns.svc", Duration::ZERO), Ok(()));
    assert_eq!(check("svc.ns.svc.cluster.local", 89 * DAY), Ok(()));
    let expired = check("svc.ns.svc", 91 * DAY).expect_err("it is over");
    let is_expired = matches!(
        expired,
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. }
        )
    );
    assert!(is_expired, "{expired:?}");
    check("other.ns.svc", Duration::ZERO).expect_err("it is for another name");

    let local = plan(&Kept::default(), &Wanted::for_localhost(), false, start()).expect("some");
    for name in ["localhost", "127.0.0.1", "::1"] {
        assert_eq!(verify(&local.bundle(), &local.serving, name, start()), Ok(()), "{name}");
    }
}

#[test]
fn what_is_good_is_kept_and_survives_a_secret() {
    let kept = plan(&Kept::default(), &wanted(), false, start()).expect("certificates");
    let again = plan(&kept, &wanted(), true, start() + 59 * DAY).expect("certificates");
    assert_eq!(again, kept);
    assert_eq!(Kept::read(&kept.write()), kept);
    let rotating = plan(&kept, &wanted(), true, start() + 250 * DAY).expect("certificates");
    assert!(rotating.next.is_some());
    assert_eq!(Kept::read(&rotating.write()), rotating);
}

#[test]
fn a_certificate_is_replaced_in_time_or_for_other_names() {
    let kept = plan(&Kept::default(), &wanted(), false, start()).expect("certificates");
    let later = plan(&kept, &wanted(), true, start() + 61 * DAY).expect("certificates");
    assert_eq!(later.authority, kept.authority);
    assert_ne!(later.serving, kept.serving);
    let moved = Wanted::for_service("ns", "other");
    let moved = plan(&kept, &moved, true, start()).expect("certificates");
    assert_eq!(moved.authority, kept.authority);
    assert_eq!(verify(&kept.bundle(), &moved.serving, "other.ns.svc", start()), Ok(()));
}

#[test]
fn what_cannot_be_read_is_made_anew_and_the_former_is_believed_further() {
    let kept = plan(&Kept::default(), &wanted(), false, start()).expect("certificates");
    let mut broken = kept.clone();
    broken.authority.key = "nonsense".to_owned();
    let mended = plan(&broken, &wanted(), true, start()).expect("certificates");
    assert_ne!(mended.authority, kept.authority);
    assert_eq!(mended.believed.len(), 2);
    assert_eq!(verify(&mended.bundle(), &kept.serving, "svc.ns.svc", start()), Ok(()));
    assert_eq!(verify(&mended.bundle(), &mended.serving, "svc.ns.svc", start()), Ok(()));
}

/// Lives through a month with authorities of ten days, an hour at a time. Whoever believes what was
/// told an hour ago believes what is shown now, and whoever believes what is told now believes what
/// was shown an hour ago: nobody need be faster than that.
#[test]
fn at_no_time_is_somebody_shown_whom_nobody_believes() {
    let lifetimes = Lifetimes {
        authority: 10 * DAY,
        serving: Duration::from_hours(60),
        overlap: Duration::from_hours(1),
    };
    let wanted = Wanted { lifetimes, ..wanted() };
    let mut kept = plan(&Kept::default(), &wanted, false, start()).expect("certificates");
    let (mut authorities, mut now) = (1, start());
    for _ in 0..30 * 24 {
        now += Duration::from_hours(1);
        let next = plan(&kept, &wanted, true, now).expect("certificates");
        for (told, shown) in [(&kept, &next), (&next, &kept), (&next, &next)] {
            let verdict = verify(&told.bundle(), &shown.serving, "svc.ns.svc", now);
            assert_eq!(verdict, Ok(()), "{now}");
        }
        authorities += usize::from(next.authority != kept.authority);
        assert!(next.believed.len() <= 3, "those who are over go");
        kept = next;
    }
    assert_eq!(authorities, 5, "each signs for two thirds of its time");
}

#[test]
fn the_next_authority_signs_only_when_everybody_was_told() {
    let kept = plan(&Kept::default(), &wanted(), false, start()).expect("certificates");
    let late = start() + 250 * DAY;
    let rotating = plan(&kept, &wanted(), true, late).expect("certificates");
    let waiting = plan(&rotating, &wanted(), false, late + DAY).expect("certificates");
    assert_eq!(waiting.authority, kept.authority);
    let done = plan(&waiting, &wanted(), true, late + DAY).expect("certificates");
    assert_eq!(Some(&done.authority), rotating.next.as_ref());
    // Unless there is nobody else left to sign.
    let over = plan(&rotating, &wanted(), false, start() + 366 * DAY).expect("certificates");
    assert_eq!(Some(&over.authority), rotating.next.as_ref());
}

#[tokio::test(start_paused = true)]
async fn a_certificate_in_a_directory_is_read_again_and_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |kept: &Kept| {
        fs::write(folder.path().join("tls.crt"), &kept.serving.certificate).expect("written");
        fs::write(folder.path().join("tls.key"), &kept.serving.key).expect("written");
    };
    let (current, shutdown) = (Current::new(), CancellationToken::new());
    let mut registry = Registry::default();
    let metrics = Arc::new(Metrics::new(&mut registry));
    let directory = Directory::new(folder.path());
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(directory.run(current.clone(), metrics, shutdown.clone()));

    // Waits until the problem begins like this, or is none.
    let settled = async |expected: Option<String>| {
        let settled = async {
            let is_settled = |problem: Option<String>| match (&problem, &expected) {
                (Some(problem), Some(expected)) => problem.starts_with(expected),
                (problem, expected) => problem == expected,
            };
            while !is_settled(current.problem()) {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        let settled = tokio::time::timeout(Duration::from_secs(60), settled).await;
        assert!(settled.is_ok(), "{:?} instead of {expected:?}", current.problem());
    };
    let path = folder.path().display();
    settled(Some(format!("read {path}/tls.crt: "))).await;
    let kept = plan(&Kept::default(), &wanted(), false, start()).expect("certificates");
    put(&kept);
    settled(None).await;
    // What is broken later is told, and the former is shown further.
    fs::write(folder.path().join("tls.key"), "nonsense").expect("written");
    settled(Some(format!("use the certificate in {path}: "))).await;
    assert_eq!(current.certificate(), Some(kept.serving.certificate));
    assert!(current.check().ask().await.is_err());
    put(&plan(&Kept::default(), &wanted(), false, start()).expect("certificates"));
    settled(None).await;
    shutdown.cancel();
    tasks.join_all().await;
    let mut counted = String::new();
    prometheus_client::encoding::text::encode(&mut counted, &registry).expect("metrics");
    let count = |name: &str| -> u32 {
        let line = counted.lines().find_map(|line| line.strip_prefix(name));
        line.expect("counted").trim().parse().expect("a number")
    };
    let errors = count("certwatcher_read_certificate_errors_total");
    assert!(errors >= 2 && count("certwatcher_read_certificate_total") >= errors + 2, "{counted}");
}
