//! What a request for a certificate asks for.

#[cfg(test)]
mod tests;

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::pem::Pem;
use x509_parser::prelude::FromDer as _;

/// A request, as far as it matters who asks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Request {
    /// PKCS #10 in DER.
    pub(super) der: Vec<u8>,
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
    pub(super) dns_names: usize,
    pub(super) addresses: usize,
    pub(super) emails: usize,
    pub(super) uris: usize,
}

/// A request that is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum ReadError {
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Pem,
    #[error("malformed certificate request")]
    Malformed,
    /// Whoever asks does not have the key.
    #[error("the signature of the certificate request is not valid")]
    Forged,
}

impl Request {
    pub(super) fn read(pem: &[u8]) -> Result<Self, ReadError> {
        let block = Pem::iter_from_buffer(pem).next().and_then(Result::ok).ok_or(ReadError::Pem)?;
        if block.label != "CERTIFICATE REQUEST" {
            return Err(ReadError::Pem);
        }
        let (_, parsed) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|_| ReadError::Malformed)?;
        parsed.verify_signature().map_err(|_| ReadError::Forged)?;
        let subject = &parsed.certification_request_info.subject;
        let texts =
            |found: Vec<Option<&str>>| found.into_iter().flatten().map(str::to_owned).collect();
        let common: Vec<String> =
            texts(subject.iter_common_name().map(|it| it.as_str().ok()).collect());
        let mut request = Request {
            common_name: common.into_iter().next_back().unwrap_or_default(),
            organizations: texts(subject.iter_organization().map(|it| it.as_str().ok()).collect()),
            ..Request::default()
        };
        for extension in parsed.requested_extensions().into_iter().flatten() {
            let ParsedExtension::SubjectAlternativeName(names) = extension else { continue };
            for name in &names.general_names {
                match name {
                    GeneralName::DNSName(_) => request.dns_names += 1,
                    GeneralName::IPAddress(_) => request.addresses += 1,
                    GeneralName::RFC822Name(_) => request.emails += 1,
                    GeneralName::URI(_) => request.uris += 1,
                    _ => {}
                }
            }
        }
        request.der = block.contents;
        Ok(request)
    }
}
