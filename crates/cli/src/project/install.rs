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
use super::objects::{self, DEFINITION, Outcome};
use crate::cluster::Output;
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
    /// The image to run.
    #[arg(long)]
    image: String,
    /// The namespace to run in; without it, the operator's name and `-system`.
    #[arg(long, short)]
    namespace: Option<String>,
    /// Have cert-manager make the certificates of webhooks.
    #[arg(long)]
    cert_manager: bool,
    /// Take over fields that somebody else has set.
    #[arg(long)]
    force: bool,
}

#[derive(clap::Args)]
pub(crate) struct UndeployArgs {
    #[command(flatten)]
    site: Site,
    /// Where it runs; without it, the operator's name and `-system`.
    #[arg(long, short)]
    namespace: Option<String>,
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
    let mut arguments = vec!["--image".to_owned(), args.image.clone()];
    arguments.extend(in_namespace(args.namespace.as_deref()));
    if args.cert_manager {
        arguments.push("--cert-manager".to_owned());
    }
    args.site.apply(&arguments, args.force)
}

pub(crate) fn undeploy(args: &UndeployArgs) -> Result<ExitCode> {
    args.site.delete(&in_namespace(args.namespace.as_deref()))
}

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

    /// In the other order: what was needed first goes last.
    fn delete(&self, arguments: &[String]) -> Result<ExitCode> {
        let objects = self.objects(arguments)?;
        runtime()?.block_on(async {
            let client = client(self.kubeconfig.as_deref()).await?;
            for object in objects.iter().rev() {
                let outcome = objects::delete(&client, object).await?;
                self.tell(object, outcome);
            }
            Ok(ExitCode::SUCCESS)
        })
    }

    fn objects(&self, arguments: &[String]) -> Result<Vec<Value>> {
        let project = self.which.open()?;
        let program = build(&project)?;
        let objects = rendered(&project, &program, arguments)?;
        if objects.is_empty() {
            eprintln!("{} has none of it: `kubewright create api` adds a kind", project.name);
        }
        Ok(objects)
    }

    fn tell(&self, object: &Value, outcome: Outcome) {
        let word = match outcome {
            Outcome::Applied => "applied",
            Outcome::Deleted => "deleted",
            Outcome::Absent => "absent",
        };
        match self.output {
            Output::Json => {
                let (kind, name) = (&object["kind"], &object["metadata"]["name"]);
                let namespace = &object["metadata"]["namespace"];
                say!(
                    "{}",
                    json!({"kind": kind, "namespace": namespace, "name": name, "outcome": word})
                );
            }
            Output::Text => say!("{word:<7} {}", objects::title(object)),
        }
    }
}
