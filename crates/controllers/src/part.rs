//! What a controller on the library is to this crate, and what all of them have in common.

use std::time::Duration;

use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kubewright::context::Kind;
use kubewright::controller::Surroundings;
use kubewright::{Controller, Reconciler};
use kubewright_apimachinery::int_or_string::{self, Rounding};
use tokio_util::sync::CancellationToken;

/// Who owns the fields that any of the controllers sets.
pub(crate) const MANAGER: &str = "kube-controller-manager";

/// A controller that was made and has not begun.
pub(crate) trait Part: Send {
    /// Works until `shutdown`; returns when everything it started has ended.
    fn run(
        self: Box<Self>,
        around: Surroundings,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, ()>;
}

impl<K: Kind + Clone, R: Reconciler<K>> Part for Controller<K, R> {
    fn run(
        self: Box<Self>,
        around: Surroundings,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        Box::pin(async move { Controller::run(&self, &around, &shutdown).await })
    }
}

/// What is not there does nothing: a controller that was not given what it needs.
impl<P: Part + Send + 'static> Part for Option<P> {
    fn run(
        self: Box<Self>,
        around: Surroundings,
        shutdown: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        match *self {
            Some(part) => Box::new(part).run(around, shutdown),
            None => Box::pin(async {}),
        }
    }
}

/// A controller that writes as upstream's do.
pub(crate) fn controller<K, R>(name: &str, reconciler: R) -> Controller<K, R>
where
    K: Kind + Clone,
    R: Reconciler<K>,
{
    Controller::new(name, reconciler).field_manager(MANAGER).by_update()
}

/// The name of an object, or of the namespace it is in; empty if it has none.
pub(crate) fn text(field: &Option<String>) -> &str {
    field.as_deref().unwrap_or_default()
}

/// A count as Go writes it: nothing for zero.
pub(crate) fn count(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

/// A number of seconds of some spec.
pub(crate) fn seconds(seconds: Option<i32>) -> Duration {
    Duration::from_secs(seconds.and_then(|seconds| seconds.try_into().ok()).unwrap_or_default())
}

/// A time as objects have it: to the second, else it would differ from itself once it is read.
pub(crate) fn time(now: Timestamp) -> Time {
    Time(Timestamp::from_second(now.as_second()).unwrap_or(now))
}

/// A number, or that share of `total` which a percentage says, rounded up or down.
pub(crate) fn scaled(value: &IntOrString, total: i32, rounding: Rounding) -> i32 {
    let value = match value {
        IntOrString::Int(number) => return *number,
        IntOrString::String(text) => int_or_string::IntOrString::String(text.clone()),
    };
    // The server takes nothing else than percentages.
    let scaled = value.scaled(total.into(), rounding).unwrap_or_default();
    i32::try_from(scaled).unwrap_or(i32::MAX)
}
