//! `install`, `uninstall`, `deploy` and `undeploy`: a project's objects in the cluster that the
//! kubeconfig leads to.

use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};

use anyhow::{Context as _, Result, bail};
use kube::Client;
use kubewright::connect;
use kubewright_project::Project;
use serde_json::{Value, json};

use super::Which;
use super::cargo::{build, rendering};
use super::objects::{self, DEFINITION, Outcome, Trial};
use super::rollout::{self, Patience};
use crate::cluster::Output;
use crate::package::Choices;
use crate::up::runtime;

/// Which cluster, and how to tell what happens.
#[derive(clap::Args)]
pub(crate) struct Site {
    #[command(flatten)]
    which: Which,
    /// The file that says which cluster; without it, what kubectl uses.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

#[derive(clap::Args)]
pub(crate) struct InstallArgs {
    #[command(flatten)]
    site: Site,
    /// Take over fields that somebody else has set.
    #[arg(long)]
    force: bool,
}

#[derive(clap::Args)]
pub(crate) struct UninstallArgs {
    #[command(flatten)]
    site: Site,
}

#[derive(clap::Args)]
pub(crate) struct DeployArgs {
    #[command(flatten)]
    site: Site,
    #[command(flatten)]
    choices: Choices,
    /// Take over fields that somebody else has set.
    #[arg(long)]
    force: bool,
    /// Print what would change, as the server sees it, and change nothing.
    #[arg(long, conflicts_with = "wait")]
    dry_run: bool,
    /// Wait until the operator is available.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    patience: Patience,
}

#[derive(clap::Args)]
pub(crate) struct UndeployArgs {
    #[command(flatten)]
    site: Site,
    /// Where it runs; without it, the operator's name and `-system`.
    #[arg(long, short)]
    namespace: Option<String>,
    #[command(flatten)]
    patience: Patience,
}

pub(crate) fn install(args: &InstallArgs) -> Result<ExitCode> {
    args.site.apply(&only_definitions(), args.force)
}

pub(crate) fn uninstall(args: &UninstallArgs) -> Result<ExitCode> {
    let site = &args.site;
    let (definitions, others): (Vec<Value>, _) = site
        .objects(&["--only".to_owned(), "crds,webhooks".to_owned()])?
        .into_iter()
        .partition(|object| object["kind"] == DEFINITION);
    runtime()?.block_on(async {
        let client = client(site.kubeconfig.as_deref()).await?;
        // First, since these may have a say when objects are deleted. Those of a deployed operator
        // are `undeploy`'s.
        for object in others.iter().filter(|it| objects::is_configuration(it)) {
            if objects::delete_left_behind(&client, object).await? {
                site.tell(object, Outcome::Deleted);
            }
        }
        for object in definitions.iter().rev() {
            site.tell(object, objects::delete(&client, object).await?);
        }
        Ok(ExitCode::SUCCESS)
    })
}

pub(crate) fn deploy(args: &DeployArgs) -> Result<ExitCode> {
    if args.choices.image.is_none() {
        bail!("say which image to run: --image, as `kubewright build` has made it");
    }
    let site = &args.site;
    // What the project says is added when its program is asked.
    let arguments = args.choices.arguments(false);
    if args.dry_run {
        return site.try_out(&arguments, args.force);
    }
    let objects = site.objects(&arguments)?;
    runtime()?.block_on(async {
        let client = client(site.kubeconfig.as_deref()).await?;
        for object in &objects {
            site.tell(object, objects::apply(&client, object, args.force).await?);
        }
        if args.wait {
            for object in objects.iter().filter(|it| it["kind"] == "Deployment") {
                rollout::available(&client, object, &args.patience).await?;
                site.tell(object, Outcome::Available);
            }
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Definitions first, while the operator still lives: their objects may have finalizers, which only
/// it takes away. Then the rest, in the other order: what was needed first goes last.
pub(crate) fn undeploy(args: &UndeployArgs) -> Result<ExitCode> {
    let site = &args.site;
    let arguments = in_namespace(args.namespace.as_deref());
    let (project, program) = site.built()?;
    let objects = rendered(&project, &program, &arguments)?;
    // What it was deployed with is not known any more, so all that it may have been is looked for.
    let chosen = [&arguments[..], &CHOSEN.map(str::to_owned)].concat();
    let chosen = rendered(&project, &program, &chosen)?;
    let (definitions, others): (Vec<Value>, _) =
        objects.into_iter().partition(|object| object["kind"] == DEFINITION);
    runtime()?.block_on(async {
        let client = client(site.kubeconfig.as_deref()).await?;
        for definition in definitions.iter().rev() {
            let outcome = objects::delete(&client, definition).await?;
            rollout::gone(&client, definition, &args.patience).await?;
            site.tell(definition, outcome);
        }
        for object in chosen.iter().rev() {
            if objects::delete(&client, object).await? == Outcome::Deleted {
                site.tell(object, Outcome::Deleted);
            }
        }
        for object in others.iter().rev() {
            site.tell(object, objects::delete(&client, object).await?);
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// Has a program render what `deploy` brings only if it is chosen.
const CHOSEN: [&str; 6] = [
    "--only",
    "certificates,network-policy,monitoring,dashboards",
    "--cert-manager",
    "--network-policy",
    "--service-monitor",
    "--dashboards",
];

fn in_namespace(namespace: Option<&str>) -> Vec<String> {
    namespace.map(|it| vec!["--namespace".to_owned(), it.to_owned()]).unwrap_or_default()
}

fn only_definitions() -> Vec<String> {
    vec!["--only".to_owned(), "crds".to_owned()]
}

/// What the program of a project renders.
pub(super) fn rendered(
    project: &Project,
    program: &Path,
    arguments: &[String],
) -> Result<Vec<Value>> {
    let output = rendering(project, program, arguments).stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("run {}", program.display()))?;
    if !output.status.success() {
        bail!("{} renders no manifests: see above", project.name);
    }
    objects::parse(&String::from_utf8_lossy(&output.stdout))
}

/// A client of the cluster that a file leads to, or what kubectl uses.
pub(super) async fn client(kubeconfig: Option<&Path>) -> Result<Client> {
    let found = connect::find(kubeconfig, |name: &str| std::env::var_os(name)).await?;
    Ok(found.client(&connect::Options::default())?)
}

impl Site {
    fn apply(&self, arguments: &[String], force: bool) -> Result<ExitCode> {
        let objects = self.objects(arguments)?;
        runtime()?.block_on(async {
            let client = client(self.kubeconfig.as_deref()).await?;
            for object in &objects {
                let outcome = objects::apply(&client, object, force).await?;
                self.tell(object, outcome);
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    /// What a server would make of objects.
    fn try_out(&self, arguments: &[String], force: bool) -> Result<ExitCode> {
        let objects = self.objects(arguments)?;
        runtime()?.block_on(async {
            let client = client(self.kubeconfig.as_deref()).await?;
            for object in &objects {
                let trial = objects::try_out(&client, object, force).await?;
                match (self.output, trial) {
                    (Output::Text, Trial::Create) => say!("create {}", objects::title(object)),
                    (Output::Text, Trial::Change(changes)) => {
                        say!("change {}", objects::title(object));
                        changes.iter().for_each(|change| say!("       {change}"));
                    }
                    (Output::Text, Trial::Same) => say!("same   {}", objects::title(object)),
                    (Output::Json, Trial::Create) => self.print(object, "create", true, &[]),
                    (Output::Json, Trial::Change(it)) => self.print(object, "change", true, &it),
                    (Output::Json, Trial::Same) => self.print(object, "same", true, &[]),
                }
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    fn built(&self) -> Result<(Project, PathBuf)> {
        let project = self.which.open()?;
        let program = build(&project)?;
        Ok((project, program))
    }

    fn objects(&self, arguments: &[String]) -> Result<Vec<Value>> {
        let (project, program) = self.built()?;
        let objects = rendered(&project, &program, arguments)?;
        if objects.is_empty() {
            eprintln!("{} has none of it: `kubewright create api` adds a kind", project.name);
        }
        Ok(objects)
    }

    fn tell(&self, object: &Value, outcome: Outcome) {
        let word = match outcome {
            Outcome::Applied => "applied",
            Outcome::Available => "available",
            Outcome::Deleted => "deleted",
            Outcome::Absent => "absent",
        };
        match self.output {
            Output::Json => self.print(object, word, false, &[]),
            Output::Text => say!("{word:<7} {}", objects::title(object)),
        }
    }

    fn print(&self, object: &Value, outcome: &str, is_dry_run: bool, changes: &[String]) {
        let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
        let namespace = &object["metadata"]["namespace"];
        let mut line =
            json!({"kind": kind, "namespace": namespace, "name": name, "outcome": outcome});
        if is_dry_run {
            line["dryRun"] = json!(true);
            line["changes"] = json!(changes);
        }
        say!("{line}");
    }
}
