//! What the API server asks of an admission webhook, and what it is told.
//!
//! The objects stay as they came: a patch is made for what was sent, with all the fields that a
//! type of ours may not know.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::api::authentication::v1::UserInfo;
use kube::Client;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::denied::Denied;
use super::patch::{self, Operation as Step};
use crate::context::{Informers, Kind as Readable};
use crate::informer::Informer;

/// One change that somebody wants to make.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Review {
    pub uid: String,
    /// What the objects are, in the version that the webhook asked for.
    pub kind: Kind,
    pub resource: ResourceName,
    pub sub_resource: String,
    /// What the request was for, which may be another version.
    pub request_kind: Option<Kind>,
    pub request_resource: Option<ResourceName>,
    pub request_sub_resource: String,
    /// Empty where the server is still to make one up.
    pub name: String,
    pub namespace: String,
    pub operation: Operation,
    /// Who wants it.
    pub user_info: UserInfo,
    /// The object as it would be; null for a deletion.
    pub object: Value,
    /// The object as it is; null for a creation.
    pub old_object: Value,
    /// Nothing will come of it: the webhook must leave no traces either.
    pub dry_run: Option<bool>,
    pub options: Value,
    #[serde(skip)]
    notes: Mutex<Notes>,
    #[serde(skip)]
    lent: Lent,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Kind {
    pub group: String,
    pub version: String,
    pub kind: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ResourceName {
    pub group: String,
    pub version: String,
    pub resource: String,
}

/// What is being done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Operation {
    #[default]
    Create,
    Update,
    Delete,
    Connect,
}

/// What webhooks may look into the cluster with.
#[derive(Default)]
struct Lent {
    client: Option<Client>,
    informers: Option<Arc<Informers>>,
}

impl fmt::Debug for Lent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lent").field("client", &self.client.is_some()).finish_non_exhaustive()
    }
}

/// What goes to the client, or into the audit log, along with the answer.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Notes {
    warnings: Vec<String>,
    annotations: BTreeMap<String, String>,
}

/// What a webhook says to a [`Review`].
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    verdict: Result<(), Denied>,
    patch: Vec<Step>,
    warnings: Vec<String>,
}

/// What people are told about a change that is allowed.
pub type Warnings = Vec<String>;

impl Review {
    pub fn is_dry_run(&self) -> bool {
        self.dry_run == Some(true)
    }

    /// Tells the client something, whether or not the change is allowed.
    pub fn warn(&self, text: impl Into<String>) {
        self.notes().warnings.push(text.into());
    }

    /// Adds to the audit log. The server puts the name of the webhook before the key.
    pub fn annotate(&self, key: impl Into<String>, value: impl Into<String>) {
        self.notes().annotations.insert(key.into(), value.into());
    }

    /// A client of the cluster, with the operator's rights, for what must be looked up: the answer
    /// waits for it, and so does whoever wants the change.
    ///
    /// # Errors
    /// If the webhook is served by somebody who has none.
    pub fn client(&self) -> Result<&Client, Denied> {
        let missing = || Denied::internal("this webhook is served without a client of the cluster");
        self.lent.client.as_ref().ok_or_else(missing)
    }

    /// The informer of a kind that the operator [reads](crate::Operator::reads) for its webhooks:
    /// what is in the cache is there at once, and costs the server nothing. It may be a moment old,
    /// so it is good for what changes seldom; who must see the last write asks the
    /// [client](Review::client).
    ///
    /// ```
    /// use k8s_openapi::api::core::v1::{ConfigMap, LimitRange};
    /// use kubewright::Operator;
    /// use kubewright::webhook::{Change, Denied, Review, Warnings, Webhook};
    ///
    /// fn judge(_: Change<'_, ConfigMap>, review: &Review) -> Result<Warnings, Denied> {
    ///     match review.informer::<LimitRange>()?.list_in(&review.namespace)?.is_empty() {
    ///         true => Err(Denied::new("say first how much this namespace may have")),
    ///         false => Ok(Warnings::new()),
    ///     }
    /// }
    ///
    /// let operator =
    ///     Operator::new("judge").webhook(Webhook::validating(judge)).reads::<LimitRange>();
    /// // It may read what it says it reads.
    /// assert_eq!(operator.accesses()[0].plural, "limitranges");
    /// ```
    ///
    /// # Errors
    /// If nobody has said that the kind is read, or the webhook is served by somebody without a
    /// cache.
    pub fn informer<T: Readable>(&self) -> Result<&Informer<T>, Denied> {
        let missing = || Denied::internal("this webhook is served without a cache of the cluster");
        let informers = self.lent.informers.as_ref().ok_or_else(missing)?;
        informers.get().ok_or_else(|| {
            let kind = T::kind(&());
            Denied::internal(format!(
                "{kind} is not declared: say `.reads::<{kind}>()` of the operator"
            ))
        })
    }

    pub(super) fn serve(&mut self, client: Option<Client>, informers: Option<Arc<Informers>>) {
        self.lent = Lent { client, informers };
    }

    /// The object as it would be.
    ///
    /// # Errors
    /// If it is none of this type.
    pub fn object<K: DeserializeOwned>(&self) -> Result<K, Denied> {
        decode(&self.object)
    }

    /// The object as it is.
    ///
    /// # Errors
    /// If it is none of this type.
    pub fn old_object<K: DeserializeOwned>(&self) -> Result<K, Denied> {
        decode(&self.old_object)
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn decode<K: DeserializeOwned>(object: &Value) -> Result<K, Denied> {
    if object.is_null() {
        return Err(Denied::bad_request("there is no content to decode"));
    }
    K::deserialize(object).map_err(|error| Denied::bad_request(error.to_string()))
}

impl Response {
    pub fn allowed() -> Self {
        Response { verdict: Ok(()), patch: Vec::new(), warnings: Vec::new() }
    }

    pub fn denied(denied: Denied) -> Self {
        Response { verdict: Err(denied), patch: Vec::new(), warnings: Vec::new() }
    }

    /// Allows the change, with another object.
    pub fn patched(review: &Review, object: &Value) -> Self {
        Response { patch: patch::difference(&review.object, object), ..Response::allowed() }
    }

    pub fn with_warnings(mut self, warnings: impl IntoIterator<Item = String>) -> Self {
        self.warnings.extend(warnings);
        self
    }

    /// In the form of an `AdmissionReview`, of the version that was asked.
    pub(super) fn into_review(self, api_version: &str, review: &Review) -> Value {
        let Notes { mut warnings, annotations } = std::mem::take(&mut *review.notes());
        warnings.extend(self.warnings);
        let status = match &self.verdict {
            Ok(()) => json!({ "metadata": {}, "code": 200 }),
            Err(denied) => denied.status(review),
        };
        let mut response = json!({
            "uid": review.uid, "allowed": self.verdict.is_ok(), "status": status,
        });
        if !self.patch.is_empty() {
            response["patch"] = Value::from(patch::encode(&self.patch));
            response["patchType"] = Value::from("JSONPatch");
        }
        if !annotations.is_empty() {
            response["auditAnnotations"] = json!(annotations);
        }
        if !warnings.is_empty() {
            response["warnings"] = Value::from(warnings);
        }
        json!({ "kind": "AdmissionReview", "apiVersion": api_version, "response": response })
    }

    /// The answer to what is no review, so that its version is unknown.
    pub(super) fn unreadable(denied: &Denied) -> Value {
        let status = denied.status(&Review::default());
        json!({ "response": { "uid": "", "allowed": false, "status": status } })
    }
}
