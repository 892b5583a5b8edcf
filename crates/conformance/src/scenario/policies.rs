//! Admission policies: whom they are about, what they ask, and what becomes of requests that do not
//! comply. A policy takes effect some time after it was written, so that each scenario waits for
//! the first refusal or change.

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, config_map, expect, refused, same, scenarios, text};
use crate::endpoint::{Answer, Request};

scenarios! { "policies":
    a_policy_denies_what_does_not_hold [A4 A1],
    a_failure_denies_unless_it_is_ignored [A4],
    policies_are_counted [A4 B1],
    a_binding_says_what_is_done [A4],
    parameters_are_found_by_name_and_by_labels [A4],
    parameters_must_be_of_a_kind_that_is_served [A4],
    variables_are_computed_when_they_are_asked_for [A4],
    rules_conditions_and_selectors_say_what_is_meant [A4],
    a_policy_sees_other_versions_in_its_own [A4],
    expressions_see_the_request_and_its_namespace [A4],
    permissions_are_asked_for [A4],
    expressions_may_not_cost_too_much [A4],
    a_policy_changes_objects [A4 A1],
    a_change_that_fails_is_a_denial_unless_it_is_ignored [A4],
    what_is_one_piece_is_not_changed [A4],
    a_policy_looks_again_at_what_others_changed [A4],
    custom_resources_are_judged_and_changed [A4],
    an_author_may_read_the_parameters [A4],
    the_types_of_expressions_are_checked [A4],
}

const API: &str = "/apis/admissionregistration.k8s.io/v1";

/// Policies and bindings that a scenario made.
struct Policies<'a> {
    cx: &'a Context,
    made: Vec<String>,
}

impl<'a> Policies<'a> {
    fn of(cx: &'a Context) -> Self {
        Policies { cx, made: Vec::new() }
    }

    /// The name of a policy and of its binding.
    fn name(&self, suffix: &str) -> String {
        format!("{}-{suffix}", self.cx.namespace)
    }

    /// Writes a policy about our namespace, by default about config maps, and binds it.
    async fn bind(
        &mut self,
        kind: &str,
        suffix: &str,
        mut spec: Value,
        mut binding: Value,
    ) -> Result<()> {
        let name = self.name(suffix);
        let matches = &mut spec["matchConstraints"];
        if matches.get("resourceRules").is_none() {
            matches["resourceRules"] = json!([rule(&["CREATE", "UPDATE"], "configmaps")]);
        }
        matches["namespaceSelector"] =
            json!({ "matchLabels": { "kubernetes.io/metadata.name": self.cx.namespace } });
        let metadata = json!({ "name": name });
        let policies = format!("{API}/{kind}admissionpolicies");
        self.cx.create(&policies, &json!({ "metadata": metadata, "spec": spec })).await?;
        self.made.push(format!("{policies}/{name}"));
        binding["policyName"] = json!(name);
        let bindings = format!("{API}/{kind}admissionpolicybindings");
        self.cx.create(&bindings, &json!({ "metadata": metadata, "spec": binding })).await?;
        self.made.push(format!("{bindings}/{name}"));
        Ok(())
    }

    /// A policy that judges, whose binding denies.
    async fn validate(&mut self, suffix: &str, spec: Value) -> Result<()> {
        self.bind("validating", suffix, spec, json!({ "validationActions": ["Deny"] })).await
    }

    async fn mutate(&mut self, suffix: &str, mut spec: Value) -> Result<()> {
        if spec.get("reinvocationPolicy").is_none() {
            spec["reinvocationPolicy"] = json!("Never");
        }
        self.bind("mutating", suffix, spec, json!({})).await
    }

    async fn remove(&mut self) -> Result<()> {
        for path in self.made.drain(..) {
            expect(&self.cx.send(Request::delete(path)).await?, 200)?;
        }
        Ok(())
    }

    /// What a denial of a config map begins with.
    fn denial(&self, suffix: &str, object: &str) -> String {
        let name = self.name(suffix);
        format!(
            "configmaps {object:?} is forbidden: ValidatingAdmissionPolicy '{name}' with binding \
             '{name}' denied request: "
        )
    }

    /// What the failure of a change begins with.
    fn failure(&self, suffix: &str) -> String {
        let name = self.name(suffix);
        format!("policy '{name}' with binding '{name}' denied request: ")
    }
}

fn rule(operations: &[&str], resource: &str) -> Value {
    json!({ "operations": operations, "apiGroups": [""], "apiVersions": ["v1"],
        "resources": [resource] })
}

fn map(name: &str, data: Value) -> Value {
    json!({ "metadata": { "name": name }, "data": data })
}

/// A create of a config map that leaves nothing behind.
fn trial(cx: &Context, object: &Value) -> Request {
    Request::post(cx.core("configmaps?dryRun=All"), object)
}

/// Tries until the answer has this code, which it has once policies are known.
async fn until(cx: &Context, request: &Request, code: u16) -> Result<Answer> {
    let answer = cx.endpoint.poll(request, PATIENCE, |answer| answer.status == code).await?;
    ensure!(answer.status == code, "expected {code} in the end, got {answer}");
    Ok(answer)
}

async fn a_policy_denies_what_does_not_hold(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let validations = json!([
        { "expression": "object.data.size() < 4", "reason": "RequestEntityTooLarge",
            "messageExpression": "'there are ' + string(object.data.size())", "message": "unsaid" },
        { "expression": "!('forbidden' in object.data)", "reason": "Forbidden",
            "message": " no such key " },
        { "expression": " !has(object.data.plain) " },
        { "expression": "!has(object.data.long)", "message": "said instead",
            "messageExpression": "'a\\nb'" },
    ]);
    policies.validate("p", json!({ "validations": validations })).await?;
    let try_with = |data: Value| trial(&cx, &map("m", data));
    let denial = policies.denial("p", "m");

    let answer = until(&cx, &try_with(json!({ "plain": "1" })), 422).await?;
    let message = format!("{denial}failed expression: !has(object.data.plain)");
    let status = refused(&answer, 422, "Invalid", &message)?;
    let cause = message.trim_start_matches("configmaps \"m\" is forbidden: ");
    let details = json!({ "name": "m", "kind": "configmaps", "causes": [{ "message": cause }] });
    same("details", &status["details"], details)?;
    let answer = cx.send(try_with(json!({ "forbidden": "1" }))).await?;
    refused(&answer, 403, "Forbidden", &format!("{denial}no such key"))?;
    let answer = cx.send(try_with(json!({ "a": "", "b": "", "c": "", "plain": "" }))).await?;
    refused(&answer, 413, "RequestEntityTooLarge", &format!("{denial}there are 4"))?;
    let answer = cx.send(try_with(json!({ "long": "1" }))).await?;
    refused(&answer, 422, "Invalid", &format!("{denial}said instead"))?;
    expect(&cx.send(try_with(json!({ "fine": "1" }))).await?, 201)?;
    policies.remove().await
}

async fn a_failure_denies_unless_it_is_ignored(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let validations = json!([
        { "expression": "object.data.a == 'x' || object.data.b.size() > 1" },
        { "expression": "object.data.size() < 4" },
    ]);
    policies.validate("closed", json!({ "validations": validations })).await?;
    let open = json!({ "failurePolicy": "Ignore", "validations": [
        { "expression": "object.nothing == 1" },
        { "expression": "object.data.size() < 3", "message": "open" },
    ] });
    policies.validate("open", open).await?;

    let many = trial(&cx, &map("m", json!({ "a": "x", "b": "", "c": "" })));
    let answer = until(&cx, &many, 422).await?;
    let message = format!("{}open", policies.denial("open", "m"));
    refused(&answer, 422, "Invalid", &message)?;
    let broken = trial(&cx, &map("m", json!({ "b": "1" })));
    let answer = until(&cx, &trial(&cx, &map("m", json!({ "c": "1" }))), 422).await?;
    let expression = "object.data.a == 'x' || object.data.b.size() > 1";
    let denial = policies.denial("closed", "m");
    let message = format!("{denial}expression '{expression}' resulted in error: no such key: a");
    refused(&answer, 422, "Invalid", &message)?;
    // A size of one is not more than one, but that there is no `a` remains.
    refused(&cx.send(broken).await?, 422, "Invalid", &message)?;
    expect(&cx.send(trial(&cx, &map("m", json!({ "b": "11" })))).await?, 201)?;
    policies.remove().await
}

async fn a_binding_says_what_is_done(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let spec = json!({
        "validations": [{ "expression": "false", "message": "never" }],
        "auditAnnotations": [{ "key": "k", "valueExpression": "'noted'" }],
    });
    let binding = json!({ "validationActions": ["Warn", "Audit"] });
    policies.bind("validating", "w", spec, binding).await?;
    let request = trial(&cx, &config_map("m"));
    let is_warned = |answer: &Answer| !answer.warnings().is_empty();
    let answer = cx.endpoint.poll(&request, PATIENCE, is_warned).await?;
    expect(&answer, 201)?;
    let name = policies.name("w");
    let warning = format!(
        "Validation failed for ValidatingAdmissionPolicy '{name}' with binding '{name}': never"
    );
    same("warnings", &json!(answer.warnings()), json!([warning]))?;
    policies.remove().await
}

async fn policies_are_counted(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let is_counted = "object.metadata.name == 'counted'";
    let fails = json!({
        "failurePolicy": "Ignore",
        "matchConditions": [{ "name": "c", "expression": is_counted }],
        "validations": [{ "expression": "object.data.missing == 'x'" }],
    });
    policies.validate("f", fails).await?;
    let expression = "Object{metadata: Object.metadata{labels: {'a': 'b'}}}";
    let changes = json!({
        "matchConditions": [{ "name": "c", "expression": is_counted }],
        "mutations": [apply(expression)],
    });
    policies.mutate("m", changes).await?;
    // Not what a controller puts there, as often as it may try.
    let denies = "!(object.metadata.name in ['known', 'counted'])";
    policies.validate("d", json!({ "validations": [{ "expression": denies }] })).await?;
    until(&cx, &trial(&cx, &config_map("known")), 422).await?;
    expect(&cx.send(trial(&cx, &config_map("counted"))).await?, 422)?;
    let family = |kind: &str, labels: &str, suffix: &str| {
        let name = policies.name(suffix);
        format!(
            "apiserver_{kind}_admission_policy_check_total{{{labels},policy=\"{name}\",\
             policy_binding=\"{name}\"}}"
        )
    };
    let denied = r#"enforcement_action="deny",error_type="invalid_error""#;
    let passed = r#"enforcement_action="allow",error_type="invalid_error""#;
    let unmet = format!(
        "apiserver_admission_match_condition_evaluation_seconds_count{{kind=\"policy\",\
         name=\"{}\",operation=\"CREATE\",type=\"validate\"}} ",
        policies.name("f")
    );
    cx.counted(&[
        &format!("{} 2", family("validating", denied, "d")),
        &format!("{} 1", family("validating", passed, "f")),
        &format!("{} 1", family("mutating", r#"error_type="no_error""#, "m")),
    ])
    .await?;
    let page = cx.send(Request::get("/metrics")).await?;
    let page = String::from_utf8_lossy(&page.bytes).into_owned();
    ensure!(page.lines().any(|line| line.starts_with(&unmet)), "no line {unmet}");
    policies.remove().await
}

async fn parameters_are_found_by_name_and_by_labels(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let spec = json!({
        "paramKind": { "apiVersion": "v1", "kind": "Secret" },
        "validations": [{ "expression": "object.data.key == params.metadata.labels.wanted",
            "messageExpression": "params.metadata.name + ' wants ' + params.metadata.labels.wanted" }],
    });
    let binding =
        |reference: Value| json!({ "validationActions": ["Deny"], "paramRef": reference });
    let named = json!({ "name": "one", "parameterNotFoundAction": "Deny" });
    policies.bind("validating", "named", spec.clone(), binding(named)).await?;
    let request = trial(&cx, &config_map("m"));
    let answer = until(&cx, &request, 422).await?;
    let none = "failed to configure binding: no params found for policy binding with `Deny` \
                parameterNotFoundAction";
    let message = format!("{}{none}", policies.denial("named", "m"));
    refused(&answer, 422, "Invalid", &message)?;

    let secret = |name: &str, wanted: &str| {
        let labels = json!({ "wanted": wanted, "set": "s" });
        json!({ "metadata": { "name": name, "labels": labels } })
    };
    cx.create(&cx.core("secrets"), &secret("one", "value")).await?;
    until(&cx, &request, 201).await?;
    let selected = json!({ "selector": { "matchLabels": { "set": "s" } },
        "parameterNotFoundAction": "Allow" });
    policies.bind("validating", "selected", spec.clone(), binding(selected)).await?;
    let nothing = json!({ "selector": { "matchLabels": { "set": "t" } },
        "parameterNotFoundAction": "Allow" });
    policies.bind("validating", "nothing", spec, binding(nothing)).await?;
    cx.create(&cx.core("secrets"), &secret("two", "other")).await?;
    let answer = until(&cx, &request, 422).await?;
    let message = format!("{}two wants other", policies.denial("selected", "m"));
    refused(&answer, 422, "Invalid", &message)?;
    policies.remove().await
}

async fn parameters_must_be_of_a_kind_that_is_served(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let group = cx.group();
    let spec = json!({
        "paramKind": { "apiVersion": format!("{group}/v1"), "kind": "Widget" },
        "validations": [{ "expression": "object.data.key == params.spec.key" }],
    });
    let binding = json!({ "validationActions": ["Deny"],
        "paramRef": { "name": "w", "parameterNotFoundAction": "Allow" } });
    policies.bind("validating", "p", spec, binding).await?;
    let request = trial(&cx, &config_map("m"));
    let answer = until(&cx, &request, 422).await?;
    let message = format!(
        "configmaps \"m\" is forbidden: ValidatingAdmissionPolicy '{}' denied request: failed to \
         configure policy: failed to find resource referenced by paramKind: '{group}/v1, \
         Kind=Widget'",
        policies.name("p")
    );
    refused(&answer, 422, "Invalid", &message)?;
    cx.define(&cx.widgets(super::any_schema())).await?;
    until(&cx, &request, 201).await?;
    cx.create(&cx.widget_path(), &cx.widget("w", json!({ "key": "other" }))).await?;
    let answer = until(&cx, &request, 422).await?;
    let denial = policies.denial("p", "m");
    let message = format!("{denial}failed expression: object.data.key == params.spec.key");
    refused(&answer, 422, "Invalid", &message)?;
    policies.remove().await
}

async fn variables_are_computed_when_they_are_asked_for(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let spec = json!({
        "variables": [
            { "name": "keys", "expression": "object.data.map(k, k)" },
            { "name": "broken", "expression": "object.nothing" },
            { "name": "count", "expression": "variables.keys.size()" },
        ],
        "validations": [
            { "expression": "variables.count < 2 || variables.broken == 1" },
            { "expression": "variables.count != 1",
                "messageExpression": "'only ' + variables.keys[0]" },
        ],
    });
    policies.validate("p", spec).await?;
    let denial = policies.denial("p", "m");
    let answer = until(&cx, &trial(&cx, &config_map("m")), 422).await?;
    refused(&answer, 422, "Invalid", &format!("{denial}only key"))?;
    let answer = cx.send(trial(&cx, &map("m", json!({ "a": "", "b": "" })))).await?;
    let message = format!(
        "{denial}expression 'variables.count < 2 || variables.broken == 1' resulted in error: \
         composited variable \"broken\" fails to evaluate: no such key: nothing"
    );
    refused(&answer, 422, "Invalid", &message)?;
    policies.remove().await
}

async fn rules_conditions_and_selectors_say_what_is_meant(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let excluded = json!({ "operations": ["*"], "apiGroups": [""], "apiVersions": ["*"],
        "resources": ["*"], "resourceNames": ["excluded"] });
    let spec = json!({
        "matchConstraints": {
            "resourceRules": [rule(&["CREATE", "UPDATE", "DELETE"], "configmaps")],
            "excludeResourceRules": [excluded],
            "objectSelector": { "matchExpressions": [{ "key": "free", "operator": "DoesNotExist" }] },
        },
        "matchConditions": [
            { "name": "kept", "expression": "request.operation != 'CREATE' || object.metadata.name != 'kept'" },
            { "name": "asked", "expression": "!(object != null && has(object.data) && 'skip' in object.data)" },
        ],
        "validations": [{ "expression": "object == null ? oldObject.metadata.name == 'x' : false",
            "messageExpression": "request.operation" }],
    });
    cx.config_map("there").await?;
    policies.validate("p", spec).await?;
    let create = |object: Value| trial(&cx, &object);
    until(&cx, &create(config_map("m")), 422).await?;
    expect(&cx.send(create(config_map("excluded"))).await?, 201)?;
    expect(&cx.send(create(config_map("kept"))).await?, 201)?;
    expect(&cx.send(create(map("m", json!({ "skip": "" })))).await?, 201)?;
    let mut free = config_map("m");
    free["metadata"]["labels"] = json!({ "free": "yes" });
    expect(&cx.send(create(free)).await?, 201)?;
    let path = cx.core("configmaps/there?dryRun=All");
    let denial = policies.denial("p", "there");
    let answer = cx.send(Request::delete(path.clone())).await?;
    refused(&answer, 422, "Invalid", &format!("{denial}DELETE"))?;
    // What is selected before or after is meant.
    let labelled = json!({ "metadata": { "labels": { "free": "yes" } } });
    let answer = cx.send(Request::merge_patch(path, &labelled)).await?;
    refused(&answer, 422, "Invalid", &format!("{denial}UPDATE"))?;
    policies.remove().await
}

async fn a_policy_sees_other_versions_in_its_own(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let scalers = json!([{ "operations": ["CREATE"], "apiGroups": ["autoscaling"],
        "apiVersions": ["v1"], "resources": ["horizontalpodautoscalers"] }]);
    let spec = |policy: &str| {
        json!({
            "matchConstraints": { "resourceRules": scalers, "matchPolicy": policy },
            "validations": [{ "expression": "object.spec.targetCPUUtilizationPercentage < 50",
                "messageExpression": "object.apiVersion + ' ' + request.kind.version + ' ' + \
                    request.resource.version + ' ' + request.requestKind.version + ' ' + \
                    request.requestResource.version" }],
        })
    };
    policies.validate("equivalent", spec("Equivalent")).await?;
    policies.validate("exact", spec("Exact")).await?;
    let scaler = json!({
        "metadata": { "name": "s" },
        "spec": {
            "maxReplicas": 2,
            "scaleTargetRef": { "apiVersion": "apps/v1", "kind": "Deployment", "name": "d" },
            "metrics": [{ "type": "Resource", "resource": { "name": "cpu",
                "target": { "type": "Utilization", "averageUtilization": 60 } } }],
        },
    });
    let path = cx.apis("autoscaling/v2", "horizontalpodautoscalers?dryRun=All");
    let answer = until(&cx, &Request::post(path, &scaler), 422).await?;
    let name = policies.name("equivalent");
    let message = format!(
        "horizontalpodautoscalers.autoscaling \"s\" is forbidden: ValidatingAdmissionPolicy \
         '{name}' with binding '{name}' denied request: autoscaling/v1 v1 v1 v2 v2"
    );
    refused(&answer, 422, "Invalid", &message)?;
    policies.remove().await
}

async fn expressions_see_the_request_and_its_namespace(cx: Context) -> Result<()> {
    let policies = Policies::of(&cx);
    let namespace = &cx.namespace;
    let holds = [
        "request.kind == request.requestKind && request.kind.kind == 'ConfigMap'",
        "request.resource.group == '' && request.resource.resource == 'configmaps'",
        "!has(request.subResource) && request.name == 'm' && request.dryRun",
        &format!("request.namespace == '{namespace}'"),
        "request.options.kind == 'CreateOptions' && request.options.dryRun == ['All']",
        "request.options.apiVersion == 'meta.k8s.io/v1'",
        "request.userInfo.groups.exists(g, g == 'system:authenticated')",
        "object.kind == 'ConfigMap' && object.apiVersion == 'v1' && oldObject == null",
        &format!("namespaceObject.metadata.name == '{namespace}'"),
        "namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace",
        "namespaceObject.status.phase == 'Active' && has(namespaceObject.metadata.resourceVersion)",
        "'kubernetes' in namespaceObject.spec.finalizers",
        "object.data.key.find('[a-z]+') == 'value'",
    ];
    all_hold(&cx, policies, &holds).await
}

/// All of these expressions hold for a ConfigMap `m`.
async fn all_hold(cx: &Context, mut policies: Policies<'_>, holds: &[&str]) -> Result<()> {
    let mut validations: Vec<Value> = holds.iter().map(|e| json!({ "expression": e })).collect();
    validations.push(json!({ "expression": "false", "message": "all held" }));
    policies.validate("p", json!({ "validations": validations })).await?;
    let answer = until(cx, &trial(cx, &config_map("m")), 422).await?;
    let message = format!("{}all held", policies.denial("p", "m"));
    refused(&answer, 422, "Invalid", &message)?;
    policies.remove().await
}

async fn permissions_are_asked_for(cx: Context) -> Result<()> {
    let policies = Policies::of(&cx);
    let nobody = "authorizer.serviceAccount('default', 'nobody')";
    let holds = [
        "authorizer.requestResource.check('delete').allowed()",
        "authorizer.group('').resource('pods').subresource('log').namespace('x').name('y')\
         .check('get').allowed()",
        &format!("!{nobody}.group('').resource('secrets').check('list').allowed()"),
        // Nobody has identified the account, so that it may not do what all may who were.
        &format!("!{nobody}.path('/healthz').check('get').allowed()"),
        &format!("!{nobody}.path('/metrics').check('get').errored()"),
        &format!(
            "{nobody}.group('').resource('pods').fieldSelector('a=b').check('get').reason() == ''"
        ),
    ];
    all_hold(&cx, policies, &holds).await
}

async fn expressions_may_not_cost_too_much(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let ask = "authorizer.requestResource.check('delete').allowed()";
    let often = |count: usize| vec![ask; count].join(" && ");
    policies.validate("one", json!({ "validations": [{ "expression": often(3) }] })).await?;
    let answer = until(&cx, &trial(&cx, &config_map("m")), 422).await?;
    let message = format!(
        "{}expression '{}' resulted in error: operation cancelled: actual cost limit exceeded",
        policies.denial("one", "m"),
        often(3)
    );
    refused(&answer, 422, "Invalid", &message)?;
    policies.remove().await?;

    let many = vec![json!({ "expression": often(2) }); 15];
    policies.validate("all", json!({ "validations": many })).await?;
    let request = trial(&cx, &config_map("n"));
    let expected = policies.denial("all", "n");
    let is_it = |answer: &Answer| {
        answer.json().is_ok_and(|status| text(&status, "/message").starts_with(&expected))
    };
    let answer = cx.endpoint.poll(&request, PATIENCE, is_it).await?;
    let message = format!(
        "{expected}validation failed due to running out of cost budget, no further validation rules \
         will be run"
    );
    refused(&answer, 422, "Invalid", &message)?;
    policies.remove().await
}

fn apply(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

fn patch(expression: &str) -> Value {
    json!({ "patchType": "JSONPatch", "jsonPatch": { "expression": expression } })
}

/// Tries until the object that comes of it has something at a pointer.
async fn until_changed(cx: &Context, request: &Request, pointer: &str) -> Result<Value> {
    let is_changed =
        |answer: &Answer| answer.json().is_ok_and(|object| object.pointer(pointer).is_some());
    let answer = cx.endpoint.poll(request, PATIENCE, is_changed).await?;
    let object = expect(&answer, 201)?;
    if object.pointer(pointer).is_none() {
        bail!("nothing at {pointer}: {object}");
    }
    Ok(object)
}

async fn a_policy_changes_objects(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let spec = json!({
        "variables": [{ "name": "greeting", "expression": "'hello ' + object.metadata.name" }],
        "matchConditions": [{ "name": "c", "expression": "!has(object.data.skip)" }],
        "mutations": [
            apply("Object{metadata: Object.metadata{labels: {'made': 'yes'}}, \
                   data: {'greeting': variables.greeting}}"),
            patch("[JSONPatch{op: 'test', path: '/metadata/labels/made', value: 'yes'}, \
                   JSONPatch{op: 'add', path: '/metadata/labels/' + \
                   jsonpatch.escapeKey('example.com/x~y'), value: 'z'}]"),
            patch("[JSONPatch{op: 'test', path: '/data/key', value: 'other'}, \
                   JSONPatch{op: 'remove', path: '/data'}]"),
            patch("object.data.size() > 1 ? [JSONPatch{op: 'move', from: '/data/key', path: \
                   '/data/moved'}] : [JSONPatch{op: 'remove', path: '/data'}]"),
        ],
    });
    policies.mutate("p", spec).await?;
    // A name with a tilde is none, so that validation tells what the patch has written.
    let request = trial(&cx, &config_map("m"));
    let answer = until(&cx, &request, 422).await?;
    let status = expect(&answer, 422)?;
    let cause = &status["details"]["causes"][0];
    same("field", &cause["field"], json!("metadata.labels"))?;
    ensure!(text(cause, "/message").contains("\"example.com/x~y\""), "{cause}");
    let object = expect(&cx.send(trial(&cx, &map("m", json!({ "skip": "" })))).await?, 201)?;
    same("data", &object["data"], json!({ "skip": "" }))?;
    policies.remove().await?;

    let spec = json!({
        "mutations": [
            apply("Object{metadata: Object.metadata{?labels: optional.of({'a': 'b'}), \
                   ?annotations: optional.none()}, data: {'n': string(object.data.size())}}"),
            patch("[JSONPatch{op: 'add', path: '/metadata/annotations', value: {'k': 'v'}}, \
                   JSONPatch{op: 'copy', from: '/data/n', path: '/data/o'}]"),
        ],
    });
    policies.mutate("q", spec).await?;
    let object = until_changed(&cx, &trial(&cx, &config_map("m")), "/data/o").await?;
    same("data", &object["data"], json!({ "key": "value", "n": "1", "o": "1" }))?;
    same("labels", &object["metadata"]["labels"], json!({ "a": "b" }))?;
    same("annotations", &object["metadata"]["annotations"], json!({ "k": "v" }))?;
    policies.remove().await
}

async fn a_change_that_fails_is_a_denial_unless_it_is_ignored(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let cases = [
        (
            apply("Object{data: Object.spec{}}"),
            "type mismatch: unexpected type name \"Object.spec\", expected \"Object.data\", which \
             matches field name path from root Object type",
        ),
        (
            apply("Object{spec: Object.spec{}}"),
            "error applying patch: failed to convert patch object to typed object: .spec: field \
             not declared in schema",
        ),
        (
            apply("Object{data: {object.nothing: 'x'}}"),
            "expression 'Object{data: {object.nothing: 'x'}}' resulted in error: no such key: nothing",
        ),
    ];
    for (index, (mutation, why)) in cases.into_iter().enumerate() {
        let suffix = format!("p{index}");
        policies.mutate(&suffix, json!({ "mutations": [mutation] })).await?;
        let request = trial(&cx, &config_map("m"));
        let begin = policies.failure(&suffix);
        let is_it = |answer: &Answer| {
            answer.json().is_ok_and(|status| text(&status, "/message").starts_with(&begin))
        };
        let answer = cx.endpoint.poll(&request, PATIENCE, is_it).await?;
        let message = format!("{begin}{why}");
        let status = refused(&answer, 403, "Invalid", &message)?;
        let details =
            json!({ "name": "m", "kind": "configmaps", "causes": [{ "message": message }] });
        same("details", &status["details"], details)?;
        policies.remove().await?;
    }
    let spec = json!({ "failurePolicy": "Ignore", "mutations": [
        apply("Object{data: {object.nothing: 'x'}}"),
        apply("Object{data: {'x': 'y'}}"),
    ] });
    policies.mutate("open", spec).await?;
    let object = until_changed(&cx, &trial(&cx, &config_map("m")), "/data/x").await?;
    same("data", &object["data"], json!({ "key": "value", "x": "y" }))?;
    policies.remove().await
}

async fn what_is_one_piece_is_not_changed(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    let spec = json!({
        "matchConstraints": { "resourceRules": [rule(&["CREATE"], "services")] },
        "mutations": [apply("Object{spec: Object.spec{selector: {'a': 'b'}, externalIPs: ['1.2.3.4']}}")],
    });
    policies.mutate("p", spec).await?;
    let service = json!({ "metadata": { "name": "s" }, "spec": { "ports": [{ "port": 80 }] } });
    let request = Request::post(cx.core("services?dryRun=All"), &service);
    let answer = until(&cx, &request, 403).await?;
    let status = expect(&answer, 403)?;
    let begin = format!(
        "{}error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or \
         structs: .spec.",
        policies.failure("p")
    );
    let message = text(&status, "/message");
    // Either may come first.
    let rest = message.strip_prefix(&begin);
    let both = ["selector, .spec.externalIPs", "externalIPs, .spec.selector"];
    ensure!(rest.is_some_and(|rest| both.contains(&rest)), "{message}");
    policies.remove().await
}

async fn a_policy_looks_again_at_what_others_changed(cx: Context) -> Result<()> {
    let mut policies = Policies::of(&cx);
    // Whoever comes first, each sees what the other has written, because both look again.
    let echo = |from: &str, to: &str| {
        json!({ "reinvocationPolicy": "IfNeeded", "mutations": [apply(&format!(
            "Object{{data: {{'{to}': 'has(\"{from}\")=' + string('{from}' in object.data)}}}}"
        ))] })
    };
    policies.mutate("a", echo("b", "a")).await?;
    policies.mutate("b", echo("a", "b")).await?;
    let request = trial(&cx, &config_map("m"));
    let both = json!({ "key": "value", "a": "has(\"b\")=true", "b": "has(\"a\")=true" });
    let are_both = |answer: &Answer| answer.json().is_ok_and(|object| object["data"] == both);
    let answer = cx.endpoint.poll(&request, PATIENCE, are_both).await?;
    same("data", &expect(&answer, 201)?["data"], both)?;
    policies.remove().await
}

async fn custom_resources_are_judged_and_changed(cx: Context) -> Result<()> {
    let spec = json!({ "type": "object", "properties": {
        "size": { "type": "integer" },
        "color": { "type": "string", "default": "blue" },
        "tags": { "type": "array", "x-kubernetes-list-type": "set", "items": { "type": "string" } },
    } });
    let schema = json!({ "type": "object", "properties": { "spec": spec } });
    cx.define(&cx.widgets(schema)).await?;
    let mut policies = Policies::of(&cx);
    let rules = json!({ "resourceRules": [{ "operations": ["CREATE"], "apiGroups": [cx.group()],
        "apiVersions": ["v1"], "resources": ["widgets"] }] });
    let spec = json!({
        "matchConstraints": rules,
        "mutations": [apply("Object{spec: Object.spec{size: object.spec.size + 1, tags: ['new']}}")],
    });
    policies.mutate("m", spec).await?;
    let spec = json!({
        "matchConstraints": rules,
        "validations": [{ "expression": "object.spec.size < 5",
            "messageExpression": "string(object.spec.size) + object.spec.color" }],
    });
    policies.validate("v", spec).await?;
    let path = format!("{}?dryRun=All", cx.widget_path());
    let request = |size: i64| {
        Request::post(&*path, &cx.widget("w", json!({ "size": size, "tags": ["old"] })))
    };
    let answer = until(&cx, &request(7), 422).await?;
    let begin = format!("widgets.{} \"w\" is forbidden: ", cx.group());
    ensure!(text(&answer.json()?, "/message").starts_with(&begin), "{answer}");
    let is_changed =
        |answer: &Answer| answer.json().is_ok_and(|object| object["spec"]["size"] == 2);
    let answer = cx.endpoint.poll(&request(1), PATIENCE, is_changed).await?;
    let expected = json!({ "size": 2, "color": "blue", "tags": ["old", "new"] });
    same("spec", &expect(&answer, 201)?["spec"], expected)?;
    let name = policies.name("v");
    let message = format!(
        "{begin}ValidatingAdmissionPolicy '{name}' with binding '{name}' denied request: 5blue"
    );
    refused(&cx.send(request(4)).await?, 422, "Invalid", &message)?;
    policies.remove().await
}

async fn an_author_may_read_the_parameters(cx: Context) -> Result<()> {
    const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1";
    let author = format!("{}-author", cx.namespace);
    let metadata = json!({ "name": author });
    let resources = ["validatingadmissionpolicies", "validatingadmissionpolicybindings"];
    let role = json!({ "metadata": metadata, "rules": [
        { "apiGroups": ["admissionregistration.k8s.io"], "resources": resources, "verbs": ["create"] },
        { "apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"] },
    ] });
    let binding = json!({
        "metadata": metadata,
        "subjects": [{ "kind": "User", "name": author, "apiGroup": "rbac.authorization.k8s.io" }],
        "roleRef": { "kind": "ClusterRole", "name": author, "apiGroup": "rbac.authorization.k8s.io" },
    });
    cx.create(&format!("{ROLES}/clusterroles"), &role).await?;
    cx.create(&format!("{ROLES}/clusterrolebindings"), &binding).await?;

    let user = format!("&{{{author}  [system:authenticated] map[]}}");
    let policy = |kind: &str| {
        let spec = json!({
            "paramKind": { "apiVersion": "v1", "kind": kind },
            "matchConstraints": { "resourceRules": [rule(&["CREATE"], "configmaps")] },
            "validations": [{ "expression": "params.x == 1" }],
        });
        let policy = json!({ "metadata": metadata, "spec": spec });
        let path = format!("{API}/validatingadmissionpolicies?dryRun=All");
        Request::post(path, &policy).impersonate(&author)
    };
    let answer = until(&cx, &policy("Secret"), 422).await?;
    let message = format!(
        "ValidatingAdmissionPolicy.admissionregistration.k8s.io {author:?} is invalid: \
         spec.paramKind: Forbidden: user {user} must have \"get\" permission on all objects of the \
         referenced paramKind (kind=Secret, apiVersion=v1)"
    );
    refused(&answer, 422, "Invalid", &message)?;
    expect(&cx.send(policy("ConfigMap")).await?, 201)?;

    let spec = json!({ "policyName": author, "validationActions": ["Deny"],
        "paramRef": { "name": "x", "parameterNotFoundAction": "Deny" } });
    let path = format!("{API}/validatingadmissionpolicybindings?dryRun=All");
    let bound = json!({ "metadata": metadata, "spec": spec });
    let answer = cx.send(Request::post(path, &bound).impersonate(&author)).await?;
    let message = format!(
        "ValidatingAdmissionPolicyBinding.admissionregistration.k8s.io {author:?} is invalid: \
         spec.paramRef: Forbidden: unable to get policy {author} to determine minimum required \
         permissions and user {user} does not have \"get\" permission for all groups, versions and \
         resources"
    );
    refused(&answer, 422, "Invalid", &message)?;
    for path in ["clusterrolebindings", "clusterroles"] {
        expect(&cx.send(Request::delete(format!("{ROLES}/{path}/{author}"))).await?, 200)?;
    }
    Ok(())
}

async fn the_types_of_expressions_are_checked(cx: Context) -> Result<()> {
    // Built-in kinds only: upstream's controllers learn of others every half minute.
    let policy = json!({
        "metadata": { "name": cx.namespace },
        "spec": {
            "failurePolicy": "Ignore",
            "paramKind": { "apiVersion": "v1", "kind": "ConfigMap" },
            "matchConstraints": { "resourceRules": [
                { "operations": ["CREATE"], "apiGroups": ["apps"], "apiVersions": ["v1"],
                    "resources": ["deployments", "deployments/status", "nothings"] },
                { "operations": ["CREATE"], "apiGroups": ["batch"], "apiVersions": ["v1"],
                    "resources": ["jobs"] },
                { "operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["v1"],
                    "resources": ["services"] },
            ] },
            "variables": [
                { "name": "spec", "expression": "object.spec" },
                { "name": "broken", "expression": "object.spec.nowhere" },
            ],
            "validations": [
                { "expression": "has(object.spec) && variables.spec.anything == variables.broken" },
                { "expression": "object.spec.size < 5", "messageExpression": "string(oldObject.spec.name)" },
                { "expression": "object.spec.replicas < 'a'" },
                { "expression": "params.data.color == object.metadata.name + params.nothing" },
                { "expression": "authorizer.requestResource.check('get').allowed()" },
                { "expression": "request.userInfo.username == namespaceObject.metadata.name" },
            ],
        },
    });
    let policies = format!("{API}/validatingadmissionpolicies");
    cx.create(&policies, &policy).await?;
    let path = format!("{policies}/{}", cx.namespace);
    let is_observed = |generation: i64| {
        move |answer: &Answer| {
            answer.json().is_ok_and(|policy| policy["status"]["observedGeneration"] == generation)
        }
    };
    let status = |answer: &Answer| answer.json().unwrap_or_default()["status"].clone();
    let answer = cx.endpoint.poll(&Request::get(&path), PATIENCE, is_observed(1)).await?;

    let issue = |group: &str, kind: &str, expression: &str, column: usize, message: &str| {
        let mark = format!("{}^", ".".repeat(column - 1));
        format!(
            "{group}/v1, Kind={kind}: ERROR: <input>:1:{column}: {message}\n | {expression}\n | {mark}\n"
        )
    };
    let warning = |index: usize, field: &str, issues: &[String]| {
        json!({ "fieldRef": format!("spec.validations[{index}].{field}"),
            "warning": issues.join("\n") })
    };
    let undefined = |field: &str| format!("undefined field '{field}'");
    let both = |expression: &str, column: usize, message: &str| {
        [("apps", "Deployment"), ("batch", "Job")]
            .map(|(group, kind)| issue(group, kind, expression, column, message))
    };
    let size = both("object.spec.size < 5", 12, &undefined("size"));
    let compared = issue(
        "apps",
        "Deployment",
        "object.spec.replicas < 'a'",
        22,
        "found no matching overload for '_<_' applied to '(int, string)'",
    );
    let replicas = issue("batch", "Job", "object.spec.replicas < 'a'", 12, &undefined("replicas"));
    let expected = json!([
        warning(1, "expression", &size),
        warning(
            1,
            "messageExpression",
            &both("string(oldObject.spec.name)", 22, &undefined("name"))
        ),
        warning(2, "expression", &[compared, replicas]),
        warning(
            3,
            "expression",
            &both(
                "params.data.color == object.metadata.name + params.nothing",
                51,
                &undefined("nothing"),
            ),
        ),
        warning(
            4,
            "expression",
            &both(
                "authorizer.requestResource.check('get').allowed()",
                11,
                "unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
            ),
        ),
    ]);
    let found = status(&answer);
    same("warnings", &found["typeChecking"]["expressionWarnings"], expected)?;

    let simple = json!({ "spec": { "variables": null,
        "validations": [{ "expression": "has(object.spec)" }] } });
    expect(&cx.send(Request::merge_patch(&path, &simple)).await?, 200)?;
    let answer = cx.endpoint.poll(&Request::get(&path), PATIENCE, is_observed(2)).await?;
    same("status", &status(&answer), json!({ "observedGeneration": 2 }))?;
    expect(&cx.send(Request::delete(path)).await?, 200)?;
    Ok(())
}
