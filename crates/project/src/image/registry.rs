//! Images to a registry, by the distribution protocol.
//!
//! Blobs that are there are not sent again. A registry that wants to know who asks says so, and is
//! told by what `docker login` has left ([`credentials`]).

mod challenge;
pub mod credentials;
mod wire;

use bytes::Bytes;
use http::{Method, Response, StatusCode, header};

pub use self::credentials::Credentials;
use self::wire::Wire;
pub use self::wire::WireError;
use super::{Blob, Index, Reference};

/// Where and as whom.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Without TLS. Registries of this machine are asked so anyway.
    pub plain_http: bool,
    /// None asks as nobody.
    pub credentials: Option<Credentials>,
}

/// What became of an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pushed {
    /// By which it is known for good.
    pub digest: String,
    pub blobs_sent: usize,
    pub blobs_there: usize,
}

/// A part of an image, before it is sent or passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// From 1 to `count`.
    pub number: usize,
    pub count: usize,
    pub bytes: usize,
    /// It is not sent again.
    pub is_there: bool,
}

/// Why an image is not in the registry.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// See whether it runs, and whether TLS is what it speaks.
    #[error("reach the registry {registry}: is it there, and is --plain-http right?")]
    Unreachable { registry: String, source: WireError },
    /// Log in, or ask somebody.
    #[error(
        "push to {registry}/{repository}: it answers {status}: log in with `docker login \
         {registry}`, and see whether you may write there"
    )]
    Refused { registry: String, repository: String, status: StatusCode },
    /// What it says is told.
    #[error("{doing} at {registry}: it answers {status}: {message}")]
    Answer { registry: String, doing: &'static str, status: StatusCode, message: String },
}

/// Sends what is called so, and tells of each part of it.
///
/// # Errors
/// The registry cannot be reached, or does not take it. What was sent until then stays there.
pub async fn push(
    called: &Index,
    to: &Reference,
    options: &Options,
    mut tell: impl FnMut(Part),
) -> Result<Pushed, PushError> {
    let mut session = Session { to, wire: Wire::new(to, options), authorization: None, options };
    let (mut sent, mut there) = (0, 0);
    let count = called.blobs().count();
    for (at, blob) in called.blobs().enumerate() {
        let is_there = session.has(blob).await?;
        tell(Part { number: at + 1, count, bytes: blob.bytes.len(), is_there });
        match is_there {
            true => there += 1,
            false => {
                session.upload(blob).await?;
                sent += 1;
            }
        }
    }
    for manifest in called.manifests() {
        session.name(manifest, &manifest.digest).await?;
    }
    session.name(called.root(), &to.tag).await?;
    let digest = called.root().digest.clone();
    Ok(Pushed { digest, blobs_sent: sent, blobs_there: there })
}

struct Session<'a> {
    to: &'a Reference,
    wire: Wire,
    authorization: Option<String>,
    options: &'a Options,
}

impl Session<'_> {
    async fn has(&mut self, blob: &Blob) -> Result<bool, PushError> {
        let path = format!("/v2/{}/blobs/{}", self.to.repository, blob.digest);
        let answer = self.ask(Method::HEAD, &path, None).await?;
        match answer.status() {
            StatusCode::NOT_FOUND => Ok(false),
            // Some keep blobs elsewhere and say where.
            status if status.is_success() || status.is_redirection() => Ok(true),
            _ => Err(self.refused("look for a blob", &answer)),
        }
    }

    async fn upload(&mut self, blob: &Blob) -> Result<(), PushError> {
        let path = format!("/v2/{}/blobs/uploads/", self.to.repository);
        let answer = self.ask(Method::POST, &path, None).await?;
        let place = answer.headers().get(header::LOCATION).and_then(|it| it.to_str().ok());
        let (StatusCode::ACCEPTED, Some(place)) = (answer.status(), place) else {
            return Err(self.refused("begin to send a blob", &answer));
        };
        let mark = if place.contains('?') { '&' } else { '?' };
        let place = format!("{place}{mark}digest={}", blob.digest);
        let body = (Bytes::from(blob.bytes.clone()), "application/octet-stream");
        let answer = self.ask(Method::PUT, &place, Some(body)).await?;
        match answer.status() {
            StatusCode::CREATED => Ok(()),
            _ => Err(self.refused("send a blob", &answer)),
        }
    }

    /// Sends a manifest under a tag or its digest.
    async fn name(&mut self, manifest: &Blob, name: &str) -> Result<(), PushError> {
        let path = format!("/v2/{}/manifests/{name}", self.to.repository);
        let body = (Bytes::from(manifest.bytes.clone()), manifest.media_type);
        let answer = self.ask(Method::PUT, &path, Some(body)).await?;
        match answer.status() {
            StatusCode::CREATED => Ok(()),
            _ => Err(self.refused("send the manifest", &answer)),
        }
    }

    /// Asks, and once more when it has been said who asks; what was said before may have expired.
    async fn ask(
        &mut self,
        method: Method,
        place: &str,
        body: Option<(Bytes, &str)>,
    ) -> Result<Response<Bytes>, PushError> {
        let unreachable =
            |source| PushError::Unreachable { registry: self.to.registry.clone(), source };
        let authorization = self.authorization.clone();
        let answer = self
            .wire
            .send(method.clone(), place, body.clone(), authorization.as_deref())
            .await
            .map_err(unreachable)?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return Ok(answer);
        }
        let asked = answer.headers().get(header::WWW_AUTHENTICATE);
        let asked = asked.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let credentials = self.options.credentials.as_ref();
        let scope = format!("repository:{}:pull,push", self.to.repository);
        let told =
            challenge::answer(&self.wire, asked, &scope, credentials).await.map_err(unreachable)?;
        // What has been refused is refused again.
        let Some(authorization) = told.filter(|it| authorization.as_ref() != Some(it)) else {
            return Ok(answer);
        };
        self.authorization = Some(authorization.clone());
        self.wire.send(method, place, body, Some(&authorization)).await.map_err(unreachable)
    }

    fn refused(&self, doing: &'static str, answer: &Response<Bytes>) -> PushError {
        let (registry, status) = (self.to.registry.clone(), answer.status());
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                let repository = self.to.repository.clone();
                PushError::Refused { registry, repository, status }
            }
            _ => {
                let message = String::from_utf8_lossy(answer.body()).trim().to_owned();
                PushError::Answer { registry, doing, status, message }
            }
        }
    }
}
