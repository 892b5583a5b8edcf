//! One reconcile, from the object in the cache to what is written of it.

use std::borrow::Cow;
use std::sync::Arc;

use tracing::{debug, warn};

use super::Reconciler;
use crate::context::{Context, Kind, Site, Unsent};
use crate::informer::Informer;
use crate::key::ObjectKey;
use crate::reconcile::{Action, Error, Request};

pub(super) struct Round<K, R> {
    pub(super) site: Arc<Site>,
    pub(super) reconciler: Arc<R>,
    pub(super) finalizer: Option<Arc<str>>,
    pub(super) until_gone: bool,
    pub(super) primary: Informer<K>,
}

/// What has become of a write.
struct Written<K> {
    object: K,
    /// The text of what was to become of it.
    wanted: Vec<u8>,
}

/// Why what a reconcile changed was not written.
enum Unwritten {
    /// There is nothing to write to any more.
    Gone,
    /// Somebody else was faster: look again.
    Conflict,
    Failed(Error),
}

impl<K: Kind + Clone, R: Reconciler<K>> Round<K, R> {
    pub(super) async fn reconcile(&self, request: &Request<K>) -> Result<Action, Error> {
        let Some(object) = &request.object else {
            self.reconciler.gone(&request.key);
            return Ok(Action::Done);
        };
        let mut object = K::clone(object);
        let is_held = self.finalizer.as_deref().is_some_and(|own| has(&object, own));
        if object.meta().deletion_timestamp.is_some() {
            match is_held {
                true => return self.clean_up(request, object).await,
                false if self.until_gone => {}
                // What it has brought about goes with it, or is somebody else's to take back.
                false => return Ok(Action::Done),
            }
        } else if let Some(finalizer) = self.finalizer.as_deref().filter(|_| !is_held) {
            // Nothing is brought about that could not be taken back.
            let before = serde_json::to_vec(&object)?;
            let finalizers = object.meta_mut().finalizers.get_or_insert_default();
            finalizers.push(finalizer.to_owned());
            match self.write(request, &before, &object).await {
                Ok(Some(written)) => {
                    object = written.object;
                    // As it would be in the cache.
                    self.primary.project(&mut object);
                }
                Ok(None) => {}
                Err(unwritten) => return unwritten.action(),
            }
        }
        let (before, ctx) =
            (serde_json::to_vec(&object)?, Context::new(&self.site, request, &object));
        let ended = self.reconciler.reconcile(&mut object, &ctx).await;
        self.settle(request, ended, &before, &object).await
    }

    async fn clean_up(&self, request: &Request<K>, mut object: K) -> Result<Action, Error> {
        let (before, ctx) =
            (serde_json::to_vec(&object)?, Context::new(&self.site, request, &object));
        let ended = self.reconciler.cleanup(&mut object, &ctx).await;
        if matches!(ended, Ok(Action::Done)) {
            let finalizers = &mut object.meta_mut().finalizers;
            if let Some(finalizers) = finalizers {
                finalizers.retain(|known| Some(&**known) != self.finalizer.as_deref());
            }
        }
        self.settle(request, ended, &before, &object).await
    }

    /// Writes what a reconcile has changed, however it ended.
    async fn settle(
        &self,
        request: &Request<K>,
        ended: Result<Action, Error>,
        before: &[u8],
        after: &K,
    ) -> Result<Action, Error> {
        let written = match self.write(request, before, after).await {
            Ok(Some(written)) => {
                let version = written.object.meta().resource_version.clone().unwrap_or_default();
                if self.is_as_wanted(written, after)? {
                    // It is wholly as this reconcile wants it, so there is no reason to look again;
                    // nor to do so before its time if it has failed.
                    request.wrote(&version);
                }
                Ok(())
            }
            written => written.map(drop),
        };
        match (ended, written) {
            (Ok(action), Ok(_)) => Ok(action),
            (Ok(_), Err(unwritten)) => unwritten.action(),
            // It says for good what is wrong, where people look: were it not tried again, nobody
            // would ever see it.
            (Err(error), Err(unwritten @ (Unwritten::Conflict | Unwritten::Failed(_))))
                if error.is_terminal() =>
            {
                warn!(%error, "a reconcile failed for good, and what it has changed is not written");
                unwritten.action()
            }
            (Err(error), written) => {
                if let Err(Unwritten::Failed(error)) = written {
                    warn!(%error, "nor could be written what a reconcile has changed");
                }
                Err(error)
            }
        }
    }

    /// Sends what has changed. Gives the object as it was last written, if it was.
    async fn write(
        &self,
        request: &Request<K>,
        before: &[u8],
        after: &K,
    ) -> Result<Option<Written<K>>, Unwritten> {
        let key = ObjectKey::of(after.meta());
        let wanted = serde_json::to_vec(after)?;
        if wanted == before {
            return Ok(None);
        }
        let (before, after) = self.site.to_compare(before, &wanted)?;
        let client = request.work().map_or(&self.site.client, |work| work.client());
        let written = self.site.write(client, &key, &before, after).await;
        let written: Option<K> = written.map_err(|unsent| match unsent {
            Unsent::Status(error) if is_unserved(&error) => {
                Unwritten::Failed(Error::retry(StatusUnserved { kind: K::kind(&()) }))
            }
            Unsent::Status(error) | Unsent::Object(error) => error.into(),
        })?;
        if let Some(written) = &written {
            debug!(%key, "written");
            self.primary.expect(written.meta());
            // Reconciles may read the kind in a wider scope.
            self.site.informers.expect::<K>(written.meta());
        }
        Ok(written.map(|object| Written { object, wanted }))
    }
}

impl<K: Kind + Clone, R> Round<K, R> {
    /// Whether an object was written as it was wanted, but for what the server notes about its
    /// versions, and what nobody reads.
    fn is_as_wanted(&self, written: Written<K>, wanted: &K) -> Result<bool, serde_json::Error> {
        let Written { object: mut written, wanted: text } = written;
        self.primary.project(&mut written);
        let (notes, known) = (written.meta_mut(), wanted.meta());
        notes.generation = known.generation;
        notes.managed_fields.clone_from(&known.managed_fields);
        notes.resource_version.clone_from(&known.resource_version);
        // Most are the same to the letter; trees also are when maps have an order of their own.
        Ok(serde_json::to_vec(&written)? == text
            || serde_json::to_value(&written)? == serde_json::to_value(wanted)?)
    }
}

impl Unwritten {
    fn action(self) -> Result<Action, Error> {
        match self {
            Unwritten::Gone => Ok(Action::Done),
            Unwritten::Conflict => Ok(Action::Requeue),
            Unwritten::Failed(error) => Err(error),
        }
    }
}

/// Somebody forgot to say that the kind has a status.
#[derive(Debug, thiserror::Error)]
#[error("write the status of {kind}: its definition has no status subresource")]
struct StatusUnserved {
    kind: Cow<'static, str>,
}

/// Whether the path is unknown, and not only the object: the server then names none.
fn is_unserved(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else { return false };
    status.code == 404 && status.details.as_ref().is_none_or(|details| details.name.is_empty())
}

impl From<serde_json::Error> for Unwritten {
    fn from(error: serde_json::Error) -> Self {
        Unwritten::Failed(error.into())
    }
}

impl From<kube::Error> for Unwritten {
    fn from(error: kube::Error) -> Self {
        match &error {
            kube::Error::Api(status) if status.code == 404 => Unwritten::Gone,
            kube::Error::Api(status) if status.code == 409 => Unwritten::Conflict,
            _ => Unwritten::Failed(error.into()),
        }
    }
}

fn has(object: &impl Kind, finalizer: &str) -> bool {
    object.meta().finalizers.iter().flatten().any(|known| known == finalizer)
}
