//! What is counted, for those who may see it.

use std::sync::Arc;

use http::{Request, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::access::Access;
use super::debug::Page;
use super::{Answer, Bind, Listener, answer, not_found, text};

/// Where metrics are served unless said otherwise.
pub const BIND: Bind = Bind::Port(8443);

const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The pages of an operator about itself: `/metrics`, and `/debug/…` for people.
pub struct Pages {
    registry: Arc<Registry>,
    debug: Vec<Page>,
    /// None if anybody may see them.
    access: Option<Access>,
}

impl Pages {
    /// For those whom the API server allows to `get` the path.
    pub fn new(registry: Arc<Registry>, access: Access) -> Self {
        Pages { registry, debug: Vec::new(), access: Some(access) }
    }

    /// For everybody who can reach them, such as on a developer's own machine.
    pub fn for_everybody(registry: Arc<Registry>) -> Self {
        Pages { registry, debug: Vec::new(), access: None }
    }

    /// Adds a page for people.
    pub fn with(mut self, page: Page) -> Self {
        self.debug.push(page);
        self
    }

    /// Answers a request as a server of these pages would.
    pub async fn answer<B>(&self, request: &Request<B>) -> Answer {
        let path = request.uri().path();
        let page = self.debug.iter().find(|page| page.path() == path);
        if page.is_none() && path != "/metrics" {
            return not_found();
        }
        if let Some(access) = &self.access
            && let Err(refused) = access.permit(request).await
        {
            return refused.into_answer();
        }
        match page {
            Some(page) => page.answer(request),
            None => self.metrics(),
        }
    }

    fn metrics(&self) -> Answer {
        let mut counted = String::new();
        match encode(&mut counted, &self.registry) {
            Ok(()) => answer(StatusCode::OK, MEDIA_TYPE, counted),
            Err(error) => text(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n")),
        }
    }

    /// Answers there until `shutdown`.
    pub async fn run(self, listener: Listener, shutdown: CancellationToken) {
        let pages = Arc::new(self);
        let answer = move |request: Request<hyper::body::Incoming>| {
            let pages = Arc::clone(&pages);
            async move { pages.answer(&request).await }
        };
        listener.run(answer, shutdown).await;
    }
}
