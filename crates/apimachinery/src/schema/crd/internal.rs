//! Parts of a definition as they appear in messages.
//!
//! Upstream shows some values in the JSON of its internal types, whose fields have Go's names and
//! leave nothing out.

use serde_json::{Map, Value, json};

use super::{Shared, Subresources, Version};
use crate::schema::coerce::printed;
use crate::schema::{AdditionalProperties, Dependency, Properties, Rule, Structural};

/// All versions. What they share stands elsewhere and is null here.
pub(super) fn versions(versions: Option<&[Version]>, shared: Shared) -> Value {
    match versions {
        None => Value::Null,
        Some(versions) => versions.iter().map(|one| version(one, shared)).collect(),
    }
}

fn version(version: &Version, shared: Shared) -> Value {
    let columns = version.printer_columns.iter().map(|column| {
        json!({
            "Name": column.name,
            "Type": column.type_,
            "Format": column.format,
            "Description": column.description,
            "Priority": column.priority,
            "JSONPath": column.json_path,
        })
    });
    let fields = version.selectable_fields.iter().map(|field| json!({"JSONPath": field.json_path}));
    let schema = version.schema.as_ref().map(
        |schema| json!({"OpenAPIV3Schema": schema.open_api_v3_schema.as_ref().map(self::schema)}),
    );
    json!({
        "Name": version.name,
        "Served": version.served,
        "Storage": version.storage,
        "Deprecated": version.deprecated,
        "DeprecationWarning": version.deprecation_warning,
        "Schema": schema.filter(|_| !shared.schema),
        "Subresources":
            version.subresources.as_ref().filter(|_| !shared.subresources).map(subresources),
        "AdditionalPrinterColumns": list(columns).filter(|_| !shared.printer_columns),
        "SelectableFields": list(fields).filter(|_| !shared.selectable_fields),
    })
}

fn subresources(subresources: &Subresources) -> Value {
    let scale = subresources.scale.as_ref().map(|scale| {
        json!({
            "SpecReplicasPath": scale.spec_replicas_path,
            "StatusReplicasPath": scale.status_replicas_path,
            "LabelSelectorPath": scale.label_selector_path,
        })
    });
    json!({"Status": subresources.status.then(|| json!({})), "Scale": scale})
}

pub(super) fn schema(schema: &Structural) -> Value {
    let constraints = schema.constraints.clone().unwrap_or_default();
    let documentation = schema.documentation.clone().unwrap_or_default();
    let unsupported = schema.unsupported.clone().unwrap_or_default();
    let extensions = &schema.extensions;
    let items = match (&schema.items, list(unsupported.item_list.iter().map(self::schema))) {
        (Some(items), _) => Some(json!({"Schema": self::schema(items), "JSONSchemas": null})),
        (None, Some(schemas)) => Some(json!({"Schema": null, "JSONSchemas": schemas})),
        (None, None) => None,
    };
    let dependencies = unsupported.dependencies.map(|mut dependencies| {
        dependencies.sort_by(|(a, _), (b, _)| a.cmp(b));
        let dependency = |(name, Dependency { schema, properties }): (Box<str>, Dependency)| {
            let schema = schema.as_ref().map(self::schema);
            let names = list(properties.iter().map(|name| Value::from(&**name)));
            (name.into_string(), json!({"Schema": schema, "Property": names}))
        };
        Value::Object(dependencies.into_iter().map(dependency).collect())
    });
    let external_docs = documentation
        .external_docs
        .map(|docs| json!({"Description": docs.description, "URL": docs.url}));
    let fields = [
        ("ID", json!(unsupported.id)),
        ("Schema", json!(unsupported.schema)),
        ("Ref", json!(unsupported.reference)),
        ("Description", json!(documentation.description)),
        ("Type", json!(schema.type_name())),
        ("Nullable", json!(schema.nullable)),
        ("Format", json!(constraints.format.map_or_else(String::new, |format| format.name.into()))),
        ("Title", json!(documentation.title)),
        ("Default", json!(schema.default.as_ref().map(printed))),
        ("Maximum", json!(constraints.maximum.map(number))),
        ("ExclusiveMaximum", json!(constraints.exclusive_maximum)),
        ("Minimum", json!(constraints.minimum.map(number))),
        ("ExclusiveMinimum", json!(constraints.exclusive_minimum)),
        ("MaxLength", json!(constraints.max_length)),
        ("MinLength", json!(constraints.min_length)),
        (
            "Pattern",
            json!(constraints.pattern.map_or_else(String::new, |pattern| pattern.text.into())),
        ),
        ("MaxItems", json!(constraints.max_items)),
        ("MinItems", json!(constraints.min_items)),
        ("UniqueItems", json!(constraints.unique_items)),
        ("MultipleOf", json!(constraints.multiple_of.map(number))),
        ("Enum", json!(list(constraints.enumeration.iter().map(printed)))),
        ("MaxProperties", json!(constraints.max_properties)),
        ("MinProperties", json!(constraints.min_properties)),
        ("Required", json!(list(constraints.required.iter().map(|name| Value::from(&**name))))),
        ("Items", json!(items)),
        ("AllOf", json!(list(constraints.all_of.iter().map(self::schema)))),
        ("OneOf", json!(list(constraints.one_of.iter().map(self::schema)))),
        ("AnyOf", json!(list(constraints.any_of.iter().map(self::schema)))),
        ("Not", json!(constraints.not.as_deref().map(self::schema))),
        ("Properties", json!(properties(&schema.properties))),
        ("AdditionalProperties", json!(schema.additional_properties.as_ref().map(schema_or_bool))),
        ("PatternProperties", json!(properties(&unsupported.pattern_properties))),
        ("Dependencies", json!(dependencies)),
        ("AdditionalItems", json!(unsupported.additional_items.as_ref().map(schema_or_bool))),
        ("Definitions", json!(properties(&unsupported.definitions))),
        ("ExternalDocs", json!(external_docs)),
        ("Example", json!(documentation.example.as_ref().map(printed))),
        ("XPreserveUnknownFields", json!(extensions.preserve_unknown_fields)),
        ("XEmbeddedResource", json!(extensions.embedded_resource)),
        ("XIntOrString", json!(extensions.int_or_string)),
        (
            "XListMapKeys",
            json!(list(extensions.list_map_keys.iter().map(|key| Value::from(&**key)))),
        ),
        ("XListType", json!(extensions.list_type)),
        ("XMapType", json!(extensions.map_type)),
        ("XValidations", json!(list(extensions.validations.iter().map(rule)))),
    ];
    Value::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// A rule as upstream's type for it prints.
pub(super) fn rule(rule: &Rule) -> Value {
    json!({
        "Rule": rule.rule,
        "Message": rule.message,
        "MessageExpression": rule.message_expression,
        "Reason": rule.reason,
        "FieldPath": rule.field_path,
        "OptionalOldSelf": rule.optional_old_self,
    })
}

fn properties(properties: &Properties) -> Option<Value> {
    let map: Map<String, Value> =
        properties.iter().map(|(name, schema)| (name.to_owned(), self::schema(schema))).collect();
    (!map.is_empty()).then_some(Value::Object(map))
}

fn schema_or_bool(additional: &AdditionalProperties) -> Value {
    match additional {
        AdditionalProperties::Allowed(allowed) => json!({"Allows": allowed, "Schema": null}),
        AdditionalProperties::Schema(schema) => {
            json!({"Allows": true, "Schema": self::schema(schema)})
        }
    }
}

/// An empty list is null.
fn list(values: impl Iterator<Item = Value>) -> Option<Value> {
    let values: Vec<Value> = values.collect();
    (!values.is_empty()).then_some(Value::Array(values))
}

/// Go writes a float without a fraction as an integer.
fn number(float: f64) -> Value {
    match float.fract() == 0.0 && float.abs() < 1e15 {
        true => (float as i64).into(),
        false => float.into(),
    }
}
