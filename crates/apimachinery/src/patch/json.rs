//! JSON patch as the API server applies it: RFC 6902 with the liberties of upstream's library.
//!
//! The liberties: an index may be negative and counts from the end; `replace` creates a missing
//! key of an object; a `test` without a value, or for `null`, passes where nothing is.
//! Upstream compares the bytes of scalars in a `test`, so that an unescaped `<` never matches;
//! here values are compared.

use std::fmt;

use serde_json::{Map, Value};

use crate::json::{self, go};

/// More operations than this are refused.
pub const OPERATIONS_MAX: usize = 10_000;
/// How many bytes of JSON the `copy` operations of one patch may add.
pub const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;
/// How many list items and object members the operations of one patch may shift: ten thousand
/// insertions at the head of a long list would take minutes.
const SHIFTS_MAX: usize = 100_000_000;
/// What it costs to look at a value that moves down, in shifts for each value within it.
const WALK_SHIFTS: usize = 8;

/// A decoded patch.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    operations: Vec<Operation>,
    unknown_fields: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
struct Operation {
    op: String,
    path: Option<String>,
    from: Option<String>,
    value: Option<Value>,
}

/// Why a document is not a patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Answered as a bad request; the text is what Go's decoder says.
    #[error("error decoding patch: json: cannot unmarshal {found} into Go {place}")]
    Type { found: &'static str, place: String },
    /// Answered as too large an entity.
    #[error("The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}")]
    TooMany { count: usize },
}

/// Why a patch does not apply. All are answered alike to who patches an object, as an unprocessable
/// entity; of a webhook's patch the text is told, which is that of upstream's library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApplyError {
    Unknown {
        op: String,
    },
    Missing {
        op: String,
        member: &'static str,
    },
    /// There is no way to a place; `end` tells which one, where there are two.
    NoWay {
        op: String,
        end: End,
        path: String,
    },
    /// What should go is not there.
    NoKey {
        op: String,
        path: String,
        key: String,
    },
    Index {
        op: String,
        end: End,
        path: String,
        index: String,
    },
    /// The whole document can only become an object or a list.
    Root,
    TestFailed {
        path: String,
    },
    CopyTooLarge {
        bytes: usize,
    },
    TooDeep {
        op: String,
    },
    TooCostly,
}

/// Which of the places of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    From,
    Path,
}

impl std::error::Error for ApplyError {}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ApplyError::Unknown { op } => write!(f, "Unexpected kind: {op}"),
            ApplyError::Missing { op, member } => {
                write!(f, "{op} operation failed to decode {member}: ")?;
                match (op.as_str(), *member) {
                    ("add" | "remove" | "copy", "path") => {}
                    (_, "from") => f.write_str("operation, missing from field: ")?,
                    _ => f.write_str("operation missing path field: ")?,
                }
                f.write_str("missing value")
            }
            ApplyError::NoWay { op, end, path } => {
                write!(f, "{op} operation does not apply: ")?;
                match (op.as_str(), end) {
                    ("add" | "remove", _) => write!(f, "doc is missing path: \"{path}\"")?,
                    ("test", _) => write!(f, "is missing path: {path}")?,
                    (_, End::From) => write!(f, "doc is missing from path: {path}")?,
                    ("move" | "copy", End::Path) => {
                        write!(f, "doc is missing destination path: {path}")?;
                    }
                    _ => write!(f, "doc is missing path: {path}")?,
                }
                f.write_str(": missing value")
            }
            ApplyError::NoKey { op, path, key } => {
                let path = if op == "move" { key } else { path };
                write!(f, "error in {op} for path: '{path}': ")?;
                write!(f, "Unable to remove nonexistent key: {key}: missing value")
            }
            ApplyError::Index { op, end, path, index } => {
                match (op.as_str(), end) {
                    ("replace", _) => {
                        let why = "replace operation does not apply: doc is missing key";
                        return write!(f, "{why}: {path}: missing value");
                    }
                    ("copy", End::From) => write!(f, "error in copy for from: '{path}': ")?,
                    ("copy", End::Path) => f.write_str("error while adding value during copy: ")?,
                    ("move", End::From) => write!(f, "error in move for path: '{index}': ")?,
                    _ => write!(f, "error in {op} for path: '{path}': ")?,
                }
                if index.parse::<i64>().is_ok() {
                    let why = "Unable to access invalid index";
                    return write!(f, "{why}: {index}: invalid index referenced");
                }
                if matches!((op.as_str(), end), ("add" | "move" | "copy", End::Path)) {
                    write!(f, "value was not a proper array index: '{index}': ")?;
                }
                write!(f, "strconv.Atoi: parsing {}: invalid syntax", json::go_quote(index))
            }
            // So Go prints an error that is none.
            ApplyError::Root => {
                f.write_str("replace operation value must be object or array: %!w(<nil>)")
            }
            ApplyError::TestFailed { path } => {
                write!(f, "testing value {path} failed: test failed")
            }
            ApplyError::CopyTooLarge { bytes } => write!(
                f,
                "Unable to complete the copy, the accumulated size increase of copy is {bytes}, \
                 exceeding the limit {COPY_BYTES_MAX}"
            ),
            ApplyError::TooDeep { op } => {
                write!(f, "{op} operation does not apply: the document would become too deep")
            }
            ApplyError::TooCostly => f.write_str("too much of the document has to move"),
        }
    }
}

impl Patch {
    /// Reads a patch, of which a client may not send a longer one. A `null` is a patch without
    /// operations.
    pub fn decode(patch: Value) -> Result<Patch, DecodeError> {
        let patch = Patch::decode_any(patch)?;
        match patch.operations.len() {
            count if count > OPERATIONS_MAX => Err(DecodeError::TooMany { count }),
            _ => Ok(patch),
        }
    }

    /// Reads a patch of any length.
    pub fn decode_any(patch: Value) -> Result<Patch, DecodeError> {
        let items = match patch {
            Value::Null => Vec::new(),
            Value::Array(items) => items,
            other => {
                let place = "value of type []handlers.jsonPatchOp".to_owned();
                return Err(DecodeError::Type { found: go::word(&other), place });
            }
        };
        let mut unknown_fields = Vec::new();
        let operations = items
            .into_iter()
            .enumerate()
            .map(|(index, item)| Operation::decode(index, item, &mut unknown_fields))
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Patch { operations, unknown_fields })
    }

    /// Whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Where operations had members that no operation has, as `[0].valeu`. They are ignored when
    /// the patch is applied.
    pub fn unknown_fields(&self) -> &[String] {
        &self.unknown_fields
    }

    /// The pointers of all operations, to where they write and from where they read.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        let pointers = self.operations.iter();
        pointers
            .flat_map(|operation| [&operation.path, &operation.from])
            .flatten()
            .map(String::as_str)
    }

    /// The document after all operations.
    pub fn apply(&self, document: &Value) -> Result<Value, ApplyError> {
        let mut editor = Editor { document: document.clone(), copied: 0, shifted: 0 };
        for operation in &self.operations {
            editor.apply(operation)?;
        }
        Ok(editor.document)
    }
}

impl Operation {
    fn decode(
        index: usize,
        item: Value,
        unknown_fields: &mut Vec<String>,
    ) -> Result<Operation, DecodeError> {
        let mut operation =
            Operation { op: "unknown".to_owned(), path: None, from: None, value: None };
        let members = match item {
            Value::Null => return Ok(operation),
            Value::Object(members) => members,
            other => {
                let place = "value of type handlers.jsonPatchOp".to_owned();
                return Err(DecodeError::Type { found: go::word(&other), place });
            }
        };
        for (name, member) in members {
            match name.as_str() {
                "op" => {
                    if let Some(op) = text(&name, member)? {
                        operation.op = op;
                    }
                }
                "path" => operation.path = text(&name, member)?,
                "from" => operation.from = text(&name, member)?,
                "value" => operation.value = Some(member),
                _ => unknown_fields.push(format!("[{index}].{name}")),
            }
        }
        Ok(operation)
    }

    fn path(&self) -> Result<&str, ApplyError> {
        self.path.as_deref().ok_or_else(|| self.missing("path"))
    }

    fn from(&self) -> Result<&str, ApplyError> {
        self.from.as_deref().ok_or_else(|| self.missing("from"))
    }

    fn missing(&self, member: &'static str) -> ApplyError {
        ApplyError::Missing { op: self.op.clone(), member }
    }

    fn no_way(&self, end: End, path: &str) -> ApplyError {
        ApplyError::NoWay { op: self.op.clone(), end, path: path.to_owned() }
    }

    fn no_key(&self, path: &str, key: String) -> ApplyError {
        ApplyError::NoKey { op: self.op.clone(), path: path.to_owned(), key }
    }

    fn bad_index(&self, end: End, path: &str, index: &str) -> ApplyError {
        let (path, index) = (path.to_owned(), index.to_owned());
        ApplyError::Index { op: self.op.clone(), end, path, index }
    }
}

/// A document being patched, and what the operations so far have cost.
struct Editor {
    document: Value,
    copied: usize,
    shifted: usize,
}

/// What an operation addresses: a place inside an object or a list.
enum Place<'d> {
    Member(&'d mut Map<String, Value>, String),
    Item(&'d mut Vec<Value>, String),
}

impl Editor {
    fn apply(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        match operation.op.as_str() {
            "add" => {
                let value = operation.value.clone().unwrap_or(Value::Null);
                self.add(operation, operation.path()?, value)
            }
            "remove" => self.remove(operation, End::Path, operation.path()?).map(drop),
            "replace" => self.replace(operation),
            "move" => {
                let from = operation.from()?;
                let value = self.remove(operation, End::From, from)?;
                let path = operation.path()?;
                if pointer_depth(path) <= pointer_depth(from) {
                    // It was not too deep before.
                    return self.put(operation, path, value);
                }
                self.count_shifts(WALK_SHIFTS.saturating_mul(count(&value)))?;
                self.add(operation, path, value)
            }
            "copy" => {
                let value = self.get(operation, End::From, operation.from()?)?.cloned();
                let value = value.unwrap_or(Value::Null);
                if !value.is_null() {
                    self.copied += json::to_string(&value).len();
                }
                if self.copied > COPY_BYTES_MAX {
                    return Err(ApplyError::CopyTooLarge { bytes: self.copied });
                }
                self.add(operation, operation.path()?, value)
            }
            "test" => self.test(operation),
            _ => Err(ApplyError::Unknown { op: operation.op.clone() }),
        }
    }

    fn add(&mut self, operation: &Operation, path: &str, value: Value) -> Result<(), ApplyError> {
        // Copies of copies double the depth each time.
        if pointer_depth(path) + json::depth(&value) > json::DEPTH_MAX {
            return Err(ApplyError::TooDeep { op: operation.op.clone() });
        }
        self.put(operation, path, value)
    }

    /// [`Editor::add`] of what cannot make the document too deep.
    fn put(&mut self, operation: &Operation, path: &str, value: Value) -> Result<(), ApplyError> {
        match self.place(path).ok_or_else(|| operation.no_way(End::Path, path))? {
            Place::Member(members, key) => {
                members.insert(key, value);
            }
            Place::Item(items, key) if key == "-" => items.push(value),
            Place::Item(items, key) => {
                // The new item is counted: -1 is behind the last one.
                let index = index_of(&key, items.len() + 1)
                    .ok_or_else(|| operation.bad_index(End::Path, path, &key))?;
                let shifts = items.len() - index;
                items.insert(index, value);
                self.count_shifts(shifts)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, operation: &Operation, end: End, path: &str) -> Result<Value, ApplyError> {
        let place = self.place(path).ok_or_else(|| operation.no_way(end, path))?;
        let (removed, shifts) = match place {
            Place::Member(members, key) => {
                let shifts = members.len();
                let removed = members.shift_remove(&key);
                (removed.ok_or_else(|| operation.no_key(path, key))?, shifts)
            }
            Place::Item(items, key) => {
                let index = index_of(&key, items.len())
                    .ok_or_else(|| operation.bad_index(end, path, &key))?;
                (items.remove(index), items.len() - index)
            }
        };
        self.count_shifts(shifts)?;
        Ok(removed)
    }

    fn replace(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let path = operation.path()?;
        let value = operation.value.clone().unwrap_or(Value::Null);
        if path.is_empty() {
            if !value.is_object() && !value.is_array() {
                return Err(ApplyError::Root);
            }
            self.document = value;
            return Ok(());
        }
        if pointer_depth(path) + json::depth(&value) > json::DEPTH_MAX {
            return Err(ApplyError::TooDeep { op: operation.op.clone() });
        }
        match self.place(path).ok_or_else(|| operation.no_way(End::Path, path))? {
            Place::Member(members, key) => {
                members.insert(key, value);
            }
            Place::Item(items, key) => {
                let index = index_of(&key, items.len())
                    .ok_or_else(|| operation.bad_index(End::Path, path, &key))?;
                items[index] = value;
            }
        }
        Ok(())
    }

    fn test(&mut self, operation: &Operation) -> Result<(), ApplyError> {
        let path = operation.path()?;
        let expected = operation.value.as_ref().unwrap_or(&Value::Null);
        let found = match path {
            "" => &self.document,
            _ => self.get(operation, End::Path, path)?.unwrap_or(&Value::Null),
        };
        match found == expected {
            true => Ok(()),
            false => Err(ApplyError::TestFailed { path: path.to_owned() }),
        }
    }

    /// What is there; `None` for a key that an object does not have.
    fn get(
        &mut self,
        operation: &Operation,
        end: End,
        path: &str,
    ) -> Result<Option<&Value>, ApplyError> {
        match self.place(path).ok_or_else(|| operation.no_way(end, path))? {
            Place::Member(members, key) => Ok(members.get(&key)),
            Place::Item(items, key) => {
                let index = index_of(&key, items.len())
                    .ok_or_else(|| operation.bad_index(end, path, &key))?;
                Ok(Some(&items[index]))
            }
        }
    }

    /// The object or list that a pointer's last token is about, if the way there exists.
    fn place(&mut self, path: &str) -> Option<Place<'_>> {
        // Whatever stands before the first slash is ignored, as upstream does.
        let (_, tokens) = path.split_once('/')?;
        let (way, last) = tokens.rsplit_once('/').map_or((None, tokens), |(w, l)| (Some(w), l));
        let mut at = &mut self.document;
        for token in way.into_iter().flat_map(|way| way.split('/')) {
            let key = unescape(token);
            at = match at {
                Value::Object(members) => members.get_mut(&key)?,
                Value::Array(items) => {
                    let index = index_of(&key, items.len())?;
                    &mut items[index]
                }
                _ => return None,
            };
        }
        match at {
            Value::Object(members) => Some(Place::Member(members, unescape(last))),
            Value::Array(items) => Some(Place::Item(items, unescape(last))),
            _ => None,
        }
    }

    fn count_shifts(&mut self, shifts: usize) -> Result<(), ApplyError> {
        self.shifted += shifts;
        match self.shifted > SHIFTS_MAX {
            true => Err(ApplyError::TooCostly),
            false => Ok(()),
        }
    }
}

/// How deep in the document the place is that a pointer names.
fn pointer_depth(path: &str) -> usize {
    path.matches('/').count()
}

/// How many values there are in a value, itself included.
fn count(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(count).sum::<usize>(),
        Value::Object(members) => 1 + members.values().map(count).sum::<usize>(),
        _ => 1,
    }
}

/// The position that a token names in a list of this length; a sign and leading zeros are
/// allowed, as Go's `Atoi` does.
fn index_of(token: &str, length: usize) -> Option<usize> {
    let index: i64 = token.parse().ok()?;
    let index = if index < 0 { index.checked_add_unsigned(length as u64)? } else { index };
    usize::try_from(index).ok().filter(|index| *index < length)
}

fn unescape(token: &str) -> String {
    // In this order "~01" becomes "~1", as it must.
    token.replace("~1", "/").replace("~0", "~")
}

fn text(name: &str, member: Value) -> Result<Option<String>, DecodeError> {
    match member {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text)),
        other => {
            let place = format!("struct field jsonPatchOp.{name} of type string");
            Err(DecodeError::Type { found: go::word(&other), place })
        }
    }
}
