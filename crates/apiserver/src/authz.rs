//! Who may do what: role-based access control, decided from the roles and bindings in the store,
//! and what nodes may do, decided from their pods.
//!
//! A decision sees every role, binding and pod whose write was acknowledged before it, so that
//! whoever was just given a permission can use it at once; upstream's caches take a moment.

pub mod escalation;
mod node;
mod policy;
mod rule;

#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::selector::field::Term;
use kubewright_apimachinery::status::Status;

use crate::index::Store;
use crate::target::Target;
use crate::user::{MASTERS, User};
use policy::{Binding, Policy};
pub use rule::Rule;
pub(crate) use rule::{missing, quoted};

/// Where the kinds of access control live.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// Decides what users may do.
pub struct Authorizer {
    store: Store,
    policy: Policy,
    modes: Vec<Mode>,
}

/// One of those who are asked whether somebody may. Members of [`MASTERS`] always may.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Everybody may do anything.
    AlwaysAllow,
    /// Nodes may do what a kubelet must, to what their pods need.
    Node,
    /// Roles and bindings decide.
    Rbac,
}

/// What somebody wants to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes<'a> {
    pub verb: &'a str,
    pub object: Object<'a>,
}

/// What they want to do it to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Object<'a> {
    Resource(Resource<'a>),
    /// Anything that is no resource, by its path.
    Path(&'a str),
}

/// A resource as rules name it. What is not said is empty: the core group, the cluster, a whole
/// collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Resource<'a> {
    pub group: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// What is asked for of a collection.
    pub fields: &'a [Term],
}

/// Whether somebody may.
#[derive(Debug)]
pub enum Decision {
    Allowed(Grant),
    Denied(Denial),
}

/// Why somebody may. Displays as the reason that reviews and audit give, which may be empty.
#[derive(Debug)]
pub enum Grant {
    /// Members of [`MASTERS`] may do anything, and nobody needs to know why.
    Masters,
    /// There is nobody to ask, and nothing to say about it.
    Anyone,
    /// It is a node's business.
    Node,
    Rule {
        binding: Arc<Binding>,
        subject: usize,
    },
}

/// Why somebody may not. Displays as the reason, which is empty unless roles are missing or a node
/// asks for what is not its business.
#[derive(Debug, Default)]
pub struct Denial {
    reasons: Vec<String>,
}

/// The rules that hold for somebody, and what kept others from being found.
#[derive(Debug, Default)]
pub struct Rules {
    pub rules: Vec<Rule>,
    pub problems: Vec<String>,
    /// There is more that they may do, which no rule says.
    pub is_incomplete: bool,
}

impl Authorizer {
    pub fn new(store: Store) -> Self {
        Authorizer { policy: Policy::new(store.clone()), store, modes: vec![Mode::Rbac] }
    }

    /// Asks these instead, one after the other; who is allowed by one of them may.
    pub fn with_modes(self, modes: Vec<Mode>) -> Self {
        Authorizer { modes, ..self }
    }

    /// Whether this user may make this request.
    pub fn permit(&self, user: &User, target: &Target) -> Decision {
        self.decide(user, &Attributes::of(target))
    }

    /// Whether this user may do this.
    pub fn decide(&self, user: &User, attributes: &Attributes<'_>) -> Decision {
        if user.is_in(MASTERS) {
            return Decision::Allowed(Grant::Masters);
        }
        let mut denial = Denial::default();
        for mode in &self.modes {
            let why = match mode {
                Mode::AlwaysAllow => return Decision::Allowed(Grant::Anyone),
                Mode::Node => match user.node() {
                    None => continue,
                    Some(node) => match node::decide(&self.store, node, attributes) {
                        Ok(()) => return Decision::Allowed(Grant::Node),
                        Err(why) => why.into_owned(),
                    },
                },
                Mode::Rbac => match self.by_roles(user, attributes) {
                    Ok(grant) => return Decision::Allowed(grant),
                    Err(why) => why,
                },
            };
            denial.reasons.extend(Some(why).filter(|why| !why.is_empty()));
        }
        Decision::Denied(denial)
    }

    /// The role that allows it, or what is wrong with roles, which may be nothing.
    fn by_roles(&self, user: &User, attributes: &Attributes<'_>) -> Result<Grant, String> {
        let mut problems = BTreeSet::new();
        let policy = self.policy.read();
        for (binding, rules) in policy.applying(user, attributes.namespace()) {
            match rules {
                Some(rules) if rules.iter().any(|rule| rule.allows(attributes)) => {
                    let subject = binding.subject_of(user).expect("it was found by a subject");
                    return Ok(Grant::Rule { binding: Arc::clone(binding), subject });
                }
                Some(_) => {}
                None => {
                    problems.insert(binding.role.problem(Naming::Kind));
                }
            }
        }
        Err(match problems.is_empty() {
            true => String::new(),
            false => format!("RBAC: {}", aggregate(problems.iter())),
        })
    }

    /// Refuses with 403 what this user may not do.
    pub fn require(&self, user: &User, attributes: &Attributes<'_>) -> Result<Grant, Box<Status>> {
        match self.decide(user, attributes) {
            Decision::Allowed(grant) => Ok(grant),
            Decision::Denied(denial) => Err(forbidden(user, attributes, &denial.to_string())),
        }
    }

    /// The rules that hold for this user in this namespace, or in the cluster if it is empty.
    pub fn rules_for(&self, user: &User, namespace: &str) -> Rules {
        let mut found = self.rules_named(user, namespace, Naming::Kind);
        if self.modes.contains(&Mode::Node) && user.node().is_some() {
            found.is_incomplete = true;
            let is_first = self.modes.first() == Some(&Mode::Node);
            let at = if is_first { 0 } else { found.problems.len() };
            found.problems.insert(at, node::NO_RULES.to_owned());
        }
        found
    }

    fn rules_named(&self, user: &User, namespace: &str, naming: Naming<'_>) -> Rules {
        let mut found = Rules::default();
        if self.modes.contains(&Mode::AlwaysAllow) {
            let all = || vec!["*".to_owned()];
            let resources = Rule { api_groups: all(), resources: all(), ..Rule::default() };
            let paths = Rule { non_resource_urls: all(), ..Rule::default() };
            found.rules.extend([resources, paths].map(|rule| Rule { verbs: all(), ..rule }));
        }
        if !self.modes.contains(&Mode::Rbac) {
            return found;
        }
        let policy = self.policy.read();
        // A binding that names a user in several ways counts once.
        let bindings: BTreeMap<_, _> = policy
            .applying(user, namespace)
            .map(|(binding, rules)| ((&binding.namespace, &binding.name), (binding, rules)))
            .collect();
        for (binding, rules) in bindings.into_values() {
            match rules {
                Some(rules) => found.rules.extend(rules.iter().cloned()),
                None => found.problems.push(binding.role.problem(naming)),
            }
        }
        found
    }

    /// The rules of one role: of a cluster role if `namespace` is empty.
    fn rules_of(&self, namespace: &str, name: &str) -> Option<Arc<[Rule]>> {
        self.policy.read().role(namespace, name).cloned()
    }
}

/// How a missing role is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Naming<'a> {
    /// After its kind.
    Kind,
    /// As if it were what the request is about; so upstream does when it looks one up for a write.
    Request(&'a str),
}

impl<'a> Attributes<'a> {
    pub fn of(target: &'a Target) -> Self {
        match target {
            Target::Resource(target) => Attributes {
                verb: target.verb.as_str(),
                object: Object::Resource(Resource {
                    group: &target.group,
                    resource: &target.resource,
                    subresource: &target.subresource,
                    namespace: target.namespace.as_deref().unwrap_or_default(),
                    name: &target.name,
                    fields: &target.fields,
                }),
            },
            Target::Path { path, verb } => Attributes { verb, object: Object::Path(path) },
        }
    }

    pub fn resource(verb: &'a str, resource: Resource<'a>) -> Self {
        Attributes { verb, object: Object::Resource(resource) }
    }

    pub fn path(verb: &'a str, path: &'a str) -> Self {
        Attributes { verb, object: Object::Path(path) }
    }

    fn namespace(&self) -> &'a str {
        match self.object {
            Object::Resource(resource) => resource.namespace,
            Object::Path(_) => "",
        }
    }
}

/// The refusal of what a user may not do; `why` is the reason, if there is one to give.
pub fn forbidden(user: &User, attributes: &Attributes<'_>, why: &str) -> Box<Status> {
    let mut message = denied(user, attributes);
    if !why.is_empty() {
        message.push_str(": ");
        message.push_str(why);
    }
    let (resource, name) = match attributes.object {
        Object::Resource(of) => (GroupResource::new(of.group, of.resource), of.name),
        Object::Path(_) => (GroupResource::new("", ""), ""),
    };
    Box::new(Status::forbidden(&resource, name, message))
}

fn denied(user: &User, attributes: &Attributes<'_>) -> String {
    let (name, verb) = (go_quote(&user.name), attributes.verb);
    let message = match attributes.object {
        Object::Path(path) => format!("User {name} cannot {verb} path {}", go_quote(path)),
        Object::Resource(of) => {
            let resource = match of.subresource {
                "" => go_quote(of.resource),
                part => go_quote(&format!("{}/{part}", of.resource)),
            };
            let place = match of.namespace {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {}", go_quote(namespace)),
            };
            let group = go_quote(of.group);
            format!("User {name} cannot {verb} resource {resource} in API group {group} {place}")
        }
    };
    // Whoever shows the message in a browser must not show a page that the client made up.
    message.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Grant::Masters | Grant::Anyone | Grant::Node => Ok(()),
            Grant::Rule { binding, subject } => {
                write!(f, "RBAC: allowed by {}", binding.describe(*subject))
            }
        }
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reasons.join("\n"))
    }
}

/// Several errors as upstream prints them together.
pub(crate) fn aggregate<T: AsRef<str>>(errors: impl ExactSizeIterator<Item = T>) -> String {
    let errors: Vec<T> = errors.collect();
    match errors.as_slice() {
        [one] => one.as_ref().to_owned(),
        many => {
            let texts: Vec<&str> = many.iter().map(AsRef::as_ref).collect();
            format!("[{}]", texts.join(", "))
        }
    }
}

impl fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authorizer").finish_non_exhaustive()
    }
}
