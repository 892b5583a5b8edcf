//! Sets of fields, and their algebra.
//!
//! A set is a tree of path elements, each level one sorted vector. A node may be a member itself,
//! stand above members, or both; a node that is neither does not exist, so equal sets have equal
//! trees. Operations that shrink or grow a set consume it and reuse its nodes.

use serde_json::{Map, Value};

use super::path::{PathElement, PathElementError};

/// A set of fields of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Set {
    nodes: Vec<Node>,
}

/// A path element on some level of a [`Set`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: PathElement,
    /// The path that ends here is in the set.
    pub(super) member: bool,
    /// The longer paths through here.
    pub(super) children: Set,
}

/// `fieldsV1` that is no tree of path elements.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldsError {
    #[error("read fieldsV1: expected an object below {0:?}")]
    NotAnObject(String),
    #[error("read fieldsV1")]
    Element(#[from] PathElementError),
}

impl Set {
    pub const fn new() -> Self {
        Set { nodes: Vec::new() }
    }

    /// A set of nested field names, as `["metadata", "name"]`.
    pub fn of_fields<const N: usize>(paths: [&[&str]; N]) -> Self {
        let mut set = Set::new();
        for path in paths {
            set.insert(path.iter().map(|name| PathElement::field(name)));
        }
        set
    }

    /// Adds one path; not its parents. The empty path names the whole object, which nobody owns,
    /// and adds nothing.
    pub fn insert(&mut self, path: impl IntoIterator<Item = PathElement>) {
        let mut path = path.into_iter().peekable();
        let mut set = self;
        while let Some(element) = path.next() {
            let node = set.node_mut(element);
            if path.peek().is_none() {
                node.member = true;
                return;
            }
            set = &mut node.children;
        }
    }

    pub fn contains(&self, path: &[PathElement]) -> bool {
        match path {
            [] => false,
            [element] => self.node(element).is_some_and(|node| node.member),
            [element, rest @ ..] => {
                self.node(element).is_some_and(|node| node.children.contains(rest))
            }
        }
    }

    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// The number of members.
    pub fn len(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.member) + node.children.len()).sum()
    }

    /// The paths in either set.
    #[must_use]
    pub fn union(self, other: Set) -> Set {
        if self.is_empty() {
            return other;
        }
        if other.is_empty() {
            return self;
        }
        let mut nodes = Vec::with_capacity(self.nodes.len().max(other.nodes.len()));
        let (mut ours, mut theirs) =
            (self.nodes.into_iter().peekable(), other.nodes.into_iter().peekable());
        while let (Some(a), Some(b)) = (ours.peek(), theirs.peek()) {
            let order = a.element.cmp(&b.element);
            if order.is_lt() {
                nodes.extend(ours.next());
            } else if order.is_gt() {
                nodes.extend(theirs.next());
            } else if let (Some(mut node), Some(same)) = (ours.next(), theirs.next()) {
                node.member |= same.member;
                node.children = node.children.union(same.children);
                nodes.push(node);
            }
        }
        nodes.extend(ours);
        nodes.extend(theirs);
        Set { nodes }
    }

    /// The paths in any of the sets. Pairs are united first, then pairs of pairs, so that many
    /// small sets cost no more than a few large ones.
    #[must_use]
    pub fn union_of(mut sets: Vec<Set>) -> Set {
        while sets.len() > 1 {
            let mut pairs = sets.into_iter();
            let mut united = Vec::with_capacity(pairs.len().div_ceil(2));
            while let Some(set) = pairs.next() {
                united.push(match pairs.next() {
                    Some(other) => set.union(other),
                    None => set,
                });
            }
            sets = united;
        }
        sets.pop().unwrap_or_default()
    }

    /// The paths in both sets.
    #[must_use]
    pub fn intersection(&self, other: &Set) -> Set {
        let mut nodes = Vec::new();
        self.join(other, |ours, theirs| {
            let Some(theirs) = theirs else { return };
            let member = ours.member && theirs.member;
            let children = ours.children.intersection(&theirs.children);
            if member || !children.is_empty() {
                nodes.push(Node { element: ours.element.clone(), member, children });
            }
        });
        Set { nodes }
    }

    /// The paths in this set that are not in `other`. A member of `other` takes away only itself,
    /// not what lies below it.
    #[must_use]
    pub fn difference(self, other: &Set) -> Set {
        self.subtract(other, |node, theirs| {
            node.member &= !theirs.member;
            node.children = std::mem::take(&mut node.children).difference(&theirs.children);
        })
    }

    /// The paths in this set that neither are in `other` nor lie below a member of it.
    #[must_use]
    pub fn recursive_difference(self, other: &Set) -> Set {
        self.subtract(other, |node, theirs| {
            if theirs.member {
                node.member = false;
                node.children = Set::new();
            } else {
                node.children =
                    std::mem::take(&mut node.children).recursive_difference(&theirs.children);
            }
        })
    }

    /// The paths that lead to no longer path of this set.
    #[must_use]
    pub fn leaves(mut self) -> Set {
        for node in &mut self.nodes {
            node.member &= node.children.is_empty();
            node.children = std::mem::take(&mut node.children).leaves();
        }
        self
    }

    /// The key fields of every list item that a path of this set goes through.
    #[must_use]
    pub(super) fn key_fields(&self) -> Set {
        let below = |node: &Node| {
            let mut children = node.children.key_fields();
            if let PathElement::Key(fields) = &node.element {
                for (name, _) in fields {
                    children.insert([PathElement::Field(name.clone())]);
                }
            }
            (!children.is_empty()).then(|| Node {
                element: node.element.clone(),
                member: false,
                children,
            })
        };
        Set { nodes: self.nodes.iter().filter_map(below).collect() }
    }

    /// Whether every path of this set is in `other`.
    pub fn is_subset(&self, other: &Set) -> bool {
        let mut subset = true;
        self.join(other, |ours, theirs| {
            subset &= theirs.is_some_and(|theirs| {
                (theirs.member || !ours.member) && ours.children.is_subset(&theirs.children)
            });
        });
        subset
    }

    /// Calls `visit` with each path. On every level the members come before what lies below them,
    /// the order in which conflicts are reported.
    pub fn for_each(&self, mut visit: impl FnMut(&[PathElement])) {
        self.walk(&mut Vec::new(), &mut visit);
    }

    fn walk(&self, path: &mut Vec<PathElement>, visit: &mut impl FnMut(&[PathElement])) {
        for node in self.nodes.iter().filter(|node| node.member) {
            path.push(node.element.clone());
            visit(path);
            path.pop();
        }
        for node in self.nodes.iter().filter(|node| !node.children.is_empty()) {
            path.push(node.element.clone());
            node.children.walk(path, visit);
            path.pop();
        }
    }

    /// Reads the tree of a managed-fields entry. Elements of unknown kinds are skipped.
    ///
    /// # Errors
    /// When a key is no path element or a value is neither object nor null.
    pub fn from_fields_v1(fields: &Value) -> Result<Self, FieldsError> {
        match fields {
            Value::Object(fields) => Ok(read_level(fields)?.0),
            Value::Null => Ok(Set::new()),
            _ => Err(FieldsError::NotAnObject(String::new())),
        }
    }

    /// The tree of a managed-fields entry, in the order of path elements.
    pub fn to_fields_v1(&self) -> Value {
        let mut fields = Map::with_capacity(self.nodes.len());
        self.write_level(&mut fields);
        Value::Object(fields)
    }

    fn write_level(&self, fields: &mut Map<String, Value>) {
        for node in &self.nodes {
            let mut below = Map::new();
            if node.member && !node.children.is_empty() {
                below.insert(".".to_owned(), Value::Object(Map::new()));
            }
            node.children.write_level(&mut below);
            fields.insert(node.element.encode(), Value::Object(below));
        }
    }

    /// A set of nodes in any order. Nodes of the same element become one.
    pub(super) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        let in_order = nodes.windows(2).all(|pair| pair[0].element < pair[1].element);
        if in_order {
            return Set { nodes };
        }
        nodes.sort_by(|a, b| a.element.cmp(&b.element));
        let mut merged = Vec::with_capacity(nodes.len());
        let mut nodes = nodes.into_iter().peekable();
        while let Some(mut node) = nodes.next() {
            let mut children = Vec::new();
            while let Some(same) = nodes.next_if(|next| next.element == node.element) {
                node.member |= same.member;
                children.push(same.children);
            }
            if !children.is_empty() {
                children.push(node.children);
                node.children = Set::union_of(children);
            }
            merged.push(node);
        }
        Set { nodes: merged }
    }

    pub(super) fn node(&self, element: &PathElement) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.element.cmp(element)).ok()?;
        Some(&self.nodes[at])
    }

    /// The node of a field name, without building an element to look for.
    pub(super) fn field_node(&self, name: &str) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| match &node.element {
            PathElement::Field(field) => field.as_ref().cmp(name),
            _ => std::cmp::Ordering::Greater,
        });
        at.ok().map(|at| &self.nodes[at])
    }

    pub(super) fn into_nodes(self) -> impl Iterator<Item = Node> {
        self.nodes.into_iter()
    }

    pub(super) fn nodes_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        self.nodes.iter_mut()
    }

    fn node_mut(&mut self, element: PathElement) -> &mut Node {
        let at = match self.nodes.binary_search_by(|node| node.element.cmp(&element)) {
            Ok(at) => at,
            Err(at) => {
                self.nodes.insert(at, Node { element, member: false, children: Set::new() });
                at
            }
        };
        &mut self.nodes[at]
    }

    /// Visits each node with the other set's node of the same element.
    fn join<'a>(&'a self, other: &'a Set, mut visit: impl FnMut(&'a Node, Option<&'a Node>)) {
        let mut theirs = other.nodes.iter().peekable();
        for node in &self.nodes {
            while theirs.next_if(|their| their.element < node.element).is_some() {}
            visit(node, theirs.next_if(|their| their.element == node.element));
        }
    }

    /// Lets `shrink` change each node that `other` has too, and drops those left without members.
    fn subtract(mut self, other: &Set, mut shrink: impl FnMut(&mut Node, &Node)) -> Set {
        if other.is_empty() {
            return self;
        }
        let mut theirs = other.nodes.iter().peekable();
        self.nodes.retain_mut(|node| {
            while theirs.next_if(|their| their.element < node.element).is_some() {}
            if let Some(their) = theirs.next_if(|their| their.element == node.element) {
                shrink(node, their);
            }
            node.member || !node.children.is_empty()
        });
        self
    }
}

/// The nodes of one level, and whether the level says that its parent is a member.
fn read_level(fields: &Map<String, Value>) -> Result<(Set, bool), FieldsError> {
    let mut nodes = Vec::with_capacity(fields.len());
    let mut parent_is_member = false;
    for (key, below) in fields {
        if key == "." {
            parent_is_member = true;
            continue;
        }
        let element = match PathElement::parse(key) {
            Ok(element) => element,
            Err(PathElementError::UnknownType) => continue,
            Err(error) => return Err(error.into()),
        };
        let (children, member) = match below {
            Value::Object(below) => read_level(below)?,
            Value::Null => (Set::new(), true),
            _ => return Err(FieldsError::NotAnObject(key.clone())),
        };
        nodes.push(Node { element, member, children });
    }
    // With nothing below it, the parent can only be there for its own sake.
    parent_is_member |= nodes.is_empty();
    Ok((Set::from_nodes(nodes), parent_is_member))
}
