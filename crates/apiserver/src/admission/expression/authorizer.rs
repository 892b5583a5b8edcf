//! The authorizer as expressions see it: values that narrow down a question, and a decision.

use std::sync::Arc;

use kubewright_apimachinery::cel::{Failure, Foreign, Outcome, Text, Val};
use kubewright_apimachinery::name;
use kubewright_apimachinery::selector::field::{Selector, Term};

use crate::admission::Attributes;
use crate::authz::{self, Authorizer, Decision};
use crate::user::{self, User};

/// Somebody whose permissions can be asked for.
#[derive(Clone)]
pub(crate) struct Asker {
    authorizer: Arc<Authorizer>,
    user: Arc<User>,
    requested: Arc<Resource>,
}

#[derive(Debug, Clone, Default)]
struct Resource {
    group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
    fields: Vec<Term>,
}

impl Asker {
    /// Who makes a request, and what it is about.
    pub(crate) fn new(authorizer: &Arc<Authorizer>, attributes: &Attributes<'_>) -> Self {
        let gvr = &attributes.resource.gvr;
        let requested = Resource {
            group: gvr.group.clone(),
            resource: gvr.resource.clone(),
            subresource: attributes.part.unwrap_or_default().to_owned(),
            namespace: attributes.namespace.unwrap_or_default().to_owned(),
            name: attributes.name.to_owned(),
            fields: Vec::new(),
        };
        Asker {
            authorizer: Arc::clone(authorizer),
            user: Arc::new(attributes.user.clone()),
            requested: Arc::new(requested),
        }
    }

    /// The variable `authorizer`.
    pub(super) fn to_val(&self) -> Val<'static> {
        self.val(Question::Anything)
    }

    /// The variable `authorizer.requestResource`.
    pub(super) fn to_requested(&self) -> Val<'static> {
        self.val(Question::Resource(Resource::clone(&self.requested)))
    }

    fn val(&self, question: Question) -> Val<'static> {
        Val::Foreign(Arc::new(Check { asker: self.clone(), question }))
    }
}

/// A question that may not be complete yet.
struct Check {
    asker: Asker,
    question: Question,
}

#[derive(Clone)]
enum Question {
    Anything,
    Path(String),
    Group(String),
    Resource(Resource),
}

impl Foreign for Check {
    fn type_name(&self) -> &'static str {
        match self.question {
            Question::Anything => "kubernetes.authorization.Authorizer",
            Question::Path(_) => "kubernetes.authorization.PathCheck",
            Question::Group(_) => "kubernetes.authorization.GroupCheck",
            Question::Resource(_) => "kubernetes.authorization.ResourceCheck",
        }
    }

    fn call<'v>(&self, function: &str, args: &[Val<'v>]) -> Outcome<'v> {
        let mut texts = args.iter().map(|arg| match arg {
            Val::String(text) => Ok(text.to_string()),
            _ => Err(Failure::new("no such overload")),
        });
        let mut text = || texts.next().unwrap_or_else(|| Err(Failure::new("no such overload")));
        let asker = &self.asker;
        Ok(match (&self.question, function) {
            (Question::Anything, "path") => {
                let path = required(text()?, "path must not be empty")?;
                asker.val(Question::Path(path))
            }
            (Question::Anything, "group") => asker.val(Question::Group(text()?)),
            (Question::Anything, "serviceAccount") => {
                asker.to_service_account(&text()?, &text()?)?.to_val()
            }
            (Question::Group(group), "resource") => {
                let resource = required(text()?, "resource must not be empty")?;
                let group = group.clone();
                asker.val(Question::Resource(Resource { group, resource, ..Resource::default() }))
            }
            (Question::Path(path), "check") => {
                asker.decide(&authz::Attributes::path(&text()?, path))
            }
            (Question::Resource(resource), "check") => {
                asker.decide(&authz::Attributes::resource(&text()?, resource.named()))
            }
            (Question::Resource(resource), part) => {
                let mut resource = resource.clone();
                match part {
                    "subresource" => resource.subresource = text()?,
                    "namespace" => resource.namespace = text()?,
                    "name" => resource.name = text()?,
                    // What cannot be read narrows nothing.
                    "fieldSelector" => {
                        let selector = Selector::parse(&text()?).unwrap_or_default();
                        resource.fields = selector.terms;
                    }
                    // Nobody is asked who knows them: whoever may list some may list all.
                    "labelSelector" => drop(text()?),
                    _ => return Err(Failure::new("no such overload")),
                }
                asker.val(Question::Resource(resource))
            }
            _ => return Err(Failure::new("no such overload")),
        })
    }
}

impl Asker {
    fn to_service_account(&self, namespace: &str, name: &str) -> Result<Asker, Failure> {
        if !name::dns1123_subdomain(name).is_empty() {
            return Err(Failure::new("Invalid service account name"));
        }
        if !name::dns1123_label(namespace).is_empty() {
            return Err(Failure::new("Invalid service account namespace"));
        }
        // Only these two groups: nobody has identified the account.
        let user = User {
            groups: user::service_account_groups(namespace),
            ..User::new(user::service_account(namespace, name), [])
        };
        Ok(Asker { user: Arc::new(user), ..self.clone() })
    }

    fn decide(&self, attributes: &authz::Attributes<'_>) -> Val<'static> {
        let decision = self.authorizer.decide(&self.user, attributes);
        let (allowed, reason) = match decision {
            Decision::Allowed(grant) => (true, grant.to_string()),
            Decision::Denied(denial) => (false, denial.to_string()),
        };
        Val::Foreign(Arc::new(Answer { allowed, reason: reason.into() }))
    }
}

impl Resource {
    fn named(&self) -> authz::Resource<'_> {
        authz::Resource {
            group: &self.group,
            resource: &self.resource,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name: &self.name,
            fields: &self.fields,
        }
    }
}

/// A decision. Making one never fails: what is amiss with roles is part of the reason.
struct Answer {
    allowed: bool,
    reason: Arc<str>,
}

impl Foreign for Answer {
    fn type_name(&self) -> &'static str {
        "kubernetes.authorization.Decision"
    }

    fn call<'v>(&self, function: &str, _: &[Val<'v>]) -> Outcome<'v> {
        Ok(match function {
            "allowed" => Val::Bool(self.allowed),
            "reason" => Val::String(Text::Shared(Arc::clone(&self.reason))),
            "errored" => Val::Bool(false),
            "error" => Val::String(Text::Borrowed("")),
            _ => return Err(Failure::new("no such overload")),
        })
    }
}

fn required(text: String, why: &'static str) -> Result<String, Failure> {
    if text.trim().is_empty() { Err(Failure::new(why)) } else { Ok(text) }
}
