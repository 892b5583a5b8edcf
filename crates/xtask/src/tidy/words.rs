//! Words that must not stand in a file: left-overs, silenced lints, and places that exist on one
//! machine only.

use std::path::Path;

use super::Files;

struct Word {
    /// In two halves, so that this file does not contain what it looks for.
    halves: (&'static str, &'static str),
    only: fn(&Path) -> bool,
    instead: &'static str,
}

const WORDS: &[Word] = &[
    Word { halves: ("dbg", "!("), only: is_rust, instead: "a debugging aid was left behind" },
    Word { halves: ("todo", "!("), only: is_rust, instead: "do it, or leave it out" },
    Word { halves: ("unimplemented", "!("), only: is_rust, instead: "do it, or leave it out" },
    Word {
        halves: ("#[al", "low("), only: is_rust, instead: "use #[expect(…, reason = \"…\")]"
    },
    Word {
        halves: ("#![al", "low("), only: is_rust, instead: "use #![expect(…, reason = \"…\")]"
    },
    Word {
        halves: ("thread::", "sleep("),
        only: is_test,
        instead: "wait for a state, not for time to pass",
    },
    Word { halves: ("/wo", "rk/"), only: anywhere, instead: "a place on one machine only" },
    Word { halves: ("/ro", "ot/"), only: anywhere, instead: "a place on one machine only" },
    Word { halves: ("/ho", "me/"), only: anywhere, instead: "a place on one machine only" },
];

fn is_rust(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "rs")
}

fn is_test(path: &Path) -> bool {
    is_rust(path)
        && (path.ends_with("tests.rs") || path.components().any(|part| part.as_os_str() == "tests"))
}

fn anywhere(_path: &Path) -> bool {
    true
}

pub(super) fn faults(files: &Files) -> Vec<String> {
    let lines = files.0.iter().flat_map(|(path, text)| {
        text.lines().enumerate().map(move |(at, line)| (path.as_path(), at + 1, line))
    });
    lines.flat_map(|(path, number, line)| line_faults(path, number, line)).collect()
}

fn line_faults(path: &Path, number: usize, line: &str) -> Vec<String> {
    if is_of_an_import(line) {
        return Vec::new();
    }
    WORDS
        .iter()
        .filter(|word| (word.only)(path))
        .filter_map(|Word { halves: (first, second), instead, .. }| {
            let word = format!("{first}{second}");
            line.contains(&word)
                .then(|| format!("{}:{number}: `{word}`: {instead}", path.display()))
        })
        .collect()
}

/// Whether a source that `kubewright import` has written looks away from clippy here: a project's own
/// lints must not judge it, and nobody can say which of them would.
fn is_of_an_import(line: &str) -> bool {
    line.contains("low(clippy::all, reason = ") && line.contains("generated")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(path: &str, line: &str, expected: usize) {
        assert_eq!(line_faults(Path::new(path), 1, line).len(), expected, "{path}: {line}");
    }

    #[test]
    fn left_overs_are_found_in_rust_only() {
        let line = concat!("    db", "g!(x);");
        check("a/b.rs", line, 1);
        check("a/b.md", line, 0);
    }

    #[test]
    fn machine_paths_are_found_anywhere() {
        check("docs/a.md", concat!("see /ro", "ot/there"), 1);
        check("docs/a.md", "see /usr/share", 0);
    }

    #[test]
    fn only_tests_must_not_sleep() {
        let line = concat!("std::thread::", "sleep(POLL);");
        check("src/a/tests.rs", line, 1);
        check("src/a.rs", line, 0);
    }

    #[test]
    fn lints_are_silenced_only_where_sources_are_imported() {
        let silenced = |lints: &str| format!("{}{lints})]", concat!("#![al", "low("));
        check("src/a.rs", &silenced(r#"clippy::all, reason = "generated""#), 0);
        check("src/a.rs", &silenced(r#"clippy::all, reason = "too many""#), 1);
        check("src/a.rs", &silenced(r#"dead_code, reason = "generated""#), 1);
    }
}
