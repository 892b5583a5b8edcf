//! Sessions with kubectl, recorded on upstream Kubernetes and held against this cluster.
//!
//! A transcript in `kubectl/` is prose with indented commands, each followed by what it printed and,
//! in brackets, the code it ended with if that is not zero. `cargo xtask transcripts` asks upstream
//! anew. Both sides run the same kubectl, the one that `cargo xtask upstream` builds; where it is
//! not installed the tests say so and pass.
//!
//! What must differ between two clusters is masked: times and ages, UIDs, resource versions,
//! addresses, ports, tokens, the padding of columns, and the mark in our version.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::{UP_ALONE, User};

/// What kubectl must be the client of.
const VERSION: &str = "v1.36.4";

/// `record` or `check`: ask the cluster of KUBECONFIG, not one of ours.
const MODE: &str = "KUBEWRIGHT_TRANSCRIPTS";

#[test]
fn objects_are_made_shown_changed_and_deleted_as_on_upstream() {
    check("objects");
}

#[test]
fn declarations_are_applied_compared_and_pruned_as_on_upstream() {
    check("apply");
}

#[test]
fn own_kinds_live_as_on_upstream() {
    check("custom");
}

#[test]
fn rights_are_given_and_judged_as_on_upstream() {
    check("access");
}

#[test]
fn there_is_what_there_is_on_upstream() {
    check("discovery");
}

#[test]
fn objects_are_shown_in_every_form_as_on_upstream() {
    check("shown");
}

#[test]
fn workloads_are_declared_described_and_scaled_as_on_upstream() {
    check("workloads");
}

#[test]
fn nodes_and_volumes_are_kept_as_on_upstream() {
    check("nodes");
}

#[test]
fn namespaces_hold_quotas_and_accounts_as_on_upstream() {
    check("namespaces");
}

#[test]
fn deletions_cascade_wait_and_are_told_as_on_upstream() {
    check("deletion");
}

#[test]
fn own_kinds_follow_their_schema_as_on_upstream() {
    check("schema");
}

#[test]
fn mistakes_are_refused_in_the_words_of_upstream() {
    check("wrong");
}

fn check(name: &str) {
    let Some(kubectl) = kubectl() else {
        eprintln!("skipped: there is no kubectl; `cargo xtask upstream build` makes one");
        return;
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/kubectl/{name}.t"));
    let recorded = fs::read_to_string(&path).expect("a transcript");
    let session = |config: &Path| {
        let session = Session::new(&kubectl, config);
        transcribe(&recorded, |command| session.run(command))
    };
    let seen = match env::var(MODE).as_deref() {
        Ok("record") => return fs::write(&path, session(&upstream())).expect("written"),
        Ok("check") => session(&upstream()),
        Ok(other) => panic!("{MODE} is {other:?}, not record or check"),
        Err(_) => {
            let user = User::new();
            user.run(&UP_ALONE).expect("up");
            session(&user.home.path().join(".kube/config"))
        }
    };
    if seen != recorded {
        let seen_path = env::temp_dir().join(format!("kubewright-{name}.t"));
        fs::write(&seen_path, &seen).expect("written");
        panic!("diff {} {}\n{}", path.display(), seen_path.display(), difference(&recorded, &seen));
    }
}

fn upstream() -> PathBuf {
    env::var_os("KUBECONFIG").expect("KUBECONFIG names the cluster to ask").into()
}

/// Where `cargo xtask upstream` finds or puts it.
pub(crate) fn kubectl() -> Option<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let built = || {
        let cache =
            absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        Some(cache.join("kubewright/upstream").join(VERSION))
    };
    let folder = absolute("KUBEWRIGHT_UPSTREAM_ASSETS").or_else(built)?;
    Some(folder.join("kubectl")).filter(|kubectl| kubectl.is_file())
}

/// Commands run one after the other, in one folder.
struct Session {
    folder: tempfile::TempDir,
    path: std::ffi::OsString,
}

impl Session {
    fn new(kubectl: &Path, config: &Path) -> Self {
        let folder = tempfile::tempdir().expect("a directory");
        // A session chooses its namespace in it.
        fs::copy(config, folder.path().join("kubeconfig")).expect("a kubeconfig");
        let programs = env::var_os("PATH").unwrap_or_default();
        let own = kubectl.parent().expect("a program is in a folder").to_owned();
        let path = env::join_paths(std::iter::once(own).chain(env::split_paths(&programs)));
        Session { folder, path: path.expect("folders without colons") }
    }

    /// All that a command prints, masked, and its code.
    fn run(&self, command: &str) -> Vec<String> {
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1\n{command}"))
            .current_dir(self.folder.path())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.folder.path())
            .env("KUBECONFIG", self.folder.path().join("kubeconfig"))
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        let mut lines = mask(&String::from_utf8_lossy(&output.stdout));
        match output.status.code() {
            Some(0) => {}
            Some(code) => lines.push(format!("[{code}]")),
            None => lines.push(format!("[{}]", output.status)),
        }
        lines
    }
}

/// The transcript with what its commands print now.
fn transcribe(recorded: &str, run: impl Fn(&str) -> Vec<String>) -> String {
    let mut written = String::new();
    let mut lines = recorded.lines().peekable();
    while let Some(line) = lines.next() {
        written += line;
        written += "\n";
        let Some(first) = line.strip_prefix("  $ ") else { continue };
        let mut command = first.to_owned();
        while let Some(line) = lines.next_if(|line| line.starts_with("  >")) {
            written += line;
            written += "\n";
            command += "\n";
            command += line.strip_prefix("  > ").unwrap_or_default();
        }
        // What it printed when it was recorded: up to the next command, or to prose.
        while lines.next_if(|line| line.starts_with("  ") && !line.starts_with("  $ ")).is_some() {}
        for line in run(&command) {
            written += &format!("  {line}");
            // Inside what a command printed, an empty line is no end.
            written += if line.is_empty() { "|\n" } else { "\n" };
        }
    }
    written
}

/// What two clusters need not have in common.
static MASKS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| \+0000 UTC)", "<time>"),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r#"((?:resourceVersion|Resource Version)\\?"?: *\\?"?)\d+"#, "$1<version>"),
        (r"127\.0\.0\.1:\d+", "<server>"),
        (r"\b(10\.0\.0|198\.18\.\d+)\.\d+\b", "<ip>"),
        (r"-[0-9a-z]{8,10}-[0-9a-z]{5}\b", "-<pod>"),
        (r"eyJ[\w-]+\.[\w-]+\.[\w-]+", "<token>"),
        (r"kube-api-access-\w{5}", "kube-api-access-<random>"),
        (r":3\d{4}/", ":<port>/"),
        (r"(?i)(nodePort.*?)\b3\d{4}\b", "$1<port>"),
        // Since a date that a session names.
        (r"\b\d{3}d\b", "<age>"),
        // Named by how the program was built.
        (r#"in scheme \S+"#, "in scheme <scheme>"),
        (r"(v\d+\.\d+\.\d+)\+kubewright", "$1"),
    ]
    .map(|(pattern, mask)| (Regex::new(pattern).expect("a pattern"), mask))
    .into()
});

/// Columns are as wide as their widest value, ages among them.
static PADDING: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"(\S) {2,}").expect("a pattern"));

/// What a column of ages holds.
static AGE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^(\d+[smhd](\d+[smhd])?|<invalid>|<unknown>)( |$)").expect("a pattern")
});

/// What a client whose patience ends says of its own watch, if it comes to that before it leaves.
static SHORT_WATCH: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^I\d{4} .* reflector\.go:.*very short watch: ").expect("a pattern")
});

pub(crate) fn mask(printed: &str) -> Vec<String> {
    let mask_line = |line: &str| {
        let masked = MASKS.iter().fold(line.to_owned(), |line, (mask, with)| {
            mask.replace_all(&line, *with).into_owned()
        });
        let narrow =
            PADDING.replace_all(&masked, |found: &Captures<'_>| format!("{}  ", &found[1]));
        let (name, columns) = narrow.split_once("  ").unwrap_or((&narrow, ""));
        let columns: String =
            columns.split("  ").map(|cell| format!("  {}", AGE.replace(cell, "<age>$3"))).collect();
        format!("{name}{columns}").trim_end().to_owned()
    };
    printed.trim_end().lines().filter(|line| !SHORT_WATCH.is_match(line)).map(mask_line).collect()
}

/// The first command whose output is another, and both outputs.
fn difference(recorded: &str, seen: &str) -> String {
    let blocks = |text: &str| -> Vec<String> {
        text.split("\n  $ ").map(|block| format!("  $ {block}")).collect()
    };
    let differing = blocks(recorded).into_iter().zip(blocks(seen)).filter(|(a, b)| a != b);
    let shown: Vec<String> =
        differing.map(|(recorded, seen)| format!("{recorded}\n  -- but here:\n{seen}\n")).collect();
    shown.join("\n")
}

#[test]
fn masks_hide_what_must_differ_and_nothing_else() {
    let check = |printed: &str, masked: &str| assert_eq!(mask(printed), [masked]);
    check("web   2/2     3m5s", "web  2/2  <age>");
    check("once   0/1   5s         7d2h", "once  0/1  <age>  <age>");
    check("  Normal  Seen  5s (x3 over 9m)  me", "  Normal  Seen  <age> (x3 over 9m)  me");
    check("bound  1/1  2 (319d ago)  5s", "bound  1/1  2 (<age> ago)  <age>");
    check("  resourceVersion: \"12\"", "  resourceVersion: \"<version>\"");
    check("Tolerations:   a:NoExecute for 300s", "Tolerations:  a:NoExecute for 300s");
    check("uid: 8d5f7a52-0c2e-4d0a-9d3e-0a1b2c3d4e5f", "uid: <uid>");
    check("Server Version: v1.36.4+kubewright", "Server Version: v1.36.4");
    check("80:30123/TCP", "80:<port>/TCP");
    let told = "I1120 00:16:41.215082  22500 reflector.go:664] \"Warning: watch ended with error\" \
                err=\"very short watch: it lasted less than a second\"\ndone";
    check(told, "done");
}
