//! Which requests are logged, and how much of them: a policy as kube-apiserver reads it.

mod read;
#[cfg(test)]
mod tests;

use crate::target::{ResourceTarget, Target};
use crate::user::User;

/// What to log of which requests. The first rule that matches a request decides; what none
/// matches is not logged.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    /// Left out, whichever rule decides.
    omit_stages: Stages,
    omit_managed_fields: bool,
}

/// Matches a request that fits all that it says; what it does not say fits everything.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    level: Level,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<GroupResources>,
    /// The empty one stands for what has none.
    namespaces: Vec<String>,
    non_resource_urls: Vec<String>,
    omit_stages: Stages,
    omit_managed_fields: Option<bool>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct GroupResources {
    /// Empty for the core group, `*` for all.
    group: String,
    /// `pods`, `pods/log`, `pods/*`, `*/status`, `*`; none at all stands for everything.
    resources: Vec<String>,
    resource_names: Vec<String>,
}

/// How much of a request is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    None,
    /// Who asked for what, and what came of it; never what was sent.
    Metadata,
    /// Also what the client sent.
    Request,
    /// Also what the client got.
    RequestResponse,
}

/// How far a request has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    RequestReceived,
    /// Headers are sent, and the rest may take a while. Only of requests that last.
    ResponseStarted,
    ResponseComplete,
    /// The server failed in the middle.
    Panic,
}

/// A set of stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Stages([bool; Stage::ALL.len()]);

/// What is logged of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) level: Level,
    omitted: Stages,
    pub(super) omit_managed_fields: bool,
}

/// Why a policy cannot be used. In upstream's words as far as they go, and what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("failed decoding: {0}")]
    Malformed(String),
    #[error(
        "it says {api_version:?} {kind:?}: begin it with `apiVersion: audit.k8s.io/v1` and `kind: \
         Policy`"
    )]
    Kind { api_version: String, kind: String },
    #[error("{0}")]
    Invalid(String),
    #[error("loaded illegal policy with 0 rules: `rules: [{{level: Metadata}}]` logs everything")]
    Empty,
}

impl Level {
    pub(crate) const ALL: [Level; 4] =
        [Level::None, Level::Metadata, Level::Request, Level::RequestResponse];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Level::None => "None",
            Level::Metadata => "Metadata",
            Level::Request => "Request",
            Level::RequestResponse => "RequestResponse",
        }
    }
}

impl Stage {
    const ALL: [Stage; 4] =
        [Stage::RequestReceived, Stage::ResponseStarted, Stage::ResponseComplete, Stage::Panic];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Stage::RequestReceived => "RequestReceived",
            Stage::ResponseStarted => "ResponseStarted",
            Stage::ResponseComplete => "ResponseComplete",
            Stage::Panic => "Panic",
        }
    }
}

impl Stages {
    fn insert(&mut self, stage: Stage) {
        self.0[stage as usize] = true;
    }

    fn contains(self, stage: Stage) -> bool {
        self.0[stage as usize]
    }

    fn union(self, other: Stages) -> Stages {
        Stages(std::array::from_fn(|at| self.0[at] || other.0[at]))
    }
}

impl Verdict {
    pub(super) fn wants(&self, stage: Stage) -> bool {
        !self.omitted.contains(stage)
    }
}

impl Policy {
    /// Reads a policy in YAML or JSON. Fields that it does not have are warned about and otherwise
    /// passed over, as upstream does.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        read::policy(text)
    }

    /// What is logged of a request. Who was not identified is nobody.
    pub(super) fn judge(&self, user: Option<&User>, target: &Target) -> Verdict {
        let Policy { omit_stages, omit_managed_fields, .. } = *self;
        match self.rules.iter().find(|rule| rule.matches(user, target)) {
            Some(rule) => Verdict {
                level: rule.level,
                omitted: omit_stages.union(rule.omit_stages),
                omit_managed_fields: rule.omit_managed_fields.unwrap_or(omit_managed_fields),
            },
            None => Verdict { level: Level::None, omitted: omit_stages, omit_managed_fields },
        }
    }
}

impl Rule {
    fn matches(&self, user: Option<&User>, target: &Target) -> bool {
        self.matches_user(user) && self.matches_verb(target) && self.matches_target(target)
    }

    fn matches_user(&self, user: Option<&User>) -> bool {
        let is_one = |user: &User| self.users.contains(&user.name);
        let is_member = |user: &User| user.groups.iter().any(|one| self.user_groups.contains(one));
        (self.users.is_empty() || user.is_some_and(is_one))
            && (self.user_groups.is_empty() || user.is_some_and(is_member))
    }

    fn matches_verb(&self, target: &Target) -> bool {
        let verb = target.verb();
        self.verbs.is_empty() || self.verbs.iter().any(|wanted| wanted == verb)
    }

    fn matches_target(&self, target: &Target) -> bool {
        let is_about_resources = !self.namespaces.is_empty() || !self.resources.is_empty();
        match target {
            Target::Resource(target) if is_about_resources => {
                let namespace = target.namespace.as_deref().unwrap_or_default();
                (self.namespaces.is_empty() || self.namespaces.iter().any(|one| one == namespace))
                    && (self.resources.is_empty()
                        || self.resources.iter().any(|wanted| wanted.matches(target)))
            }
            Target::Resource(_) => self.non_resource_urls.is_empty(),
            Target::Path { path, .. } => {
                !is_about_resources
                    && (self.non_resource_urls.is_empty()
                        || self.non_resource_urls.iter().any(|wanted| fits(wanted, path)))
            }
        }
    }
}

fn fits(wanted: &str, path: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(start) => path.starts_with(start),
        None => path == wanted,
    }
}

impl GroupResources {
    fn matches(&self, target: &ResourceTarget) -> bool {
        let part = target.subresource.as_str();
        let is_wanted = |wanted: &String| match wanted.split_once('/') {
            None => wanted == "*" || (part.is_empty() && *wanted == target.resource),
            Some(("*", of)) => !part.is_empty() && of == part,
            // All parts, and the thing itself, which is not what one would expect.
            Some((wanted, "*")) => wanted == target.resource,
            Some((wanted, of)) => !part.is_empty() && wanted == target.resource && of == part,
        };
        let is_named =
            || self.resource_names.is_empty() || self.resource_names.contains(&target.name);
        (self.group == target.group || self.group == "*")
            && (self.resources.is_empty() || is_named() && self.resources.iter().any(is_wanted))
    }
}
