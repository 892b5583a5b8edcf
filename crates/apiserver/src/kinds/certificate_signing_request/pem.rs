//! Requests for certificates and certificates, as they travel in PEM.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::pem::Pem;
use x509_parser::prelude::{FromDer, X509Certificate};
use x509_parser::public_key::PublicKey;

const REQUEST: &str = "CERTIFICATE REQUEST";
const CERTIFICATE: &str = "CERTIFICATE";

/// Whether someone who has the key asks for a certificate for it.
pub(super) fn check_request(bytes: &[u8]) -> Result<(), String> {
    let block = blocks(bytes).next().filter(|block| block.label == REQUEST);
    let block = block.ok_or("PEM block type must be CERTIFICATE REQUEST")?;
    let (_, request) = X509CertificationRequest::from_der(&block.contents)
        .map_err(|_| "asn1: structure error: not a certificate request".to_owned())?;
    request.verify_signature().map_err(|_| {
        let key = request.certification_request_info.subject_pki.parsed();
        match key {
            Ok(PublicKey::EC(_)) => "x509: ECDSA verification failure".to_owned(),
            Ok(PublicKey::RSA(_)) => "crypto/rsa: verification error".to_owned(),
            _ => "x509: Ed25519 verification failure".to_owned(),
        }
    })
}

/// Whether these are certificates and nothing else; none at all are.
pub(super) fn check_chain(bytes: &[u8]) -> Result<(), String> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut count = 0;
    for block in blocks(bytes) {
        if block.label != CERTIFICATE {
            let found = block.label;
            return Err(format!("only CERTIFICATE PEM blocks are allowed, found \"{found}\""));
        }
        X509Certificate::from_der(&block.contents)
            .map_err(|_| "x509: malformed certificate".to_owned())?;
        count += 1;
    }
    match count {
        0 => Err("must contain at least one CERTIFICATE PEM block".to_owned()),
        _ => Ok(()),
    }
}

fn blocks(bytes: &[u8]) -> impl Iterator<Item = Pem> {
    Pem::iter_from_buffer(bytes).map_while(Result::ok)
}
