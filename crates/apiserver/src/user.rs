//! Who makes a request.

use std::collections::BTreeMap;

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

impl User {
    pub fn new(name: impl Into<String>, groups: impl IntoIterator<Item = String>) -> Self {
        let mut groups: Vec<String> = groups.into_iter().collect();
        groups.push(AUTHENTICATED.to_owned());
        User { name: name.into(), uid: String::new(), groups, extra: BTreeMap::new() }
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
}
