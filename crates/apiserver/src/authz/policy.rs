//! Roles and bindings as decisions need them, kept in step with the store.
//!
//! Everything is indexed by subject, so that a decision looks only at bindings that apply. Before
//! each one the store's revision is compared with the one seen last; only when it moved are the
//! four watches asked, and only what changed is read again.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use kubewright_apimachinery::json::go_quote;
use kubewright_store::{Event, Rev, Revision, Start, Watch, WatchError};
use serde::Deserialize;

use super::rule::{Rule, nullable};
use super::{GROUP, Naming};
use crate::index::{Index, Store};
use crate::user::{self, User};

/// The policy in force.
pub(super) struct Policy {
    store: Store,
    /// Changes up to here are compiled.
    seen: AtomicI64,
    compiled: RwLock<Compiled>,
    /// Empty until the first decision.
    feed: Mutex<Option<Feed>>,
}

/// Where changes come from.
struct Feed([Watch<Index>; RESOURCES.len()]);

const RESOURCES: [(&str, Kind); 4] = [
    ("/registry/clusterroles/", Kind::Role),
    ("/registry/roles/", Kind::Role),
    ("/registry/clusterrolebindings/", Kind::Binding),
    ("/registry/rolebindings/", Kind::Binding),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Role,
    Binding,
}

/// All roles and bindings.
#[derive(Debug, Default)]
pub(super) struct Compiled {
    cluster: Scope,
    namespaces: HashMap<Box<str>, Scope>,
}

/// The roles and bindings of the cluster, or of one namespace.
#[derive(Debug, Default)]
struct Scope {
    roles: HashMap<Box<str>, Arc<[Rule]>>,
    bindings: BTreeMap<Box<str>, Arc<Binding>>,
    /// The bindings that name a user or a service account, in the order of their names.
    users: HashMap<Box<str>, Vec<Arc<Binding>>>,
    groups: HashMap<Box<str>, Vec<Arc<Binding>>>,
}

/// Gives a role to subjects.
#[derive(Debug)]
pub struct Binding {
    /// Empty for one that holds in the whole cluster.
    pub(super) namespace: Box<str>,
    pub(super) name: Box<str>,
    pub(super) role: RoleRef,
    subjects: Vec<Subject>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(super) struct RoleRef {
    #[serde(default)]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) name: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default)]
#[derive(Default)]
struct Subject {
    kind: String,
    name: String,
    namespace: String,
}

/// What a subject stands for.
enum Principal<'a> {
    User(std::borrow::Cow<'a, str>),
    Group(&'a str),
}

#[derive(Deserialize)]
struct StoredRole {
    #[serde(default, deserialize_with = "nullable")]
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct StoredBinding {
    #[serde(rename = "roleRef")]
    role: RoleRef,
    #[serde(default, deserialize_with = "nullable")]
    subjects: Vec<Subject>,
}

impl Policy {
    pub(super) fn new(store: Store) -> Self {
        Policy {
            store,
            seen: AtomicI64::new(i64::MIN),
            compiled: RwLock::default(),
            feed: Mutex::default(),
        }
    }

    /// The policy with every change that readers of the store can see.
    pub(super) fn read(&self) -> RwLockReadGuard<'_, Compiled> {
        if self.seen.load(Ordering::Acquire) != self.store.revision().get() {
            self.catch_up();
        }
        self.compiled.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn catch_up(&self) {
        let mut feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
        // Before the watches are asked: they tell everything up to here.
        let visible = self.store.revision();
        if self.seen.load(Ordering::Acquire) >= visible.get() {
            return;
        }
        let changes = feed.as_mut().map(Feed::take);
        match changes {
            Some(Ok(events)) if events.is_empty() => {}
            Some(Ok(events)) => {
                let mut compiled = self.compiled.write().unwrap_or_else(PoisonError::into_inner);
                for event in events {
                    compiled.set(event.key.as_str(), event.current.as_deref());
                }
            }
            // Never read yet, or so much was written that the watches lost their place.
            None | Some(Err(_)) => {
                let snapshot = self.store.snapshot();
                let mut compiled = Compiled::default();
                for (prefix, _) in RESOURCES {
                    for rev in snapshot.range(prefix, None, None).iter() {
                        compiled.set(rev.key.as_str(), Some(rev));
                    }
                }
                // A store that takes no watch from its own present is being closed.
                *feed = Feed::after(&self.store, snapshot.revision()).ok();
                *self.compiled.write().unwrap_or_else(PoisonError::into_inner) = compiled;
            }
        }
        self.seen.store(visible.get(), Ordering::Release);
    }
}

impl Feed {
    fn after(store: &Store, revision: Revision) -> Result<Self, WatchError> {
        let [a, b, c, d] = RESOURCES.map(|(prefix, _)| store.watch(prefix, Start::After(revision)));
        Ok(Feed([a?, b?, c?, d?]))
    }

    fn take(&mut self) -> Result<Vec<Arc<Event<Index>>>, WatchError> {
        let mut events = Vec::new();
        for watch in &mut self.0 {
            loop {
                let taken = watch.take()?;
                if taken.is_empty() {
                    break;
                }
                events.extend(taken);
            }
        }
        Ok(events)
    }
}

impl Compiled {
    /// The bindings that apply to a user, each with its rules if its role exists. One that names
    /// the user in several ways may come several times.
    pub(super) fn applying<'a>(
        &'a self,
        user: &'a User,
        namespace: &'a str,
    ) -> impl Iterator<Item = (&'a Arc<Binding>, Option<&'a Arc<[Rule]>>)> {
        let local = match namespace {
            "" => None,
            namespace => self.namespaces.get(namespace),
        };
        [Some(&self.cluster), local]
            .into_iter()
            .flatten()
            .flat_map(|scope| scope.applying(user))
            .map(|binding| (binding, self.rules_of(binding)))
    }

    /// The rules of a role, or of a cluster role if `namespace` is empty.
    pub(super) fn role(&self, namespace: &str, name: &str) -> Option<&Arc<[Rule]>> {
        match namespace {
            "" => self.cluster.roles.get(name),
            namespace => self.namespaces.get(namespace)?.roles.get(name),
        }
    }

    fn rules_of(&self, binding: &Binding) -> Option<&Arc<[Rule]>> {
        match binding.role.kind.as_str() {
            "ClusterRole" => self.role("", &binding.role.name),
            // A binding of the cluster has no namespace in which there could be a role.
            "Role" if !binding.namespace.is_empty() => {
                self.role(&binding.namespace, &binding.role.name)
            }
            _ => None,
        }
    }

    /// Makes a role or binding what it is now in the store. What cannot be read gives nothing.
    fn set(&mut self, key: &str, rev: Option<&Rev<Index>>) {
        let Some((prefix, kind)) =
            RESOURCES.into_iter().find(|(prefix, _)| key.starts_with(prefix))
        else {
            return;
        };
        let path = &key[prefix.len()..];
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let scope = match namespace {
            "" => &mut self.cluster,
            namespace => self.namespaces.entry(namespace.into()).or_default(),
        };
        let json = rev.map(|rev| rev.extracted.json(&rev.value));
        match kind {
            Kind::Role => {
                let role = json.and_then(|json| serde_json::from_slice::<StoredRole>(json).ok());
                match role {
                    Some(role) => scope.roles.insert(name.into(), role.rules.into()),
                    None => scope.roles.remove(name),
                };
            }
            Kind::Binding => {
                let binding =
                    json.and_then(|json| serde_json::from_slice::<StoredBinding>(json).ok());
                scope.bind(
                    name,
                    binding.map(|StoredBinding { role, subjects }| Binding {
                        namespace: namespace.into(),
                        name: name.into(),
                        role,
                        subjects,
                    }),
                );
            }
        }
        if scope.roles.is_empty() && scope.bindings.is_empty() {
            self.namespaces.remove(namespace);
        }
    }
}

impl Scope {
    fn applying<'a>(&'a self, user: &'a User) -> impl Iterator<Item = &'a Arc<Binding>> {
        let groups = user.groups.iter().filter_map(|group| self.groups.get(group.as_str()));
        self.users.get(user.name.as_str()).into_iter().chain(groups).flatten()
    }

    fn bind(&mut self, name: &str, binding: Option<Binding>) {
        if let Some(old) = self.bindings.remove(name) {
            for principal in old.principals() {
                let (index, key) = self.index_of(&principal);
                if let Some(list) = index.get_mut(key) {
                    list.retain(|other| !Arc::ptr_eq(other, &old));
                    if list.is_empty() {
                        index.remove(key);
                    }
                }
            }
        }
        let Some(binding) = binding.map(Arc::new) else { return };
        for principal in binding.principals() {
            let (index, key) = self.index_of(&principal);
            let list = index.entry(key.into()).or_default();
            match list.binary_search_by(|other| other.name.cmp(&binding.name)) {
                // The binding names the same subject twice.
                Ok(_) => {}
                Err(at) => list.insert(at, Arc::clone(&binding)),
            }
        }
        self.bindings.insert(name.into(), binding);
    }

    fn index_of<'a>(
        &mut self,
        principal: &'a Principal<'_>,
    ) -> (&mut HashMap<Box<str>, Vec<Arc<Binding>>>, &'a str) {
        match principal {
            Principal::User(name) => (&mut self.users, name),
            Principal::Group(name) => (&mut self.groups, name),
        }
    }
}

impl Binding {
    fn principals(&self) -> impl Iterator<Item = Principal<'_>> {
        self.subjects.iter().filter_map(|subject| subject.principal(&self.namespace))
    }

    /// The first subject that this user is.
    pub(super) fn subject_of(&self, user: &User) -> Option<usize> {
        self.subjects.iter().position(|subject| match subject.principal(&self.namespace) {
            Some(Principal::User(name)) => user.name == name,
            Some(Principal::Group(name)) => user.is_in(name),
            None => false,
        })
    }

    /// What gives its role to one of its subjects, for a person to read.
    pub(super) fn describe(&self, subject: usize) -> String {
        let (kind, name) = match &*self.namespace {
            "" => ("ClusterRoleBinding", go_quote(&self.name)),
            namespace => ("RoleBinding", go_quote(&format!("{}/{namespace}", self.name))),
        };
        let role = format!("{} {}", self.role.kind, go_quote(&self.role.name));
        let subject = self.subjects[subject].describe(&self.namespace);
        format!("{kind} {name} of {role} to {subject}")
    }
}

impl RoleRef {
    /// Why the role has no rules.
    pub(super) fn problem(&self, naming: Naming<'_>) -> String {
        let kind = match self.kind.as_str() {
            "Role" => "role",
            "ClusterRole" => "clusterrole",
            kind => return format!("unsupported role reference kind: {}", go_quote(kind)),
        };
        let resource = match naming {
            Naming::Kind => kind,
            Naming::Request(resource) => resource,
        };
        format!("{resource}.{GROUP} {} not found", go_quote(&self.name))
    }
}

impl Subject {
    fn principal<'a>(&'a self, binding_namespace: &'a str) -> Option<Principal<'a>> {
        match self.kind.as_str() {
            "User" => Some(Principal::User(self.name.as_str().into())),
            "Group" => Some(Principal::Group(&self.name)),
            "ServiceAccount" => match self.namespace(binding_namespace) {
                "" => None,
                namespace => {
                    Some(Principal::User(user::service_account(namespace, &self.name).into()))
                }
            },
            _ => None,
        }
    }

    /// An account without a namespace is one of the binding's.
    fn namespace<'a>(&'a self, binding_namespace: &'a str) -> &'a str {
        match self.namespace.as_str() {
            "" => binding_namespace,
            namespace => namespace,
        }
    }

    fn describe(&self, binding_namespace: &str) -> String {
        let name = match self.kind.as_str() {
            "ServiceAccount" => format!("{}/{}", self.name, self.namespace(binding_namespace)),
            _ => self.name.clone(),
        };
        format!("{} {}", self.kind, go_quote(&name))
    }
}
