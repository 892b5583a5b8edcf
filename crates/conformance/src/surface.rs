//! Holds the list of behaviours, docs/api-surface.md, against the scenarios.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use anyhow::{Context as _, Result};

use crate::root;
use crate::scenario::Scenario;

const FILE: &str = "docs/api-surface.md";

/// Ids in scope without a scenario, and ids that scenarios name and the list does not.
pub(crate) fn faults(scenarios: &[Scenario]) -> Result<Vec<String>> {
    let text = fs::read_to_string(root().join(FILE)).with_context(|| format!("read {FILE}"))?;
    Ok(compare(&in_scope_by_id(&text), scenarios))
}

fn compare(listed: &BTreeMap<&str, bool>, scenarios: &[Scenario]) -> Vec<String> {
    let proved: BTreeSet<&str> =
        scenarios.iter().flat_map(|scenario| scenario.proves.iter().copied()).collect();
    let unproved = listed
        .iter()
        .filter(|(id, in_scope)| **in_scope && !proved.contains(*id))
        .map(|(id, _)| format!("{FILE}: {id} is in scope and no scenario proves it"));
    let unmarked = listed
        .iter()
        .filter(|(id, in_scope)| !**in_scope && proved.contains(*id))
        .map(|(id, _)| format!("{FILE}: {id} has a scenario and is not marked in scope"));
    let unknown = proved
        .iter()
        .filter(|id| !listed.contains_key(*id))
        .map(|id| format!("{FILE}: a scenario proves {id}, which is not listed"));
    unproved.chain(unmarked).chain(unknown).collect()
}

/// Rows are `| id | scope | …`; the scope of what is promised today is `yes`.
fn in_scope_by_id(text: &str) -> BTreeMap<&str, bool> {
    text.lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix('|')?.split('|').map(str::trim);
            let (id, scope) = (cells.next()?, cells.next()?);
            let (letter, number) = id.split_at_checked(1)?;
            let is_id = letter.chars().all(|char| char.is_ascii_uppercase())
                && number.parse::<u8>().is_ok();
            is_id.then_some((id, scope == "yes"))
        })
        .collect()
}
