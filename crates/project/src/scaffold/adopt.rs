//! Sources that were generated for a project: files, and the declarations by which its library has
//! them.

use std::path::{Path, PathBuf};

use super::{ScaffoldError, finished};
use crate::change::{Draft, Plan};
use crate::project::{LIBRARY, Project};
use crate::source;

/// What a module begins with that is there for what is generated.
const HEADER: &str = "//! Kinds that others define.\n";

/// Plans files below a project's `src`, paths being seen from its root, and their modules: each is
/// declared in the one around it, up to the library. What is declared already stays as its author
/// has it, and where a path has no names for modules, nothing is declared.
///
/// # Errors
/// If a source cannot be read, or edited.
pub fn adopt(project: &Project, sources: &[(PathBuf, String)]) -> Result<Plan, ScaffoldError> {
    let mut draft = Draft::of(&project.root);
    for (path, text) in sources {
        draft.write(path, text.clone())?;
        if let Some(words) = words(path) {
            declare(&mut draft, &words)?;
        }
    }
    Ok(finished(draft))
}

/// The words of the path of a module; none if it is in no library, or the library itself.
fn words(path: &Path) -> Option<Vec<String>> {
    let place = path.strip_prefix("src").ok()?.with_extension("");
    let words: Option<Vec<&str>> = place.iter().map(|word| word.to_str()).collect();
    let mut words = words?;
    // What a folder's module may be called as well.
    words.pop_if(|word| *word == "mod");
    let is_name = |word: &&str| syn::parse_str::<syn::Ident>(word).is_ok();
    let is_root = matches!(words.as_slice(), [] | ["lib" | "main"]);
    let is_module = !is_root && words.iter().all(is_name);
    is_module.then(|| words.into_iter().map(str::to_owned).collect())
}

/// Declares a module in the one around it, and that one in the next.
fn declare(draft: &mut Draft<'_>, words: &[String]) -> Result<(), ScaffoldError> {
    let library = PathBuf::from(LIBRARY);
    let Some(text) = draft.read(&library)? else { return Ok(()) };
    let (mut parent, mut text) = (library, text);
    let mut folder = PathBuf::from("src");
    for (at, word) in words.iter().enumerate() {
        let declared = source::declare(&text, &format!("pub mod {word};"));
        let declared = declared.map_err(|error| crate::project::in_file(&parent, error))?;
        draft.write(&parent, declared)?;
        if at + 1 == words.len() {
            break;
        }
        folder.push(word);
        let within = folder.join("mod.rs");
        parent = match draft.read(&within)? {
            Some(_) => within,
            None => folder.with_extension("rs"),
        };
        text = draft.read(&parent)?.unwrap_or_else(|| HEADER.to_owned());
    }
    Ok(())
}
