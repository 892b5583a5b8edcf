//! The tutorial, done as it is written: every command in it is run, and every file is written.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;

use super::{Background, Workshop, builds};
use crate::transcript::kubectl;

/// What a reader does next.
#[derive(Debug, PartialEq)]
enum Step<'a> {
    /// Writes a file.
    Write { path: &'a str, text: String },
    /// Types a command, and sees these lines among others.
    Type { command: &'a str, seen: Vec<&'a str> },
}

/// What a page has its readers do: blocks of `console` are typed, and blocks that name a file are
/// written.
fn steps(page: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let Some(fence) = line.strip_prefix("```") else { continue };
        let block: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        if fence == "console" {
            for line in block {
                match (line.strip_prefix("$ "), steps.last_mut()) {
                    (Some(command), _) => steps.push(Step::Type { command, seen: Vec::new() }),
                    (None, Some(Step::Type { seen, .. })) => seen.push(line),
                    (None, _) => panic!("{line:?} follows no command"),
                }
            }
        } else if let Some((_, path)) = fence.split_once(' ') {
            steps.push(Step::Write { path, text: block.join("\n") + "\n" });
        }
    }
    steps
}

const TUTORIAL: &str = include_str!("../../../../../docs/book/tutorial.md");

#[test]
fn a_page_is_a_list_of_steps() {
    let page = "Text.\n```console\n$ a b\nsaid\n$ c\n```\n```rust src/x.rs\nfn x() {}\n```\n```rust\n1\n```\n";
    assert_eq!(
        steps(page),
        [
            Step::Type { command: "a b", seen: vec!["said"] },
            Step::Type { command: "c", seen: vec![] },
            Step::Write { path: "src/x.rs", text: "fn x() {}\n".to_owned() },
        ]
    );
}

/// Without building anything: what the commands say about files is what they do.
#[test]
fn the_tutorial_scaffolds_what_it_says() {
    follow(&Workshop::new("tutorial"), |command| {
        command.starts_with("cd ")
            || ["kubewright init", "kubewright create"].iter().any(|it| command.starts_with(it))
    });
}

#[test]
fn the_tutorial_works_as_it_is_written() {
    if builds("the_tutorial_works_as_it_is_written") {
        let has_kubectl = kubectl().is_some();
        if !has_kubectl {
            eprintln!("without kubectl its commands are left out");
        }
        follow(&Workshop::new("book"), |command| has_kubectl || !command.starts_with("kubectl "));
    }
}

/// Does what the tutorial says, of the commands those that are meant.
fn follow(shop: &Workshop, is_meant: impl Fn(&str) -> bool) {
    // In the place of what a reader has installed.
    let bin = shop.folder.join("bin");
    fs::create_dir_all(&bin).expect("a folder");
    let program = bin.join("kubewright");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_kubewright"), program).expect("a link");
    if let Some(kubectl) = kubectl() {
        std::os::unix::fs::symlink(kubectl, bin.join("kubectl")).expect("a link");
    }
    let checkout = Workshop::checkout();
    std::os::unix::fs::symlink(&checkout, shop.folder.join("kubewright")).expect("a link");
    let path = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{path}", bin.display());
    let mut folder = shop.folder.clone();
    let started = Instant::now();
    let mut is_green = false;
    let mut background = Vec::new();
    for step in steps(TUTORIAL) {
        match step {
            Step::Write { path, text } => fs::write(folder.join(path), text).expect("written"),
            Step::Type { command, seen } if is_meant(command) => {
                if let Some(name) = command.strip_prefix("cd ") {
                    folder.push(name);
                    // The versions that are there: a reader has a network.
                    let lock = folder.join("Cargo.lock");
                    fs::copy(checkout.join("Cargo.lock"), lock).expect("copied");
                    continue;
                }
                let words = command.trim_end_matches(" &");
                let mut shell = shop.command("sh", &["-c", &format!("exec {words}")]);
                shell.current_dir(&folder).env("PATH", &path);
                if command.ends_with(" &") {
                    let output = fs::File::create(shop.folder.join("background")).expect("a file");
                    shell.stdout(Stdio::null()).stderr(output);
                    background.push(Background(shell.spawn().expect("it runs")));
                    continue;
                }
                let output = shell.output().expect("it runs");
                let text = String::from_utf8_lossy(&output.stdout);
                let errors = String::from_utf8_lossy(&output.stderr);
                let said = background_says(&shop.folder);
                assert!(output.status.success(), "{command}\n{text}\n{errors}\n{said}");
                for line in seen {
                    let is_seen = text.lines().any(|it| it == line);
                    assert!(is_seen, "{command} does not print {line:?}, but\n{text}\n{errors}");
                }
                if command == "cargo test" && !is_green {
                    is_green = true;
                    // Depends on what was built before: docs/book/projects.md says how much.
                    let took = started.elapsed().as_secs_f64();
                    eprintln!("from `init` to the first green test: {took:.1} s");
                }
            }
            Step::Type { .. } => {}
        }
    }
}

fn background_says(folder: &Path) -> String {
    fs::read_to_string(folder.join("background")).unwrap_or_default()
}
