//! The services outside the cluster: a real server that knows users and hears of closures, and can
//! be slow, closed, or somebody else.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Method, StatusCode, Uri};
use jiff::Timestamp;
use kubewright::certificate::{self, Current, Kept, Wanted};
use kubewright::serve::{Answer, Bind, Listener};
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How it answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Fine,
    /// Not before it is in another mood.
    Slow,
    Failing,
    /// It does what it is asked, and then cannot say so.
    Forgetful,
}

pub(crate) struct Office {
    desk: Arc<Desk>,
    address: SocketAddr,
    kept: Option<Kept>,
    folder: TempDir,
    shutdown: CancellationToken,
    tasks: JoinSet<()>,
}

struct Desk {
    mood: watch::Sender<Mood>,
    closures: Mutex<BTreeSet<String>>,
    /// How often closures were told, whether or not for the first time.
    told: watch::Sender<usize>,
}

impl Office {
    /// One that speaks HTTP.
    pub(crate) async fn open() -> Self {
        Office::with(None).await
    }

    /// One that speaks HTTPS, with a certificate of an authority of its own.
    pub(crate) async fn open_secured() -> Self {
        let (kept, wanted) = (Kept::default(), Wanted::for_localhost());
        let kept = certificate::plan(&kept, &wanted, true, Timestamp::now());
        Office::with(Some(kept.expect("certificates"))).await
    }

    async fn with(kept: Option<Kept>) -> Self {
        let desk = Desk {
            mood: watch::Sender::new(Mood::Fine),
            closures: Mutex::default(),
            told: watch::Sender::new(0),
        };
        let mut office = Office {
            desk: Arc::new(desk),
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            kept,
            folder: tempfile::tempdir().expect("a folder"),
            shutdown: CancellationToken::new(),
            tasks: JoinSet::new(),
        };
        office.reopen().await;
        office
    }

    /// Opens it where it was before.
    pub(crate) async fn reopen(&mut self) {
        let listener = Listener::bind("office", &Bind::At(self.address)).await;
        let mut listener = listener.expect("a place");
        self.address = listener.address();
        if let Some(kept) = &self.kept {
            let current = Current::new();
            current.show(kept.serving.clone()).expect("a certificate");
            listener = listener.secured(current);
        }
        self.shutdown = CancellationToken::new();
        let desk = Arc::clone(&self.desk);
        let answer = move |request: http::Request<_>| {
            let (method, path) = (request.method().clone(), request.uri().path().to_owned());
            let desk = Arc::clone(&desk);
            async move { desk.answer(&method, &path).await }
        };
        self.tasks.spawn(listener.run(answer, self.shutdown.clone()));
    }

    pub(crate) async fn close(&mut self) {
        self.shutdown.cancel();
        // Those who wait for it are let go.
        self.tasks.shutdown().await;
    }

    pub(crate) fn url(&self) -> Uri {
        let scheme = if self.kept.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address).parse().expect("an address")
    }

    /// A file of those whom clients of this office believe.
    pub(crate) fn ca(&self) -> PathBuf {
        let path = self.folder.path().join("ca.pem");
        let bundle = self.kept.as_ref().expect("it is secured").bundle();
        std::fs::write(&path, bundle).expect("a file");
        path
    }

    pub(crate) fn set(&self, mood: Mood) {
        self.desk.mood.send_replace(mood);
    }

    /// The closures that it knows of.
    pub(crate) fn closures(&self) -> Vec<String> {
        self.desk.closures().iter().cloned().collect()
    }

    pub(crate) fn told(&self) -> usize {
        *self.desk.told.borrow()
    }

    /// Waits until it was told of closures so often.
    pub(crate) async fn is_told(&self, times: usize) {
        let mut told = self.desk.told.subscribe();
        told.wait_for(|told| *told >= times).await.expect("it is open");
    }
}

impl Desk {
    async fn answer(&self, method: &Method, path: &str) -> Answer {
        let mut moods = self.mood.subscribe();
        let mood = *moods.wait_for(|mood| *mood != Mood::Slow).await.expect("its owner is here");
        let status = match mood {
            Mood::Failing => StatusCode::INTERNAL_SERVER_ERROR,
            Mood::Fine | Mood::Slow => self.work(method, path),
            Mood::Forgetful => {
                self.work(method, path);
                StatusCode::BAD_GATEWAY
            }
        };
        let mut answer = Answer::default();
        *answer.status_mut() = status;
        answer
    }

    fn work(&self, method: &Method, path: &str) -> StatusCode {
        match (method, path.split_at(path.rfind('/').map_or(0, |at| at + 1))) {
            (&Method::GET, ("/users/", "sam" | "ada")) => StatusCode::OK,
            (&Method::PUT, ("/closures/", uid)) => {
                self.closures().insert(uid.to_owned());
                self.told.send_modify(|told| *told += 1);
                StatusCode::NO_CONTENT
            }
            _ => StatusCode::NOT_FOUND,
        }
    }

    fn closures(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.closures.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
