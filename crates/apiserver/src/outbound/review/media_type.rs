//! Media types as Go reads them.

/// What Go's `mime.ParseMediaType` finds wrong, if anything is given.
pub(super) fn check(given: &str) -> Option<&'static str> {
    let is_token = |text: &str| {
        let is_special = |letter: char| " ()<>@,;:\\\"/[]?=".contains(letter);
        !text.is_empty() && !text.chars().any(|letter| letter.is_control() || is_special(letter))
    };
    let (media, parameters) = given.split_once(';').unwrap_or((given, ""));
    match media.trim().split_once('/') {
        _ if given.is_empty() => return None,
        None if media.trim().is_empty() => return Some("mime: no media type"),
        None if is_token(media.trim()) => {}
        None => return Some("mime: expected slash after first token"),
        Some((kind, _)) if !is_token(kind) => return Some("mime: no media type"),
        Some((_, "")) => return Some("mime: expected token after slash"),
        Some((_, sub)) if !is_token(sub) => {
            return Some("mime: unexpected content after media subtype");
        }
        Some(_) => {}
    }
    let mut parameters = parameters.split(';').map(str::trim).peekable();
    while let Some(parameter) = parameters.next() {
        // One semicolon too many at the end is let pass.
        if parameter.is_empty() && parameters.peek().is_none() {
            continue;
        }
        let is_sound = parameter.split_once('=').is_some_and(|(name, value)| {
            let quoted = value.len() > 1 && value.starts_with('"') && value.ends_with('"');
            is_token(name.trim()) && (is_token(value) || quoted)
        });
        if !is_sound {
            return Some("mime: invalid media parameter");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::check as found;

    #[test]
    fn a_media_type_is_checked_as_go_checks_it() {
        let check = |given: &str, expected: Option<&str>| {
            assert_eq!(found(given), expected, "{given}");
        };
        check("", None);
        check("application/json", None);
        check("application/json; charset=utf-8", None);
        check("application/json;", None);
        check("text", None);
        check("app;;;x", Some("mime: invalid media parameter"));
        check("/json", Some("mime: no media type"));
        check("text/", Some("mime: expected token after slash"));
        check("text/a/b", Some("mime: unexpected content after media subtype"));
    }
}
