//! Which paths there are, and which methods they take.
//!
//! Upstream has two answers to that. Built-in resources are behind a router that knows paths with
//! their methods and nothing else: a path exists if any method does. Custom ones are behind a
//! handler that looks at the verb.

use http::Method;
use kubewright_apimachinery::builtin;

use crate::resource::{Origin, Resource};
use crate::target::{ResourceTarget, Verb};

/// Why there is nobody to answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// There is nothing at all, as far as clients are told.
    Page,
    /// There is nothing here, among the resources.
    Path,
    /// There is no such part of the object.
    Part,
    /// There is something, but not for this method.
    Method,
}

/// Finds somebody to answer a request about a resource.
pub(super) fn find(
    resource: &Resource,
    target: &ResourceTarget,
    method: &Method,
) -> Result<(), Missing> {
    let Origin::Builtin(builtin) = &resource.origin else {
        return find_custom(resource, target);
    };
    let mut is_there = false;
    for taken in methods(builtin.row, target) {
        is_there = true;
        if taken == method {
            return Ok(());
        }
    }
    Err(if is_there { Missing::Method } else { Missing::Path })
}

/// The methods that a path takes; none if there is no such path.
fn methods<'a>(
    row: &'a builtin::Resource,
    target: &ResourceTarget,
) -> impl Iterator<Item = &'static Method> + use<'a> {
    let (verbs, methods) = table(row, target);
    let taken = methods.iter().filter(|(verb, _)| verbs.contains(verb));
    taken.map(|(_, method)| method)
}

/// The verbs that are known at a path, and by which methods they are asked for there.
fn table<'a>(
    row: &'a builtin::Resource,
    target: &ResourceTarget,
) -> (&'a [&'static str], &'static [(&'static str, Method)]) {
    let nothing: (&[&str], &[(&str, Method)]) = (&[], &[]);
    let part = target.subresource.as_str();
    let place = place(target, row.namespaced);
    if place == Place::Wrong {
        return nothing;
    }
    if target.says_verb {
        return match part.is_empty() && target.verb == Verb::Watch {
            true => (&row.verbs, &WATCH),
            false => nothing,
        };
    }
    if part.is_empty() {
        return match (place, target.is_collection) {
            (Place::Everywhere, _) => (&row.verbs, &EVERYWHERE),
            (_, true) => (&row.verbs, &COLLECTION),
            (_, false) => (&row.verbs, &OBJECT),
        };
    }
    match row.subresources.iter().find(|row| row.name == part) {
        Some(row) if part == "proxy" => (&row.verbs, &PROXY),
        Some(row) if target.rest.is_empty() => (&row.verbs, &PART),
        _ => nothing,
    }
}

static EVERYWHERE: [(&str, Method); 1] = [("list", Method::GET)];

static WATCH: [(&str, Method); 1] = [("watch", Method::GET)];

static COLLECTION: [(&str, Method); 3] =
    [("list", Method::GET), ("create", Method::POST), ("deletecollection", Method::DELETE)];

static OBJECT: [(&str, Method); 4] = [
    ("get", Method::GET),
    ("update", Method::PUT),
    ("patch", Method::PATCH),
    ("delete", Method::DELETE),
];

static PART: [(&str, Method); 5] = [
    ("get", Method::GET),
    ("create", Method::POST),
    ("update", Method::PUT),
    ("patch", Method::PATCH),
    ("delete", Method::DELETE),
];

/// What is passed on to others may be anything.
static PROXY: [(&str, Method); 7] = [
    ("get", Method::GET),
    ("get", Method::HEAD),
    ("get", Method::OPTIONS),
    ("create", Method::POST),
    ("update", Method::PUT),
    ("patch", Method::PATCH),
    ("delete", Method::DELETE),
];

fn find_custom(resource: &Resource, target: &ResourceTarget) -> Result<(), Missing> {
    let reads_all = matches!(target.verb, Verb::List | Verb::Watch);
    match place(target, resource.namespaced) {
        Place::Right => {}
        Place::Everywhere if reads_all => {}
        _ => return Err(Missing::Page),
    }
    let is_served = match target.subresource.as_str() {
        "" => !matches!(target.verb, Verb::Proxy | Verb::Other),
        part if !resource.knows_part(part) => return Err(Missing::Part),
        part => resource.has_part(part, target.verb.as_str()),
    };
    if is_served { Ok(()) } else { Err(Missing::Method) }
}

/// Where a path looks for a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In a namespace, or outside of all, as the resource is.
    Right,
    /// In all namespaces.
    Everywhere,
    Wrong,
}

fn place(target: &ResourceTarget, namespaced: bool) -> Place {
    // Nothing is below the empty name of a part.
    if target.subresource.is_empty() && !target.rest.is_empty() {
        return Place::Wrong;
    }
    // A namespace is its own namespace, and of no other: rights in one are none in another.
    let is_namespace = target.group.is_empty() && target.resource == "namespaces";
    match (target.namespace.as_deref(), namespaced) {
        (Some(""), _) => Place::Wrong,
        (Some(_), true) | (None, false) => Place::Right,
        (Some(namespace), false) if is_namespace && namespace == target.name => Place::Right,
        (None, true) if target.is_collection => Place::Everywhere,
        _ => Place::Wrong,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    fn check(path: &str, expected: &str) {
        let Target::Resource(target) = Target::parse(&Method::GET, path, false, None) else {
            panic!("{path} is about no resource");
        };
        let row = builtin::resource(&target.group, &target.version, &target.resource);
        let methods = methods(row.expect("it is built in"), &target);
        let methods: Vec<&str> = methods.map(Method::as_str).collect();
        assert_eq!(methods.join(" "), expected, "{path}");
    }

    #[test]
    fn a_path_is_there_if_it_takes_a_method() {
        check("/api/v1/namespaces/a", "GET PUT PATCH DELETE");
        check("/api/v1/namespaces/a/namespaces", "");
        check("/api/v1/namespaces/a/namespaces/b", "");
        check("/api/v1/namespaces//pods", "");
        check("/api/v1/namespaces/a/pods/b//eviction", "");
        check("/api/v1/namespaces/a/pods", "GET POST DELETE");
        check("/api/v1/namespaces/a/pods/b", "GET PUT PATCH DELETE");
        check("/api/v1/namespaces/a/pods/b/status", "GET PUT PATCH");
        check("/api/v1/namespaces/a/pods/b/status/c", "");
        check("/api/v1/namespaces/a/pods/b/log", "GET");
        check("/api/v1/namespaces/a/pods/b/exec", "GET POST");
        check("/api/v1/namespaces/a/pods/b/binding", "POST");
        check("/api/v1/namespaces/a/pods/b/nothing", "");
        check("/api/v1/namespaces/a/pods/b/proxy/c", "GET HEAD OPTIONS POST PUT PATCH DELETE");
        check("/api/v1/namespaces/a/bindings", "POST");
        check("/api/v1/namespaces/a/bindings/b", "");
        check("/api/v1/namespaces", "GET POST");
        check("/api/v1/namespaces/a", "GET PUT PATCH DELETE");
        check("/api/v1/namespaces/a/finalize", "PUT");
        check("/api/v1/nodes", "GET POST DELETE");
        check("/api/v1/namespaces/a/nodes", "");
        check("/api/v1/namespaces/a/nodes/b", "");
        check("/apis/authorization.k8s.io/v1/subjectaccessreviews", "POST");
        check("/apis/authorization.k8s.io/v1/subjectaccessreviews/b", "");
    }

    #[test]
    fn objects_of_all_namespaces_are_only_listed() {
        check("/api/v1/pods", "GET");
        check("/api/v1/pods/b", "");
        check("/api/v1/bindings", "");
        check("/apis/apps/v1/deployments/b/scale", "");
    }

    #[test]
    fn old_paths_are_only_for_watches() {
        check("/api/v1/watch/pods", "GET");
        check("/api/v1/watch/pods/b", "");
        check("/api/v1/watch/namespaces/a/pods", "GET");
        check("/api/v1/watch/namespaces/a/pods/b", "GET");
        check("/api/v1/watch/namespaces/a/pods/b/status", "");
        check("/api/v1/watch/namespaces/a", "GET");
        check("/api/v1/watch/componentstatuses", "");
        check("/api/v1/proxy/namespaces/a/pods/b", "");
    }
}
