//! Takes in memory what a process writes, up to a bound.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncWrite;

/// How much of it is kept.
const BYTES_MAX: usize = 10 * 1024;

/// The beginning of what a command writes.
#[derive(Clone, Default)]
pub(super) struct Output(Arc<Mutex<Vec<u8>>>);

impl Output {
    pub(super) fn take(&self) -> Vec<u8> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<std::io::Result<usize>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = BYTES_MAX.saturating_sub(kept.len()).min(bytes.len());
        kept.extend_from_slice(&bytes[..room]);
        std::task::Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }

    fn poll_shutdown(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<std::io::Result<()>> {
        std::task::Poll::Ready(Ok(()))
    }
}
