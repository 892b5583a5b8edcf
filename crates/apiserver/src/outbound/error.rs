//! What goes wrong with calls, as Go's client says it.

use std::fmt;
use std::io;

use http::Method;
use http_body_util::LengthLimitError;

/// Why a call has no answer.
#[derive(Debug)]
pub(crate) struct CallError {
    /// What was requested, where that is told.
    request: Option<String>,
    cause: Cause,
}

#[derive(Debug)]
pub(super) enum Cause {
    /// A service that leads nowhere.
    Unresolved(String),
    Unreachable(String),
    /// The server is not who it should be, or does not speak TLS.
    Insecure(String),
    Broken(String),
    TooLong,
    TimedOut,
}

impl CallError {
    /// Whether the server did not answer in time.
    pub(crate) fn is_timeout(&self) -> bool {
        matches!(self.cause, Cause::TimedOut)
    }

    pub(super) fn about(self, method: &Method, url: &str) -> Self {
        let mut word = method.as_str().to_ascii_lowercase();
        word[..1].make_ascii_uppercase();
        CallError { request: Some(format!("{word} \"{url}\"")), ..self }
    }
}

impl From<Cause> for CallError {
    fn from(cause: Cause) -> Self {
        CallError { request: None, cause }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(request) = &self.request {
            write!(f, "{request}: ")?;
        }
        match &self.cause {
            Cause::Unresolved(why)
            | Cause::Unreachable(why)
            | Cause::Insecure(why)
            | Cause::Broken(why) => f.write_str(why),
            Cause::TooLong => f.write_str("http: response body too large"),
            Cause::TimedOut => f.write_str("context deadline exceeded"),
        }
    }
}

impl std::error::Error for CallError {}

impl Cause {
    /// A connection that could not be made.
    pub(super) fn of_dial(address: &str, error: &io::Error) -> Self {
        Cause::Unreachable(format!("dial tcp {address}: connect: {}", system_text(error)))
    }

    /// An exchange that broke off.
    pub(super) fn of_hyper(error: &hyper::Error, ends: &str) -> Self {
        let found = sources(error).find_map(|error| error.downcast_ref::<io::Error>());
        match found {
            Some(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Cause::Broken(format!("read tcp {ends}: read: {}", system_text(error)))
            }
            _ if error.is_parse() => Cause::Broken(
                "net/http: HTTP/1.x transport connection broken: malformed HTTP response"
                    .to_owned(),
            ),
            _ => Cause::Broken("EOF".to_owned()),
        }
    }

    /// An answer that broke off.
    pub(super) fn of_body(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        match error.is::<LengthLimitError>() {
            true => Cause::TooLong,
            false => Cause::Broken("unexpected EOF".to_owned()),
        }
    }
}

/// What the system calls an error, without its number.
pub(super) fn system_text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::ConnectionReset => "connection reset by peer".to_owned(),
        io::ErrorKind::BrokenPipe => "broken pipe".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => {
            let text = error.to_string();
            let bare = text.split(" (os error").next().unwrap_or_default();
            bare.to_ascii_lowercase()
        }
    }
}

fn sources<'a>(
    error: &'a (dyn std::error::Error + 'static),
) -> impl Iterator<Item = &'a (dyn std::error::Error + 'static)> {
    std::iter::successors(Some(error), |error| error.source())
}
