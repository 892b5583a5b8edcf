//! The columns of custom resources (`additionalPrinterColumns`).

use serde_json::{Number, Value};

use super::{AGE, NAME, age, definition};
use crate::jsonpath::{self, Template};
use crate::time::MicroTime;

/// One entry of `additionalPrinterColumns`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ColumnDefinition {
    pub name: String,
    #[serde(rename = "type")]
    pub ty: String,
    #[serde(default)]
    pub format: String,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub priority: i32,
    pub json_path: String,
}

/// The name, and the columns of a version of a custom resource.
#[derive(Debug, Clone)]
pub struct CustomColumns {
    columns: Vec<(ColumnDefinition, Template)>,
    /// No columns were asked for: there is one with the age.
    is_default: bool,
}

impl CustomColumns {
    /// Columns end before the first whose path cannot be parsed; upstream only logs that.
    pub fn new(definitions: &[ColumnDefinition]) -> CustomColumns {
        let age = ColumnDefinition {
            name: AGE.name.to_owned(),
            ty: "date".to_owned(),
            format: String::new(),
            description: String::new(),
            priority: 0,
            json_path: ".metadata.creationTimestamp".to_owned(),
        };
        let is_default = definitions.is_empty();
        let definitions = if is_default { &[age] } else { definitions };
        let columns = definitions
            .iter()
            .map_while(|column| {
                Some((column.clone(), Template::parse_column(&column.json_path).ok()?))
            })
            .collect();
        CustomColumns { columns, is_default }
    }

    pub(super) fn definitions(
        &self,
        describe: &dyn Fn(&str, &str) -> Option<String>,
    ) -> Vec<Value> {
        let own = self.columns.iter().map(|(column, _)| {
            let description = match column.description.as_str() {
                "" if self.is_default => {
                    describe("meta/v1.ObjectMeta", "creationTimestamp").unwrap_or_default()
                }
                "" => format!(
                    "Custom resource definition column (in JSONPath format): {}",
                    column.json_path
                ),
                description => description.to_owned(),
            };
            definition(&column.name, &column.ty, &column.format, &description, column.priority)
        });
        std::iter::once(NAME.definition(describe)).chain(own).collect()
    }

    pub(super) fn cells(&self, object: &Value, now: MicroTime) -> Value {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| "".into());
        let own = self.columns.iter().map(|(column, path)| cell(&column.ty, path, object, now));
        std::iter::once(name).chain(own).collect()
    }
}

/// The first value found, if it is of the column's type.
fn cell(ty: &str, path: &Template, object: &Value, now: MicroTime) -> Value {
    let found = path.find(object).unwrap_or_default();
    let Some(value) = found.into_iter().next().and_then(|found| found.into_iter().next()) else {
        return Value::Null;
    };
    match (ty, value.as_ref()) {
        ("string", Value::Null) => "<no value>".into(),
        ("string", _) => jsonpath::print(&[value]).into(),
        ("integer", Value::Number(number)) => match (number.as_i64(), number.as_f64()) {
            (Some(integer), _) => integer.into(),
            // Where a float is too large, processors of upstream's kind give the smallest number.
            (None, Some(float)) if float.abs() >= i64::MAX as f64 => i64::MIN.into(),
            (None, Some(float)) => (float as i64).into(),
            (None, None) => Value::Null,
        },
        ("number", Value::Number(number)) => {
            number.as_f64().and_then(Number::from_f64).map_or(Value::Null, Value::Number)
        }
        ("boolean", Value::Bool(flag)) => (*flag).into(),
        ("date", Value::String(text)) => date(text, now).into(),
        _ => Value::Null,
    }
}

fn date(text: &str, now: MicroTime) -> String {
    match text {
        "" | "null" => age::since(None, now),
        _ => match age::parse(text) {
            None => "<invalid>".to_owned(),
            moment => age::since(moment, now),
        },
    }
}
