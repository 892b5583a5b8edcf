//! Every `.rs` file is reached from a crate's root by `mod` lines, and opens with what it is for.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::Files;
use super::dependencies::Package;

pub(super) fn faults(root: &Path, files: &Files, packages: &[Package]) -> Result<Vec<String>> {
    let there: BTreeSet<&Path> = files.rust().map(|(path, _)| path).collect();
    let text_of = |path: &Path| files.rust().find(|(each, _)| *each == path).map(|(_, text)| text);

    let mut reached = BTreeSet::new();
    let mut queue = Vec::new();
    for file in packages.iter().flat_map(|package| &package.roots) {
        let file =
            file.strip_prefix(root).with_context(|| format!("{} is not ours", file.display()))?;
        // A root's modules lie beside it; a module's lie in a folder of its name.
        queue.push((file.to_owned(), file.parent().unwrap_or(Path::new("")).to_owned()));
    }
    while let Some((file, folder)) = queue.pop() {
        let Some(text) = text_of(&file) else { continue };
        for module in declared(text) {
            let child = match module.path {
                Some(path) => file.with_file_name(path),
                None => folder.join(format!("{}.rs", module.name)),
            };
            queue.push((child, folder.join(module.name)));
        }
        reached.insert(file);
    }
    let unreached = there.iter().filter(|path| !reached.contains(**path)).filter(|path| {
        // Fuzz targets are a workspace of their own.
        !path.starts_with("fuzz")
    });
    let unreached = unreached.map(|path| format!("{}: no `mod` reaches it", path.display()));
    let misplaced = there.iter().filter(|path| path.ends_with("mod.rs"));
    let misplaced = misplaced
        .map(|path| format!("{}: a module's file stands beside its folder", path.display()));
    // A module's own tests need no introduction.
    let introduced =
        |path: &Path, text: &str| text.starts_with("//!") || path.ends_with("tests.rs");
    let silent = files.rust().filter(|(path, text)| !introduced(path, text));
    let silent = silent.map(|(path, _)| format!("{}: does not say what it is for", path.display()));
    Ok(unreached.chain(misplaced).chain(silent).collect())
}

#[derive(Debug, PartialEq)]
struct Module<'a> {
    name: &'a str,
    /// Where a `#[path]` says it is.
    path: Option<PathBuf>,
}

/// The modules that a file declares and does not contain.
fn declared(text: &str) -> Vec<Module<'_>> {
    let mut path = None;
    let mut modules = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(given) = line.strip_prefix("#[path = \"") {
            path = given.split('"').next().map(PathBuf::from);
            continue;
        }
        let line = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => {
                rest.split_once(')').map_or("", |(_, rest)| rest)
            }
            Some(rest) => rest,
            None => line,
        };
        if let Some(name) =
            line.trim_start().strip_prefix("mod ").and_then(|rest| rest.strip_suffix(';'))
        {
            modules.push(Module { name: name.trim_start_matches("r#"), path: path.take() });
        } else if !line.starts_with("#[") {
            path = None;
        }
    }
    modules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(&str, Option<&str>)]) {
        let expected: Vec<Module<'_>> = expected
            .iter()
            .map(|(name, path)| Module { name, path: path.map(PathBuf::from) })
            .collect();
        assert_eq!(declared(text), expected);
    }

    #[test]
    fn modules_are_found_whatever_stands_before_them() {
        check(
            "mod a;\npub mod b;\npub(crate) mod c;\n#[cfg(test)]\nmod tests;",
            &[("a", None), ("b", None), ("c", None), ("tests", None)],
        );
    }

    #[test]
    fn a_module_in_the_file_itself_is_not_another_file() {
        check("mod tests {\n    mod inner;\n}\n// mod commented;", &[("inner", None)]);
    }

    #[test]
    fn a_path_belongs_to_the_module_below_it() {
        check(
            "#[path = \"other.rs\"]\n#[cfg(unix)]\nmod a;\nmod b;",
            &[("a", Some("other.rs")), ("b", None)],
        );
    }
}
