//! Processes of this machine and whose children they are.

use std::fs;
use std::path::PathBuf;

/// All processes, each with its parent.
pub(super) fn all() -> Vec<(i32, i32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid: i32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        Some((pid, parent(&stat)?))
    })
    .collect()
}

/// The parent in the line that the kernel has about a process.
pub(super) fn parent(stat: &str) -> Option<i32> {
    // The name is in parentheses, and may have any in it.
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(1)?.parse().ok()
}

/// The children of a process, and theirs, and so on.
pub(super) fn descendants(of: i32, all: &[(i32, i32)]) -> Vec<i32> {
    let mut found = vec![of];
    let mut at = 0;
    while let Some(parent) = found.get(at).copied() {
        at += 1;
        let children = all.iter().filter(|(pid, own)| *own == parent && *pid != parent);
        found.extend(children.map(|(pid, _)| *pid));
    }
    found.remove(0);
    found
}

/// By what it is known which processes see each other.
pub(super) fn namespace(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/ns/pid")).ok()
}
