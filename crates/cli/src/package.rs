//! `kubewright package`: an operator in the form in which others install it.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::Subcommand;
use kubewright_apimachinery::name::dns1123_label;
use kubewright_project::image::{ReferenceError, check_image};
use kubewright_project::package::model::{self, Origin};
use kubewright_project::package::{self, Files, helm, kustomize, olm};
use kubewright_project::replace;
use serde_json::json;

use crate::cluster::Output;
use crate::project::create::released;
use crate::project::place;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    form: Form,
}

#[derive(Subcommand)]
enum Form {
    /// One file for `kubectl apply -f`.
    Yaml(Common),
    /// A base for Kustomize, with components for what not every cluster has.
    Kustomize(Common),
    /// A Helm chart, in which certificates, policies, monitoring and dashboards are values.
    Helm(Common),
    /// A bundle and a catalog for the Operator Lifecycle Manager, and objects for its version 1.
    Olm(Box<Olm>),
}

#[derive(clap::Args)]
struct Common {
    /// The folder of the operator's project.
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// Of several programs of the project, this one.
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,
    /// An operator that is built already, for which nothing is compiled.
    #[arg(long, value_name = "FILE", conflicts_with = "bin")]
    binary: Option<PathBuf>,
    /// The release, if it is not that of Cargo.toml.
    #[arg(long, value_name = "VERSION", value_parser = released)]
    release: Option<String>,
    /// Where to write to [default: dist/<form>, and for yaml dist/install.yaml].
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// How to tell what was written; `--output` is a path here.
    #[arg(long, value_enum, default_value_t)]
    format: Output,
    #[command(flatten)]
    choices: Choices,
}

/// A name that a container runtime would take.
fn image(text: &str) -> Result<String, ReferenceError> {
    check_image(text).map(|()| text.to_owned())
}

fn namespace(text: &str) -> Result<String, String> {
    match dns1123_label(text).as_slice() {
        [] => Ok(text.to_owned()),
        faults => Err(faults.join("; ")),
    }
}

/// What `manifests` of the operator is told.
#[derive(clap::Args)]
pub(crate) struct Choices {
    /// The image to run.
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    pub(crate) image: Option<String>,
    /// The namespace to run in [default: the operator's name and `-system`].
    #[arg(long, short, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,
    /// Watch only the namespace it runs in.
    #[arg(long)]
    namespaced: bool,
    /// Watch only these namespaces.
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "namespaced")]
    #[arg(value_parser = namespace)]
    watch: Vec<String>,
    /// Have cert-manager make the certificates.
    #[arg(long)]
    cert_manager: bool,
    /// Let in only connections that have business there.
    #[arg(long)]
    network_policy: bool,
    /// Have Prometheus' operator read the metrics.
    #[arg(long)]
    service_monitor: bool,
    /// With a dashboard for Grafana.
    #[arg(long)]
    dashboards: bool,
}

#[derive(clap::Args)]
struct Olm {
    #[command(flatten)]
    common: Common,
    /// Channels that have the release; the first is the default one.
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "stable")]
    channels: Vec<String>,
    /// The image that the bundle will be in [default: the operator's, with `-bundle`].
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    bundle_image: Option<String>,
    /// The image that the catalog will be in [default: the operator's, with `-catalog`].
    #[arg(long, value_name = "IMAGE", value_parser = image)]
    catalog_image: Option<String>,
    /// The release that this one replaces, such as `pets.v1.2.2`.
    #[arg(long, value_name = "NAME")]
    replaces: Option<String>,
    /// A picture: .svg, .png, .jpg or .gif.
    #[arg(long, value_name = "FILE")]
    icon: Option<PathBuf>,
    /// Who provides it [default: the first author].
    #[arg(long, value_name = "NAME")]
    provider: Option<String>,
    /// The oldest Kubernetes that it runs on.
    #[arg(long, value_name = "VERSION", value_parser = released, default_value = "1.25.0")]
    min_kube_version: String,
}

impl Choices {
    /// As the project says, if it is not said here, whether it is for its own namespace only.
    pub(crate) fn arguments(&self, is_namespaced: bool) -> Vec<String> {
        let mut arguments = Vec::new();
        let texts = [("--image", &self.image), ("--namespace", &self.namespace)];
        for (flag, text) in texts {
            arguments.extend(text.as_ref().map(|text| format!("{flag}={text}")));
        }
        if !self.watch.is_empty() {
            arguments.push(format!("--watch={}", self.watch.join(",")));
        }
        let switches = [
            ("--namespaced", self.namespaced || is_namespaced && self.watch.is_empty()),
            ("--cert-manager", self.cert_manager),
            ("--network-policy", self.network_policy),
            ("--service-monitor", self.service_monitor),
            ("--dashboards", self.dashboards),
        ];
        let chosen = switches.into_iter().filter(|(_, is_chosen)| *is_chosen);
        arguments.extend(chosen.map(|(flag, _)| flag.to_owned()));
        arguments
    }
}

impl Common {
    fn model(&self) -> Result<package::Model> {
        let place = place(&self.project)?;
        if self.binary.is_none() {
            eprintln!("asking the operator in {} about itself", place.root.display());
        }
        let origin = Origin {
            project: place.root,
            bin: self.bin.clone(),
            binary: match &self.binary {
                // It is started in the folder of the project.
                Some(path) => {
                    Some(path.canonicalize().with_context(|| format!("find {}", path.display()))?)
                }
                None => None,
            },
            arguments: self.choices.arguments(place.namespaced),
        };
        let mut model = model::read(&origin)?;
        if let Some(release) = &self.release {
            model.about.version.clone_from(release);
        }
        Ok(model)
    }

    /// Where to write to, if nobody says otherwise into `dist` of the project.
    fn output(&self, default: &str) -> Result<PathBuf> {
        match &self.output {
            Some(path) => Ok(path.clone()),
            None => Ok(place(&self.project)?.root.join("dist").join(default)),
        }
    }

    fn write(&self, form: &str, files: &Files) -> Result<ExitCode> {
        let folder = self.output(form)?;
        package::write(files, &folder)?;
        match self.format {
            Output::Text => eprintln!("wrote {} files into {}", files.len(), folder.display()),
            Output::Json => {
                let files: Vec<String> =
                    files.keys().map(|file| file.display().to_string()).collect();
                say!("{}", json!({"path": folder.display().to_string(), "files": files}));
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    match &args.form {
        Form::Yaml(common) => {
            let path = common.output("install.yaml")?;
            let is_printed = path.as_os_str() == "-";
            if is_printed && common.format == Output::Json {
                bail!("--format json tells of a file, and --output - writes none: leave one out");
            }
            let text = package::yaml(&common.model()?.package)?;
            if is_printed {
                say!("{}", text.trim_end());
                return Ok(ExitCode::SUCCESS);
            }
            let written = replace(&path, text.as_bytes());
            written.with_context(|| format!("write {}", path.display()))?;
            match common.format {
                Output::Text => eprintln!("wrote {}", path.display()),
                Output::Json => say!("{}", json!({"path": path.display().to_string()})),
            }
            Ok(ExitCode::SUCCESS)
        }
        Form::Kustomize(common) => {
            common.write("kustomize", &kustomize::render(&common.model()?.package)?)
        }
        Form::Helm(common) => common.write("chart", &helm::render(&common.model()?)?),
        Form::Olm(args) => {
            let model = args.common.model()?;
            let options = args.options(&model.package.image)?;
            args.common.write("olm", &olm::bundle(&model, &options)?)
        }
    }
}

impl Olm {
    fn options(&self, image: &str) -> Result<olm::Options> {
        let icon = match &self.icon {
            None => None,
            Some(path) => {
                let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
                let media_type = match end {
                    "svg" => "image/svg+xml",
                    "png" => "image/png",
                    "jpg" | "jpeg" => "image/jpeg",
                    "gif" => "image/gif",
                    _ => bail!("{} is no .svg, .png, .jpg or .gif", path.display()),
                };
                let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
                Some((media_type.to_owned(), olm::base64(&bytes)))
            }
        };
        let beside = |word: &str| olm::image_beside(image, word);
        Ok(olm::Options {
            channels: self.channels.clone(),
            bundle_image: self.bundle_image.clone().unwrap_or_else(|| beside("bundle")),
            catalog_image: self.catalog_image.clone().unwrap_or_else(|| beside("catalog")),
            replaces: self.replaces.clone(),
            icon,
            provider: self.provider.clone(),
            min_kube_version: self.min_kube_version.clone(),
        })
    }
}
