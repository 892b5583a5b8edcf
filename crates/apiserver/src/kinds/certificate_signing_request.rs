//! CertificateSigningRequests: who asks for a certificate, and what was decided.

use super::Rules;

pub(super) const RULES: Rules = Rules::PLAIN;
