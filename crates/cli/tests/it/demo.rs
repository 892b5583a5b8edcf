//! `kubewright demo`, from its first line to the nothing that it leaves behind.

use std::fs;
use std::io::{BufRead as _, BufReader, Lines};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::LazyLock;

use regex::Regex;
use rustix::process::{Pid, Signal, kill_process};

use crate::transcript::mask;

/// A demo that runs, for a user who has nothing else.
pub(crate) struct Demo {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    home: tempfile::TempDir,
}

impl Demo {
    /// On ports that are free.
    pub(crate) fn start(args: &[&str]) -> Self {
        let home = home();
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

    /// Addresses of this machine that are its own. Nobody tells of them where there is no `ip`.
    fn addresses(&self) -> Vec<String> {
        let directory = self.home().join(".local/share/kubewright/demo/node");
        // As `kubewright_node` marks them.
        let hash = directory.as_os_str().as_encoded_bytes().iter();
        let hash = hash.fold(0x811c_9dc5_u32, |hash, byte| {
            (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
        });
        let label = format!("lo:kw{hash:08x}");
        let shown =
            Command::new("ip").args(["-oneline", "address", "show", "label", &label]).output();
        let shown = shown.map(|output| output.stdout).unwrap_or_default();
        String::from_utf8_lossy(&shown).lines().map(str::to_owned).collect()
    }

    /// Addresses, files, and processes that have to do with them, when there should be none.
    pub(crate) fn left_behind(&self) -> Vec<String> {
        let mut left = self.addresses();
        left.extend(changes(self.home()));
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

/// What is in the directory of a user before, as people have it: the path of each file and
/// directory, and the text of files.
const BEFORE: &[(&str, Option<&str>)] = &[
    (".kube", None),
    (".kube/config", Some("apiVersion: v1\nkind: Config\n")),
    (".local", None),
    (".local/share", None),
    ("tmp", None),
];

/// The directory of a user.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().expect("a directory");
    for (path, text) in BEFORE {
        let path = home.path().join(path);
        match text {
            Some(text) => fs::write(path, text).expect("written"),
            None => fs::create_dir(path).expect("a directory"),
        }
    }
    home
}

/// What is not as it was before.
fn changes(home: &Path) -> Vec<String> {
    let known = |path: &Path| {
        let before = BEFORE.iter().find(|(before, _)| home.join(before) == path);
        before.is_some_and(|(_, text)| {
            text.is_none_or(|text| fs::read_to_string(path).is_ok_and(|now| now == text))
        })
    };
    let mut changes = Vec::new();
    let mut folders = vec![home.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a directory").filter_map(Result::ok) {
            let path = entry.path();
            if !known(&path) {
                changes.push(path.display().to_string());
            }
            if path.is_dir() && !path.is_symlink() {
                folders.push(path);
            }
        }
    }
    changes
}

/// The lines of a run that README.md shows.
fn shown_in_readme() -> Vec<&'static str> {
    let page = include_str!("../../../../README.md");
    let (_, shown) = page.split_once("-- demo --once\n").expect("a run is shown");
    let (shown, _) = shown.split_once("```").expect("it has an end");
    shown.lines().filter(|line| !line.is_empty()).collect()
}

/// A line of a run without what is another each time: when, which pod, at which port.
fn essence(line: &str) -> String {
    static OTHER: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"^ *[\d.]+ s|After [\d.]+ s|localhost:\d+").expect("a pattern")
    });
    mask(&OTHER.replace_all(line, "<other>")).concat()
}

/// Whether programs that tests start may give addresses to this machine.
fn may_have_addresses() -> bool {
    const NET_ADMIN: u32 = 12;
    let status = fs::read_to_string("/proc/self/status").expect("what this process may do");
    let rights = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let rights = rights.and_then(|rights| u64::from_str_radix(rights.trim(), 16).ok());
    rights.expect("rights are in it") & (1 << NET_ADMIN) != 0
}

#[test]
fn all_that_is_claimed_happens_and_nothing_is_left_behind() {
    let mut demo = Demo::start(&["--once"]);
    let (told, status) = demo.end();
    assert!(status.success(), "{told}");
    // Operators are at work side by side, so there is no order between what is told of two.
    let happened: Vec<String> = told.lines().map(essence).collect();
    let shown = shown_in_readme();
    assert!(shown.len() > 10, "{shown:?}");
    for line in shown {
        let is_it = |told: &String| match line.strip_suffix('…') {
            Some(beginning) => told.starts_with(&essence(beginning)),
            None => *told == essence(line),
        };
        assert!(happened.iter().any(is_it), "{line:?} is in README.md, and not in\n{told}");
    }
    // Colours are for terminals.
    assert!(!told.contains('\x1b'), "{told:?}");
    assert_eq!(demo.left_behind(), [""; 0]);
}

#[test]
fn interrupted_in_the_middle_it_leaves_nothing_behind_either() {
    // Who only looks may leave when they like; whoever asks has no answer yet.
    let runs: [(&[&str], i32); 2] = [(&[], 0), (&["--once"], 1)];
    for (args, code) in runs {
        let mut demo = Demo::start(args);
        demo.until("example-at waits until ");
        demo.interrupt();
        let (told, status) = demo.end();
        assert_eq!(status.code(), Some(code), "{told}");
        assert_eq!(told.contains("it was interrupted"), code == 1, "{told}");
        assert_eq!(demo.left_behind(), [""; 0]);
    }
}

#[test]
fn it_stays_until_it_is_interrupted_and_takes_all_of_it_along() {
    let mut demo = Demo::start(&[]);
    let told = demo.until("  curl http://");
    assert!(!told.contains("did not happen"), "{told}");
    let web = told.trim_end().rsplit(':').next().expect("a port").trim_end_matches('/');
    let web = (Ipv4Addr::LOCALHOST, web.parse::<u16>().expect("a port"));
    drop(TcpStream::connect(web).expect("somebody listens"));
    let kubeconfig = fs::read_to_string(demo.kubeconfig()).expect("a kubeconfig");
    assert!(kubeconfig.contains("certificate-authority-data"), "{kubeconfig}");
    // So that nobody looks for what could not be there anyway.
    let has_ip = Command::new("ip").arg("-Version").output().is_ok();
    assert_eq!(!demo.addresses().is_empty(), has_ip && may_have_addresses());
    demo.interrupt();
    let (_, status) = demo.end();
    assert!(status.success(), "{status}");
    TcpStream::connect(web).expect_err("nobody listens");
    assert_eq!(demo.left_behind(), [""; 0]);
}

#[test]
fn a_port_that_is_taken_is_told_with_the_flag_that_changes_it() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    for (flag, other) in [("--port", "--ingress-port"), ("--ingress-port", "--port")] {
        let home = home();
        let output = command(home.path()).args([flag, &port, other, "0"]).output();
        let output = output.expect("the command runs");
        let told = String::from_utf8_lossy(&output.stderr);
        let expected = format!("error: port {port} is in use: choose another with {flag}, or");
        assert!(told.starts_with(&expected), "{told}");
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stdout.is_empty(), "{output:?}");
        assert_eq!(changes(home.path()), [""; 0]);
    }
}
