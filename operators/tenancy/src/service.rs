//! A service outside the cluster that speaks HTTP.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use http::{Method, Request, StatusCode, Uri, header};
use kube::client::Body;
use kube::{Client, Config};
use serde_json::Value;

/// A service at an address. It is tried anew with each call.
#[derive(Debug)]
pub(crate) struct Service {
    url: Uri,
    /// Whom to believe instead of those that the machine does.
    ca: Option<PathBuf>,
    answer_max: Duration,
    /// Made when it is first needed: operators are declared before anything runs.
    client: OnceLock<Connection>,
}

/// Why there is no answer. Whatever it is, it may be better the next time.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("{url} did not answer within {answer_max:?}")]
    Slow { url: Uri, answer_max: Duration },
    #[error("reach {url}")]
    Unreachable { url: Uri, source: kube::Error },
    #[error("{url} answered {status}")]
    Unexpected { url: Uri, status: StatusCode },
}

/// `kube`'s client is one of HTTP, too: with timeouts, TLS, and authorities of one's own.
struct Connection(Client);

impl Service {
    pub(crate) fn new(url: Uri, ca: Option<PathBuf>, answer_max: Duration) -> Self {
        Service { url, ca, answer_max, client: OnceLock::new() }
    }

    /// Whether there is something at a path.
    pub(crate) async fn has(&self, path: &str) -> Result<bool, CallError> {
        match self.call(Method::GET, path, Vec::new()).await? {
            StatusCode::NOT_FOUND => Ok(false),
            status if status.is_success() => Ok(true),
            status => Err(CallError::Unexpected { url: self.url.clone(), status }),
        }
    }

    /// Puts a document at a path. To do it again is the same as to do it once.
    pub(crate) async fn put(&self, path: &str, document: &Value) -> Result<(), CallError> {
        let status = self.call(Method::PUT, path, document.to_string().into_bytes()).await?;
        match status.is_success() {
            true => Ok(()),
            false => Err(CallError::Unexpected { url: self.url.clone(), status }),
        }
    }

    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<StatusCode, CallError> {
        let unreachable = |source| CallError::Unreachable { url: self.url.clone(), source };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header(header::CONTENT_TYPE, "application/json")
            .body(Body::from(body))
            .map_err(|error| unreachable(kube::Error::HttpError(error)))?;
        let client = self.client().map_err(unreachable)?;
        match tokio::time::timeout(self.answer_max, client.send(request)).await {
            Ok(answer) => Ok(answer.map_err(unreachable)?.status()),
            Err(_) => {
                let answer_max = self.answer_max;
                Err(CallError::Slow { url: self.url.clone(), answer_max })
            }
        }
    }

    fn client(&self) -> Result<&Client, kube::Error> {
        if let Some(Connection(client)) = self.client.get() {
            return Ok(client);
        }
        let mut config = Config::new(self.url.clone());
        config.root_cert_file.clone_from(&self.ca);
        config.default_retry = false;
        let client = Client::try_from(config)?;
        Ok(&self.client.get_or_init(|| Connection(client)).0)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Connection")
    }
}
