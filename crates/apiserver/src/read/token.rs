//! Continue tokens: where the next page begins, and of which moment it is.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kubewright_apimachinery::json;
use serde_json::{Value, json};

/// Where the next page begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Token {
    /// The moment of the first page; negative when the client takes any.
    pub(super) revision: i64,
    /// The first key that may be on the page, relative to where the resource is kept.
    pub(super) start: String,
}

/// Why a text is no token. Displays as upstream answers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum TokenError {
    #[error("continue key is not valid: {0}")]
    Malformed(String),
    #[error("continue key is not valid: server does not recognize this encoded version {0}")]
    Version(String),
    #[error(
        "continue key is not valid: incorrect encoded start resourceVersion (version \
         meta.k8s.io/v1)"
    )]
    Revision,
    #[error("continue key is not valid: encoded start key empty (version meta.k8s.io/v1)")]
    Empty,
}

impl Token {
    pub(super) fn parse(text: &str) -> Result<Self, TokenError> {
        let malformed = TokenError::Malformed;
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|error| malformed(illegal_base64(text, &error)))?;
        let decoded = json::decode(&bytes).map_err(|error| malformed(error.to_string()))?.value;
        let mistyped = |field: &str, value: &Value, ty: &str| {
            let found = match value {
                Value::Bool(_) => "bool",
                Value::Number(_) => "number",
                Value::String(_) => "string",
                Value::Array(_) => "array",
                Value::Object(_) | Value::Null => "object",
            };
            malformed(format!(
                "json: cannot unmarshal {found} into Go struct field continueToken.{field} of \
                 type {ty}"
            ))
        };
        let text = |field: &str| match decoded.get(field) {
            None | Some(Value::Null) => Ok(String::new()),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(other) => Err(mistyped(field, other, "string")),
        };
        let api_version = text("v")?;
        let revision = match decoded.get("rv") {
            None | Some(Value::Null) => 0,
            Some(value) => value.as_i64().ok_or_else(|| mistyped("rv", value, "int64"))?,
        };
        let start = text("start")?;
        if api_version != "meta.k8s.io/v1" {
            return Err(TokenError::Version(api_version));
        }
        match (revision, start.as_str()) {
            (0, _) => Err(TokenError::Revision),
            (_, "") => Err(TokenError::Empty),
            (_, path) if !is_clean(path) => Err(malformed(start)),
            (_, path) => {
                let start = path.strip_prefix('/').unwrap_or(path).to_owned();
                Ok(Token { revision, start })
            }
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Token { revision, start } = self;
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": start});
        f.write_str(&URL_SAFE_NO_PAD.encode(json::to_vec(&token)))
    }
}

/// Whether a path stays below where it starts and is written in only one way.
fn is_clean(path: &str) -> bool {
    let path = path.strip_prefix('/').unwrap_or(path);
    path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// What Go says of text that is no base64: the place of the first byte it cannot take.
fn illegal_base64(text: &str, error: &base64::DecodeError) -> String {
    use base64::DecodeError::{InvalidByte, InvalidLastSymbol, InvalidLength, InvalidPadding};
    let at = match error {
        InvalidByte(at, _) | InvalidLastSymbol(at, _) => *at,
        // One character too many stands alone, and is the one to blame.
        InvalidLength(_) => text.len().saturating_sub(1),
        InvalidPadding => text.len(),
    };
    format!("illegal base64 data at input byte {at}")
}
