//! The command under another program's name: started as `kube-apiserver` or `etcd`, it takes that
//! program's flags and its place.
//!
//! So a test suite that starts a control plane from a folder of programs runs on ours if the folder
//! is ours. `kubewright envtest DIR` makes such a folder.

pub(crate) mod envtest;
mod etcd;
mod flag;
mod kube_apiserver;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

/// Runs as the program that `name` is the path of, if it is one of those that we stand in for.
pub(crate) fn run(
    name: Option<OsString>,
    args: impl Iterator<Item = OsString>,
) -> Option<ExitCode> {
    let name = Path::new(name.as_ref()?).file_name()?.to_str()?.to_owned();
    let args = args.map(|arg| arg.to_string_lossy().into_owned());
    match name.strip_suffix(".exe").unwrap_or(&name) {
        "kube-apiserver" => Some(kube_apiserver::run(args.collect())),
        "etcd" => Some(etcd::run(args.collect())),
        _ => None,
    }
}
