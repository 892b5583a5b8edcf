//! Images in a real registry: distribution's own, on this machine.

use std::env;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use kubewright_project::image::registry::{self, Credentials, Options, PushError};
use kubewright_project::image::{Contents, File, Image, Index, Reference, surroundings};

/// Names the program `registry` of github.com/distribution/distribution, version 3.
const REGISTRY: &str = "KUBEWRIGHT_REGISTRY";
/// `ann` with the password `secret`, as htpasswd writes it.
const USERS: &str = "ann:$2b$04$IA5hzE4cg7PktC7tFP8s9.xs2VctjbDmkU3qYxOaJxynSPle7Frsy\n";

struct Registry {
    process: Child,
    address: String,
}

impl Registry {
    fn start(program: &str, folder: &Path, asks_who: bool) -> Self {
        let users = folder.join("users");
        fs::write(&users, USERS).expect("written");
        let auth = match asks_who {
            true => format!("auth: {{htpasswd: {{realm: tests, path: {}}}}}\n", users.display()),
            false => String::new(),
        };
        let config = format!(
            "version: 0.1\nlog: {{accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}}}\nhttp: {{addr: '127.0.0.1:0'}}\n{auth}",
            folder.join("data").display()
        );
        let path = folder.join("config.yml");
        fs::write(&path, config).expect("written");
        let mut process = Command::new(program)
            .arg("serve")
            .arg(&path)
            .env("OTEL_TRACES_EXPORTER", "none")
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("the registry starts");
        let mut lines = BufReader::new(process.stderr.take().expect("it is captured")).lines();
        let address = lines
            .find_map(|line| {
                let line = line.expect("it prints text");
                let after = line.split_once("listening on ")?.1;
                let is_address = |c: char| c.is_ascii_digit() || c == '.' || c == ':';
                Some(after.chars().take_while(|&c| is_address(c)).collect::<String>())
            })
            .expect("it says where it listens");
        // What it says later is let go, or it would wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Registry { process, address }
    }

    /// The body of an answer, with its status line and headers.
    fn get(&self, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).expect("it is there");
        let accept =
            "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json";
        write!(stream, "GET {path} HTTP/1.0\r\nAccept: {accept}\r\n\r\n").expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("read");
        text
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> Option<String> {
    let program = env::var(REGISTRY).ok();
    if program.is_none() {
        eprintln!("skipped: {REGISTRY} names no registry of distribution's");
    }
    program
}

fn image() -> Index {
    images(&["amd64"])
}

fn images(architectures: &[&str]) -> Index {
    let image = |architecture: &&str| {
        Image::of(&Contents {
            architecture: (*architecture).to_owned(),
            layers: vec![surroundings(), vec![File::new("pets", 0o555, vec![7; 3_000_000])]],
            entrypoint: vec!["/pets".to_owned()],
            labels: Vec::new(),
        })
    };
    Index::of(architectures.iter().map(image).collect()).expect("images")
}

fn push(
    registry: &Registry,
    name: &str,
    credentials: Option<Credentials>,
) -> Result<registry::Pushed, PushError> {
    push_all(&image(), registry, name, credentials)
}

fn push_all(
    called: &Index,
    registry: &Registry,
    name: &str,
    credentials: Option<Credentials>,
) -> Result<registry::Pushed, PushError> {
    let to: Reference = format!("{}/{name}", registry.address).parse().expect("a name");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let options = Options { plain_http: false, credentials };
    runtime.expect("a runtime").block_on(registry::push(called, &to, &options, |_| ()))
}

#[test]
fn an_image_is_sent_once_and_found_by_its_name() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Registry::start(&program, folder.path(), false);
    let first = push(&registry, "team/pets:1", None).expect("it is taken");
    assert_eq!((first.blobs_sent, first.blobs_there), (3, 0));
    let second = push(&registry, "team/pets:2", None).expect("it is taken");
    assert_eq!((second.blobs_sent, second.blobs_there), (0, 3));
    assert_eq!(first.digest, second.digest);
    let answer = registry.get("/v2/team/pets/manifests/2");
    assert!(answer.contains(&format!("Docker-Content-Digest: {}", first.digest)), "{answer}");

    // A registry refuses a list that speaks of what it does not have.
    let both = images(&["amd64", "arm64"]);
    let third = push_all(&both, &registry, "team/pets:3", None).expect("it is taken");
    assert_eq!((third.blobs_sent, third.blobs_there), (1, 3), "a configuration is new");
    for name in [both.root(), &both.images()[1].manifest].map(|it| it.digest.as_str()) {
        let answer = registry.get(&format!("/v2/team/pets/manifests/{name}"));
        assert!(answer.contains(&format!("Docker-Content-Digest: {name}")), "{answer}");
    }
    let answer = registry.get("/v2/team/pets/manifests/3");
    assert!(answer.contains("\"architecture\":\"arm64\""), "{answer}");
}

#[test]
fn a_registry_that_asks_who_is_told() {
    let Some(program) = program() else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let registry = Registry::start(&program, folder.path(), true);
    let nobody = push(&registry, "pets/a:1", None).expect_err("nobody may");
    assert!(matches!(nobody, PushError::Refused { .. }), "{nobody}");
    assert!(nobody.to_string().contains("docker login"), "{nobody}");
    let ann = |password: &str| {
        let (user, password) = ("ann".to_owned(), password.to_owned());
        push(&registry, "pets/a:1", Some(Credentials { user, password }))
    };
    ann("wrong").expect_err("she is not ann");
    assert_eq!(ann("secret").expect("she may").blobs_sent, 3);
}

#[test]
fn a_registry_that_is_not_there_is_told_with_the_next_step() {
    let to: Reference = "127.0.0.1:1/pets:1".parse().expect("a name");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let (image, options) = (image(), Options::default());
    let pushed = registry::push(&image, &to, &options, |_| ());
    let error = runtime.expect("a runtime").block_on(pushed).expect_err("nobody is there");
    assert!(error.to_string().contains("--plain-http"), "{error}");
}
