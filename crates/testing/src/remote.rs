//! A cluster that is somewhere else, as a service.

use std::convert::Infallible;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use kube::client::Body;
use kube::{Client, Config};
use kubewright_apiserver::user::MASTERS;
use serde_json::json;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;
type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

#[derive(Clone)]
pub(crate) struct Remote(Client);

impl Remote {
    /// The cluster as another user sees it; those who may do everything see it as who we are.
    pub(crate) fn new(config: &Config, user: &str, groups: &[&str]) -> Self {
        let mut config = config.clone();
        if !groups.contains(&MASTERS) {
            config.auth_info.impersonate = Some(user.to_owned());
            config.auth_info.impersonate_groups =
                Some(groups.iter().map(|&group| group.to_owned()).collect());
        }
        Remote(Client::try_from(config).unwrap_or_else(|error| panic!("a client: {error}")))
    }
}

impl Service<Request<Body>> for Remote {
    type Response = Answer;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let client = self.0.clone();
        Box::pin(async move {
            Ok(match client.send(request).await {
                Ok(answer) => answer.map(|body| body.map_err(Into::into).boxed_unsync()),
                Err(error) => unreachable(&error),
            })
        })
    }
}

/// What a client is told of a cluster that does not answer.
fn unreachable(error: &kube::Error) -> Answer {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": error.to_string(), "reason": "ServiceUnavailable", "code": 503,
    });
    let body = Full::new(Bytes::from(status.to_string())).map_err(|never| match never {});
    Response::builder()
        .status(503)
        .header("content-type", "application/json")
        .body(body.boxed_unsync())
        .expect("an answer")
}
