//! Where in an object something is wrong, and what: upstream's `field.Path` and `field.Error`.

use std::fmt;

use serde_json::Value;

use crate::json;

/// The way from an object's root to one of its fields.
///
/// A path is a chain of borrowed steps, so that walking a valid object allocates nothing; it
/// becomes text only in an error.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    parent: Option<&'a Path<'a>>,
    step: Step<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Step<'a> {
    /// The object itself.
    Root,
    Child(&'a str),
    Index(usize),
    Key(&'a str),
}

impl<'a> Path<'a> {
    /// The object itself. Prints as `<nil>`, as upstream's does.
    pub const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub fn new(name: &'a str) -> Self {
        Path { parent: None, step: Step::Child(name) }
    }

    pub fn child(&'a self, name: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Child(name) }
    }

    pub fn index(&'a self, index: usize) -> Path<'a> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    pub fn key(&'a self, key: &'a str) -> Path<'a> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>) -> Result<bool, fmt::Error> {
        let something_before = match self.parent {
            Some(parent) => parent.write(f)?,
            None => false,
        };
        match self.step {
            Step::Root => return Ok(something_before),
            // Upstream treats an empty name as a subscript by the empty string.
            Step::Child("") => f.write_str("[]")?,
            Step::Child(name) if something_before => write!(f, ".{name}")?,
            Step::Child(name) => f.write_str(name)?,
            Step::Index(index) => write!(f, "[{index}]")?,
            Step::Key(key) => write!(f, "[{key}]")?,
        }
        Ok(true)
    }
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.write(f)? {
            true => Ok(()),
            false => f.write_str("<nil>"),
        }
    }
}

/// One thing that is wrong with a field.
#[derive(Debug, Clone, PartialEq)]
pub struct Error {
    pub kind: ErrorKind,
    pub field: String,
    /// What was found there; `None` when the message leaves it out.
    pub bad_value: Option<Value>,
    pub detail: String,
}

/// Why a field is refused; each is a `reason` of a `Status` cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    NotFound,
    Required,
    Duplicate,
    Invalid,
    NotSupported,
    Forbidden,
    TooLong,
    TooShort,
    TooMany,
    TooFew,
    Internal,
    TypeInvalid,
}

impl ErrorKind {
    /// The `reason` of the cause in a `Status`.
    pub fn reason(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "FieldValueNotFound",
            ErrorKind::Required => "FieldValueRequired",
            ErrorKind::Duplicate => "FieldValueDuplicate",
            ErrorKind::Invalid => "FieldValueInvalid",
            ErrorKind::NotSupported => "FieldValueNotSupported",
            ErrorKind::Forbidden => "FieldValueForbidden",
            ErrorKind::TooLong => "FieldValueTooLong",
            ErrorKind::TooShort => "FieldValueTooShort",
            ErrorKind::TooMany => "FieldValueTooMany",
            ErrorKind::TooFew => "FieldValueTooFew",
            ErrorKind::Internal => "InternalError",
            ErrorKind::TypeInvalid => "FieldValueTypeInvalid",
        }
    }

    fn words(self) -> &'static str {
        match self {
            ErrorKind::NotFound => "Not found",
            ErrorKind::Required => "Required value",
            ErrorKind::Duplicate => "Duplicate value",
            ErrorKind::Invalid | ErrorKind::TypeInvalid => "Invalid value",
            ErrorKind::NotSupported => "Unsupported value",
            ErrorKind::Forbidden => "Forbidden",
            ErrorKind::TooLong => "Too long",
            ErrorKind::TooShort => "Too short",
            ErrorKind::TooMany => "Too many",
            ErrorKind::TooFew => "Too few",
            ErrorKind::Internal => "Internal error",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(
            self,
            ErrorKind::Required
                | ErrorKind::Forbidden
                | ErrorKind::TooLong
                | ErrorKind::TooShort
                | ErrorKind::Internal
        )
    }
}

impl Error {
    fn new(kind: ErrorKind, path: &Path<'_>, value: Option<Value>, detail: String) -> Self {
        Error { kind, field: path.to_string(), bad_value: value, detail }
    }

    pub fn required(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Error::new(ErrorKind::Required, path, None, detail.into())
    }

    pub fn forbidden(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Error::new(ErrorKind::Forbidden, path, None, detail.into())
    }

    pub fn internal(path: &Path<'_>, detail: impl Into<String>) -> Self {
        Error::new(ErrorKind::Internal, path, None, detail.into())
    }

    pub fn invalid(path: &Path<'_>, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Error::new(ErrorKind::Invalid, path, Some(value.into()), detail.into())
    }

    pub fn type_invalid(
        path: &Path<'_>,
        value: impl Into<Value>,
        detail: impl Into<String>,
    ) -> Self {
        Error::new(ErrorKind::TypeInvalid, path, Some(value.into()), detail.into())
    }

    pub fn duplicate(path: &Path<'_>, value: impl Into<Value>) -> Self {
        Error::new(ErrorKind::Duplicate, path, Some(value.into()), String::new())
    }

    pub fn not_found(path: &Path<'_>, value: impl Into<Value>) -> Self {
        Error::new(ErrorKind::NotFound, path, Some(value.into()), String::new())
    }

    pub fn not_supported(
        path: &Path<'_>,
        value: impl Into<Value>,
        supported: &[impl AsRef<str>],
    ) -> Self {
        let detail = match supported {
            [] => String::new(),
            values => {
                let quoted: Vec<_> = values.iter().map(|v| json::go_quote(v.as_ref())).collect();
                format!("supported values: {}", quoted.join(", "))
            }
        };
        Error::new(ErrorKind::NotSupported, path, Some(value.into()), detail)
    }

    pub fn too_long(path: &Path<'_>, bytes_max: usize) -> Self {
        let detail = format!("may not be more than {}", count(bytes_max, "byte"));
        Error::new(ErrorKind::TooLong, path, None, detail)
    }

    pub fn too_long_characters(path: &Path<'_>, characters_max: usize) -> Self {
        let detail = format!("may not be more than {}", count(characters_max, "character"));
        Error::new(ErrorKind::TooLong, path, None, detail)
    }

    pub fn too_many(path: &Path<'_>, found: usize, items_max: usize) -> Self {
        let detail = format!("must have at most {}", count(items_max, "item"));
        Error::new(ErrorKind::TooMany, path, Some(found.into()), detail)
    }

    pub fn too_few(path: &Path<'_>, found: usize, items_min: usize) -> Self {
        let detail = format!("must have at least {}", count(items_min, "item"));
        Error::new(ErrorKind::TooFew, path, Some(found.into()), detail)
    }

    pub fn too_short(path: &Path<'_>, value: impl Into<Value>, characters_min: usize) -> Self {
        let detail = format!("must be at least {}", count(characters_min, "character"));
        Error::new(ErrorKind::TooShort, path, Some(value.into()), detail)
    }

    /// The message without the field: what stands in the `message` of a `Status` cause.
    pub fn body(&self) -> String {
        let mut body = self.kind.words().to_owned();
        if let Some(value) = self.bad_value.as_ref().filter(|_| self.kind.shows_value()) {
            body.push_str(": ");
            match value {
                Value::String(text) => body.push_str(&json::go_quote(text)),
                // Upstream prints a float here as Go's `%v` does, not as JSON.
                Value::Number(number) if number.is_f64() => {
                    body.push_str(&json::go_float(number.as_f64().expect("it is one")));
                }
                other => body.push_str(&json::to_string(other)),
            }
        }
        if !self.detail.is_empty() {
            body.push_str(": ");
            body.push_str(&self.detail);
        }
        body
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

impl std::error::Error for Error {}

/// `1 byte`, `2 bytes`.
fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
