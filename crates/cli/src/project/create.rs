//! `init`, `create`, `delete` and `upgrade`: what changes the files of a project.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::{Subcommand, ValueEnum};
use kubewright_project::scaffold::{self, Hooks, Init, Library, License, NewApi, OldApi};
use kubewright_project::{Change, Plan, Project, upgrade};

use super::{How, Which, ask};

#[derive(clap::Args)]
pub(crate) struct InitArgs {
    /// The folder of the project; it need not exist.
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// What the groups of its kinds end with, as `my.domain`.
    #[arg(long)]
    domain: String,
    /// Of the operator; without it, the folder's.
    #[arg(long)]
    name: Option<String>,
    /// The URL of its sources; without a scheme it is `https`.
    #[arg(long, value_name = "URL", value_parser = repository)]
    repo: Option<String>,
    #[arg(long, value_enum, ignore_case = true, default_value_t = LicenseArg::None)]
    license: LicenseArg,
    /// Who holds the rights.
    #[arg(long)]
    owner: Option<String>,
    /// Install it for the namespace that it runs in, with no rights elsewhere.
    #[arg(long)]
    namespaced: bool,
    #[command(flatten)]
    library: LibraryArgs,
    #[command(flatten)]
    how: How,
}

/// Where the crates of Kubewright come from.
#[derive(clap::Args)]
pub(crate) struct LibraryArgs {
    /// The version of the library; without it, this command's.
    #[arg(long, value_name = "VERSION", value_parser = released)]
    kubewright_version: Option<String>,
    /// The library of a checkout of Kubewright.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kubewright_version", "kubewright_git"])]
    kubewright_path: Option<PathBuf>,
    /// The library of a repository.
    #[arg(long, value_name = "URL", conflicts_with = "kubewright_version")]
    kubewright_git: Option<String>,
    /// The commit or tag there.
    #[arg(long, value_name = "REV", requires = "kubewright_git")]
    kubewright_rev: Option<String>,
}

/// A version as crates have them: three numbers, and what comes before a release after a dash.
pub(crate) fn released(text: &str) -> Result<String, String> {
    let (numbers, before) = text.split_once('-').unwrap_or((text, "0"));
    let numbers: Vec<&str> = numbers.split('.').collect();
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|it| it.is_ascii_digit());
    let is_letter = |it: u8| it.is_ascii_alphanumeric() || it == b'.' || it == b'-';
    let is_word = !before.is_empty() && before.bytes().all(is_letter);
    match numbers.len() == 3 && numbers.iter().all(is_number) && is_word {
        true => Ok(text.to_owned()),
        false => Err(format!("write it as {}", env!("CARGO_PKG_VERSION"))),
    }
}

/// A URL, also as modules of Go are called, which is how many know their repository.
fn repository(text: &str) -> Result<String, String> {
    let is_url = !text.is_empty() && !text.contains(char::is_whitespace);
    match (is_url, text.contains("://")) {
        (false, _) => Err("write it as https://example.com/me/it".to_owned()),
        (true, true) => Ok(text.to_owned()),
        (true, false) => Ok(format!("https://{text}")),
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum LicenseArg {
    #[value(alias = "apache-2.0")]
    Apache2,
    Mit,
    None,
}

#[derive(Subcommand)]
pub(crate) enum Create {
    /// Add a kind, a version of one, or its controller.
    Api(CreateApi),
    /// Add webhooks of a kind.
    Webhook(CreateWebhook),
}

#[derive(Subcommand)]
pub(crate) enum Delete {
    /// Take away a version of a kind, its controller, or both.
    Api(DeleteApi),
    /// Take away webhooks of a kind.
    Webhook(DeleteWebhook),
}

/// A version of a kind.
#[derive(clap::Args)]
struct Subject {
    /// The group of the kind, without the project's domain; of a kind of others all of it, as `apps`,
    /// or `core` for the one without a name.
    #[arg(long, default_value = "")]
    group: String,
    /// As `v1` or `v1alpha1`.
    #[arg(long)]
    version: String,
    /// As `Guestbook`.
    #[arg(long)]
    kind: String,
}

/// A version of a kind, and what of it is meant.
#[derive(clap::Args)]
struct ApiArgs {
    #[command(flatten)]
    subject: Subject,
    /// What the API calls several of them; without it, what follows from the kind.
    #[arg(long)]
    plural: Option<String>,
    /// Its objects are in no namespace.
    #[arg(long)]
    cluster_scoped: bool,
    /// The same the other way round, for those who know it from elsewhere.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "true", conflicts_with = "cluster_scoped")]
    namespaced: Option<bool>,
    /// The definition of the kind.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    resource: Option<bool>,
    /// Its controller.
    #[arg(long, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    controller: Option<bool>,
}

#[derive(clap::Args)]
pub(crate) struct CreateApi {
    #[command(flatten)]
    api: ApiArgs,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
struct HookArgs {
    #[command(flatten)]
    subject: Subject,
    /// The one that completes objects.
    #[arg(long)]
    defaulting: bool,
    /// The one that judges them.
    #[arg(long, alias = "validation")]
    programmatic_validation: bool,
    /// The one that converts versions, of which `--version` is the hub.
    #[arg(long)]
    conversion: bool,
    /// A version to be converted; without it, all but the hub.
    #[arg(long, value_name = "VERSION", value_delimiter = ',', requires = "conversion")]
    spoke: Vec<String>,
}

#[derive(clap::Args)]
pub(crate) struct CreateWebhook {
    #[command(flatten)]
    hooks: HookArgs,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
#[command(after_help = "Without --resource and --controller it is both.")]
pub(crate) struct DeleteApi {
    #[command(flatten)]
    api: ApiArgs,
    /// Also what was changed since it was created.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
pub(crate) struct DeleteWebhook {
    #[command(flatten)]
    hooks: HookArgs,
    /// Also what was changed since it was created.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    how: How,
}

#[derive(clap::Args)]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    library: LibraryArgs,
    #[command(flatten)]
    which: Which,
    #[command(flatten)]
    how: How,
}

pub(crate) fn init(args: &InitArgs) -> Result<ExitCode> {
    let root = std::path::absolute(&args.folder).context("find the folder")?;
    let name = match &args.name {
        Some(name) => name.clone(),
        None => {
            let name = root.file_name().and_then(|name| name.to_str());
            name.context("name the project after its folder: give --name instead")?.to_owned()
        }
    };
    let wanted = Init {
        name,
        domain: args.domain.clone(),
        repository: args.repo.clone(),
        license: match args.license {
            LicenseArg::Apache2 => License::Apache2,
            LicenseArg::Mit => License::Mit,
            LicenseArg::None => License::None,
        },
        owner: args.owner.clone(),
        namespaced: args.namespaced,
        library: args.library.library(&root)?,
    };
    if !root.exists() {
        // What is refused leaves no folder behind.
        let plan = scaffold::init(&root, &wanted)?;
        if args.how.dry_run {
            return args.how.carry_out(&root, &plan);
        }
        std::fs::create_dir_all(&root).with_context(|| format!("make {}", root.display()))?;
    }
    let _turn = args.how.prepare(&root)?;
    let plan = scaffold::init(&root, &wanted)?;
    let code = args.how.carry_out(&root, &plan)?;
    for path in ["README.md", "LICENSE"] {
        let is_theirs = |change: &Change| change.path == Path::new(path);
        if !plan.is_empty() && root.join(path).exists() && !plan.changes.iter().any(is_theirs) {
            eprintln!("{path} is there already, and stays as it is");
        }
    }
    if !plan.is_empty() && !args.how.dry_run {
        eprintln!("`cargo test` runs its tests, `kubewright create api` adds a kind");
        if matches!(wanted.library, Library::Path(_)) {
            eprintln!(
                "the library is in a folder that `docker build` does not see: `kubewright build` \
                 makes the image of this project"
            );
        }
    }
    Ok(code)
}

pub(crate) fn create(args: &Create) -> Result<ExitCode> {
    match args {
        Create::Api(args) => {
            let (project, _turn) = args.which.open_for(&args.how)?;
            let Subject { group, version, kind } = &args.api.subject;
            let (resource, controller) = match args.api.parts() {
                Some(parts) => parts,
                None => ask_for_parts(kind)?,
            };
            let wanted = NewApi {
                group: group.clone(),
                version: version.clone(),
                kind: kind.clone(),
                plural: args.api.plural.clone(),
                namespaced: !args.api.is_cluster_scoped(),
                resource,
                controller,
            };
            let plan = scaffold::create_api(&project, &wanted)?;
            args.how.carry_out(&project.root, &plan)
        }
        Create::Webhook(args) => {
            let (project, _turn) = args.which.open_for(&args.how)?;
            let plan = scaffold::create_webhook(&project, &args.hooks.hooks())?;
            args.how.carry_out(&project.root, &plan)
        }
    }
}

pub(crate) fn delete(args: &Delete) -> Result<ExitCode> {
    match args {
        Delete::Api(args) => {
            let (project, _turn) = args.which.open_for(&args.how)?;
            let Subject { group, version, kind } = &args.api.subject;
            let (resource, controller) = args.api.parts().unwrap_or((true, true));
            let unwanted = OldApi {
                group: group.clone(),
                version: version.clone(),
                kind: kind.clone(),
                plural: args.api.plural.clone(),
                cluster_scoped: args.api.is_cluster_scoped(),
                resource,
                controller,
                force: args.force,
            };
            let plan = scaffold::delete_api(&project, &unwanted)?;
            taken_away(&args.how, &project, &plan)
        }
        Delete::Webhook(args) => {
            let (project, _turn) = args.which.open_for(&args.how)?;
            let plan = scaffold::delete_webhook(&project, &args.hooks.hooks(), args.force)?;
            taken_away(&args.how, &project, &plan)
        }
    }
}

/// Carries out a plan that takes away. Where there is nothing to be taken, whoever has misspelt a
/// name sees which there are.
fn taken_away(how: &How, project: &Project, plan: &Plan) -> Result<ExitCode> {
    if plan.is_empty() {
        let kinds: Vec<String> = project.apis()?.iter().map(ToString::to_string).collect();
        let kinds = if kinds.is_empty() { "none".to_owned() } else { kinds.join("; ") };
        eprintln!("kinds of this project: {kinds}");
    }
    how.carry_out(&project.root, plan)
}

pub(crate) fn change_library(args: &UpgradeArgs) -> Result<ExitCode> {
    let (project, _turn) = args.which.open_for(&args.how)?;
    let library = args.library.library(&project.root)?;
    let plan = upgrade(&project, &library)?;
    args.how.carry_out(&project.root, &plan)
}

/// What is to be created, as a person says who has said nothing yet.
fn ask_for_parts(kind: &str) -> Result<(bool, bool)> {
    let resource = ask(&format!("Define the kind {kind} here?"))?;
    let controller = match resource {
        Some(_) => ask(&format!("Add a controller for {kind}?"))?,
        None => None,
    };
    match (resource, controller) {
        (Some(resource), Some(controller)) => Ok((resource, controller)),
        _ => bail!("say what to create: --resource, --controller, or both"),
    }
}

impl ApiArgs {
    fn is_cluster_scoped(&self) -> bool {
        self.cluster_scoped || self.namespaced == Some(false)
    }

    /// Whether the definition is meant, and whether the controller is; none if nobody says.
    fn parts(&self) -> Option<(bool, bool)> {
        let is_said = self.resource.is_some() || self.controller.is_some();
        is_said.then(|| (self.resource.unwrap_or(false), self.controller.unwrap_or(false)))
    }
}

impl HookArgs {
    fn hooks(&self) -> Hooks {
        let Subject { group, version, kind } = &self.subject;
        Hooks {
            group: group.clone(),
            version: version.clone(),
            kind: kind.clone(),
            defaulting: self.defaulting,
            validation: self.programmatic_validation,
            conversion: self.conversion,
            spokes: self.spoke.clone(),
        }
    }
}

impl LibraryArgs {
    /// For the project at `root`.
    fn library(&self, root: &Path) -> Result<Library> {
        if let Some(url) = &self.kubewright_git {
            return Ok(Library::Git { url: url.clone(), revision: self.kubewright_rev.clone() });
        }
        let Some(path) = &self.kubewright_path else {
            let version = self.kubewright_version.as_deref().unwrap_or(env!("CARGO_PKG_VERSION"));
            return Ok(Library::Version(version.to_owned()));
        };
        let crates = path.join("crates");
        if !crates.join("kubewright").join("Cargo.toml").is_file() {
            bail!("--kubewright-path {}: is no checkout of Kubewright", path.display());
        }
        // A manifest's paths are seen from its own folder.
        match std::env::current_dir().is_ok_and(|here| here == root) {
            true => Ok(Library::Path(crates)),
            false => Ok(Library::Path(crates.canonicalize().context("find the library")?)),
        }
    }
}
