//! A view of the machine's files for each container: the machine's own below, what the container
//! writes above, volumes where they belong.
//!
//! It is made by the machine's own tools (`unshare`, `mount`, `chroot`), which are asked once
//! whether they can.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::place::Place;

/// How such views are made here.
#[derive(Debug, Clone)]
pub(super) struct Jail {
    unshare: Vec<String>,
    /// File systems of this machine besides the one at `/`.
    others: Vec<String>,
}

/// Something that is to be seen at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) source: PathBuf,
    pub(super) target: String,
    pub(super) is_read_only: bool,
}

impl Jail {
    /// Finds out whether this machine lets us.
    pub(super) async fn find() -> Option<Self> {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
        let candidates: [Vec<String>; 2] = [
            words(&["unshare", "--mount", "--propagation", "private", "--"]),
            words(&["unshare", "--user", "--map-root-user", "--mount", "--"]),
        ];
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let others = others(&mountinfo);
        for unshare in candidates {
            let stage = std::env::temp_dir().join(format!("kubewright-{}", std::process::id()));
            let script = script(&stage, &others, &[], "", (None, None));
            let (program, arguments) = unshare.split_first()?;
            std::fs::create_dir_all(&stage).ok()?;
            let tried = Command::new(program)
                .args(arguments)
                .args(["/bin/sh", "-c", &script, "sh", "true"])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .await;
            let _ = std::fs::remove_dir(&stage);
            if tried.is_ok_and(|status| status.success()) {
                return Some(Jail { unshare, others });
            }
        }
        None
    }

    /// The command that runs a command in a view of its own.
    pub(super) fn wrap(
        &self,
        place: &Place,
        mounts: &[Mount],
        directory: &str,
        user: (Option<i64>, Option<i64>),
        command: &[String],
    ) -> Vec<String> {
        let stage = place.directory().join("view");
        let _ = std::fs::create_dir_all(&stage);
        let script = script(&stage, &self.others, mounts, directory, user);
        let shell = ["/bin/sh", "-c", &script, "sh"].map(str::to_owned);
        self.unshare.iter().cloned().chain(shell).chain(command.iter().cloned()).collect()
    }

    /// The command that runs a command in the view of a process.
    pub(super) fn enter(&self, pid: i32, command: &[String]) -> Vec<String> {
        let mut words = vec!["nsenter".to_owned(), "--target".to_owned(), pid.to_string()];
        if self.unshare.iter().any(|word| word == "--user") {
            words.extend(["--user".to_owned(), "--preserve-credentials".to_owned()]);
        }
        words.extend(["--mount", "--root", "--wd", "--"].map(str::to_owned));
        words.extend(command.iter().cloned());
        words
    }
}

/// The file systems of this machine that a view is made of too, besides the one at `/`: those on
/// disks and in memory, not the kernel's own, nor any that is far away. In the order in which they
/// were mounted.
pub(super) fn others(mountinfo: &str) -> Vec<String> {
    const KINDS: [&str; 8] = ["btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "tmpfs", "xfs"];
    let mut found = Vec::new();
    for line in mountinfo.lines() {
        let Some((mount, system)) = line.split_once(" - ") else { continue };
        let path = mount.split(' ').nth(4).unwrap_or_default();
        let kind = system.split(' ').next().unwrap_or_default();
        let is_kernels = ["/proc", "/sys", "/dev"].iter().any(|own| {
            path.strip_prefix(own).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        // What has such a character in it cannot be said to `mount`.
        let is_plain = !path.contains(['\\', ':', ',']);
        if KINDS.contains(&kind) && path != "/" && !is_kernels && is_plain {
            found.retain(|known| known != path);
            found.push(path.to_owned());
        }
    }
    found
}

/// Makes the view and goes there. All that it makes is gone with the namespace.
fn script(
    stage: &Path,
    others: &[String],
    mounts: &[Mount],
    directory: &str,
    user: (Option<i64>, Option<i64>),
) -> String {
    let stage = quote(&stage.to_string_lossy());
    let mut script = format!(
        "set -e; S={stage}; mount -t tmpfs tmpfs \"$S\"; mkdir \"$S/u\" \"$S/w\" \"$S/r\"; \
         mount -t overlay overlay -o \"lowerdir=/,upperdir=$S/u,workdir=$S/w\" \"$S/r\"; \
         for d in /proc /sys /dev; do mount --rbind \"$d\" \"$S/r$d\"; done; "
    );
    for (number, other) in others.iter().enumerate() {
        let other = quote(other);
        // One that cannot be had is missing, and everything else is there.
        script.push_str(&format!(
            "if [ -d {other} ]; then mkdir \"$S/u{number}\" \"$S/w{number}\"; \
             mount -t overlay overlay -o \
             \"lowerdir=\"{other}\",upperdir=$S/u{number},workdir=$S/w{number}\" \
             \"$S/r\"{other} 2> /dev/null || :; \
             else mount --bind {other} \"$S/r\"{other} 2> /dev/null || :; fi; "
        ));
    }
    for Mount { source, target, is_read_only } in mounts {
        let (source, target) = (quote(&source.to_string_lossy()), quote(target));
        // A link would be resolved where it does not lead to the same.
        let made = format!(
            "V=$(readlink -f {source}); T=\"$S/r$(chroot \"$S/r\" readlink -m {target})\"; \
             if [ -d \"$V\" ]; then mkdir -p \"$T\"; \
             else mkdir -p \"$(dirname \"$T\")\"; [ -e \"$T\" ] || : > \"$T\"; fi; \
             mount --bind \"$V\" \"$T\"; "
        );
        script.push_str(&made);
        if *is_read_only {
            script.push_str("mount -o remount,bind,ro \"$T\"; ");
        }
    }
    let directory = quote(if directory.is_empty() { "/" } else { directory });
    let whom = match user {
        (None, None) => String::new(),
        (user, group) => {
            let user = user.unwrap_or(0);
            format!("--userspec={user}:{} ", group.unwrap_or(user))
        }
    };
    let enter = quote("cd \"$0\" && exec \"$@\"");
    script.push_str(&format!(
        "mkdir -p \"$S/r\"{directory}; exec chroot {whom}\"$S/r\" /bin/sh -c {enter} {directory} \"$@\""
    ));
    script
}

/// A word of the shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
