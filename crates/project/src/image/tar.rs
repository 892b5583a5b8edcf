//! Archives with nothing in them that depends on when or where they were made.

/// A file of a layer, or a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// From the root, without a slash in front.
    pub path: String,
    pub mode: u32,
    pub owner: u32,
    /// None for a folder.
    pub bytes: Option<Vec<u8>>,
}

impl File {
    pub fn new(path: &str, mode: u32, bytes: Vec<u8>) -> Self {
        File { path: path.to_owned(), mode, owner: 0, bytes: Some(bytes) }
    }

    pub fn folder(path: &str, mode: u32) -> Self {
        File { path: path.to_owned(), mode, owner: 0, bytes: None }
    }
}

const BLOCK: usize = 512;
/// What fits into the field for names; longer ones have a prefix of their own field.
const NAME_BYTES_MAX: usize = 100;

/// The files as an archive of the form `ustar`, in their order.
///
/// # Panics
/// If a path is longer than the form has room for, which is 255 bytes.
pub(super) fn archive(files: &[File]) -> Vec<u8> {
    let mut archive = Vec::new();
    for file in files {
        let bytes = file.bytes.as_deref().unwrap_or_default();
        archive.extend(header(file, bytes.len()));
        archive.extend(bytes);
        archive.resize(archive.len().next_multiple_of(BLOCK), 0);
    }
    archive.resize(archive.len() + 2 * BLOCK, 0);
    archive
}

fn header(file: &File, size: usize) -> [u8; BLOCK] {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    let slash = if file.bytes.is_none() { "/" } else { "" };
    let path = format!("{}{slash}", file.path);
    let (prefix, name) = split(&path);
    put(0, name.as_bytes());
    put(100, format!("{:07o}\0", file.mode).as_bytes());
    put(108, format!("{:07o}\0", file.owner).as_bytes());
    put(116, format!("{:07o}\0", file.owner).as_bytes());
    put(124, format!("{size:011o}\0").as_bytes());
    put(136, b"00000000000\0");
    // The sum is taken with spaces in its own place.
    put(148, b"        ");
    put(156, if file.bytes.is_some() { b"0" } else { b"5" });
    put(257, b"ustar\x0000");
    put(345, prefix.as_bytes());
    let sum: u32 = header.iter().map(|&byte| u32::from(byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

/// Where a long path is taken apart.
fn split(path: &str) -> (&str, &str) {
    if path.len() <= NAME_BYTES_MAX {
        return ("", path);
    }
    let mut slashes = path.match_indices('/').map(|(at, _)| at);
    let at = slashes
        .find(|at| path.len() - at - 1 <= NAME_BYTES_MAX)
        .expect("paths in images are short");
    (&path[..at], &path[at + 1..])
}
