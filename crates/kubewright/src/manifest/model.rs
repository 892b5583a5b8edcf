//! A package as a document, for programs that package operators: what it says is rendered anew
//! there, in other forms.

use serde::{Deserialize, Serialize};

use super::Package;

/// What the document calls itself. Readers refuse another.
pub const MODEL: &str = "kubewright.dev/package/v1";

/// A package with the name of its form.
#[derive(Debug, Serialize, Deserialize)]
struct Document<P> {
    model: String,
    /// What has written it.
    #[serde(default)]
    library: String,
    package: P,
}

/// Why a document is not understood.
#[derive(Debug, thiserror::Error)]
pub enum ModelError {
    /// The operator is built with a library of another age.
    #[error(
        "read a package of the form {found:?} (library {library}); this program reads {MODEL:?}: \
         use the kubewright of the operator's library"
    )]
    Form { found: String, library: String },
    #[error("read a package")]
    Syntax(#[from] serde_json::Error),
}

impl Package {
    /// The package as a document.
    pub fn to_model(&self) -> String {
        let library = env!("CARGO_PKG_VERSION").to_owned();
        let document = Document { model: MODEL.to_owned(), library, package: self };
        serde_json::to_string_pretty(&document).expect("a package is JSON") + "\n"
    }

    /// The package that a document is of.
    ///
    /// # Errors
    /// It is of another form, or none.
    pub fn from_model(text: &str) -> Result<Self, ModelError> {
        // Its form is judged before what the form decides.
        let document: Document<serde_json::Value> = serde_json::from_str(text)?;
        if document.model != MODEL {
            return Err(ModelError::Form { found: document.model, library: document.library });
        }
        Ok(serde_json::from_value(document.package)?)
    }
}
