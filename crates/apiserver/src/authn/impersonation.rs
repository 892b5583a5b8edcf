//! Acting as somebody else.
//!
//! Upstream knows five ways to be allowed to. The constrained ones give leave for one kind of user
//! and one kind of request: `impersonate-on:<mode>:<verb>` on what is asked, and
//! `impersonate:<mode>` on the user. The one of old, `impersonate`, gives leave for everything, and
//! is tried last, unless it served last time. The first refusal is the one that the client is told.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use http::HeaderMap;
use http::request::Parts;
use kubewright_apimachinery::field::Path;
use kubewright_apimachinery::json::go_quote;
use kubewright_apimachinery::name;
use kubewright_apimachinery::status::Status;

use super::service_account::NODE_NAME;
use crate::authz::{Attributes, Authorizer, Resource, aggregate, forbidden};
use crate::query::Query;
use crate::target::Target;
use crate::user::{self, AUTHENTICATED, MASTERS, NODE_PREFIX, NODES, UNAUTHENTICATED, User};

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";

/// Whom nobody needs an account to be.
const ANONYMOUS: &str = "system:anonymous";

/// From so many values on, leave for all of them is asked for first.
const MANY: usize = 4;

/// Remembers by which mode each user was last allowed. That one is tried first, so that it is also
/// the one whose refusal they are told.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<HashMap<Box<str>, Mode>>);

/// As many users as upstream remembers.
const REMEMBERED_MAX: usize = 10_000;

impl Memory {
    fn get(&self, user: &User) -> Option<Mode> {
        let modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        modes.get(user.name.as_str()).copied()
    }

    fn set(&self, user: &User, mode: Mode) {
        let mut modes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if modes.len() >= REMEMBERED_MAX {
            modes.clear();
        }
        modes.insert(user.name.as_str().into(), mode);
    }
}

/// Somebody as whom another one acts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Impersonated {
    pub user: User,
    /// The verb that gave leave, where it was one for some users only.
    pub constraint: Option<String>,
}

/// Who the request is made as, if its headers ask for somebody else.
pub(super) fn impersonate(
    authorizer: &Authorizer,
    memory: &Memory,
    requester: &User,
    parts: &Parts,
) -> Result<Option<Impersonated>, Box<Status>> {
    let Some(wanted) = wanted(&parts.headers)? else { return Ok(None) };
    let target = Target::of(parts, &Query::parse(parts.uri.query()));
    let attributes = Attributes::of(&target);
    let last = memory.get(requester);
    let others = Mode::ALL.into_iter().filter(|mode| Some(*mode) != last);
    let mut refusal = None;
    for mode in last.into_iter().chain(others) {
        if !mode.applies(&wanted, requester) {
            continue;
        }
        match (Attempt { authorizer, requester, mode, wanted: &wanted }).make(&attributes) {
            Ok(user) => {
                if last != Some(mode) {
                    memory.set(requester, mode);
                }
                let constraint = (mode != Mode::Legacy).then(|| mode.verb());
                return Ok(Some(Impersonated { user, constraint }));
            }
            Err(status) => _ = refusal.get_or_insert(status),
        }
    }
    Err(refusal.expect("the mode of old applies to everybody"))
}

/// A way of being allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// A service account as the node that its pod runs on.
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    /// Any user who is neither.
    UserInfo,
    Legacy,
}

struct Attempt<'a> {
    authorizer: &'a Authorizer,
    requester: &'a User,
    mode: Mode,
    wanted: &'a User,
}

impl Mode {
    const ALL: [Mode; 5] = [
        Mode::AssociatedNode,
        Mode::ArbitraryNode,
        Mode::ServiceAccount,
        Mode::UserInfo,
        Mode::Legacy,
    ];

    fn applies(self, wanted: &User, requester: &User) -> bool {
        let name_only =
            wanted.uid.is_empty() && wanted.groups.is_empty() && wanted.extra.is_empty();
        let node = node_name(&wanted.name);
        let account = user::split_service_account(&wanted.name);
        match self {
            Mode::AssociatedNode => {
                let own = requester.extra.get(NODE_NAME).map(Vec::as_slice);
                name_only
                    && node.is_some_and(|node| own == Some(&[node.to_owned()]))
                    && user::split_service_account(&requester.name).is_some()
            }
            Mode::ArbitraryNode => name_only && node.is_some(),
            Mode::ServiceAccount => name_only && account.is_some(),
            Mode::UserInfo => node.is_none() && account.is_none(),
            Mode::Legacy => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Mode::AssociatedNode => "associated-node",
            Mode::ArbitraryNode => "arbitrary-node",
            Mode::ServiceAccount => "serviceaccount",
            Mode::UserInfo => "user-info",
            Mode::Legacy => "",
        }
    }

    fn verb(self) -> String {
        match self {
            Mode::Legacy => "impersonate".to_owned(),
            mode => format!("impersonate:{}", mode.name()),
        }
    }

    /// The group of the resources `users` and `groups`, which moved.
    fn group(self) -> &'static str {
        match self {
            Mode::Legacy => "",
            _ => AUTHENTICATION,
        }
    }
}

const AUTHENTICATION: &str = "authentication.k8s.io";

impl Attempt<'_> {
    fn make(&self, attributes: &Attributes<'_>) -> Result<User, Box<Status>> {
        if self.mode != Mode::Legacy {
            let verb = format!("impersonate-on:{}:{}", self.mode.name(), attributes.verb);
            self.require(&Attributes { verb: &verb, ..*attributes })?;
        }
        let mut user = self.wanted.clone();
        self.require_name(&mut user)?;
        if !self.wanted.uid.is_empty() {
            self.require_resource("uids", "", &self.wanted.uid)?;
        }
        self.require_groups()?;
        self.require_extra()?;

        let group = match user.name.as_str() {
            ANONYMOUS => UNAUTHENTICATED,
            _ if user.is_in(UNAUTHENTICATED) => return Ok(user),
            _ => AUTHENTICATED,
        };
        if !user.is_in(group) {
            user.groups.push(group.to_owned());
        }
        Ok(user)
    }

    /// Nodes and service accounts have the groups that go with them.
    fn require_name(&self, user: &mut User) -> Result<(), Box<Status>> {
        let constrained = self.mode != Mode::Legacy;
        let mut resource = Resource {
            group: self.mode.group(),
            resource: "users",
            name: &self.wanted.name,
            ..Resource::default()
        };
        if let Some(node) = node_name(&self.wanted.name).filter(|_| constrained) {
            resource.resource = "nodes";
            // Leave for one's own node is leave for whichever that is.
            resource.name = if self.mode == Mode::AssociatedNode { "*" } else { node };
            user.groups = vec![NODES.to_owned()];
        }
        if let Some((namespace, name)) = user::split_service_account(&self.wanted.name) {
            resource.resource = "serviceaccounts";
            (resource.namespace, resource.name) = (namespace, name);
            if user.groups.is_empty() {
                user.groups = user::service_account_groups(namespace);
            }
        }
        self.require(&Attributes::resource(&self.mode.verb(), resource))
    }

    fn require_groups(&self) -> Result<(), Box<Status>> {
        let groups = &self.wanted.groups;
        if groups.is_empty() {
            return Ok(());
        }
        if self.mode != Mode::Legacy {
            let refuse = |name, why| {
                let resource = Resource {
                    group: self.mode.group(),
                    resource: "groups",
                    name,
                    ..Resource::default()
                };
                let verb = self.mode.verb();
                forbidden(self.requester, &Attributes::resource(&verb, resource), why)
            };
            if groups.iter().any(String::is_empty) {
                return Err(refuse("", "impersonating the empty string group is not allowed"));
            }
            if groups.iter().any(|group| group == MASTERS) {
                let why = "impersonating the system:masters group is not allowed";
                return Err(refuse(MASTERS, why));
            }
            if groups.len() >= MANY && self.require_resource("groups", "", "*").is_ok() {
                return Ok(());
            }
        }
        groups.iter().try_for_each(|group| self.require_resource("groups", "", group))
    }

    fn require_extra(&self) -> Result<(), Box<Status>> {
        let extra = &self.wanted.extra;
        if extra.is_empty() {
            return Ok(());
        }
        if self.mode != Mode::Legacy {
            check_extra(extra).map_err(|why| {
                let resource = Resource {
                    group: AUTHENTICATION,
                    resource: "userextras",
                    ..Resource::default()
                };
                let verb = self.mode.verb();
                forbidden(self.requester, &Attributes::resource(&verb, resource), &why)
            })?;
            let many = extra.len() >= MANY || extra.values().map(Vec::len).sum::<usize>() >= MANY;
            if many && self.require_resource("userextras", "*", "*").is_ok() {
                return Ok(());
            }
        }
        for (key, values) in extra {
            for value in values {
                self.require_resource("userextras", key, value)?;
            }
        }
        Ok(())
    }

    fn require_resource(&self, resource: &str, part: &str, name: &str) -> Result<(), Box<Status>> {
        let group = match resource {
            "groups" => self.mode.group(),
            _ => AUTHENTICATION,
        };
        let resource = Resource { group, resource, subresource: part, name, ..Resource::default() };
        self.require(&Attributes::resource(&self.mode.verb(), resource))
    }

    fn require(&self, attributes: &Attributes<'_>) -> Result<(), Box<Status>> {
        self.authorizer.require(self.requester, attributes).map(|_| ())
    }
}

/// The user that the headers ask for, as they say it.
fn wanted(headers: &HeaderMap) -> Result<Option<User>, Box<Status>> {
    let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let first = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut extra: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (header, value) in headers {
        if let Some(key) = header.as_str().strip_prefix(EXTRA) {
            extra.entry(unescape(key)).or_default().push(text(value));
        }
    }
    let user = User {
        name: first(USER),
        uid: first(UID),
        groups: headers.get_all(GROUP).iter().map(text).collect(),
        extra,
    };
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user.uid.is_empty() && user.groups.is_empty() && user.extra.is_empty() {
        return Ok(None);
    }
    let message = format!("requested {} without impersonating a user name", go_syntax(&user));
    Err(Box::new(Status::bad_request(message)))
}

/// The bytes behind `%2f` and the like; a key that is not escaped right is taken as it is.
fn unescape(key: &str) -> String {
    let mut bytes = Vec::with_capacity(key.len());
    let mut rest = key.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
        let (Some(high), Some(low)) = (digit(), digit()) else { return key.to_owned() };
        bytes.push(u8::try_from(high * 16 + low).expect("two hexadecimal digits make a byte"));
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The user as Go prints it, in a message that upstream did not mean for reading.
fn go_syntax(user: &User) -> String {
    let strings = |list: &[String]| match list {
        [] => "[]string(nil)".to_owned(),
        list => {
            let quoted: Vec<String> = list.iter().map(|text| go_quote(text)).collect();
            format!("[]string{{{}}}", quoted.join(", "))
        }
    };
    let extra = match user.extra.is_empty() {
        true => "map[string][]string(nil)".to_owned(),
        false => {
            let pairs: Vec<String> = user
                .extra
                .iter()
                .map(|(key, values)| format!("{}:{}", go_quote(key), strings(values)))
                .collect();
            format!("map[string][]string{{{}}}", pairs.join(", "))
        }
    };
    format!(
        "&user.DefaultInfo{{Name:{}, UID:{}, Groups:{}, Extra:{extra}}}",
        go_quote(&user.name),
        go_quote(&user.uid),
        strings(&user.groups)
    )
}

fn check_extra(extra: &BTreeMap<String, Vec<String>>) -> Result<(), String> {
    let root = Path::new("extra");
    for (key, values) in extra {
        if key.is_empty() {
            return Err("impersonating the empty string key in extra is not allowed".to_owned());
        }
        let problems: Vec<String> = name::domain_prefixed_path(&root.child("key"), key)
            .iter()
            .map(ToString::to_string)
            .collect();
        if !problems.is_empty() {
            let problems = aggregate(problems.iter());
            return Err(format!(
                "impersonating an invalid key in extra is not allowed: {problems}"
            ));
        }
        if *key != key.to_lowercase() {
            let key = go_quote(key);
            return Err(format!(
                "impersonating a non-lowercase key in extra is not allowed: {key}"
            ));
        }
        if values.iter().any(String::is_empty) {
            return Err("impersonating the empty string value in extra is not allowed".to_owned());
        }
    }
    Ok(())
}

fn node_name(user: &str) -> Option<&str> {
    let name = user.strip_prefix(NODE_PREFIX)?;
    name::dns1123_subdomain(name).is_empty().then_some(name)
}
