//! Admission webhooks: who is asked about which request, and what it sees of it.

use anyhow::{Context as _, Result, ensure};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use super::webhooks::{
    MUTATING, VALIDATING, allowed, configure, create, denial, name_of, patched, play, rule, seen,
    webhook,
};
use super::{Context, config_map, expect, pod, refused, same, scenarios, text};
use crate::endpoint::Request;
use crate::hook::{Hook, Reply};

scenarios! { "webhook_requests", alone:
    a_webhook_sees_the_whole_request [A2],
    what_is_below_objects_is_reviewed_too [A2],
    connections_are_reviewed_with_their_options [A2],
    each_object_of_a_collection_is_reviewed [A2],
    a_pod_that_goes_at_once_is_reviewed_going_and_gone [A2],
    objects_are_chosen_by_labels_old_or_new [A2],
    a_namespace_is_chosen_by_its_own_labels [A2],
    conditions_choose_before_anybody_is_asked [A2],
    an_equivalent_version_is_shown_as_the_rule_names_it [A2],
    a_custom_resource_is_shown_in_the_version_of_the_rule [A2],
    the_scale_of_a_custom_resource_is_chosen_in_any_version [A2 C9],
    conditions_are_counted [A2 B1],
    a_dry_run_is_reviewed_as_one [A2 U5],
    older_reviews_are_spoken_with_those_who_ask_for_them [A2],
    configurations_of_webhooks_are_not_reviewed [A2],
}

/// A request without what differs each time.
fn timeless(mut request: Value) -> Value {
    if let Some(request) = request.as_object_mut() {
        request.remove("uid");
        request.remove("userInfo");
    }
    for object in ["object", "oldObject"] {
        if let Some(metadata) = request
            .get_mut(object)
            .and_then(|o| o.get_mut("metadata"))
            .and_then(Value::as_object_mut)
        {
            for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
                metadata.remove(field);
            }
        }
    }
    request
}

async fn a_webhook_sees_the_whole_request(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], allowed).await?;
        let hooks = [webhook(cx, "judge", hook.client_config("/path"))];
        configure(cx, VALIDATING, "", &hooks).await?;
        expect(&create(cx, "seen").await?, 201)?;
        let path = cx.core("configmaps/seen");
        let change = json!({ "data": { "key": "other" } });
        let target = format!("{path}?fieldManager=me&fieldValidation=Strict");
        expect(&cx.send(Request::merge_patch(target, &change)).await?, 200)?;
        let delete = Request::delete(format!("{path}?gracePeriodSeconds=0&propagationPolicy=Background"));
        expect(&cx.send(delete).await?, 200)?;

        let object = |value: &str| {
            json!({
                "kind": "ConfigMap", "apiVersion": "v1",
                "metadata": { "name": "seen", "namespace": cx.namespace },
                "data": { "key": value },
            })
        };
        let kind = json!({ "group": "", "version": "v1", "kind": "ConfigMap" });
        let resource = json!({ "group": "", "version": "v1", "resource": "configmaps" });
        let review = |operation: &str, object: Value, old: Value, options: Value| {
            let mut options = options;
            options["apiVersion"] = json!("meta.k8s.io/v1");
            json!({
                "kind": kind, "resource": resource, "requestKind": kind,
                "requestResource": resource, "name": "seen", "namespace": cx.namespace,
                "operation": operation, "object": object, "oldObject": old, "dryRun": false,
                "options": options,
            })
        };
        let expected = [
            review("CREATE", object("value"), Value::Null, json!({ "kind": "CreateOptions" })),
            review(
                "UPDATE",
                object("other"),
                object("value"),
                json!({ "kind": "UpdateOptions", "fieldManager": "me", "fieldValidation": "Strict" }),
            ),
            review(
                "DELETE",
                Value::Null,
                object("other"),
                json!({
                    "kind": "DeleteOptions", "gracePeriodSeconds": 0,
                    "propagationPolicy": "Background",
                }),
            ),
        ];
        let found: Vec<Value> = seen(&hook, "seen").into_iter().map(timeless).collect();
        for (found, expected) in found.iter().zip(expected) {
            same("request", found, expected)?;
        }
        same("reviews", &json!(found.len()), json!(3))?;
        let asked = hook.asked();
        let asked = asked.first().context("nobody asked")?;
        same("target", &json!(asked.target), json!("/path?timeout=10s"))?;
        let groups = asked.review["request"]["userInfo"]["groups"].to_string();
        ensure!(groups.contains("system:authenticated"), "{groups}");
        let header = |name: &str| {
            asked.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
        };
        same("agent", &json!(header("user-agent")), json!("kube-apiserver-admission"))?;
        same("accepted", &json!(header("accept")), json!("application/json, */*"))
    })
    .await
}

/// The account of pods, which a server without controllers does not make.
async fn account(cx: &Context) -> Result<()> {
    let account = json!({ "metadata": { "name": "default" } });
    let answer = cx.send(Request::post(cx.core("serviceaccounts"), &account)).await?;
    ensure!(matches!(answer.status, 201 | 409), "{answer}");
    Ok(())
}

/// A webhook that is asked about everything in our namespace, and about whatever is below.
async fn configure_all(cx: &Context, hook: &Hook) -> Result<()> {
    let mut all = webhook(cx, "judge", hook.client_config("/"));
    all["rules"] = json!([rule("*", "*", "*/*")]);
    configure(cx, VALIDATING, "", &[all]).await
}

/// What a review is about: the operation, the kind, the resource and what is below it, the name.
fn subject(request: &Value) -> String {
    let text = |at: &str| text(request, at).to_owned();
    let group = text("/kind/group");
    let version = text("/kind/version");
    let kind = match group.is_empty() {
        true => format!("{version}/{}", text("/kind/kind")),
        false => format!("{group}/{version}/{}", text("/kind/kind")),
    };
    format!(
        "{} {kind} {}/{} {}",
        text("/operation"),
        text("/resource/resource"),
        text("/subResource"),
        text("/name")
    )
}

/// The last review about something below objects, of which the webhook has seen it all.
fn last_below(hook: &Hook, resource: &str, part: &str) -> Result<Value> {
    let asked = hook.asked().into_iter().map(|asked| asked.review["request"].clone());
    let mut about = asked.filter(|request| {
        text(request, "/resource/resource") == resource && text(request, "/subResource") == part
    });
    about.next_back().with_context(|| format!("no review of {resource}/{part}"))
}

async fn what_is_below_objects_is_reviewed_too(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        account(cx).await?;
        cx.create(&cx.core("pods"), &pod("web")).await?;
        let template = json!({
            "metadata": { "labels": { "a": "b" } },
            "spec": { "containers": [{ "name": "main", "image": "example.com/image" }] },
        });
        let workload = json!({
            "metadata": { "name": "web" },
            "spec": {
                "replicas": 0, "selector": { "matchLabels": { "a": "b" } }, "template": template,
            },
        });
        cx.create(&cx.apis("apps/v1", "replicasets"), &workload).await?;
        let hook = Hook::start(&[], allowed).await?;
        configure_all(cx, &hook).await?;

        let status = json!({ "status": { "message": "x" } });
        expect(&cx.send(Request::merge_patch(cx.core("pods/web/status"), &status)).await?, 200)?;
        let seen = last_below(&hook, "pods", "status")?;
        same("status", &json!(subject(&seen)), json!("UPDATE v1/Pod pods/status web"))?;
        same("message", &seen["object"]["status"]["message"], json!("x"))?;

        let scale = json!({ "spec": { "replicas": 0 }, "metadata": { "name": "web" } });
        let target = cx.apis("apps/v1", "replicasets/web/scale");
        expect(&cx.send(Request::put(&target, &scale)).await?, 200)?;
        let seen = last_below(&hook, "replicasets", "scale")?;
        let about = "UPDATE autoscaling/v1/Scale replicasets/scale web";
        same("scale", &json!(subject(&seen)), json!(about))?;
        same("kind", &seen["object"]["kind"], json!("Scale"))?;
        same("old kind", &seen["oldObject"]["kind"], json!("Scale"))?;
        same("selector", &seen["oldObject"]["status"]["selector"], json!("a=b"))?;

        let binding = json!({
            "apiVersion": "v1", "kind": "Binding", "metadata": { "name": "web" },
            "target": { "name": "node" },
        });
        let target = cx.core("pods/web/binding?dryRun=All");
        expect(&cx.send(Request::post(target, &binding)).await?, 201)?;
        let seen = last_below(&hook, "pods", "binding")?;
        same("binding", &json!(subject(&seen)), json!("CREATE v1/Binding pods/binding web"))?;
        same("dry run", &seen["dryRun"], json!(true))?;
        same("target", &seen["object"]["target"]["name"], json!("node"))?;

        let request = json!({ "spec": { "audiences": ["x"] } });
        let target = cx.core("serviceaccounts/default/token");
        expect(&cx.send(Request::post(target, &request)).await?, 201)?;
        let seen = last_below(&hook, "serviceaccounts", "token")?;
        let about = "CREATE authentication.k8s.io/v1/TokenRequest serviceaccounts/token default";
        same("token", &json!(subject(&seen)), json!(about))?;
        same("token name", &seen["object"]["metadata"]["name"], json!("default"))?;
        same("seconds", &seen["object"]["spec"]["expirationSeconds"], json!(3600))?;
        same("token", &seen["object"]["status"]["token"], json!(""))?;

        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": "web" },
        });
        let target = cx.core("pods/web/eviction");
        expect(&cx.send(Request::post(target, &eviction)).await?, 201)?;
        let seen = last_below(&hook, "pods", "eviction")?;
        let about = "CREATE policy/v1/Eviction pods/eviction web";
        same("eviction", &json!(subject(&seen)), json!(about))?;
        // What an eviction does is not asked about again.
        let deletes = hook.asked().into_iter().filter(|asked| {
            let request = &asked.review["request"];
            request["operation"] == "DELETE" && name_of(&asked.review) == "web"
        });
        same("deletes", &json!(deletes.count()), json!(0))
    })
    .await
}

async fn connections_are_reviewed_with_their_options(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        account(cx).await?;
        cx.create(&cx.core("pods"), &pod("web")).await?;
        let hook = Hook::start(&[], |review| {
            let command = &review["request"]["object"]["command"];
            match *command == json!(["rm"]) {
                true => denial(review, json!({ "message": "no rm" })),
                false => allowed(review),
            }
        })
        .await?;
        configure_all(cx, &hook).await?;
        let cases = [
            (
                "exec?command=ls&command=-l&stdout=true&container=main",
                "exec",
                json!({
                    "kind": "PodExecOptions", "apiVersion": "v1", "stdout": true,
                    "container": "main", "command": ["ls", "-l"],
                }),
            ),
            (
                "attach?stdin=true",
                "attach",
                json!({ "kind": "PodAttachOptions", "apiVersion": "v1", "stdin": true }),
            ),
            (
                "portforward?ports=80",
                "portforward",
                json!({ "kind": "PodPortForwardOptions", "apiVersion": "v1", "ports": [80] }),
            ),
            (
                "proxy/a/b?x=y",
                "proxy",
                json!({ "kind": "PodProxyOptions", "apiVersion": "v1", "path": "/a/b" }),
            ),
        ];
        for (target, part, options) in cases {
            // Nobody is there to connect to.
            let request = Request::post(cx.core(&format!("pods/web/{target}")), &json!({}));
            let answer = cx.send(request).await?;
            ensure!(answer.status >= 400, "{answer}");
            let seen = last_below(&hook, "pods", part)?;
            same("operation", &seen["operation"], json!("CONNECT"))?;
            same(part, &seen["object"], options.clone())?;
            same("kind", &seen["kind"]["kind"], options["kind"].clone())?;
            same("options", &seen["options"], Value::Null)?;
            same("old", &seen["oldObject"], Value::Null)?;
        }
        let denied = Request::post(cx.core("pods/web/exec?command=rm"), &json!({}));
        let status = expect(&cx.send(denied).await?, 400)?;
        let message = "admission webhook \"judge.kubewright.dev\" denied the request: no rm";
        same("message", &status["message"], json!(message))?;
        let dry = Request::post(cx.core("pods/web/exec?command=ls&dryRun=All"), &json!({}));
        refused(&cx.send(dry).await?, 400, "BadRequest", "dryRun is not supported")?;
        Ok(())
    })
    .await
}

async fn each_object_of_a_collection_is_reviewed(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| match name_of(review) {
            "kept" if review["request"]["operation"] == "DELETE" => {
                denial(review, json!({ "message": "it stays" }))
            }
            _ => allowed(review),
        })
        .await?;
        let hooks = [webhook(cx, "judge", hook.client_config("/"))];
        configure(cx, VALIDATING, "", &hooks).await?;
        for name in ["gone", "kept"] {
            let mut object = config_map(name);
            object["metadata"]["labels"] = json!({ "many": "yes" });
            cx.create(&cx.core("configmaps"), &object).await?;
        }
        let delete = |only: &str| {
            let target = format!("configmaps?labelSelector=many{only}");
            Request::delete(cx.core(&target))
        };
        let status = expect(&cx.send(delete("%3Dyes")).await?, 400)?;
        let message = "admission webhook \"judge.kubewright.dev\" denied the request: it stays";
        same("message", &status["message"], json!(message))?;
        let deletes =
            seen(&hook, "kept").into_iter().filter(|request| request["operation"] == "DELETE");
        let deletes: Vec<Value> = deletes.collect();
        ensure!(!deletes.is_empty(), "nobody asked about the object that stays");
        // The request names none of them.
        same("name", &deletes[0]["name"], Value::Null)?;
        same("old", &deletes[0]["oldObject"]["metadata"]["name"], json!("kept"))?;
        expect(&cx.send(Request::get(cx.core("configmaps/kept"))).await?, 200)?;
        Ok(())
    })
    .await
}

async fn a_pod_that_goes_at_once_is_reviewed_going_and_gone(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        account(cx).await?;
        let mut web = pod("web");
        web["spec"]["nodeName"] = json!("nowhere");
        cx.create(&cx.core("pods"), &web).await?;
        let hook = Hook::start(&[], allowed).await?;
        let mut judge = webhook(cx, "judge", hook.client_config("/"));
        judge["rules"] = json!([rule("", "v1", "pods")]);
        configure(cx, VALIDATING, "", &[judge]).await?;
        let target = cx.core("pods/web?gracePeriodSeconds=0");
        expect(&cx.send(Request::delete(target)).await?, 200)?;
        let is_marked =
            |request: &Value| !text(request, "/oldObject/metadata/deletionTimestamp").is_empty();
        let mut marks: Vec<bool> = seen(&hook, "web").iter().map(is_marked).collect();
        // A server whose copy of the pod was an old one asks again about the new one.
        marks.dedup();
        same("marked", &json!(marks), json!([false, true]))
    })
    .await
}

async fn objects_are_chosen_by_labels_old_or_new(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], allowed).await?;
        let mut chosen = webhook(cx, "judge", hook.client_config("/"));
        chosen["objectSelector"] = json!({ "matchLabels": { "chosen": "yes" } });
        configure(cx, VALIDATING, "", &[chosen]).await?;
        expect(&create(cx, "one").await?, 201)?;
        same("unlabelled", &json!(seen(&hook, "one").len()), json!(0))?;
        let path = cx.core("configmaps/one");
        let label = |value: Value| json!({ "metadata": { "labels": { "chosen": value } } });
        for value in ["yes", "no", "never"] {
            expect(&cx.send(Request::merge_patch(&path, &label(json!(value)))).await?, 200)?;
        }
        let labels = |at: &str| {
            let chosen = |request: &Value| {
                text(request, &format!("/{at}/metadata/labels/chosen")).to_owned()
            };
            seen(&hook, "one").iter().map(chosen).collect::<Vec<_>>()
        };
        let pairs: Vec<(String, String)> =
            labels("oldObject").into_iter().zip(labels("object")).collect();
        for (old, new, is_asked) in [("", "yes", true), ("yes", "no", true), ("no", "never", false)]
        {
            let found = pairs.contains(&(old.to_owned(), new.to_owned()));
            same(&format!("from {old:?} to {new:?}"), &json!(found), json!(is_asked))?;
        }
        Ok(())
    })
    .await
}

async fn a_namespace_is_chosen_by_its_own_labels(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let name = format!("{}-other", cx.namespace);
        let hook = Hook::start(&[], |review| {
            denial(review, json!({ "message": text(review, "/request/namespace") }))
        })
        .await?;
        let mut chosen = webhook(cx, "judge", hook.client_config("/"));
        chosen["rules"] = json!([rule("", "v1", "namespaces")]);
        chosen["rules"][0]["operations"] = json!(["CREATE"]);
        chosen["rules"][0]["scope"] = json!("Cluster");
        chosen["namespaceSelector"] = json!({ "matchLabels": { "chosen": cx.namespace } });
        configure(cx, VALIDATING, "", &[chosen]).await?;
        let mut namespace = json!({ "metadata": { "name": name } });
        let target = "/api/v1/namespaces?dryRun=All";
        expect(&cx.send(Request::post(target, &namespace)).await?, 201)?;
        namespace["metadata"]["labels"] = json!({ "chosen": cx.namespace });
        let status = expect(&cx.send(Request::post(target, &namespace)).await?, 400)?;
        let message =
            format!("admission webhook \"judge.kubewright.dev\" denied the request: {name}");
        same("message", &status["message"], json!(message))
    })
    .await
}

async fn conditions_choose_before_anybody_is_asked(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| denial(review, json!({ "message": "asked" }))).await?;
        let condition = |expression: &str| json!([{ "name": "c", "expression": expression }]);
        let mut chosen = webhook(cx, "chosen", hook.client_config("/"));
        chosen["matchConditions"] = condition(
            "request.operation == 'CREATE' && object.metadata.name == 'chosen' && \
             authorizer.requestResource.check('create').allowed()",
        );
        let mut failing = webhook(cx, "failing", hook.client_config("/"));
        failing["matchConditions"] =
            condition("object.metadata.name == 'failing' && object.data.missing == 'x'");
        let mut ignored = failing.clone();
        ignored["name"] = json!("ignored.kubewright.dev");
        ignored["failurePolicy"] = json!("Ignore");
        configure(cx, VALIDATING, "", &[chosen, ignored, failing]).await?;
        expect(&create(cx, "other").await?, 201)?;
        let status = expect(&create(cx, "chosen").await?, 400)?;
        let message = "admission webhook \"chosen.kubewright.dev\" denied the request: asked";
        same("message", &status["message"], json!(message))?;
        let message = "configmaps \"failing\" is forbidden: expression 'object.metadata.name == \
                       'failing' && object.data.missing == 'x'' resulted in error: no such key: \
                       missing";
        refused(&create(cx, "failing").await?, 403, "Forbidden", message)?;
        same("asked", &json!(seen(&hook, "failing").len()), json!(0))
    })
    .await
}

async fn an_equivalent_version_is_shown_as_the_rule_names_it(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            patched(review, &json!([{ "op": "replace", "path": "/spec/maxReplicas", "value": 7 }]))
        })
        .await?;
        let exact = Hook::start(&[], allowed).await?;
        let mut hooks = [
            webhook(cx, "changer", hook.client_config("/")),
            webhook(cx, "exact", exact.client_config("/")),
        ];
        for hook in &mut hooks {
            hook["rules"] = json!([rule("autoscaling", "v2", "horizontalpodautoscalers")]);
        }
        hooks[1]["matchPolicy"] = json!("Exact");
        configure(cx, MUTATING, "", &hooks).await?;
        let scaler = json!({
            "apiVersion": "autoscaling/v1", "kind": "HorizontalPodAutoscaler",
            "metadata": { "name": "web" },
            "spec": {
                "maxReplicas": 3, "targetCPUUtilizationPercentage": 50,
                "scaleTargetRef": { "kind": "Deployment", "name": "web", "apiVersion": "apps/v1" },
            },
        });
        let collection = cx.apis("autoscaling/v1", "horizontalpodautoscalers");
        let created = cx.create(&collection, &scaler).await?;
        same("version", &created["apiVersion"], json!("autoscaling/v1"))?;
        same("most", &created["spec"]["maxReplicas"], json!(7))?;
        same("percentage", &created["spec"]["targetCPUUtilizationPercentage"], json!(50))?;
        let asked = seen(&hook, "web");
        let request = asked.first().context("nobody asked")?;
        same("kind", &request["kind"]["version"], json!("v2"))?;
        same("resource", &request["resource"]["version"], json!("v2"))?;
        same("request", &request["requestKind"]["version"], json!("v1"))?;
        same("object", &request["object"]["apiVersion"], json!("autoscaling/v2"))?;
        let metric = &request["object"]["spec"]["metrics"][0]["resource"]["target"];
        same("metric", &metric["averageUtilization"], json!(50))?;
        same("exact", &json!(seen(&exact, "web").len()), json!(0))
    })
    .await
}

async fn a_custom_resource_is_shown_in_the_version_of_the_rule(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let schema = json!({
            "type": "object",
            "properties": { "spec": {
                "type": "object",
                "properties": {
                    "size": { "type": "integer" },
                    "color": { "type": "string", "default": "blue" },
                },
            }},
        });
        let mut definition = cx.widgets(schema.clone());
        definition["spec"]["versions"] = json!([
            { "name": "v1", "served": true, "storage": true,
              "schema": { "openAPIV3Schema": schema } },
            { "name": "v2", "served": true, "storage": false,
              "schema": { "openAPIV3Schema": schema } },
        ]);
        cx.define(&definition).await?;
        let hook = Hook::start(&[], |review| {
            patched(
                review,
                &json!([
                    { "op": "replace", "path": "/spec", "value": { "size": 2, "unknown": true } },
                    { "op": "add", "path": "/metadata/labels", "value": { "patched": "yes" } },
                ]),
            )
        })
        .await?;
        let mut changer = webhook(cx, "changer", hook.client_config("/"));
        changer["rules"] = json!([rule(&cx.group(), "v2", "widgets")]);
        configure(cx, MUTATING, "", &[changer]).await?;
        let widget = cx.widget("one", json!({ "size": 1, "color": "red" }));
        let created = cx.create(&cx.widget_path(), &widget).await?;
        // What is unknown is dropped, and what was dropped gets its default.
        same("spec", &created["spec"], json!({ "color": "blue", "size": 2 }))?;
        same("labels", &created["metadata"]["labels"], json!({ "patched": "yes" }))?;
        let asked = seen(&hook, "one");
        let request = asked.first().context("nobody asked")?;
        let version = format!("{}/v2", cx.group());
        same("object", &request["object"]["apiVersion"], json!(version))?;
        same("request", &request["requestKind"]["version"], json!("v1"))
    })
    .await
}

async fn the_scale_of_a_custom_resource_is_chosen_in_any_version(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let schema = json!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true });
        let version = |name: &str| {
            json!({
                "name": name, "served": true, "storage": name == "v1",
                "schema": { "openAPIV3Schema": schema },
                "subresources": { "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                } },
            })
        };
        let mut definition = cx.widgets(schema.clone());
        definition["spec"]["versions"] = json!([version("v1"), version("v2")]);
        cx.define(&definition).await?;
        let hook = Hook::start(&[], |review| {
            patched(review, &json!([{ "op": "replace", "path": "/spec/replicas", "value": 7 }]))
        })
        .await?;
        let exact = Hook::start(&[], allowed).await?;
        let mut hooks = [
            webhook(cx, "changer", hook.client_config("/")),
            webhook(cx, "exact", exact.client_config("/")),
        ];
        for hook in &mut hooks {
            hook["rules"] = json!([rule(&cx.group(), "v2", "widgets/scale")]);
        }
        hooks[1]["matchPolicy"] = json!("Exact");
        configure(cx, MUTATING, "", &hooks).await?;
        cx.create(&cx.widget_path(), &cx.widget("one", json!({ "replicas": 1 }))).await?;
        let scale = format!("{}/one/scale", cx.widget_path());
        let change = json!({ "spec": { "replicas": 3 } });
        let scaled = expect(&cx.send(Request::merge_patch(scale, &change)).await?, 200)?;
        same("replicas", &scaled["spec"]["replicas"], json!(7))?;
        let asked = seen(&hook, "one");
        let request = asked.first().context("nobody asked")?;
        let resource = |version: &str| {
            json!({ "group": cx.group(), "version": version, "resource": "widgets" })
        };
        let kind = json!({ "group": "autoscaling", "version": "v1", "kind": "Scale" });
        same("resource", &request["resource"], resource("v2"))?;
        same("requested", &request["requestResource"], resource("v1"))?;
        same("kind", &request["kind"], kind.clone())?;
        same("requested kind", &request["requestKind"], kind)?;
        same("part", &request["subResource"], json!("scale"))?;
        same("object", &request["object"]["kind"], json!("Scale"))?;
        same("exact", &json!(seen(&exact, "one").len()), json!(0))
    })
    .await
}

async fn conditions_are_counted(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], allowed).await?;
        let mut hooks = ["unmet", "failing"]
            .map(|name| webhook(cx, &format!("{}-{name}", cx.namespace), hook.client_config("/")));
        let condition = |expression: &str| json!({ "name": "c", "expression": expression });
        // What waits for the configuration is not to be counted.
        let counts = "object.metadata.name == 'counted'";
        hooks[0]["matchConditions"] = json!([condition(&format!("!({counts})"))]);
        hooks[1]["matchConditions"] = json!([
            condition(&format!("{counts} ? object.data.missing == 'x' : true")),
            { "name": "d", "expression": format!("{counts} ? object.data.other == 'x' : true") },
        ]);
        hooks[1]["failurePolicy"] = json!("Ignore");
        configure(cx, VALIDATING, "", &hooks).await?;
        expect(&create(cx, "counted").await?, 201)?;
        let prefix = "apiserver_admission_match_condition";
        let labels = |name: &str, role: &str| {
            let name = format!("{}-{name}.kubewright.dev", cx.namespace);
            format!(r#"kind="webhook",name="{name}",operation="CREATE",type="{role}""#)
        };
        cx.counted(&[
            &format!("{prefix}_exclusions_total{{{}}} 1", labels("unmet", "validate")),
            &format!("{prefix}_exclusions_total{{{}}} 1", labels("failing", "validate")),
            &format!("{prefix}_evaluation_errors_total{{{}}} 2", labels("failing", "validating")),
            &format!(
                "{prefix}_evaluation_seconds_bucket{{{},le=\"+Inf\"}} 1",
                labels("unmet", "validating")
            ),
            &format!("{prefix}_evaluation_seconds_count{{{}}} 1", labels("failing", "validating")),
        ])
        .await
    })
    .await
}

async fn a_dry_run_is_reviewed_as_one(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            patched(review, &json!([{ "op": "add", "path": "/data/more", "value": "x" }]))
        })
        .await?;
        let hooks = [webhook(cx, "changer", hook.client_config("/"))];
        configure(cx, MUTATING, "", &hooks).await?;
        let dry = Request::post(cx.core("configmaps?dryRun=All"), &config_map("dry"));
        let created = expect(&cx.send(dry).await?, 201)?;
        same("more", &created["data"]["more"], json!("x"))?;
        let asked = seen(&hook, "dry");
        let request = asked.first().context("nobody asked")?;
        same("dry run", &request["dryRun"], json!(true))?;
        same("options", &request["options"]["dryRun"], json!(["All"]))?;
        expect(&cx.send(Request::get(cx.core("configmaps/dry"))).await?, 404)?;
        Ok(())
    })
    .await
}

async fn older_reviews_are_spoken_with_those_who_ask_for_them(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| {
            let patch = BASE64_STANDARD.encode(r#"[{"op":"add","path":"/data/more","value":"x"}]"#);
            // Neither the uid nor the language of the patch was asked for then.
            Reply::json(&json!({
                "apiVersion": review["apiVersion"], "kind": "AdmissionReview",
                "response": { "allowed": true, "patch": patch },
            }))
        })
        .await?;
        let mut older = webhook(cx, "older", hook.client_config("/"));
        older["admissionReviewVersions"] = json!(["v2", "v1beta1", "v1"]);
        configure(cx, MUTATING, "", &[older]).await?;
        let created = expect(&create(cx, "one").await?, 201)?;
        same("more", &created["data"]["more"], json!("x"))?;
        let asked = hook.asked();
        let asked = asked.first().context("nobody asked")?;
        same("version", &asked.review["apiVersion"], json!("admission.k8s.io/v1beta1"))
    })
    .await
}

async fn configurations_of_webhooks_are_not_reviewed(cx: Context) -> Result<()> {
    play(&cx, async |cx| {
        let hook = Hook::start(&[], |review| denial(review, json!({}))).await?;
        let mut denying = webhook(cx, "denying", hook.client_config("/"));
        let mark = json!({ "matchLabels": { "of": cx.namespace } });
        denying["rules"] = json!([rule("*", "*", "*/*")]);
        denying["objectSelector"] = mark;
        denying["namespaceSelector"] = json!({});
        configure(cx, VALIDATING, "", &[denying]).await?;
        let labels = json!({ "of": cx.namespace });
        let name = format!("{}-more", cx.namespace);
        let metadata = json!({ "name": name, "labels": labels });
        for collection in [MUTATING, VALIDATING] {
            let target = format!("{collection}?dryRun=All");
            cx.create(&target, &json!({ "metadata": metadata, "webhooks": [] })).await?;
        }
        let class = json!({
            "metadata": metadata, "value": 1,
        });
        let classes = "/apis/scheduling.k8s.io/v1/priorityclasses?dryRun=All";
        let status = expect(&cx.send(Request::post(classes, &class)).await?, 400)?;
        let told = text(&status, "/message");
        ensure!(told.contains("denying.kubewright.dev"), "{told}");
        Ok(())
    })
    .await
}
