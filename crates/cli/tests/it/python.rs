//! The Python client from PyPI and kopf, which operators in Python are written with, unchanged.
//! Both programs tell what they do in one line per step; all of it reads the same on upstream.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

use crate::{UP_ALONE, User};

/// Names a Python that has the packages, when `python3` does not.
const PYTHON: &str = "KUBEWRIGHT_PYTHON";

#[test]
fn the_python_client_works_unchanged() {
    check("kubernetes", "client.py", CLIENT);
}

#[test]
fn an_operator_on_kopf_works_unchanged() {
    check("kopf", "boats.py", OPERATOR);
}

/// Runs a program that needs a package, and compares what it tells.
fn check(package: &str, program: &str, told: &str) {
    let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    let import = format!("import kubernetes, {package}");
    let has_package = Command::new(&python).args(["-c", &import]).output();
    if !has_package.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {python} has no package `{package}`; {PYTHON} may name one that has");
        return;
    }
    let user = User::new();
    user.run(&UP_ALONE).expect("up");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/python");
    let output = Command::new(&python)
        // Nothing is written beside the program.
        .arg("-B")
        .arg(folder.join(program))
        .arg(user.home.path().join(".kube/config"))
        .output()
        .expect("Python runs");
    let Output { stdout, stderr, .. } = output;
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    assert_eq!(text(stdout), told, "{}", text(stderr));
}

const CLIENT: &str = "\
created a {'k': '1'}
again 409
replaced {'k': '2'}
stale 409
patched {'l': '3'}
patched {'l': '3', 'm': '4'}
dry {'l': '3', 'm': '4', 'n': '5'} {'l': '3', 'm': '4'}
listed ['a', 'b', 'c'] ['d']
absent 404
saw ADDED web 2
saw MODIFIED web 3
saw DELETED web 3
filed ['ConfigMap', 'Deployment']
filed [409, 409]
status 2 1 25%
scale 5
strategic ['d', 'c']
applied {'k': '1'}
conflict 409
forced {'k': '2'}
another 409
token 2
pod True Pending default
log None
evicted None
invalid 422
custom {'sails': 1} 1
custom {'sails': 2} 2
custom {'afloat': True} 2
refused 422
applied 4 ['python']
dynamic ['one', 'two']
dynamic ['two']
dynamic ADDED two
dynamic boats.python.example.com \"two\" already exists
service ClusterIP 80
left []
allowed True
";

const OPERATOR: &str = "\
berth ADDED one
create one 2
guard one
status True {'berth': 'made'} 1
finalizers ['kopf.example.com/finalizer']
annotations ['kopf.zalando.org/last-handled-configuration']
update one 2 4 [4]
paint one red 3
berth DELETED one
delete one
guarded one
event Normal as wished kopf
left []
";
