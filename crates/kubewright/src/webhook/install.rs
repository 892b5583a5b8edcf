//! Tells a server of webhooks, and takes it back.

use std::fmt::Debug;

use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::former::{Base, Step, moved, restored_configuration, restored_conversion, whole};
use super::registration::{Configurations, Place, Purpose, Registration, Trust};

/// How often an object that changes meanwhile is looked at anew.
const ATTEMPTS_MAX: usize = 5;

/// Why a server was not told of webhooks, or still knows of them.
#[derive(Debug, thiserror::Error)]
#[error("{verb} {kind} {name}")]
pub struct InstallError {
    verb: &'static str,
    kind: String,
    name: String,
    #[source]
    source: kube::Error,
}

impl InstallError {
    /// Whether a definition is not there, or not yet.
    pub fn is_missing(&self) -> bool {
        matches!(&self.source, kube::Error::Api(status) if status.code == 404)
    }
}

/// Has a server call these webhooks of an operator: applies configurations under the names that its
/// manifests have, and sets the conversion of the definitions, which must be there.
///
/// Configurations need a cluster's administrator; where manifests are applied by one, the operator
/// itself needs none of this.
///
/// # Errors
/// If the server refuses.
pub async fn install(
    client: &Client,
    operator: &str,
    registrations: impl IntoIterator<Item = &Registration>,
    place: &Place,
    trust: &Trust,
) -> Result<(), InstallError> {
    Installation::new(client, operator, registrations, place.clone(), trust.clone()).install().await
}

/// What a server is told of the webhooks of a process, for as long as it is there.
pub struct Installation {
    client: Client,
    operator: String,
    registrations: Vec<Registration>,
    place: Place,
    trust: Trust,
    former: Vec<Former>,
}

/// An object as it was before the server was told.
struct Former {
    target: Target,
    /// None if there was none.
    object: Option<Value>,
}

/// Where a server knows webhooks from.
#[derive(Clone, PartialEq, Eq)]
enum Target {
    Mutating(String),
    Validating(String),
    Definition(String),
}

impl Installation {
    /// Nothing is told yet.
    pub fn new<'a>(
        client: &Client,
        operator: &str,
        registrations: impl IntoIterator<Item = &'a Registration>,
        place: Place,
        trust: Trust,
    ) -> Self {
        Installation {
            client: client.clone(),
            operator: operator.to_owned(),
            registrations: registrations.into_iter().cloned().collect(),
            place,
            trust,
            former: Vec::new(),
        }
    }

    /// Does what [`install`] does, and remembers what was there before.
    ///
    /// # Errors
    /// If the server refuses. What it has taken is taken back all the same.
    pub async fn install(&mut self) -> Result<(), InstallError> {
        let (place, trust) = (self.place.clone(), self.trust.clone());
        // Objects that are judged may have to be converted to be.
        let converted = self.registrations.iter().filter(|it| it.purpose == Purpose::Convert);
        let converted: Vec<_> =
            converted.map(|it| (it.definition(), it.conversion(&place, &trust))).collect();
        for (name, conversion) in converted {
            self.remember(Target::Definition(name.clone())).await?;
            let patch = json!({
                "metadata": { "annotations": annotations(&trust) },
                // It may have been somewhere else before.
                "spec": { "conversion": whole(&conversion) },
            });
            let (patch, params) = (Patch::Merge(patch), PatchParams::default());
            set::<CustomResourceDefinition>(&self.client, &name, &patch, &params).await?;
        }
        let Configurations { mutating, validating } =
            Configurations::new(&self.operator, &self.registrations, &place, &trust);
        if let Some(it) = mutating {
            let name = it.metadata.name.clone().unwrap_or_default();
            let target = Target::Mutating(name);
            self.configure::<MutatingWebhookConfiguration>(target, &json!(it)).await?;
        }
        if let Some(it) = validating {
            let name = it.metadata.name.clone().unwrap_or_default();
            let target = Target::Validating(name);
            self.configure::<ValidatingWebhookConfiguration>(target, &json!(it)).await?;
        }
        Ok(())
    }

    /// Has the server call what it called before, wherever it still calls this process by URL: what
    /// somebody has changed since is theirs, and so is what is at a Service. A configuration that is
    /// of this process alone is deleted.
    ///
    /// # Errors
    /// If the server refuses; what could be taken back is.
    pub async fn take_back(&mut self) -> Result<(), InstallError> {
        let Place::Url(base) = &self.place else { return Ok(()) };
        let mut first = Ok(());
        // What was needed first goes last.
        for former in std::mem::take(&mut self.former).into_iter().rev() {
            let restored = former.restore(&self.client, &Base::of(base)).await;
            if first.is_ok() {
                first = restored;
            }
        }
        first
    }

    /// Applies a configuration.
    async fn configure<K>(&mut self, target: Target, wanted: &Value) -> Result<(), InstallError>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let name = target.name().to_owned();
        // Applied, a null takes no Service away that somebody else has set, and then there would be
        // two places.
        if let Some(patch) = self.remember(target).await?.and_then(|it| moved(&it, wanted)) {
            let (patch, params) = (Patch::Strategic(patch), PatchParams::default());
            set::<K>(&self.client, &name, &patch, &params).await?;
        }
        let params = PatchParams::apply(&self.operator).force();
        set::<K>(&self.client, &name, &Patch::Apply(wanted), &params).await
    }

    /// Keeps what an object is now, unless that is of this process already, and gives it.
    async fn remember(&mut self, target: Target) -> Result<Option<Value>, InstallError> {
        let there = target.api(&self.client).get_opt(target.name()).await;
        let there = there.map_err(|source| target.failed("read", source))?;
        let object = there.map(|it| it.data);
        let is_known = self.former.iter().any(|it| it.target == target);
        let is_ours = match (&object, &self.place) {
            // A process before this one that was killed may have been at the same place.
            (Some(object), Place::Url(base)) => is_known && target.is_of(&Base::of(base), object),
            // It is refused, and tried again when the definition is there.
            (None, _) => matches!(target, Target::Definition(_)),
            (Some(_), Place::Service { .. }) => false,
        };
        if !is_ours {
            self.former.retain(|it| it.target != target);
            self.former.push(Former { target, object: object.clone() });
        }
        Ok(object)
    }
}

impl Former {
    async fn restore(&self, client: &Client, base: &Base<'_>) -> Result<(), InstallError> {
        let Former { target, object } = self;
        let (api, name) = (target.api(client), target.name());
        for attempt in 1.. {
            let current = api.get_opt(name).await;
            let Some(current) = current.map_err(|source| target.failed("read", source))? else {
                break;
            };
            let done = match target.step(&current.data, object.as_ref(), base) {
                Step::Leave => break,
                Step::Change(mut patch) => {
                    patch["metadata"]["resourceVersion"] = json!(current.metadata.resource_version);
                    let params = PatchParams::default();
                    api.patch(name, &params, &Patch::Merge(patch)).await.map(drop)
                }
                Step::Delete => {
                    let preconditions = Some(Preconditions {
                        resource_version: current.metadata.resource_version,
                        uid: current.metadata.uid,
                    });
                    let params = DeleteParams { preconditions, ..DeleteParams::default() };
                    api.delete(name, &params).await.map(drop)
                }
            };
            match done {
                Ok(()) => break,
                Err(kube::Error::Api(status))
                    if status.code == 409 && attempt < ATTEMPTS_MAX || status.code == 404 => {}
                Err(source) => return Err(target.failed("take back", source)),
            }
        }
        Ok(())
    }
}

impl Target {
    fn name(&self) -> &str {
        let (Target::Mutating(name) | Target::Validating(name) | Target::Definition(name)) = self;
        name
    }

    fn resource(&self) -> ApiResource {
        match self {
            Target::Mutating(_) => ApiResource::erase::<MutatingWebhookConfiguration>(&()),
            Target::Validating(_) => ApiResource::erase::<ValidatingWebhookConfiguration>(&()),
            Target::Definition(_) => ApiResource::erase::<CustomResourceDefinition>(&()),
        }
    }

    /// With all their fields, which are more where the server is newer than this library.
    fn api(&self, client: &Client) -> Api<DynamicObject> {
        Api::all_with(client.clone(), &self.resource())
    }

    fn step(&self, current: &Value, former: Option<&Value>, base: &Base<'_>) -> Step {
        match self {
            Target::Mutating(_) | Target::Validating(_) => {
                restored_configuration(current, former, base)
            }
            Target::Definition(_) => restored_conversion(current, former, base),
        }
    }

    /// Whether it leads to a place already.
    fn is_of(&self, base: &Base<'_>, current: &Value) -> bool {
        self.step(current, None, base) != Step::Leave
    }

    fn failed(&self, verb: &'static str, source: kube::Error) -> InstallError {
        InstallError { verb, kind: self.resource().kind, name: self.name().to_owned(), source }
    }
}

fn annotations(trust: &Trust) -> Value {
    trust.annotation().map_or_else(|| json!({}), |from| json!({ super::INJECT_CA_FROM: from }))
}

async fn set<K>(
    client: &Client,
    name: &str,
    patch: &Patch<impl Serialize + Debug>,
    params: &PatchParams,
) -> Result<(), InstallError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
{
    let api: Api<K> = Api::all(client.clone());
    let set = api.patch(name, params, patch).await;
    let kind = K::kind(&()).into_owned();
    let failed = |source| InstallError { verb: "write", kind, name: name.to_owned(), source };
    set.map(drop).map_err(failed)
}
