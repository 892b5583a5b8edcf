//! What a reconcile is asked, and what it answers.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::core::Status;

use crate::chain::chain;
use crate::control_loop::Writes;
use crate::key::ObjectKey;
use crate::queue::Causes;
use crate::shard::Work;

/// Which object to bring about. It does not say what happened, only what is.
#[derive(Debug, Clone)]
pub struct Request<K> {
    pub key: ObjectKey,
    /// The object as the cache has it; none if it is gone.
    pub object: Option<Arc<K>>,
    /// How often in a row this has failed before.
    pub failures: u32,
    /// Why: for people, in logs. Never decide by it.
    pub causes: Causes,
    pub(crate) writes: Arc<Writes>,
    pub(crate) work: Option<Arc<Work>>,
}

impl<K> Request<K> {
    /// Takes note that this reconcile has left the object in this version, which is wholly what it
    /// wants: to see it is no reason to reconcile the object again.
    pub fn wrote(&self, version: &str) {
        self.writes.note(&self.key, version);
    }

    /// What makes the key this replica's, if keys are shared out: whoever writes does so with its
    /// client.
    pub fn work(&self) -> Option<&Work> {
        self.work.as_deref()
    }
}

/// What is to come after a reconcile that succeeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Nothing, until something changes.
    Done,
    /// Again, after a pause that grows as after a failure.
    Requeue,
    /// Again after this time, if nothing changes before.
    RequeueAfter(Duration),
}

/// Why a reconcile failed. Whatever is an error becomes one that is worth another try; say
/// [`Error::terminal`] of what will be no better the next time.
pub struct Error {
    cause: Box<dyn StdError + Send + Sync>,
    terminal: bool,
    /// It is not tried again before so much time has passed.
    pause: Option<Duration>,
}

/// How long whoever asks too much stays away if the server does not say: upstream's says it only in
/// a header, of which clients tell nothing.
const TOO_MANY_REQUESTS_PAUSE: Duration = Duration::from_secs(1);

impl Error {
    /// It is not tried again until something changes: the object itself is wrong. What the reconcile
    /// has changed in it, as a condition that says so, is written before; that is tried again.
    pub fn terminal(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Error { cause: cause.into(), terminal: true, pause: None }
    }

    /// It is tried again. For what is no error by type, such as a text.
    pub fn retry(cause: impl Into<Box<dyn StdError + Send + Sync>>) -> Self {
        Error { cause: cause.into(), terminal: false, pause: None }
    }

    /// It is not tried again before so much time has passed, whatever changes meanwhile: what
    /// somebody else than the API server has asked for, whose word is heeded without this.
    ///
    /// ```
    /// use std::time::Duration;
    /// use kubewright::Error;
    ///
    /// let error = Error::retry("the registry has too much to do").after(Duration::from_secs(30));
    /// assert_eq!(error.not_before(), Some(Duration::from_secs(30)));
    /// ```
    pub fn after(self, pause: Duration) -> Self {
        Error { pause: Some(pause), ..self }
    }

    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// How long it is not tried again at least: as it was told to [wait](Error::after), or as the API
    /// server has said in the answer that this error is about (`retryAfterSeconds`; a second after
    /// a 429 without).
    pub fn not_before(&self) -> Option<Duration> {
        self.pause.or_else(|| asked(self.cause()))
    }

    pub fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.cause
    }
}

/// How long the server wants to be left alone, by the first of its answers in a chain.
fn asked(cause: &(dyn StdError + Send + Sync + 'static)) -> Option<Duration> {
    let mut link: Option<&(dyn StdError + 'static)> = Some(cause);
    while let Some(error) = link {
        if let Some(status) = answer(error) {
            let seconds = status.details.as_ref().map_or(0, |details| details.retry_after_seconds);
            return match (seconds, status.code) {
                (0, 429) => Some(TOO_MANY_REQUESTS_PAUSE),
                (0, _) => None,
                (seconds, _) => Some(Duration::from_secs(seconds.into())),
            };
        }
        link = error.source();
    }
    None
}

/// What the server said, in whatever form an error has it: one that only passes on another is not
/// seen as that other.
fn answer<'e>(error: &'e (dyn StdError + 'static)) -> Option<&'e Status> {
    match error.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) => return Some(&**status),
        Some(_) => return None,
        None => {}
    }
    let boxed = error.downcast_ref::<Box<Status>>().map(|status| &**status);
    boxed.or_else(|| error.downcast_ref::<Status>())
}

impl<E: StdError + Send + Sync + 'static> From<E> for Error {
    fn from(cause: E) -> Self {
        Error::retry(cause)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The whole chain, since this is where errors end.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&chain(&*self.cause))
    }
}

#[cfg(test)]
mod tests {
    use kube::core::response::StatusDetails;

    use super::*;

    /// Has another error, and says nothing itself.
    #[derive(Debug, thiserror::Error)]
    enum Passing {
        #[error(transparent)]
        On(#[from] kube::Error),
    }

    /// Has another error, and says what for.
    #[derive(Debug, thiserror::Error)]
    #[error("greet")]
    struct Greeting(#[source] Passing);

    fn said(code: u16, seconds: u32) -> kube::Error {
        let details = StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes: Vec::new(),
            retry_after_seconds: seconds,
        };
        let status = Status::failure("not now", "Busy").with_code(code);
        let status = if seconds == 0 { status } else { status.with_details(details) };
        kube::Error::Api(status.boxed())
    }

    #[test]
    fn an_error_knows_how_long_the_server_wants_to_be_left_alone() {
        fn check(error: impl Into<Error>, seconds: Option<u64>) {
            assert_eq!(error.into().not_before(), seconds.map(Duration::from_secs));
        }
        check(said(429, 7), Some(7));
        check(said(503, 7), Some(7));
        // As upstream's server puts it when it has too many requests at a time.
        check(said(429, 0), Some(1));
        check(said(503, 0), None);
        check(said(500, 0), None);
        check(Passing::On(said(429, 7)), Some(7));
        check(Greeting(Passing::On(said(503, 9))), Some(9));
        check(Error::retry("a text"), None);
        check(Error::retry(said(429, 7)).after(Duration::from_secs(3)), Some(3));
    }
}
