//! `cargo xtask long`: the slow lanes. The last result of each stands in docs/long.md, dated.

use std::fs;
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::root;

const DOCUMENT: &str = "docs/long.md";

/// How often each crash test stops the store; an ordinary run does so a dozen times.
const CRASHES: &str = "200";
/// How often replicas meet what may become of them; an ordinary run has forty.
const RUNS: &str = "1000";
const OBJECTS: &str = "10000";
const ORACLE_CASES: &str = "10000";
/// Scenarios that expect no node run without one; those that need one run with ours, and once more
/// with our scheduler. Those of routes to endpoints need a server with that flag.
const CONFORMANCE: &str = "cargo build --workspace --bins
    bin=${CARGO_TARGET_DIR:-$PWD/target}/debug
    workloads='run --target upstream --only --scheduler --nodes'
    cargo xtask upstream run --with controller-manager,scheduler -- \
        $bin/conformance run --target upstream --scheduler
    cargo xtask upstream run --with controller-manager \
        --apiserver-flag=--enable-aggregator-routing=true -- \
        $bin/conformance run --target upstream --only --routing
    cargo xtask upstream run --with controller-manager,scheduler -- \
        $PWD/.ci/with-node $bin $bin/conformance $workloads
    cargo xtask upstream run --with controller-manager -- \
        $PWD/.ci/with-node $bin --scheduler $bin/conformance $workloads";
const CONTAINERS: &str = "cargo xtask upstream build
    cargo test --workspace --test it --no-run
    cargo xtask containerd -- cargo xtask upstream run --with controller-manager,scheduler -- \
        cargo test --workspace --test it cri::";
const PROJECTS: &str = "cargo xtask upstream build
    cargo test --workspace --test it -- project:: its_logic
    cargo xtask upstream run -- \
        env KUBEWRIGHT_TEST_EXISTING=1 cargo test --workspace --test it project::a_project";
/// Tools of others judge packages and take images, as their users have them.
const PACKAGES: &str = "GOBIN=$PWD/target/tools go install helm.sh/helm/v4/cmd/helm@v4.3.1
    GOBIN=$PWD/target/tools \
        go install github.com/distribution/distribution/v3/cmd/registry@v3.1.2
    (cd crates/project/tests/olm && go mod download)
    KUBEWRIGHT_HELM=$PWD/target/tools/helm KUBEWRIGHT_REGISTRY=$PWD/target/tools/registry \
        cargo test --workspace --test it -- helm:: package:: registry:: bundle::";
const FUZZ_TARGETS: &str = "fuzz/fuzz_targets";
const FUZZ_SECONDS: u32 = 60;
/// As docs/releasing.md says: static, by musl if Rust has it, and installed as by its readers.
const RELEASE: &str = "target=$(uname -m)-unknown-linux-musl
    if ! [ -d \"$(rustc --print target-libdir --target $target)\" ]; then
        target=$(uname -m)-unknown-linux-gnu
        export RUSTFLAGS='-C target-feature=+crt-static'
    fi
    cargo build --release --target $target -p kubewright-cli
    unset RUSTFLAGS
    bin=${CARGO_TARGET_DIR:-$PWD/target}/$target/release/kubewright
    headers=$(readelf --wide --program-headers --dynamic $bin)
    case $headers in *INTERP* | *NEEDED*) echo \"$bin needs others\"; exit 1 ;; esac
    $bin --version
    cargo install --locked --force --path crates/cli --root target/installed
    target/installed/bin/kubewright --version";
/// An input that takes longer is a finding.
const FUZZ_INPUT_SECONDS: u32 = 10;
/// What `cargo fuzz` would pass, so that nobody needs to install it.
const FUZZ_FLAGS: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
                          -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                          -Cllvm-args=-sanitizer-coverage-trace-compares \
                          -Cllvm-args=-sanitizer-coverage-pc-table --cfg fuzzing";

struct Lane {
    name: String,
    proves: &'static str,
    environment: &'static [(&'static str, &'static str)],
    command: Vec<String>,
    /// A command that must work for the lane to be possible here.
    needs: Option<&'static [&'static str]>,
}

enum Outcome {
    Passed(Duration),
    Failed(Duration),
    Skipped(String),
}

/// Runs the lanes whose name contains one of `only`, or all, and notes each result as it comes.
pub fn run(only: &[String]) -> Result<ExitCode> {
    let chosen = |lane: &Lane| only.is_empty() || only.iter().any(|part| lane.name.contains(part));
    let lanes = lanes()?;
    let mut failed = false;
    for lane in lanes.iter().filter(|lane| chosen(lane)) {
        println!("== {}", lane.name);
        let outcome = lane.run()?;
        println!("== {}: {outcome}", lane.name);
        failed |= matches!(outcome, Outcome::Failed(_));
        note(&lanes, lane, &outcome)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn lanes() -> Result<Vec<Lane>> {
    let go: Option<&[&str]> = Some(&["go", "version"]);
    let lane = |name: &str, proves, command: &str| Lane {
        name: name.to_owned(),
        proves,
        environment: &[],
        command: command.split(' ').map(str::to_owned).collect(),
        needs: None,
    };
    let mut lanes = vec![
        Lane {
            environment: &[("KUBEWRIGHT_CRASHES", CRASHES)],
            ..lane(
                "crashes",
                "no acknowledged write is lost in hundreds of crashes",
                "cargo test --release --package kubewright-store crash",
            )
        },
        Lane {
            environment: &[("KUBEWRIGHT_RUNS", RUNS)],
            ..lane(
                "replicas",
                "of replicas that are killed, cut off and stopped, only the one that may writes",
                "cargo test --workspace --lib whatever_becomes_of",
            )
        },
        Lane {
            environment: &[("KUBEWRIGHT_OBJECTS", OBJECTS)],
            ..lane(
                "objects",
                "ten thousand objects are reconciled at their last version, whatever watches do",
                "cargo test --workspace --lib whatever_watches_do",
            )
        },
        Lane {
            needs: go,
            ..lane(
                "oracle",
                "random input means the same here and in upstream's libraries",
                &format!("cargo xtask oracle --cases {ORACLE_CASES}"),
            )
        },
        Lane {
            needs: go,
            ..lane("record", "upstream still answers as recorded", "cargo xtask record --check")
        },
        Lane {
            needs: go,
            ..lane(
                "types",
                "the table of built-in types is upstream's",
                "cargo xtask types --check",
            )
        },
        Lane {
            needs: go,
            command: ["sh", "-ec", CONFORMANCE].map(str::to_owned).into(),
            ..lane(
                "conformance",
                "every scenario passes on upstream with all its controllers, and with a node and \
                 the scheduler of ours",
                "",
            )
        },
        Lane {
            needs: go,
            ..lane(
                "envtest",
                "controller-runtime's suites pass here where they pass on upstream",
                "cargo xtask envtest",
            )
        },
        // Without root, Debian's packages and Go the next two fail: what they prove is proven nowhere
        // else.
        Lane {
            environment: &[("KUBEWRIGHT_TEST_EXISTING", "1"), ("KUBEWRIGHT_PROJECTS", "1")],
            // What is to be downloaded is, before there is no network.
            command: ["sh", "-ec", CONTAINERS].map(str::to_owned).into(),
            ..lane(
                "containers",
                "pods live in real containers, on nodes of clusters of ours and of upstream's; so \
                 does a project, in the image that is built of it",
                "",
            )
        },
        lane(
            "applications",
            "webapp and wordpress work on databases of Debian's, and a browser sees the first page",
            "bash .ci/containers",
        ),
    ];
    lanes.push(Lane {
        environment: &[("KUBEWRIGHT_PROJECTS", "1")],
        needs: go,
        command: ["sh", "-ec", PROJECTS].map(str::to_owned).into(),
        ..lane(
            "projects",
            "projects are built, pass their tests, are packaged and deployed, here and on upstream",
            "",
        )
    });
    lanes.push(Lane {
        needs: go,
        command: ["sh", "-ec", PACKAGES].map(str::to_owned).into(),
        ..lane(
            "packages",
            "helm installs charts, OLM's rules take bundles, a registry takes images",
            "",
        )
    });
    lanes.push(Lane {
        environment: &[("KUBEWRIGHT_PROJECTS", "all")],
        needs: go,
        ..lane(
            "imports",
            "types of well-known kinds compile, and keep an object with every field",
            "cargo test --workspace --test it well_known_kinds",
        )
    });
    lanes.push(lane(
        "publish",
        "every crate that is for others can be published, and builds from what would be",
        "cargo publish --workspace --dry-run --allow-dirty",
    ));
    lanes.push(Lane {
        command: ["sh", "-ec", RELEASE].map(str::to_owned).into(),
        ..lane("release", "the command is one static program, and can be installed", "")
    });
    // Build scripts and macros are left uninstrumented only when a target is named.
    let host = said_by(&["rustc", "+nightly", "--print", "host-tuple"])?;
    lanes.extend(fuzz_targets()?.into_iter().map(|target| Lane {
        environment: &[("RUSTFLAGS", FUZZ_FLAGS)],
        needs: Some(&["cargo", "+nightly", "--version"]),
        ..lane(
            &format!("fuzz {target}"),
            "hostile input ends in an error, soon",
            &format!(
                "cargo +nightly run --release --manifest-path fuzz/Cargo.toml --target {host} \
                 --bin {target} -- -max_total_time={FUZZ_SECONDS} -timeout={FUZZ_INPUT_SECONDS} \
                 -artifact_prefix=fuzz/found-{target}-"
            ),
        )
    }));
    Ok(lanes)
}

/// Every fuzz target, in order.
fn fuzz_targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for file in fs::read_dir(root().join(FUZZ_TARGETS)).context("list fuzz targets")? {
        let path = file.context("list fuzz targets")?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(name) = path.file_stem().and_then(|name| name.to_str())
        {
            targets.push(name.to_owned());
        }
    }
    targets.sort();
    Ok(targets)
}

impl Lane {
    fn run(&self) -> Result<Outcome> {
        if let Some([program, arguments @ ..]) = self.needs {
            let works = Command::new(program).args(arguments).output();
            if !works.is_ok_and(|output| output.status.success()) {
                let command = [&[*program], arguments].concat().join(" ");
                return Ok(Outcome::Skipped(format!("`{command}` does not work here")));
            }
        }
        let started = Instant::now();
        let status = Command::new(&self.command[0])
            .args(&self.command[1..])
            .envs(self.environment.iter().copied())
            .current_dir(root())
            .status()
            .with_context(|| format!("run {}", self.command[0]))?;
        let took = started.elapsed();
        Ok(if status.success() { Outcome::Passed(took) } else { Outcome::Failed(took) })
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Passed(took) => write!(f, "passed in {} s", took.as_secs()),
            Self::Failed(took) => write!(f, "**failed** after {} s", took.as_secs()),
            Self::Skipped(why) => write!(f, "skipped: {why}"),
        }
    }
}

/// Puts a result into the document, in the place of the lane's last one.
fn note(lanes: &[Lane], lane: &Lane, outcome: &Outcome) -> Result<()> {
    let path = root().join(DOCUMENT);
    let before = fs::read_to_string(&path).unwrap_or_default();
    let row = format!(
        "| {} | {} | {outcome} | {} | {} | {} |",
        lane.name,
        lane.proves,
        said_by(&["date", "-u", "+%Y-%m-%d"])?,
        said_by(&["git", "rev-parse", "--short=12", "HEAD"])?,
        machine(),
    );
    fs::write(&path, document(lanes, &before, lane, &row))
        .with_context(|| format!("write {DOCUMENT}"))
}

fn document(lanes: &[Lane], before: &str, changed: &Lane, row: &str) -> String {
    let mut text =
        "# The slow lanes\n\nThe last result of each, written by `cargo xtask long`.\n\n\
                    | lane | what it shows | result | on | at commit | machine |\n\
                    |---|---|---|---|---|---|\n"
            .to_owned();
    for lane in lanes {
        let start = format!("| {} |", lane.name);
        let last = before.lines().find(|line| line.starts_with(&start));
        if let Some(row) = if lane.name == changed.name { Some(row) } else { last } {
            text.push_str(row);
            text.push('\n');
        }
    }
    text
}

fn said_by(command: &[&str]) -> Result<String> {
    let output = Command::new(command[0])
        .args(&command[1..])
        .current_dir(root())
        .output()
        .with_context(|| format!("run {}", command[0]))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Enough to judge the times by.
fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or(std::env::consts::ARCH, |(_, model)| model);
    format!("{cores} cores of {model}")
}
