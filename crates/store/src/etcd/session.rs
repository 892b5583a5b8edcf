//! The login of a client: one token for everybody, fetched once and fetched again when etcd says
//! that it is spent. Without a user and password in the configuration there is no session.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;
use tonic::metadata::AsciiMetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status};

use super::Login;
use super::client::{CallError, failure};
use super::wire::{AuthenticateRequest, auth_client::AuthClient};

pub(super) struct Session {
    login: Login,
    /// Replaced as a whole when the token is spent, so that all who wait share one new login and
    /// nobody forgets a newer token than the one that failed.
    slot: Mutex<Arc<OnceCell<AsciiMetadataValue>>>,
}

/// A token, and the login that it came from.
pub(super) struct Ticket {
    slot: Arc<OnceCell<AsciiMetadataValue>>,
    token: AsciiMetadataValue,
}

impl Ticket {
    pub(super) fn token(&self) -> &AsciiMetadataValue {
        &self.token
    }
}

impl Session {
    pub(super) fn new(login: Login) -> Self {
        Self { login, slot: Mutex::default() }
    }

    /// The present token, or the token of a login made now.
    pub(super) async fn ticket(
        &self,
        endpoint: &str,
        channel: &Channel,
    ) -> Result<Ticket, CallError> {
        let slot = Arc::clone(&self.slot.lock().unwrap_or_else(PoisonError::into_inner));
        let token = slot.get_or_try_init(|| self.authenticate(endpoint, channel)).await?.clone();
        Ok(Ticket { slot, token })
    }

    /// The next call logs in again, unless that has already happened.
    pub(super) fn forget(&self, spent: &Ticket) {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&slot, &spent.slot) {
            *slot = Arc::default();
        }
    }

    async fn authenticate(
        &self,
        endpoint: &str,
        channel: &Channel,
    ) -> Result<AsciiMetadataValue, CallError> {
        let request = Request::new(AuthenticateRequest {
            name: self.login.user.clone(),
            password: self.login.password.clone(),
        });
        let answer = AuthClient::new(channel.clone())
            .authenticate(request)
            .await
            .map_err(|status| failure(endpoint, status))?;
        answer.into_inner().token.parse().map_err(|_| {
            CallError::Unexpected(Status::internal("token is not a header value").into())
        })
    }
}
