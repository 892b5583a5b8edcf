//! What is known of an operator: from its binary, and from Cargo.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use kubewright::manifest::{ModelError, Package};
use serde_json::Value;

/// All that any form of package is made of.
#[derive(Debug, Clone)]
pub struct Model {
    pub package: Package,
    pub about: About,
}

/// What Cargo.toml says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Of the release.
    pub version: String,
    pub description: String,
    pub homepage: Option<String>,
    pub repository: Option<String>,
    pub license: Option<String>,
    pub authors: Vec<String>,
    pub keywords: Vec<String>,
}

/// Where a model comes from.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The folder of the project.
    pub project: PathBuf,
    /// Of several binaries, this one.
    pub bin: Option<String>,
    /// A binary that is built already; nothing is compiled then.
    pub binary: Option<PathBuf>,
    /// Arguments for `manifests`: image, namespace and so on.
    pub arguments: Vec<String>,
}

/// Why there is no model.
#[derive(Debug, thiserror::Error)]
pub enum ModelReadError {
    #[error("run {program:?}: is it installed?")]
    Run { program: String, source: io::Error },
    #[error("{command} failed:\n{message}")]
    Failed { command: String, message: String },
    #[error("read Cargo's metadata of {project:?}: {problem}")]
    Metadata { project: PathBuf, problem: String },
    #[error(
        "{command} printed no package: is {program:?} an operator whose main is `Operator::main`?"
    )]
    Model { command: String, program: String, source: ModelError },
}

/// Asks Cargo and the operator. The operator is built if it has to be.
///
/// # Errors
/// One of them does not answer, or not what is expected.
pub fn read(origin: &Origin) -> Result<Model, ModelReadError> {
    let about = about(origin)?;
    let arguments = ["manifests", "--model"].map(str::to_owned);
    let arguments = arguments.iter().chain(&origin.arguments);
    let mut command = match &origin.binary {
        Some(binary) => Command::new(binary),
        None => {
            let mut cargo = Command::new("cargo");
            cargo.arg("run");
            // It may have to be built, which takes its time: whoever waits sees it.
            cargo.stderr(Stdio::inherit());
            if let Some(bin) = &origin.bin {
                cargo.args(["--bin", bin]);
            }
            cargo.arg("--");
            cargo
        }
    };
    command.args(arguments).current_dir(&origin.project);
    let output = run(&mut command)?;
    let package = Package::from_model(&output).map_err(|source| ModelReadError::Model {
        command: shown(&command),
        program: command.get_program().to_string_lossy().into_owned(),
        source,
    })?;
    Ok(Model { package, about })
}

fn about(origin: &Origin) -> Result<About, ModelReadError> {
    let manifest = origin.project.join("Cargo.toml");
    if origin.binary.is_some() && !manifest.exists() {
        // A binary without its project is what it is.
        return Ok(About { version: "0.1.0".to_owned(), ..About::default() });
    }
    let mut cargo = Command::new("cargo");
    cargo.args(["metadata", "--no-deps", "--format-version", "1", "--offline"]);
    let text = run(cargo.current_dir(&origin.project))?;
    let failed = |problem: String| {
        let project = origin.project.clone();
        ModelReadError::Metadata { project, problem }
    };
    let metadata: Value = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
    from_metadata(&metadata, &manifest).map_err(failed)
}

/// What is said of the package at this manifest, or of the only one.
pub(super) fn from_metadata(metadata: &Value, manifest: &Path) -> Result<About, String> {
    let manifest = manifest.canonicalize().unwrap_or_else(|_| manifest.to_owned());
    let packages = metadata["packages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_it = |package: &&Value| {
        package["manifest_path"].as_str().is_some_and(|it| Path::new(it) == manifest)
    };
    let package = match (packages, packages.iter().find(is_it)) {
        (_, Some(package)) | ([package], None) => package,
        _ => return Err(format!("{manifest:?} is a workspace: run it in the operator's folder")),
    };
    let text = |key: &str| package[key].as_str().map(str::to_owned);
    let list = |key: &str| {
        let items = package[key].as_array().into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    };
    Ok(About {
        version: text("version").unwrap_or_else(|| "0.1.0".to_owned()),
        description: text("description").unwrap_or_default(),
        homepage: text("homepage"),
        repository: text("repository"),
        license: text("license"),
        authors: list("authors"),
        keywords: list("keywords"),
    })
}

fn run(command: &mut Command) -> Result<String, ModelReadError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let Output { status, stdout, stderr } =
        command.output().map_err(|source| ModelReadError::Run { program, source })?;
    if !status.success() {
        let message = match stderr.is_empty() {
            true => "see above what it says".to_owned(),
            false => String::from_utf8_lossy(&stderr).trim().to_owned(),
        };
        return Err(ModelReadError::Failed { command: shown(command), message });
    }
    Ok(String::from_utf8_lossy(&stdout).into_owned())
}

/// The command as somebody would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    format!("`{}`", words.join(" "))
}
