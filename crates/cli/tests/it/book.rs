//! The sessions in the book, typed into a running demo.
//!
//! In `docs/book/operators`, blocks of `console` are sessions: what follows `$` is typed at the
//! root of the repository, and what it prints is on the lines after it. The tests hold that against
//! what is printed now, but for what is another each time: ages, UIDs, addresses, names of pods.
//! With `KUBEWRIGHT_BLESS` set, sessions that differ are written anew.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::demo::Demo;
use crate::transcript::{kubectl, mask};

#[test]
#[ignore = "Services do not reach processes of this machine yet: no web application answers"]
fn pages_about_operators_show_what_their_readers_see() {
    let Some(kubectl) = kubectl() else {
        eprintln!("skipped: there is no kubectl; `cargo xtask upstream build` makes one");
        return;
    };
    if Command::new("curl").arg("--version").output().is_err() {
        eprintln!("skipped: there is no curl");
        return;
    }
    let mut demo = Demo::start(&[]);
    let told = demo.until("  curl http://");
    let reader = Reader::new(&kubectl, &demo, &told);
    let mut differences = String::new();
    for path in pages() {
        let page = fs::read_to_string(&path).expect("a page");
        let now = retype(&page, |command| reader.type_in(command));
        if now == page {
            continue;
        }
        match env::var_os("KUBEWRIGHT_BLESS") {
            Some(_) => fs::write(&path, now).expect("written"),
            None => differences += &format!("{}: now it is\n{now}\n", path.display()),
        }
    }
    assert!(differences.is_empty(), "{differences}");
    demo.interrupt();
    demo.end();
    assert_eq!(demo.left_behind(), [""; 0]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let folder = fs::read_dir(root().join("docs/book/operators")).expect("a folder");
    let mut pages: Vec<PathBuf> = folder.map(|entry| entry.expect("a page").path()).collect();
    pages.sort();
    pages
}

/// Somebody at a terminal beside a demo.
struct Reader {
    path: std::ffi::OsString,
    home: tempfile::TempDir,
    kubeconfig: PathBuf,
    /// Where web applications are, as `:8080`.
    port: String,
}

impl Reader {
    fn new(kubectl: &Path, demo: &Demo, told: &str) -> Self {
        let programs = env::var_os("PATH").unwrap_or_default();
        let own = kubectl.parent().expect("a program is in a folder").to_owned();
        let path = env::join_paths(std::iter::once(own).chain(env::split_paths(&programs)));
        let port = told.trim_end().trim_end_matches('/').rsplit(':').next().expect("a port");
        Reader {
            path: path.expect("folders without colons"),
            home: tempfile::tempdir().expect("a directory"),
            kubeconfig: demo.kubeconfig(),
            port: format!(":{port}"),
        }
    }

    /// All that a command prints.
    fn type_in(&self, command: &str) -> String {
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1\n{}", command.replace(":8080", &self.port)))
            .current_dir(root())
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig)
            .stdin(Stdio::null())
            .output()
            .expect("a shell");
        String::from_utf8_lossy(&output.stdout).trim_end().replace(&self.port, ":8080")
    }
}

/// A page with what its commands print now, where that is something else.
fn retype(page: &str, type_in: impl Fn(&str) -> String) -> String {
    let mut written = String::new();
    let mut lines = page.lines().peekable();
    let mut is_session = false;
    while let Some(line) = lines.next() {
        written += line;
        written += "\n";
        is_session = match line {
            "```console" => true,
            "```" => false,
            _ => is_session,
        };
        let Some(first) = line.strip_prefix("$ ").filter(|_| is_session) else { continue };
        let mut command = first.to_owned();
        while let Some(line) = lines.next_if(|line| line.starts_with("> ")) {
            written += line;
            written += "\n";
            command = format!("{command}\n{}", &line[2..]);
        }
        let mut before = Vec::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
            before.push(line);
        }
        let (before, now) = (before.join("\n"), type_in(&command));
        let shown = if mask(&before) == mask(&now) { before } else { now };
        if !shown.is_empty() {
            written += &shown;
            written += "\n";
        }
    }
    written
}

#[test]
fn only_what_differs_is_written_anew() {
    let page = "Prose.\n\n```console\n$ one\nweb   5s\n$ two\n> more\nold\n```\n\n$ not this\n";
    let typed = |command: &str| match command {
        // Older than it was, as is everything.
        "one" => "web  9s".to_owned(),
        "two\nmore" => "new".to_owned(),
        other => panic!("{other:?} is no command"),
    };
    assert_eq!(retype(page, typed), page.replace("\nold\n", "\nnew\n"));
}
