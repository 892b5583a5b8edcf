//! Projects as their authors find them on disk.

mod attended;
#[expect(unreachable_pub, reason = "it is what a project would have")]
mod boat;
mod bundle;
#[expect(unreachable_pub, reason = "it is what a project would have")]
mod deployment;
#[expect(unreachable_pub, reason = "it is what a project would have")]
mod ferry;
mod guestbook;
mod helm;
mod import;
#[expect(unreachable_pub, reason = "it is what a project would have")]
mod node;
mod package;
mod patch;
mod registry;
mod versions;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// All files below a folder, by their path.
fn tree(root: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a list") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path.strip_prefix(root).expect("it is below").display().to_string();
                    files.insert(name, fs::read_to_string(&path).expect("a text"));
                }
            }
        }
    }
    files
}
