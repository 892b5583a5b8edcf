//! Names that authors choose, and why some cannot be.
//!
//! A name becomes several things at once: a crate, a module, a type, the name of objects in a
//! cluster. Each has its rules, and all are asked before anything is written.

#[cfg(test)]
mod tests;

/// The longest name of an operator: the longest of its objects' names is still one.
const OPERATOR_CHARS_MAX: usize = 63 - "-controller-manager-metrics-service".len();
const LABEL_CHARS_MAX: usize = 63;
/// The longest kind: what its lists are called is still a name.
const KIND_CHARS_MAX: usize = LABEL_CHARS_MAX - "List".len();
const SUBDOMAIN_CHARS_MAX: usize = 253;

/// A name that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("--{flag} {value:?}: {reason}")]
pub struct NameError {
    pub flag: &'static str,
    pub value: String,
    /// What is wrong, and what to do.
    pub reason: String,
}

fn refused<T>(flag: &'static str, value: &str, reason: impl Into<String>) -> Result<T, NameError> {
    Err(NameError { flag, value: value.to_owned(), reason: reason.into() })
}

/// The name of an operator: its package, its image, and what its objects begin with.
pub(crate) fn operator(name: &str) -> Result<(), NameError> {
    const FLAG: &str = "name";
    if !is_label(name, char::is_ascii_lowercase) {
        let rule = "begin with a letter, end with a letter or digit, and have only lower-case \
                    letters, digits and dashes of ASCII between them";
        return refused(FLAG, name, format!("must {rule}, as \"cert-keeper\""));
    }
    if name.len() > OPERATOR_CHARS_MAX {
        let reason = format!(
            "has {} characters, and objects named after it may be too long: take at most \
             {OPERATOR_CHARS_MAX}",
            name.len()
        );
        return refused(FLAG, name, reason);
    }
    if is_keyword(&name.replace('-', "_")) {
        return refused(FLAG, name, "is a word of Rust and names no crate: choose another");
    }
    if CRATES.contains(&name) {
        return refused(FLAG, name, "is a crate that the operator is made of: choose another");
    }
    if FOLDERS.contains(&name) {
        let reason = "is a folder that cargo has beside programs, and names none: choose another";
        return refused(FLAG, name, reason);
    }
    Ok(())
}

/// What the groups of a project end with.
pub(crate) fn domain(domain: &str) -> Result<(), NameError> {
    subdomain("domain", domain, "my.domain")
}

/// The first part of a group; empty if the domain is all of it.
pub(crate) fn group(group: &str, domain: &str) -> Result<(), NameError> {
    const FLAG: &str = "group";
    if !group.is_empty() {
        subdomain(FLAG, group, "webapp")?;
    }
    let whole = whole_group(group, domain);
    if whole.len() > SUBDOMAIN_CHARS_MAX {
        let reason = format!(
            "with the domain it has {} characters: take at most {SUBDOMAIN_CHARS_MAX}",
            whole.len()
        );
        return refused(FLAG, group, reason);
    }
    if !whole.contains('.') {
        let reason = format!("{whole:?} would be all of the group, which needs a dot: add --group");
        return refused(FLAG, group, reason);
    }
    let is_under = |parent: &str| {
        whole.strip_suffix(parent).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    if is_under("k8s.io") || is_under("kubernetes.io") {
        let reason = format!("{whole} is reserved for Kubernetes itself: choose another domain");
        return refused(FLAG, group, reason);
    }
    Ok(())
}

/// A group with its domain.
pub(crate) fn whole_group(group: &str, domain: &str) -> String {
    if group.is_empty() { domain.to_owned() } else { format!("{group}.{domain}") }
}

/// A version, as `v1`, `v1beta1` or `v2alpha3`.
pub(crate) fn version(flag: &'static str, version: &str) -> Result<(), NameError> {
    let is_number = |text: &str| {
        !text.is_empty() && !text.starts_with('0') && text.bytes().all(|c| c.is_ascii_digit())
    };
    let is_version = version.strip_prefix('v').is_some_and(|rest| {
        let stage = ["alpha", "beta"].into_iter().find_map(|stage| rest.split_once(stage));
        match stage {
            Some((major, minor)) => is_number(major) && is_number(minor),
            None => is_number(rest),
        }
    });
    match is_version && version.len() <= LABEL_CHARS_MAX {
        true => Ok(()),
        false => refused(flag, version, "is no version: write it as v1, v1beta1 or v2alpha1"),
    }
}

/// A kind: a Rust type, and in small letters a module and a name of the API.
pub(crate) fn kind(kind: &str) -> Result<(), NameError> {
    const FLAG: &str = "kind";
    let is_camel = kind.starts_with(|c: char| c.is_ascii_uppercase())
        && kind.chars().all(|c| c.is_ascii_alphanumeric());
    if !is_camel {
        let rule = "must begin with a capital letter and have only letters and digits of ASCII";
        return refused(FLAG, kind, format!("{rule}, as \"Guestbook\""));
    }
    if kind.len() > KIND_CHARS_MAX {
        let reason = format!(
            "has {} characters, and `{kind}List` would be too long: take at most {KIND_CHARS_MAX}",
            kind.len()
        );
        return refused(FLAG, kind, reason);
    }
    let module = module(kind);
    if is_keyword(kind) || is_keyword(&module) {
        let reason = format!("its module would be `{module}`, a word of Rust: choose another");
        return refused(FLAG, kind, reason);
    }
    if MODULES.contains(&module.as_str()) {
        let reason = format!("`src/{module}.rs` is something else: choose another");
        return refused(FLAG, kind, reason);
    }
    if PARTS.contains(&module.as_str()) || version(FLAG, &module).is_ok() {
        let reason = format!("`{module}` is what a part of a kind is called: choose another");
        return refused(FLAG, kind, reason);
    }
    if module == LIBRARY_CRATE {
        let reason = format!("`{module}` is the library in `src/lib.rs`: choose another");
        return refused(FLAG, kind, reason);
    }
    if TYPES.contains(&kind) {
        return refused(FLAG, kind, "is a type that its own source uses: choose another");
    }
    if kind.ends_with("List") {
        return refused(FLAG, kind, "is what a list of another kind is called: choose another");
    }
    Ok(())
}

/// What several objects of a kind are called in paths of the API.
pub(crate) fn plural(plural: &str) -> Result<(), NameError> {
    if !is_label(plural, char::is_ascii_lowercase) || plural.len() > LABEL_CHARS_MAX {
        let rule = "must begin with a letter and have only lower-case letters, digits and dashes";
        let reason = format!("{rule} of ASCII, at most {LABEL_CHARS_MAX}, as \"guestbooks\"");
        return refused("plural", plural, reason);
    }
    Ok(())
}

/// What the definition of a kind is called: its plural and its whole group.
pub(crate) fn definition(plural: &str, group: &str) -> Result<(), NameError> {
    let length = plural.len() + ".".len() + group.len();
    if length > SUBDOMAIN_CHARS_MAX {
        let reason = format!(
            "its definition would be `{plural}.{group}`, which has {length} characters: take names \
             that have at most {SUBDOMAIN_CHARS_MAX} together"
        );
        return refused("plural", plural, reason);
    }
    Ok(())
}

/// What several objects of a kind are called if nobody says otherwise, as the derive macro has it.
pub(crate) fn plural_of(kind: &str) -> String {
    let word = kind.to_ascii_lowercase();
    if ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(*end)) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if stem.ends_with(|c: char| !"aeiou".contains(c)) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

/// The module of a kind: `CronTab` is in `cron_tab`, `HTTPRoute` in `http_route`.
pub(crate) fn module(kind: &str) -> String {
    let letters: Vec<char> = kind.chars().collect();
    let mut module = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|at| letters[at]);
        let is_next_small = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let begins = letter.is_ascii_uppercase()
            && before.is_some_and(|it| !it.is_ascii_uppercase() || is_next_small);
        if begins {
            module.push('_');
        }
        module.push(letter.to_ascii_lowercase());
    }
    module
}

fn subdomain(flag: &'static str, value: &str, example: &str) -> Result<(), NameError> {
    let is_first = |c: &char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part = |part: &str| part.len() <= LABEL_CHARS_MAX && is_label(part, is_first);
    if value.len() > SUBDOMAIN_CHARS_MAX {
        let reason = format!("has {} characters: take at most {SUBDOMAIN_CHARS_MAX}", value.len());
        return refused(flag, value, reason);
    }
    if !value.split('.').all(is_part) {
        let rule = "must be parts of lower-case letters, digits and dashes of ASCII with dots \
                    between them, each of at most 63 characters";
        return refused(flag, value, format!("{rule}, as {example:?}"));
    }
    Ok(())
}

fn is_label(text: &str, is_first: impl Fn(&char) -> bool) -> bool {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    text.chars().next().is_some_and(|c| is_first(&c))
        && text.chars().all(is_inner)
        && !text.ends_with('-')
}

fn is_keyword(name: &str) -> bool {
    // What is an identifier for the parser may be `union`, which names modules well.
    syn::parse_str::<syn::Ident>(name).is_err() || RESERVED.contains(&name)
}

/// Words that the parser takes for names, and the compiler does not.
const RESERVED: &[&str] = &["gen", "macro_rules", "raw"];

/// Modules that there are already, or that the compiler has other uses for.
const MODULES: &[&str] = &["lib", "main", "tests"];

/// Modules of kinds beside those of versions: one that is called as the module around it is what
/// clippy calls a mistake, and projects have it look.
const PARTS: &[&str] = &["controller", "conversion", "defaulting", "validation"];

/// What `src/lib.rs` has its `Operator` from: a module of the same name beside it is no name for the
/// compiler, but two.
const LIBRARY_CRATE: &str = "kubewright";

/// Crates whose name another crate of the same program cannot have.
const CRATES: &[&str] = &[
    "alloc",
    "core",
    "k8s-openapi",
    "kube",
    "kubewright",
    "kubewright-testing",
    "proc-macro",
    "schemars",
    "serde",
    "serde-json",
    "std",
    "test",
    "tracing",
];

/// Where cargo puts what it builds, beside programs.
const FOLDERS: &[&str] = &["build", "deps", "examples", "incremental"];

/// What the sources that are made for a kind call something else.
const TYPES: &[&str] = &[
    "Action",
    "Api",
    "Cause",
    "Change",
    "Clone",
    "Condition",
    "Context",
    "Controller",
    "Conversion",
    "ConversionError",
    "CustomResource",
    "Debug",
    "Default",
    "Denied",
    "Deserialize",
    "Err",
    "Error",
    "Hub",
    "JsonSchema",
    "None",
    "Ok",
    "Operation",
    "Option",
    "PartialEq",
    "Reconciler",
    "Result",
    "Review",
    "Serialize",
    "Some",
    "Spoke",
    "String",
    "Vec",
    "Warnings",
    "Webhook",
];
