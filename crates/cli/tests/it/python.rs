//! The Python client from PyPI, unchanged. `client.py` tells what it does in one line per step; all
//! of it reads the same on upstream.

use std::env;
use std::path::Path;
use std::process::{Command, Output};

use crate::User;

/// Names a Python that has the client, when `python3` does not.
const PYTHON: &str = "KUBEWRIGHT_PYTHON";

#[test]
fn the_python_client_works_unchanged() {
    let python = env::var(PYTHON).unwrap_or_else(|_| "python3".to_owned());
    let has_client = Command::new(&python).args(["-c", "import kubernetes"]).output();
    if !has_client.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: {python} has no package `kubernetes`; {PYTHON} may name one that has");
        return;
    }
    let user = User::new();
    user.run(&["up", "--ephemeral", "--detach", "--port", "0"]).expect("up");
    let output = Command::new(&python)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/client.py"))
        .arg(user.home.path().join(".kube/config"))
        .output()
        .expect("Python runs");
    let Output { stdout, stderr, .. } = output;
    let text = |bytes| String::from_utf8(bytes).expect("it prints text");
    assert_eq!(text(stdout), TOLD, "{}", text(stderr));
}

const TOLD: &str = "\
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
