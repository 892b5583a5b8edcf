//! Processes as containers, on machines that do not have the means.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use kubewright::{Cache, Clock};

use super::Runtime;
use crate::local::LocalAddresses;

/// As on Linux.
#[derive(Debug, Clone)]
pub struct ProcessConfig {
    pub directory: PathBuf,
    pub hidden: Vec<PathBuf>,
    pub shim: Vec<OsString>,
    pub server: Option<(String, u16)>,
    pub log_bytes_max: u64,
    pub locals: Option<Arc<LocalAddresses>>,
}

/// # Errors
/// Always.
pub async fn process(_: ProcessConfig, _: Cache, _: Clock) -> io::Result<Arc<dyn Runtime>> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "pods run as processes on Linux only"))
}

/// There are none.
pub async fn end_processes(_: &Path, _: Duration) {}

/// There is nothing to stand over.
pub fn shim(_: &[OsString]) -> ExitCode {
    ExitCode::FAILURE
}
