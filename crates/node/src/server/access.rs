//! Who asks, and whether they may: the API server knows both.

use http::{Method, Request, StatusCode, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use rustls::pki_types::CertificateDer;
use x509_parser::prelude::{FromDer as _, X509Certificate};

use super::Refusal;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    groups: Vec<String>,
}

/// The user whom a certificate names: authorities vouch for it by now.
pub(super) fn user(certificate: &CertificateDer<'_>) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let subject = certificate.subject();
    let text = |it: &x509_parser::x509::AttributeTypeAndValue<'_>| it.as_str().map(str::to_owned);
    let name = subject.iter_common_name().next().and_then(|name| text(name).ok())?;
    let groups = subject.iter_organization().filter_map(|group| text(group).ok()).collect();
    Some(User { name, groups })
}

pub(super) struct Access<'a> {
    pub(super) client: &'a Client,
    pub(super) node: &'a str,
}

impl Access<'_> {
    /// Lets a question through if whoever asks may ask it.
    pub(super) async fn permit<B>(
        &self,
        request: &Request<B>,
        user: Option<&User>,
    ) -> Result<(), Refusal> {
        let known = match user {
            Some(user) => user.clone(),
            None => self.by_token(request).await?,
        };
        let path = request.uri().path();
        let verb = verb(request.method());
        for subresource in subresources(path) {
            if self.may(&known, verb, subresource).await? {
                return Ok(());
            }
        }
        let subresource = subresources(path).last().copied().unwrap_or("proxy");
        let why = format!(
            "Forbidden (user={}, verb={verb}, resource=nodes, subresource(s)=[{subresource}])\n",
            known.name
        );
        Err(Refusal(StatusCode::FORBIDDEN, why))
    }

    async fn by_token<B>(&self, request: &Request<B>) -> Result<User, Refusal> {
        let unknown = || Refusal(StatusCode::UNAUTHORIZED, "Unauthorized".to_owned());
        let header = request.headers().get(header::AUTHORIZATION).and_then(|it| it.to_str().ok());
        let token = header.and_then(|header| header.strip_prefix("Bearer ")).ok_or_else(unknown)?;
        let spec = TokenReviewSpec { token: token.to_owned(), audiences: None };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &review).await.map_err(unavailable)?;
        let status = review.status.unwrap_or_default();
        let user =
            status.user.filter(|_| status.authenticated == Some(true)).ok_or_else(unknown)?;
        let name = user.username.unwrap_or_default();
        Ok(User { name, groups: user.groups.unwrap_or_default() })
    }

    async fn may(&self, user: &User, verb: &str, subresource: &str) -> Result<bool, Refusal> {
        let attributes = ResourceAttributes {
            verb: Some(verb.to_owned()),
            version: Some("v1".to_owned()),
            resource: Some("nodes".to_owned()),
            subresource: Some(subresource.to_owned()),
            name: Some(self.node.to_owned()),
            ..ResourceAttributes::default()
        };
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: Some(user.name.clone()),
                groups: Some(user.groups.clone()),
                resource_attributes: Some(attributes),
                ..SubjectAccessReviewSpec::default()
            },
            ..SubjectAccessReview::default()
        };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let review = reviews.create(&PostParams::default(), &review).await.map_err(unavailable)?;
        Ok(review.status.is_some_and(|status| status.allowed))
    }
}

fn unavailable(error: kube::Error) -> Refusal {
    Refusal(StatusCode::INTERNAL_SERVER_ERROR, format!("{error}\n"))
}

fn verb(method: &Method) -> &'static str {
    match method.as_str() {
        "POST" => "create",
        "PUT" => "update",
        "PATCH" => "patch",
        "DELETE" => "delete",
        _ => "get",
    }
}

/// What a path is called in roles, any of which will do.
pub(super) fn subresources(path: &str) -> &'static [&'static str] {
    match path.split('/').nth(1).unwrap_or_default() {
        "pods" => &["pods", "proxy"],
        "healthz" => &["healthz", "proxy"],
        "stats" => &["stats"],
        "metrics" => &["metrics"],
        "logs" => &["log"],
        _ => &["proxy"],
    }
}
