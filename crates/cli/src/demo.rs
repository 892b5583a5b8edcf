//! `kubewright demo`: a control plane with operators at work on it, and what they do told as it
//! happens.

mod acts;
mod stage;
mod tale;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use futures::future::join_all;
use kubewright_cluster::run::{self, Keep, Options, kubeconfig_path};

use self::stage::Stage;
use self::tale::Tale;
use crate::cluster::{home, parse_name};
use crate::up;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Run it through, check what it tells, and end: 0 if all of it happened.
    #[arg(long)]
    once: bool,
    /// Of the cluster.
    #[arg(long, value_parser = parse_name, default_value = "demo")]
    name: String,
    /// Where the cluster is served on 127.0.0.1; 0 is any port that is free.
    #[arg(long, default_value_t = 6443)]
    port: u16,
    /// Where web applications are served on 127.0.0.1; 0 is any port that is free.
    #[arg(long, default_value_t = 8080)]
    ingress_port: u16,
}

/// How long one operator may take for all that is told of it.
const ACT_MAX: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &Args, started: Instant) -> Result<ExitCode> {
    // Some of what is shown is refused, which is told better than logs would.
    up::log_at("error,kube_client=off");
    up::keep_pages_small();
    let tale = Tale::new(started);
    let home = home()?;
    let kubeconfig = kubeconfig_path(&home.dir(&args.name)?);
    let options = Options {
        name: args.name.clone(),
        home,
        port: Some(args.port),
        keep: Keep::Nothing,
        // It comes and goes, so it does not become anybody's current context.
        kubeconfig: None,
        controllers: up::parse_controllers("*").map_err(anyhow::Error::msg)?,
        node: run::Node::Process { shim: up::shim()? },
        ingress_port: Some(args.ingress_port),
        scheduler: Default::default(),
        audit: None,
    };
    let performed = up::runtime()?.block_on(run::run_while(options, async |record| {
        tale.tell("cluster", format_args!("ready at {}, nothing is kept", record.server));
        let ingress = record.ingress.as_deref().context("Ingresses are served")?;
        let mut stage = Stage::set(&kubeconfig, ingress, &tale).await?;
        let failed = perform(&stage, &tale).await;
        if args.once {
            return anyhow::Ok(failed);
        }
        invite(&stage, &tale);
        Err(stage.broken().await)
    }))?;
    match performed.transpose()? {
        Some(0) => {
            tale.end("all of it happened");
            Ok(ExitCode::SUCCESS)
        }
        Some(failed) => {
            tale.end(&format!("{failed} of it did not happen, see above"));
            Ok(ExitCode::FAILURE)
        }
        None if args.once => {
            tale.end("it was interrupted, and not all of it happened");
            Ok(ExitCode::FAILURE)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Plays all acts at once, and counts those that fail.
async fn perform(stage: &Stage, tale: &Tale) -> usize {
    let acts = acts::all(stage, tale).into_iter().map(|(who, act)| async move {
        let late = || format!("not over after {} s", ACT_MAX.as_secs());
        let played = tokio::time::timeout(ACT_MAX, act).await.with_context(late);
        if let Err(error) = played.and_then(|played| played) {
            tale.fail(who, &error);
            return 1;
        }
        0
    });
    join_all(acts).await.into_iter().sum()
}

/// What to do next.
fn invite(stage: &Stage, tale: &Tale) {
    tale.end("it stays until Ctrl-C, which leaves nothing behind. In another terminal:");
    say!("  export KUBECONFIG={}", stage.kubeconfig.display());
    for command in [
        "kubectl get at,pods --namespace cnat",
        "kubectl get pets",
        "kubectl edit pet pet-sample1",
        "kubectl describe quota --namespace app-y",
        "kubectl get webapps,deployments,pods",
        "kubectl scale webapp webapp-sample --replicas 4",
        "kubectl logs --selector app=webapp-sample --prefix",
    ] {
        say!("  {command}");
    }
    say!("  curl {}", stage.web(acts::WEB_HOST));
}
