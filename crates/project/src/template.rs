//! The texts of files that are made: templates with `{{names}}` in them.

/// A template with every name replaced.
///
/// # Panics
/// If a name has no value: templates are part of this program.
pub(crate) fn fill(template: &str, values: &[(&str, &str)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("a name ends");
        let value = values.iter().find(|(known, _)| *known == name);
        let (_, value) = value.unwrap_or_else(|| panic!("{name:?} has no value"));
        text.push_str(before);
        text.push_str(value);
        rest = after;
    }
    text.push_str(rest);
    text
}
