//! Tokens of service accounts: whether one is genuine, meant for us, and still good.
//!
//! That a signature fits never changes, so tokens are verified once and remembered. What they are
//! bound to is looked up each time: a token dies with its account, its pod or its secret.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Validation, decode, decode_header};
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::time::Time;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};

use super::TokenUser;
use super::key::VerifyingKey;
use super::token::{CREDENTIAL_ID, Kubernetes, Reference};
use crate::authz::quoted;
use crate::index::Store;
use crate::user::{self, User};

/// Verifies the tokens of service accounts.
#[derive(Debug)]
pub struct Verifier {
    /// Who may have signed them.
    pub issuers: Vec<String>,
    /// Whom they must be meant for.
    pub audiences: Vec<String>,
    pub keys: Vec<VerifyingKey>,
    verified: Mutex<HashMap<Box<str>, Arc<Claims>>>,
}

/// Why a token is refused. Displays as upstream says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("invalid signature, no keys found")]
    UnknownKey,
    #[error("go-jose/go-jose: error in cryptographic primitive")]
    BadSignature,
    #[error("token audiences {} is invalid for the target audiences {}", quoted(.token), quoted(.wanted))]
    Audience { token: Vec<String>, wanted: Vec<String> },
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYet,
    #[error("service account token is issued in the future")]
    IssuedInFuture,
    #[error("serviceaccounts {} not found", go_quote(.0))]
    AccountNotFound(String),
    #[error("service account UID ({found}) does not match claim ({claimed})")]
    AccountUid { found: String, claimed: String },
    #[error("service account {namespace}/{name} has been deleted")]
    AccountDeleted { namespace: String, name: String },
    #[error("service account token has been invalidated")]
    Invalidated,
    #[error("{kind} UID ({found}) does not match service account {kind} ref claim ({claimed})")]
    BoundUid { kind: &'static str, found: String, claimed: String },
    #[error(transparent)]
    Legacy(#[from] LegacyError),
}

/// Why a token that a secret holds is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum LegacyError {
    #[error("{0} claim is missing")]
    Missing(&'static str),
    #[error("sub claim is invalid")]
    Subject,
    #[error("Token has been invalidated")]
    Invalidated,
    #[error("Token does not match server's copy")]
    Changed,
    #[error("ServiceAccount {namespace}/{name} has been deleted")]
    AccountDeleted { namespace: String, name: String },
    #[error("ServiceAccount UID ({found}) does not match claim ({claimed})")]
    AccountUid { found: String, claimed: String },
    #[error(
        "the token in secret {namespace}/{secret} for service account {namespace}/{account} has \
         been marked invalid. Use tokens from the TokenRequest API or manually created \
         secret-based tokens, or remove the '{INVALID_SINCE}' label from the secret to \
         temporarily allow use of this token"
    )]
    MarkedInvalid { namespace: String, secret: String, account: String },
}

impl TokenError {
    /// Whether a younger state of the store could end otherwise.
    fn is_about_store(&self) -> bool {
        match self {
            Self::UnknownKey
            | Self::BadSignature
            | Self::Audience { .. }
            | Self::Expired
            | Self::NotYet
            | Self::IssuedInFuture
            | Self::Legacy(LegacyError::Missing(_) | LegacyError::Subject) => false,
            Self::AccountNotFound(_)
            | Self::AccountUid { .. }
            | Self::AccountDeleted { .. }
            | Self::Invalidated
            | Self::BoundUid { .. }
            | Self::Legacy(_) => true,
        }
    }
}

/// Who signed the tokens that secrets hold.
const LEGACY_ISSUER: &str = "kubernetes/serviceaccount";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// How far the clocks of a cluster may be apart.
const LEEWAY_SECONDS: i64 = 60;

/// More tokens than a cluster has in use; when there are, all are verified anew.
const VERIFIED_MAX: usize = 8192;

#[derive(Debug, Deserialize)]
struct Claims {
    #[serde(default)]
    iss: String,
    #[serde(default)]
    sub: String,
    #[serde(default, deserialize_with = "one_or_many")]
    aud: Vec<String>,
    /// Times may have fractions, though ours have none.
    exp: Option<f64>,
    nbf: Option<f64>,
    iat: Option<f64>,
    #[serde(default)]
    jti: String,
    #[serde(rename = "kubernetes.io", default)]
    kubernetes: Kubernetes,
    #[serde(flatten)]
    legacy: LegacyClaims,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct LegacyClaims {
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name")]
    account: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.uid")]
    account_uid: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name")]
    secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/namespace")]
    namespace: String,
}

/// What is looked at of the objects that a token is bound to.
#[derive(Deserialize)]
struct Live<T> {
    metadata: LiveMeta,
    #[serde(flatten)]
    rest: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LiveMeta {
    #[serde(default)]
    uid: String,
    deletion_timestamp: Option<String>,
    labels: Option<HashMap<String, String>>,
}

#[derive(Deserialize)]
struct Bare {}

#[derive(Deserialize)]
struct SecretData {
    data: Option<HashMap<String, String>>,
}

fn one_or_many<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Audience {
        One(String),
        Many(Vec<String>),
    }
    Ok(match Option::deserialize(deserializer)? {
        None => Vec::new(),
        Some(Audience::One(audience)) => vec![audience],
        Some(Audience::Many(audiences)) => audiences,
    })
}

impl Verifier {
    pub fn new(issuers: Vec<String>, audiences: Vec<String>, keys: Vec<VerifyingKey>) -> Self {
        Verifier { issuers, audiences, keys, verified: Mutex::default() }
    }

    /// The account that a token stands for, or `None` if it is no token of an account at all.
    pub(super) fn verify(
        &self,
        store: &Store,
        token: &str,
        wanted: &[String],
    ) -> Result<Option<TokenUser>, TokenError> {
        let Some(claims) = self.claims(token)? else { return Ok(None) };
        // Tokens of old name no audience, and are for the server alone.
        let meant = if claims.aud.is_empty() { &self.audiences } else { &claims.aud };
        let audiences: Vec<String> =
            meant.iter().filter(|audience| wanted.contains(audience)).cloned().collect();
        if audiences.is_empty() && !self.audiences.is_empty() {
            return Err(TokenError::Audience { token: meant.clone(), wanted: wanted.to_vec() });
        }
        Ok(Some(TokenUser { user: user(store, token, &claims)?, audiences }))
    }

    /// Whether a genuine token is refused for what it is bound to, as far as the store knows.
    pub(super) fn lacks_ground(&self, store: &Store, token: &str) -> bool {
        let Ok(Some(claims)) = self.claims(token) else { return false };
        user(store, token, &claims).is_err_and(|error| error.is_about_store())
    }

    /// The claims of a token whose signature fits.
    fn claims(&self, token: &str) -> Result<Option<Arc<Claims>>, TokenError> {
        let verified = || self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = verified().get(token) {
            return Ok(Some(Arc::clone(claims)));
        }
        if !self.is_ours(token) {
            return Ok(None);
        }
        let Ok(header) = decode_header(token) else { return Ok(None) };
        let mut keys = self
            .keys
            .iter()
            .filter(|key| header.kid.as_ref().is_none_or(|id| id.is_empty() || *id == key.id))
            .peekable();
        if keys.peek().is_none() {
            return Err(TokenError::UnknownKey);
        }
        let claims = keys
            .find_map(|key| {
                // Everything but the signature is judged by our own clock, with upstream's words.
                let mut validation = Validation::new(key.algorithm);
                validation.required_spec_claims.clear();
                validation.validate_exp = false;
                validation.validate_aud = false;
                match decode::<Claims>(token, &key.decoding, &validation) {
                    Ok(data) => Some(data.claims),
                    Err(error) => {
                        let expected = matches!(
                            error.kind(),
                            ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm
                        );
                        if !expected {
                            tracing::debug!(%error, "token cannot be read");
                        }
                        None
                    }
                }
            })
            .map(Arc::new)
            .ok_or(TokenError::BadSignature)?;
        let mut verified = verified();
        if verified.len() >= VERIFIED_MAX {
            verified.clear();
        }
        verified.insert(token.into(), Arc::clone(&claims));
        Ok(Some(claims))
    }

    /// Whether a token claims to come from one of our issuers.
    fn is_ours(&self, token: &str) -> bool {
        #[derive(Deserialize)]
        struct Issuer {
            iss: String,
        }
        let parts: Vec<&str> = token.split('.').collect();
        let [_, payload, _] = parts.as_slice() else { return false };
        let issuer = URL_SAFE_NO_PAD
            .decode(payload)
            .ok()
            .and_then(|json| serde_json::from_slice::<Issuer>(&json).ok());
        issuer.is_some_and(|Issuer { iss }| iss == LEGACY_ISSUER || self.issuers.contains(&iss))
    }
}

fn user(store: &Store, token: &str, claims: &Claims) -> Result<User, TokenError> {
    match claims.iss == LEGACY_ISSUER {
        true => legacy_user(store, token, claims),
        false => bound_user(store, claims),
    }
}

fn bound_user(store: &Store, claims: &Claims) -> Result<User, TokenError> {
    let now = store.config().clock.now();
    check_times(claims, now)?;
    let Kubernetes { namespace, serviceaccount, pod, secret, node, .. } = &claims.kubernetes;
    let Reference { name, uid } = serviceaccount;

    let account: Live<Bare> = live(store, &format!("serviceaccounts/{namespace}/{name}"))
        .ok_or_else(|| TokenError::AccountNotFound(name.clone()))?;
    if account.metadata.uid != *uid {
        let (found, claimed) = (account.metadata.uid, uid.clone());
        return Err(TokenError::AccountUid { found, claimed });
    }
    if account.metadata.is_gone(now) {
        let (namespace, name) = (namespace.clone(), name.clone());
        return Err(TokenError::AccountDeleted { namespace, name });
    }

    let mut extra: Vec<(&str, &str)> = Vec::new();
    if let Some(secret) = secret {
        check_bound(store, "secret", &format!("secrets/{namespace}/{}", secret.name), secret, now)?;
    }
    if let Some(pod) = pod {
        check_bound(store, "pod", &format!("pods/{namespace}/{}", pod.name), pod, now)?;
        if !pod.name.is_empty() && !pod.uid.is_empty() {
            extra.push((POD_NAME, &pod.name));
            extra.push((POD_UID, &pod.uid));
        }
    }
    if let Some(node) = node {
        // The node of a pod is only told; a pod that lives proves nothing about its node.
        if pod.is_none() {
            check_bound(store, "node", &format!("minions/{}", node.name), node, now)?;
        }
        if !node.name.is_empty() {
            extra.push((NODE_NAME, &node.name));
            if !node.uid.is_empty() {
                extra.push((NODE_UID, &node.uid));
            }
        }
    }
    let id = format!("JTI={}", claims.jti);
    if !claims.jti.is_empty() {
        extra.push((CREDENTIAL_ID, &id));
    }
    Ok(User {
        name: user::service_account(namespace, name),
        uid: uid.clone(),
        groups: user::service_account_groups(namespace),
        extra: extra
            .into_iter()
            .map(|(key, value)| (key.to_owned(), vec![value.to_owned()]))
            .collect(),
    })
}

const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
pub(super) const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

fn check_times(claims: &Claims, now: Duration) -> Result<(), TokenError> {
    let (now, leeway) = (now.as_secs_f64(), LEEWAY_SECONDS as f64);
    if claims.nbf.is_some_and(|nbf| now + leeway < nbf) {
        return Err(TokenError::NotYet);
    }
    if claims.exp.is_some_and(|exp| now - leeway > exp) {
        return Err(TokenError::Expired);
    }
    if claims.iat.is_some_and(|iat| now + leeway < iat) {
        return Err(TokenError::IssuedInFuture);
    }
    Ok(())
}

/// Whether what a token is bound to is still there, and still the same.
fn check_bound(
    store: &Store,
    kind: &'static str,
    path: &str,
    reference: &Reference,
    now: Duration,
) -> Result<(), TokenError> {
    let bound: Live<Bare> = live(store, path).ok_or(TokenError::Invalidated)?;
    if bound.metadata.uid != reference.uid {
        let (found, claimed) = (bound.metadata.uid, reference.uid.clone());
        return Err(TokenError::BoundUid { kind, found, claimed });
    }
    match bound.metadata.is_gone(now) {
        true => Err(TokenError::Invalidated),
        false => Ok(()),
    }
}

fn legacy_user(store: &Store, token: &str, claims: &Claims) -> Result<User, TokenError> {
    let LegacyClaims { account, account_uid, secret, namespace } = &claims.legacy;
    let required = [
        ("sub", &claims.sub),
        ("namespace", namespace),
        ("secretName", secret),
        ("serviceAccountName", account),
        ("serviceAccountUID", account_uid),
    ];
    if let Some((claim, _)) = required.into_iter().find(|(_, value)| value.is_empty()) {
        return Err(LegacyError::Missing(claim).into());
    }
    if user::split_service_account(&claims.sub) != Some((namespace, account)) {
        return Err(LegacyError::Subject.into());
    }
    let stored: Live<SecretData> = live(store, &format!("secrets/{namespace}/{secret}"))
        .filter(|secret: &Live<SecretData>| secret.metadata.deletion_timestamp.is_none())
        .ok_or(LegacyError::Invalidated)?;
    // Its signature fits already, so how long the comparison takes tells nobody anything.
    let copy = stored.rest.data.and_then(|mut data| STANDARD.decode(data.remove("token")?).ok());
    if copy.as_deref() != Some(token.as_bytes()) {
        return Err(LegacyError::Changed.into());
    }
    let live_account: Live<Bare> = live(store, &format!("serviceaccounts/{namespace}/{account}"))
        .ok_or_else(|| TokenError::AccountNotFound(account.clone()))?;
    if live_account.metadata.deletion_timestamp.is_some() {
        let (namespace, name) = (namespace.clone(), account.clone());
        return Err(LegacyError::AccountDeleted { namespace, name }.into());
    }
    if live_account.metadata.uid != *account_uid {
        let (found, claimed) = (live_account.metadata.uid, account_uid.clone());
        return Err(LegacyError::AccountUid { found, claimed }.into());
    }
    let labels = stored.metadata.labels.unwrap_or_default();
    if labels.get(INVALID_SINCE).is_some_and(|since| !since.is_empty()) {
        return Err(LegacyError::MarkedInvalid {
            namespace: namespace.clone(),
            secret: secret.clone(),
            account: account.clone(),
        }
        .into());
    }
    Ok(User {
        name: user::service_account(namespace, account),
        uid: account_uid.clone(),
        groups: user::service_account_groups(namespace),
        extra: Default::default(),
    })
}

/// What the store holds below `/registry/` at this path.
fn live<T: DeserializeOwned>(store: &Store, path: &str) -> Option<Live<T>> {
    let rev = store.get(&format!("{}{path}", crate::index::PREFIX))?;
    serde_json::from_slice(rev.extracted.json(&rev.value)).ok()
}

impl LiveMeta {
    /// Whether its deletion was due long enough ago to hold for all clocks.
    fn is_gone(&self, now: Duration) -> bool {
        let deleted = self.deletion_timestamp.as_deref().and_then(|text| Time::parse(text).ok());
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        deleted.is_some_and(|deleted| deleted.unix_seconds() < now - LEEWAY_SECONDS)
    }
}
