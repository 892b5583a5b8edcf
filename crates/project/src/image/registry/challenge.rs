//! What a registry wants to be told by whoever asks.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::Method;
use serde_json::Value;

use super::credentials::Credentials;
use super::wire::{Wire, WireError};

/// The value of `Authorization`; none if nothing is known that would do.
pub(super) async fn answer(
    wire: &Wire,
    challenge: &str,
    scope: &str,
    credentials: Option<&Credentials>,
) -> Result<Option<String>, WireError> {
    let basic = credentials.map(|Credentials { user, password }| {
        format!("Basic {}", BASE64.encode(format!("{user}:{password}")))
    });
    let (scheme, parameters) = parse(challenge);
    if scheme.eq_ignore_ascii_case("basic") {
        return Ok(basic);
    }
    let find = |name: &str| {
        parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    };
    let Some(realm) = find("realm").filter(|_| scheme.eq_ignore_ascii_case("bearer")) else {
        return Ok(None);
    };
    let mark = if realm.contains('?') { '&' } else { '?' };
    let service = find("service").unwrap_or_default();
    let query = [("service", service), ("scope", scope)];
    let query: Vec<_> =
        query.iter().map(|(key, value)| format!("{key}={}", escaped(value))).collect();
    let place = format!("{realm}{mark}{}", query.join("&"));
    let answer = wire.send(Method::GET, &place, None, basic.as_deref()).await?;
    let document: Value = serde_json::from_slice(answer.body()).unwrap_or_default();
    let token = document["token"].as_str().or_else(|| document["access_token"].as_str());
    Ok(token.map(|token| format!("Bearer {token}")))
}

/// `Bearer realm="…",service="…"` taken apart.
fn parse(challenge: &str) -> (String, Vec<(String, String)>) {
    let (scheme, mut rest) = challenge.trim().split_once(' ').unwrap_or((challenge, ""));
    let mut parameters = Vec::new();
    while let Some((key, after)) = rest.split_once('=') {
        // Values in quotes may have commas.
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        parameters.push((key.trim_matches([' ', ',']).to_owned(), value.trim().to_owned()));
        rest = after;
    }
    (scheme.to_owned(), parameters)
}

/// As a query wants it.
fn escaped(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_taken_apart() {
        let (scheme, parameters) =
            parse(r#"Bearer realm="https://a.b/token?x=1",service="r.io",scope="pull,push""#);
        assert_eq!(scheme, "Bearer");
        let parameters: Vec<_> = parameters.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(
            parameters,
            [("realm", "https://a.b/token?x=1"), ("service", "r.io"), ("scope", "pull,push")]
        );
        assert_eq!(parse("Basic realm=registry").1, [("realm".to_owned(), "registry".to_owned())]);
        assert_eq!(escaped("repository:a/b:pull"), "repository%3Aa%2Fb%3Apull");
    }
}
