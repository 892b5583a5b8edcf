//! `kubewright demo`, from its first line to the nothing that it leaves behind.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Signal, kill_process};

/// A demo that runs, for a user who has nothing else.
pub(crate) struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    home: tempfile::TempDir,
}

impl Demo {
    /// On ports that are free.
    pub(crate) fn start(args: &[&str]) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        fs::create_dir(home.path().join("tmp")).expect("a directory");
        let mut command = command(home.path());
        command.args(["--port", "0", "--ingress-port", "0"]).args(args).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the command runs");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        Demo { child, lines, home }
    }

    /// What it tells, up to a line with these words.
    pub(crate) fn until(&mut self, words: &str) -> String {
        let mut told = String::new();
        for line in self.lines.by_ref() {
            let line = line.expect("it prints text");
            told += &line;
            told += "\n";
            if line.contains(words) {
                return told;
            }
        }
        panic!("{words:?} is not in\n{told}");
    }

    /// Waits for its end: what else it tells, and how it ends.
    pub(crate) fn end(&mut self) -> (String, ExitStatus) {
        let rest = self.lines.by_ref().map(|line| line.expect("it prints text") + "\n").collect();
        (rest, self.child.wait().expect("it ends"))
    }

    /// Presses Ctrl-C.
    pub(crate) fn interrupt(&self) {
        let pid = Pid::from_raw(self.child.id().cast_signed()).expect("it runs");
        kill_process(pid, Signal::INT).expect("it runs");
    }

    fn home(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.home().join(".local/share/kubewright/demo/kubeconfig")
    }

    /// Files, and processes that have to do with them, when there should be none.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let mut left = files(self.home());
        let home = self.home().to_str().expect("a path");
        for entry in fs::read_dir("/proc").expect("processes").filter_map(Result::ok) {
            // Those that end meanwhile, and those of others, cannot be read.
            let part = |name: &str| fs::read(entry.path().join(name)).unwrap_or_default();
            let about = [part("cmdline"), part("environ")].concat();
            if String::from_utf8_lossy(&about).contains(home) {
                left.push(String::from_utf8_lossy(&part("cmdline")).replace('\0', " "));
            }
        }
        left
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        // Only matters to a test that failed half-way: it takes its pods along.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.interrupt();
            let _ = self.child.wait();
        }
    }
}

fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    command
        .arg("demo")
        .current_dir(home)
        .env("HOME", home)
        .env("TMPDIR", home.join("tmp"))
        .env_remove("XDG_DATA_HOME")
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null());
    command
}

fn files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a directory").filter_map(Result::ok);
    let of = |path: PathBuf| match path.is_dir() && !path.is_symlink() {
        true => files(&path),
        false => vec![path.display().to_string()],
    };
    entries.flat_map(|entry| of(entry.path())).collect()
}

#[test]
#[ignore = "Services do not reach processes of this machine yet: no web application answers"]
fn all_that_is_claimed_happens_and_nothing_is_left_behind() {
    let mut demo = Demo::start(&["--once"]);
    let (told, status) = demo.end();
    assert!(status.success(), "{told}");
    for claim in [
        "example-at waits until ",
        "it is time: a pod runs \"echo YAY\"",
        "example-at is done, its pod printed YAY",
        "Thor becomes Thorbert, in the store too",
        "team-x has namespace app-y for sam, with cpu 5, memory 10Gi, pods 10",
        "answers: Server name: webapp-sample-",
        "all of it happened",
    ] {
        assert!(told.contains(claim), "{claim:?} is not in\n{told}");
    }
    // Colours are for terminals.
    assert!(!told.contains('\x1b'), "{told:?}");
    assert_eq!(demo.left_behind(), [""; 0]);
}

#[test]
fn interrupted_in_the_middle_it_leaves_nothing_behind_either() {
    let mut demo = Demo::start(&[]);
    demo.until("it is time: ");
    demo.interrupt();
    let (_, status) = demo.end();
    assert!(status.success(), "{status}");
    assert_eq!(demo.left_behind(), [""; 0]);
}

#[test]
fn a_port_that_is_taken_is_told_with_the_flag_that_changes_it() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    for (flag, other) in [("--port", "--ingress-port"), ("--ingress-port", "--port")] {
        let home = tempfile::tempdir().expect("a directory");
        let output = command(home.path()).args([flag, &port, other, "0"]).output();
        let output = output.expect("the command runs");
        let told = String::from_utf8_lossy(&output.stderr);
        let expected = format!("error: port {port} is in use: choose another with {flag}, or");
        assert!(told.starts_with(&expected), "{told}");
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty(), "{output:?}");
        assert_eq!(files(home.path()), [""; 0]);
    }
}
