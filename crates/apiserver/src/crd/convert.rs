//! Versions of custom resources, and the way between them.
//!
//! Objects are stored in one version and shown in all. Where the definition names a webhook for
//! that, what is stored in another version than the one asked for goes through it before anything
//! else looks at it: selectors, tables and watches see what was converted. This is a stage of its
//! own, so that nobody waits, and no bytes are read, where there is nothing to convert. What was
//! converted is kept with the revision.

mod asked;
mod kept;
mod review;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use kubewright_apimachinery::gvk::GroupVersion;
use kubewright_apimachinery::json;
use kubewright_apimachinery::schema::Malformed;
use kubewright_apimachinery::schema::crd::Definition;
use kubewright_apimachinery::status::{Reason, Status};
use kubewright_store::Event;
use serde_json::Value;

pub(crate) use self::asked::Asked;
pub(crate) use self::kept::Conversion;
use crate::encode::{self, custom};
use crate::index::{self, Index, Store, Stored};
use crate::meta;
use crate::metrics::Metrics;
use crate::outbound::Line;
use crate::refusal::Refusal;
use crate::resource::{Custom, Origin, Resource};

/// Who converts the objects of a definition.
pub(crate) struct Webhook {
    /// The name of the definition.
    definition: String,
    metrics: Arc<Metrics>,
    /// The way to it, or why there is none.
    line: Result<Line, String>,
    /// The version of ConversionReview that it understands, of those that we do.
    version: Option<&'static str>,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Webhook").field("version", &self.version).finish_non_exhaustive()
    }
}

impl Webhook {
    /// The webhook that a definition names, if it names one.
    pub(crate) fn of(
        store: &Store,
        metrics: &Arc<Metrics>,
        object: &Value,
        definition: &Definition,
    ) -> Option<Self> {
        let conversion = definition.spec.conversion.as_ref()?;
        if conversion.strategy != "Webhook" {
            return None;
        }
        let config = &object["spec"]["conversion"]["webhook"]["clientConfig"];
        let line = Line::of_client_config(store.clone(), config).map_err(|why| why.to_string());
        let known = |named: &String| review::VERSIONS.into_iter().find(|version| version == named);
        let version = conversion.review_versions.iter().find_map(known);
        let definition = meta::text(object, "name").to_owned();
        Some(Webhook { definition, metrics: Arc::clone(metrics), line, version })
    }
}

impl Custom {
    /// Objects of any version in this one, as `group/version`, in their order. Whether they fit its
    /// schema is not looked at.
    ///
    /// # Errors
    /// In upstream's words.
    pub(crate) async fn convert(
        &self,
        mut objects: Vec<Value>,
        to: &str,
    ) -> Result<Vec<Value>, String> {
        self.check_known("to", to)?;
        for object in &objects {
            self.check_known("from", object["apiVersion"].as_str().unwrap_or_default())?;
        }
        match &self.conversion {
            Some(conversion) => review::convert(&conversion.webhook, objects, to).await,
            None => {
                for object in &mut objects {
                    object["apiVersion"] = to.into();
                }
                Ok(objects)
            }
        }
    }

    /// Fails unless the definition has a version.
    pub(crate) fn check_known(&self, direction: &str, api_version: &str) -> Result<(), String> {
        let found = GroupVersion::parse(api_version).unwrap_or_default();
        let mut versions = self.definition.versions().iter();
        match found.group == self.definition.spec.group
            && versions.any(|known| known.name == found.version)
        {
            true => Ok(()),
            false => Err(format!(
                "request to convert CR {direction} an invalid group/version: {api_version}"
            )),
        }
    }

    /// Stored objects in another version, as that one shows them: settled in the version they are
    /// stored in, converted, and made to fit. Keys come out in order.
    async fn show(&self, mut objects: Vec<Value>, to: &str) -> Result<Vec<Value>, String> {
        for object in &mut objects {
            custom::settle(object, self);
            json::sort_keys(object);
        }
        self.fitting(objects, to).await
    }

    async fn fitting(&self, objects: Vec<Value>, to: &str) -> Result<Vec<Value>, String> {
        let mut converted = self.convert(objects, to).await?;
        for object in &mut converted {
            custom::fit(object, self, Malformed::Refuse)?;
            json::sort_keys(object);
        }
        Ok(converted)
    }
}

impl Resource {
    /// What converts stored objects before they are shown, if something does.
    fn conversion(&self) -> Option<(&Custom, &Arc<Conversion>)> {
        match &self.origin {
            Origin::Custom(custom) => Some((custom, custom.conversion.as_ref()?)),
            Origin::Builtin(_) => None,
        }
    }

    /// Whether a webhook has a say in what is shown.
    pub(crate) fn is_converted(&self) -> bool {
        self.conversion().is_some()
    }

    /// Revisions as this version shows them, in their order; as they are, when nothing converts
    /// them. What was converted before is not converted again.
    pub(crate) async fn shown(&self, revs: Vec<Stored>) -> Result<Vec<Stored>, Refusal> {
        match self.conversion() {
            Some((custom, conversion)) => conversion.shown(custom, revs).await,
            None => Ok(revs),
        }
    }

    /// One revision as this version shows it. The webhook is asked even if it was before: upstream
    /// reads single objects from its storage, and everything else from what it has in memory.
    pub(crate) async fn shown_anew(&self, rev: &Stored) -> Result<Stored, Refusal> {
        match self.conversion() {
            Some((custom, conversion)) => conversion.shown_anew(custom, rev).await,
            None => Ok(Arc::clone(rev)),
        }
    }

    /// Changes between revisions as this version shows them. What was there before is wanted where
    /// somebody selects, and where nothing came after it.
    pub(crate) async fn shown_changes(
        &self,
        events: &[Arc<Event<Index>>],
        with_previous: bool,
    ) -> Result<Vec<Arc<Event<Index>>>, Refusal> {
        let needs_previous = |event: &Event<Index>| with_previous || event.current.is_none();
        let mut revs = Vec::new();
        for event in events {
            revs.extend(event.current.clone());
            revs.extend(event.previous.clone().filter(|_| needs_previous(event)));
        }
        let mut shown = self.shown(revs).await?.into_iter();
        let mut next = || shown.next().expect("as many come out as go in");
        let changes = events.iter().map(|event| {
            let current = event.current.as_ref().map(|_| next());
            let previous = match needs_previous(event) {
                true => event.previous.as_ref().map(|_| next()),
                false => event.previous.clone(),
            };
            Arc::new(event.between(previous, current))
        });
        Ok(changes.collect())
    }

    /// The object as a tree in the version in which writes judge it.
    pub(crate) async fn live(&self, rev: &Stored) -> Result<Value, Refusal> {
        if !self.is_converted() {
            return encode::live(self, rev);
        }
        let shown = self.shown(vec![Arc::clone(rev)]).await?;
        encode::live(self, &shown[0])
    }

    /// The bytes to store of an object in the version in which writes judge it.
    pub(crate) async fn storage_bytes(&self, object: &mut Value) -> Result<Bytes, Refusal> {
        match &self.origin {
            Origin::Custom(custom) if self.gvk != self.hub => {
                let hub = self.in_storage(custom, object).await?;
                Ok(index::to_bytes(&hub))
            }
            _ => Ok(self.to_bytes(object)),
        }
    }

    /// What a write would have shown if it had been stored.
    pub(crate) async fn rehearsed(&self, object: Value) -> Result<Value, Refusal> {
        match &self.origin {
            Origin::Custom(custom) if self.gvk != self.hub => {
                let hub = self.in_storage(custom, &object).await?;
                let shown =
                    custom.show(vec![hub], &self.gvk.api_version()).await.map_err(failed)?;
                let mut shown = shown.into_iter().next().unwrap_or_default();
                meta::restore(&mut shown, &object, "resourceVersion");
                Ok(shown)
            }
            _ => Ok(object),
        }
    }

    /// An object in the version in which it is stored.
    async fn in_storage(&self, custom: &Custom, object: &Value) -> Result<Value, Refusal> {
        let mut object = object.clone();
        meta::of(&mut object).shift_remove("resourceVersion");
        json::sort_keys(&mut object);
        let stored = custom.fitting(vec![object], &self.hub.api_version()).await.map_err(failed)?;
        Ok(stored.into_iter().next().unwrap_or_default())
    }
}

/// Conversions fail as upstream's storage does: without a reason that clients could act on.
fn failed(why: String) -> Refusal {
    Box::new(Status::failure(500, Reason::Unknown, why))
}
