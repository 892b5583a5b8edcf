//! A containerd of our own for the time of one command: with its own directories, network and
//! images, beside any other on the machine, and nothing of it stays.
//!
//! The command is in that network too, and reaches nothing beyond: clusters give addresses to their
//! machine, and two of them on one would be in each other's way.
//!
//! Containers need root and a kernel that lets it do what it wants. Programs come from Debian's
//! packages; what the sandboxes of pods run is made here, so that nothing is pulled.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use crate::upstream::process::{Component, pass_signals_on, run_command};

/// What tells the command where containerd is.
const VARIABLE: &str = "KUBEWRIGHT_CRI";
/// Set where the network is our own.
const IN_NETWORK: &str = "KUBEWRIGHT_IN_NETWORK";
/// Programs that look for an address of their machine find one here.
const WAY_OUT: &str = "way-out";
/// What runs in every sandbox.
const SANDBOX_IMAGE: &str = "kubewright.dev/sandbox:1";
/// Where Debian and others put the plugins of the network.
const PLUGINS: [&str; 2] = ["/usr/lib/cni", "/opt/cni/bin"];
const NAMESPACE: &str = "k8s.io";
const START_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(50);

/// Runs `command` beside a fresh containerd, with `KUBEWRIGHT_CRI` set to its socket; its exit code
/// is ours.
pub fn run(command: &[OsString]) -> Result<ExitCode> {
    ensure!(rustix::process::geteuid().is_root(), "containers need root");
    let plugins = install()?;
    pass_signals_on()?;
    if std::env::var_os(IN_NETWORK).is_none() {
        return enter_network(command);
    }
    furnish_network()?;
    let folder =
        tempfile::Builder::new().prefix("containerd-").tempdir().context("make a folder")?;
    let mut containerd = Containerd::start(folder.path(), &plugins)?;
    containerd.wait_until_ready()?;
    containerd.make_sandbox_image()?;
    let socket = containerd.socket.clone();
    let code = run_command(command, |command| {
        command.env(VARIABLE, socket);
    })?;
    if code != 0 {
        eprint!("{}", containerd.component.tail());
    }
    containerd.clear();
    Ok(ExitCode::from(code))
}

/// Runs this again in a network where nobody else is.
fn enter_network(command: &[OsString]) -> Result<ExitCode> {
    let this = std::env::current_exe().context("find this program")?;
    let words = ["unshare".into(), "--net".into(), "--".into(), this.into_os_string()];
    let words = words.into_iter().chain(["containerd".into(), "--".into()]);
    let words: Vec<OsString> = words.chain(command.iter().cloned()).collect();
    let code = run_command(&words, |command| {
        command.env(IN_NETWORK, "1");
    })?;
    Ok(ExitCode::from(code))
}

/// Gives the network what programs expect of one.
fn furnish_network() -> Result<()> {
    for words in [
        "link set lo up",
        &format!("link add {WAY_OUT} type bridge"),
        &format!("address add 192.0.2.1/24 dev {WAY_OUT}"),
        &format!("link set {WAY_OUT} up"),
        "route add default via 192.0.2.2",
    ] {
        said(Command::new("ip").args(words.split(' ')))?;
    }
    Ok(())
}

/// Sees that the programs are there, and gives the folder of the network's plugins.
fn install() -> Result<PathBuf> {
    let plugins = || PLUGINS.iter().map(Path::new).find(|path| path.join("bridge").exists());
    let programs = [
        ("containerd", "containerd"),
        ("runc", "runc"),
        ("busybox", "busybox-static"),
        ("iptables", "iptables"),
        ("ip", "iproute2"),
        ("unshare", "util-linux"),
    ];
    let mut missing: Vec<&str> =
        programs.iter().filter(|(program, _)| find(program).is_none()).map(|it| it.1).collect();
    if plugins().is_none() {
        missing.push("containernetworking-plugins");
    }
    if !missing.is_empty() {
        ensure!(
            find("apt-get").is_some(),
            "these Debian packages are missing, and there is no apt-get: {}",
            missing.join(", ")
        );
        said(Command::new("apt-get").args(["-q", "update"]))?;
        said(
            Command::new("apt-get")
                .args(["-qy", "--no-install-recommends", "install"])
                .args(&missing)
                .env("DEBIAN_FRONTEND", "noninteractive"),
        )?;
    }
    plugins().map(Path::to_owned).context("find the plugins of the network")
}

struct Containerd {
    component: Component,
    folder: PathBuf,
    socket: PathBuf,
    bridge: String,
}

impl Containerd {
    fn start(folder: &Path, plugins: &Path) -> Result<Self> {
        let number = std::process::id();
        let bridge = format!("kw{number}");
        // One of many, so that several runs do not meet.
        let (high, low) = (64 + number / 256 % 64, number % 256);
        let socket = folder.join("containerd.sock");
        let at = folder.display();
        let config = format!(
            "version = 2\n\
             root = \"{at}/root\"\n\
             state = \"{at}/state\"\n\
             [grpc]\n\
             address = \"{}\"\n\
             [plugins.\"io.containerd.grpc.v1.cri\"]\n\
             sandbox_image = \"{SANDBOX_IMAGE}\"\n\
             # Not every root may protect its processes from the kernel.\n\
             restrict_oom_score_adj = true\n\
             stream_server_address = \"127.0.0.1\"\n\
             [plugins.\"io.containerd.grpc.v1.cri\".cni]\n\
             bin_dir = \"{}\"\n\
             conf_dir = \"{at}/net.d\"\n",
            socket.display(),
            plugins.display()
        );
        let network = serde_json::json!({
            "cniVersion": "0.4.0",
            "name": bridge,
            "plugins": [
                {
                    "type": "bridge", "bridge": bridge, "isGateway": true, "hairpinMode": true,
                    "ipam": {
                        "type": "host-local", "dataDir": format!("{at}/ipam"),
                        "ranges": [[{"subnet": format!("10.{high}.{low}.0/24")}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                    },
                },
                {"type": "portmap", "capabilities": {"portMappings": true}},
            ],
        });
        fs::create_dir(folder.join("net.d")).context("make a folder")?;
        fs::write(folder.join("net.d/10-kubewright.conflist"), network.to_string())
            .context("describe the network")?;
        fs::write(folder.join("config.toml"), config).context("configure containerd")?;
        let arguments = ["--config".to_owned(), "config.toml".to_owned()];
        let program = find("containerd").context("find containerd")?;
        let component = Component::start("containerd", &program, folder, &arguments)?;
        Ok(Containerd { component, folder: folder.to_owned(), socket, bridge })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + START_MAX;
        while said(&mut self.ctr(&["version"])).is_err() {
            if let Some(status) = self.component.ended()? {
                bail!("containerd ended: {status}\n{}", self.component.tail());
            }
            if Instant::now() > deadline {
                bail!("containerd does not answer\n{}", self.component.tail());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// Makes an image of a program that does nothing for ever.
    fn make_sandbox_image(&self) -> Result<()> {
        let image = self.folder.join("image");
        fs::create_dir_all(image.join("files/bin")).context("make an image")?;
        let busybox = find("busybox").context("find busybox")?;
        fs::copy(busybox, image.join("files/bin/sleep")).context("copy busybox")?;
        let tar = |name: &str, from: &Path, what: &[&str]| {
            said(
                Command::new("tar").arg("-cf").arg(image.join(name)).arg("-C").arg(from).args(what),
            )
        };
        tar("layer.tar", &image.join("files"), &["bin"])?;
        let sum = said(Command::new("sha256sum").arg(image.join("layer.tar")))?;
        let sum = sum.split(' ').next().unwrap_or_default();
        let architecture = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };
        let config = serde_json::json!({
            "architecture": architecture, "os": "linux",
            "config": {"Entrypoint": ["/bin/sleep", "2147483647"]},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{sum}")]},
        });
        let manifest = serde_json::json!([
            {"Config": "config.json", "RepoTags": [SANDBOX_IMAGE], "Layers": ["layer.tar"]},
        ]);
        fs::write(image.join("config.json"), config.to_string()).context("make an image")?;
        fs::write(image.join("manifest.json"), manifest.to_string()).context("make an image")?;
        tar("image.tar", &image, &["manifest.json", "config.json", "layer.tar"])?;
        let archive = image.join("image.tar");
        said(self.ctr(&["images", "import"]).arg(archive)).map(drop)
    }

    fn ctr(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ctr");
        command.arg("--address").arg(&self.socket).args(["--namespace", NAMESPACE]).args(words);
        command
    }

    /// Ends what the command left running, and takes away what containers need of the machine.
    /// What cannot be taken away is no reason to say that the command failed.
    fn clear(&mut self) {
        let tasks = said(&mut self.ctr(&["tasks", "list", "--quiet"])).unwrap_or_default();
        for task in tasks.split_whitespace() {
            eprintln!("a container was left running: {task}");
            let _ = said(&mut self.ctr(&["tasks", "delete", "--force", task]));
        }
        self.component.stop();
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let folder = self.folder.to_string_lossy().into_owned();
        let places = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        // Those that were mounted last are on top.
        for place in
            places.filter(|place| place.starts_with(&folder)).collect::<Vec<_>>().iter().rev()
        {
            let _ = said(Command::new("umount").args(["--lazy", place]));
        }
        let _ = said(Command::new("ip").args(["link", "delete", &self.bridge]));
    }
}

/// Where a program is.
fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// What a command printed.
fn said(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("run {}", command.get_program().display()))?;
    ensure!(
        output.status.success(),
        "{} failed: {}",
        command.get_program().display(),
        String::from_utf8_lossy(&output.stderr).trim()
    );
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
