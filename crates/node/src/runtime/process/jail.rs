//! A view of the machine's files for each container: the machine's own below, what the container
//! writes above, volumes where they belong.
//!
//! It is made by the machine's own tools (`unshare`, `mount`, `chroot`, `setpriv`), which are asked
//! once whether they can. Where they can, a container has its processes for itself too: all of them
//! end with it.
//!
//! Whatever is made here tells the shim by its input, which is a pipe to write into: what went
//! wrong, or that the program begins. Only in the view can be seen whether there is such a program.
//! The program's own input comes from elsewhere.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::Command;

use super::place::Place;
use super::whom::Whom;

/// The line that says that a program begins. What else is said before the end is why not.
pub(super) const BEGINS: &str = "begins";
/// Names what a container takes for `PATH`, while the machine's tools are still looked for.
pub(super) const OWN_PATH: &str = "kubewright_path";

/// Ends with the process that started it, whatever ended that.
const LEASH: [&str; 4] = ["setpriv", "--pdeathsig", "KILL", "--"];
const OWN_PROCESSES: [&str; 3] = ["--pid", "--fork", "--kill-child"];
/// What programs expect of any machine.
const DEVICES: &str = "null zero full random urandom tty ptmx";

/// Makes the terminal the one that the program's signals come from. In the container, since a shell
/// asks who is in front of it, and does not know whom it cannot see.
pub(super) const ON_TERMINAL: [&str; 4] = ["setsid", "--ctty", "--wait", "--"];

/// Where a program's input comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Input {
    #[default]
    Nowhere,
    /// A named pipe.
    Pipe(PathBuf),
    /// The terminal that its output goes to.
    Terminal,
}

/// Looks for the program as it will be looked for, as the user who will run it, and becomes it with
/// the words before it that are missing here. Nothing here may have a name that a container could
/// give to a variable.
const ENTER: &str = r#"cd "$0" || exit 1; PATH=$kubewright_path; export PATH; unset kubewright_path
set -f; kubewright_ifs=$IFS; IFS=:; kubewright_why=
case $1 in
*/*) if [ ! -e "$1" ]; then kubewright_why="stat $1: no such file or directory"
  elif [ -d "$1" ]; then kubewright_why="is a directory"
  elif [ ! -x "$1" ]; then kubewright_why="permission denied"; fi ;;
*) kubewright_why='executable file not found in $PATH'
  for kubewright_d in $PATH; do
    if [ -f "$kubewright_d/$1" ] && [ -x "$kubewright_d/$1" ]; then kubewright_why=; break; fi
  done ;;
esac
IFS=$kubewright_ifs; set +f
if [ -n "$kubewright_why" ]; then printf 'exec: "%s": %s\n' "$1" "$kubewright_why" >&3; exit 127; fi
echo begins >&3; exec WORDS"$@" 2>&4 3>&- 4>&-"#;

/// How such views are made here.
#[derive(Debug, Clone)]
pub(super) struct Jail {
    /// Whose the namespaces are.
    owner: Owner,
    /// Whether containers have their processes for themselves.
    has_processes: bool,
    /// File systems of this machine besides the one at `/`.
    others: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The administrator of this machine.
    Root,
    /// A user, who is taken for one.
    User,
}

/// Something that is to be seen at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mount {
    pub(super) source: PathBuf,
    pub(super) target: String,
    pub(super) is_read_only: bool,
}

/// What a container is to see.
#[derive(Debug, Clone, Default)]
pub(super) struct View {
    pub(super) mounts: Vec<Mount>,
    /// Directories of the machine that are none of its business.
    pub(super) hidden: Vec<PathBuf>,
    /// Where it begins.
    pub(super) directory: String,
    /// Whether it may write in volumes only.
    pub(super) is_read_only: bool,
    /// Whether it has all devices of the machine.
    pub(super) is_privileged: bool,
    /// Whether it sees all processes of the machine.
    pub(super) has_machines_processes: bool,
    pub(super) whom: Whom,
    pub(super) input: Input,
}

impl Input {
    /// Says where reports go (3) and errors of the program (4), and where its input is; until it
    /// begins, all errors are reports.
    fn redirect(&self) -> String {
        let from = match self {
            Input::Nowhere => " /dev/null".to_owned(),
            Input::Pipe(path) => format!(" {}", quote(&path.to_string_lossy())),
            Input::Terminal => "&1".to_owned(),
        };
        format!("exec 3>&0 4>&2 0<{from} 2>&3; ")
    }

    fn enter(&self) -> String {
        let words = match self {
            Input::Terminal => format!("{} ", ON_TERMINAL.join(" ")),
            Input::Nowhere | Input::Pipe(_) => String::new(),
        };
        ENTER.replace("WORDS", &words)
    }
}

impl Jail {
    /// Finds out whether this machine lets us.
    pub(super) async fn find() -> Option<Self> {
        let mountinfo = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let others = others(&mountinfo);
        for owner in [Owner::Root, Owner::User] {
            for has_processes in [true, false] {
                let jail = Jail { owner, has_processes, others: others.clone() };
                if jail.is_possible().await {
                    return Some(jail);
                }
            }
        }
        None
    }

    async fn is_possible(&self) -> bool {
        let stage = std::env::temp_dir().join(format!("kubewright-{}", std::process::id()));
        if std::fs::create_dir_all(&stage).is_err() {
            return false;
        }
        let words = self.words(&stage, &View::default(), &["true".to_owned()]);
        let tried = Command::new(&words[0])
            .args(&words[1..])
            .env(OWN_PATH, super::PATH)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .await;
        let _ = std::fs::remove_dir(&stage);
        tried.is_ok_and(|status| status.success())
    }

    /// Whether the first process of this view is there for the others, and not the container's.
    pub(super) fn has_init(&self, view: &View) -> bool {
        self.has_processes && !view.has_machines_processes
    }

    /// The command that runs a command in a view of its own.
    pub(super) fn wrap(&self, place: &Place, view: &View, command: &[String]) -> Vec<String> {
        let stage = place.directory().join("view");
        let _ = std::fs::create_dir_all(&stage);
        self.words(&stage, view, command)
    }

    fn words(&self, stage: &Path, view: &View, command: &[String]) -> Vec<String> {
        let mut words: Vec<&str> = LEASH.into();
        words.push("unshare");
        match self.owner {
            Owner::Root => words.extend(["--mount", "--propagation", "private"]),
            Owner::User => words.extend(["--user", "--map-root-user", "--mount"]),
        }
        let has_init = self.has_init(view);
        words.extend(OWN_PROCESSES.into_iter().filter(|_| has_init));
        let whom = self.whom(&view.whom);
        let script = script(stage, &self.others, view, &whom, has_init);
        words.extend(["--", "/bin/sh", "-c", &script, "sh"]);
        words.into_iter().map(str::to_owned).chain(command.iter().cloned()).collect()
    }

    /// The command that runs a command in the view of a process. `has_init` as it was.
    pub(super) fn enter(
        &self,
        pid: i32,
        has_init: bool,
        whom: &Whom,
        command: &[String],
    ) -> Vec<String> {
        let pid = pid.to_string();
        let mut words: Vec<&str> = vec!["nsenter", "--target", &pid];
        if self.owner == Owner::User {
            words.extend(["--user", "--preserve-credentials"]);
        }
        words.extend(["--mount", "--root", "--wd"]);
        words.extend(has_init.then_some("--pid"));
        words.push("--");
        let mut words: Vec<String> = words.into_iter().map(str::to_owned).collect();
        words.extend(self.whom(whom));
        // There `nsenter` stays outside: what it started is not to outlive it. Elsewhere a thread of
        // the agent would be meant, which may end at any time.
        words.extend(LEASH.into_iter().filter(|_| has_init).map(str::to_owned));
        let enter = format!("PATH=${OWN_PATH}; export PATH; unset {OWN_PATH}; exec \"$@\"");
        words.extend(["/bin/sh", "-c", &enter, "sh"].map(str::to_owned));
        words.extend(command.iter().cloned());
        words
    }

    /// The words before a command that is to run as somebody else.
    fn whom(&self, whom: &Whom) -> Vec<String> {
        match self.owner {
            Owner::Root => whom.words(),
            // There are no others there.
            Owner::User => Vec::new(),
        }
    }
}

/// The command that runs a command where no views are to be had. `has_leash` says whether the
/// machine can end it with the shim.
pub(super) fn without(
    directory: &Path,
    has_leash: bool,
    input: &Input,
    command: &[String],
) -> Vec<String> {
    let script = format!("{}{}", input.redirect(), input.enter());
    let leash = LEASH.into_iter().filter(|_| has_leash).map(str::to_owned);
    let directory = directory.to_string_lossy();
    let shell = ["/bin/sh", "-c", &script, &directory].map(str::to_owned);
    leash.chain(shell).chain(command.iter().cloned()).collect()
}

/// Whether processes can end with those that started them.
pub(super) async fn has_leash() -> bool {
    let mut command = Command::new(LEASH[0]);
    command.args(&LEASH[1..]).arg("true");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().await.is_ok_and(|status| status.success())
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
fn script(stage: &Path, others: &[String], view: &View, whom: &[String], has_init: bool) -> String {
    let stage = quote(&stage.to_string_lossy());
    let mut script = format!(
        "set -e; {}kubewright_s={stage}; kubewright_r=\"$kubewright_s/r\"; \
         mount -t tmpfs tmpfs \"$kubewright_s\"; \
         mkdir \"$kubewright_s/u\" \"$kubewright_s/w\" \"$kubewright_r\"; \
         mount -t overlay overlay -o \
         \"lowerdir=/,upperdir=$kubewright_s/u,workdir=$kubewright_s/w\" \"$kubewright_r\"; \
         mount --rbind /sys \"$kubewright_r/sys\"; ",
        view.input.redirect()
    );
    // Through the machine's own one would see its processes, and by them its files.
    script.push_str(match has_init {
        true => "mount -t proc proc \"$kubewright_r/proc\"; ",
        false => "mount --rbind /proc \"$kubewright_r/proc\"; ",
    });
    devices(&mut script, view.is_privileged);
    for (number, other) in others.iter().enumerate() {
        let other = quote(other);
        // One that cannot be had is missing, and everything else is there.
        script.push_str(&format!(
            "if [ -d {other} ]; then mkdir \"$kubewright_s/u{number}\" \"$kubewright_s/w{number}\"; \
             mount -t overlay overlay -o \"lowerdir=\"{other}\",\
             upperdir=$kubewright_s/u{number},workdir=$kubewright_s/w{number}\" \
             \"$kubewright_r\"{other} 2> /dev/null || :; \
             else mount --bind {other} \"$kubewright_r\"{other} 2> /dev/null || :; fi; "
        ));
    }
    for hidden in &view.hidden {
        let hidden = quote(&hidden.to_string_lossy());
        script.push_str(&format!(
            "if [ -d \"$kubewright_r\"{hidden} ]; then \
             mount -t tmpfs -o ro,size=4k,mode=755 tmpfs \"$kubewright_r\"{hidden}; fi; "
        ));
    }
    for Mount { source, target, is_read_only } in &view.mounts {
        let (source, target) = (quote(&source.to_string_lossy()), quote(target));
        // A link would be resolved where it does not lead to the same.
        script.push_str(&format!(
            "kubewright_v=$(readlink -f {source}); \
             kubewright_t=\"$kubewright_r$(chroot \"$kubewright_r\" readlink -m {target})\"; \
             if [ -d \"$kubewright_v\" ]; then mkdir -p \"$kubewright_t\"; \
             else mkdir -p \"$(dirname \"$kubewright_t\")\"; \
             [ -e \"$kubewright_t\" ] || : > \"$kubewright_t\"; fi; \
             mount --bind \"$kubewright_v\" \"$kubewright_t\"; "
        ));
        if *is_read_only {
            script.push_str("mount -o remount,bind,ro \"$kubewright_t\"; ");
        }
    }
    let directory = quote(if view.directory.is_empty() { "/" } else { &view.directory });
    script.push_str(&format!("mkdir -p \"$kubewright_r\"{directory}; "));
    if view.is_read_only {
        script.push_str("mount -o remount,bind,ro \"$kubewright_r\"; ");
        for other in others {
            let other = quote(other);
            script.push_str(&format!(
                "mount -o remount,bind,ro \"$kubewright_r\"{other} 2> /dev/null || :; "
            ));
        }
    }
    let whom: Vec<String> = whom.iter().map(|word| quote(word)).collect();
    let whom = whom.join(" ");
    let enter = quote(&view.input.enter());
    script.push_str(&match has_init {
        // A first process is deaf to requests to end, so that it is none of the container's: it
        // takes note of those that have ended, and when it ends so do all.
        true => {
            let init = format!(
                "cd \"$0\"; exec 2> /dev/null; {whom} /bin/sh -c {enter} \"$0\" \"$@\" 2>&3; exit $?"
            );
            let init = quote(&init);
            format!("exec chroot \"$kubewright_r\" /bin/sh -c {init} {directory} \"$@\"")
        }
        false => {
            // Who becomes another has no leash any more.
            let leash = LEASH.join(" ");
            format!(
                "exec chroot \"$kubewright_r\" {whom} {leash} \
                 /bin/sh -c {enter} {directory} \"$@\""
            )
        }
    });
    script
}

/// Has the view a directory of devices of its own: what containers put there is not the machine's.
fn devices(script: &mut String, is_privileged: bool) {
    script.push_str(&format!(
        "kubewright_d=\"$kubewright_r/dev\"; \
         mount -t tmpfs -o mode=755,size=1m tmpfs \"$kubewright_d\"; \
         mkdir \"$kubewright_d/pts\" \"$kubewright_d/shm\"; \
         mount --rbind /dev/pts \"$kubewright_d/pts\"; \
         mount -t tmpfs -o mode=1777,size=64m tmpfs \"$kubewright_d/shm\"; \
         ln -s /proc/self/fd \"$kubewright_d/fd\"; ln -s fd/0 \"$kubewright_d/stdin\"; \
         ln -s fd/1 \"$kubewright_d/stdout\"; ln -s fd/2 \"$kubewright_d/stderr\"; \
         for kubewright_n in {DEVICES}; do if [ -e \"/dev/$kubewright_n\" ]; then \
         : > \"$kubewright_d/$kubewright_n\"; \
         mount --bind \"/dev/$kubewright_n\" \"$kubewright_d/$kubewright_n\"; fi; done; "
    ));
    if is_privileged {
        script.push_str(
            "for kubewright_n in /dev/*; do kubewright_t=\"$kubewright_r$kubewright_n\"; \
             if [ -e \"$kubewright_t\" ] || [ -L \"$kubewright_t\" ]; then :; \
             elif [ -L \"$kubewright_n\" ]; then cp -P \"$kubewright_n\" \"$kubewright_t\"; \
             elif [ -d \"$kubewright_n\" ]; then mkdir \"$kubewright_t\"; \
             mount --rbind \"$kubewright_n\" \"$kubewright_t\"; \
             else : > \"$kubewright_t\"; mount --bind \"$kubewright_n\" \"$kubewright_t\"; fi; \
             done; ",
        );
    }
}

/// A word of the shell.
fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}
