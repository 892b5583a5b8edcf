//! Variables in files that a container has left for another: `NAME='value'`, as a shell reads it.
//! Pure.

/// The value of a variable in a file; none if it is not there or empty.
///
/// # Errors
/// What of the file cannot be read, in upstream's words.
pub(super) fn variable(text: &str, key: &str) -> Result<Option<String>, String> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line));
    while let Some((number, line)) = lines.next() {
        let line = line.trim_start_matches(BLANK);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong =
            |why: &str| Err(format!("invalid environment variable format at line {number}: {why}"));
        let Some((name, rest)) = line.split_once('=') else { return wrong("missing '='") };
        if name.trim_end_matches(BLANK).is_empty() {
            return wrong("empty variable name");
        }
        if name.ends_with(BLANK) {
            return wrong("whitespace before '=' is not allowed");
        }
        let mut value = String::new();
        // To a shell, what follows a blank is a command: the variable is empty.
        if !rest.starts_with(BLANK) {
            let Some(mut rest) = rest.strip_prefix('\'') else {
                return wrong("value must be enclosed in single quotes");
            };
            let after = loop {
                match rest.split_once('\'') {
                    Some((end, after)) => {
                        value.push_str(end);
                        break after.trim_start_matches(BLANK);
                    }
                    None => {
                        value.extend([rest, "\n"]);
                        let Some((_, line)) = lines.next() else {
                            return Err(format!(
                                "invalid environment variable format starting at line {number}: \
                                 unclosed single quote"
                            ));
                        };
                        rest = line;
                    }
                }
            };
            if !after.is_empty() && !after.starts_with('#') {
                return wrong("unexpected content after closing quote");
            }
        }
        if name == key {
            return Ok(Some(value).filter(|value| !value.is_empty()));
        }
    }
    Ok(None)
}

const BLANK: [char; 2] = [' ', '\t'];
