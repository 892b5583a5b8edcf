//! Reads a log while it grows: told by the kernel that it has, never by looking again and again.

#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use futures::StreamExt as _;
use futures::stream::BoxStream;
use rustix::fs::inotify;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

const CHUNK: usize = 64 * 1024;

/// What is in a log, the part that was put aside first. If `follow`, what is appended too, until
/// the file `end` is there, or nothing is: who forgets a pod takes its logs away.
pub(super) fn follow(
    log: PathBuf,
    end: PathBuf,
    follow: bool,
) -> BoxStream<'static, io::Result<Vec<u8>>> {
    let tail = Tail { log, end, follow, file: None, old: None, changes: None, begun: false };
    let stream = futures::stream::unfold(tail, |mut tail| async move {
        let next = tail.next().await.transpose()?;
        Some((next, tail))
    });
    stream.boxed()
}

struct Tail {
    log: PathBuf,
    end: PathBuf,
    follow: bool,
    /// The part that was put aside.
    old: Option<File>,
    file: Option<File>,
    changes: Option<pipe::Receiver>,
    begun: bool,
}

impl Tail {
    async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        if !self.begun {
            self.begun = true;
            // Before anything is read, so that nothing is missed between reading and waiting.
            self.changes = if self.follow { Some(self.watch()?) } else { None };
            self.old = File::open(self.log.with_extension("1")).ok();
        }
        loop {
            let is_over = self.end.exists() || !self.directory().exists();
            if let Some(bytes) = self.read()? {
                return Ok(Some(bytes));
            }
            let Some(changes) = self.changes.as_mut().filter(|_| !is_over) else {
                return Ok(None);
            };
            // What changed is found by looking, however much of it was told.
            let mut events = [0; 4096];
            let _ = changes.read(&mut events).await?;
        }
    }

    fn watch(&self) -> io::Result<pipe::Receiver> {
        let fd = inotify::init(inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC)?;
        let kinds = inotify::WatchFlags::MODIFY
            | inotify::WatchFlags::CREATE
            | inotify::WatchFlags::MOVED_TO
            | inotify::WatchFlags::DELETE
            | inotify::WatchFlags::DELETE_SELF
            | inotify::WatchFlags::MOVE_SELF;
        inotify::add_watch(&fd, self.directory(), kinds)?;
        // It is read as a pipe is.
        pipe::Receiver::from_owned_fd_unchecked(fd)
    }

    fn directory(&self) -> &Path {
        self.log.parent().unwrap_or(&self.log)
    }

    fn read(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(old) = &mut self.old {
            if let Some(bytes) = chunk(old)? {
                return Ok(Some(bytes));
            }
            self.old = None;
        }
        if let Some(file) = &mut self.file {
            if let Some(bytes) = chunk(file)? {
                return Ok(Some(bytes));
            }
            // It was put aside, and is read to its end: the next one begins.
            let is_same = std::fs::metadata(&self.log)
                .and_then(|now| Ok(now.ino() == file.metadata()?.ino()))
                .unwrap_or(false);
            if is_same {
                return Ok(None);
            }
        }
        match File::open(&self.log) {
            Ok(mut file) => {
                file.seek(SeekFrom::Start(0))?;
                let bytes = chunk(&mut file)?;
                self.file = Some(file);
                Ok(bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn chunk(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = vec![0; CHUNK];
    let n_bytes = file.read(&mut bytes)?;
    bytes.truncate(n_bytes);
    Ok((n_bytes > 0).then_some(bytes))
}
