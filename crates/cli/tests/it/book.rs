//! The sessions in the book, typed as their readers would.
//!
//! In `docs/book/operators`, blocks of `console` are sessions: what follows `$` is typed at the
//! root of the repository, beside a demo, and what it prints is on the lines after it. The tests hold that against
//! what is printed now, but for what is another each time: ages, UIDs, addresses, names of pods.
//! With `KUBEWRIGHT_BLESS` set, sessions that differ are written anew.

mod workloads;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::demo::Demo;
use crate::transcript::{kubectl, mask};

#[test]
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
    let port = told.trim_end().trim_end_matches('/').rsplit(':').next().expect("a port");
    let mut reader = Reader::new(&kubectl, root());
    reader.kubeconfig = Some(demo.kubeconfig());
    reader.port = format!(":{port}");
    let differences: String = pages()
        .iter()
        .filter(|page| !page.ends_with(GUESTBOOK))
        .filter_map(|page| difference(page, |command| reader.type_in(command)))
        .collect();
    assert!(differences.is_empty(), "{differences}");
    demo.interrupt();
    demo.end();
    assert_eq!(demo.left_behind(), [""; 0]);
}

/// Its readers begin with nothing.
const GUESTBOOK: &str = "guestbook.md";

#[test]
fn the_page_about_the_smallest_operator_shows_how_it_is_made() {
    let folder = tempfile::tempdir().expect("a directory");
    let reader = Reader::new(Path::new(env!("CARGO_BIN_EXE_kubewright")), folder.path().into());
    let page = root().join("docs/book/operators").join(GUESTBOOK);
    let differences = difference(&page, |command| reader.type_in(command));
    assert_eq!(differences, None);
}

/// All operators are in the book, and the book's contents have them all.
#[test]
fn each_operator_has_a_page_that_can_be_found() {
    let contents = fs::read_to_string(root().join("docs/book/SUMMARY.md")).expect("contents");
    for name in operators() {
        let page = format!("operators/{name}.md");
        assert!(root().join("docs/book").join(&page).is_file(), "there is no {page}");
        assert!(contents.contains(&format!("]({page})")), "{page} is not in SUMMARY.md");
    }
}

/// What is said to be tested is.
#[test]
fn the_table_of_operators_names_tests_that_are_there() {
    let table = fs::read_to_string(root().join("operators/README.md")).expect("a page");
    let mut operator = ("", String::new());
    let mut seen = Vec::new();
    for row in table.lines().filter_map(|line| line.strip_prefix("| ")) {
        if let Some((name, _)) = row.strip_prefix("**").and_then(|row| row.split_once("**")) {
            operator = (name, text_below(&root().join("operators").join(name)));
            seen.push(name.to_owned());
            continue;
        }
        for test in row.split('`').skip(1).step_by(2) {
            let (name, text) = &operator;
            assert!(text.contains(&format!("fn {test}()")), "{name} has no test {test}");
        }
    }
    seen.sort();
    assert_eq!(seen, operators());
}

fn operators() -> Vec<String> {
    let entries = fs::read_dir(root().join("operators")).expect("a folder");
    let folders = entries.map(|entry| entry.expect("an entry")).filter(|it| it.path().is_dir());
    let mut names: Vec<String> =
        folders.map(|it| it.file_name().into_string().expect("a name")).collect();
    names.sort();
    names
}

fn text_below(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    let texts = paths.map(|path| match path.is_dir() {
        true => text_below(&path),
        // Some files are no texts.
        false => fs::read_to_string(&path).unwrap_or_default(),
    });
    texts.collect()
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

/// A page as it would have to be, if it is not, and is not to be written anew.
fn difference(path: &Path, type_in: impl Fn(&str) -> String) -> Option<String> {
    let page = fs::read_to_string(path).expect("a page");
    let now = retype(&page, type_in);
    if now == page {
        return None;
    }
    if env::var_os("KUBEWRIGHT_BLESS").is_some() {
        fs::write(path, now).expect("written");
        return None;
    }
    Some(format!("{}: now it is\n{now}\n", path.display()))
}

/// Somebody at a terminal.
struct Reader {
    path: std::ffi::OsString,
    folder: PathBuf,
    home: tempfile::TempDir,
    kubeconfig: Option<PathBuf>,
    /// Where web applications are.
    port: String,
}

impl Reader {
    /// One who has a program, in a folder.
    fn new(program: &Path, folder: PathBuf) -> Self {
        let programs = env::var_os("PATH").unwrap_or_default();
        let own = program.parent().expect("a program is in a folder").to_owned();
        let path = env::join_paths(std::iter::once(own).chain(env::split_paths(&programs)));
        Reader {
            path: path.expect("folders without colons"),
            folder,
            home: tempfile::tempdir().expect("a directory"),
            kubeconfig: None,
            port: ":8080".to_owned(),
        }
    }

    /// All that a command prints.
    fn type_in(&self, command: &str) -> String {
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1\n{}", command.replace(":8080", &self.port)))
            .current_dir(&self.folder)
            .env_clear()
            .env("PATH", &self.path)
            .env("HOME", self.home.path())
            .envs(self.kubeconfig.iter().map(|file| ("KUBECONFIG", file)))
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
