//! What an operator is built of: the packages that are on this machine, and whatever else the last
//! build has read, such as a page that `include_str!` names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use kubewright_project::Project;
use notify::{RecursiveMode, Watcher as _};
use serde_json::Value;
use tokio::sync::Notify;

/// Where the sources of a package are, and what else is built.
const SOURCES: &str = "src";
const BUILT: [&str; 2] = ["Cargo.toml", "build.rs"];

/// Files whose change makes another operator.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sources {
    /// Folders of packages.
    packages: BTreeSet<PathBuf>,
    /// Where members of a workspace take versions and settings from.
    workspace: Option<PathBuf>,
    /// What else the last build has read.
    used: BTreeSet<PathBuf>,
}

impl Sources {
    /// Those of a package alone, which are known before anything is asked.
    pub(super) fn of(root: &Path) -> Self {
        Sources { packages: [root.to_owned()].into(), ..Sources::default() }
    }

    /// Those of a project, by what cargo tells of it and by what it noted when it built `program`.
    /// Where it tells nothing, those of the project alone.
    fn ask(project: &Project, root: &Path, program: Option<&Path>) -> Self {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
        // The build has fetched what there is to fetch.
        cargo.args(["metadata", "--format-version", "1", "--offline"]).current_dir(&project.root);
        let output = cargo.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let told = output.ok().and_then(|it| serde_json::from_slice(&it.stdout).ok());
        let mut sources = Sources::told(root, &told.unwrap_or_default());
        if let Some(program) = program {
            let noted = fs::read_to_string(program.with_extension("d")).unwrap_or_default();
            let built = program.parent().unwrap_or(program);
            sources.used = noted_files(&noted)
                .into_iter()
                // What a build has made changes because something else has.
                .filter(|path| !path.starts_with(built))
                .filter_map(|path| path.canonicalize().ok())
                .filter(|path| !sources.is_in_package(path))
                .collect();
        }
        sources
    }

    /// Those of the package at `root`, by what `cargo metadata` prints: it, and what it is built of
    /// that comes from this machine.
    fn told(root: &Path, metadata: &Value) -> Self {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let packages = list(&metadata["packages"]);
        let folder = |package: &Value| {
            let manifest = Path::new(package["manifest_path"].as_str()?);
            manifest.parent()?.canonicalize().ok()
        };
        let own = packages.iter().find(|it| folder(it).as_deref() == Some(root));
        let Some(own) = own else { return Sources::of(root) };
        let nodes = list(&metadata["resolve"]["nodes"]);
        let mut reached = BTreeSet::new();
        let mut next = vec![own["id"].clone()];
        while let Some(id) = next.pop() {
            if reached.insert(id.as_str().unwrap_or_default().to_owned()) {
                let node = nodes.iter().find(|it| it["id"] == id);
                next.extend(node.into_iter().flat_map(|it| list(&it["dependencies"])));
            }
        }
        let is_local = |it: &&Value| {
            it["source"].is_null() && it["id"].as_str().is_some_and(|id| reached.contains(id))
        };
        Sources {
            packages: packages.iter().filter(is_local).filter_map(folder).collect(),
            workspace: metadata["workspace_root"].as_str().map(PathBuf::from),
            used: BTreeSet::new(),
        }
    }

    /// Whether the operator is another when this file is. Not all is that changes beside the sources:
    /// a build writes there, and so may the operator.
    pub(super) fn have(&self, path: &Path) -> bool {
        let is_manifest = || self.workspace.as_ref().is_some_and(|it| path == it.join(BUILT[0]));
        let is_used = || self.used.iter().any(|used| path.starts_with(used) && is_open(used, path));
        self.is_in_package(path) || is_manifest() || is_used()
    }

    fn is_in_package(&self, path: &Path) -> bool {
        self.packages.iter().any(|root| {
            path.starts_with(root.join(SOURCES)) || BUILT.iter().any(|name| path == root.join(name))
        })
    }

    /// What is to be watched. Editors put another file in the place of the one they change, and
    /// whoever watches the file watches the one that is gone: so these are folders.
    fn folders(&self) -> Vec<(PathBuf, RecursiveMode)> {
        use RecursiveMode::{NonRecursive, Recursive};
        let roots = self.packages.iter().chain(&self.workspace);
        let mut folders: Vec<_> = roots.map(|root| (root.clone(), NonRecursive)).collect();
        folders.extend(self.packages.iter().map(|root| (root.join(SOURCES), Recursive)));
        // Around a package is what is built, which nobody wants to hear of.
        let is_around = |used: &Path| self.packages.iter().any(|root| root.starts_with(used));
        folders.extend(self.used.iter().filter_map(|used| match used.is_dir() {
            true if is_around(used) => Some((used.clone(), NonRecursive)),
            true => Some((used.clone(), Recursive)),
            false => Some((used.parent()?.to_owned(), NonRecursive)),
        }));
        folders
    }
}

/// Whether a file of a folder is one that people write: neither hidden, nor what a build makes.
fn is_open(folder: &Path, path: &Path) -> bool {
    let below = path.strip_prefix(folder).unwrap_or(path);
    let names = below.iter().map(|name| name.to_string_lossy());
    !names.into_iter().any(|name| name.starts_with('.') || name == "target" || name == "Cargo.lock")
}

/// The files of a note that cargo leaves beside a program: `program: file file`, as make has it.
fn noted_files(note: &str) -> Vec<PathBuf> {
    let mut files = vec![String::new()];
    let (_, rest) = note.lines().next().and_then(|line| line.split_once(": ")).unwrap_or_default();
    let mut rest = rest.chars();
    while let (Some(c), Some(last)) = (rest.next(), files.last_mut()) {
        match c {
            '\\' => last.extend(rest.next()),
            ' ' => files.push(String::new()),
            c => last.push(c),
        }
    }
    files.into_iter().filter(|it| !it.is_empty()).map(PathBuf::from).collect()
}

/// Tells of changes of the sources, for as long as it is kept.
pub(super) struct Watch {
    root: PathBuf,
    watcher: notify::RecommendedWatcher,
    watched: BTreeSet<PathBuf>,
    sources: Arc<Mutex<Sources>>,
}

impl Watch {
    /// Of the package at `root`, until more is known. Several changes that nobody has heard of yet
    /// are one, and none has to wait behind what others say.
    pub(super) fn begin(root: &Path, changes: Arc<Notify>) -> Result<Self> {
        // Some systems tell of paths as they really are.
        let root = root.canonicalize().with_context(|| format!("find {}", root.display()))?;
        let sources = Arc::new(Mutex::new(Sources::of(&root)));
        let known = Arc::clone(&sources);
        let tell = move |event: notify::Result<notify::Event>| {
            let is_change = event.is_ok_and(|event| {
                let known = known.lock().unwrap_or_else(PoisonError::into_inner);
                let is_ours = || event.paths.iter().any(|path| known.have(path));
                // Where too much has happened, nobody says what it was.
                event.need_rescan() || !event.kind.is_access() && is_ours()
            });
            if is_change {
                changes.notify_one();
            }
        };
        let watcher = notify::recommended_watcher(tell).context("watch the sources")?;
        let begin = Sources::of(&root);
        let mut watch = Watch { root, watcher, watched: BTreeSet::new(), sources };
        watch.see(&begin)?;
        Ok(watch)
    }

    /// Finds out what a project is built of now.
    pub(super) async fn look(&mut self, project: &Project, program: Option<&Path>) -> Result<()> {
        let (project, root) = (project.clone(), self.root.clone());
        let program = program.map(Path::to_owned);
        let asked = move || Sources::ask(&project, &root, program.as_deref());
        let mut sources = tokio::task::spawn_blocking(asked).await.context("ask cargo")?;
        if sources.used.is_empty() {
            sources.used = self.known().used.clone();
        }
        self.see(&sources)?;
        *self.known() = sources;
        Ok(())
    }

    fn known(&self) -> std::sync::MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn see(&mut self, sources: &Sources) -> Result<()> {
        for (path, mode) in sources.folders() {
            if path.exists() && self.watched.insert(path.clone()) {
                let watched = self.watcher.watch(&path, mode);
                watched.with_context(|| format!("watch {}", path.display()))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_note_of_cargo_names_files() {
        let note = "/t/debug/at: /at/src/lib.rs /at/with\\ space/a.html /at/back\\\\slash\n";
        let expected = ["/at/src/lib.rs", "/at/with space/a.html", "/at/back\\slash"];
        assert_eq!(noted_files(note), expected.map(PathBuf::from));
        assert!(noted_files("").is_empty());
    }

    #[test]
    fn packages_of_this_machine_are_sources() {
        let place = tempfile::tempdir().expect("a folder");
        let place = place.path().canonicalize().expect("it is there");
        let package = |name: &str, source: Option<&str>| {
            let folder = place.join(name);
            fs::create_dir(&folder).expect("a folder");
            json!({"id": name, "manifest_path": folder.join("Cargo.toml"), "source": source})
        };
        let metadata = json!({
            "packages": [
                package("at", None), package("sibling", None), package("further", None),
                package("stranger", None), package("fetched", Some("registry+there")),
            ],
            "resolve": {"nodes": [
                {"id": "at", "dependencies": ["fetched", "sibling"]},
                {"id": "sibling", "dependencies": ["further", "at"]},
            ]},
            "workspace_root": place,
        });
        let sources = Sources::told(&place.join("at"), &metadata);
        for path in ["at/src/lib.rs", "sibling/src/a/b.rs", "further/build.rs", "Cargo.toml"] {
            assert!(sources.have(&place.join(path)), "{path}");
        }
        for path in ["stranger/src/lib.rs", "fetched/src/lib.rs", "at/Cargo.lock", "Cargo.lock"] {
            assert!(!sources.have(&place.join(path)), "{path}");
        }
        assert_eq!(Sources::told(&place, &json!({})), Sources::of(&place));
    }

    #[test]
    fn folders_that_a_build_script_reads_are_sources_but_not_what_is_made_there() {
        let used = [PathBuf::from("/at/pages"), PathBuf::from("/at")].into();
        let sources = Sources { used, ..Sources::of(Path::new("/at")) };
        for path in ["/at/pages/a.html", "/at/pages/b/c.html", "/at/proto/at.proto"] {
            assert!(sources.have(Path::new(path)), "{path}");
        }
        for path in ["/at/target/debug/at", "/at/.git/index", "/at/Cargo.lock"] {
            assert!(!sources.have(Path::new(path)), "{path}");
        }
    }
}
