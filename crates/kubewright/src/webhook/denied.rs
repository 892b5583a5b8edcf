//! How a webhook says no.

use std::error::Error as StdError;
use std::fmt;

use serde_json::{Value, json};

use super::review::Review;
use crate::chain::chain;

/// Why a change is refused. Whatever is an error becomes one with the text of its chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Denied {
    message: String,
    code: u16,
    reason: &'static str,
    causes: Vec<Cause>,
}

/// One field that is wrong, in the words that the server has for its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Such as `spec.containers[0].image`.
    pub field: String,
    pub reason: &'static str,
    pub message: String,
}

impl Denied {
    /// It is forbidden: 403.
    pub fn new(message: impl Into<String>) -> Self {
        Denied { message: message.into(), code: 403, reason: "Forbidden", causes: Vec::new() }
    }

    /// The object is wrong in these fields: 422, with a message that names the object and lists
    /// them, as the server's own.
    pub fn invalid(causes: impl IntoIterator<Item = Cause>) -> Self {
        let causes = causes.into_iter().collect();
        Denied { message: String::new(), code: 422, reason: "Invalid", causes }
    }

    /// The request makes no sense: 400.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Denied { message: message.into(), code: 400, reason: "", causes: Vec::new() }
    }

    /// Something else went wrong, here: 500.
    pub fn internal(message: impl Into<String>) -> Self {
        Denied { message: message.into(), code: 500, reason: "", causes: Vec::new() }
    }

    /// Another HTTP status and the reason that goes with it, such as 409 and `Conflict`.
    pub fn with_code(self, code: u16, reason: &'static str) -> Self {
        Denied { code, reason, ..self }
    }

    pub fn code(&self) -> u16 {
        self.code
    }

    pub fn causes(&self) -> &[Cause] {
        &self.causes
    }

    /// The `status` of a response.
    pub(super) fn status(&self, review: &Review) -> Value {
        let mut status = json!({ "metadata": {}, "message": self.message_about(review) });
        if !self.reason.is_empty() {
            status["reason"] = Value::from(self.reason);
        }
        if !self.causes.is_empty() {
            let cause = |cause: &Cause| {
                json!({
                    "reason": cause.reason, "message": cause.message, "field": cause.field,
                })
            };
            status["details"] = json!({
                "name": review.name, "group": review.kind.group, "kind": review.kind.kind,
                "causes": self.causes.iter().map(cause).collect::<Vec<_>>(),
            });
        }
        status["code"] = Value::from(self.code);
        status
    }

    fn message_about(&self, review: &Review) -> String {
        if !self.message.is_empty() || self.causes.is_empty() {
            return self.message.clone();
        }
        let group = &review.kind.group;
        let dot = if group.is_empty() { "" } else { "." };
        let mut causes: Vec<String> = self.causes.iter().map(ToString::to_string).collect();
        causes.dedup();
        let causes = match causes.as_slice() {
            [only] => only.clone(),
            all => format!("[{}]", all.join(", ")),
        };
        format!("{}{dot}{group} {:?} is invalid: {causes}", review.kind.kind, review.name)
    }
}

impl<E: StdError + 'static> From<E> for Denied {
    fn from(error: E) -> Self {
        Denied::new(chain(&error))
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.message.as_str() {
            "" => {
                let causes: Vec<String> = self.causes.iter().map(ToString::to_string).collect();
                write!(f, "{}", causes.join(", "))
            }
            message => f.write_str(message),
        }
    }
}

impl Cause {
    /// The value is not one that may be there.
    pub fn invalid(field: impl Into<String>, value: impl Into<Value>, detail: &str) -> Self {
        let message = format!("Invalid value: {}: {detail}", value.into());
        Cause { field: field.into(), reason: "FieldValueInvalid", message }
    }

    /// The field must be there.
    pub fn required(field: impl Into<String>, detail: &str) -> Self {
        let message = format!("Required value: {detail}");
        Cause { field: field.into(), reason: "FieldValueRequired", message }
    }

    /// The field must not be there, or not be changed.
    pub fn forbidden(field: impl Into<String>, detail: &str) -> Self {
        Cause {
            field: field.into(),
            reason: "FieldValueForbidden",
            message: format!("Forbidden: {detail}"),
        }
    }

    /// The value is there already.
    pub fn duplicate(field: impl Into<String>, value: impl Into<Value>) -> Self {
        let message = format!("Duplicate value: {}", value.into());
        Cause { field: field.into(), reason: "FieldValueDuplicate", message }
    }

    /// The value is none of those that may be there.
    pub fn not_supported(
        field: impl Into<String>,
        value: impl Into<Value>,
        supported: &[&str],
    ) -> Self {
        let supported: Vec<String> = supported.iter().map(|it| format!("{it:?}")).collect();
        let (value, supported) = (value.into(), supported.join(", "));
        let message = format!("Unsupported value: {value}: supported values: {supported}");
        Cause { field: field.into(), reason: "FieldValueNotSupported", message }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}
