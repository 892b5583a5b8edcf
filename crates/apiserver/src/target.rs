//! What a request is about, read off its method and path alone.
//!
//! Authorization is decided on this, before anything is looked up: whoever may not ask is not told
//! whether the thing exists. The reading is upstream's `RequestInfo`.

use std::borrow::Cow;
use std::str::Split;

use http::Method;
use kubewright_apimachinery::selector::field::{Selector, Term};

/// What a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Resource(ResourceTarget),
    /// Anything that is no resource: `/healthz`, `/apis/apps`, `/openapi/v3`.
    Path {
        path: String,
        verb: String,
    },
}

/// An object, a collection, or a part of an object.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ResourceTarget {
    pub verb: Verb,
    /// Empty for the core group.
    pub group: String,
    pub version: String,
    /// `None` for cluster-scoped objects, and for collections across namespaces.
    pub namespace: Option<String>,
    pub resource: String,
    /// Empty unless a part is meant: `status`, `log`.
    pub subresource: String,
    /// Empty for collections, unless a field selector asks for one object by name.
    pub name: String,
    /// What the field selector of a collection asks for. Paths that say what is to be done do not
    /// always heed it, so that nobody may rely on it there.
    pub fields: Vec<Term>,
    /// Whether the path names no object.
    pub is_collection: bool,
    /// Whether the path says what is to be done, as old ones do: `/api/v1/watch/pods`.
    pub says_verb: bool,
    /// What follows the subresource, as in `pods/web/proxy/a/b`.
    pub rest: Vec<String>,
}

/// What is asked to be done, as authorization names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub enum Verb {
    #[default]
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    Proxy,
    /// A method that means nothing to resources.
    Other,
}

impl Verb {
    pub fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Proxy => "proxy",
            Verb::Other => "",
        }
    }
}

impl Target {
    /// Reads a request.
    pub(crate) fn of(parts: &http::request::Parts, query: &crate::query::Query) -> Target {
        let watch = query.flag("watch").unwrap_or_default();
        let selector = query.get("fieldSelector").and_then(|text| Selector::parse(text).ok());
        let named = selector.as_ref().and_then(|selector| selector.exact("metadata.name"));
        // Requests with other escapes are refused before anybody asks what they are about.
        let path = unescape(parts.uri.path()).unwrap_or_default();
        let mut target = Target::parse(&parts.method, &path, watch, named);
        if let (Target::Resource(target), Some(selector)) = (&mut target, selector)
            && matches!(target.verb, Verb::List | Verb::Watch | Verb::DeleteCollection)
            && !target.says_verb
        {
            target.fields = selector.terms;
        }
        target
    }

    /// What is asked to be done: a word of authorization, or a method of HTTP in small letters.
    pub(crate) fn verb(&self) -> &str {
        match self {
            Target::Resource(target) => target.verb.as_str(),
            Target::Path { verb, .. } => verb,
        }
    }

    /// Whether the answer lasts as long as both sides like: a watch, or another stream.
    pub(crate) fn is_long_running(&self) -> bool {
        match self {
            Target::Resource(target) => lasts(target.verb, &target.subresource),
            Target::Path { path, .. } => path_lasts(path),
        }
    }

    pub(crate) fn is_watch(&self) -> bool {
        matches!(self, Target::Resource(target) if target.verb == Verb::Watch)
    }

    /// Reads a request. `watch` tells whether the query asks for one, `named` whether its field
    /// selector asks for one object by name.
    pub fn parse(method: &Method, path: &str, watch: bool, named: Option<&str>) -> Target {
        let Some(said) = ResourcePath::read(method, path, watch) else {
            return Target::Path {
                path: path.to_owned(),
                verb: method.as_str().to_ascii_lowercase(),
            };
        };
        let is_collection = said.name.is_empty();
        // Asking a collection for one name is asking for that object.
        let asked = match (said.verb, named) {
            (Verb::List | Verb::Watch, Some(name)) if is_collection => name,
            _ => said.name,
        };
        Target::Resource(ResourceTarget {
            verb: said.verb,
            group: said.group.to_owned(),
            version: said.version.to_owned(),
            namespace: said.namespace.map(str::to_owned),
            resource: said.resource.to_owned(),
            subresource: said.subresource.to_owned(),
            name: asked.to_owned(),
            fields: Vec::new(),
            is_collection,
            says_verb: said.says_verb,
            rest: said.rest.map(str::to_owned).collect(),
        })
    }
}

/// What a path says about a resource, in its own words.
#[derive(Debug, Clone)]
pub(crate) struct ResourcePath<'a> {
    pub(crate) verb: Verb,
    pub(crate) subresource: &'a str,
    group: &'a str,
    version: &'a str,
    namespace: Option<&'a str>,
    resource: &'a str,
    name: &'a str,
    says_verb: bool,
    rest: Split<'a, char>,
}

impl<'a> ResourcePath<'a> {
    /// `None` if the path is about no resource.
    pub(crate) fn read(method: &Method, path: &'a str, watch: bool) -> Option<Self> {
        let mut rest = path.trim_matches('/').split('/');
        let group = match rest.next() {
            Some("api") => "",
            Some("apis") => rest.next()?,
            _ => return None,
        };
        let version = rest.next()?;

        let (verb, says_verb) = match rest.clone().next()? {
            "proxy" => (Verb::Proxy, true),
            "watch" => (Verb::Watch, true),
            _ => (verb_of(method), false),
        };
        if says_verb {
            rest.next();
            rest.clone().next()?;
        }

        let mut namespace = None;
        let mut inside = rest.clone();
        if inside.next() == Some("namespaces")
            && let Some(name) = inside.next()
        {
            namespace = Some(name);
            // A namespace's own parts are not resources inside it.
            if !matches!(inside.clone().next(), None | Some("status" | "finalize")) {
                rest = inside;
            }
        }
        let resource = rest.next().unwrap_or_default();
        let name = rest.next().unwrap_or_default();
        let subresource = match verb {
            Verb::Proxy => "",
            _ => rest.next().unwrap_or_default(),
        };
        let verb = match verb {
            Verb::Get if name.is_empty() && watch => Verb::Watch,
            Verb::Get if name.is_empty() => Verb::List,
            Verb::Delete if name.is_empty() => Verb::DeleteCollection,
            verb => verb,
        };
        Some(ResourcePath {
            verb,
            subresource,
            group,
            version,
            namespace,
            resource,
            name,
            says_verb,
            rest,
        })
    }
}

/// Whether what is asked of a resource lasts as long as both sides like.
pub(crate) fn lasts(verb: Verb, subresource: &str) -> bool {
    matches!(verb, Verb::Watch | Verb::Proxy)
        || matches!(subresource, "attach" | "exec" | "log" | "portforward" | "proxy")
}

/// The same for what is no resource.
pub(crate) fn path_lasts(path: &str) -> bool {
    path.starts_with("/debug/pprof/")
}

/// The path that escapes stand for, or `None` if one stands for nothing. Bytes that are no text
/// can be in no name, so it does not matter what becomes of them.
pub(crate) fn unescape(path: &str) -> Option<Cow<'_, str>> {
    if !path.contains('%') {
        return Some(Cow::Borrowed(path));
    }
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        bytes.push(match first {
            b'%' => {
                let (high, low) = (rest.first().copied()?, rest.get(1).copied()?);
                rest = &rest[2..];
                let digit = |byte: u8| char::from(byte).to_digit(16);
                u8::try_from(digit(high)? * 16 + digit(low)?).ok()?
            }
            plain => *plain,
        });
    }
    Some(Cow::Owned(String::from_utf8_lossy(&bytes).into_owned()))
}

fn verb_of(method: &Method) -> Verb {
    match *method {
        Method::GET | Method::HEAD => Verb::Get,
        Method::POST => Verb::Create,
        Method::PUT => Verb::Update,
        Method::PATCH => Verb::Patch,
        Method::DELETE => Verb::Delete,
        _ => Verb::Other,
    }
}
