//! Loss of power: builds the shim, and undoes what a child did without syncing it.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use super::witness::Random;

const PAGE_BYTES: usize = 4096;
const PAGE: u64 = PAGE_BYTES as u64;
const HEAD_BYTES: usize = 56;

/// What goes wrong for a child.
#[derive(Debug, Default)]
pub(super) struct Outage {
    pub(super) kill_at: Option<u64>,
    pub(super) fail_sync_at: Option<u64>,
    pub(super) space: Option<u64>,
}

/// How much of what was not synced is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The process ended, and the system goes on.
    Nothing,
    Everything,
    /// A disk writes pages when and in whatever order it likes.
    Some,
}

/// The shim's library and the places it uses.
pub(super) struct Shim {
    library: PathBuf,
    disk: PathBuf,
    log: PathBuf,
    stash: PathBuf,
    copy: PathBuf,
}

/// A change to a file, or a sync, in the order in which they happened.
struct Change<'a> {
    kind: u32,
    inode: u64,
    offset: u64,
    len: u64,
    old_len: u64,
    path: &'a str,
    other: &'a str,
    data: &'a [u8],
}

const WRITE: u32 = 1;
const TRUNCATE: u32 = 2;
const SYNC: u32 = 3;
const LOST: u32 = 4;
const CREATE: u32 = 5;
const RENAME: u32 = 6;
const UNLINK: u32 = 7;
const MKDIR: u32 = 8;
const RMDIR: u32 = 9;

impl Shim {
    /// Compiles the shim with the `cc` that Rust links with.
    pub(super) fn build(scratch: &Path, disk: &Path) -> Self {
        let library = scratch.join("shim.so");
        let source = scratch.join("shim.c");
        fs::write(&source, include_str!("shim.c")).unwrap();
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-pthread", "-o"])
            .args([&library, &source])
            .status()
            .expect("the linker that Rust uses is there");
        assert!(status.success());
        let [log, stash, copy] = ["log", "stash", "copy"].map(|name| scratch.join(name));
        fs::create_dir(&stash).unwrap();
        Self { library, disk: disk.into(), log, stash, copy }
    }

    pub(super) fn preload(&self, command: &mut Command, outage: &Outage) {
        command
            .env("LD_PRELOAD", &self.library)
            .env("SHIM_DIR", &self.disk)
            .env("SHIM_LOG", &self.log)
            .env("SHIM_STASH", &self.stash);
        for (name, value) in [
            ("SHIM_KILL_AT", outage.kill_at),
            ("SHIM_FAIL_SYNC_AT", outage.fail_sync_at),
            ("SHIM_SPACE", outage.space),
        ] {
            if let Some(value) = value {
                command.env(name, value.to_string());
            }
        }
    }

    /// Takes back what no sync covered, and forgets about the child.
    pub(super) fn lose_power(&self, loss: Loss, random: &mut Random) {
        let log = fs::read(&self.log).unwrap_or_default();
        let changes = parse(&log);
        // File systems keep the order of names; a crash cuts it somewhere.
        let names_last = loss == Loss::Some && random.below(2) == 0;
        let mut kept_to: HashMap<u64, u64> = HashMap::new();
        // Names that were given once more, to something that lasts.
        let mut given = HashSet::new();
        // What was written once more, and synced then.
        let mut lasting: HashMap<u64, Vec<Range<u64>>> = HashMap::new();
        for (at, change) in changes.iter().enumerate().rev() {
            if is_durable(change, &changes[at + 1..]) {
                match change.kind {
                    CREATE => drop(given.insert(change.path)),
                    RENAME => drop(given.insert(change.other)),
                    WRITE => {
                        let end = change.offset + change.len;
                        lasting.entry(change.inode).or_default().push(change.offset..end);
                        let kept = kept_to.entry(change.inode).or_default();
                        *kept = (*kept).max(end);
                    }
                    _ => {}
                }
                continue;
            }
            if change.kind == CREATE && given.contains(change.path) {
                continue;
            }
            match change.kind {
                WRITE => {
                    let lasting = lasting.get(&change.inode).map(Vec::as_slice).unwrap_or_default();
                    self.undo_write(change, lasting, (loss, random), &mut kept_to);
                }
                TRUNCATE => self.undo_truncate(change),
                CREATE | RENAME | UNLINK | MKDIR | RMDIR if !names_last => undo_name(change),
                _ => {}
            }
        }
        let _ = fs::remove_file(&self.log);
        fs::remove_dir_all(&self.stash).unwrap();
        fs::create_dir(&self.stash).unwrap();
    }

    /// Everything as it is, to be opened without changing it.
    pub(super) fn copy_of_disk(&self) -> PathBuf {
        let _ = fs::remove_dir_all(&self.copy);
        copy(&self.disk, &self.copy);
        self.copy.clone()
    }

    fn undo_write(
        &self,
        change: &Change<'_>,
        lasting: &[Range<u64>],
        (loss, random): (Loss, &mut Random),
        kept_to: &mut HashMap<u64, u64>,
    ) {
        let Some(file) = self.find(change.inode) else { return };
        let end = change.offset + change.len;
        let overlaps = |range: &&Range<u64>| range.start < end && change.offset < range.end;
        let lasting: Vec<&Range<u64>> = lasting.iter().filter(overlaps).collect();
        let mut at = change.offset;
        while at < end {
            let next = ((at / PAGE + 1) * PAGE).min(end);
            if loss == Loss::Some && random.below(2) == 0 {
                let kept = kept_to.entry(change.inode).or_default();
                *kept = (*kept).max(next);
            } else {
                let old: Vec<u8> = (at..next)
                    .map(|byte| {
                        let index = usize::try_from(byte - change.offset).unwrap();
                        change.data.get(index).copied().unwrap_or(0)
                    })
                    .collect();
                if lasting.is_empty() {
                    file.write_all_at(&old, at).unwrap();
                }
                for (byte, old) in (at..next).zip(old.chunks(1)).filter(|_| !lasting.is_empty()) {
                    if !lasting.iter().any(|range| range.contains(&byte)) {
                        file.write_all_at(old, byte).unwrap();
                    }
                }
            }
            at = next;
        }
        let kept = kept_to.get(&change.inode).copied().unwrap_or(0);
        if change.old_len < end {
            file.set_len(change.old_len.max(kept)).unwrap();
        }
    }

    fn undo_truncate(&self, change: &Change<'_>) {
        let Some(file) = self.find(change.inode) else { return };
        file.set_len(change.old_len).unwrap();
        file.write_all_at(change.data, change.offset).unwrap();
    }

    fn find(&self, inode: u64) -> Option<File> {
        let path = find(&self.disk, inode).or_else(|| find(&self.stash, inode))?;
        Some(OpenOptions::new().write(true).open(path).unwrap())
    }
}

/// Whether the first sync of the same file or directory after a change kept it.
///
/// Files go by inode, because they change their names. Directories go by path, because not every
/// file system has inodes of directories that stay the same while nobody has them open.
fn is_durable(change: &Change<'_>, later: &[Change<'_>]) -> bool {
    let place = match change.kind {
        RENAME => Path::new(change.other).parent(),
        CREATE | UNLINK | MKDIR | RMDIR => Path::new(change.path).parent(),
        _ => None,
    };
    let concerns = |sync: &Change<'_>| match place {
        Some(place) => Path::new(sync.path) == place,
        None => sync.path.is_empty() && sync.inode == change.inode,
    };
    later
        .iter()
        .find(|later| matches!(later.kind, SYNC | LOST) && concerns(later))
        .is_some_and(|sync| sync.kind == SYNC)
}

/// Errors mean that the change had not happened yet when the child was killed.
fn undo_name(change: &Change<'_>) {
    let (path, other) = (Path::new(change.path), Path::new(change.other));
    let _ = match change.kind {
        CREATE => fs::remove_file(path),
        MKDIR => fs::remove_dir_all(path),
        RMDIR => fs::create_dir(path),
        UNLINK => fs::rename(other, path),
        _ => fs::rename(other, path).and_then(|()| {
            let replaced = str::from_utf8(change.data).unwrap();
            if replaced.is_empty() { Ok(()) } else { fs::rename(replaced, other) }
        }),
    };
}

fn parse(log: &[u8]) -> Vec<Change<'_>> {
    let mut changes = Vec::new();
    let mut rest = log;
    // A record that was cut off belongs to a change that was not made.
    while let Some((head, behind)) = rest.split_first_chunk::<HEAD_BYTES>() {
        let small = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().unwrap());
        let large = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().unwrap());
        let lengths = [u64::from(small(4)), u64::from(small(8)), large(48)];
        let mut parts: [&[u8]; 3] = [&[]; 3];
        let mut behind = behind;
        for (part, len) in parts.iter_mut().zip(lengths) {
            let Some((this, next)) = behind.split_at_checked(usize::try_from(len).unwrap()) else {
                return changes;
            };
            (*part, behind) = (this, next);
        }
        changes.push(Change {
            kind: small(0),
            inode: large(16),
            offset: large(24),
            len: large(32),
            old_len: large(40),
            path: str::from_utf8(parts[0]).unwrap(),
            other: str::from_utf8(parts[1]).unwrap(),
            data: parts[2],
        });
        rest = behind;
    }
    changes
}

fn find(dir: &Path, inode: u64) -> Option<PathBuf> {
    fs::read_dir(dir).ok()?.find_map(|entry| {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            find(&path, inode)
        } else {
            (metadata.ino() == inode).then_some(path)
        }
    })
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).unwrap();
    let Ok(entries) = fs::read_dir(from) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            copy_file(&entry.path(), &target);
        }
    }
}

/// Leaves holes where there is nothing: logs are made in advance.
fn copy_file(from: &Path, to: &Path) {
    let (from, to) = (File::open(from).unwrap(), File::create(to).unwrap());
    let len = from.metadata().unwrap().len();
    to.set_len(len).unwrap();
    let mut page = [0; PAGE_BYTES];
    for at in (0..len).step_by(page.len()) {
        let piece = &mut page[..usize::try_from(PAGE.min(len - at)).unwrap()];
        from.read_exact_at(piece, at).unwrap();
        if *piece != [0; PAGE_BYTES][..piece.len()] {
            to.write_all_at(piece, at).unwrap();
        }
    }
}
