//! Rules of custom resources (`x-kubernetes-validations`): when a definition may have them, and
//! what they say about its objects.

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use super::{Context, expect, same, scenarios, text};
use crate::crd;
use crate::endpoint::{Answer, Request};

scenarios! { "rules":
    a_rule_is_checked_against_the_schema [C13],
    a_rule_names_fields_as_they_are_called [C13],
    a_rule_may_not_cost_too_much [C13],
    all_rules_together_may_not_cost_too_much [C13],
    a_broken_rule_is_reported_in_its_own_words [C13],
    a_rule_that_fails_says_why [C13],
    a_transition_rule_sees_the_old_value [C13],
    an_optional_old_value_may_be_missing [C13],
    rules_stop_when_they_have_cost_too_much [C13],
    rules_wait_until_values_are_sound [C13],
    rules_know_the_libraries [C14],
    what_was_broken_may_stay_until_it_changes [C15],
}

/// A schema whose `spec` is this one.
fn spec(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "spec": schema } })
}

fn ruled(mut schema: Value, rules: Value) -> Value {
    schema["x-kubernetes-validations"] = rules;
    schema
}

fn object(properties: Value, rules: Value) -> Value {
    ruled(json!({ "type": "object", "properties": properties }), rules)
}

/// What is wrong with a definition that has this schema for `spec`.
async fn refused(cx: &Context, schema: Value) -> Result<Vec<String>> {
    let path = format!("{}?dryRun=All", crd::PATH);
    let answer = cx.send(Request::post(path, &cx.widgets(spec(schema)))).await?;
    let causes = causes(&answer)?;
    let short = |cause: String| cause.replace("spec.validation.openAPIV3Schema", "SCHEMA");
    Ok(causes.into_iter().map(short).collect())
}

/// Fields and messages of a refusal.
fn causes(answer: &Answer) -> Result<Vec<String>> {
    let status = expect(answer, 422)?;
    let causes = status["details"]["causes"].as_array().cloned().unwrap_or_default();
    let line = |cause: &Value| format!("{}: {}", text(cause, "/field"), text(cause, "/message"));
    Ok(causes.iter().map(line).collect())
}

/// What comes of a new object with this `spec`.
async fn judge(cx: &Context, spec: Value) -> Result<Answer> {
    let path = format!("{}?dryRun=All", cx.widget_path());
    cx.send(Request::post(path, &cx.widget("one", spec))).await
}

/// The same for the object that is there.
async fn change(cx: &Context, spec: Value) -> Result<Answer> {
    let path = format!("{}/one?dryRun=All", cx.widget_path());
    cx.send(Request::merge_patch(path, &json!({ "spec": spec }))).await
}

fn ends_with(cause: &str, end: &str) -> Result<()> {
    ensure!(cause.ends_with(end), "{cause} does not end with {end}");
    Ok(())
}

async fn a_rule_is_checked_against_the_schema(cx: Context) -> Result<()> {
    let properties = json!({ "size": { "type": "integer" } });
    for (rule, expected) in [
        (
            "self.nope > 1",
            "compilation failed: ERROR: <input>:1:5: undefined field 'nope'\n | self.nope > 1\n | \
             ....^",
        ),
        (
            "self.size == 'x'",
            "compilation failed: ERROR: <input>:1:11: found no matching overload for '_==_' \
             applied to '(int, string)'\n | self.size == 'x'\n | ..........^",
        ),
        ("self.size + 1", "cel expression must evaluate to a bool"),
    ] {
        let schema = object(properties.clone(), json!([{ "rule": rule }]));
        let causes = refused(&cx, schema).await?;
        ensure!(causes.len() == 1, "{causes:?}");
        let start = "SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Invalid value: ";
        ensure!(causes[0].starts_with(start), "{}", causes[0]);
        ends_with(&causes[0], expected)?;
    }
    Ok(())
}

/// Also if that is a word of the language, as `namespace` is; then nothing is known of their sizes.
async fn a_rule_names_fields_as_they_are_called(cx: Context) -> Result<()> {
    let string = json!({ "type": "string", "maxLength": 10 });
    let properties = json!({ "namespace": string, "x-y": string });
    let rule = |rule: &str| object(properties.clone(), json!([{ "rule": rule }]));
    let wrong = refused(&cx, rule("self.namespace.matches('^a+$')")).await?;
    let start = "SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated";
    ensure!(wrong.iter().any(|cause| cause.starts_with(start)), "{wrong:?}");
    ensure!(refused(&cx, rule("self.__namespace__.matches('^a+$')")).await.is_err());

    let both = "!has(self.namespace) || self.namespace == self.__namespace__ && \
                self.namespace != self.x__dash__y";
    cx.define(&cx.widgets(spec(rule(both)))).await?;
    expect(&judge(&cx, json!({ "namespace": "a", "x-y": "b" })).await?, 201)?;
    let causes = causes(&judge(&cx, json!({ "namespace": "a", "x-y": "a" })).await?)?;
    ensure!(causes.len() == 1, "{causes:?}");
    ends_with(&causes[0], &format!("failed rule: {both}"))
}

async fn a_rule_may_not_cost_too_much(cx: Context) -> Result<()> {
    let list = json!({ "type": "array", "items": { "type": "string" } });
    let rule = json!([{ "rule": "self.list.all(a, self.list.all(b, a != b))" }]);
    let causes = refused(&cx, object(json!({ "list": list }), rule.clone())).await?;
    let start = "SCHEMA.properties[spec].x-kubernetes-validations[0].rule: Forbidden: estimated \
                 rule cost exceeds budget by factor of more than 100x";
    ensure!(causes.iter().any(|cause| cause.starts_with(start)), "{causes:?}");

    let list = json!({
        "type": "array", "maxItems": 10, "items": { "type": "string", "maxLength": 10 },
    });
    cx.define(&cx.widgets(spec(object(json!({ "list": list }), rule)))).await?;
    Ok(())
}

async fn all_rules_together_may_not_cost_too_much(cx: Context) -> Result<()> {
    let fields: serde_json::Map<String, Value> = (0..20)
        .map(|at| {
            let list =
                json!({ "type": "array", "maxItems": 1_000_000, "items": { "type": "integer" } });
            (format!("f{at}"), ruled(list, json!([{ "rule": "self.all(x, x > 0)" }])))
        })
        .collect();
    let causes = refused(&cx, json!({ "type": "object", "properties": fields })).await?;
    ensure!(causes.len() == 5, "{causes:?}");
    let start = "SCHEMA: Forbidden: x-kubernetes-validations estimated rule cost total for entire \
                 OpenAPIv3 schema exceeds budget by factor of 1.000000x";
    ensure!(causes.iter().any(|cause| cause.starts_with(start)), "{causes:?}");
    Ok(())
}

async fn a_broken_rule_is_reported_in_its_own_words(cx: Context) -> Result<()> {
    let number = |rules: Value| ruled(json!({ "type": "integer" }), rules);
    let schema = object(
        json!({
            "plain": number(json!([{ "rule": "self > 0" }])),
            "told": number(json!([{ "rule": "self > 0", "message": "must be positive" }])),
            "made": number(json!([{
                "rule": "self > 0", "messageExpression": "'%d is not positive'.format([self])",
            }])),
            "min": { "type": "integer" }, "max": { "type": "integer" },
        }),
        json!([{
            "rule": "!has(self.min) || !has(self.max) || self.min <= self.max",
            "reason": "FieldValueForbidden", "message": "is below min", "fieldPath": ".max",
        }]),
    );
    cx.define(&cx.widgets(spec(schema))).await?;
    expect(
        &judge(&cx, json!({ "plain": 1, "told": 1, "made": 1, "min": 1, "max": 1 })).await?,
        201,
    )?;
    for (spec, expected) in [
        (json!({ "plain": 0 }), "spec.plain: Invalid value: 0: failed rule: self > 0"),
        (json!({ "told": 0 }), "spec.told: Invalid value: 0: must be positive"),
        (json!({ "made": 0 }), "spec.made: Invalid value: 0: 0 is not positive"),
        (json!({ "min": 2, "max": 1 }), "spec.max: Forbidden: is below min"),
    ] {
        let causes = causes(&judge(&cx, spec).await?)?;
        ensure!(causes == [expected], "{causes:?} is not {expected:?}");
    }
    Ok(())
}

async fn a_rule_that_fails_says_why(cx: Context) -> Result<()> {
    let list = json!({ "type": "array", "maxItems": 5, "items": { "type": "integer" } });
    let rules = json!([{ "rule": "self[5] == 1 || self.size() == 1" }]);
    cx.define(&cx.widgets(spec(object(json!({ "list": ruled(list, rules) }), json!([]))))).await?;
    // One side suffices, whatever becomes of the other.
    expect(&judge(&cx, json!({ "list": [1] })).await?, 201)?;
    let causes = causes(&judge(&cx, json!({ "list": [1, 2] })).await?)?;
    let expected = "spec.list: Invalid value: \"array\": index out of bounds: 5 evaluating rule: \
                    self[5] == 1 || self.size() == 1";
    ensure!(causes == [expected], "{causes:?} is not {expected:?}");
    Ok(())
}

async fn a_transition_rule_sees_the_old_value(cx: Context) -> Result<()> {
    let grows = json!([{ "rule": "self >= oldSelf" }]);
    let number = ruled(json!({ "type": "integer" }), grows);
    let items = json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": { "type": "object", "required": ["name"], "properties": {
            "name": { "type": "string" }, "size": number,
        } },
    });
    let plain = json!({ "type": "array", "items": number });
    let wrong = refused(&cx, object(json!({ "plain": plain }), json!([]))).await?;
    ensure!(wrong.len() == 1, "{wrong:?}");
    ends_with(
        &wrong[0],
        "oldSelf cannot be used on the uncorrelatable portion of the schema within \
         SCHEMA.properties[spec].properties[plain]",
    )?;

    cx.define(&cx.widgets(spec(object(json!({ "size": number, "items": items }), json!([])))))
        .await?;
    let first =
        json!({ "size": 5, "items": [{ "name": "a", "size": 1 }, { "name": "b", "size": 9 }] });
    cx.create(&cx.widget_path(), &cx.widget("one", first)).await?;
    expect(&change(&cx, json!({ "size": 6 })).await?, 200)?;
    // Items are told apart by their keys, not by their places.
    let swapped =
        json!([{ "name": "b", "size": 9 }, { "name": "a", "size": 1 }, { "name": "c", "size": 0 }]);
    expect(&change(&cx, json!({ "items": swapped })).await?, 200)?;
    let shrunk = json!([{ "name": "b", "size": 8 }, { "name": "a", "size": 1 }]);
    let causes = causes(&change(&cx, json!({ "size": 4, "items": shrunk })).await?)?;
    same(
        "causes",
        &json!(sorted(causes)),
        json!([
            "spec.items[0].size: Invalid value: 8: failed rule: self >= oldSelf",
            "spec.size: Invalid value: 4: failed rule: self >= oldSelf",
        ]),
    )
}

async fn an_optional_old_value_may_be_missing(cx: Context) -> Result<()> {
    let rule = "oldSelf.hasValue() ? oldSelf.value() <= self : self > 0";
    let rules = json!([{ "rule": rule, "optionalOldSelf": true }]);
    let number = ruled(json!({ "type": "integer" }), rules);
    cx.define(&cx.widgets(spec(object(json!({ "size": number }), json!([]))))).await?;
    expect(&judge(&cx, json!({ "size": 0 })).await?, 422)?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({ "size": 2 }))).await?;
    expect(&change(&cx, json!({ "size": 3 })).await?, 200)?;
    expect(&change(&cx, json!({ "size": 1 })).await?, 422)?;
    Ok(())
}

async fn rules_stop_when_they_have_cost_too_much(cx: Context) -> Result<()> {
    let list = json!({ "type": "array", "maxItems": 95, "items": { "type": "integer" } });
    let rule = "self.all(x, self.all(y, self.all(z, x + y + z >= 0)))";
    let rules = json!([{ "rule": rule }, { "rule": "self.size() == 0" }]);
    cx.define(&cx.widgets(spec(object(json!({ "list": ruled(list, rules) }), json!([]))))).await?;
    let causes = causes(&judge(&cx, json!({ "list": vec![1; 95] })).await?)?;
    let expected = format!(
        "spec.list: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no \
         further validation rules will be run due to call cost exceeds limit for rule: {rule}"
    );
    ensure!(causes == [expected.as_str()], "{causes:?} is not {expected:?}");
    Ok(())
}

async fn rules_wait_until_values_are_sound(cx: Context) -> Result<()> {
    let schema = json!({ "type": "object", "required": ["size"], "properties": {
        "size": { "type": "integer" }, "other": ruled(json!({ "type": "integer" }), json!([{ "rule": "self > 0" }])),
    } });
    cx.define(&cx.widgets(spec(schema))).await?;
    let causes = causes(&judge(&cx, json!({ "other": 0 })).await?)?;
    same(
        "causes",
        &json!(sorted(causes)),
        json!([
            "<nil>: Invalid value: null: some validation rules were not checked because the object \
             was invalid; correct the existing errors to complete validation",
            "spec.size: Required value",
        ]),
    )
}

async fn rules_know_the_libraries(cx: Context) -> Result<()> {
    let rules: Vec<Value> = [
        "url(self).getScheme() == 'https'",
        "cidr('10.0.0.0/8').containsIP(ip('10.1.2.3'))",
        "quantity('1Gi').isGreaterThan(quantity('1G'))",
        "self.find('[0-9]+') == '8443' && self.findAll('[a-z]+').size() > 1",
        "[1, 2].isSorted() && [2, 1].sort() == [1, 2] && [1, 2].sum() == 3",
        "sets.equivalent([1, 2], [2, 1, 1])",
        "semver('1.2.3').isLessThan(semver('v1.10', true))",
        "!format.dns1123Label().validate('abc').hasValue()",
        "{'a': 1, 'b': 2}.transformList(k, v, v).all(x, x > 0)",
        "self.split(':').size() == 3 && self.lowerAscii() == self",
    ]
    .iter()
    .map(|rule| json!({ "rule": rule }))
    .collect();
    let text = ruled(json!({ "type": "string", "maxLength": 50 }), json!(rules));
    cx.define(&cx.widgets(spec(object(json!({ "url": text }), json!([]))))).await?;
    expect(&judge(&cx, json!({ "url": "https://example.com:8443/" })).await?, 201)?;
    let causes = causes(&judge(&cx, json!({ "url": "http://example.com:8443/" })).await?)?;
    let expected = "spec.url: Invalid value: \"http://example.com:8443/\": failed rule: \
                    url(self).getScheme() == 'https'";
    ensure!(causes == [expected], "{causes:?} is not {expected:?}");
    Ok(())
}

async fn what_was_broken_may_stay_until_it_changes(cx: Context) -> Result<()> {
    let properties = json!({ "a": { "type": "integer" }, "b": { "type": "integer" } });
    cx.define(&cx.widgets(spec(object(properties, json!([]))))).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({ "a": 1, "b": 1 }))).await?;
    let path = format!("{}/widgets.{}", crd::PATH, cx.group());
    let place = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a";
    let patch = json!([
        { "op": "add", "path": format!("{place}/x-kubernetes-validations"), "value": [{ "rule": "self > 5" }] },
        { "op": "add", "path": format!("{place}/minimum"), "value": 3 },
    ]);
    expect(&cx.send(Request::json_patch(path, &patch)).await?, 200)?;
    let create = Request::post(
        format!("{}?dryRun=All", cx.widget_path()),
        &cx.widget("two", json!({ "a": 1 })),
    );
    cx.endpoint.poll(&create, super::PATIENCE, |answer| answer.status == 422).await?;

    let answer = change(&cx, json!({ "b": 2 })).await?;
    expect(&answer, 200)?;
    let warnings = ["spec.a: Invalid value: 1: failed rule: self > 5"];
    same("warnings", &json!(answer.warnings()), json!(warnings))?;
    let causes = causes(&change(&cx, json!({ "a": 4 })).await?)?;
    ensure!(causes == ["spec.a: Invalid value: 4: failed rule: self > 5"], "{causes:?}");
    expect(&change(&cx, json!({ "a": 6 })).await?, 200)?;
    Ok(())
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}
