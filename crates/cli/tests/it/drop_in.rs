//! The command under the names of the programs that test suites start.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::{Access, Client};
use crate::kubewright;
use crate::server::{Program, Upstream, address, free_port};

/// A folder as test suites are given it, and another for what they make.
struct Bench {
    assets: TempDir,
    dir: TempDir,
}

impl Bench {
    fn new() -> Self {
        let assets = tempfile::tempdir().expect("a directory");
        let laid_out = kubewright(&["envtest", assets.path().to_str().expect("text")]);
        assert!(laid_out.status.success(), "{laid_out:?}");
        Bench { assets, dir: tempfile::tempdir().expect("a directory") }
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new(self.assets.path().join(name));
        command.current_dir(self.dir.path()).env_remove("KUBEWRIGHT_CONTROLLERS");
        command.stdin(Stdio::null());
        command
    }

    /// What a program says that ends by itself.
    fn ask(&self, name: &str, args: &[&str]) -> Output {
        self.program(name).args(args).output().expect("the program runs")
    }

    /// Starts an etcd with the flags of envtest, and returns when it is well.
    async fn etcd(&self, port: u16) -> Program {
        let url = format!("http://127.0.0.1:{port}");
        let mut command = self.program("etcd");
        command.arg(format!("--advertise-client-urls={url}"));
        command.arg(format!("--listen-client-urls={url}"));
        command.arg("--listen-peer-urls=http://127.0.0.1:0");
        command.arg("--unsafe-no-fsync=true");
        command.arg(format!("--data-dir={}", self.dir.path().join("etcd").display()));
        let mut program = Program::start(&mut command);
        program.until(async || is_well(port).await).await;
        program
    }

    /// Starts a server with the flags of envtest and `more`, and returns when it is ready.
    async fn apiserver(&self, etcd: &str, keys: &Keys, more: &[&str]) -> (Program, Access) {
        self.serve(self.program("kube-apiserver"), etcd, keys, more).await
    }

    /// The same with upstream's program.
    async fn stock_apiserver(
        &self,
        binary: &Path,
        etcd: &str,
        keys: &Keys,
        more: &[&str],
    ) -> (Program, Access) {
        let mut command = Command::new(binary);
        let log = std::fs::File::create(self.dir.path().join("log")).expect("a file");
        command.current_dir(self.dir.path()).stdout(Stdio::null()).stderr(log);
        self.serve(command, etcd, keys, more).await
    }

    async fn serve(
        &self,
        mut command: Command,
        etcd: &str,
        keys: &Keys,
        more: &[&str],
    ) -> (Program, Access) {
        let port = free_port();
        command.args(keys.flags()).args([
            format!("--secure-port={port}"),
            format!("--etcd-servers={etcd}"),
            "--allow-privileged=true".to_owned(),
            "--authorization-mode=RBAC".to_owned(),
            "--bind-address=127.0.0.1".to_owned(),
            "--disable-admission-plugins=ServiceAccount".to_owned(),
            format!("--service-account-issuer=https://127.0.0.1:{port}/"),
            "--service-cluster-ip-range=10.0.0.0/24".to_owned(),
        ]);
        // Last, as the last of each flag counts.
        command.args(more);
        let mut program = Program::start(&mut command);
        let access = Access::new(address(port), &keys.dir);
        program.until(async || access.is_ready().await).await;
        (program, access)
    }
}

/// Whether an etcd says that it is well, over HTTP as envtest asks.
async fn is_well(port: u16) -> bool {
    let Ok(stream) = tokio::net::TcpStream::connect(address(port)).await else { return false };
    let io = hyper_util::rt::TokioIo::new(stream);
    let Ok((mut sender, connection)) = hyper::client::conn::http1::handshake(io).await else {
        return false;
    };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(async move { drop(connection.await) });
    let request = http::Request::get("/health").header("host", "localhost");
    let request = request.body(http_body_util::Full::<bytes::Bytes>::default()).expect("a request");
    sender.send_request(request).await.is_ok_and(|answer| answer.status() == 200)
}

/// The keys that a test suite makes before it starts a server.
struct Keys {
    dir: PathBuf,
}

impl Keys {
    fn new(dir: &Path) -> Self {
        let dir = dir.join("keys");
        std::fs::create_dir_all(&dir).expect("a directory");
        let write =
            |file: &str, text: String| std::fs::write(dir.join(file), text).expect("written");
        let authority = |name: &str| {
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            let key = KeyPair::generate().expect("a key");
            let key_pem = key.serialize_pem();
            (CertifiedIssuer::self_signed(params, key).expect("an authority"), key_pem)
        };
        let (ca, _) = authority("test");
        write("ca.crt", ca.pem());
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(["localhost".to_owned(), "127.0.0.1".to_owned()]);
        let server = params.expect("names").signed_by(&key, &ca).expect("a certificate");
        write("apiserver.crt", server.pem());
        write("apiserver.key", key.serialize_pem());
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "admin");
        params.distinguished_name.push(DnType::OrganizationName, "system:masters");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        write("admin.crt", params.signed_by(&key, &ca).expect("a certificate").pem());
        write("admin.key", key.serialize_pem());
        let (proxies, _) = authority("proxies");
        write("proxies.crt", proxies.pem());
        for name in ["front-proxy", "stranger"] {
            let key = KeyPair::generate().expect("a key");
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, name);
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            let certificate = params.signed_by(&key, &proxies).expect("a certificate");
            write(&format!("{name}.crt"), certificate.pem());
            write(&format!("{name}.key"), key.serialize_pem());
        }
        // envtest gives a certificate where others give a key.
        let (signer, key_pem) = authority("signer");
        write("sa.crt", signer.pem());
        write("sa.key", key_pem);
        Keys { dir }
    }

    fn flags(&self) -> [String; 4] {
        let path = |file: &str| self.dir.join(file).display().to_string();
        [
            format!("--cert-dir={}", self.dir.display()),
            format!("--client-ca-file={}", path("ca.crt")),
            format!("--service-account-key-file={}", path("sa.crt")),
            format!("--service-account-signing-key-file={}", path("sa.key")),
        ]
    }
}

async fn add_namespace(client: &mut Client, name: &str) {
    client.create("/api/v1/namespaces", &json!({ "metadata": { "name": name } })).await;
}

#[test]
fn programs_tell_their_flags_and_refuse_others() {
    let bench = Bench::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let has = |output: &Output, flag: &str| {
        let stdout = text(&output.stdout);
        stdout.lines().any(|line| line.trim_start().starts_with(flag))
    };
    let help = bench.ask("etcd", &["--help"]);
    assert!(help.status.success() && has(&help, "--unsafe-no-fsync"), "{help:?}");
    let help = bench.ask("kube-apiserver", &["--help"]);
    assert!(help.status.success() && has(&help, "--secure-port"), "{help:?}");
    assert!(!has(&help, "--insecure-port"), "there is no such port any more");
    let version = bench.ask("kube-apiserver", &["--version"]);
    assert_eq!(text(&version.stdout), "Kubernetes v1.36.4\n");
    assert!(text(&bench.ask("etcd", &["--version"]).stdout).starts_with("etcd Version: 3."));

    let check = |name: &str, args: &[&str], code: i32, expected: &str| {
        let output = bench.ask(name, args);
        let stderr = text(&output.stderr);
        assert!(stderr.starts_with(expected), "{stderr}");
        assert_eq!(output.status.code(), Some(code));
    };
    check("kube-apiserver", &["--bogus"], 1, "Error: unknown flag: --bogus\n");
    check("etcd", &["--bogus"], 2, "flag provided but not defined: -bogus\n");
    check(
        "kube-apiserver",
        &["--encryption-provider-config=file"],
        1,
        "Error: --encryption-provider-config is not supported here: objects are stored as they are\n",
    );
    check(
        "kube-apiserver",
        &[],
        1,
        "Error: [--etcd-servers must be specified, service-account-issuer is a required flag, ",
    );
    let told =
        ["--etcd-servers=http://x", "--service-account-issuer=a", "--service-account-key-file=b"];
    let told = [&told[..], &["--service-account-signing-key-file=c"]].concat();
    let with = |more: &[&'static str]| [&told[..], more].concat();
    check(
        "kube-apiserver",
        &with(&["--disable-admission-plugins=Bogus"]),
        1,
        "Error: disable-admission-plugins plugin \"Bogus\" is unknown\n",
    );
    check(
        "kube-apiserver",
        &with(&["--authorization-mode=Bogus"]),
        1,
        "Error: authorization-mode \"Bogus\" is not a valid mode\n",
    );
    check(
        "kube-apiserver",
        &with(&["--service-account-max-token-expiration=10m"]),
        1,
        "Error: the service-account-max-token-expiration must be between 1 hour and 2^32 seconds\n",
    );
    check(
        "kube-apiserver",
        &with(&["--service-account-jwks-uri=http://keys.example.com"]),
        1,
        "Error: service-account-jwks-uri requires https scheme, parsed as: \
         http://keys.example.com\n",
    );
    check(
        "kube-apiserver",
        &with(&["--tls-min-version=VersionTLS11"]),
        1,
        "Error: --tls-min-version VersionTLS11 is not supported here: ",
    );
    check(
        "kube-apiserver",
        &with(&["--tls-min-version=1.3"]),
        1,
        "Error: unknown tls version \"1.3\"\n",
    );
    check(
        "kube-apiserver",
        &with(&["--secure-port=0"]),
        1,
        "Error: --secure-port 0 must be between 1 and 65535, inclusive.",
    );
    check(
        "kube-apiserver",
        &with(&["--version=v1.35.0"]),
        1,
        "Error: invalid argument \"v1.35.0\" for \"--version\" flag: version \"v1.35.0\" must match \
         major/minor/patch of default version \"v1.36.4\"\n",
    );
    check(
        "kube-apiserver",
        &with(&["--version=v1.36.4-"]),
        1,
        "Error: invalid argument \"v1.36.4-\" for \"--version\" flag: could not parse \
         pre-release/metadata (-) in version \"v1.36.4-\"\n",
    );
}

#[tokio::test]
async fn a_server_reports_the_version_that_it_is_told() {
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    let port = free_port();
    let _etcd = bench.etcd(port).await;
    let url = format!("http://127.0.0.1:{port}");
    let (_apiserver, access) = bench.apiserver(&url, &keys, &["--version=v1.36.4-custom"]).await;
    let version = access.client().await.get("/version").await;
    assert_eq!(version["gitVersion"], "v1.36.4-custom");
}

#[tokio::test]
async fn nodes_have_what_is_theirs_where_the_server_is_told_so() {
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    let port = free_port();
    let _etcd = bench.etcd(port).await;
    let url = format!("http://127.0.0.1:{port}");
    let modes = "--authorization-mode=Node,RBAC";
    let (_apiserver, access) =
        bench.apiserver(&url, &keys, &[modes, "--enable-admission-plugins=NodeRestriction"]).await;
    let mut client = access.client().await;
    let own = [("impersonate-user", "system:node:n"), ("impersonate-group", "system:nodes")];
    let nodes = "/api/v1/nodes";
    let named = |name: &str| json!({ "metadata": { "name": name } });
    assert_eq!(client.send_with(&own, "POST", nodes, &named("n")).await.0, 201);
    let (status, refused) = client.send_with(&own, "POST", nodes, &named("m")).await;
    let message = "nodes \"m\" is forbidden: node \"n\" is not allowed to modify node \"m\"";
    assert_eq!((status, &refused["message"]), (403, &json!(message)));
    let (status, refused) = client.send_with(&own, "GET", nodes, &Value::Null).await;
    let why = "node 'n' cannot read all nodes, only its own Node object";
    let message = refused["message"].as_str().unwrap_or_default();
    assert!(status == 403 && message.ends_with(why), "{refused}");
}

#[tokio::test]
async fn what_is_written_survives_both_programs() {
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}");
    let mut etcd = bench.etcd(port).await;
    let (mut apiserver, access) = bench.apiserver(&url, &keys, &[]).await;
    let mut client = access.client().await;
    add_namespace(&mut client, "first").await;
    // Nobody but the admission plugin would ask for a service account, and it is off.
    let pod = json!({
        "metadata": { "name": "web" },
        "spec": { "containers": [{ "name": "web", "image": "web" }] },
    });
    client.create("/api/v1/namespaces/first/pods", &pod).await;
    let accounts = client.get("/api/v1/namespaces/first/serviceaccounts").await;
    assert_eq!(accounts["items"], json!([]), "no controllers run");

    apiserver.kill();
    let (mut apiserver, access) = bench.apiserver(&url, &keys, &[]).await;
    let mut client = access.client().await;
    client.get("/api/v1/namespaces/first/pods/web").await;
    add_namespace(&mut client, "second").await;

    apiserver.kill();
    etcd.kill();
    let _etcd = bench.etcd(port).await;
    let (_apiserver, access) = bench.apiserver(&url, &keys, &[]).await;
    let mut client = access.client().await;
    client.get("/api/v1/namespaces/first/pods/web").await;
    client.get("/api/v1/namespaces/second").await;
}

#[tokio::test]
async fn the_keys_that_are_given_are_used() {
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    let port = free_port();
    let _etcd = bench.etcd(port).await;
    let tokens = bench.dir.path().join("tokens.csv");
    std::fs::write(&tokens, "secret,alice,1,\"system:masters\"\n").expect("written");
    let url = format!("http://127.0.0.1:{port}");
    let more = [format!("--token-auth-file={}", tokens.display())];
    let more = Vec::from_iter(more.iter().map(String::as_str));
    let (_apiserver, access) = bench.apiserver(&url, &keys, &more).await;

    let whoami = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let review = json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
    let mut client = access.client().await;
    let own = client.create(whoami, &review).await;
    assert_eq!(own["status"]["userInfo"]["username"], "admin");

    let anonymous = access.without_identity();
    let mut nobody = anonymous.client().await;
    for path in ["/healthz", "/livez", "/readyz"] {
        assert_eq!(nobody.send("GET", path, &Value::Null).await.0, 200, "{path}");
    }
    assert_eq!(nobody.send("GET", "/api/v1/pods", &Value::Null).await.0, 403);
    let named = nobody.send_as("secret", "POST", whoami, &review).await;
    assert_eq!(named.1["status"]["userInfo"]["username"], "alice");

    let account = json!({ "metadata": { "name": "robot" } });
    client.create("/api/v1/namespaces/default/serviceaccounts", &account).await;
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let token = client.create(path, &json!({ "spec": {} })).await;
    let token = token["status"]["token"].as_str().expect("a token");
    let robot = nobody.send_as(token, "POST", whoami, &review).await;
    assert_eq!(robot.1["status"]["userInfo"]["username"], "system:serviceaccount:default:robot",);
}

#[tokio::test]
async fn tokens_are_as_short_and_pods_as_humble_as_the_server_is_told() {
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    let port = free_port();
    let _etcd = bench.etcd(port).await;
    let url = format!("http://127.0.0.1:{port}");
    let more = [
        "--service-account-max-token-expiration=1h",
        "--service-account-jwks-uri=https://keys.example.com/jwks",
        "--tls-min-version=VersionTLS13",
        "--allow-privileged=false",
    ];
    let (_apiserver, access) = bench.apiserver(&url, &keys, &more).await;
    let mut client = access.client().await;
    let configuration = client.get("/.well-known/openid-configuration").await;
    assert_eq!(configuration["jwks_uri"], "https://keys.example.com/jwks");
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    client.create(accounts, &json!({ "metadata": { "name": "robot" } })).await;
    let path = format!("{accounts}/robot/token");
    let asked = json!({ "spec": { "expirationSeconds": 86_400 } });
    let token = client.create(&path, &asked).await;
    assert_eq!(token["spec"]["expirationSeconds"], 3600);
    let container = json!({
        "name": "c", "image": "i", "securityContext": { "privileged": true },
    });
    let pod = json!({ "metadata": { "name": "p" }, "spec": { "containers": [container] } });
    let (status, refused) = client.send("POST", "/api/v1/namespaces/default/pods", &pod).await;
    let why = "Pod \"p\" is invalid: spec.containers[0].securityContext.privileged: Forbidden: \
               disallowed by cluster policy";
    assert_eq!((status, &refused["message"]), (422, &json!(why)), "{refused}");
}

#[tokio::test]
async fn controllers_run_when_they_are_asked_for() {
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    let port = free_port();
    let _etcd = bench.etcd(port).await;
    let url = format!("http://127.0.0.1:{port}");
    let more = ["--controllers=namespace,garbagecollector"];
    let (mut apiserver, access) = bench.apiserver(&url, &keys, &more).await;
    let mut client = access.client().await;
    add_namespace(&mut client, "short").await;
    let path = "/api/v1/namespaces/short";
    client.send("DELETE", path, &Value::Null).await;
    apiserver.until(async || client.send("GET", path, &Value::Null).await.0 == 404).await;
}

/// With upstream's programs at hand, they are asked first.
#[tokio::test]
async fn a_front_proxy_is_believed_on_whose_behalf_it_asks() {
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    let authority = keys.dir.join("proxies.crt");
    let more = [
        &*format!("--requestheader-client-ca-file={}", authority.display()),
        "--requestheader-allowed-names=front-proxy",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-uid-headers=X-Remote-Uid",
    ];
    if let Some(upstream) = Upstream::find()
        && let Some(binary) = upstream.apiserver_program()
    {
        let etcd = upstream.etcd(&bench.dir.path().join("theirs"));
        let (_apiserver, access) = bench.stock_apiserver(binary, &etcd.url, &keys, &more).await;
        check_front_proxy(&access, &keys).await;
    }
    let port = free_port();
    let _etcd = bench.etcd(port).await;
    let url = format!("http://127.0.0.1:{port}");
    let (_apiserver, access) = bench.apiserver(&url, &keys, &more).await;
    check_front_proxy(&access, &keys).await;
}

async fn check_front_proxy(access: &Access, keys: &Keys) {
    let says = async |name: &str, headers: &[(&str, &str)]| {
        let mut client = access.showing(&keys.dir, name).client().await;
        let review =
            json!({ "apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview" });
        let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (code, answer) = client.send_with(headers, "POST", path, &review).await;
        let mut user = answer["status"]["userInfo"].clone();
        // A certificate says of itself which one it is.
        if let Some(extra) = user.get_mut("extra").and_then(Value::as_object_mut) {
            extra.retain(|key, _| !key.starts_with("authentication.kubernetes.io/"));
        }
        (code, user)
    };
    let alice = [
        ("X-Remote-User", "alice"),
        ("X-Remote-Uid", "42"),
        ("X-Remote-Group", "dev"),
        ("X-Remote-Group", "ops"),
        ("X-Remote-Extra-Example.com%2fTeam", "blue"),
    ];
    let expected = json!({
        "username": "alice", "uid": "42", "groups": ["dev", "ops", "system:authenticated"],
        "extra": { "example.com/team": ["blue"] },
    });
    assert_eq!(says("front-proxy", &alice).await, (201, expected));
    // Who is no proxy, or none that is known, or says nothing, is not believed.
    assert_eq!(says("front-proxy", &[]).await.0, 401);
    assert_eq!(says("stranger", &alice).await.0, 401);
    let (code, user) = says("admin", &alice).await;
    assert_eq!((code, &user["username"]), (201, &json!("admin")));
    assert_eq!(user["groups"], json!(["system:masters", "system:authenticated"]));

    let path = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
    let told = access.client().await.get(path).await["data"].clone();
    let proxies = std::fs::read_to_string(keys.dir.join("proxies.crt")).expect("a certificate");
    assert_eq!(told["requestheader-client-ca-file"], json!(proxies));
    assert_eq!(told["requestheader-allowed-names"], json!("[\"front-proxy\"]"));
}

#[tokio::test]
async fn a_server_makes_a_certificate_where_there_is_none() {
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    for file in ["apiserver.crt", "apiserver.key"] {
        std::fs::remove_file(keys.dir.join(file)).expect("removed");
    }
    let port = free_port();
    let _etcd = bench.etcd(port).await;
    let secure = free_port();
    let mut command = bench.program("kube-apiserver");
    command.args(keys.flags()).args([
        format!("--secure-port={secure}"),
        format!("--etcd-servers=http://127.0.0.1:{port}"),
        "--authorization-mode=RBAC".to_owned(),
        "--service-account-issuer=https://localhost".to_owned(),
    ]);
    let mut program = Program::start(&mut command);
    program.until(async || keys.dir.join("apiserver.key").exists()).await;
    // The authority that vouches for it comes second in the file.
    let made = std::fs::read_to_string(keys.dir.join("apiserver.crt")).expect("a certificate");
    let (_, authority) = made.split_once("-----END CERTIFICATE-----\n").expect("two certificates");
    std::fs::write(keys.dir.join("ca.crt"), authority).expect("written");
    let access = Access::new(address(secure), &keys.dir).without_identity();
    program.until(async || access.is_ready().await).await;
}

#[test]
fn a_folder_is_laid_out_and_nothing_of_others_is_lost() {
    let dir = tempfile::tempdir().expect("a directory");
    let folder = dir.path().join("assets");
    let folder_text = folder.to_str().expect("text");
    for args in [&["envtest", folder_text][..], &["envtest", "--copy", folder_text]] {
        let output = kubewright(args);
        let expected = format!("export KUBEBUILDER_ASSETS={folder_text}\n");
        assert_eq!(String::from_utf8(output.stdout).expect("text"), expected);
        assert!(folder.join("etcd").exists() && folder.join("kube-apiserver").exists());
    }
    assert!(!folder.join("etcd").is_symlink(), "it was copied");
    let again = kubewright(&["envtest", folder_text]);
    assert!(again.status.success(), "a copy of ours is replaced: {again:?}");

    let other = folder.join("etcd");
    std::fs::remove_file(&other).expect("removed");
    std::fs::write(&other, "#!/bin/sh\necho other\n").expect("written");
    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o755)).expect("executable");
    let refused = kubewright(&["envtest", folder_text]);
    assert_eq!(refused.status.code(), Some(2));
    let complaint = String::from_utf8(refused.stderr).expect("text");
    assert!(complaint.contains("is another program: choose another folder"), "{complaint}");
}

/// The other way round: our server on upstream's etcd, upstream's server on ours.
#[tokio::test]
async fn each_program_works_with_upstreams_other() {
    let Some(upstream) = Upstream::find() else { return };
    let bench = Bench::new();
    let keys = Keys::new(bench.dir.path());
    let theirs = upstream.etcd(&bench.dir.path().join("theirs"));
    let (mut apiserver, access) = bench.apiserver(&theirs.url, &keys, &[]).await;
    add_namespace(&mut access.client().await, "ours-on-theirs").await;
    apiserver.kill();

    let Some(binary) = upstream.apiserver_program() else { return };
    let port = free_port();
    let _etcd = bench.etcd(port).await;
    let url = format!("http://127.0.0.1:{port}");
    let (mut stock, access) = bench.stock_apiserver(binary, &url, &keys, &[]).await;
    let mut client = access.client().await;
    add_namespace(&mut client, "theirs-on-ours").await;
    let mut watch = access.watch("/api/v1/namespaces/theirs-on-ours/configmaps", "0").await;
    for name in ["a", "b"] {
        let map = json!({ "metadata": { "name": name } });
        client.create("/api/v1/namespaces/theirs-on-ours/configmaps", &map).await;
        assert_eq!(watch.next().await["object"]["metadata"]["name"], name);
    }
    stock.kill();
    let (_apiserver, access) =
        bench.apiserver(&format!("http://127.0.0.1:{port}"), &keys, &[]).await;
    access.client().await.get("/api/v1/namespaces/theirs-on-ours/configmaps/b").await;
}

/// The flags of fabric8's kube-api-test, word for word, with keys as it makes them: RSA, each
/// certificate its own authority, the server's key for tokens, two issuers of which one is a file.
#[tokio::test]
async fn the_flags_of_javas_test_tools_are_taken() {
    let bench = Bench::new();
    let keys = Keys { dir: bench.dir.path().join("java") };
    std::fs::create_dir_all(&keys.dir).expect("a directory");
    let path = |file: &str| keys.dir.join(file).display().to_string();
    let own = |name: &str, group: &str, file: &str| {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        params.distinguished_name.push(DnType::OrganizationName, group);
        let key = KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048);
        let key = key.expect("a key");
        std::fs::write(path(&format!("{file}.key")), key.serialize_pem()).expect("written");
        let certificate = params.self_signed(&key).expect("a certificate").pem();
        std::fs::write(path(&format!("{file}.crt")), certificate).expect("written");
    };
    own("kube-apiserver", "kubernetes", "apiserver");
    own("admin", "system:masters", "admin");
    std::fs::copy(path("apiserver.crt"), path("ca.crt")).expect("copied");

    let (port, peer, secure) = (free_port(), free_port(), free_port());
    let mut command = bench.program("etcd");
    command.args(["-data-dir", &path("data"), "-wal-dir", &path("wal")]).args([
        "--listen-client-urls",
        &format!("http://0.0.0.0:{port}"),
        "--advertise-client-urls",
        &format!("http://0.0.0.0:{port}"),
        "--initial-cluster",
        &format!("default=http://localhost:{peer}"),
        "--initial-advertise-peer-urls",
        &format!("http://localhost:{peer}"),
        "--listen-peer-urls",
        &format!("http://localhost:{peer}"),
    ]);
    let mut etcd = Program::start(&mut command);
    etcd.until(async || is_well(port).await).await;
    let mut command = bench.program("kube-apiserver");
    command.args(["--cert-dir", &path(""), "--secure-port", &secure.to_string()]).args([
        "--etcd-servers",
        &format!("http://0.0.0.0:{port}"),
        "--authorization-mode",
        "RBAC",
        "--service-account-issuer",
        "https://localhost",
        "--service-account-signing-key-file",
        &path("apiserver.key"),
        "--service-account-signing-key-file",
        &path("apiserver.key"),
        "--service-account-key-file",
        &path("apiserver.key"),
        "--service-account-issuer",
        &path("apiserver.crt"),
        "--disable-admission-plugins",
        "ServiceAccount",
        "--client-ca-file",
        &path("admin.crt"),
        "--service-cluster-ip-range",
        "10.0.0.0/24",
        "--allow-privileged",
    ]);
    let mut program = Program::start(&mut command);
    let access = Access::trusting_anybody(address(secure), &keys.dir);
    program.until(async || access.is_ready().await).await;
    add_namespace(&mut access.client().await, "java").await;
}
