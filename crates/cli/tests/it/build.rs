//! `build` and `push` without a project: an image of a program that is there, into a file and to a
//! registry, with TLS and tokens or without. Distribution's own registry is spoken with where the images are made, in `project`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex, PoisonError};

use kubewright_project::image::archive;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};

/// What a registry was sent: blobs by their digest, manifests by their path.
type Kept = Arc<Mutex<BTreeMap<String, Vec<u8>>>>;

/// A registry that takes whatever it is sent.
struct Registry {
    address: SocketAddr,
    kept: Kept,
}

/// What a registry wants to be shown: tokens, each of which is good for some requests.
#[derive(Default)]
struct Door {
    tokens: usize,
    /// How many requests the last token is still good for.
    left: usize,
}

const TOKEN_REQUESTS: usize = 2;

impl Registry {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a place");
        let address = listener.local_addr().expect("an address");
        let kept = Kept::default();
        let shared = Arc::clone(&kept);
        // It ends with the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                answer(&mut stream.expect("a connection"), &shared);
            }
        });
        Registry { address, kept }
    }

    /// One that speaks TLS, and takes only what comes with a token of its own, which `ann` gets.
    /// Also the certificate by which it is known, and how many tokens there were.
    fn behind_a_door() -> (Self, String, Arc<Mutex<Door>>) {
        // This machine by a name that is not treated as this machine's.
        let listener = TcpListener::bind("0.0.0.0:0").expect("a place");
        let address = listener.local_addr().expect("an address");
        let names = vec!["0.0.0.0".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key);
        let config = Arc::new(config.expect("a configuration"));
        let (kept, door) = (Kept::default(), Arc::<Mutex<Door>>::default());
        let (shared, opened) = (Arc::clone(&kept), Arc::clone(&door));
        // It ends with the tests.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let session = rustls::ServerConnection::new(Arc::clone(&config));
                let stream = stream.expect("a connection");
                let mut stream = rustls::StreamOwned::new(session.expect("a session"), stream);
                let request = read(&mut stream);
                let mut door = opened.lock().unwrap_or_else(PoisonError::into_inner);
                let (status, more) = door.open(&request, address, &shared);
                write(&mut stream, status, &request.target, &more);
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        (Registry { address, kept }, made.cert.pem(), door)
    }

    fn kept(&self, name: &str) -> Option<Vec<u8>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }
}

impl Door {
    /// The answer to a request: its status, and headers and body of its own.
    fn open(
        &mut self,
        request: &Request,
        address: SocketAddr,
        kept: &Kept,
    ) -> (&'static str, String) {
        if let Some(query) = request.target.strip_prefix("/token?") {
            assert_eq!(query, "service=tests&scope=repository%3Ateam%2Ftool%3Apull%2Cpush");
            // ann:secret
            assert_eq!(request.authorization, "Basic YW5uOnNlY3JldA==");
            (self.tokens, self.left) = (self.tokens + 1, TOKEN_REQUESTS);
            return ("200 OK", format!("\r\n\r\n{{\"token\": \"t{}\"}}", self.tokens));
        }
        if self.left == 0 || request.authorization != format!("Bearer t{}", self.tokens) {
            let realm = format!("https://{address}/token");
            let challenge = format!("Bearer realm=\"{realm}\",service=\"tests\"");
            return ("401 Unauthorized", format!("WWW-Authenticate: {challenge}\r\n"));
        }
        self.left -= 1;
        (take(request, kept), String::new())
    }
}

/// A request, as far as a registry cares.
struct Request {
    method: String,
    target: String,
    authorization: String,
    body: Vec<u8>,
}

fn read(stream: &mut impl Read) -> Request {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).expect("a request");
    let mut words = line.split(' ').map(str::to_owned);
    let (method, target) = words.next().zip(words.next()).expect("a method and a target");
    let (mut bytes, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).expect("a header");
        let Some((name, value)) = header.trim().split_once(": ") else { break };
        match name.to_lowercase().as_str() {
            "content-length" => bytes = value.parse().expect("a number"),
            "authorization" => value.clone_into(&mut authorization),
            _ => {}
        }
    }
    let mut body = vec![0; bytes];
    reader.read_exact(&mut body).expect("a body");
    Request { method, target, authorization, body }
}

/// Answers the one request of a connection.
fn answer(stream: &mut (impl Read + Write), kept: &Kept) {
    let request = read(stream);
    write(stream, take(&request, kept), &request.target, "");
}

/// Does what a request asks for.
fn take(request: &Request, kept: &Kept) -> &'static str {
    let Request { method, target, body, .. } = request;
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    match method.as_str() {
        "HEAD" if kept.contains_key(target.rsplit('/').next().unwrap_or_default()) => "200 OK",
        "HEAD" => "404 Not Found",
        "POST" => "202 Accepted",
        "PUT" => {
            let name = target.split_once("digest=").map_or(target.as_str(), |(_, digest)| digest);
            kept.insert(name.to_owned(), body.clone());
            "201 Created"
        }
        _ => "405 Method Not Allowed",
    }
}

fn write(stream: &mut impl Write, status: &str, target: &str, more: &str) {
    let head = format!("HTTP/1.1 {status}\r\nLocation: {target}\r\nConnection: close\r\n");
    let (headers, body) = more.split_once("\r\n\r\n").unwrap_or((more, ""));
    let length = format!("Content-Length: {}\r\n", body.len());
    write!(stream, "{head}{length}{headers}\r\n{body}").expect("answered");
    stream.flush().expect("answered");
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
fn what_an_image_is_given_to_is_told_before_it_takes_time() {
    let place = tempfile::tempdir().expect("a folder");
    fs::write(place.path().join("tool.tar"), "").expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_kubewright"))
        .args(["image", "load", "tool.tar", "--socket", "nowhere", "--output", "json"])
        .current_dir(place.path())
        .output()
        .expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.starts_with("giving images to the container runtime at nowhere\n"), "{told}");
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
    assert_eq!(built["digest"], image.root().digest);
    assert_eq!(built["architectures"], json!([image.images()[0].architecture]));

    let again = run(place.path(), &[&build[..], &["--output", "again.tar"]].concat());
    let told = format!("again.tar\n{tag}@{}\n", image.root().digest);
    assert_eq!(String::from_utf8_lossy(&again.stdout), told);
    let told = String::from_utf8_lossy(&again.stderr);
    assert!(told.starts_with("packing true ("), "{told}");
    assert_eq!(fs::read(place.path().join("again.tar")).expect("a file"), bytes);

    let push = ["push", "dist/tool.tar", "--output", "json"];
    let pushed = run(place.path(), &push);
    let told = String::from_utf8_lossy(&pushed.stderr).into_owned();
    assert!(told.contains("part 3 of 3 (") && told.contains(") is being sent\n"), "{told}");
    let expected = |sent: usize, there: usize| {
        let digest = &image.root().digest;
        json!({"image": tag, "digest": digest, "partsSent": sent, "partsThere": there})
    };
    assert_eq!(document(&pushed), expected(3, 0));
    for blob in image.blobs() {
        assert_eq!(registry.kept(&blob.digest).as_ref(), Some(&blob.bytes), "{}", blob.digest);
    }
    let manifest = registry.kept("/v2/team/tool/manifests/1");
    assert_eq!(manifest, Some(image.root().bytes.clone()));
    assert_eq!(document(&run(place.path(), &push)), expected(0, 3));
}

/// Each is built where it can be, and they are called the same.
#[test]
fn one_name_has_a_program_for_each_machine() {
    let is_there = |path: &&str| Path::new(path).exists();
    let Some(program) = ["/bin/true", "/usr/bin/true"].into_iter().find(is_there) else {
        eprintln!("skipped: there is no `true`");
        return;
    };
    let place = tempfile::tempdir().expect("a folder");
    let mut bytes = fs::read(program).expect("read");
    // What it says of its machine.
    for (machine, name) in [(62, "x86_64"), (183, "aarch64")] {
        bytes[18] = machine;
        fs::create_dir(place.path().join(name)).expect("a folder");
        fs::write(place.path().join(name).join("tool"), &bytes).expect("written");
    }
    let registry = Registry::start();
    let tag = format!("{}/team/tool:1", registry.address);
    let build = ["build", "--allow-dynamic", "--binary", "aarch64/tool", "--tag", &tag];
    let both = [&build[..], &["--binary", "x86_64/tool", "--format", "json"]].concat();
    let built = document(&run(place.path(), &both));
    assert_eq!(built["architectures"], json!(["amd64", "arm64"]));
    let pushed = run(place.path(), &["push", "dist/tool.tar"]);
    let told = String::from_utf8_lossy(&pushed.stderr).into_owned();
    // What programs need around them is the same.
    assert!(told.contains("part 5 of 5 ("), "{told}");
    let list = registry.kept("/v2/team/tool/manifests/1").expect("a list");
    let list: Value = serde_json::from_slice(&list).expect("JSON");
    for (at, name) in ["amd64", "arm64"].into_iter().enumerate() {
        let manifest = &list["manifests"][at];
        assert_eq!(manifest["platform"]["architecture"], name);
        let digest = manifest["digest"].as_str().expect("a digest");
        assert!(registry.kept(&format!("/v2/team/tool/manifests/{digest}")).is_some());
    }
    let twice = [&build[..], &["--binary", "aarch64/tool"]].concat();
    let output = Command::new(env!("CARGO_BIN_EXE_kubewright"))
        .args(twice)
        .current_dir(place.path())
        .output();
    let output = output.expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("two programs are for arm64"), "{told}");
}

/// Whoever was slow to send used to be refused at the first token's end.
#[test]
fn a_registry_with_tls_is_shown_a_token_and_another_when_it_expires() {
    let is_there = |path: &&str| Path::new(path).exists();
    let Some(program) = ["/bin/true", "/usr/bin/true"].into_iter().find(is_there) else {
        eprintln!("skipped: there is no `true`");
        return;
    };
    let place = tempfile::tempdir().expect("a folder");
    let (registry, certificate, door) = Registry::behind_a_door();
    let (roots, docker) = (place.path().join("roots.pem"), place.path().join("docker"));
    fs::write(&roots, certificate).expect("written");
    fs::create_dir(&docker).expect("a folder");
    let known = json!({"auths": {registry.address.to_string(): {"auth": "YW5uOnNlY3JldA=="}}});
    fs::write(docker.join("config.json"), known.to_string()).expect("written");
    let tag = format!("{}/team/tool:1", registry.address);
    let push = |folder: &Path| {
        Command::new(env!("CARGO_BIN_EXE_kubewright"))
            .args(["build", "--binary", program, "--allow-dynamic", "--tag", &tag])
            .args(["--push", "--output", "tool.tar"])
            .current_dir(folder)
            .env("SSL_CERT_FILE", &roots)
            .env("DOCKER_CONFIG", &docker)
            .output()
            .expect("it runs")
    };
    let output = push(place.path());
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let bytes = fs::read(place.path().join("tool.tar")).expect("a file");
    let (image, _) = archive::read(&bytes).expect("an image");
    for blob in image.blobs() {
        assert_eq!(registry.kept(&blob.digest).as_ref(), Some(&blob.bytes), "{}", blob.digest);
    }
    assert!(registry.kept("/v2/team/tool/manifests/1").is_some());
    // Three blobs are looked for, begun and sent, and the manifest is sent.
    let tokens = door.lock().unwrap_or_else(PoisonError::into_inner).tokens;
    assert_eq!(tokens, (3 * 3 + 1usize).div_ceil(TOKEN_REQUESTS));
}

/// A package that says where in its sources something happens, has a build script, and uses another
/// package beside it.
const PACKAGE: &[(&str, &str)] = &[
    (
        "Cargo.toml",
        "[package]\nname = \"tool\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[dependencies]\n\
         words = { path = \"words\" }\n\n[workspace]\n",
    ),
    (
        "build.rs",
        "fn main() {\n    let out = std::env::var(\"OUT_DIR\").expect(\"a folder\");\n    \
         std::fs::write(out + \"/made.rs\", \"fn made() { panic!() }\").expect(\"written\");\n}\n",
    ),
    (
        "src/main.rs",
        "include!(concat!(env!(\"OUT_DIR\"), \"/made.rs\"));\n\nfn main() {\n    \
         println!(\"{}: {}\", file!(), words::said(std::env::args().count()));\n    made();\n}\n",
    ),
    ("words/Cargo.toml", "[package]\nname = \"words\"\nversion = \"0.1.0\"\nedition = \"2024\"\n"),
    (
        "words/src/lib.rs",
        "pub fn said(count: usize) -> &'static str {\n    [\"one\", \"two\"][count]\n}\n",
    ),
];

/// The digests of the layers of an image that is built in a folder.
fn layers(folder: &Path) -> Vec<String> {
    let mut kubewright = Command::new(env!("CARGO_BIN_EXE_kubewright"));
    kubewright.args(["build", "--tag", "tool:1", "--output", "tool.tar"]).current_dir(folder);
    // Each builds all of it.
    kubewright.env("CARGO_TARGET_DIR", folder.join("target")).env("CARGO_NET_OFFLINE", "true");
    let output = kubewright.output().expect("it runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{told}");
    let bytes = fs::read(folder.join("tool.tar")).expect("a file");
    let (image, _) = archive::read(&bytes).expect("an image");
    image.images()[0].layers.iter().map(|layer| layer.digest.clone()).collect()
}

/// Wherever it is built, and whatever was built there before.
#[test]
fn a_package_makes_the_same_layers_in_any_folder() {
    let places = ["here", "some/where else"].map(|place| {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join(place);
        for (path, text) in PACKAGE {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("written");
        }
        (dir, folder)
    });
    let [here, there] = places.each_ref().map(|(_, folder)| layers(folder));
    assert_eq!(here.len(), 2);
    assert_eq!(here, there);
}
