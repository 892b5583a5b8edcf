//! Hooks: what a container wants done after it has started, and before it is asked to end.

#[cfg(test)]
mod tests;

use std::time::Duration;

use k8s_openapi::api::core::v1::LifecycleHandler;

use crate::runtime::{Runtime, RuntimeError, Target};

/// Runs a hook until it ends, however long that takes: whoever calls knows when to give up.
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
        return runtime.call(target, get).await;
    }
    Err(RuntimeError::Unsupported("invalid handler".to_owned()))
}
