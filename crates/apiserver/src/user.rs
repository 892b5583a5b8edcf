//! Who makes a request.

use std::collections::BTreeMap;

use kubewright_apimachinery::name;

/// Someone the server has identified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    pub name: String,
    /// Empty when the way of authentication knows none.
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Everyone who was identified belongs to it.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Everyone else does.
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Its members may do anything.
pub const MASTERS: &str = "system:masters";
/// Every node belongs to it.
pub const NODES: &str = "system:nodes";

/// What the name of every node begins with.
pub(crate) const NODE_PREFIX: &str = "system:node:";

impl User {
    pub fn new(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        groups.push(AUTHENTICATED.to_owned());
        User { name: name.into(), uid: String::new(), groups, extra: BTreeMap::new() }
    }

    /// The server itself.
    pub fn apiserver() -> Self {
        User::new("system:apiserver", [MASTERS.to_owned()])
    }

    pub fn anonymous() -> Self {
        User {
            name: "system:anonymous".to_owned(),
            uid: String::new(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            extra: BTreeMap::new(),
        }
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|other| other == group)
    }

    /// The node that this is: the name and the group together make one. The name may be empty.
    pub fn node(&self) -> Option<&str> {
        self.name.strip_prefix(NODE_PREFIX).filter(|_| self.is_in(NODES))
    }
}

/// Every service account belongs to it.
pub const SERVICE_ACCOUNTS: &str = "system:serviceaccounts";

/// What the name of every service account begins with.
pub(crate) const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// The name of a service account as a user.
pub fn service_account(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// The namespace and the name of the service account that a user's name stands for.
pub fn split_service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT_PREFIX)?.split_once(':')?;
    let sound =
        name::dns1123_label(namespace).is_empty() && name::dns1123_subdomain(name).is_empty();
    sound.then_some((namespace, name))
}

/// The groups that a service account has by its namespace.
pub fn service_account_groups(namespace: &str) -> Vec<String> {
    vec![SERVICE_ACCOUNTS.to_owned(), format!("{SERVICE_ACCOUNTS}:{namespace}")]
}
