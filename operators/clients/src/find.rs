//! Where the cluster is, and which language is spoken with it.

use std::ffi::OsString;
use std::path::Path;

use kube::Client;
use kubewright::connect::{self, ConnectError, Options};

/// A client for a program that runs anywhere: in a pod, by the service account that is mounted
/// there; elsewhere, by a kubeconfig.
///
/// # Errors
/// There is no cluster; it says where it was looked for.
pub async fn client(
    kubeconfig: Option<&Path>,
    environment: impl Fn(&str) -> Option<OsString> + Sync,
) -> Result<Client, ConnectError> {
    connect::find(kubeconfig, environment).await?.client(&Options::default())
}

/// The same, in protobuf for built-in kinds. The server answers in JSON what it has no protobuf
/// for, which is every custom resource.
///
/// # Errors
/// There is no cluster; it says where it was looked for.
pub async fn client_in_protobuf(
    kubeconfig: Option<&Path>,
    environment: impl Fn(&str) -> Option<OsString> + Sync,
) -> Result<Client, ConnectError> {
    let options = Options { protobuf: true, ..Options::default() };
    connect::find(kubeconfig, environment).await?.client(&options)
}
