//! Nobody gives away what they do not have: who writes a role must hold its rules already, and who
//! binds one those of the role, unless they are told otherwise by the verbs `escalate` and `bind`.

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::status::{Reason, Status};
use serde::Deserialize;
use serde_json::Value;

use super::policy::RoleRef;
use super::rule::{ALL, describe, missing, quoted};
use super::{Attributes, Authorizer, Decision, GROUP, Naming, Resource, Rule};
use crate::target::ResourceTarget;
use crate::user::{MASTERS, User};

/// Refuses the write of a role or binding by which `user` would give more than they have. `old` is
/// what an update changes. Other kinds pass.
pub fn check(
    authorizer: &Authorizer,
    user: &User,
    target: &ResourceTarget,
    new: &Value,
    old: Option<&Value>,
) -> Result<(), Box<Status>> {
    if target.group != GROUP || user.is_in(MASTERS) {
        return Ok(());
    }
    let write = Write { authorizer, user, target, new, old };
    match target.resource.as_str() {
        "roles" | "clusterroles" => write.check_role(),
        "rolebindings" | "clusterrolebindings" => write.check_binding(),
        _ => Ok(()),
    }
}

struct Write<'a> {
    authorizer: &'a Authorizer,
    user: &'a User,
    target: &'a ResourceTarget,
    new: &'a Value,
    old: Option<&'a Value>,
}

impl Write<'_> {
    fn check_role(&self) -> Result<(), Box<Status>> {
        if self.may("escalate", &self.target.resource, &self.target.name) || self.is_collection() {
            return Ok(());
        }
        self.check_rules(&rules(self.new)).map_err(|why| self.refuse(why))?;
        // An aggregated role gathers whatever anybody labels for it.
        let aggregates = std::iter::once(self.new).chain(self.old).any(aggregates);
        if aggregates && self.check_rules(&everything()).is_err() {
            return Err(self.refuse(
                "must have cluster-admin privileges to use the aggregationRule".to_owned(),
            ));
        }
        Ok(())
    }

    fn check_binding(&self) -> Result<(), Box<Status>> {
        if self.is_collection() {
            return Ok(());
        }
        let role = RoleRef::deserialize(&self.new["roleRef"])
            .unwrap_or(RoleRef { kind: String::new(), name: String::new() });
        let (resource, namespace) = match role.kind.as_str() {
            "ClusterRole" => ("clusterroles", ""),
            "Role" => ("roles", self.namespace()),
            // Validation, which knows better words, comes later.
            _ => {
                let problem = role.problem(self.naming());
                return Err(Box::new(Status::failure(500, Reason::Unknown, problem)));
            }
        };
        if self.may("bind", resource, &role.name) {
            return Ok(());
        }
        if (resource, namespace) == ("roles", "") {
            return Err(Box::new(Status::bad_request("Namespace parameter required.")));
        }
        let Some(rules) = self.authorizer.rules_of(namespace, &role.name) else {
            let called = GroupResource::new(GROUP, self.target.resource.as_str());
            return Err(Box::new(Status::not_found(&called, &role.name)));
        };
        self.check_rules(&rules).map_err(|why| self.refuse(why))
    }

    /// Whether the write only takes part in the collection of garbage, which needs no say over
    /// what the role gives.
    fn is_collection(&self) -> bool {
        const FIELDS: [&str; 5] =
            ["ownerReferences", "finalizers", "managedFields", "selfLink", "resourceVersion"];
        let bare = |object: &Value| {
            let mut object = object.clone();
            if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                metadata.retain(|field, _| !FIELDS.contains(&field.as_str()));
            }
            prune(&mut object);
            object
        };
        self.old.is_some_and(|old| bare(old) == bare(self.new))
    }

    fn may(&self, verb: &str, resource: &str, name: &str) -> bool {
        let namespace = self.namespace();
        let of = Resource { group: GROUP, resource, namespace, name, ..Resource::default() };
        let decision = self.authorizer.decide(self.user, &Attributes::resource(verb, of));
        matches!(decision, Decision::Allowed(_))
    }

    fn check_rules(&self, wanted: &[Rule]) -> Result<(), String> {
        let held = self.authorizer.rules_named(self.user, self.namespace(), self.naming());
        let missing = missing(&held.rules, wanted);
        if missing.is_empty() {
            return Ok(());
        }
        let missing: Vec<String> = describe(missing).into_iter().collect();
        let mut why = format!(
            "user {} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
            go_quote(&self.user.name),
            quoted(&self.user.groups),
            missing.join("\n")
        );
        if !held.problems.is_empty() {
            let problems = super::aggregate(held.problems.iter());
            why.push_str(&format!("; resolution errors: [{problems}]"));
        }
        Err(why)
    }

    fn refuse(&self, why: String) -> Box<Status> {
        let name = self.new["metadata"]["name"].as_str().unwrap_or_default();
        let resource = GroupResource::new(GROUP, self.target.resource.as_str());
        Box::new(Status::forbidden(&resource, name, why))
    }

    fn naming(&self) -> Naming<'_> {
        Naming::Request(&self.target.resource)
    }

    fn namespace(&self) -> &str {
        self.target.namespace.as_deref().unwrap_or_default()
    }
}

fn rules(role: &Value) -> Vec<Rule> {
    Option::deserialize(&role["rules"]).ok().flatten().unwrap_or_default()
}

fn aggregates(role: &Value) -> bool {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
    selectors.is_some_and(|selectors| !selectors.is_empty())
}

fn everything() -> [Rule; 2] {
    let all = || vec![ALL.to_owned()];
    [
        Rule { verbs: all(), api_groups: all(), resources: all(), ..Rule::default() },
        Rule { verbs: all(), non_resource_urls: all(), ..Rule::default() },
    ]
}

/// Takes out what says nothing: a list without items is as good as none.
pub(crate) fn prune(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.values_mut().for_each(prune);
            fields.retain(|_, value| match value {
                Value::Null => false,
                Value::Array(items) => !items.is_empty(),
                Value::Object(fields) => !fields.is_empty(),
                _ => true,
            });
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        _ => {}
    }
}
