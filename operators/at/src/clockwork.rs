//! Does what is planned for an `At`.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewright::condition::Conditions as _;
use kubewright::{Action, Context, Error, Event, Reconciler};
use tracing::info;

use crate::kind::{At, Phase};
use crate::plan::{Step, plan, pod_name};

/// The condition that says whether the time of an `At` is known.
const SCHEDULED: &str = "Scheduled";

/// Launches pods in time.
pub struct Clockwork;

impl Reconciler<At> for Clockwork {
    async fn reconcile(&self, at: &mut At, ctx: &Context) -> Result<Action, Error> {
        info!("=== Reconciling At");
        loop {
            info!("Phase: {}", at.phase().as_str());
            if at.phase() == Phase::Pending {
                let target = at.spec.schedule.as_deref().unwrap_or_default();
                info!(Target = target, "Checking schedule");
            }
            let pod = ctx.get::<Pod>(None, &pod_name(at)).await?.filter(|pod| is_of(pod, at));
            match plan(at, pod.as_deref(), ctx.now()) {
                Step::Rest | Step::Watch => return Ok(Action::Done),
                Step::Wait(wait) => {
                    info!(Result = ?wait, "Schedule parsing done");
                    self.note(at, ctx, Phase::Pending, Ok(()));
                    return Ok(Action::RequeueAfter(wait));
                }
                Step::Refuse(why) => {
                    ctx.event(Event::warning("BadSchedule", &*why));
                    self.note(at, ctx, Phase::Pending, Err(&why));
                    return Ok(Action::Done);
                }
                Step::Begin => {
                    info!(Result = ?Duration::ZERO, "Schedule parsing done");
                    let command = at.spec.command.as_deref().unwrap_or_default();
                    info!("Ready to execute" = command, "It's time!");
                    self.note(at, ctx, Phase::Running, Ok(()));
                }
                Step::Launch(pod) => {
                    let pod = ctx.apply(*pod).await?;
                    info!(name = pod.metadata.name, "Pod launched");
                    ctx.event(Event::normal("Launched", format!("pod {} runs", pod_name(at))));
                    return Ok(Action::Done);
                }
                Step::End { reason, message } => {
                    info!(reason, message, "Container terminated");
                    ctx.event(Event::normal("Ended", format!("pod {} ended", pod_name(at))));
                    self.note(at, ctx, Phase::Done, Ok(()));
                }
                Step::EndWithoutCommand => {
                    let note = "spec.command: is not set, so nothing was run";
                    ctx.event(Event::warning("NoCommand", note));
                    self.note(at, ctx, Phase::Done, Ok(()));
                }
            }
        }
    }
}

impl Clockwork {
    /// Says in the status how far it is, and whether its time is known.
    fn note(&self, at: &mut At, ctx: &Context, phase: Phase, scheduled: Result<(), &str>) {
        let condition = match scheduled {
            Ok(()) => ctx.condition(SCHEDULED, true, "Scheduled", "the time is known"),
            Err(why) => ctx.condition(SCHEDULED, false, "BadSchedule", why),
        };
        let status = at.status.get_or_insert_default();
        status.phase = Some(phase);
        status.conditions.set(condition);
    }
}

/// Whether a pod was made for an `At`, and not by somebody who calls it the same.
fn is_of(pod: &Pod, at: &At) -> bool {
    let mut owners = pod.metadata.owner_references.iter().flatten();
    owners.any(|owner| Some(&owner.uid) == at.metadata.uid.as_ref())
}
