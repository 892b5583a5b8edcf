//! Which run of a container somebody means who asks for its log.

use k8s_openapi::api::core::v1::ContainerStateTerminated;

use super::life::{Life, Member};
use super::status::container_status;

/// The number of the run whose log is asked for: of the newest run, or of the one that status shows
/// as the last. Of a container that waits to be started again both are the same.
///
/// # Errors
/// Why there is none, in upstream's words.
pub(crate) fn run_of(life: &Life, member: &Member, is_previous: bool) -> Result<u32, String> {
    let container = &member.spec.name;
    let pod = life.pod.metadata.name.as_deref().unwrap_or_default();
    if let Some(running) = member.up().filter(|_| !is_previous) {
        // Also while its hook is under way, before status shows that it runs.
        return Ok(member.number(running.started.id.as_str()).unwrap_or_default());
    }
    let shown = container_status(life, member);
    let state = shown.state.unwrap_or_default();
    let last = shown.last_state.unwrap_or_default().terminated;
    let number = |ended: &Option<ContainerStateTerminated>| {
        member.number(ended.as_ref()?.container_id.as_deref()?)
    };
    if is_previous {
        return number(&last).ok_or_else(|| {
            format!("previous terminated container {container:?} in pod {pod:?} not found")
        });
    }
    if state.terminated.is_some() || last.is_some() {
        let number = number(&state.terminated).or_else(|| number(&last));
        return number
            .ok_or_else(|| format!("container {container:?} in pod {pod:?} is terminated"));
    }
    let reason = state.waiting.and_then(|waiting| waiting.reason).unwrap_or_default();
    let why = match reason.as_str() {
        "ErrImagePull" => "image can't be pulled",
        "ImagePullBackOff" => "trying and failing to pull image",
        reason => reason,
    };
    Err(format!("container {container:?} in pod {pod:?} is waiting to start: {why}"))
}
