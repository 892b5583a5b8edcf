//! An expression is refused or has a cost, and running it ends within its limit.

#![no_main]

use std::sync::LazyLock;

use kubewright_apimachinery::cel::{Data, Declared, Expression};
use kubewright_apimachinery::schema::Structural;
use libfuzzer_sys::fuzz_target;
use serde_json::{Value, json};

static SCHEMA: LazyLock<Structural> = LazyLock::new(|| {
    let schema = json!({"type": "object", "properties": {
        "i": {"type": "integer"}, "s": {"type": "string"}, "x": {"x-kubernetes-int-or-string": true},
        "l": {"type": "array", "items": {"type": "string"}},
        "m": {"type": "object", "additionalProperties": {"type": "integer"}},
    }});
    Structural::parse(&schema).expect("it is a schema")
});
static OBJECT: LazyLock<Value> = LazyLock::new(
    || json!({"i": 1, "s": "a", "x": "5", "l": ["a", "b", "c"], "m": {"a": 1, "b": 2}}),
);

fuzz_target!(|text: &str| {
    let declared = Declared::new(&SCHEMA, true, "self").expect("it can be declared");
    let Ok(expression) = Expression::check(text, &[("self", declared.type_.clone())]) else {
        return;
    };
    let cost = expression.max_cost(&declared);
    if let (Ok(program), ..=10_000_000) = (expression.program(&["self"]), cost) {
        let data = Data { value: &OBJECT, schema: &SCHEMA, is_resource: true };
        let run = program.run(vec![data.to_val()], 100_000);
        assert!(run.cost <= 100_000 || run.outcome.is_err());
    }
});
