//! The arguments of the subcommand `manifests`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use super::{
    Certificates, Package, Part, RenderError, Watched, WriteError, stream, write_folder,
    write_pages,
};

/// What to render of an operator, and where to.
#[derive(Debug, Clone, Default, Args)]
pub struct Options {
    /// The namespace to run in [default: the operator's name and `-system`]
    #[arg(long, short, value_name = "NAME")]
    pub namespace: Option<String>,
    /// The image to run
    #[arg(long, value_name = "IMAGE")]
    pub image: Option<String>,
    /// Only these parts [default: all but samples]
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    pub only: Vec<Part>,
    /// A folder to write a file for each object into, samples in a folder of their own
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Watch only the namespace it runs in, with roles for nothing else
    #[arg(long)]
    pub namespaced: bool,
    /// Watch only these namespaces, with roles for nothing else
    #[arg(long, value_name = "NAME", value_delimiter = ',', conflicts_with = "namespaced")]
    pub watch: Vec<String>,
    /// Have cert-manager make the certificates
    #[arg(long)]
    pub cert_manager: bool,
    /// Let in only connections that have business there
    #[arg(long)]
    pub network_policy: bool,
    /// Have Prometheus' operator read the metrics
    #[arg(long)]
    pub service_monitor: bool,
    /// With a dashboard for Grafana
    #[arg(long)]
    pub dashboards: bool,
    /// Write pages about the kinds into this folder, and no manifests
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "model"])]
    pub reference: Option<PathBuf>,
    /// Print what is known of the operator as JSON, for `kubewright package`
    #[arg(long, conflicts_with_all = ["output", "only"])]
    pub model: bool,
}

/// Why the subcommand failed.
#[derive(Debug, thiserror::Error)]
pub enum ManifestsError {
    #[error(transparent)]
    Render(#[from] RenderError),
    #[error(transparent)]
    Folder(#[from] WriteError),
    #[error("write manifests")]
    Stream(#[source] io::Error),
}

impl Options {
    /// Renders the package, and writes it to the folder that was asked for, or else to `out`.
    ///
    /// # Errors
    /// There is nothing to be written, or it cannot be written.
    pub fn run(&self, package: Package, out: &mut dyn Write) -> Result<(), ManifestsError> {
        let package = self.applied_to(package);
        let mut manifests = package.render()?;
        if let Some(folder) = &self.reference {
            return Ok(write_pages(&package, folder)?);
        }
        if self.model {
            let text = package.to_model();
            return out.write_all(text.as_bytes()).map_err(ManifestsError::Stream);
        }
        manifests.retain(|manifest| self.wants(manifest.part));
        match &self.output {
            Some(folder) => write_folder(&package, &manifests, folder)?,
            None => {
                let text = stream(&package, &manifests);
                out.write_all(text.as_bytes()).map_err(ManifestsError::Stream)?;
            }
        }
        Ok(())
    }

    /// The package with what the arguments say instead.
    pub fn applied_to(&self, mut package: Package) -> Package {
        if let Some(namespace) = &self.namespace {
            package.namespace.clone_from(namespace);
        }
        if let Some(image) = &self.image {
            package.image.clone_from(image);
        }
        if self.namespaced {
            package.watched = Watched::Home;
        }
        if !self.watch.is_empty() {
            package.watched = Watched::Namespaces(self.watch.clone());
        }
        if self.cert_manager {
            package.certificates = Certificates::CertManager;
        }
        package.network_policy |= self.network_policy;
        package.service_monitor |= self.service_monitor;
        package.dashboards |= self.dashboards;
        package
    }

    /// Samples are for those who ask: whoever installs an operator does not want them.
    fn wants(&self, part: Part) -> bool {
        match (self.only.as_slice(), part) {
            ([], Part::Samples) => self.output.is_some(),
            ([], _) => true,
            (parts, part) => parts.contains(&part),
        }
    }
}
