//! Which crate may know which: the arrows of ARCHITECTURE.md, none of which points up.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// What a crate of ours may depend on among our own, and what it must not know at all.
struct Rule {
    name: &'static str,
    ours: &'static [&'static str],
    /// Crates that bring what it must not know; tests may use them.
    never: &'static [&'static str],
}

const NETWORK: &[&str] = &["hyper", "kube", "reqwest", "tokio", "tonic"];

/// Knows none of us, so any crate's tests may ask it.
const JUDGE: &str = "conformance";

const RULES: &[Rule] = &[
    // Pure: no sockets, no tasks, no files.
    Rule { name: "apimachinery", ours: &[], never: NETWORK },
    // Bytes: no kinds, no JSON.
    Rule { name: "store", ours: &[], never: &["k8s-openapi", "kube", "serde_json"] },
    // The only crate that opens a store to serve from it; controllers are its clients.
    Rule { name: "apiserver", ours: &["apimachinery", "store"], never: &["kube"] },
    // Clients of any server: what runs beside ours would run beside upstream's.
    Rule { name: "controllers", ours: &["apimachinery", "kubewright"], never: &["hyper"] },
    // A client too; it runs containers, and knows neither who chose its pods nor where they are kept.
    Rule { name: "node", ours: &["apimachinery", "kubewright"], never: &[] },
    // A client of any server, alone or beside others.
    Rule { name: "scheduler", ours: &["apimachinery", "kubewright"], never: &["hyper"] },
    // What operators are made of: for any server, so it knows none.
    Rule { name: "kubewright", ours: &["apimachinery", "derive"], never: &[] },
    // Runs inside the compiler.
    Rule { name: "derive", ours: &[], never: NETWORK },
    // A server inside a test.
    Rule {
        name: "testing",
        ours: &["apimachinery", "apiserver", "cluster", "kubewright", "node", "scheduler"],
        never: &[],
    },
    // Judges us from outside.
    Rule { name: JUDGE, ours: &[], never: &[] },
    // Starts fast, and says nothing circular.
    Rule { name: "xtask", ours: &[], never: NETWORK },
    Rule {
        name: "bench",
        ours: &["apimachinery", "cluster", "kubewright", "scheduler", "store"],
        never: &[],
    },
    // Files, and images for registries: it speaks to no cluster.
    Rule {
        name: "project",
        ours: &["apimachinery", "kubewright"],
        never: &["kube", "reqwest", "tonic"],
    },
    // Wiring: knows which parts there are, not how any works.
    Rule {
        name: "cluster",
        ours: &[
            "apimachinery",
            "apiserver",
            "controllers",
            "kubewright",
            "node",
            "scheduler",
            "store",
        ],
        never: &[],
    },
    // A client: only a server, and `bench`, open a store.
    // The operators are what its demonstration shows.
    Rule {
        name: "cli",
        ours: &[
            "apimachinery",
            "apiserver",
            "at",
            "clients",
            "cluster",
            "foo",
            "kubewright",
            "petstore",
            "podpolicy",
            "project",
            "tenancy",
            "webapp",
            "wordpress",
            "workloads",
        ],
        never: &[],
    },
    // Operators know what any author does: the library, and a cluster for their tests.
    Rule { name: "tenancy", ours: &["kubewright", "testing"], never: &[] },
    Rule { name: "foo", ours: &["kubewright", "testing"], never: &[] },
    Rule { name: "guestbook", ours: &["kubewright", "testing"], never: &[] },
    Rule { name: "podpolicy", ours: &["kubewright", "testing"], never: &[] },
    Rule { name: "webapp", ours: &["kubewright", "testing"], never: &[] },
    Rule { name: "wordpress", ours: &["kubewright", "testing"], never: &[] },
    Rule { name: "clients", ours: &["kubewright", "testing", "at"], never: &[] },
    Rule { name: "workloads", ours: &["kubewright", "testing"], never: &[] },
    Rule { name: "at", ours: &["kubewright", "testing"], never: &[] },
    Rule { name: "petstore", ours: &["kubewright", "testing"], never: &[] },
];

pub(super) struct Package {
    /// Without the prefix that all our crates share.
    name: String,
    dependencies: Vec<Dependency>,
    /// The files that cargo compiles from.
    pub(super) roots: Vec<PathBuf>,
}

struct Dependency {
    name: String,
    for_tests: bool,
}

pub(super) fn packages(root: &Path) -> Result<Vec<Package>> {
    let output = Command::new("cargo")
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("run cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).context("read cargo metadata")?;
    Ok(list(&metadata["packages"]).map(package).collect())
}

fn package(package: &Value) -> Package {
    let dependency = |dependency: &Value| Dependency {
        name: without_prefix(text(&dependency["name"])),
        for_tests: dependency["kind"] == "dev",
    };
    Package {
        name: without_prefix(text(&package["name"])),
        dependencies: list(&package["dependencies"]).map(dependency).collect(),
        roots: list(&package["targets"]).map(|target| text(&target["src_path"]).into()).collect(),
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn without_prefix(name: &str) -> String {
    name.strip_prefix("kubewright-").unwrap_or(name).to_owned()
}

pub(super) fn faults(packages: &[Package]) -> Vec<String> {
    packages.iter().flat_map(|package| package_faults(package, packages)).collect()
}

fn package_faults(package: &Package, packages: &[Package]) -> Vec<String> {
    let Package { name, dependencies, .. } = package;
    let Some(rule) = RULES.iter().find(|rule| rule.name == name) else {
        return vec![format!("crate {name}: say in {} what it may depend on", file!())];
    };
    let is_ours = |name: &str| packages.iter().any(|package| package.name == name);
    dependencies
        .iter()
        .filter(|Dependency { name, for_tests }| {
            let is_judged = *for_tests && name == JUDGE;
            let upward = is_ours(name) && !rule.ours.contains(&name.as_str()) && !is_judged;
            upward || !for_tests && rule.never.contains(&name.as_str())
        })
        .map(|dependency| format!("crate {name}: must not depend on {}", dependency.name))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, dependencies: &[(&str, bool)], expected: &[&str]) {
        let package = |name: &str, dependencies: &[(&str, bool)]| Package {
            name: name.to_owned(),
            dependencies: dependencies
                .iter()
                .map(|(name, for_tests)| Dependency {
                    name: (*name).to_owned(),
                    for_tests: *for_tests,
                })
                .collect(),
            roots: Vec::new(),
        };
        let mut packages = vec![package(name, dependencies)];
        packages.extend(["store", "apimachinery", JUDGE].map(|name| package(name, &[])));
        assert_eq!(package_faults(&packages[0], &packages), expected);
    }

    #[test]
    fn an_arrow_that_points_up_is_a_fault() {
        check("cli", &[("apimachinery", false), ("clap", false)], &[]);
        check("cli", &[("store", false)], &["crate cli: must not depend on store"]);
        check(
            "conformance",
            &[("apimachinery", true)],
            &["crate conformance: must not depend on apimachinery"],
        );
    }

    #[test]
    fn only_tests_are_judged() {
        check("cli", &[("conformance", true)], &[]);
        check("cli", &[("conformance", false)], &["crate cli: must not depend on conformance"]);
    }

    #[test]
    fn what_a_crate_must_not_know_only_its_tests_may_use() {
        check(
            "apimachinery",
            &[("tokio", false)],
            &["crate apimachinery: must not depend on tokio"],
        );
        check("apimachinery", &[("tokio", true)], &[]);
    }
}
