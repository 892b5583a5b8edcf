//! Files with images in them: what `docker save` writes, and the layout of OCI in a tar file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::LoadError;
use crate::runtime::cri::name;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// Documents are short; contents of images are not read into memory.
const DOCUMENT_BYTES_MAX: u64 = 4 << 20;

/// An open file, and where in it things are.
pub(super) struct Archive {
    file: File,
    entries: HashMap<String, Entry>,
}

#[derive(Debug, Clone)]
enum Entry {
    At { offset: u64, size: u64 },
    Link(String),
}

/// An image that is in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    pub(super) names: Vec<String>,
    pub(super) target: Reference,
    /// All that it is made of; what refers to others comes after them.
    pub(super) blobs: Vec<Blob>,
}

/// As documents refer to contents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Reference {
    pub(super) media_type: String,
    pub(super) digest: String,
    pub(super) size: u64,
    #[serde(default, skip_serializing_if = "HashMap::is_empty")]
    annotations: HashMap<String, String>,
}

/// A content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Blob {
    pub(super) digest: String,
    pub(super) size: u64,
    /// What it refers to, for whoever collects garbage.
    pub(super) labels: HashMap<String, String>,
    source: Source,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Entry(String),
    Bytes(Vec<u8>),
}

/// What is wrong with a file.
#[derive(Debug)]
pub(super) enum ArchiveError {
    Read(io::Error),
    Wrong(String),
}

/// An item of the `manifest.json` of `docker save`.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Saved {
    config: String,
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// What of manifests and indexes refers to others.
#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    schema_version: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    media_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    config: Option<Reference>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    layers: Vec<Reference>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    manifests: Vec<Reference>,
}

impl Archive {
    pub(super) fn open(path: &Path) -> Result<Self, ArchiveError> {
        let mut file = File::open(path)?;
        let mut magic = [0; 2];
        let is_compressed = file.read(&mut magic)? == 2 && magic == [0x1f, 0x8b];
        file.seek(SeekFrom::Start(0))?;
        if is_compressed {
            // Things are looked up in it, for which it must be as it was before.
            let mut plain = tempfile::tempfile()?;
            io::copy(&mut GzDecoder::new(file), &mut plain)?;
            file = plain;
            file.seek(SeekFrom::Start(0))?;
        }
        let mut entries = HashMap::new();
        let mut tar = tar::Archive::new(&file);
        let wrong = |error: io::Error| ArchiveError::Wrong(format!("it is no tar file: {error}"));
        for entry in tar.entries().map_err(wrong)? {
            let entry = entry.map_err(wrong)?;
            let name = clean(&entry.path().map_err(wrong)?);
            let link = entry.link_name().map_err(wrong)?;
            let kept = match link {
                Some(link) if entry.header().entry_type().is_symlink() => {
                    let beside = Path::new(&name).parent().unwrap_or(Path::new(""));
                    Entry::Link(clean(&beside.join(link)))
                }
                Some(link) => Entry::Link(clean(&link)),
                None => Entry::At { offset: entry.raw_file_position(), size: entry.size() },
            };
            entries.insert(name, kept);
        }
        Ok(Archive { file, entries })
    }

    /// The images in it.
    pub(super) fn images(&self) -> Result<Vec<Image>, ArchiveError> {
        let images = if self.entries.contains_key("manifest.json") {
            self.saved()?
        } else if self.entries.contains_key("index.json") {
            self.laid_out()?
        } else {
            let why = "there is neither a manifest.json nor an index.json in it";
            return Err(ArchiveError::Wrong(why.to_owned()));
        };
        match images.iter().find(|image| image.names.is_empty()) {
            Some(image) => Err(ArchiveError::Wrong(format!(
                "the image {} has no name: save it with one, such as NAME:TAG",
                image.target.digest
            ))),
            None if images.is_empty() => Err(ArchiveError::Wrong("there is no image".to_owned())),
            None => Ok(images),
        }
    }

    /// As `docker save` describes them.
    fn saved(&self) -> Result<Vec<Image>, ArchiveError> {
        let saved: Vec<Saved> = self.document("manifest.json")?;
        let images = saved.into_iter().map(|saved| {
            let mut blobs = Vec::new();
            let config = self.blob(&saved.config)?;
            let config_reference = reference(&config, CONFIG);
            blobs.push(config);
            let mut layers = Vec::new();
            for layer in &saved.layers {
                let blob = self.blob(layer)?;
                let suffix = match self.magic(layer)?.as_slice() {
                    [0x1f, 0x8b, ..] => "+gzip",
                    [0x28, 0xb5, 0x2f, 0xfd] => "+zstd",
                    _ => "",
                };
                layers.push(reference(&blob, &format!("{LAYER}{suffix}")));
                blobs.push(blob);
            }
            let manifest = Document {
                schema_version: 2,
                media_type: Some(MANIFEST.to_owned()),
                config: Some(config_reference),
                layers,
                manifests: Vec::new(),
            };
            let bytes = serde_json::to_vec(&manifest)
                .map_err(|error| ArchiveError::Wrong(error.to_string()))?;
            let blob = Blob {
                digest: digest(&Sha256::digest(&bytes)),
                size: bytes.len() as u64,
                labels: labels(&manifest),
                source: Source::Bytes(bytes),
            };
            let target = reference(&blob, MANIFEST);
            blobs.push(blob);
            let tags = saved.repo_tags.unwrap_or_default();
            Ok(Image { names: tags.iter().map(|tag| name::whole(tag)).collect(), target, blobs })
        });
        images.collect()
    }

    /// As OCI lays them out.
    fn laid_out(&self) -> Result<Vec<Image>, ArchiveError> {
        let index: Document = self.document("index.json")?;
        let images = index.manifests.into_iter().map(|target| {
            let mut blobs = Vec::new();
            self.gather(&target, &mut blobs)?;
            let named = ["io.containerd.image.name", "org.opencontainers.image.ref.name"];
            let own = named.iter().find_map(|key| target.annotations.get(*key));
            let names = own.iter().map(|own| name::whole(own)).collect();
            Ok(Image { names, target, blobs })
        });
        images.collect()
    }

    /// All that a reference leads to, as far as it is in the file: an index may name images for
    /// machines that nobody has.
    fn gather(&self, from: &Reference, blobs: &mut Vec<Blob>) -> Result<(), ArchiveError> {
        let path = format!("blobs/{}", from.digest.replacen(':', "/", 1));
        if !self.entries.contains_key(&path) {
            return Ok(());
        }
        let mut labels_of = HashMap::new();
        if [MANIFEST, INDEX, DOCKER_INDEX].contains(&from.media_type.as_str())
            || from.media_type.ends_with("manifest.v2+json")
        {
            let document: Document = self.document(&path)?;
            labels_of = labels(&document);
            let Document { config, layers, manifests, .. } = document;
            for reference in config.iter().chain(&layers).chain(&manifests) {
                self.gather(reference, blobs)?;
            }
        }
        blobs.push(Blob {
            digest: from.digest.clone(),
            size: from.size,
            labels: labels_of,
            source: Source::Entry(path),
        });
        Ok(())
    }

    /// A content that is known by where it is.
    fn blob(&self, name: &str) -> Result<Blob, ArchiveError> {
        let name = clean(Path::new(name));
        let mut reader = self.entry(&name)?;
        let mut hash = Sha256::new();
        let mut buffer = vec![0; 1 << 16];
        let mut size = 0;
        loop {
            let n_bytes = reader.read(&mut buffer)?;
            if n_bytes == 0 {
                break;
            }
            hash.update(&buffer[..n_bytes]);
            size += n_bytes as u64;
        }
        let digest = digest(&hash.finalize());
        Ok(Blob { digest, size, labels: HashMap::new(), source: Source::Entry(name) })
    }

    fn magic(&self, name: &str) -> Result<Vec<u8>, ArchiveError> {
        let mut magic = Vec::new();
        self.entry(&clean(Path::new(name)))?.take(4).read_to_end(&mut magic)?;
        Ok(magic)
    }

    pub(super) fn reader(&self, blob: &Blob) -> io::Result<Box<dyn Read + Send>> {
        match &blob.source {
            Source::Bytes(bytes) => Ok(Box::new(Cursor::new(bytes.clone()))),
            Source::Entry(name) => match self.entry(name) {
                Ok(reader) => Ok(Box::new(reader)),
                Err(ArchiveError::Read(error)) => Err(error),
                Err(ArchiveError::Wrong(why)) => Err(io::Error::other(why)),
            },
        }
    }

    fn document<T: for<'de> Deserialize<'de>>(&self, name: &str) -> Result<T, ArchiveError> {
        let mut bytes = Vec::new();
        self.entry(name)?.take(DOCUMENT_BYTES_MAX).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes)
            .map_err(|error| ArchiveError::Wrong(format!("{name} cannot be read: {error}")))
    }

    fn entry(&self, name: &str) -> Result<Section, ArchiveError> {
        let missing = || ArchiveError::Wrong(format!("{name} is missing"));
        let mut entry = self.entries.get(name).ok_or_else(missing)?;
        // Layers that are alike are there once.
        if let Entry::Link(to) = entry {
            entry = self.entries.get(to).ok_or_else(missing)?;
        }
        match entry {
            Entry::At { offset, size } => {
                Ok(Section { file: self.file.try_clone()?, at: *offset, left: *size })
            }
            Entry::Link(_) => Err(missing()),
        }
    }
}

/// A part of a file, read without moving anybody else's place in it.
struct Section {
    file: File,
    at: u64,
    left: u64,
}

impl Read for Section {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_max = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let n_bytes =
            std::os::unix::fs::FileExt::read_at(&self.file, &mut buffer[..n_max], self.at)?;
        self.at += n_bytes as u64;
        self.left -= n_bytes as u64;
        Ok(n_bytes)
    }
}

impl ArchiveError {
    pub(super) fn of(self, path: &Path) -> LoadError {
        match self {
            ArchiveError::Read(source) => LoadError::Read { path: path.to_owned(), source },
            ArchiveError::Wrong(why) => LoadError::Archive { path: path.to_owned(), why },
        }
    }
}

impl From<io::Error> for ArchiveError {
    fn from(error: io::Error) -> Self {
        ArchiveError::Read(error)
    }
}

fn digest(sum: &[u8]) -> String {
    let digits = sum.iter().map(|byte| format!("{byte:02x}"));
    format!("sha256:{}", digits.collect::<String>())
}

fn reference(blob: &Blob, media_type: &str) -> Reference {
    Reference {
        media_type: media_type.to_owned(),
        digest: blob.digest.clone(),
        size: blob.size,
        annotations: HashMap::new(),
    }
}

/// What containerd must not collect as long as it has this.
fn labels(document: &Document) -> HashMap<String, String> {
    let label = |kind: String, to: &Reference| {
        (format!("containerd.io/gc.ref.content.{kind}"), to.digest.clone())
    };
    let config = document.config.iter().map(|it| label("config".to_owned(), it));
    let layers = document.layers.iter().enumerate();
    let layers = layers.map(|(number, it)| label(format!("l.{number}"), it));
    let manifests = document.manifests.iter().enumerate();
    let manifests = manifests.map(|(number, it)| label(format!("m.{number}"), it));
    config.chain(layers).chain(manifests).collect()
}

/// A path in a tar file as others refer to it.
fn clean(path: &Path) -> String {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::Normal(part) => clean.push(part),
            std::path::Component::ParentDir => drop(clean.pop()),
            _ => {}
        }
    }
    clean.to_string_lossy().into_owned()
}
