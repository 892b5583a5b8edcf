//! Whoever writes a policy or a binding must be allowed to read its parameters: expressions could
//! tell what is in them.

use kubewright_apimachinery::field::{Error, Path};
use kubewright_apimachinery::gvk::{GroupVersion, GroupVersionKind};
use kubewright_apimachinery::status::Status;
use serde_json::Value;

use super::{Policies, params};
use crate::admission::{Attributes, Operation, text};
use crate::authz::{self, Decision};
use crate::index;
use crate::refusal::Refusal;
use crate::user::{MASTERS, User};

impl Policies {
    /// Refuses a policy or a binding, which is valid otherwise, if its parameters are not for the
    /// eyes of its author.
    pub(in crate::admission) fn check_readable(
        &self,
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<(), Refusal> {
        let gvr = &attributes.resource.gvr;
        if gvr.group != "admissionregistration.k8s.io"
            || attributes.part.is_some()
            || !matches!(attributes.operation, Operation::Create | Operation::Update)
            || attributes.user.is_in(MASTERS)
        {
            return Ok(());
        }
        let (field, why) = match gvr.resource.as_str() {
            "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
                ("paramKind", self.unreadable_kind(attributes, object))
            }
            "validatingadmissionpolicybindings" => {
                let policies = "/registry/validatingadmissionpolicies/";
                ("paramRef", self.unreadable_params(attributes, object, policies))
            }
            "mutatingadmissionpolicybindings" => {
                let policies = "/registry/mutatingadmissionpolicies/";
                ("paramRef", self.unreadable_params(attributes, object, policies))
            }
            _ => return Ok(()),
        };
        let Some(why) = why else { return Ok(()) };
        let spec = Path::new("spec");
        let error = Error::forbidden(&spec.child(field), why);
        let kind = attributes.resource.group_kind();
        let name = crate::meta::text(object, "name");
        Err(Box::new(Status::invalid(&kind, name, &[error])))
    }

    /// Why the author of a policy may not read all objects of its kind of parameters. A kind that
    /// was there before is not asked about again.
    fn unreadable_kind(&self, attributes: &Attributes<'_>, policy: &Value) -> Option<String> {
        let kind = &policy["spec"]["paramKind"];
        let before = attributes.old.map(|old| &old["spec"]["paramKind"]);
        if !kind.is_object() || before == Some(kind) {
            return None;
        }
        let (group, resource) = self.resource_of(kind);
        let wanted = authz::Resource {
            group: &group,
            resource: resource.as_deref().unwrap_or("*"),
            namespace: "*",
            name: "*",
            ..authz::Resource::default()
        };
        if self.may(attributes.user, "get", wanted) {
            return None;
        }
        Some(format!(
            "user {} must have \"get\" permission on all objects of the referenced paramKind \
             (kind={}, apiVersion={})",
            shown(attributes.user),
            text(&kind["kind"]),
            text(&kind["apiVersion"])
        ))
    }

    /// Why the author of a binding may not read what it refers to. Whom that concerns is known
    /// from the policy; without one, it could be anything.
    fn unreadable_params(
        &self,
        attributes: &Attributes<'_>,
        binding: &Value,
        policies: &str,
    ) -> Option<String> {
        let spec = &binding["spec"];
        let reference = &spec["paramRef"];
        if !reference.is_object() {
            return None;
        }
        let policy = text(&spec["policyName"]);
        let stored = self.store.get(&format!("{policies}{policy}"));
        let found = stored.and_then(|rev| index::object(&rev));
        let kind = found.as_ref().map(|policy| &policy["spec"]["paramKind"]);
        let kind = kind.filter(|kind| kind.is_object());
        let known = kind.map(|kind| self.resource_of(kind));
        let (group, resource) = match &known {
            Some((group, resource)) => (group.as_str(), resource.as_deref().unwrap_or("*")),
            None => ("*", "*"),
        };
        let name = text(&reference["name"]);
        let verb = if name.is_empty() { "list" } else { "get" };
        let wanted = authz::Resource {
            group,
            resource,
            namespace: text(&reference["namespace"]),
            name,
            ..authz::Resource::default()
        };
        if self.may(attributes.user, verb, wanted) {
            return None;
        }
        let user = shown(attributes.user);
        let nothing = format!(
            "to determine minimum required permissions and user {user} does not have \"{verb}\" \
             permission for all groups, versions and resources"
        );
        Some(match (&found, kind, &known) {
            (None, ..) => format!("unable to get policy {policy} {nothing}"),
            (_, Some(kind), Some((_, None))) => {
                let (version, kind) = (text(&kind["apiVersion"]), text(&kind["kind"]));
                format!("unable to resolve paramKind &{{{version} {kind}}} {nothing}")
            }
            _ => {
                // Upstream mixes them up for policies that change objects.
                let (user, verb) = match policies.contains("mutating") {
                    true => (verb, user.as_str()),
                    false => (user.as_str(), verb),
                };
                format!(
                    "user {user} does not have \"{verb}\" permission on the object referenced by \
                     paramRef"
                )
            }
        })
    }

    /// The group of a kind, and the name of its resource if it is served.
    fn resource_of(&self, kind: &Value) -> (String, Option<String>) {
        let version = GroupVersion::parse(text(&kind["apiVersion"])).unwrap_or_default();
        let gvk = GroupVersionKind::new(
            version.group.clone(),
            version.version,
            text(&kind["kind"]).to_owned(),
        );
        let resource = params::resource(&self.shelf.catalog(), &gvk).ok();
        (version.group, resource.map(|resource| resource.gvr.resource.clone()))
    }

    fn may(&self, user: &User, verb: &str, resource: authz::Resource<'_>) -> bool {
        let attributes = authz::Attributes::resource(verb, resource);
        matches!(self.authorizer.decide(user, &attributes), Decision::Allowed(_))
    }
}

/// A user as Go prints the fields of one.
fn shown(user: &User) -> String {
    let User { name, uid, groups, extra } = user;
    let extra: Vec<String> =
        extra.iter().map(|(key, values)| format!("{key}:[{}]", values.join(" "))).collect();
    format!("&{{{name} {uid} [{}] map[{}]}}", groups.join(" "), extra.join(" "))
}
