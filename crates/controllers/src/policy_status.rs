//! What is wrong with the types in the expressions of an admission policy.
//!
//! When a policy is written, the server knows nothing of the objects it will judge. This controller
//! does: it looks up the kinds that the policy is about, and tells in the policy's status where an
//! expression asks for a field that such an object does not have.

mod check;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Request;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::{Api, Patch, PatchParams};
use kube::{Client, Error};
use kubewright::{Action, Context, Controller, Reconciler};
use kubewright_apimachinery::cel::Type;
use kubewright_apimachinery::gvk::{GroupVersion, GroupVersionKind};
use serde_json::{Value, json};
use tokio::sync::watch;
use tracing::debug;

use self::check::{Seen, matched, warnings};
use crate::answer::present;
use crate::kinds::Kinds;
use crate::part::text;
use crate::{names, part};

const MANAGER: &str = "validatingadmissionpolicy-status";
/// Upstream's number of policies at a time.
const AT_ONCE: usize = 5;

/// The controller of all policies that judge. It is told which kinds are served.
pub(crate) fn controller(
    kinds: watch::Receiver<Arc<Kinds>>,
) -> Controller<ValidatingAdmissionPolicy, PolicyStatus> {
    part::controller(names::POLICY_STATUS, PolicyStatus { kinds }).at_once(AT_ONCE)
}

pub(crate) struct PolicyStatus {
    kinds: watch::Receiver<Arc<Kinds>>,
}

impl Reconciler<ValidatingAdmissionPolicy> for PolicyStatus {
    async fn reconcile(
        &self,
        policy: &mut ValidatingAdmissionPolicy,
        ctx: &Context,
    ) -> Result<Action, kubewright::Error> {
        let observed = policy.status.as_ref().and_then(|status| status.observed_generation);
        if policy.metadata.generation <= observed {
            return Ok(Action::Done);
        }
        let name = text(&policy.metadata.name);
        let seen = self.look_up(ctx.client(), policy).await?;
        let status = json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": { "name": name },
            "status": {
                "observedGeneration": policy.metadata.generation,
                "typeChecking": match warnings(policy, &seen) {
                    none if none.is_empty() => json!({}),
                    some => json!({ "expressionWarnings": some }),
                },
            },
        });
        let api: Api<ValidatingAdmissionPolicy> = Api::all(ctx.client().clone());
        let parameters = PatchParams::apply(MANAGER).force();
        let applied = api.patch_status(name, &parameters, &Patch::Apply(&status)).await;
        if let Some(applied) = present(applied)? {
            ctx.informer::<ValidatingAdmissionPolicy>()?.expect(&applied.metadata);
        }
        Ok(Action::Done)
    }
}

impl PolicyStatus {
    /// The types of what a policy is about. Of a kind that has no schema nothing is said.
    async fn look_up(
        &self,
        client: &Client,
        policy: &ValidatingAdmissionPolicy,
    ) -> Result<Seen, Error> {
        let known = Arc::clone(&self.kinds.borrow());
        let kinds = match matched(policy, &known) {
            Ok(kinds) => kinds,
            // What is not served may be since a moment ago.
            Err(_) => match matched(policy, &Kinds::discover(client).await?) {
                Ok(kinds) | Err(kinds) => kinds,
            },
        };
        let mut library = Library { client, documents: BTreeMap::new() };
        let mut seen = Seen::default();
        for kind in kinds {
            if let Some(type_) = library.type_of(&kind).await? {
                seen.objects.push((kind, type_));
            }
        }
        if let Some(kind) = policy.spec.as_ref().and_then(|spec| spec.param_kind.as_ref()) {
            let version = GroupVersion::parse(kind.api_version.as_deref().unwrap_or_default());
            let kind = version.ok().map(|version| {
                let kind = kind.kind.as_deref().unwrap_or_default();
                GroupVersionKind::new(version.group, version.version, kind)
            });
            let type_ = match kind {
                Some(kind) => library.type_of(&kind).await?,
                None => None,
            };
            seen.params = Some(type_.unwrap_or(Type::Dyn));
        }
        Ok(seen)
    }
}

/// OpenAPI documents, each read once.
struct Library<'a> {
    client: &'a Client,
    documents: BTreeMap<String, Option<Value>>,
}

impl Library<'_> {
    async fn type_of(&mut self, kind: &GroupVersionKind) -> Result<Option<Type>, Error> {
        let path = match kind.group.as_str() {
            "" => format!("/openapi/v3/api/{}", kind.version),
            group => format!("/openapi/v3/apis/{group}/{}", kind.version),
        };
        if !self.documents.contains_key(&path) {
            let request = Request::get(&path).body(Vec::new()).map_err(Error::HttpError)?;
            let document = present(self.client.request::<Value>(request).await)?;
            self.documents.insert(path.clone(), document);
        }
        let Some(document) = &self.documents[&path] else { return Ok(None) };
        let type_ = Type::of_open_api(document, kind);
        Ok(type_.inspect_err(|error| debug!(%error, "a kind is not checked")).ok())
    }
}
