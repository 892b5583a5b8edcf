//! Webhooks that complete objects, and webhooks that judge them.

use std::marker::PhantomData;

use futures::future::BoxFuture;
use kube::Resource;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::denied::Denied;
use super::patch;
use super::review::{Operation, Response, Review, Warnings};

/// Completes objects of one kind before they are judged and stored.
///
/// Also implemented by functions of the same arguments that need not wait.
pub trait Defaulter<K>: Send + Sync + 'static {
    /// Changes the object; the difference is sent to the server. What the type does not know is
    /// left as it is. Not asked about deletions.
    fn default(
        &self,
        object: &mut K,
        review: &Review,
    ) -> impl Future<Output = Result<(), Denied>> + Send;
}

/// Judges what becomes of objects of one kind. What is not implemented is allowed.
///
/// Also implemented by functions of a [`Change`] and a [`Review`] that need not wait.
pub trait Validator<K: Send + Sync>: Send + Sync + 'static {
    fn create(
        &self,
        object: &K,
        review: &Review,
    ) -> impl Future<Output = Result<Warnings, Denied>> + Send {
        let _ = (object, review);
        async { Ok(Warnings::new()) }
    }

    fn update(
        &self,
        old: &K,
        new: &K,
        review: &Review,
    ) -> impl Future<Output = Result<Warnings, Denied>> + Send {
        let _ = (old, new, review);
        async { Ok(Warnings::new()) }
    }

    /// Asked only if the webhook says so ([`super::Webhook::operations`]): a webhook that is away
    /// would keep objects, and namespaces, from being deleted.
    fn delete(
        &self,
        object: &K,
        review: &Review,
    ) -> impl Future<Output = Result<Warnings, Denied>> + Send {
        let _ = (object, review);
        async { Ok(Warnings::new()) }
    }
}

/// What is to become of an object.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a, K> {
    Create(&'a K),
    Update { old: &'a K, new: &'a K },
    Delete(&'a K),
}

/// Answers reviews of whatever objects.
///
/// Also implemented by functions that need not wait.
pub trait Handler: Send + Sync + 'static {
    fn handle(&self, review: &Review) -> impl Future<Output = Response> + Send;
}

impl<K, F> Defaulter<K> for F
where
    K: Send,
    F: Fn(&mut K, &Review) -> Result<(), Denied> + Send + Sync + 'static,
{
    async fn default(&self, object: &mut K, review: &Review) -> Result<(), Denied> {
        self(object, review)
    }
}

impl<K, F> Validator<K> for F
where
    K: Send + Sync,
    F: Fn(Change<'_, K>, &Review) -> Result<Warnings, Denied> + Send + Sync + 'static,
{
    async fn create(&self, object: &K, review: &Review) -> Result<Warnings, Denied> {
        self(Change::Create(object), review)
    }

    async fn update(&self, old: &K, new: &K, review: &Review) -> Result<Warnings, Denied> {
        self(Change::Update { old, new }, review)
    }

    async fn delete(&self, object: &K, review: &Review) -> Result<Warnings, Denied> {
        self(Change::Delete(object), review)
    }
}

impl<F> Handler for F
where
    F: Fn(&Review) -> Response + Send + Sync + 'static,
{
    async fn handle(&self, review: &Review) -> Response {
        self(review)
    }
}

/// What a webhook of a kind must be able to do with its objects.
pub trait Object:
    Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> Object for K where
    K: Resource<DynamicType = ()> + Serialize + DeserializeOwned + Send + Sync + 'static
{
}

/// A [`Handler`] whose type nobody needs to know.
pub(super) trait Answer: Send + Sync {
    fn answer<'a>(&'a self, review: &'a Review) -> BoxFuture<'a, Response>;
}

impl<H: Handler> Answer for H {
    fn answer<'a>(&'a self, review: &'a Review) -> BoxFuture<'a, Response> {
        Box::pin(self.handle(review))
    }
}

pub(super) struct Defaulting<K, D>(D, PhantomData<fn(K)>);

pub(super) struct Validating<K, V>(V, PhantomData<fn(K)>);

impl<K, D> Defaulting<K, D> {
    pub(super) fn new(defaulter: D) -> Self {
        Defaulting(defaulter, PhantomData)
    }
}

impl<K, V> Validating<K, V> {
    pub(super) fn new(validator: V) -> Self {
        Validating(validator, PhantomData)
    }
}

impl<K: Object, D: Defaulter<K>> Handler for Defaulting<K, D> {
    async fn handle(&self, review: &Review) -> Response {
        if review.operation == Operation::Delete {
            return Response::allowed();
        }
        self.object(review).await.map_or_else(Response::denied, |object| match object {
            Some(object) => Response::patched(review, &object),
            None => Response::allowed(),
        })
    }
}

impl<K: Object, D: Defaulter<K>> Defaulting<K, D> {
    /// The object as it should be; none if it is so already.
    async fn object(&self, review: &Review) -> Result<Option<Value>, Denied> {
        let written = |object: &K| {
            serde_json::to_value(object).map_err(|error| Denied::internal(error.to_string()))
        };
        let mut object: K = review.object()?;
        let before = written(&object)?;
        self.0.default(&mut object, review).await?;
        let after = written(&object)?;
        Ok((before != after).then(|| patch::carry(&review.object, &before, &after)))
    }
}

impl<K: Object, V: Validator<K>> Handler for Validating<K, V> {
    async fn handle(&self, review: &Review) -> Response {
        match self.judge(review).await {
            Ok(warnings) => Response::allowed().with_warnings(warnings),
            Err(denied) => Response::denied(denied),
        }
    }
}

impl<K: Object, V: Validator<K>> Validating<K, V> {
    async fn judge(&self, review: &Review) -> Result<Warnings, Denied> {
        match review.operation {
            Operation::Create => self.0.create(&review.object()?, review).await,
            Operation::Update => {
                let (new, old) = (review.object()?, review.old_object()?);
                self.0.update(&old, &new, review).await
            }
            Operation::Delete => self.0.delete(&review.old_object()?, review).await,
            Operation::Connect => Ok(Warnings::new()),
        }
    }
}
