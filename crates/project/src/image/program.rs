//! The program of an image: built so that it needs nothing else.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

use super::{Elf, ElfError};

/// What to build.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The folder of the project.
    pub project: PathBuf,
    /// Of several binaries, this one.
    pub bin: Option<String>,
    /// Whether a program that needs others is taken all the same.
    pub allow_dynamic: bool,
}

/// A program that is ready to be put into an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    pub path: PathBuf,
    pub name: String,
    pub elf: Elf,
    pub bytes: Vec<u8>,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("run {program:?}: is it installed?")]
    Run { program: &'static str, source: io::Error },
    #[error("`{command}` failed:\n{message}")]
    Build { command: String, message: String },
    #[error("{command} built {count} programs: choose one with --bin")]
    Several { command: String, count: usize },
    #[error("read {path:?}")]
    Read { path: PathBuf, source: io::Error },
    #[error("put {path:?} into an image: {source}")]
    Elf { path: PathBuf, source: ElfError },
    #[error(
        "put {path:?} into an image: it needs {interpreter}, which is not there. Build it static: \
         `rustup target add {target}` and build again, or name a static program with --binary, or \
         bring what it needs with --add and say --allow-dynamic"
    )]
    Dynamic { path: PathBuf, interpreter: String, target: String },
}

/// How a program that needs no other is built here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Linkage {
    /// With musl, which is made for it.
    Musl { target: String },
    /// With the C library of GNU, which is linked in.
    Gnu { target: String },
    /// As somebody says.
    Given { target: String },
}

impl Linkage {
    /// The best of what Rust has here.
    pub fn choose(given: Option<&str>, installed: &[String], machine: &str) -> Self {
        if let Some(target) = given {
            let target = target.to_owned();
            return match target.ends_with("-linux-gnu") {
                true => Linkage::Gnu { target },
                false => Linkage::Given { target },
            };
        }
        let musl = format!("{machine}-unknown-linux-musl");
        match installed.contains(&musl) {
            true => Linkage::Musl { target: musl },
            false => Linkage::Gnu { target: format!("{machine}-unknown-linux-gnu") },
        }
    }

    fn target(&self) -> &str {
        match self {
            Linkage::Musl { target } | Linkage::Gnu { target } | Linkage::Given { target } => {
                target
            }
        }
    }
}

/// The targets that Rust can build for, by what is on disk: no rustup is needed.
pub fn installed_targets() -> Vec<String> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output();
    let Ok(sysroot) = sysroot.map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
    else {
        return Vec::new();
    };
    let entries = fs::read_dir(Path::new(&sysroot).join("lib/rustlib"));
    let entries = entries.into_iter().flatten().flatten();
    let has_library = |entry: &fs::DirEntry| entry.path().join("lib").is_dir();
    entries.filter(has_library).filter_map(|entry| entry.file_name().into_string().ok()).collect()
}

/// Builds the project's program for release.
///
/// # Errors
/// It does not build, or it would not run in an image of its own.
pub fn build(options: &Options, linkage: &Linkage) -> Result<Program, ProgramError> {
    let target = linkage.target();
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--message-format=json-render-diagnostics"]);
    cargo.args(["--target", target]).current_dir(&options.project);
    if let Some(bin) = &options.bin {
        cargo.args(["--bin", bin]);
    }
    let home = options.project.canonicalize().unwrap_or_else(|_| options.project.clone());
    let given = |name: &str| env::var(name).ok();
    cargo.env(ENCODED_FLAGS, flags(given, linkage, &home));
    let command = format!("cargo build --release --target {target}");
    let output = cargo
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|source| ProgramError::Run { program: "cargo", source })?;
    if !output.status.success() {
        let message = "see what the compiler says above".to_owned();
        return Err(ProgramError::Build { command, message });
    }
    let built = executables(&String::from_utf8_lossy(&output.stdout));
    match built.as_slice() {
        [path] => read(path, options.allow_dynamic),
        paths => Err(ProgramError::Several { command, count: paths.len() }),
    }
}

/// Flags of the compiler with a character between them that is in no flag, so that folders may have
/// spaces in their names. Whoever sets it is heard before `RUSTFLAGS`.
const ENCODED_FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";
const BETWEEN_FLAGS: &str = "\u{1f}";

/// The flags that the compiler is given, as [`ENCODED_FLAGS`] has them: those of whoever asks, found
/// as Cargo finds them, and ours.
pub(super) fn flags(
    given: impl Fn(&str) -> Option<String>,
    linkage: &Linkage,
    home: &Path,
) -> String {
    let (encoded, plain) = (given(ENCODED_FLAGS), given("RUSTFLAGS").unwrap_or_default());
    let mut flags: Vec<&str> = match &encoded {
        Some(encoded) => encoded.split(BETWEEN_FLAGS).collect(),
        None => plain.split(' ').map(str::trim).collect(),
    };
    flags.retain(|flag| !flag.is_empty());
    if let Linkage::Gnu { .. } = linkage {
        flags.extend(["-C", "target-feature=+crt-static"]);
    }
    // Paths of this machine have no business in a program that others build as well: neither the
    // project's nor those of its libraries. Of several that fit, the last one counts.
    let libraries = given("CARGO_HOME").or_else(|| Some(given("HOME")? + "/.cargo"));
    let libraries = libraries.map(|it| format!("--remap-path-prefix={it}=/cargo"));
    flags.extend(libraries.as_deref());
    let remap = format!("--remap-path-prefix={}=/src", home.display());
    flags.push(&remap);
    flags.join(BETWEEN_FLAGS)
}

/// The programs that Cargo says it has built.
fn executables(messages: &str) -> Vec<PathBuf> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_bin = |message: &Value| message["target"]["kind"][0] == "bin";
    messages
        .filter(is_bin)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .collect()
}

/// A program that is built already.
///
/// # Errors
/// It is none, or it would not run in an image of its own.
pub fn read(path: &Path, allow_dynamic: bool) -> Result<Program, ProgramError> {
    let bytes =
        fs::read(path).map_err(|source| ProgramError::Read { path: path.to_owned(), source })?;
    let elf =
        Elf::parse(&bytes).map_err(|source| ProgramError::Elf { path: path.to_owned(), source })?;
    if let Some(interpreter) = elf.interpreter.clone().filter(|_| !allow_dynamic) {
        let machine = if elf.architecture == "arm64" { "aarch64" } else { "x86_64" };
        let target = format!("{machine}-unknown-linux-musl");
        return Err(ProgramError::Dynamic { path: path.to_owned(), interpreter, target });
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Program { path: path.to_owned(), name, elf, bytes })
}
