//! The life of an operator project: `init`, `create`, `delete`, `upgrade`, and what builds, runs
//! and installs it.

pub(crate) mod cargo;
pub(crate) mod create;
pub(crate) mod dev;
pub(crate) mod install;
pub(crate) mod objects;
mod rollout;
pub(crate) mod run;

use std::io::{self, BufRead as _, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use kubewright_project::{Plan, Project, ProjectError, Turn, apply, begun, recover, take_turn};
use serde_json::json;

use crate::cluster::Output;

/// Which project is meant.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// A folder of the project.
    #[arg(long = "project", value_name = "DIR", default_value = ".")]
    folder: PathBuf,
}

impl Which {
    /// The project, after what a command that was killed has begun is finished.
    pub(crate) fn open(&self) -> Result<Project> {
        let project = self.find()?;
        finish(&project.root, &turn(&project.root)?)?;
        Ok(project)
    }

    /// The same for what changes its files, which has its turn until it is done; a dry run does not
    /// even finish.
    fn open_for(&self, how: &How) -> Result<(Project, Turn)> {
        let project = self.find()?;
        let turn = how.prepare(&project.root)?;
        Ok((project, turn))
    }

    fn find(&self) -> Result<Project> {
        let folder = std::path::absolute(&self.folder).context("find the project")?;
        Ok(Project::find(&folder)?)
    }
}

/// Where an operator is built.
pub(crate) struct Place {
    pub(crate) root: PathBuf,
    /// Whether it is for its own namespace only.
    pub(crate) namespaced: bool,
}

/// Where the operator of a folder is built: at the root of the project that the folder is in, or in
/// the folder itself if it is in none, for operators need not be projects.
pub(crate) fn place(folder: &Path) -> Result<Place> {
    let as_given = |namespaced: bool| Place { root: folder.to_owned(), namespaced };
    let whole = std::path::absolute(folder).context("find the project")?;
    // A package that is no project is not part of one above it.
    if Project::open(&whole)?.is_none() && whole.join("Cargo.toml").exists() {
        return Ok(as_given(false));
    }
    match Project::find(&whole) {
        Ok(project) if project.root == whole => Ok(as_given(project.namespaced)),
        Ok(Project { root, namespaced, .. }) => Ok(Place { root, namespaced }),
        Err(ProjectError::Missing(_)) => Ok(as_given(false)),
        Err(error) => Err(error.into()),
    }
}

/// How files are changed.
#[derive(clap::Args)]
pub(crate) struct How {
    /// Print what would change as a diff, and change nothing.
    #[arg(long)]
    dry_run: bool,
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

impl How {
    /// Waits for others that change the project, and finishes what a command that was killed has
    /// begun, or only tells of it.
    fn prepare(&self, root: &Path) -> Result<Turn> {
        let turn = turn(root)?;
        if !self.dry_run {
            finish(root, &turn)?;
            return Ok(turn);
        }
        if let Some(plan) = begun(root)? {
            let paths: Vec<String> =
                plan.changes.iter().map(|it| it.path.display().to_string()).collect();
            eprintln!(
                "an interrupted command has begun to change {}: the next command without --dry-run \
                 finishes it first",
                paths.join(", ")
            );
        }
        Ok(turn)
    }

    /// Makes the changes of a plan and tells of them, or only tells.
    fn carry_out(&self, root: &Path, plan: &Plan) -> Result<ExitCode> {
        if !self.dry_run {
            apply(root, plan)?;
        }
        let changes = plan.changes.iter();
        match self.output {
            Output::Json => {
                let changes = changes.map(|it| json!({"change": it.verb(), "path": it.path}));
                let changes: Vec<_> = changes.collect();
                say!("{}", json!({"changes": changes, "dryRun": self.dry_run}));
            }
            Output::Text if self.dry_run => {
                let _ = io::stdout().write_all(plan.diff().as_bytes());
            }
            Output::Text if plan.is_empty() => say!("nothing to change: it is so already"),
            Output::Text => changes.for_each(|it| say!("{:<6} {}", it.verb(), it.path.display())),
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub(crate) fn turn(root: &Path) -> Result<Turn> {
    let waiting = || eprintln!("waiting for another command that changes {}", root.display());
    Ok(take_turn(root, waiting)?)
}

/// Whoever has not its turn would finish what somebody else is still at.
pub(crate) fn finish(root: &Path, _: &Turn) -> Result<()> {
    if recover(root)? {
        eprintln!("finished what an interrupted command had begun");
    }
    Ok(())
}

/// Asks a person; none if there is none.
fn ask(question: &str) -> Result<Option<bool>> {
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Ok(None);
    }
    loop {
        eprint!("{question} [y/n] ");
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context("read the answer")?;
        match answer.trim().to_lowercase().as_str() {
            "y" | "yes" => return Ok(Some(true)),
            "n" | "no" => return Ok(Some(false)),
            "" => return Ok(None),
            _ => {}
        }
    }
}
