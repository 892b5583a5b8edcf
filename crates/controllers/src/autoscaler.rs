//! HorizontalPodAutoscalers: as many replicas as the work needs.
//!
//! This is the only controller that asks again and again: metrics have no events. `metrics` reads
//! what there is to do, `usage` how many replicas that makes, `proposal` does both for one metric,
//! and `behavior` says how fast replicas may change. `ambiguity` finds pods that two of them scale.

mod ambiguity;
mod behavior;
mod metrics;
mod proposal;
mod status;
mod usage;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::autoscaling::v1::Scale;
use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscaler, MetricStatus};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DynamicObject, GroupVersionKind, PostParams};
use kube::discovery;
use kubewright::{Action, Context, Controller, Error, Event, ObjectKey, Reconciler};
use kubewright_apimachinery::selector::label::Selector;

use crate::part;
use crate::part::text;
use ambiguity::Selectors;
use behavior::{Bounds, History};
use proposal::Scene;
use status::Conditions;
use usage::Question;

const AT_ONCE: usize = 5;
/// How often metrics are read.
const EVERY: Duration = Duration::from_secs(15);

pub(crate) fn controller() -> Controller<HorizontalPodAutoscaler, Autoscaler> {
    part::controller("horizontal-pod-autoscaler", Autoscaler::default())
        .reads::<Pod>()
        .when(kubewright::predicate::generation())
        .at_once(AT_ONCE)
}

/// The controller of all autoscalers.
#[derive(Default)]
pub(crate) struct Autoscaler {
    histories: Mutex<HashMap<ObjectKey, History>>,
    selectors: Selectors,
}

/// What came of the metrics: how many replicas and by which of them, or why there is no telling.
struct Outcome {
    proposal: Result<(i32, String), String>,
    statuses: Vec<MetricStatus>,
}

impl Reconciler<HorizontalPodAutoscaler> for Autoscaler {
    async fn reconcile(
        &self,
        scaler: &mut HorizontalPodAutoscaler,
        ctx: &Context,
    ) -> Result<Action, Error> {
        let mut conditions = Conditions::of(scaler, ctx.now());
        let outcome = self.scale(scaler, &mut conditions, ctx).await;
        scaler.status.get_or_insert_default().conditions = Some(conditions.into_list());
        if let Err(error) = outcome {
            // Metrics that are missing now may be there the next time; it is told in conditions.
            tracing::debug!(%error, "an autoscaler cannot scale");
        }
        Ok(Action::RequeueAfter(EVERY))
    }

    fn gone(&self, key: &ObjectKey) {
        self.histories().remove(key);
        self.selectors.forget(key);
    }
}

impl Autoscaler {
    async fn scale(
        &self,
        scaler: &mut HorizontalPodAutoscaler,
        conditions: &mut Conditions,
        ctx: &Context,
    ) -> Result<(), Error> {
        let spec = scaler.spec.clone();
        let namespace = text(&scaler.metadata.namespace).to_owned();
        let (api, scale) = match target(ctx, &spec.scale_target_ref, &namespace).await {
            Ok(found) => found,
            Err(why) => {
                ctx.event(Event::warning("FailedGetScale", &*why));
                let message = format!(
                    "the HPA controller was unable to get the target's current scale: {why}"
                );
                conditions.set("AbleToScale", false, "FailedGetScale", &message);
                return Err(Error::retry(why));
            }
        };
        let message = "the HPA controller was able to get the target's current scale";
        conditions.set("AbleToScale", true, "SucceededGetScale", message);
        let current = scale.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or_default();
        let bounds = Bounds { min: spec.min_replicas.unwrap_or(1), max: spec.max_replicas };
        let key = ObjectKey::of(&scaler.metadata);
        let now = ctx.now();
        self.histories().entry(key.clone()).or_default().begin(current, now);
        let mut statuses = Vec::new();
        let (desired, reason) = if current == 0 {
            let message = "scaling is disabled since the replica count of the target is zero";
            conditions.set("ScalingActive", false, "ScalingDisabled", message);
            (current, String::new())
        } else if current > bounds.max {
            (bounds.max, "Current number of replicas above Spec.MaxReplicas".to_owned())
        } else if current < bounds.min {
            (bounds.min, "Current number of replicas below Spec.MinReplicas".to_owned())
        } else {
            let outcome = self.propose(scaler, conditions, &scale, current, ctx).await;
            statuses = outcome.statuses;
            let (proposed, metric) = match outcome.proposal {
                Ok(proposal) => proposal,
                Err(why) => {
                    ctx.event(Event::warning("FailedComputeMetricsReplicas", &*why));
                    status::set(scaler, current, None, statuses, None);
                    return Err(Error::retry(why));
                }
            };
            let reason = match proposed > current {
                true => format!("{metric} above target"),
                false => "All metrics below target".to_owned(),
            };
            let mut histories = self.histories();
            let history = histories.entry(key.clone()).or_default();
            let normal = history.normalize(spec.behavior.as_ref(), bounds, current, proposed, now);
            conditions.set("AbleToScale", true, normal.stability.0, normal.stability.1);
            conditions.set("ScalingLimited", normal.is_limited, normal.limit.0, normal.limit.1);
            (normal.replicas, reason)
        };
        if desired == current {
            status::set(scaler, current, Some(current), statuses, None);
            return Ok(());
        }
        if let Err(error) = rescale(&api, &spec.scale_target_ref.name, scale, desired).await {
            let why = said(&error);
            let note = format!("New size: {desired}; reason: {reason}; error: {why}");
            ctx.event(Event::warning("FailedRescale", note));
            let message =
                format!("the HPA controller was unable to update the target scale: {why}");
            conditions.set("AbleToScale", false, "FailedUpdateScale", &message);
            status::set(scaler, current, None, statuses, None);
            return Err(error.into());
        }
        let message =
            format!("the HPA controller was able to update the target scale to {desired}");
        conditions.set("AbleToScale", true, "SucceededRescale", &message);
        let note = format!("New size: {desired}; reason: {reason}");
        ctx.event(Event::normal("SuccessfulRescale", note));
        if let Some(history) = self.histories().get_mut(&key) {
            history.note(spec.behavior.as_ref(), current, desired, now);
        }
        status::set(scaler, current, Some(desired), statuses, Some(now));
        Ok(())
    }

    /// How many replicas the metrics ask for: as many as the one that asks for most.
    async fn propose(
        &self,
        scaler: &HorizontalPodAutoscaler,
        conditions: &mut Conditions,
        scale: &Scale,
        current: i32,
        ctx: &Context,
    ) -> Outcome {
        let namespace = text(&scaler.metadata.namespace);
        let selector = scale.status.as_ref().map_or("", |status| text(&status.selector));
        let pods = match self.pods(scaler, selector, conditions, ctx) {
            Ok(pods) => pods,
            Err(why) => return Outcome { proposal: Err(why), statuses: Vec::new() },
        };
        let pods: Vec<&Pod> = pods.iter().map(AsRef::as_ref).collect();
        let question = Question {
            pods: &pods,
            resource: "",
            container: None,
            current,
            tolerance: behavior::tolerance(scaler.spec.behavior.as_ref()),
            now: ctx.now(),
        };
        let reported = scale.status.as_ref().map_or(0, |status| status.replicas);
        let scene = Scene { namespace, selector, question, reported };
        let specs = scaler.spec.metrics.as_deref().unwrap_or_default();
        let (mut statuses, mut failures) = (Vec::new(), Vec::new());
        let mut most: Option<(i32, String)> = None;
        for spec in specs {
            match proposal::propose(ctx.client(), spec, &scene).await {
                Ok(found) => {
                    statuses.push(found.status);
                    if most.as_ref().is_none_or(|(known, _)| found.replicas > *known) {
                        most = Some((found.replicas, found.name));
                    }
                }
                Err(failure) => {
                    ctx.event(Event::warning(failure.reason, &*failure.why));
                    statuses.push(MetricStatus::default());
                    failures.push(failure);
                }
            }
        }
        // With a metric missing nothing is scaled down: it might have asked for more.
        let most = most.filter(|(replicas, _)| failures.is_empty() || *replicas >= current);
        let proposal = match (most, failures.first()) {
            (Some(most), _) => {
                let metric = &most.1;
                let message = format!(
                    "the HPA was able to successfully calculate a replica count from {metric}"
                );
                conditions.set("ScalingActive", true, "ValidMetricFound", &message);
                Ok(most)
            }
            (None, Some(first)) => {
                let why = &first.why;
                let message = format!("the HPA was unable to compute the replica count: {why}");
                conditions.set("ScalingActive", false, first.reason, &message);
                let (failed, all, whole) = (failures.len(), specs.len(), &first.whole);
                Err(format!(
                    "invalid metrics ({failed} invalid out of {all}), first error is: {whole}"
                ))
            }
            // The server gives every autoscaler a metric.
            (None, None) => Err("there is no metric".to_owned()),
        };
        Outcome { proposal, statuses }
    }

    /// The pods that are scaled.
    ///
    /// # Errors
    /// Why they are not known to be this autoscaler's, which is told.
    fn pods(
        &self,
        scaler: &HorizontalPodAutoscaler,
        selector: &str,
        conditions: &mut Conditions,
        ctx: &Context,
    ) -> Result<Vec<Arc<Pod>>, String> {
        let mut refuse = |event: &str, reason: &str, why: String, message: &str| {
            ctx.event(Event::warning(event, &*why));
            conditions.set("ScalingActive", false, reason, message);
            why
        };
        if selector.is_empty() {
            let message = "the HPA target's scale is missing a selector";
            let why = "selector is required".to_owned();
            return Err(refuse("SelectorRequired", "InvalidSelector", why, message));
        }
        let parsed = Selector::parse(selector).map_err(|error| {
            let why = format!(
                "couldn't convert selector into a corresponding internal selector object: {error}"
            );
            refuse("InvalidSelector", "InvalidSelector", why.clone(), &why)
        })?;
        let all = ctx.informer::<Pod>().map_err(|error| error.to_string())?;
        let all =
            all.list_in(text(&scaler.metadata.namespace)).map_err(|error| error.to_string())?;
        let none = BTreeMap::new();
        let labels = |pod: &Arc<Pod>| pod.metadata.labels.clone();
        let pods: Vec<Arc<Pod>> = all
            .into_iter()
            .filter(|pod| parsed.matches(pod.metadata.labels.as_ref().unwrap_or(&none)))
            .collect();
        let key = ObjectKey::of(&scaler.metadata);
        let others = self.selectors.sharers(&key, parsed, pods.iter().filter_map(labels));
        match others {
            Some(keys) => {
                let why =
                    format!("pods by selector {selector} are controlled by multiple HPAs: {keys}");
                Err(refuse("AmbiguousSelector", "AmbiguousSelector", why.clone(), &why))
            }
            None => Ok(pods),
        }
    }

    fn histories(&self) -> MutexGuard<'_, HashMap<ObjectKey, History>> {
        self.histories.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is to be scaled, and its scale.
async fn target(
    ctx: &Context,
    reference: &k8s_openapi::api::autoscaling::v2::CrossVersionObjectReference,
    namespace: &str,
) -> Result<(Api<DynamicObject>, Scale), String> {
    let api_version = text(&reference.api_version);
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, &reference.kind);
    let resource = match discovery::pinned_kind(ctx.client(), &kind).await {
        Ok((resource, _)) => Some(resource),
        // The version says how whoever wrote it knew the kind; any that is served will do.
        Err(_) => {
            let group = discovery::group(ctx.client(), group).await.ok();
            let all = group.map(|group| group.resources_by_stability()).unwrap_or_default();
            let mut resources = all.into_iter().map(|(resource, _)| resource);
            resources.find(|resource| resource.kind == reference.kind)
        }
    };
    let resource = resource
        .ok_or_else(|| format!("no matches for kind {:?} in group {group:?}", reference.kind))?;
    let api: Api<DynamicObject> = Api::namespaced_with(ctx.client().clone(), namespace, &resource);
    let scale = api.get_scale(&reference.name).await.map_err(|error| said(&error))?;
    Ok((api, scale))
}

async fn rescale(
    api: &Api<DynamicObject>,
    name: &str,
    mut scale: Scale,
    replicas: i32,
) -> Result<(), kube::Error> {
    scale.spec.get_or_insert_default().replicas = Some(replicas);
    api.replace_scale(name, &PostParams::default(), &scale).await.map(drop)
}

/// What the server said, or else what went wrong.
fn said(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}
