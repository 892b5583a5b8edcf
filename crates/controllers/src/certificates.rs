//! Requests for certificates: some are approved by themselves, those that are approved are signed,
//! and old ones go.
//!
//! `request` reads what is asked for, `judge` says whom a signer signs for and for how long. The key
//! of the cluster's authority is not known here: a [`Signer`] is handed in.

mod approval;
mod cleaner;
mod judge;
mod request;
mod signing;

use std::sync::Arc;
use std::time::Duration;

pub(crate) use approval::controller as approval;
pub(crate) use cleaner::controller as cleaner;
pub(crate) use signing::controller as signing;

/// Signs in the name of the cluster's authority.
pub trait Signer: Send + Sync {
    /// Signs what a request asks for, subject, names and key, and nothing else that it says.
    ///
    /// # Errors
    /// Why it cannot be signed now. It is tried again.
    fn sign(&self, order: &Order<'_>) -> Result<String, SignError>;
}

/// What is to be signed.
#[derive(Debug, Clone, Copy)]
pub struct Order<'a> {
    /// The request, PKCS #10 in DER. Its signature is good.
    pub request: &'a [u8],
    /// As the API names them: `client auth`, `digital signature`.
    pub usages: &'a [String],
    pub lifetime: Duration,
}

/// A certificate was not signed.
#[derive(Debug, thiserror::Error)]
#[error("sign a certificate")]
pub struct SignError(#[source] pub Box<dyn std::error::Error + Send + Sync>);

/// A signer that several share.
pub type SharedSigner = Arc<dyn Signer>;
