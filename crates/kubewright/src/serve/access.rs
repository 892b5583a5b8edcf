//! Who may see what an operator tells about itself: whoever the API server says.
//!
//! A request's token is shown to the API server (TokenReview), and the user it stands for must be
//! allowed the verb on the path (SubjectAccessReview). Answers are remembered for as long as
//! controller-runtime does, so that a scrape costs no request.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use http::{HeaderMap, Request, StatusCode, header};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use tokio::time::Instant;
use tracing::{debug, error};

use super::{Answer, text};

const TOKEN_TTL: Duration = Duration::from_secs(60);
const ALLOWED_TTL: Duration = Duration::from_secs(5 * 60);
const DENIED_TTL: Duration = Duration::from_secs(30);
/// Whoever sends made-up tokens must not fill the memory.
const REMEMBERED_MAX: usize = 1024;
/// How long the API server may take, with all attempts.
const REVIEW_MAX: Duration = Duration::from_secs(10);
/// How often it is asked if it cannot answer, and after which pause, as client-go has it.
const ATTEMPTS_MAX: u32 = 5;
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_FACTOR: f64 = 1.5;

/// Asks the API server who may see a page.
pub struct Access {
    client: Client,
    /// Nobody, for a token that is none. Tokens themselves are not kept.
    users: Memory<[u8; 32], Option<UserInfo>>,
    verdicts: Memory<Question, bool>,
}

/// Why a page is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refused {
    /// Nobody knows who asks.
    Unauthorized,
    /// Whoever asks may not see it.
    Forbidden { user: String },
    /// The API server does not say.
    Unknown { user: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    user: String,
    groups: Vec<String>,
    verb: String,
    path: String,
}

impl Access {
    /// The client must be allowed to create TokenReviews and SubjectAccessReviews.
    pub fn new(client: Client) -> Self {
        Access { client, users: Memory::default(), verdicts: Memory::default() }
    }

    /// Whether the one who makes a request may.
    ///
    /// # Errors
    /// If not, or if nobody can tell.
    pub async fn permit<B>(&self, request: &Request<B>) -> Result<(), Refused> {
        let token = bearer(request.headers()).ok_or(Refused::Unauthorized)?;
        let user = self.identify(token).await?.ok_or(Refused::Unauthorized)?;
        let name = user.username.clone().unwrap_or_default();
        let question = Question {
            user: name.clone(),
            groups: user.groups.clone().unwrap_or_default(),
            verb: request.method().as_str().to_ascii_lowercase(),
            path: request.uri().path().to_owned(),
        };
        match self.judge(question, user).await? {
            true => Ok(()),
            false => Err(Refused::Forbidden { user: name }),
        }
    }

    async fn identify(&self, token: &str) -> Result<Option<UserInfo>, Refused> {
        let key = digest(&SHA256, token.as_bytes());
        let key = <[u8; 32]>::try_from(key.as_ref()).expect("a digest of 256 bits");
        if let Some(user) = self.users.recall(&key) {
            return Ok(user);
        }
        let review = TokenReview {
            spec: TokenReviewSpec { token: token.to_owned(), audiences: None },
            ..TokenReview::default()
        };
        let reviewed = self.ask(&review).await.map_err(|()| Refused::Unknown { user: None })?;
        let status = reviewed.status.unwrap_or_default();
        let is_known = status.authenticated == Some(true);
        let user = is_known.then(|| status.user.unwrap_or_default());
        self.users.remember(key, user.clone(), TOKEN_TTL);
        Ok(user)
    }

    async fn judge(&self, question: Question, user: UserInfo) -> Result<bool, Refused> {
        if let Some(verdict) = self.verdicts.recall(&question) {
            return Ok(verdict);
        }
        let review = SubjectAccessReview {
            spec: SubjectAccessReviewSpec {
                user: user.username.clone(),
                groups: user.groups,
                uid: user.uid,
                extra: user.extra,
                non_resource_attributes: Some(NonResourceAttributes {
                    path: Some(question.path.clone()),
                    verb: Some(question.verb.clone()),
                }),
                resource_attributes: None,
            },
            ..SubjectAccessReview::default()
        };
        let unknown = |()| Refused::Unknown { user: user.username };
        let status = self.ask(&review).await.map_err(unknown)?.status.unwrap_or_default();
        debug!(user = question.user, path = question.path, reason = status.reason, "page judged");
        let ttl = if status.allowed { ALLOWED_TTL } else { DENIED_TTL };
        self.verdicts.remember(question, status.allowed, ttl);
        Ok(status.allowed)
    }

    async fn ask<K>(&self, review: &K) -> Result<K, ()>
    where
        K: kube::Resource<DynamicType = ()> + Clone + std::fmt::Debug,
        K: serde::Serialize + serde::de::DeserializeOwned,
    {
        let (api, params): (Api<K>, _) = (Api::all(self.client.clone()), PostParams::default());
        let attempts = async {
            let mut pause = PAUSE;
            for _ in 1..ATTEMPTS_MAX {
                match api.create(&params, review).await {
                    Err(error) if may_pass(&error) => {
                        debug!(kind = %K::kind(&()), %error, "a review is asked for again");
                    }
                    answer => return answer,
                }
                tokio::time::sleep(pause).await;
                pause = pause.mul_f64(PAUSE_FACTOR);
            }
            api.create(&params, review).await
        };
        let asked = tokio::time::timeout(REVIEW_MAX, attempts).await;
        let error: &Error = match &asked {
            Ok(Ok(_)) => return asked.expect("it has answered").map_err(drop),
            Ok(Err(error)) => error,
            Err(_) => {
                error!(kind = %K::kind(&()), "the API server does not answer a review in time");
                return Err(());
            }
        };
        error!(kind = %K::kind(&()), %error, "the API server does not answer a review");
        Err(())
    }
}

impl Refused {
    /// In the words that controller-runtime has.
    pub(super) fn into_answer(self) -> Answer {
        match self {
            Refused::Unauthorized => text(StatusCode::UNAUTHORIZED, "Unauthorized\n"),
            Refused::Forbidden { user } => {
                let why = format!("Authorization denied for user {user}\n");
                text(StatusCode::FORBIDDEN, why)
            }
            Refused::Unknown { user: Some(user) } => {
                let why = format!("Authorization for user {user} failed\n");
                text(StatusCode::INTERNAL_SERVER_ERROR, why)
            }
            Refused::Unknown { user: None } => {
                text(StatusCode::INTERNAL_SERVER_ERROR, "Authentication failed\n")
            }
        }
    }
}

/// Whether another attempt may fare better.
fn may_pass(error: &Error) -> bool {
    match error {
        Error::Api(status) => status.code == 429 || status.code >= 500,
        _ => true,
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// Answers that hold for a while.
struct Memory<K, V>(Mutex<HashMap<K, (V, Instant)>>);

impl<K, V> Default for Memory<K, V> {
    fn default() -> Self {
        Memory(Mutex::default())
    }
}

impl<K: Eq + Hash, V: Clone> Memory<K, V> {
    fn recall(&self, key: &K) -> Option<V> {
        let remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (value, until) = remembered.get(key)?;
        (*until > Instant::now()).then(|| value.clone())
    }

    fn remember(&self, key: K, value: V, ttl: Duration) {
        let now = Instant::now();
        let mut remembered = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= REMEMBERED_MAX {
            remembered.retain(|_, (_, until)| *until > now);
        }
        if remembered.len() >= REMEMBERED_MAX {
            remembered.clear();
        }
        remembered.insert(key, (value, now + ttl));
    }
}
