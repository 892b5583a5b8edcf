//! Webhooks where the API server can reach them.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use jiff::Timestamp;
use tokio_util::sync::CancellationToken;

use super::metrics::Metrics;
use super::registration::{Place, Trust};
use super::{PORT, Webhooks};
use crate::certificate::{self, Current, IssueError, Kept, PairError, Wanted};
use crate::serve::{Bind, BindError, Check, Listener};

/// Serves webhooks over TLS.
pub struct Server {
    webhooks: Arc<Webhooks>,
    metrics: Arc<Metrics>,
    listener: Listener,
}

/// Why webhooks are not served on this machine.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    #[error("make a certificate for webhooks")]
    Issue(#[from] IssueError),
    #[error("show a certificate for webhooks")]
    Show(#[from] PairError),
    #[error("find a place for webhooks")]
    Bind(#[from] BindError),
}

impl Server {
    /// Where webhooks are served unless said otherwise: at all addresses.
    pub const BIND: Bind = Bind::Port(PORT);

    /// Takes its place, so that it is known where it is. Who connects waits until it runs.
    ///
    /// # Errors
    /// If the place is taken.
    pub async fn bind(
        bind: &Bind,
        webhooks: Arc<Webhooks>,
        metrics: Arc<Metrics>,
        certificate: Current,
    ) -> Result<Self, BindError> {
        for path in webhooks.paths() {
            metrics.expect(path);
        }
        let listener = Listener::bind("webhooks", bind).await?.secured(certificate);
        Ok(Server { webhooks, metrics, listener })
    }

    /// A server that is called on its own machine, such as by a cluster that a developer or a test
    /// has started: wherever there is a place, and with a certificate of its own making. Says where
    /// it is and whom to believe, for [`super::install`].
    ///
    /// # Errors
    /// If there is no place, or no certificate can be made.
    pub async fn local(
        webhooks: Arc<Webhooks>,
        metrics: Arc<Metrics>,
        now: Timestamp,
    ) -> Result<(Self, Place, Trust), LocalError> {
        let bind = Bind::At((Ipv4Addr::LOCALHOST, 0).into());
        Server::called_at(None, Some(&bind), webhooks, metrics, now).await
    }

    /// A server that is called at a `host` at which others reach this machine: where `bind` says, or
    /// else wherever there is a place at that host, at all addresses if the host is a name. Without
    /// a host it is called where it is.
    ///
    /// # Errors
    /// If there is no place, or no certificate can be made.
    pub async fn called_at(
        host: Option<&str>,
        bind: Option<&Bind>,
        webhooks: Arc<Webhooks>,
        metrics: Arc<Metrics>,
        now: Timestamp,
    ) -> Result<(Self, Place, Trust), LocalError> {
        let address = |host: &str| host.parse::<IpAddr>().ok();
        let bind = match (bind, host) {
            (Some(bind), _) => bind.clone(),
            (None, None | Some("localhost")) => Bind::At((Ipv4Addr::LOCALHOST, 0).into()),
            (None, Some(host)) => match address(host) {
                Some(address) => Bind::At((address, 0).into()),
                None => Bind::Port(0),
            },
        };
        let host = match (host, &bind) {
            (Some(host), _) => host.to_owned(),
            (None, Bind::At(at)) if !at.ip().is_unspecified() => at.ip().to_string(),
            (None, _) => Ipv4Addr::LOCALHOST.to_string(),
        };
        let wanted = Wanted::for_host(&host);
        let kept = certificate::plan(&Kept::default(), &wanted, true, now)?;
        let certificate = Current::new();
        certificate.show(kept.serving.clone())?;
        let server = Server::bind(&bind, webhooks, metrics, certificate).await?;
        let port = server.address().port();
        let place = Place::Url(match address(&host) {
            Some(address) => format!("https://{}", SocketAddr::new(address, port)),
            None => format!("https://{host}:{port}"),
        });
        Ok((server, place, Trust::Bundle(kept.bundle())))
    }

    /// Also speaks HTTP/2, which is off by default, as in what kubebuilder makes: its servers have
    /// been brought down by resets of streams more than once.
    pub fn http2(self, is_on: bool) -> Self {
        Server { listener: self.listener.http2(is_on), ..self }
    }

    pub fn address(&self) -> SocketAddr {
        self.listener.address()
    }

    /// Whether it answers: connections to it can be secured.
    pub fn check(&self) -> Check {
        self.listener.check()
    }

    /// Answers until `shutdown`, and then those who have asked already, for up to a minute.
    pub async fn run(self, shutdown: CancellationToken) {
        let Server { webhooks, metrics, listener } = self;
        let answer = move |request| {
            let (webhooks, metrics) = (Arc::clone(&webhooks), Arc::clone(&metrics));
            async move { webhooks.answer(request, &metrics).await }
        };
        listener.run(answer, shutdown).await;
    }
}
