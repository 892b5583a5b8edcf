//! What server-side apply knows of a kind: which lists are sets, which have keys, which values
//! are one piece.
//!
//! A schema is an arena of types, so that a type may contain itself. It comes from the table of
//! built-in types, from the structural schema of a CRD, or from nothing, in which case types are
//! deduced from values: maps field by field, lists as one piece.

mod builtin;
mod structural;

use serde_json::Value;

/// The types of one kind in one version.
#[derive(Debug, Clone)]
pub struct Schema {
    types: Vec<Type>,
    root: TypeId,
}

/// A row of a [`Schema`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TypeId(u32);

/// The forms a value may take. Most types have one; an untyped value has all three.
#[derive(Debug, Clone, Default)]
pub(super) struct Type {
    pub(super) scalar: Option<Scalar>,
    pub(super) list: Option<List>,
    pub(super) map: Option<Map>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    String,
    Boolean,
    Untyped,
}

#[derive(Debug, Clone)]
pub(super) struct List {
    pub(super) element: TypeId,
    pub(super) topology: ListTopology,
}

#[derive(Debug, Clone)]
pub(super) enum ListTopology {
    /// One piece.
    Atomic,
    /// Scalars, each once.
    Set,
    /// Objects told apart by these fields.
    Keyed(Vec<KeyField>),
}

/// A field that tells the items of a list apart.
#[derive(Debug, Clone)]
pub(super) struct KeyField {
    pub(super) name: Box<str>,
    /// Stands in for the field where an item leaves it out.
    pub(super) default: Option<Value>,
}

/// A map, or a struct: a map some of whose keys have types of their own.
#[derive(Debug, Clone, Default)]
pub(super) struct Map {
    /// Sorted by name.
    fields: Vec<Field>,
    /// The type under every other key; without it there may be none.
    pub(super) element: Option<TypeId>,
    /// One piece.
    pub(super) atomic: bool,
    /// Free-form: no named fields, and elements that may be anything. Changes of such a schema
    /// are not carried over to existing field sets.
    pub(super) free_form: bool,
}

#[derive(Debug, Clone)]
struct Field {
    name: Box<str>,
    ty: TypeId,
    default: Option<Value>,
}

impl Schema {
    /// For objects nobody has described.
    pub fn deduced() -> Self {
        Builder::new().finish(DEDUCED)
    }

    pub(super) fn root(&self) -> TypeId {
        self.root
    }

    pub(super) fn get(&self, id: TypeId) -> &Type {
        &self.types[id.0 as usize]
    }
}

impl Map {
    /// The type of the value under `key`.
    pub(super) fn value_type(&self, key: &str) -> Option<TypeId> {
        self.field(key).map(|field| field.ty).or(self.element)
    }

    /// Whether `key` is a field with a name in the schema, not an entry among others.
    pub(super) fn names(&self, key: &str) -> bool {
        self.field(key).is_some()
    }

    fn field(&self, key: &str) -> Option<&Field> {
        let at = self.fields.binary_search_by(|field| field.name.as_ref().cmp(key)).ok()?;
        Some(&self.fields[at])
    }
}

impl TypeId {
    /// No value can contradict this type.
    pub(super) fn takes_anything(self) -> bool {
        self == UNTYPED || self == DEDUCED
    }
}

/// Anything, as one piece.
const UNTYPED: TypeId = TypeId(0);
/// Anything: maps field by field, lists as one piece.
const DEDUCED: TypeId = TypeId(1);
const NUMERIC: TypeId = TypeId(2);
const STRING: TypeId = TypeId(3);
const BOOLEAN: TypeId = TypeId(4);
const UNTYPED_SCALAR: TypeId = TypeId(5);

/// Collects the types of a schema. The six constants above are its first rows.
struct Builder {
    types: Vec<Type>,
}

impl Builder {
    fn new() -> Self {
        let scalar = |scalar| Type { scalar: Some(scalar), ..Type::default() };
        let anything = |map_element, atomic| Type {
            scalar: Some(Scalar::Untyped),
            list: Some(List { element: UNTYPED, topology: ListTopology::Atomic }),
            map: Some(Map {
                fields: Vec::new(),
                element: Some(map_element),
                atomic,
                free_form: !atomic,
            }),
        };
        Builder {
            types: vec![
                anything(UNTYPED, true),
                anything(DEDUCED, false),
                scalar(Scalar::Numeric),
                scalar(Scalar::String),
                scalar(Scalar::Boolean),
                scalar(Scalar::Untyped),
            ],
        }
    }

    fn add(&mut self, ty: Type) -> TypeId {
        let id = TypeId(
            u32::try_from(self.types.len()).expect("a schema has fewer than four billion types"),
        );
        self.types.push(ty);
        id
    }

    fn add_map(&mut self, map: Map) -> TypeId {
        self.add(Type { map: Some(map), ..Type::default() })
    }

    fn add_list(&mut self, element: TypeId, topology: ListTopology) -> TypeId {
        self.add(Type { list: Some(List { element, topology }), ..Type::default() })
    }

    /// `metadata`, the same for every kind.
    fn object_meta(&mut self) -> TypeId {
        let text = |name| Field::new(name, STRING, None);
        let required_text = |name| Field::new(name, STRING, Some(Value::from("")));
        let owner = self.add_map(Map {
            atomic: true,
            ..Map::of_fields(vec![
                required_text("apiVersion"),
                Field::new("blockOwnerDeletion", BOOLEAN, None),
                Field::new("controller", BOOLEAN, None),
                required_text("kind"),
                required_text("name"),
                required_text("uid"),
            ])
        });
        let uid = KeyField { name: "uid".into(), default: None };
        let owners = self.add_list(owner, ListTopology::Keyed(vec![uid]));
        let finalizers = self.add_list(STRING, ListTopology::Set);
        let fields_v1 =
            self.add_map(Map { element: Some(DEDUCED), free_form: true, ..Map::default() });
        let entry = self.add_map(Map::of_fields(vec![
            text("apiVersion"),
            text("fieldsType"),
            Field::new("fieldsV1", fields_v1, None),
            text("manager"),
            text("operation"),
            text("subresource"),
            Field::new("time", UNTYPED_SCALAR, None),
        ]));
        let entries = self.add_list(entry, ListTopology::Atomic);
        let text_map = self.add_map(Map { element: Some(STRING), ..Map::default() });
        self.add_map(Map::of_fields(vec![
            Field::new("annotations", text_map, None),
            Field::new("creationTimestamp", UNTYPED_SCALAR, None),
            Field::new("deletionGracePeriodSeconds", NUMERIC, None),
            Field::new("deletionTimestamp", UNTYPED_SCALAR, None),
            Field::new("finalizers", finalizers, None),
            text("generateName"),
            Field::new("generation", NUMERIC, None),
            Field::new("labels", text_map, None),
            Field::new("managedFields", entries, None),
            text("name"),
            text("namespace"),
            Field::new("ownerReferences", owners, None),
            text("resourceVersion"),
            text("selfLink"),
            text("uid"),
        ]))
    }

    fn finish(mut self, root: TypeId) -> Schema {
        self.default_keys();
        Schema { types: self.types, root }
    }

    /// Gives each key field the default its item type declares. Done last, because an item type
    /// may be complete only after the list that holds it.
    fn default_keys(&mut self) {
        for at in 0..self.types.len() {
            let Some(List { element, topology: ListTopology::Keyed(keys) }) = &self.types[at].list
            else {
                continue;
            };
            let item = self.types[element.0 as usize].map.as_ref();
            let defaulted = keys
                .iter()
                .map(|key| {
                    let default = item
                        .and_then(|item| item.field(&key.name))
                        .and_then(|field| field.default.clone());
                    KeyField { name: key.name.clone(), default }
                })
                .collect();
            if let Some(list) = &mut self.types[at].list {
                list.topology = ListTopology::Keyed(defaulted);
            }
        }
    }
}

impl Map {
    fn of_fields(mut fields: Vec<Field>) -> Self {
        fields.sort_by(|a, b| a.name.cmp(&b.name));
        Map { fields, ..Map::default() }
    }
}

impl Field {
    fn new(name: &str, ty: TypeId, default: Option<Value>) -> Self {
        // A default of null is upstream's way to say none.
        Field { name: name.into(), ty, default: default.filter(|default| !default.is_null()) }
    }
}
