//! A Go operator on client-go, unchanged: typed clients that speak protobuf, dynamic ones and those
//! of metadata alone, informers, a queue with workers, leader election. `clients/go` tells what it
//! does in one line per step; all of it reads the same on upstream.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::{UP_ALONE, User};

#[test]
fn an_operator_on_client_go_works_unchanged() {
    let Some(program) = build() else { return };
    let user = User::new();
    user.run(&UP_ALONE).expect("up");
    let output = Command::new(program)
        .arg(user.home.path().join(".kube/config"))
        .output()
        .expect("the program runs");
    let Output { stdout, stderr, .. } = output;
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    assert_eq!(text(stdout), TOLD, "{}", text(stderr));
}

/// The program, where there is Go with all that it is made of. Nothing is fetched here.
fn build() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/go");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("go-client");
    let build = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .env("GOPROXY", "off")
        .env("GOFLAGS", "-mod=readonly")
        .current_dir(&source)
        .output();
    match build {
        Ok(output) if output.status.success() => return Some(program),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            // What is not in the cache of modules cannot be had; anything else is our mistake.
            assert!(why.contains("module lookup disabled"), "{why}");
            eprintln!("skipped: `go mod download` in {} brings the modules", source.display());
        }
        Err(_) => eprintln!("skipped: there is no `go`"),
    }
    None
}

const TOLD: &str = "\
created a map[k:1] map[b:[0 255]] true
again AlreadyExists
updated map[k:2]
stale Conflict
retried map[k:3]
patched map[k:3 m:4]
patched map[k:3]
conflict Conflict
applied map[k:5] map[k:5]
absent NotFound configmaps \"absent\" not found
page 3 true
page 1 false
another Conflict
deleted 4
deployment 1 25%
scaled 3 app=web 2 2
token system:serviceaccount:golang:robot
allowed false
evicted NotFound
invalid Invalid Pod \"bad\" is invalid: spec.containers: Required value
event ADDED Tested 1
event MODIFIED Tested 2
discovered apps/v1, Kind=Deployment true true
version 1 36
defined boats.golang.example.com
custom map[oars:2] 1
custom Invalid
custom map[oars:1] 1
custom map[oars:3] 2
custom Conflict
custom UnsupportedMediaType
scaled 5 1
metadata map[seen:yes] 1
metadata NotFound
informed add one
informed add two
informed update two
cached 1 [one two] map[k:blue]
informed delete two
informed delete one
informed add two add two
informed update two update two
informed delete two delete two
informed add s
berth ADDED map[oars:2]
berth MODIFIED map[oars:6]
berth DELETED map[oars:6]
boat NotFound
leads first
leads second
lease second 1
";
