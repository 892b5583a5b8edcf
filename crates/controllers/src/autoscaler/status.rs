//! What an autoscaler says of itself.

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::v2::{
    HorizontalPodAutoscaler, HorizontalPodAutoscalerCondition, MetricStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

/// Conditions, as they become.
pub(super) struct Conditions {
    list: Vec<HorizontalPodAutoscalerCondition>,
    now: Timestamp,
}

impl Conditions {
    pub(super) fn of(scaler: &HorizontalPodAutoscaler, now: Timestamp) -> Self {
        let list = scaler.status.as_ref().and_then(|status| status.conditions.clone());
        Conditions { list: list.unwrap_or_default(), now }
    }

    pub(super) fn set(&mut self, kind: &str, is_so: bool, reason: &str, message: &str) {
        let status = if is_so { "True" } else { "False" };
        let position = self.list.iter().position(|known| known.type_ == kind);
        let position = position.unwrap_or_else(|| {
            self.list.push(HorizontalPodAutoscalerCondition {
                type_: kind.to_owned(),
                ..HorizontalPodAutoscalerCondition::default()
            });
            self.list.len() - 1
        });
        let condition = &mut self.list[position];
        if condition.status != status {
            condition.last_transition_time = Some(Time(self.now));
        }
        condition.status = status.to_owned();
        condition.reason = Some(reason.to_owned());
        condition.message = Some(message.to_owned());
    }

    pub(super) fn into_list(self) -> Vec<HorizontalPodAutoscalerCondition> {
        self.list
    }
}

/// Says how many replicas there are and should be; without a number that stays as it was.
pub(super) fn set(
    scaler: &mut HorizontalPodAutoscaler,
    current: i32,
    desired: Option<i32>,
    metrics: Vec<MetricStatus>,
    rescaled_at: Option<Timestamp>,
) {
    let status = scaler.status.get_or_insert_default();
    status.current_replicas = Some(current).filter(|count| *count != 0);
    if let Some(desired) = desired {
        status.desired_replicas = desired;
    }
    status.current_metrics = Some(metrics).filter(|metrics| !metrics.is_empty());
    if let Some(at) = rescaled_at {
        status.last_scale_time = Some(Time(at));
    }
}
