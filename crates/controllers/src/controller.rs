//! What makes a controller: it is told of changes, and works.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube::core::ObjectMeta;
use tokio_util::sync::CancellationToken;

use crate::kinds::{Kind, Kinds};

/// One of the controllers.
pub(crate) trait Controller: Send + Sync {
    /// Whether it must be told of objects of this kind.
    fn wants(&self, kind: &Kind) -> bool;

    /// Takes note of a change. Called by the task that watches, so it only notes.
    fn observe(&self, change: &Change<'_>);

    /// Works until `shutdown`.
    fn run(self: Arc<Self>, shutdown: CancellationToken) -> BoxFuture<'static, ()>;
}

/// Something is not as it was. Told again of what it knows, a controller loses nothing but time.
pub(crate) enum Change<'a> {
    /// Other kinds are served than before.
    Kinds(&'a Arc<Kinds>),
    /// An object is there, as it now is.
    Applied(&'a Arc<Kind>, &'a ObjectMeta),
    /// An object is gone. It has its namespace, name and uid, and may have more.
    Deleted(&'a Arc<Kind>, &'a ObjectMeta),
}

/// The name of an object, or of the namespace it is in; empty if it has none.
pub(crate) fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}
