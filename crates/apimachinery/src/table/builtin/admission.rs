//! What stands between a request and the store: webhooks, policies, flow control.

use serde_json::{Value, json};

use super::printer_of;
use crate::selector::label::LabelSelector;
use crate::table::Doc::Text;
use crate::table::fields::Fields;
use crate::table::{AGE, BuiltinPrinter, Column, NAME, integer, of, text};

const ADMISSION: &str = "admissionregistration.k8s.io";
const FLOW_CONTROL: &str = "flowcontrol.apiserver.k8s.io";

pub(super) const PRINTERS: &[BuiltinPrinter] = &[
    printer_of(ADMISSION, "MutatingWebhookConfiguration", MUTATING_WEBHOOKS, webhooks),
    printer_of(ADMISSION, "ValidatingWebhookConfiguration", VALIDATING_WEBHOOKS, webhooks),
    printer_of(ADMISSION, "ValidatingAdmissionPolicy", VALIDATING_POLICY, validating_policy),
    printer_of(ADMISSION, "ValidatingAdmissionPolicyBinding", VALIDATING_BINDING, binding),
    printer_of(ADMISSION, "MutatingAdmissionPolicy", MUTATING_POLICY, mutating_policy),
    printer_of(ADMISSION, "MutatingAdmissionPolicyBinding", MUTATING_BINDING, binding),
    BuiltinPrinter {
        sort: Some(sort_flow_schemas),
        ..printer_of(FLOW_CONTROL, "FlowSchema", FLOW_SCHEMA, flow_schema)
    },
    printer_of(FLOW_CONTROL, "PriorityLevelConfiguration", PRIORITY_LEVEL, priority_level),
];

const MUTATING_WEBHOOKS: &[Column] = &[
    NAME,
    integer(
        "Webhooks",
        Text("Webhooks indicates the number of webhooks registered in this configuration"),
    ),
    AGE,
];

const VALIDATING_WEBHOOKS: &[Column] = &[
    NAME,
    integer(
        "Webhooks",
        Text("Webhooks indicates the number of webhooks registered in this configuration"),
    ),
    AGE,
];

fn webhooks(object: Fields<'_>) -> Value {
    json!([object.name(), object.count("webhooks"), object.age()])
}

const VALIDATING_POLICY: &[Column] = &[
    NAME,
    integer(
        "Validations",
        Text("Validations indicates the number of validation rules defined in this configuration"),
    ),
    text(
        "ParamKind",
        Text("ParamKind specifies the kind of resources used to parameterize this policy"),
    ),
    AGE,
];

fn validating_policy(object: Fields<'_>) -> Value {
    json!([object.name(), object.count("spec.validations"), param_kind(object), object.age()])
}

const MUTATING_POLICY: &[Column] = &[
    NAME,
    integer(
        "Mutations",
        Text("Mutation indicates the number of mutations rules defined in this configuration"),
    ),
    text(
        "ParamKind",
        Text("ParamKind specifies the kind of resources used to parameterize this policy"),
    ),
    AGE,
];

fn mutating_policy(object: Fields<'_>) -> Value {
    json!([object.name(), object.count("spec.mutations"), param_kind(object), object.age()])
}

fn param_kind(policy: Fields<'_>) -> String {
    let kind = policy.at("spec.paramKind");
    match policy.has("spec.paramKind") {
        true => format!("{}/{}", kind.text("apiVersion"), kind.text("kind")),
        false => "<unset>".to_owned(),
    }
}

const VALIDATING_BINDING: &[Column] = &[
    NAME,
    text(
        "PolicyName",
        Text("PolicyName indicates the policy definition which the policy binding binded to"),
    ),
    text(
        "ParamRef",
        Text("ParamRef indicates the param resource which sets the configuration param"),
    ),
    AGE,
];

const MUTATING_BINDING: &[Column] = &[
    NAME,
    text(
        "PolicyName",
        Text("PolicyName indicates the policy definition which the policy binding binded to"),
    ),
    text(
        "ParamRef",
        Text("ParamRef indicates the param resource which sets the configuration param"),
    ),
    AGE,
];

fn binding(object: Fields<'_>) -> Value {
    let param = object.at("spec.paramRef");
    let param = match param.text("name") {
        "" if param.has("selector") => go_text(&param.label_selector("selector")),
        "" => "<unset>".to_owned(),
        name => format!("{}/{name}", param.text_or("namespace", "*")),
    };
    json!([object.name(), object.text("spec.policyName"), param, object.age()])
}

/// The selector as generated Go code prints it; upstream shows it so.
fn go_text(selector: &LabelSelector) -> String {
    let labels: String =
        selector.match_labels.iter().map(|(key, value)| format!("{key}: {value},")).collect();
    let expressions: String = selector
        .match_expressions
        .iter()
        .map(|expression| {
            format!(
                "LabelSelectorRequirement{{Key:{},Operator:{},Values:[{}],}},",
                expression.key,
                expression.operator,
                expression.values.join(" ")
            )
        })
        .collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},\
         MatchExpressions:[]LabelSelectorRequirement{{{expressions}}},}}"
    )
}

const FLOW_SCHEMA: &[Column] = &[
    NAME,
    text("PriorityLevel", of("flowcontrol/v1.PriorityLevelConfigurationReference", "name")),
    text("MatchingPrecedence", of("flowcontrol/v1.FlowSchemaSpec", "matchingPrecedence")),
    text("DistinguisherMethod", of("flowcontrol/v1.FlowSchemaSpec", "distinguisherMethod")),
    AGE,
    text("MissingPL", Text("references a broken or non-existent PriorityLevelConfiguration")),
];

fn flow_schema(object: Fields<'_>) -> Value {
    let dangling = object.condition("status.conditions", "Dangling");
    json!([
        object.name(),
        object.text("spec.priorityLevelConfiguration.name"),
        object.number("spec.matchingPrecedence"),
        object.text_or("spec.distinguisherMethod.type", "<none>"),
        object.age(),
        dangling.map_or("?", |condition| condition.text("status")),
    ])
}

/// Lists of flow schemas are shown in the order in which they are tried.
fn sort_flow_schemas(schemas: &mut [&Value]) {
    schemas.sort_by_key(|schema| {
        let precedence = schema.pointer("/spec/matchingPrecedence").and_then(Value::as_i64);
        let name = schema.pointer("/metadata/name").and_then(Value::as_str);
        (precedence.unwrap_or_default(), name.unwrap_or_default().to_owned())
    });
}

const PRIORITY_LEVEL: &[Column] = &[
    NAME,
    text("Type", of("flowcontrol/v1.PriorityLevelConfigurationSpec", "type")),
    text(
        "NominalConcurrencyShares",
        of("flowcontrol/v1.LimitedPriorityLevelConfiguration", "nominalConcurrencyShares"),
    ),
    text("Queues", of("flowcontrol/v1.QueuingConfiguration", "queues")),
    text("HandSize", of("flowcontrol/v1.QueuingConfiguration", "handSize")),
    text("QueueLengthLimit", of("flowcontrol/v1.QueuingConfiguration", "queueLengthLimit")),
    AGE,
];

fn priority_level(object: Fields<'_>) -> Value {
    let limited = object.at("spec.limited");
    let queuing = limited.at("limitResponse.queuing");
    let number = |fields: Fields<'_>, field: &str| match fields.value.is_null() {
        true => Value::from("<none>"),
        false => fields.number(field).into(),
    };
    json!([
        object.name(),
        object.text("spec.type"),
        number(limited, "nominalConcurrencyShares"),
        number(queuing, "queues"),
        number(queuing, "handSize"),
        number(queuing, "queueLengthLimit"),
        object.age(),
    ])
}
