//! Hooks: what a container wants done after it has started, and before it is asked to end.

use std::time::Duration;

use k8s_openapi::api::core::v1::{LifecycleHandler, Probe};

use crate::runtime::{Health, Runtime, RuntimeError, Target};

/// Runs a hook until it ends.
///
/// # Errors
/// If it failed, why. People who may see events need not see that: it may have secrets in it.
pub(crate) async fn run(
    runtime: &dyn Runtime,
    target: &Target,
    handler: &LifecycleHandler,
) -> Result<(), RuntimeError> {
    if let Some(exec) = &handler.exec {
        let command = exec.command.clone().unwrap_or_default();
        return match runtime.ask(&target.id, &command, None).await? {
            (0, _) => Ok(()),
            (code, _) => Err(RuntimeError::Failed(format!("command exited with {code}"))),
        };
    }
    if let Some(sleep) = &handler.sleep {
        tokio::time::sleep(Duration::from_secs(sleep.seconds.max(0).unsigned_abs())).await;
        return Ok(());
    }
    if let Some(get) = &handler.http_get {
        // It is asked for once, as a probe would: what counts is an answer, whatever it says.
        let probe = Probe { http_get: Some(get.clone()), ..Probe::default() };
        return match runtime.probe(target, &probe).await {
            Health::Well | Health::Warned(_) => Ok(()),
            Health::Ill(why) | Health::Unknown(why) => Err(RuntimeError::Failed(why)),
        };
    }
    Err(RuntimeError::Unsupported("invalid handler".to_owned()))
}
