//! Issues tokens of service accounts, and publishes the keys by which others verify them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::Timestamp;
use jsonwebtoken::{Header, encode};
use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::{GroupKind, GroupResource, GroupVersion, GroupVersionKind};
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::status::Status;
use kubewright_apimachinery::time::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::key::{SigningKey, VerifyingKey};
use crate::index::{PREFIX, Store, object};
use crate::user;
use crate::warnings::Warnings;

/// What tells, in the extra of a user, by which credential they were identified.
pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Where the issuer describes itself.
pub const CONFIGURATION_PATH: &str = "/.well-known/openid-configuration";
/// Where the issuer's keys are.
pub const KEYS_PATH: &str = "/openid/v1/jwks";
/// The media type of [`keys`].
pub const KEYS_MEDIA_TYPE: &str = "application/jwk-set+json";
/// How long a client may rely on either.
pub const CACHE_CONTROL: &str = "public, max-age=3600";

/// Issues tokens.
#[derive(Debug)]
pub struct Issuer {
    /// The URL that names it.
    pub url: String,
    /// Where its keys are said to be, if not at the server's address.
    pub keys_url: Option<String>,
    /// Whom tokens are for that name nobody.
    pub audiences: Vec<String>,
    pub key: SigningKey,
    pub lifetimes: Lifetimes,
}

/// How long tokens last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lifetimes {
    /// Whether the tokens that pods get unasked last for a year, and only warn when they are used
    /// for longer than they should be.
    pub are_extended: bool,
    /// Nobody else gets a longer one; none for as long as may be asked for.
    pub seconds_max: Option<i64>,
}

impl Default for Lifetimes {
    fn default() -> Self {
        Lifetimes { are_extended: true, seconds_max: None }
    }
}

/// What a token says about its account.
#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Kubernetes {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<Reference>,
    pub(super) serviceaccount: Reference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) warnafter: Option<i64>,
}

#[derive(Debug, Default, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Reference {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) uid: String,
}

/// In the order in which upstream prints them.
#[derive(Serialize)]
struct Claims<'a> {
    aud: &'a [String],
    exp: i64,
    iat: i64,
    iss: &'a str,
    jti: String,
    #[serde(rename = "kubernetes.io")]
    kubernetes: &'a Kubernetes,
    nbf: i64,
    sub: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    audiences: Option<Vec<String>>,
    expiration_seconds: Option<i64>,
    bound_object_ref: Option<BoundObject>,
}

#[derive(Debug, Default, Clone, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct BoundObject {
    kind: String,
    api_version: String,
    name: String,
    uid: String,
}

const EXPIRATION_SECONDS_DEFAULT: i64 = 60 * 60;
const EXPIRATION_SECONDS_MIN: i64 = 10 * 60;
const EXPIRATION_SECONDS_MAX: i64 = 1 << 32;

/// What kubelets ask for when nobody asked for an expiration. Such tokens live longer, since
/// clients from before tokens expired read theirs only once.
const EXPIRATION_SECONDS_UNASKED: i64 = 60 * 60 + 7;
const EXPIRATION_SECONDS_EXTENDED: i64 = 365 * 24 * 60 * 60;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";

impl Issuer {
    /// Says in a request what it leaves out: whose token it is, for whom, and since when.
    ///
    /// # Errors
    /// When it says something else, or there is no such account.
    pub(crate) fn complete(
        &self,
        store: &Store,
        namespace: &str,
        name: &str,
        request: &mut Value,
        now: Timestamp,
    ) -> Result<(), Box<Status>> {
        let metadata = |field: &str| request["metadata"][field].as_str().unwrap_or_default();
        for (field, expected) in [("name", name), ("namespace", namespace)] {
            let given = metadata(field);
            if !given.is_empty() && given != expected {
                let root = Path::new("metadata");
                let detail = format!("must match the service account {field} if specified");
                let error = Error::invalid(&root.child(field), given, detail);
                return Err(invalid(name, &[error]));
            }
        }
        let account = find(store, "serviceaccounts", Some(namespace), name)?;
        let uid = uid_of(&account);
        let given = metadata("uid");
        if !given.is_empty() && given != uid {
            return Err(Box::new(Status::conflict(
                &GroupResource::new(GROUP, KIND),
                name,
                format!(
                    "the UID in the token request ({given}) does not match the UID of the service \
                     account ({uid})"
                ),
            )));
        }
        let created = Time::from_unix(now.as_second()).to_value();
        let metadata = crate::meta::of(request);
        metadata.insert("name".to_owned(), name.into());
        metadata.insert("namespace".to_owned(), namespace.into());
        metadata.insert("uid".to_owned(), uid.into());
        metadata.insert("creationTimestamp".to_owned(), created);
        if request["spec"]["audiences"].as_array().is_none_or(Vec::is_empty) {
            request["spec"]["audiences"] = json!(self.audiences);
        }
        Ok(())
    }

    /// Answers a TokenRequest for an account; `request` is in normal form. Who gets less than was
    /// asked for is warned.
    pub fn issue(
        &self,
        store: &Store,
        namespace: &str,
        name: &str,
        request: &Value,
        now: Timestamp,
        warnings: &Warnings,
    ) -> Result<Value, Box<Status>> {
        let mut request = request.clone();
        self.complete(store, namespace, name, &mut request, now)?;
        let uid = request["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        let spec = Spec::deserialize(&request["spec"]).unwrap_or_default();
        let mut seconds = spec.expiration_seconds.unwrap_or(EXPIRATION_SECONDS_DEFAULT);
        check_expiration(seconds)?;
        let audiences = spec
            .audiences
            .filter(|audiences| !audiences.is_empty())
            .unwrap_or_else(|| self.audiences.clone());

        let mut kubernetes = Kubernetes {
            namespace: namespace.to_owned(),
            serviceaccount: Reference { name: name.to_owned(), uid: uid.clone() },
            ..Kubernetes::default()
        };
        if let Some(bound) = &spec.bound_object_ref {
            bind(store, &mut kubernetes, bound)?;
        }

        if let Some(max) = self.lifetimes.seconds_max.filter(|max| seconds > *max) {
            warnings.add(format!(
                "requested expiration of {seconds} seconds shortened to {max} seconds"
            ));
            seconds = max;
        }

        let issued = now.as_second();
        let unasked = self.lifetimes.are_extended
            && seconds == EXPIRATION_SECONDS_UNASKED
            && kubernetes.pod.is_some()
            && audiences.iter().all(|audience| self.audiences.contains(audience));
        let lifetime = match unasked {
            true => {
                kubernetes.warnafter = Some(issued + seconds);
                EXPIRATION_SECONDS_EXTENDED
            }
            false => seconds,
        };
        let token = self.sign(&Claims {
            aud: &audiences,
            exp: issued + lifetime,
            iat: issued,
            iss: &self.url,
            jti: Uuid::new_v4().to_string(),
            kubernetes: &kubernetes,
            nbf: issued,
            sub: user::service_account(namespace, name),
        })?;

        let mut answer = request.clone();
        answer["kind"] = KIND.into();
        answer["apiVersion"] = format!("{GROUP}/v1").into();
        answer["spec"] = json!({
            "audiences": audiences,
            "expirationSeconds": seconds,
            "boundObjectRef": request["spec"]["boundObjectRef"],
        });
        answer["status"] = json!({
            "token": token,
            "expirationTimestamp": Time::from_unix(issued + seconds).to_value(),
        });
        Ok(answer)
    }

    fn sign(&self, claims: &Claims<'_>) -> Result<String, Box<Status>> {
        let mut header = Header::new(self.key.algorithm);
        header.typ = None;
        header.kid = Some(self.key.public.id.clone());
        encode(&header, claims, &self.key.encoding).map_err(|error| {
            Box::new(Status::internal_error(format!("failed to generate token: {error}")))
        })
    }
}

/// Completes a TokenRequest in normal form.
pub(crate) fn default(request: &mut Value) {
    let seconds = &mut request["spec"]["expirationSeconds"];
    if seconds.is_null() {
        *seconds = EXPIRATION_SECONDS_DEFAULT.into();
    }
}

/// How the credential is called that an [`Issuer`] answered with: by the id in its token.
pub(crate) fn credential_id(answer: &Value) -> Option<String> {
    let payload = answer["status"]["token"].as_str()?.split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()?;
    Some(format!("JTI={}", claims["jti"].as_str()?))
}

/// The document at [`CONFIGURATION_PATH`].
pub fn configuration(issuer: &str, keys_url: &str, keys: &[VerifyingKey]) -> Value {
    let mut algorithms: Vec<&str> = keys.iter().filter_map(|key| key.jwk["alg"].as_str()).collect();
    algorithms.sort_unstable();
    algorithms.dedup();
    json!({
        "issuer": issuer,
        "jwks_uri": keys_url,
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": algorithms,
    })
}

/// The document at [`KEYS_PATH`].
pub fn keys(keys: &[VerifyingKey]) -> Value {
    let keys: Vec<&Value> = keys.iter().map(|key| &key.jwk).collect();
    json!({ "keys": keys })
}

fn check_expiration(seconds: i64) -> Result<(), Box<Status>> {
    let problem = if seconds < EXPIRATION_SECONDS_MIN {
        "may not specify a duration less than 10 minutes"
    } else if seconds > EXPIRATION_SECONDS_MAX {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    let spec = Path::new("spec");
    Err(invalid("", &[Error::invalid(&spec.child("expirationSeconds"), seconds, problem)]))
}

/// Ties the token to the life of an object.
fn bind(
    store: &Store,
    kubernetes: &mut Kubernetes,
    bound: &BoundObject,
) -> Result<(), Box<Status>> {
    let namespace = kubernetes.namespace.clone();
    let version = GroupVersion::parse(&bound.api_version);
    let kind = match &version {
        Ok(version) => version.with_kind(bound.kind.as_str()),
        Err(_) => GroupVersionKind::new("", "", bound.kind.as_str()),
    };
    let reference = |object: &Value| Reference { name: bound.name.clone(), uid: uid_of(object) };
    let found = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "Pod") => {
            let pod = find(store, "pods", Some(&namespace), &bound.name)?;
            let account = &kubernetes.serviceaccount.name;
            if pod["spec"]["serviceAccountName"].as_str().unwrap_or_default() != account {
                return Err(Box::new(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {} to pod running with different \
                     serviceaccount name.",
                    go_quote(account)
                ))));
            }
            kubernetes.pod = Some(reference(&pod));
            kubernetes.node = node_of(store, &pod);
            pod
        }
        ("", "Node") => {
            let node = find(store, "nodes", None, &bound.name)?;
            kubernetes.node = Some(reference(&node));
            node
        }
        ("", "Secret") => {
            let secret = find(store, "secrets", Some(&namespace), &bound.name)?;
            kubernetes.secret = Some(reference(&secret));
            secret
        }
        _ => {
            let message = format!("cannot bind token to object of type {kind}");
            return Err(Box::new(Status::bad_request(message)));
        }
    };
    if !bound.uid.is_empty() && bound.uid != uid_of(&found) {
        return Err(Box::new(Status::conflict(
            &GroupResource::new(kind.group.as_str(), kind.kind.as_str()),
            &bound.name,
            format!(
                "the UID in the bound object reference ({}) does not match the UID in record. The \
                 object might have been deleted and then recreated",
                bound.uid
            ),
        )));
    }
    Ok(())
}

/// Where a pod runs; by name alone if the node is gone.
fn node_of(store: &Store, pod: &Value) -> Option<Reference> {
    let name = pod["spec"]["nodeName"].as_str().filter(|name| !name.is_empty())?;
    let uid = find(store, "nodes", None, name).map(|node| uid_of(&node)).unwrap_or_default();
    Some(Reference { name: name.to_owned(), uid })
}

fn find(
    store: &Store,
    resource: &str,
    namespace: Option<&str>,
    name: &str,
) -> Result<Value, Box<Status>> {
    let directory = if resource == "nodes" { "minions" } else { resource };
    let key = match namespace {
        Some(namespace) => format!("{PREFIX}{directory}/{namespace}/{name}"),
        None => format!("{PREFIX}{directory}/{name}"),
    };
    let found = store.get(&key).and_then(|rev| object(&rev));
    found.ok_or_else(|| Box::new(Status::not_found(&GroupResource::new("", resource), name)))
}

fn uid_of(object: &Value) -> String {
    object["metadata"]["uid"].as_str().unwrap_or_default().to_owned()
}

fn invalid(name: &str, errors: &[Error]) -> Box<Status> {
    Box::new(Status::invalid(&GroupKind::new(GROUP, KIND), name, errors))
}
