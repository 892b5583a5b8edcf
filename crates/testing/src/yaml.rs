//! Objects as people write them.

use std::path::Path;
use std::{fs, io};

use kubewright_apimachinery::yaml;
use serde_json::Value;

use crate::Cluster;

/// The objects of a YAML text, of which there may be several.
///
/// # Panics
/// If it is no YAML.
pub fn yaml(text: &str) -> Vec<Value> {
    let documents = yaml::documents(text).unwrap_or_else(|error| panic!("{error}"));
    let decode = |text: &str| yaml::decode(text).unwrap_or_else(|error| panic!("{error}")).value;
    documents.into_iter().map(decode).filter(|document| !document.is_null()).collect()
}

impl Cluster {
    /// Applies all objects of a folder's YAML files, definitions first and then in the order of
    /// the files' names; waits until the definitions are served.
    ///
    /// # Panics
    /// If a file cannot be read, or an object is refused.
    pub async fn apply_folder(&self, folder: impl AsRef<Path>) {
        let folder = folder.as_ref();
        let objects = read(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let (definitions, others): (Vec<_>, Vec<_>) =
            objects.into_iter().partition(|it| it["kind"] == "CustomResourceDefinition");
        for definition in &definitions {
            self.apply(definition).await;
        }
        for definition in &definitions {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            self.served(name).await;
        }
        for object in &others {
            self.apply(object).await;
        }
    }
}

fn read(folder: &Path) -> io::Result<Vec<Value>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            files.push(path);
        }
    }
    files.sort();
    let mut objects = Vec::new();
    for file in files {
        objects.extend(yaml(&fs::read_to_string(file)?));
    }
    Ok(objects)
}
