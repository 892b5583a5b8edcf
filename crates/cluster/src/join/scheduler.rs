//! A scheduler of ours beside any API server.

use anyhow::{Context as _, Result};
use kubewright::Clock;
use kubewright::election::{Election, identity};
use kubewright_scheduler::config::Standing;
use kubewright_scheduler::{Config, ConfigError, Scheduler};
use tokio_util::sync::CancellationToken;

use super::{Reached, SchedulerArgs, reach};
use crate::process::{Signals, raise_file_limit};

/// What a scheduler is about to do.
#[derive(Debug)]
pub struct Scheduling {
    /// Where the API server is.
    pub server: String,
    /// The names that pods call it by.
    pub names: Vec<String>,
    /// The lease that it stands for, as `NAMESPACE/NAME`; none if it need not.
    pub lease: Option<String>,
}

/// Schedules pods until a signal ends it. `ready` is called when all that can be wrong at once is
/// right.
pub async fn scheduler(args: &SchedulerArgs, ready: impl FnOnce(&Scheduling)) -> Result<()> {
    raise_file_limit();
    let mut signals = Signals::new()?;
    let Reached { client, config: found } = reach(args.kubeconfig.as_deref()).await?;
    let config = args.load(&client).await.context("read how to schedule")?;
    let standing = args.standing(&config)?;
    config.check().context("use what was read")?;
    let names = config.profiles.iter().filter_map(|it| it.scheduler_name.clone());
    ready(&Scheduling {
        server: found.cluster_url.to_string(),
        names: names.collect(),
        lease: standing.as_ref().map(|it| format!("{}/{}", it.namespace, it.name)),
    });
    let shutdown = CancellationToken::new();
    let mut work = std::pin::pin!(work(client, config, standing, shutdown.clone()));
    tokio::select! {
        ended = &mut work => ended.context("schedule"),
        () = signals.stop() => {
            shutdown.cancel();
            work.await.context("schedule")
        }
    }
}

async fn work(
    client: kube::Client,
    config: Config,
    standing: Option<Standing>,
    shutdown: CancellationToken,
) -> Result<(), ConfigError> {
    let clock = Clock::system();
    let Some(Standing { namespace, name, terms }) = standing else {
        return Scheduler::new(config).run_alone(client, clock, shutdown).await;
    };
    Election::new(client, &namespace, &name, &identity(), clock.clone())
        .terms(terms)
        .run(shutdown, |leadership| {
            let (scheduler, clock) = (Scheduler::new(config.clone()), clock.clone());
            async move {
                let (client, lost) = (leadership.client().clone(), leadership.lost());
                scheduler.run_alone(client, clock, lost).await
            }
        })
        .await
}
