//! Descriptions as documentation: Markdown that means the same to rustdoc, and is run by no test.

/// The lines of a description.
pub(super) fn lines(description: &str) -> Vec<String> {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in description.trim().lines() {
        let fence = line.trim_start().strip_prefix("```");
        if let Some(word) = fence {
            is_code = !is_code;
            // Code that nobody says the language of would be compiled as Rust.
            let word = if is_code && word.trim().is_empty() { "text" } else { word.trim() };
            lines.push(format!("```{word}"));
            continue;
        }
        match is_code {
            true => lines.push(line.trim_end().to_owned()),
            // Four spaces begin code as well.
            false => lines.push(escaped(line.trim())),
        }
    }
    if is_code {
        lines.push("```".to_owned());
    }
    lines
}

/// With links that are links, and no others.
fn escaped(line: &str) -> String {
    let word = |word: &str| {
        let begin = word.find("http://").or_else(|| word.find("https://"));
        let marks = |text: &str| text.replace('[', "\\[").replace(']', "\\]").replace('<', "\\<");
        let Some(begin) = begin.filter(|_| !word.contains(['[', '<', '`'])) else {
            return marks(word);
        };
        let end = word.trim_end_matches(['.', ',', ';', ':', ')', '"', '\'']).len().max(begin);
        format!("{}<{}>{}", marks(&word[..begin]), &word[begin..end], marks(&word[end..]))
    };
    // In code, signs are what they are.
    let parts = line.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part.split(' ').map(word).collect::<Vec<_>>().join(" "),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_are_text_to_rustdoc() {
        let check = |description: &str, expected: &[&str]| {
            assert_eq!(lines(description), expected);
        };
        check("One.\n\n    indented", &["One.", "", "indented"]);
        check("```\nlet x;\n```", &["```text", "let x;", "```"]);
        check("```yaml\na: 1", &["```yaml", "a: 1", "```"]);
        check("see [docs] and <b>", &["see \\[docs\\] and \\<b>"]);
        check("see `[x]` at https://a.b/c.", &["see `[x]` at <https://a.b/c>."]);
        check("(https://a.b)", &["(<https://a.b>)"]);
    }
}
