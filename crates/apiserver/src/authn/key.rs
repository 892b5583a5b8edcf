//! The keys by which tokens of service accounts are signed and verified: ECDSA on P-256, or RSA.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::jwk::{AlgorithmParameters, Jwk};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, SubjectPublicKeyInfoDer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use x509_parser::prelude::{FromDer as _, X509Certificate};
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

/// Signs tokens.
pub struct SigningKey {
    pub(super) algorithm: Algorithm,
    pub(super) encoding: EncodingKey,
    /// By which its tokens are verified.
    pub public: VerifyingKey,
}

/// Verifies tokens.
#[derive(Clone)]
pub struct VerifyingKey {
    /// Upstream's name for it: the digest of the key in its standard form.
    pub id: String,
    pub(super) algorithm: Algorithm,
    pub(super) decoding: DecodingKey,
    /// As it is published.
    pub(super) jwk: Value,
}

/// Why a text holds no key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    #[error("find a key in PEM")]
    NoKey,
    #[error("use a key that is neither RSA nor ECDSA on P-256")]
    Unsupported,
}

/// The numbers of a public key.
enum Components {
    /// A point on P-256.
    Ec {
        x: Vec<u8>,
        y: Vec<u8>,
    },
    Rsa {
        n: Vec<u8>,
        e: Vec<u8>,
    },
}

/// `prime256v1`, the curve P-256.
const P256: &[u8] = &[0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
/// `ecPublicKey`
const EC: &[u8] = &[0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
/// `rsaEncryption`, with no parameters.
const RSA: &[u8] = &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00];

impl SigningKey {
    /// The first private key in a PEM file, whatever the form that tools write it in.
    pub fn from_pem(pem: &[u8]) -> Result<Self, KeyError> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| KeyError::NoKey)?;
        let der = match &key {
            PrivateKeyDer::Sec1(key) => pkcs8_of_sec1(key.secret_sec1_der()),
            key => key.secret_der().to_vec(),
        };
        let candidates = [
            Some((Algorithm::ES256, EncodingKey::from_ec_der(&der))),
            EncodingKey::from_rsa_pem(pem).ok().map(|key| (Algorithm::RS256, key)),
        ];
        candidates
            .into_iter()
            .flatten()
            .find_map(|(algorithm, encoding)| {
                let jwk = Jwk::from_encoding_key(&encoding, algorithm).ok()?;
                let public = VerifyingKey::new(Components::of(&jwk)?);
                Some(SigningKey { algorithm, encoding, public })
            })
            .ok_or(KeyError::Unsupported)
    }
}

impl VerifyingKey {
    /// All keys in a PEM file: public ones, those of private ones, and those of certificates.
    pub fn from_pem(pem: &[u8]) -> Result<Vec<Self>, KeyError> {
        let mut keys = Vec::new();
        let certified = CertificateDer::pem_slice_iter(pem).filter_map(Result::ok);
        let certified = certified.filter_map(|certificate| {
            let (_, certificate) = X509Certificate::from_der(&certificate).ok()?;
            Some(SubjectPublicKeyInfoDer::from(certificate.public_key().raw.to_vec()))
        });
        let public = SubjectPublicKeyInfoDer::pem_slice_iter(pem).filter_map(Result::ok);
        for key in public.chain(certified) {
            let (_, info) =
                SubjectPublicKeyInfo::from_der(&key).map_err(|_| KeyError::Unsupported)?;
            let components = match info.parsed() {
                Ok(PublicKey::RSA(key)) => {
                    let unsigned = |bytes: &[u8]| {
                        bytes.iter().copied().skip_while(|byte| *byte == 0).collect()
                    };
                    Components::Rsa { n: unsigned(key.modulus), e: unsigned(key.exponent) }
                }
                Ok(PublicKey::EC(point)) => match point.data() {
                    [4, coordinates @ ..] if coordinates.len() == 64 => Components::Ec {
                        x: coordinates[..32].to_vec(),
                        y: coordinates[32..].to_vec(),
                    },
                    _ => return Err(KeyError::Unsupported),
                },
                _ => return Err(KeyError::Unsupported),
            };
            keys.push(Self::new(components));
        }
        if let Ok(key) = SigningKey::from_pem(pem) {
            keys.push(key.public);
        }
        match keys.is_empty() {
            true => Err(KeyError::NoKey),
            false => Ok(keys),
        }
    }

    fn new(components: Components) -> Self {
        let id = URL_SAFE_NO_PAD.encode(Sha256::digest(components.to_spki()));
        let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        let (algorithm, decoding, jwk) = match &components {
            Components::Ec { x, y } => (
                Algorithm::ES256,
                DecodingKey::from_ec_der(&components.point()),
                json!({
                    "use": "sig", "kty": "EC", "kid": id, "crv": "P-256", "alg": "ES256",
                    "x": encode(x), "y": encode(y),
                }),
            ),
            Components::Rsa { n, e } => (
                Algorithm::RS256,
                DecodingKey::from_rsa_raw_components(n, e),
                json!({
                    "use": "sig", "kty": "RSA", "kid": id, "alg": "RS256",
                    "n": encode(n), "e": encode(e),
                }),
            ),
        };
        VerifyingKey { id, algorithm, decoding, jwk }
    }
}

impl Components {
    fn of(jwk: &Jwk) -> Option<Self> {
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text).ok();
        match &jwk.algorithm {
            AlgorithmParameters::EllipticCurve(key) => {
                Some(Components::Ec { x: decode(&key.x)?, y: decode(&key.y)? })
            }
            AlgorithmParameters::RSA(key) => {
                Some(Components::Rsa { n: decode(&key.n)?, e: decode(&key.e)? })
            }
            _ => None,
        }
    }

    /// The point of an elliptic key, uncompressed; empty for others.
    fn point(&self) -> Vec<u8> {
        match self {
            Components::Ec { x, y } => [&[4], x.as_slice(), y].concat(),
            Components::Rsa { .. } => Vec::new(),
        }
    }

    /// The key as `SubjectPublicKeyInfo`, from which its id is made.
    fn to_spki(&self) -> Vec<u8> {
        let (algorithm, key) = match self {
            Components::Ec { .. } => ([EC, P256].concat(), self.point()),
            Components::Rsa { n, e } => (RSA.to_vec(), sequence(&[integer(n), integer(e)])),
        };
        let bits = tagged(0x03, &[&[0], key.as_slice()].concat());
        sequence(&[sequence(&[algorithm]), bits])
    }
}

/// The form of a private key that openssl writes by default, in the one that libraries read.
fn pkcs8_of_sec1(sec1: &[u8]) -> Vec<u8> {
    let version = tagged(0x02, &[0]);
    sequence(&[version, sequence(&[[EC, P256].concat()]), tagged(0x04, sec1)])
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    tagged(0x30, &parts.concat())
}

/// A positive number in DER: a leading bit would make it negative.
fn integer(bytes: &[u8]) -> Vec<u8> {
    match bytes.first() {
        Some(0x80..) => tagged(0x02, &[&[0], bytes].concat()),
        _ => tagged(0x02, bytes),
    }
}

/// A value in DER.
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    let length = content.len().to_be_bytes();
    let length = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    if let [short @ 0..0x80] = length {
        bytes.push(*short);
    } else {
        bytes.push(0x80 | u8::try_from(length.len()).expect("a length has few bytes"));
        bytes.extend_from_slice(length);
    }
    bytes.extend_from_slice(content);
    bytes
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

impl fmt::Debug for VerifyingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyingKey").field("id", &self.id).finish_non_exhaustive()
    }
}
