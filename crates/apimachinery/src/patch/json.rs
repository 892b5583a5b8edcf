//! JSON patch as the API server applies it: RFC 6902 with the liberties of upstream's library.
//!
//! The liberties: an index may be negative and counts from the end; `replace` creates a missing
//! key of an object; a `test` without a value, or for `null`, passes where nothing is.
//! Upstream compares the bytes of scalars in a `test`, so that an unescaped `<` never matches;
//! here values are compared.

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

/// Why a patch does not apply. All are answered alike, as an unprocessable entity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    #[error("operation {op:?} is not known")]
    Unknown { op: String },
    #[error("{op} has no {member}")]
    Missing { op: String, member: &'static str },
    #[error("{op}: nothing at {path:?}")]
    NotFound { op: String, path: String },
    #[error("{op}: {index:?} is not an index of the list at {path:?}")]
    Index { op: String, path: String, index: String },
    #[error("replace: the whole document can only become an object or a list")]
    Root,
    #[error("test: another value at {path:?}")]
    TestFailed { path: String },
    #[error("copy: more than {COPY_BYTES_MAX} bytes")]
    CopyTooLarge,
    #[error("{op}: the document would become too deep")]
    TooDeep { op: String },
    #[error("too much of the document has to move")]
    TooCostly,
}

impl Patch {
    /// Reads a patch. A `null` is a patch without operations.
    pub fn decode(patch: Value) -> Result<Patch, DecodeError> {
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
        if operations.len() > OPERATIONS_MAX {
            return Err(DecodeError::TooMany { count: operations.len() });
        }
        Ok(Patch { operations, unknown_fields })
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

    fn not_found(&self, path: &str) -> ApplyError {
        ApplyError::NotFound { op: self.op.clone(), path: path.to_owned() }
    }

    fn bad_index(&self, path: &str, index: &str) -> ApplyError {
        ApplyError::Index { op: self.op.clone(), path: path.to_owned(), index: index.to_owned() }
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
            "remove" => self.remove(operation, operation.path()?).map(drop),
            "replace" => self.replace(operation),
            "move" => {
                let (from, value) = (operation.from()?, self.remove(operation, operation.from()?)?);
                let path = operation.path()?;
                if pointer_depth(path) <= pointer_depth(from) {
                    // It was not too deep before.
                    return self.put(operation, path, value);
                }
                self.count_shifts(WALK_SHIFTS.saturating_mul(count(&value)))?;
                self.add(operation, path, value)
            }
            "copy" => {
                let value = self.get(operation, operation.from()?)?.cloned();
                let value = value.unwrap_or(Value::Null);
                if !value.is_null() {
                    self.copied += json::to_string(&value).len();
                }
                if self.copied > COPY_BYTES_MAX {
                    return Err(ApplyError::CopyTooLarge);
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
        match self.place(path).ok_or_else(|| operation.not_found(path))? {
            Place::Member(members, key) => {
                members.insert(key, value);
            }
            Place::Item(items, key) if key == "-" => items.push(value),
            Place::Item(items, key) => {
                // The new item is counted: -1 is behind the last one.
                let index = index_of(&key, items.len() + 1)
                    .ok_or_else(|| operation.bad_index(path, &key))?;
                let shifts = items.len() - index;
                items.insert(index, value);
                self.count_shifts(shifts)?;
            }
        }
        Ok(())
    }

    fn remove(&mut self, operation: &Operation, path: &str) -> Result<Value, ApplyError> {
        let (removed, shifts) = match self.place(path).ok_or_else(|| operation.not_found(path))? {
            Place::Member(members, key) => {
                let shifts = members.len();
                let removed = members.shift_remove(&key);
                (removed.ok_or_else(|| operation.not_found(path))?, shifts)
            }
            Place::Item(items, key) => {
                let index =
                    index_of(&key, items.len()).ok_or_else(|| operation.bad_index(path, &key))?;
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
        match self.place(path).ok_or_else(|| operation.not_found(path))? {
            Place::Member(members, key) => {
                members.insert(key, value);
            }
            Place::Item(items, key) => {
                let index =
                    index_of(&key, items.len()).ok_or_else(|| operation.bad_index(path, &key))?;
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
            _ => self.get(operation, path)?.unwrap_or(&Value::Null),
        };
        match found == expected {
            true => Ok(()),
            false => Err(ApplyError::TestFailed { path: path.to_owned() }),
        }
    }

    /// What is there; `None` for a key that an object does not have.
    fn get(&mut self, operation: &Operation, path: &str) -> Result<Option<&Value>, ApplyError> {
        match self.place(path).ok_or_else(|| operation.not_found(path))? {
            Place::Member(members, key) => Ok(members.get(&key)),
            Place::Item(items, key) => {
                let index =
                    index_of(&key, items.len()).ok_or_else(|| operation.bad_index(path, &key))?;
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
