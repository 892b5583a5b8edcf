//! The printers of built-in kinds, by area. Each kind is its columns and a function from an
//! object to cells.

mod admission;
mod cluster;
mod network;
mod pod;
mod resource;
mod security;
mod storage;
mod workload;

use serde_json::Value;

use super::{BuiltinPrinter, Column, Fields};

/// The printer of a kind, unless it is shown with its name and creation time only.
pub(super) fn printer(group: &str, kind: &str) -> Option<&'static BuiltinPrinter> {
    let areas = [
        pod::PRINTERS,
        workload::PRINTERS,
        network::PRINTERS,
        storage::PRINTERS,
        cluster::PRINTERS,
        security::PRINTERS,
        admission::PRINTERS,
        resource::PRINTERS,
    ];
    areas.into_iter().flatten().find(|printer| printer.group == group && printer.kind == kind)
}

const fn printer_of(
    group: &'static str,
    kind: &'static str,
    columns: &'static [Column],
    cells: fn(Fields<'_>) -> Value,
) -> BuiltinPrinter {
    BuiltinPrinter { group, kind, columns, cells, conditions: no_conditions, sort: None }
}

fn no_conditions(_: Fields<'_>) -> Vec<Value> {
    Vec::new()
}
