//! `build` and `push` without a project: an image of a program that is there, into a file and to a
//! registry. Distribution's own registry is spoken with where the images are made, in `project`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, PoisonError};

use kubewright_project::image::archive;
use serde_json::{Value, json};

/// What a registry was sent: blobs by their digest, manifests by their path.
type Kept = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A registry that takes whatever it is sent.
struct Registry {
    address: SocketAddr,
    kept: Kept,
}

impl Registry {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a place");
        let address = listener.local_addr().expect("an address");
        let kept = Kept::default();
        let shared = Arc::clone(&kept);
        // It ends with the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&stream.expect("a connection"), &shared);
            }
        });
        Registry { address, kept }
    }

    fn kept(&self, name: &str) -> Option<Vec<u8>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

/// Answers the one request of a connection.
fn answer(stream: &TcpStream, kept: &Kept) {
    let mut reader = BufReader::new(stream);
    let mut request = String::new();
    reader.read_line(&mut request).expect("a request");
    let mut bytes = 0;
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        let header = header.trim().to_lowercase();
        if header.is_empty() {
            break;
        }
        if let Some(length) = header.strip_prefix("content-length:") {
            bytes = length.trim().parse().expect("a number");
        }
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body).expect("a body");
    let mut words = request.split(' ');
    let (method, target) = words.next().zip(words.next()).expect("a method and a target");
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    let status = match method {
        "HEAD" if kept.contains_key(target.rsplit('/').next().unwrap_or_default()) => "200 OK",
        "HEAD" => "404 Not Found",
        "POST" => "202 Accepted",
        "PUT" => {
            let name = target.split_once("digest=").map_or(target, |(_, digest)| digest);
            kept.insert(name.to_owned(), body);
            "201 Created"
        }
        _ => "405 Method Not Allowed",
    };
    let mut writer = stream;
    write!(
        writer,
        "HTTP/1.1 {status}\r\nLocation: {target}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )
    .expect("answered");
}

fn run(folder: &Path, args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_kubewright"))
        .args(args)
        .current_dir(folder)
        // Whoever has logged in somewhere on this machine has not here.
        .env("HOME", folder)
        .env_remove("DOCKER_CONFIG")
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn document(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn an_image_goes_into_a_file_and_from_there_to_a_registry() {
    // It needs libraries, and is never run.
    let is_there = |path: &&str| Path::new(path).exists();
    let Some(program) = ["/bin/true", "/usr/bin/true"].into_iter().find(is_there) else {
        eprintln!("skipped: there is no `true`");
        return;
    };
    let place = tempfile::tempdir().expect("a folder");
    let registry = Registry::start();
    let tag = format!("{}/team/tool:1", registry.address);
    let build = ["build", "--binary", program, "--allow-dynamic", "--tag", &tag];
    let built = document(&run(place.path(), &[&build[..], &["--format", "json"]].concat()));
    assert_eq!(built["image"], tag);
    assert_eq!(built["archive"], "./dist/tool.tar");
    assert_eq!((&built["pushed"], &built["loaded"]), (&json!(false), &json!([])));
    let bytes = fs::read(place.path().join("dist/tool.tar")).expect("a file");
    let (image, name) = archive::read(&bytes).expect("an image");
    assert_eq!(name, Some(tag.clone()));
    assert_eq!(built["digest"], image.manifest.digest);

    let again = run(place.path(), &[&build[..], &["--output", "again.tar"]].concat());
    let told = format!("again.tar\n{tag}@{}\n", image.manifest.digest);
    assert_eq!(String::from_utf8_lossy(&again.stdout), told);
    assert_eq!(fs::read(place.path().join("again.tar")).expect("a file"), bytes);

    let push = ["push", "dist/tool.tar", "--output", "json"];
    let pushed = run(place.path(), &push);
    let told = String::from_utf8_lossy(&pushed.stderr).into_owned();
    assert!(told.contains("part 3 of 3 (") && told.contains(") is being sent\n"), "{told}");
    let expected = |sent: usize, there: usize| {
        let digest = &image.manifest.digest;
        json!({"image": tag, "digest": digest, "partsSent": sent, "partsThere": there})
    };
    assert_eq!(document(&pushed), expected(3, 0));
    for blob in image.blobs() {
        assert_eq!(registry.kept(&blob.digest).as_ref(), Some(&blob.bytes), "{}", blob.digest);
    }
    let manifest = registry.kept("/v2/team/tool/manifests/1");
    assert_eq!(manifest, Some(image.manifest.bytes.clone()));
    assert_eq!(document(&run(place.path(), &push)), expected(0, 3));
}
