//! One rule of a role: what it allows, and which other rules it covers.

use std::collections::BTreeSet;
use std::fmt;

use kubewright_apimachinery::json::go_quote;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Attributes, Object, Resource};

/// One rule of a role. Each list allows what any of its members names.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    #[serde(deserialize_with = "nullable")]
    pub verbs: Vec<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub api_groups: Vec<String>,
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Empty means every name, and none.
    #[serde(deserialize_with = "nullable", skip_serializing_if = "Vec::is_empty")]
    pub resource_names: Vec<String>,
    #[serde(
        rename = "nonResourceURLs",
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub non_resource_urls: Vec<String>,
}

/// Stands for every verb, group, resource or path.
pub(super) const ALL: &str = "*";

pub(super) fn nullable<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

impl Rule {
    pub(super) fn allows(&self, attributes: &Attributes<'_>) -> bool {
        has(&self.verbs, attributes.verb)
            && match attributes.object {
                Object::Resource(of) => {
                    has(&self.api_groups, of.group)
                        && self.resources.iter().any(|rule| names(rule, &of))
                        && (self.resource_names.is_empty()
                            || self.resource_names.iter().any(|name| name == of.name))
                }
                Object::Path(path) => {
                    self.non_resource_urls.iter().any(|rule| covers_path(rule, path))
                }
            }
    }

    /// The rule as many rules of one verb, one resource and at most one name each.
    fn atoms(&self) -> Vec<Rule> {
        let one = |text: &String| vec![text.clone()];
        let mut atoms = Vec::new();
        for group in &self.api_groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let atom = Rule {
                        verbs: one(verb),
                        api_groups: one(group),
                        resources: one(resource),
                        ..Rule::default()
                    };
                    if self.resource_names.is_empty() {
                        atoms.push(atom);
                        continue;
                    }
                    atoms.extend(
                        self.resource_names
                            .iter()
                            .map(|name| Rule { resource_names: one(name), ..atom.clone() }),
                    );
                }
            }
        }
        for url in &self.non_resource_urls {
            atoms.extend(self.verbs.iter().map(|verb| Rule {
                verbs: one(verb),
                non_resource_urls: one(url),
                ..Rule::default()
            }));
        }
        atoms
    }

    /// Whether this rule allows all that an atom does.
    fn covers(&self, atom: &Rule) -> bool {
        atom.verbs.iter().all(|verb| has(&self.verbs, verb))
            && atom.api_groups.iter().all(|group| has(&self.api_groups, group))
            && atom.resources.iter().all(|resource| covers_resource(&self.resources, resource))
            && (self.resource_names.is_empty()
                || !atom.resource_names.is_empty()
                    && atom.resource_names.iter().all(|name| self.resource_names.contains(name)))
            && atom
                .non_resource_urls
                .iter()
                .all(|path| self.non_resource_urls.iter().any(|rule| covers_path(rule, path)))
    }
}

/// What of `wanted` no rule in `held` covers, in atoms.
pub(crate) fn missing(held: &[Rule], wanted: &[Rule]) -> Vec<Rule> {
    let atoms = wanted.iter().flat_map(Rule::atoms);
    atoms.filter(|atom| !held.iter().any(|rule| rule.covers(atom))).collect()
}

/// The atoms as a person reads them, sorted: those that differ in their verbs become one.
pub(super) fn describe(atoms: Vec<Rule>) -> BTreeSet<String> {
    let mut compact: Vec<Rule> = Vec::new();
    for atom in atoms {
        let same = |rule: &&mut Rule| {
            atom.non_resource_urls.is_empty()
                && rule.api_groups == atom.api_groups
                && rule.resources == atom.resources
                && rule.resource_names == atom.resource_names
        };
        match compact.iter_mut().find(same) {
            Some(rule) => rule.verbs.extend(atom.verbs),
            None => compact.push(atom),
        }
    }
    compact.iter().map(Rule::to_string).collect()
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lists = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts: Vec<String> = lists
            .into_iter()
            .filter(|(_, list)| !list.is_empty())
            .map(|(name, list)| format!("{name}:{}", quoted(list)))
            .collect();
        write!(f, "{{{}}}", parts.join(", "))
    }
}

/// A list of strings as Go's `%q` prints it.
pub(crate) fn quoted(list: &[String]) -> String {
    let quoted: Vec<String> = list.iter().map(|text| go_quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}

fn has(list: &[String], wanted: &str) -> bool {
    list.iter().any(|item| item == ALL || item == wanted)
}

/// Whether a rule's `pods`, `pods/status`, `*/status` or `*` names this resource.
fn names(rule: &str, of: &Resource<'_>) -> bool {
    if rule == ALL {
        return true;
    }
    if of.subresource.is_empty() {
        return rule == of.resource;
    }
    let part = of.subresource;
    rule.strip_prefix("*/") == Some(part)
        || rule
            .strip_prefix(of.resource)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|rest| rest == part)
}

fn covers_resource(held: &[String], wanted: &str) -> bool {
    has(held, wanted)
        || wanted
            .split_once('/')
            .is_some_and(|(_, part)| held.iter().any(|rule| rule.strip_prefix("*/") == Some(part)))
}

fn covers_path(rule: &str, path: &str) -> bool {
    rule == path || rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*'))
}
