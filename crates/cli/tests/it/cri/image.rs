//! Images for tests, made of the static busybox of this machine.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::NamedTempFile;

/// What a container of the second image does: shows its name, and logs who asks. The first process
/// of a container hears only signals that it asks for.
const HELLO: &str = "mkdir -p /www && echo \"Server name: $(hostname)\" > /www/index.html && \
                     cp /www/index.html /www/hello && trap 'exit 0' TERM && \
                     { httpd -f -v -p 80 -h /www & } && wait";

/// A file as `docker save` writes it, with `busybox:1` (also as `latest`) and a stand-in for
/// `nginxdemos/hello`.
pub(super) fn archive() -> NamedTempFile {
    let layer = layer();
    let sum = sum(&layer);
    let config = |command: &[&str]| {
        let config = json!({
            "architecture": if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" },
            "os": "linux",
            "config": {"Cmd": command, "Env": ["PATH=/bin"]},
            "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{sum}")]},
        });
        config.to_string().into_bytes()
    };
    let manifest = json!([
        {"Config": "busybox.json", "Layers": ["layer.tar"],
         "RepoTags": ["busybox:1", "busybox:latest"]},
        {"Config": "hello.json", "Layers": ["layer.tar"], "RepoTags": ["nginxdemos/hello:latest"]},
    ]);
    let mut archive = tar::Builder::new(NamedTempFile::new().expect("a file"));
    add(&mut archive, "layer.tar", &layer);
    add(&mut archive, "busybox.json", &config(&["sh"]));
    add(&mut archive, "hello.json", &config(&["sh", "-c", HELLO]));
    add(&mut archive, "manifest.json", manifest.to_string().as_bytes());
    archive.into_inner().expect("it is written")
}

/// A static program that is many.
pub(super) fn busybox() -> &'static str {
    let busybox =
        ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|it| Path::new(it).exists());
    busybox.expect("a busybox: `cargo xtask containerd` installs one")
}

fn layer() -> Vec<u8> {
    let busybox = busybox();
    let names = Command::new(busybox).arg("--list").output().expect("busybox runs");
    let mut layer = tar::Builder::new(Vec::new());
    let mut file = tar::Header::new_gnu();
    let bytes = std::fs::read(busybox).expect("busybox can be read");
    file.set_mode(0o755);
    file.set_size(bytes.len() as u64);
    layer.append_data(&mut file, "bin/busybox", bytes.as_slice()).expect("it is added");
    for name in String::from_utf8_lossy(&names.stdout).lines() {
        let mut link = tar::Header::new_gnu();
        link.set_entry_type(tar::EntryType::Symlink);
        link.set_size(0);
        link.set_mode(0o777);
        if name != "busybox" {
            layer.append_link(&mut link, format!("bin/{name}"), "busybox").expect("it is added");
        }
    }
    layer.into_inner().expect("it is written")
}

fn sum(bytes: &[u8]) -> String {
    let mut command = Command::new("sha256sum");
    let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("sha256sum runs");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    String::from_utf8_lossy(&output.stdout).split(' ').next().unwrap_or_default().to_owned()
}

fn add(archive: &mut tar::Builder<NamedTempFile>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    archive.append_data(&mut header, name, bytes).expect("it is added");
}
