use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ExecAction, HTTPGetAction, Pod, SleepAction};
use kubewright::Clock;
use tokio::time::Instant;

use super::*;
use crate::runtime::{Fake, Id, ProbeKind};

async fn run_simulated(handler: &LifecycleHandler) -> Result<(), RuntimeError> {
    let fake = Fake::new(Clock::starting_at(Timestamp::UNIX_EPOCH), Vec::new());
    let target = Target {
        kind: ProbeKind::Startup,
        pod: Arc::new(Pod::default()),
        container: Arc::new(Container::default()),
        id: Id::new("fake://main"),
        since: Timestamp::UNIX_EPOCH,
        address: None,
    };
    run(&fake, &target, handler).await
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_sleeps_takes_as_long_as_it_says() {
    let sleep = Some(SleepAction { seconds: 9 });
    let begun = Instant::now();
    let ran = run_simulated(&LifecycleHandler { sleep, ..LifecycleHandler::default() }).await;
    assert_eq!(ran, Ok(()));
    assert_eq!(begun.elapsed().as_secs(), 9);
}

#[tokio::test]
async fn hooks_of_simulated_containers_go_well() {
    let http_get = Some(HTTPGetAction::default());
    let exec = Some(ExecAction::default());
    for handler in [
        LifecycleHandler { http_get, ..LifecycleHandler::default() },
        LifecycleHandler { exec, ..LifecycleHandler::default() },
    ] {
        assert_eq!(run_simulated(&handler).await, Ok(()));
    }
}

#[tokio::test]
async fn a_hook_that_names_nothing_fails() {
    let ran = run_simulated(&LifecycleHandler::default()).await;
    assert_eq!(ran, Err(RuntimeError::Unsupported("invalid handler".to_owned())));
}
