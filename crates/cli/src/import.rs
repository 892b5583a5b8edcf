//! `kubewright import`: Rust types from definitions, in files or in a cluster.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, anyhow, bail};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kubewright::connect;
use kubewright_project::definition::{self, Source};
use kubewright_project::import::{self, Options};
use kubewright_project::{Project, ProjectError, apply, replace, scaffold};
use serde_json::json;

use crate::cluster::Output;
use crate::project::{finish, turn};

#[derive(clap::Args)]
#[command(group = clap::ArgGroup::new("from").required(true).multiple(true))]
pub(crate) struct Args {
    /// A file with CustomResourceDefinitions, of v1 or v1beta1; `-` for standard input.
    #[arg(long, value_name = "FILE", group = "from")]
    crd: Vec<PathBuf>,
    /// A definition of the cluster that the kubeconfig leads to, such as `pets.example.com`.
    #[arg(long, value_name = "NAME", group = "from")]
    from_cluster: Vec<String>,
    /// Only this version [default: all that are served, each in a module of its own].
    #[arg(long, value_name = "VERSION")]
    version: Vec<String>,
    /// A file to write, or a folder for a file for each kind [default: standard output].
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// How to tell what was written; `--output` is a path here.
    #[arg(long, value_enum, default_value_t, requires = "output")]
    format: Output,
    /// Leave out what needs the library kubewright: types and clients need only kube.
    #[arg(long)]
    without_cache: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let mut sources = Vec::new();
    for file in &args.crd {
        sources.extend(definition::read(file)?);
    }
    if !args.from_cluster.is_empty() {
        sources.extend(from_cluster(&args.from_cluster)?);
    }
    let options = Options { versions: args.version.clone(), cache: !args.without_cache };
    let mut modules = Vec::new();
    for source in &sources {
        let text = import::generate(&source.definition, &options)
            .with_context(|| format!("{}, line {}", source.file.display(), source.line))?;
        modules.push((import::module_name(&source.definition), text));
    }
    let Some(output) = &args.output else {
        let [(_, text)] = modules.as_slice() else { return Err(several(&modules)) };
        say!("{}", text.trim_end());
        return Ok(ExitCode::SUCCESS);
    };
    let files = places(output, modules)?;
    // All before any: what is refused changes nothing.
    files.iter().try_for_each(|(path, _)| spare(path))?;
    let declared = match project_of(output)? {
        Some(project) => adopt(&project, &files)?,
        None => {
            write(&files)?;
            Vec::new()
        }
    };
    let files = files.iter().map(|(path, _)| path.display().to_string());
    match args.format {
        Output::Text => {
            files.for_each(|path| eprintln!("wrote {path}"));
            declared.iter().for_each(|path| eprintln!("declared in {}", path.display()));
        }
        Output::Json => {
            let files = sources.iter().zip(files).map(|(source, path)| {
                json!({"definition": definition::name(&source.definition), "path": path})
            });
            say!("{}", json!({"files": files.collect::<Vec<_>>(), "declared": declared}));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Which modules are to be in which files.
fn places(output: &Path, modules: Vec<(String, String)>) -> Result<Vec<(PathBuf, String)>> {
    let is_file = output.extension().is_some_and(|end| end == "rs");
    if is_file {
        let [(_, text)] = modules.as_slice() else { return Err(several(&modules)) };
        return Ok(vec![(output.to_owned(), text.clone())]);
    }
    for (name, _) in &modules {
        let same = modules.iter().filter(|(other, _)| other == name).count();
        if same > 1 {
            bail!(
                "{same} definitions are of the kind {name}: import them into folders of their own"
            );
        }
    }
    let place = |(name, text)| (output.join(format!("{name}.rs")), text);
    Ok(modules.into_iter().map(place).collect())
}

fn several(modules: &[(String, String)]) -> anyhow::Error {
    anyhow!(
        "there are {} definitions, and a file is for one: name a folder with --output",
        modules.len()
    )
}

/// The operator project that has a path among its sources.
fn project_of(output: &Path) -> Result<Option<Project>> {
    let whole = std::path::absolute(output).context("find the project")?;
    let folder = if whole.is_file() { whole.parent().unwrap_or(&whole) } else { &whole };
    match Project::find(folder) {
        Ok(project) if whole.starts_with(project.root.join("src")) => Ok(Some(project)),
        Ok(_) | Err(ProjectError::Missing(_)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Writes sources into a project and declares their modules; says where.
fn adopt(project: &Project, files: &[(PathBuf, String)]) -> Result<Vec<PathBuf>> {
    let root = &project.root;
    let turn = turn(root)?;
    finish(root, &turn)?;
    let within = |(path, text): &(PathBuf, String)| {
        let whole = std::path::absolute(path).context("find the project")?;
        anyhow::Ok((whole.strip_prefix(root).unwrap_or(&whole).to_owned(), text.clone()))
    };
    let sources = files.iter().map(within).collect::<Result<Vec<_>>>()?;
    let plan = scaffold::adopt(project, &sources)?;
    apply(root, &plan)?;
    let is_declaration = |path: &PathBuf| sources.iter().all(|(source, _)| source != path);
    Ok(plan.changes.into_iter().map(|it| it.path).filter(is_declaration).collect())
}

/// Writes sources into whatever folder.
fn write(files: &[(PathBuf, String)]) -> Result<()> {
    for (path, text) in files {
        let folder = path.ancestors().skip(1).find(|it| it.is_dir()).unwrap_or(Path::new("."));
        let text = import::laid_out(text.clone(), folder);
        let written = replace(path, text.as_bytes());
        written.with_context(|| format!("write {}", path.display()))?;
    }
    Ok(())
}

/// Refuses to write over what somebody has written.
fn spare(path: &Path) -> Result<()> {
    let there = match fs::read(path) {
        Ok(there) => there,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error).with_context(|| format!("read {}", path.display())),
    };
    if !import::is_generated(&String::from_utf8_lossy(&there)) {
        bail!(
            "{} was not written by `kubewright import` and would be lost: move it away, or name \
             another place with --output",
            path.display()
        );
    }
    Ok(())
}

fn from_cluster(names: &[String]) -> Result<Vec<Source>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let found = connect::find(None, |name: &str| std::env::var_os(name)).await;
        let found =
            found.context("ask a cluster (`kubewright up` starts one; --crd FILE needs none)")?;
        let url = found.config.cluster_url.to_string();
        let client = found.client(&connect::Options::default())?;
        let definitions: Api<CustomResourceDefinition> = Api::all(client);
        let mut sources = Vec::new();
        for name in names {
            let found = definitions.get(name).await;
            let found = found.with_context(|| {
                format!("read the definition {name} at {url}: `kubectl get crds` lists them")
            })?;
            let mut definition = serde_json::to_value(&found).context("read a definition")?;
            definition["apiVersion"] = "apiextensions.k8s.io/v1".into();
            sources.push(Source { file: url.clone().into(), line: 1, definition });
        }
        Ok(sources)
    })
}
