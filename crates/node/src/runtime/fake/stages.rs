//! Stages as people write them down: a list in YAML.

#[cfg(test)]
mod tests;

use kubewright_apimachinery::yaml;
use serde_json::Value;

use super::Stage;

/// Why a text has no stages.
#[derive(Debug, thiserror::Error)]
pub enum StagesError {
    #[error(transparent)]
    Yaml(#[from] yaml::DecodeError),
    #[error("this is no list of stages")]
    NoList,
    #[error("{}stage {number}: {why}", at(*.line))]
    Stage {
        /// Where it begins, if stages are written one below the other.
        line: Option<usize>,
        number: usize,
        why: String,
    },
}

/// The stages that a text lists.
///
/// # Errors
/// What is wrong with it, and where.
pub fn parse_stages(text: &str) -> Result<Vec<Stage>, StagesError> {
    let Value::Array(items) = yaml::decode(text)?.value else { return Err(StagesError::NoList) };
    let stages = items.into_iter().enumerate().map(|(index, item)| {
        serde_json::from_value(item).map_err(|error| StagesError::Stage {
            line: line_of(text, index),
            number: index + 1,
            why: error.to_string(),
        })
    });
    stages.collect()
}

/// The line on which an item of a list begins.
fn line_of(text: &str, index: usize) -> Option<usize> {
    let is_item = |line: &str| line.trim_start().starts_with("- ") || line.trim() == "-";
    let indent = |line: &str| line.len() - line.trim_start().len();
    // What is indented further is a list in a stage.
    let own = text.lines().find(|line| is_item(line)).map(indent)?;
    let lines = text.lines().enumerate();
    let mut items = lines.filter(|(_, line)| is_item(line) && indent(line) == own);
    items.nth(index).map(|(line, _)| line + 1)
}

fn at(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}
