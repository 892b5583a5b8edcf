//! Containers by a runtime that speaks CRI, on machines that do not have the means.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kubewright::{Cache, Clock};

use super::Runtime;

/// As on Linux.
#[derive(Debug, Clone)]
pub struct CriConfig {
    pub socket: PathBuf,
    pub directory: PathBuf,
    pub server: Option<(String, u16)>,
    pub host: IpAddr,
    pub dns: Option<IpAddr>,
    pub log_bytes_max: u64,
}

/// Why containers cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum CriError {
    #[error("run containers with {}: that is done on Linux only", socket.display())]
    Unsupported { socket: PathBuf },
}

/// # Errors
/// Always.
pub async fn cri(config: CriConfig, _: Cache, _: Clock) -> Result<Arc<dyn Runtime>, CriError> {
    Err(CriError::Unsupported { socket: config.socket })
}

/// There are none.
pub async fn end_containers(_: &Path, _: Duration, _: bool) {}

/// There are none.
///
/// # Errors
/// Never.
pub fn unmount_volumes(_: &Path) -> std::io::Result<()> {
    Ok(())
}

/// Why an image is not there.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("load images at {}: that is done on Linux only", socket.display())]
    Unsupported { socket: PathBuf },
}

/// # Errors
/// Always.
pub async fn load_images(socket: &Path, _: &Path, _: Timestamp) -> Result<Vec<String>, LoadError> {
    Err(LoadError::Unsupported { socket: socket.to_owned() })
}
