//! Who makes a request.
//!
//! Asked in this order: an identity given in memory, a proxy, a client certificate, a bearer token (in the
//! header, or in the subprotocol of a WebSocket, since browsers can set no headers there). Whoever
//! shows nothing is anonymous; whoever shows something wrong is refused. An identified client may
//! then act as somebody else.
//!
//! Nothing here writes: upstream notes on the secrets of legacy tokens when they were last used.

mod certificate;
mod front_proxy;
mod impersonation;
pub mod key;
mod service_account;
mod static_token;
pub mod token;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::{AUTHORIZATION, CONNECTION, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use http::request::Parts;
use kubewright_apimachinery::status::Status;

use crate::authz::{Authorizer, aggregate};
use crate::edge::{Peer, Shown};
use crate::index::Store;
use crate::user::{AUTHENTICATED, UNAUTHENTICATED, User};
use certificate::CertificateError;
pub(crate) use certificate::Certified;
pub use front_proxy::FrontProxy;
pub use impersonation::Impersonated;
pub use service_account::Verifier;
pub use static_token::{StaticTokens, StaticTokensError};

/// Tells who makes a request.
#[derive(Debug)]
pub struct Authenticator {
    pub store: Store,
    /// Decides who may act as somebody else.
    pub authorizer: Arc<Authorizer>,
    pub static_tokens: StaticTokens,
    pub service_accounts: Verifier,
    /// Proxies that say on whose behalf they ask.
    pub front_proxy: Option<FrontProxy>,
    /// Whether requests without credentials are served at all.
    pub anonymous: bool,
    impersonation: impersonation::Memory,
}

/// Somebody identified by a token, and for which audiences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenUser {
    pub user: User,
    pub audiences: Vec<String>,
}

impl Authenticator {
    pub fn new(
        store: Store,
        authorizer: Arc<Authorizer>,
        static_tokens: StaticTokens,
        service_accounts: Verifier,
    ) -> Self {
        Authenticator {
            store,
            authorizer,
            static_tokens,
            service_accounts,
            front_proxy: None,
            anonymous: true,
            impersonation: impersonation::Memory::default(),
        }
    }

    /// Who makes the request, or on whose behalf.
    pub fn identify(&self, parts: &Parts) -> Result<Arc<User>, Box<Status>> {
        let user = self.authenticate(parts)?;
        Ok(match self.impersonate(&user, parts)? {
            Some(impersonated) => Arc::new(impersonated.user),
            None => user,
        })
    }

    /// Who shows the credentials of the request.
    pub fn authenticate(&self, parts: &Parts) -> Result<Arc<User>, Box<Status>> {
        // Only a caller in this process can set it.
        if let Some(user) = parts.extensions.get::<Arc<User>>() {
            return Ok(Arc::clone(user));
        }
        let mut failed = false;
        let now = self.store.config().clock.now();
        let peer = parts.extensions.get::<Arc<Peer>>();
        if let Some(proxy) = &self.front_proxy
            && let Some(certificate) = peer.and_then(|peer| peer.proxy.as_ref())
        {
            match proxy.user(certificate, &parts.headers, now) {
                Ok(Some(user)) => return Ok(Arc::new(authenticated(user))),
                Ok(None) => {}
                Err(error) => {
                    tracing::debug!(error = %error, "proxy refused");
                    failed = true;
                }
            }
        }
        match peer.map_or(Ok(None), |peer| certified(peer, now)) {
            Ok(Some(user)) => return Ok(user),
            Ok(None) => {}
            Err(error) => {
                tracing::debug!(error = %error, "certificate refused");
                failed = true;
            }
        }
        match bearer(&parts.headers) {
            Ok(None) => {}
            Ok(Some(token)) => match self.token(&token, &self.service_accounts.audiences) {
                Ok(found) => return Ok(Arc::new(found.user)),
                Err(error) => {
                    tracing::debug!(error, "token refused");
                    failed = true;
                }
            },
            Err(error) => {
                tracing::debug!(error, "token refused");
                failed = true;
            }
        }
        match failed || !self.anonymous {
            true => Err(Box::new(Status::unauthorized("Unauthorized"))),
            false => Ok(Arc::new(User::anonymous())),
        }
    }

    /// Whether whoever was not [authenticated](Self::authenticate) may be now: see
    /// [`catch_up`](Self::catch_up).
    pub async fn catch_up_with(&self, parts: &Parts) -> bool {
        match bearer(&parts.headers) {
            Ok(Some(token)) => self.catch_up(&token).await,
            _ => false,
        }
    }

    /// Whether a token that was refused may be good now. Its account, or what else it is bound to,
    /// may have been made by another server on the same storage a moment ago; in that case this
    /// returns when this server has been told.
    pub async fn catch_up(&self, token: &str) -> bool {
        self.service_accounts.lacks_ground(&self.store, token) && self.store.latest().await.is_ok()
    }

    /// Who the client acts as, if it asks to.
    pub fn impersonate(
        &self,
        user: &User,
        parts: &Parts,
    ) -> Result<Option<Impersonated>, Box<Status>> {
        impersonation::impersonate(&self.authorizer, &self.impersonation, user, parts)
    }

    /// Whom a token stands for, with those of `audiences` that it is meant for. The error is for
    /// the eyes of those who may review tokens.
    pub fn token(&self, token: &str, audiences: &[String]) -> Result<TokenUser, String> {
        let own = &self.service_accounts.audiences;
        if let Some(user) = self.static_tokens.get(token) {
            // These say nothing of audiences, so they are for the server alone.
            let audiences: Vec<String> =
                own.iter().filter(|own| audiences.contains(own)).cloned().collect();
            if !audiences.is_empty() || own.is_empty() {
                return Ok(TokenUser { user: authenticated(user.clone()), audiences });
            }
        }
        match self.service_accounts.verify(&self.store, token, audiences) {
            Ok(Some(found)) => Ok(TokenUser { user: authenticated(found.user), ..found }),
            Ok(None) => Err(INVALID_TOKEN.to_owned()),
            Err(error) => Err(aggregate([INVALID_TOKEN.to_owned(), error.to_string()].iter())),
        }
    }
}

const INVALID_TOKEN: &str = "invalid bearer token";

/// Whom the other end's certificate stands for. It is read once for a connection, and is good for
/// as long as it says: connections may last longer.
fn certified(peer: &Peer, now: Duration) -> Result<Option<Arc<User>>, CertificateError> {
    let certified = match peer.certified.get() {
        Some(certified) => certified,
        None => {
            let certified = match &peer.shown {
                Shown::Nothing => None,
                Shown::Trusted(certificate) => certificate::user(certificate)?,
                Shown::Untrusted => return Err(CertificateError::Untrusted),
            };
            peer.certified.get_or_init(|| certified)
        }
    };
    match certified {
        Some(found) if found.is_expired(now) => Err(CertificateError::Expired),
        Some(found) => Ok(Some(Arc::clone(&found.user))),
        None => Ok(None),
    }
}

/// A user with the group of all who were identified, unless the credential says otherwise.
fn authenticated(mut user: User) -> User {
    if !user.is_in(AUTHENTICATED) && !user.is_in(UNAUTHENTICATED) {
        user.groups.push(AUTHENTICATED.to_owned());
    }
    user
}

/// The token of a request, from wherever it may be.
fn bearer(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, &'static str> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let value = String::from_utf8_lossy(value.as_bytes());
        let mut words = value.trim().splitn(3, ' ');
        if words.next().is_some_and(|scheme| scheme.eq_ignore_ascii_case("bearer"))
            && let Some(token) = words.next().filter(|token| !token.is_empty())
        {
            return Ok(Some(Cow::Owned(token.to_owned())));
        }
    }
    match is_websocket(headers) {
        true => subprotocol(headers),
        false => Ok(None),
    }
}

/// Whether a request asks to go on as a WebSocket.
pub(crate) fn is_websocket(headers: &HeaderMap) -> bool {
    let values = |name| headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let upgrades = values(CONNECTION)
        .flat_map(|value| value.split(','))
        .any(|word| word.trim().eq_ignore_ascii_case("upgrade"));
    upgrades && values(UPGRADE).any(|value| value.eq_ignore_ascii_case("websocket"))
}

/// What a subprotocol begins with that is a token in base64.
pub(crate) const TOKEN_PROTOCOL: &str = "base64url.bearer.authorization.k8s.io.";

/// The token among the subprotocols of a WebSocket. There must be another one, since the server
/// answers with the one it chose, and must not answer with a token.
fn subprotocol(headers: &HeaderMap) -> Result<Option<Cow<'_, str>>, &'static str> {
    let mut tokens = Vec::new();
    let mut others = 0;
    let values = headers.get_all(SEC_WEBSOCKET_PROTOCOL).iter();
    for protocol in values.filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(',')) {
        match protocol.trim().strip_prefix(TOKEN_PROTOCOL) {
            Some(encoded) => tokens.push(encoded),
            None => others += 1,
        }
    }
    let encoded = match tokens.as_slice() {
        [] => return Ok(None),
        [one] => one,
        _ => return Err("multiple base64.bearer.authorization tokens specified"),
    };
    let token = URL_SAFE_NO_PAD
        .decode(encoded)
        .map_err(|_| "invalid base64.bearer.authorization token encoding")?;
    let token =
        String::from_utf8(token).map_err(|_| "invalid base64.bearer.authorization token")?;
    match (token.is_empty(), others) {
        (true, _) => Ok(None),
        (false, 0) => Err("missing additional subprotocol"),
        (false, _) => Ok(Some(Cow::Owned(token))),
    }
}
