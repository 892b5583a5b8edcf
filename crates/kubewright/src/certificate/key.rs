//! A key that signs certificates: ECDSA over P-256, by the library that TLS uses too.

use aws_lc_rs::encoding::{AsDer as _, EcPrivateKeyRfc5915Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};
use signature::{Keypair, Signer};
use x509_cert::der::asn1::BitString;
use x509_cert::der::oid::db::rfc5912::ECDSA_WITH_SHA_256;
use x509_cert::der::pem::{self, LineEnding};
use x509_cert::der::{self, Document};
use x509_cert::spki::{
    self, AlgorithmIdentifierOwned, DynSignatureAlgorithmIdentifier, EncodePublicKey,
    SignatureBitStringEncoding,
};

use super::authority::IssueError;

const LABEL: &str = "EC PRIVATE KEY";

pub(super) struct Key(EcdsaKeyPair);

/// The half that everybody may know, as certificates hold it.
#[derive(Clone)]
pub(super) struct Public(Vec<u8>);

/// In DER.
pub(super) struct Signature(Vec<u8>);

impl Key {
    pub(super) fn generate() -> Result<Self, IssueError> {
        let key = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_ASN1_SIGNING);
        key.map(Key).map_err(|_| IssueError::Key("it cannot be made"))
    }

    pub(super) fn from_pem(text: &str) -> Result<Self, IssueError> {
        let (label, der) =
            pem::decode_vec(text.as_bytes()).map_err(|_| IssueError::Key("it is no PEM"))?;
        if ![LABEL, "PRIVATE KEY"].contains(&label) {
            return Err(IssueError::Key("it is something else"));
        }
        let key = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_ASN1_SIGNING, &der);
        key.map(Key).map_err(|_| IssueError::Key("it is none of P-256"))
    }

    pub(super) fn to_pem(&self) -> Result<String, IssueError> {
        let der: Result<EcPrivateKeyRfc5915Der<'_>, _> = self.0.private_key().as_der();
        let der = der.map_err(|_| IssueError::Key("it cannot be written"))?;
        pem::encode_string(LABEL, LineEnding::LF, der.as_ref())
            .map_err(|_| IssueError::Key("it cannot be written"))
    }

    pub(super) fn public(&self) -> Public {
        let der: Result<PublicKeyX509Der<'_>, _> = self.0.public_key().as_der();
        Public(der.expect("a public key has a known form").as_ref().to_vec())
    }
}

impl Keypair for Key {
    type VerifyingKey = Public;

    fn verifying_key(&self) -> Public {
        self.public()
    }
}

impl Signer<Signature> for Key {
    fn try_sign(&self, message: &[u8]) -> signature::Result<Signature> {
        let signature = self.0.sign(&SystemRandom::new(), message);
        signature.map(|der| Signature(der.as_ref().to_vec())).map_err(|_| signature::Error::new())
    }
}

impl DynSignatureAlgorithmIdentifier for Key {
    fn signature_algorithm_identifier(&self) -> spki::Result<AlgorithmIdentifierOwned> {
        Ok(AlgorithmIdentifierOwned { oid: ECDSA_WITH_SHA_256, parameters: None })
    }
}

impl EncodePublicKey for Public {
    fn to_public_key_der(&self) -> spki::Result<Document> {
        Ok(Document::try_from(self.0.as_slice())?)
    }
}

impl SignatureBitStringEncoding for Signature {
    fn to_bitstring(&self) -> der::Result<BitString> {
        BitString::from_bytes(&self.0)
    }
}
