//! Objects of types that an expression names: parts of what an object should look like, and steps
//! of a JSON patch.

use serde_json::{Map as Json, Value, json};

use super::json::Large;
use super::{Failure, Val};
use crate::cel::function::patch::{OBJECT, STEP};

/// An object with the fields that an expression gave it.
#[derive(Clone)]
pub struct Struct<'v> {
    type_name: &'v str,
    fields: Vec<(&'v str, Val<'v>)>,
}

impl<'v> Struct<'v> {
    pub(in crate::cel) fn new(
        type_name: &'v str,
        fields: Vec<(&'v str, Val<'v>)>,
    ) -> Result<Self, Failure> {
        if type_name == STEP {
            let is_text = |value: &Val<'_>| matches!(value, Val::String(_));
            let wrong = fields.iter().find(|(name, value)| *name != "value" && !is_text(value));
            if let Some((name, value)) = wrong {
                let found = value.type_name();
                return Err(Failure::new(format!(
                    "unexpected type {found} for JSONPatchType '{name}' field"
                )));
            }
        }
        let mut made = Struct { type_name, fields: Vec::with_capacity(fields.len()) };
        for (name, value) in fields {
            match made.fields.iter_mut().find(|(known, _)| *known == name) {
                Some(known) => known.1 = value,
                None => made.fields.push((name, value)),
            }
        }
        Ok(made)
    }

    /// What it is called in messages.
    pub(super) fn kind(&self) -> &'static str {
        if self.type_name == STEP { STEP } else { OBJECT }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The value of a field that can be read, which only those of a step can.
    pub(in crate::cel) fn field(&self, name: &str) -> Option<&Val<'v>> {
        if self.type_name == STEP { self.get(name) } else { None }
    }

    fn get(&self, name: &str) -> Option<&Val<'v>> {
        self.fields.iter().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        let is_same = |(name, value): &(&str, Val<'v>)| {
            other.get(name).is_some_and(|other| value.equals(other) == Some(true))
        };
        self.type_name == other.type_name
            && self.fields.len() == other.fields.len()
            && self.fields.iter().all(is_same)
    }

    pub(super) fn to_json(&self, large: Large) -> Result<Value, String> {
        let mut json = Json::new();
        for (name, value) in &self.fields {
            let value = value.to_json(large).map_err(|why| {
                if large == Large::Text {
                    why
                } else {
                    format!("fail to convert field {name:?}: {why}")
                }
            })?;
            json.insert((*name).to_owned(), value);
        }
        Ok(Value::Object(json))
    }
}

impl Val<'_> {
    /// Whether the names of all types within agree with the ways to them, as in
    /// `Object{spec: Object.spec{}}`. If not, those that do not.
    pub fn check_type_names(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        if let Val::Struct(made) = self {
            let mut path = made.type_name.to_owned();
            collect_misnamed(self, &mut path, &mut wrong);
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
    }

    /// The JSON patch that a list of steps stands for.
    pub fn to_json_patch(&self) -> Result<Value, String> {
        let Val::List(steps) = self else {
            return Err("type mismatch: JSONPatchType.expression should evaluate to array".into());
        };
        let mut patch = Vec::with_capacity(steps.len());
        for step in steps.iter() {
            let step = match step {
                Ok(Val::Struct(step)) if step.type_name == STEP => step,
                _ => {
                    return Err(
                        "type mismatch: JSONPatchType.expression should evaluate to array \
                                of JSONPatch"
                            .into(),
                    );
                }
            };
            patch.push(step.to_operation()?);
        }
        Ok(Value::Array(patch))
    }
}

impl Struct<'_> {
    fn to_operation(&self) -> Result<Value, String> {
        let text = |field: &str| match self.get(field) {
            Some(Val::String(text)) => text.to_string(),
            _ => String::new(),
        };
        let mut operation = json!({ "op": text("op"), "path": text("path") });
        let from = text("from");
        if !from.is_empty() {
            operation["from"] = Value::String(from);
        }
        if let Some(value) = self.get("value") {
            value.check_type_names().map_err(|why| format!("type mismatch: {why}"))?;
            operation["value"] = value.to_json(Large::Text).map_err(|why| {
                format!(
                    "JSONPath valueExpression evaluated to a type that could not marshal to JSON: \
                     {why}"
                )
            })?;
        }
        Ok(operation)
    }
}

fn collect_misnamed(value: &Val<'_>, path: &mut String, wrong: &mut Vec<String>) {
    match value {
        Val::Struct(made) => {
            if made.type_name != *path {
                wrong.push(format!(
                    "unexpected type name {:?}, expected {path:?}, which matches field name path \
                     from root Object type",
                    made.type_name
                ));
            }
            let length = path.len();
            for (name, value) in &made.fields {
                path.push('.');
                path.push_str(name);
                collect_misnamed(value, path, wrong);
                path.truncate(length);
            }
        }
        Val::List(list) => {
            for item in list.iter().flatten() {
                collect_misnamed(&item, path, wrong);
            }
        }
        Val::Map(map) => {
            for (_, value) in map.entries().unwrap_or_default() {
                collect_misnamed(&value, path, wrong);
            }
        }
        _ => {}
    }
}
