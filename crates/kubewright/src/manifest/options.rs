//! The arguments of the subcommand `manifests`.

use std::io::{self, Write};
use std::path::PathBuf;

use clap::Args;

use super::{Certificates, Package, Part, RenderError, Watched, WriteError, stream, write_folder};

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
    /// Have cert-manager make the certificates
    #[arg(long)]
    pub cert_manager: bool,
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
        if self.cert_manager {
            package.certificates = Certificates::CertManager;
        }
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
