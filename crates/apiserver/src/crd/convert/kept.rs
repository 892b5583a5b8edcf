//! Converted revisions: made once, kept with what is stored, shared by all who wait for them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::{BoxFuture, Shared, WeakShared};
use kubewright_apimachinery::gvk::GroupVersionKind;
use kubewright_store::{Form, Key, Revision};
use serde_json::Value;

use super::{Webhook, failed};
use crate::encode;
use crate::index::{self, Index, Stored};
use crate::meta;
use crate::refusal::Refusal;
use crate::resource::Custom;

/// How much goes out in one review,
const BATCH_BYTES_MAX: usize = 1 << 20;
/// and how many objects.
const BATCH_COUNT_MAX: usize = 500;

/// How one version of a resource comes about of what is stored in others.
pub(crate) struct Conversion {
    pub(super) webhook: Arc<Webhook>,
    /// The version, as `group/version`.
    api_version: String,
    /// How stored bytes begin that need no conversion.
    own: Box<[u8]>,
    /// What names converted values among the forms of a revision.
    form: Form,
    underway: Mutex<HashMap<Place, (WeakShared<Review>, usize)>>,
}

/// What is converted.
type Place = (Key, Revision);

/// The bytes of all objects of a review, in their order.
type Review = BoxFuture<'static, Result<Arc<[Bytes]>, Refusal>>;

/// A revision that is waited for, by its place among those that are wanted.
struct Awaited {
    wanted: usize,
    review: Shared<Review>,
    /// Its place in the review.
    place: usize,
}

impl fmt::Debug for Conversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Conversion").field("api_version", &self.api_version).finish_non_exhaustive()
    }
}

impl Conversion {
    /// For the version of `gvk`; `schema` tells definitions apart.
    pub(crate) fn new(webhook: Arc<Webhook>, gvk: &GroupVersionKind, schema: u64) -> Self {
        let (kind, api_version) = (&gvk.kind, gvk.api_version());
        Conversion {
            webhook,
            own: format!(r#"{{"kind":"{kind}","apiVersion":"{api_version}","#).into_bytes().into(),
            form: encode::converted_form(&api_version, schema),
            api_version,
            underway: Mutex::default(),
        }
    }

    pub(super) async fn shown(
        &self,
        custom: &Custom,
        revs: Vec<Stored>,
    ) -> Result<Vec<Stored>, Refusal> {
        let mut shown: Vec<Option<Stored>> = revs.iter().map(|rev| self.known(rev)).collect();
        let missing: Vec<usize> = (0..revs.len()).filter(|at| shown[*at].is_none()).collect();
        for batch in batches(&revs, &missing) {
            for Awaited { wanted, review, place } in self.join(custom, &revs, batch) {
                let bytes = review.await?[place].clone();
                let kept = revs[wanted].rendered(self.form, || Ok::<_, Refusal>(bytes))?;
                shown[wanted] = Some(made(&revs[wanted], kept));
            }
        }
        Ok(shown.into_iter().flatten().collect())
    }

    pub(super) async fn shown_anew(
        &self,
        custom: &Custom,
        rev: &Stored,
    ) -> Result<Stored, Refusal> {
        if self.is_own(rev) {
            return Ok(Arc::clone(rev));
        }
        let shown = review(custom.clone(), vec![bare(rev)], self.api_version.clone()).await?;
        Ok(made(rev, shown[0].clone()))
    }

    /// Whether a revision is shown as it is, or cannot be read at all, which others will tell.
    fn is_own(&self, rev: &Stored) -> bool {
        let index = &rev.extracted;
        !index.is_object() || index.is_shown() || *index.parts(&rev.value).type_meta == *self.own
    }

    /// The revision as it is shown, if nobody need be asked.
    fn known(&self, rev: &Stored) -> Option<Stored> {
        if self.is_own(rev) {
            return Some(Arc::clone(rev));
        }
        let kept = rev.rendered(self.form, || Err(())).ok()?;
        Some(made(rev, kept))
    }

    /// The reviews that bring these revisions: those that are under way, and one for the rest.
    fn join(&self, custom: &Custom, revs: &[Stored], batch: &[usize]) -> Vec<Awaited> {
        let mut underway = self.underway.lock().unwrap_or_else(PoisonError::into_inner);
        let mut awaited = Vec::with_capacity(batch.len());
        let mut rest = Vec::new();
        for wanted in batch.iter().copied() {
            let found = underway.get(&place(&revs[wanted]));
            match found.and_then(|(review, place)| Some((review.upgrade()?, *place))) {
                Some((review, place)) => awaited.push(Awaited { wanted, review, place }),
                None => rest.push(wanted),
            }
        }
        if rest.is_empty() {
            return awaited;
        }
        let objects = rest.iter().map(|at| bare(&revs[*at])).collect();
        let review = review(custom.clone(), objects, self.api_version.clone()).boxed().shared();
        // What nobody waits for any more is over, or will never be.
        underway.retain(|_, (review, _)| review.upgrade().is_some());
        for (at, wanted) in rest.into_iter().enumerate() {
            if let Some(weak) = review.downgrade() {
                underway.insert(place(&revs[wanted]), (weak, at));
            }
            awaited.push(Awaited { wanted, review: review.clone(), place: at });
        }
        awaited
    }
}

/// Converts stored objects, and gives the bytes in which they are kept.
async fn review(custom: Custom, objects: Vec<Value>, to: String) -> Result<Arc<[Bytes]>, Refusal> {
    let shown = custom.show(objects, &to).await.map_err(failed)?;
    Ok(shown.iter().map(index::to_bytes).collect())
}

/// The stored object as a webhook is to see it: its revision is nothing that was stored.
fn bare(rev: &Stored) -> Value {
    let mut object = index::object(rev).unwrap_or_default();
    if object.is_object() {
        meta::of(&mut object).shift_remove("resourceVersion");
    }
    object
}

/// The revision with what it was converted to.
fn made(rev: &Stored, bytes: Bytes) -> Stored {
    let index = Index::of_shown(&bytes).unwrap_or_default();
    Arc::new(rev.with_value(bytes, index))
}

fn place(rev: &Stored) -> Place {
    (rev.key.clone(), rev.revision)
}

/// Cuts what is to be converted into pieces that a webhook can take at once.
fn batches<'a>(revs: &[Stored], mut missing: &'a [usize]) -> Vec<&'a [usize]> {
    let mut batches = Vec::new();
    while !missing.is_empty() {
        let mut bytes = 0;
        let fitting = missing.iter().take(BATCH_COUNT_MAX).take_while(|at| {
            bytes += revs[**at].value.len();
            bytes <= BATCH_BYTES_MAX
        });
        // One object goes out however large it is.
        let count = fitting.count().max(1);
        let (batch, rest) = missing.split_at(count);
        batches.push(batch);
        missing = rest;
    }
    batches
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{BATCH_BYTES_MAX, batches};
    use crate::sample::{config_map, put, resource, store};

    #[tokio::test]
    async fn a_review_is_no_longer_than_a_webhook_can_take() {
        let (store, config_maps) = (store(), resource("", "v1", "configmaps"));
        let mut revs = Vec::new();
        for (name, bytes) in [("a", 1), ("b", 1), ("c", BATCH_BYTES_MAX), ("d", 1)] {
            let mut object = config_map(name);
            object["data"] = json!({ "of": "x".repeat(bytes) });
            revs.push(put(&store, &config_maps, &object).await);
        }
        assert_eq!(batches(&revs, &[0, 1, 2, 3]), [&[0, 1][..], &[2], &[3]]);
        assert_eq!(batches(&revs, &[0, 1, 3]), [&[0, 1, 3][..]]);
        assert!(batches(&revs, &[]).is_empty());
    }
}
