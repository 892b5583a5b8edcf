//! `kubewright build` and `push`: images without a daemon.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use kubewright_cluster::home::DEFAULT_NAME;
use kubewright_project::image::program::{self, Linkage, Program};
use kubewright_project::image::registry::{Part, Pushed};
use kubewright_project::image::{
    Contents, File, Image, Index, Reference, archive, registry, surroundings,
};
use kubewright_project::replace;
use serde_json::json;

use crate::cluster::{Output, parse_name};
use crate::image;
use crate::project::place;

#[derive(clap::Args)]
pub(crate) struct BuildArgs {
    /// What the image is called, such as registry.example.com/team/pets:1.2.3.
    #[arg(long, short, value_name = "IMAGE")]
    tag: Reference,
    /// The folder of the operator's project.
    #[arg(long, value_name = "DIR", default_value = ".")]
    project: PathBuf,
    /// Of several programs of the project, this one.
    #[arg(long, value_name = "NAME")]
    bin: Option<String>,
    /// A static program that is built already, for which nothing is compiled; several for as many
    /// machines.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bin", "target"])]
    binary: Vec<PathBuf>,
    /// What to build for, such as aarch64-unknown-linux-musl; several for as many machines
    /// [default: this machine, with musl if Rust has it].
    #[arg(long, value_name = "TARGET", value_delimiter = ',')]
    target: Vec<String>,
    /// Files of this machine and where they are in the image, such as certs.pem:etc/ssl/certs.pem.
    #[arg(long, value_name = "FILE:PATH", value_parser = added)]
    add: Vec<(PathBuf, String)>,
    /// Take a program that needs others.
    #[arg(long)]
    allow_dynamic: bool,
    /// Write the image to this file, for `docker load`, `ctr images import` and `kubewright push`
    /// [default: dist/<name>.tar, unless it is pushed or loaded].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Send it to the registry that its name says.
    #[arg(long)]
    push: bool,
    /// Give it to the container runtime of a running cluster, which then needs no registry.
    #[arg(long)]
    load: bool,
    /// The cluster to give it to.
    #[arg(long, value_name = "NAME", value_parser = parse_name, default_value = DEFAULT_NAME)]
    cluster: String,
    /// Speak with the registry without TLS.
    #[arg(long)]
    plain_http: bool,
    /// How to tell what was made; `--output` is a file here.
    #[arg(long, value_enum, default_value_t)]
    format: Output,
}

#[derive(clap::Args)]
pub(crate) struct PushArgs {
    /// A file that `kubewright build` has written.
    archive: PathBuf,
    /// Another name to send it under.
    #[arg(long, short, value_name = "IMAGE")]
    tag: Option<Reference>,
    /// Speak with the registry without TLS.
    #[arg(long)]
    plain_http: bool,
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// `FILE:PATH`, from this machine into the image.
fn added(text: &str) -> Result<(PathBuf, String), String> {
    let (file, path) = text.rsplit_once(':').ok_or("say FILE:PATH")?;
    let path = path.trim_start_matches('/');
    if path.is_empty() || path.split('/').any(|part| part == "..") {
        return Err("the path must be below the root of the image".to_owned());
    }
    Ok((PathBuf::from(file), path.to_owned()))
}

pub(crate) fn run(args: &BuildArgs) -> Result<ExitCode> {
    // Before minutes are spent on building.
    let socket = args.load.then(|| image::socket_of(&args.cluster)).transpose()?;
    let root = place(&args.project)?.root;
    let programs = programs(args, &root)?;
    let mut files = Vec::new();
    for (file, path) in &args.add {
        let bytes = fs::read(file).with_context(|| format!("read {}", file.display()))?;
        files.push(File::new(path, 0o644, bytes));
    }
    let images = programs.into_iter().map(|program| packed(program, &files, &args.tag)).collect();
    let called = Index::of(images)?;
    if args.push {
        send(&called, &args.tag, args.plain_http)?;
    }
    let mut loaded = Vec::new();
    if let Some(socket) = socket {
        let mut file = tempfile::NamedTempFile::new().context("make a file")?;
        file.write_all(&archive::write(&called, &args.tag)).context("write a file")?;
        loaded = image::give(&socket, file.path())?;
    }
    let path = output(args, &root);
    if let Some(path) = &path {
        let written = replace(path, &archive::write(&called, &args.tag));
        written.with_context(|| format!("write {}", path.display()))?;
    }
    let path = path.map(|path| path.display().to_string());
    match args.format {
        Output::Json => say!(
            "{}",
            json!({
                "image": args.tag.to_string(),
                "digest": called.root().digest,
                "architectures": called.images().iter().map(|it| &it.architecture).collect::<Vec<_>>(),
                "archive": path,
                "pushed": args.push,
                "loaded": loaded,
            })
        ),
        Output::Text => {
            loaded.iter().for_each(|image| say!("loaded {image}"));
            path.iter().for_each(|path| say!("{path}"));
            say!("{}@{}", args.tag, called.root().digest);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn output(args: &BuildArgs, root: &Path) -> Option<PathBuf> {
    let name = args.tag.repository.rsplit('/').next().unwrap_or_default();
    let default = root.join("dist").join(format!("{name}.tar"));
    args.output.clone().or((!args.push && !args.load).then_some(default))
}

/// The image of a program, and of files beside it.
fn packed(program: Program, files: &[File], tag: &Reference) -> Image {
    let Program { name, elf, bytes, .. } = program;
    eprintln!("packing {name} ({}) for {}", size(bytes.len()), elf.architecture);
    let mut layers = vec![surroundings()];
    layers.extend((!files.is_empty()).then(|| files.to_vec()));
    layers.push(vec![File::new(&name, 0o555, bytes)]);
    Image::of(&Contents {
        architecture: elf.architecture.to_owned(),
        layers,
        entrypoint: vec![format!("/{name}")],
        labels: vec![("org.opencontainers.image.version".to_owned(), tag.tag.clone())],
    })
}

/// One program for each machine that the image is for.
fn programs(args: &BuildArgs, root: &Path) -> Result<Vec<Program>> {
    if !args.binary.is_empty() {
        let read = |file: &PathBuf| Ok(program::read(file, args.allow_dynamic)?);
        return args.binary.iter().map(read).collect();
    }
    if args.target.is_empty() {
        return Ok(vec![built(args, root, None)?]);
    }
    args.target.iter().map(|target| built(args, root, Some(target))).collect()
}

fn built(args: &BuildArgs, root: &Path, target: Option<&str>) -> Result<Program> {
    let installed = program::installed_targets();
    let linkage = Linkage::choose(target, &installed, std::env::consts::ARCH);
    match &linkage {
        Linkage::Gnu { target: given } if target.is_some() => {
            eprintln!("building for {given} with its C library linked in");
        }
        Linkage::Musl { target } | Linkage::Given { target } => {
            eprintln!("building for {target}");
        }
        Linkage::Gnu { target } => eprintln!(
            "building for {target} with its C library linked in: Rust has no musl target here \
             (`rustup target add {}-unknown-linux-musl` adds one)",
            std::env::consts::ARCH
        ),
    }
    let options = program::Options {
        project: root.to_owned(),
        bin: args.bin.clone(),
        allow_dynamic: args.allow_dynamic,
    };
    Ok(program::build(&options, &linkage)?)
}

pub(crate) fn push(args: &PushArgs) -> Result<ExitCode> {
    let (called, name) = read(&args.archive)?;
    let to = match (&args.tag, name) {
        (Some(tag), _) => tag.clone(),
        (None, Some(name)) => name.parse()?,
        (None, None) => {
            bail!("{} does not say what it is called: use --tag", args.archive.display())
        }
    };
    let pushed = send(&called, &to, args.plain_http)?;
    if args.output == Output::Json {
        let (sent, there) = (pushed.blobs_sent, pushed.blobs_there);
        say!(
            "{}",
            json!({
                "image": to.to_string(),
                "digest": pushed.digest,
                "partsSent": sent,
                "partsThere": there,
            })
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<(Index, Option<String>)> {
    let bytes = fs::read(path).with_context(|| format!("read {}", path.display()))?;
    archive::read(&bytes).with_context(|| format!("read the image in {}", path.display()))
}

/// Sends what is called so, and tells people how far it is.
fn send(called: &Index, to: &Reference, plain_http: bool) -> Result<Pushed> {
    let credentials = registry::credentials::noted(&to.registry);
    let options = registry::Options { plain_http, credentials };
    eprintln!("sending to {}", to.registry);
    let tell = |part: Part| {
        let Part { number, count, bytes, is_there } = part;
        let fate = if is_there { "is there already" } else { "is being sent" };
        eprintln!("part {number} of {count} ({}) {fate}", size(bytes));
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let pushed = runtime.block_on(registry::push(called, to, &options, tell))?;
    let (sent, there) = (pushed.blobs_sent, pushed.blobs_there);
    eprintln!("{to} is there as {} ({sent} parts sent, {there} were there)", pushed.digest);
    Ok(pushed)
}

/// So many bytes, as people read it.
fn size(bytes: usize) -> String {
    match bytes {
        1_000_000.. => format!("{}.{} MB", bytes / 1_000_000, bytes % 1_000_000 / 100_000),
        1_000.. => format!("{} kB", bytes / 1_000),
        _ => format!("{bytes} bytes"),
    }
}
