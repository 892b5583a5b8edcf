//! Who the operator is, what it may do, and roles for those who use its kinds.

use std::collections::BTreeSet;
use std::slice;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::{Value, json};

use super::{Certificates, Manifest, Package, Part, Watched};
use crate::access::{self, Access, Reach};
use crate::coordination::Coordination;

const RBAC: &str = "rbac.authorization.k8s.io";

/// First the account, then roles, then who has them.
pub(super) fn roles(package: &Package) -> Vec<Manifest> {
    let names = package.names();
    let account = json!({
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": names.service_account(), "namespace": package.namespace},
    });

    let mut granted = Vec::new();
    if package.coordination != Coordination::None {
        let leases = access::leases();
        granted.push(Role::new(
            names.with("leader-election-role"),
            Some(&package.namespace),
            &leases,
        ));
    }
    granted.extend(manager_roles(package));
    if package.metrics {
        granted.push(Role::new(names.with("metrics-auth-role"), None, &access::reviews()));
    }
    // Somebody binds these to a person or to Prometheus; the operator needs none of them.
    let mut offered = Vec::new();
    if package.metrics {
        offered.push(Role {
            name: names.with("metrics-reader"),
            namespace: None,
            rules: json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]),
        });
    }
    offered.extend(user_roles(package));

    let mut roles: Vec<_> = granted.iter().chain(&offered).collect();
    roles.sort_by_key(|role| role.namespace.is_none());
    let mut bound: Vec<_> = granted.iter().collect();
    bound.sort_by_key(|role| role.namespace.is_none());
    let bindings = bound.into_iter().map(|role| role.binding(package));
    let objects = roles.into_iter().map(Role::object).chain(bindings);
    [account].into_iter().chain(objects).map(|it| Manifest::new(Part::Rbac, it)).collect()
}

struct Role {
    name: String,
    /// None for a role in the whole cluster.
    namespace: Option<String>,
    rules: Value,
}

impl Role {
    fn new<'a>(
        name: String,
        namespace: Option<&str>,
        accesses: impl IntoIterator<Item = &'a Access>,
    ) -> Self {
        let rules = json!(access::rules(accesses));
        Role { name, namespace: namespace.map(str::to_owned), rules }
    }

    fn object(&self) -> Value {
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": self.kind(),
            "metadata": self.metadata(&self.name),
            "rules": self.rules,
        })
    }

    fn binding(&self, package: &Package) -> Value {
        let name = self.name.strip_suffix("role").unwrap_or(&self.name);
        let kind = if self.namespace.is_some() { "RoleBinding" } else { "ClusterRoleBinding" };
        json!({
            "apiVersion": format!("{RBAC}/v1"),
            "kind": kind,
            "metadata": self.metadata(&format!("{name}rolebinding")),
            "roleRef": {"apiGroup": RBAC, "kind": self.kind(), "name": self.name},
            "subjects": [{
                "kind": "ServiceAccount",
                "name": package.names().service_account(),
                "namespace": package.namespace,
            }],
        })
    }

    fn kind(&self) -> &'static str {
        if self.namespace.is_some() { "Role" } else { "ClusterRole" }
    }

    fn metadata(&self, name: &str) -> Value {
        match &self.namespace {
            Some(namespace) => json!({"name": name, "namespace": namespace}),
            None => json!({"name": name}),
        }
    }
}

/// What the operator may do beside leading and being asked: in the cluster, at home, and in the
/// namespaces that it watches if it does not watch all. None for a place where it does nothing.
fn manager_roles(package: &Package) -> Vec<Role> {
    let accesses = accesses(package);
    let in_namespaces = |access: &Access| match package.watched {
        Watched::Everywhere => false,
        Watched::Home | Watched::Namespaces(_) => access.namespaced,
    };
    let (home, watched): (Vec<_>, Vec<_>) =
        accesses.iter().partition(|access| access.reach == Reach::Home);
    let (watched, cluster): (Vec<_>, Vec<_>) =
        watched.into_iter().partition(|&access| in_namespaces(access));

    let looked_into = match &package.watched {
        Watched::Everywhere => &[],
        Watched::Home => slice::from_ref(&package.namespace),
        Watched::Namespaces(namespaces) => namespaces.as_slice(),
    };
    let places: BTreeSet<_> = looked_into.iter().chain([&package.namespace]).collect();

    let name = package.names().manager_role();
    let in_place = |namespace: &String| {
        let home = home.iter().filter(|_| *namespace == package.namespace);
        let watched = watched.iter().filter(|_| looked_into.contains(namespace));
        Role::new(name.clone(), Some(namespace), home.chain(watched).copied())
    };
    let mut roles: Vec<_> = places.into_iter().map(in_place).collect();
    roles.push(Role::new(name.clone(), None, cluster));
    roles.retain(|role| role.rules != json!([]));
    roles
}

/// What is declared, and what the library does itself.
fn accesses(package: &Package) -> Vec<Access> {
    let mut accesses = [package.accesses.clone(), access::events()].concat();
    if package.is_called() && package.certificates == Certificates::SelfMade {
        let names = package.names();
        let some = |is_there: bool, name: String| Vec::from_iter(is_there.then_some(name));
        accesses.extend(access::certificates(&access::Certificates {
            secret: names.webhook_secret(),
            mutating: some(!package.mutating.is_empty(), names.mutating_configuration()),
            validating: some(!package.validating.is_empty(), names.validating_configuration()),
            definitions: package.converted.clone(),
        }));
    }
    accesses
}

/// For each kind of the operator's own, roles for people: one that delegates, one that edits, one
/// that looks. Where the operator is confined to its namespace, so are they.
fn user_roles(package: &Package) -> impl Iterator<Item = Role> {
    const EDIT: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
    let verbs = [("admin", &["*"][..]), ("editor", EDIT), ("viewer", &["get", "list", "watch"])];
    package.definitions.iter().flat_map(move |definition| {
        verbs.into_iter().map(move |(user, verbs)| {
            let (group, plural) = (&definition.spec.group, &definition.spec.names.plural);
            let is_confined =
                package.watched == Watched::Home && definition.spec.scope == "Namespaced";
            Role {
                name: package.names().with(&format!("{}-{user}-role", word(package, definition))),
                namespace: is_confined.then(|| package.namespace.clone()),
                rules: json!([
                    {"apiGroups": [group], "resources": [plural], "verbs": verbs},
                    {"apiGroups": [group], "resources": [format!("{plural}/status")], "verbs": ["get"]},
                ]),
            }
        })
    })
}

/// The kind; with its group where another group has the same kind.
fn word(package: &Package, definition: &CustomResourceDefinition) -> String {
    let kind = &definition.spec.names.kind;
    let namesakes = package.definitions.iter().filter(|other| other.spec.names.kind == *kind);
    let group = definition.spec.group.split('.').next().unwrap_or_default();
    match namesakes.count() {
        0 | 1 => kind.to_lowercase(),
        _ => format!("{group}-{}", kind.to_lowercase()),
    }
}
