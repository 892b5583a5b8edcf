//! The fabric8 client for Java, unchanged. `clients/java` tells what it does in one line per step;
//! all of it reads the same on upstream.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

use crate::{UP_ALONE, User};

/// Names a folder with the client and all that it needs.
const JARS: &str = "KUBEWRIGHT_FABRIC8";

#[test]
fn the_fabric8_client_works_unchanged() {
    let Ok(jars) = env::var(JARS) else {
        eprintln!("skipped: {JARS} does not name a folder with `kubernetes-client` and the rest");
        return;
    };
    let user = User::new();
    user.run(&UP_ALONE).expect("up");
    let output = Command::new("java")
        .args(["-cp", &format!("{jars}/*")])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/java/Client.java"))
        .arg(user.home.path().join(".kube/config"))
        .output()
        .expect("Java runs");
    let Output { stdout, stderr, .. } = output;
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    assert_eq!(text(stdout), TOLD, "{}", text(stderr));
}

const TOLD: &str = "\
created a {k=1}
again 409
edited {k=2}
stale 409
patched {k=2, m=3}
patched {k=2}
patched {k=2, n=4}
conflict 409
applied {k=5, n=4}
listed 3 true
absent null
dry e null
deleted 4 0
saw ADDED w {k=1}
saw MODIFIED w {k=2}
saw DELETED w {k=2}
filed [Service, Deployment]
scaled 3
status 3 2
restarted 3
gone null
evicted true
invalid 422
allowed true
version 1 36
supports true false
custom 2 1
refused 422
custom true 1
generic 2
custom 0
informed add before
informed add after
informed update after 3
informed delete before
cached [after]
leads first
leads second
";
