//! Whether a certificate and a private key belong together, in the words of Go's TLS library.

use rustls::crypto::aws_lc_rs::sign;
use rustls::pki_types::PrivateKeyDer;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::x509::SubjectPublicKeyInfo;

const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Why the two are no pair; `None` when they are.
pub(super) fn problem(certificate: &[u8], key: &[u8]) -> Option<String> {
    check(certificate, key).err()
}

fn check(certificate: &[u8], key: &[u8]) -> Result<(), String> {
    let certificate = find(certificate, |label| label == CERTIFICATE).map_err(no_certificate)?;
    let key = find(key, |label| label.ends_with(PRIVATE_KEY)).map_err(no_key)?;
    let (_, certificate) = X509Certificate::from_der(&certificate)
        .map_err(|_| "x509: malformed certificate".to_owned())?;
    let unreadable = || "tls: failed to parse private key".to_owned();
    let key = PrivateKeyDer::try_from(key).map_err(|_| unreadable())?;
    let key = sign::any_supported_type(&key).map_err(|_| unreadable())?;
    let public = key.public_key().ok_or_else(unreadable)?;
    let (_, ours) = SubjectPublicKeyInfo::from_der(&public).map_err(|_| unreadable())?;
    let theirs = &certificate.tbs_certificate.subject_pki;
    if ours.algorithm.algorithm != theirs.algorithm.algorithm {
        return Err("tls: private key type does not match public key type".to_owned());
    }
    if ours.subject_public_key.data != theirs.subject_public_key.data {
        return Err("tls: private key does not match public key".to_owned());
    }
    Ok(())
}

/// The first block that will do, or the labels of all that will not.
fn find(pem: &[u8], wanted: impl Fn(&str) -> bool) -> Result<Vec<u8>, Vec<String>> {
    let mut skipped = Vec::new();
    for block in Pem::iter_from_buffer(pem).filter_map(Result::ok) {
        if wanted(&block.label) {
            return Ok(block.contents);
        }
        skipped.push(block.label);
    }
    Err(skipped)
}

fn no_certificate(skipped: Vec<String>) -> String {
    match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in certificate input".to_owned(),
        [one] if one.ends_with(PRIVATE_KEY) => {
            "tls: failed to find certificate PEM data in certificate input, but did find a private \
             key; PEM inputs may have been switched"
                .to_owned()
        }
        several => format!(
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM \
             blocks of the following types: [{}]",
            several.join(" ")
        ),
    }
}

fn no_key(skipped: Vec<String>) -> String {
    match skipped.as_slice() {
        [] => "tls: failed to find any PEM data in key input".to_owned(),
        [one] if one == CERTIFICATE => {
            "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
        }
        several => format!(
            "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after \
             skipping PEM blocks of the following types: [{}]",
            several.join(" ")
        ),
    }
}
