//! The life of a CustomResourceDefinition and of what it defines.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::{Context, PATIENCE, any_schema, expect, names, refused, same, scenarios, text};
use crate::crd::{self, condition};
use crate::endpoint::{Answer, Request};

scenarios! { "crds":
    a_definition_becomes_established [C1 C3],
    a_second_definition_cannot_take_taken_names [C1 C3],
    stored_versions_are_remembered [C2],
    deleting_a_definition_deletes_its_instances [C4],
    a_definition_shows_in_discovery [C5 C11],
    a_definition_shows_in_openapi [C5],
    versions_are_served_from_one_object [C6],
    a_version_that_is_not_served_is_not_found [C6],
    a_deprecated_version_warns [C6 W12],
    status_is_a_subresource_of_its_own [C9],
    scale_follows_the_paths_given [C9],
    scale_sets_what_nobody_has_set [C9],
    printer_columns_make_the_table [C10],
    a_table_without_columns_tells_the_age [C10],
    fields_can_be_made_selectable [C12],
    what_cannot_be_selected_is_refused [C12],
    a_definition_must_make_sense [C7],
    a_definition_keeps_its_names_and_scope [C3],
    a_group_of_kubernetes_needs_approval [C16],
    a_schema_may_restrict_names [C16],
}

async fn a_definition_becomes_established(cx: Context) -> Result<()> {
    let created = cx.create(crd::PATH, &cx.widgets(any_schema())).await?;
    let name = text(&created, "/metadata/name");
    same("listKind is derived", &created["spec"]["names"]["listKind"], json!("WidgetList"))?;
    same("conversion is defaulted", &created["spec"]["conversion"], json!({ "strategy": "None" }))?;
    ensure!(crd::wait_until_served(&cx.endpoint, name).await?, "names not accepted");
    let established = cx.get(&format!("{}/{name}", crd::PATH)).await?;
    let conditions = established["status"]["conditions"].as_array().context("no conditions")?;
    let brief: Value = conditions
        .iter()
        .map(|condition| {
            json!([
                condition["type"],
                condition["status"],
                condition["reason"],
                condition["message"]
            ])
        })
        .collect();
    same(
        "conditions",
        &brief,
        json!([
            ["NamesAccepted", "True", "NoConflicts", "no conflicts found"],
            ["Established", "True", "InitialNamesAccepted", "the initial names have been accepted"],
        ]),
    )?;
    same(
        "acceptedNames",
        &established["status"]["acceptedNames"],
        json!({
            "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList",
        }),
    )
}

async fn a_second_definition_cannot_take_taken_names(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let mut rival = cx.widgets(any_schema());
    rival["metadata"]["name"] = json!(format!("gadgets.{}", cx.group()));
    rival["spec"]["names"] = json!({
        "plural": "gadgets", "singular": "gadget", "kind": "Widget", "listKind": "GadgetList",
    });
    cx.create(crd::PATH, &rival).await?;
    let get = Request::get(format!("{}/gadgets.{}", crd::PATH, cx.group()));
    let decided = |answer: &Answer| {
        answer.json().is_ok_and(|crd| condition(&crd, "NamesAccepted") == Some("False"))
    };
    let rival = cx.endpoint.poll(&get, PATIENCE, decided).await?.json()?;
    let conflict = &rival["status"]["conditions"][0];
    same("reason", &conflict["reason"], json!("KindConflict"))?;
    same("message", &conflict["message"], json!("\"Widget\" is already in use"))?;
    same("established", &json!(condition(&rival, "Established")), json!("False"))?;
    same("accepted kind", &rival["status"]["acceptedNames"]["kind"], json!(""))
}

/// `v1` and `v2`, of which `storage` is stored.
fn two_versions(cx: &Context, storage: &str) -> Value {
    let mut definition = cx.widgets(any_schema());
    let mut second = definition["spec"]["versions"][0].clone();
    second["name"] = json!("v2");
    definition["spec"]["versions"][0]["storage"] = json!(storage == "v1");
    second["storage"] = json!(storage == "v2");
    definition["spec"]["versions"] = json!([definition["spec"]["versions"][0], second]);
    definition
}

async fn stored_versions_are_remembered(cx: Context) -> Result<()> {
    let defined = cx.define(&two_versions(&cx, "v1")).await?;
    same("at first", &defined["status"]["storedVersions"], json!(["v1"]))?;
    let path = format!("{}/widgets.{}", crd::PATH, cx.group());
    let versions = &two_versions(&cx, "v2")["spec"]["versions"];
    let patch = json!({ "spec": { "versions": versions } });
    let changed = expect(&cx.send(Request::merge_patch(path.clone(), &patch)).await?, 200)?;
    same("afterwards", &changed["status"]["storedVersions"], json!(["v1", "v2"]))?;
    // A version that may still be in the store cannot go.
    let only_v2 = json!({ "spec": { "versions": [versions[1]] } });
    let answer = cx.send(Request::merge_patch(path.clone(), &only_v2)).await?;
    let message = format!(
        "CustomResourceDefinition.apiextensions.k8s.io \"widgets.{}\" is invalid: \
         status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was \
         previously a storage version, and must remain in spec.versions until a storage migration \
         ensures no data remains persisted in v1 and removes v1 from status.storedVersions",
        cx.group()
    );
    refused(&answer, 422, "Invalid", &message)?;
    let migrated = json!({ "status": { "storedVersions": ["v2"] } });
    expect(&cx.send(Request::merge_patch(format!("{path}/status"), &migrated)).await?, 200)?;
    expect(&cx.send(Request::merge_patch(path, &only_v2)).await?, 200)?;
    Ok(())
}

async fn deleting_a_definition_deletes_its_instances(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let mut widget = cx.widget("one", json!({}));
    widget["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let created = cx.create(&cx.widget_path(), &widget).await?;
    let path = format!("{}/widgets.{}", crd::PATH, cx.group());
    let dying = expect(&cx.send(Request::delete(path.clone())).await?, 200)?;
    let finalizer = "customresourcecleanup.apiextensions.k8s.io";
    same("finalizers", &dying["metadata"]["finalizers"], json!([finalizer]))?;

    let terminating = |answer: &Answer| {
        answer.json().is_ok_and(|crd| condition(&crd, "Terminating") == Some("True"))
    };
    cx.endpoint.poll(&Request::get(path.clone()), PATIENCE, terminating).await?;
    let one = format!("{}/one", cx.widget_path());
    let dying = |answer: &Answer| {
        answer.json().is_ok_and(|widget| !text(&widget, "/metadata/deletionTimestamp").is_empty())
    };
    cx.endpoint.poll(&Request::get(one.clone()), PATIENCE, dying).await?;
    // Nothing new while it goes.
    let answer = cx.send(Request::post(cx.widget_path(), &cx.widget("two", json!({})))).await?;
    let message = format!(
        "widgets.{} \"two\" is forbidden: create not allowed while custom resource definition is \
         terminating",
        cx.group()
    );
    refused(&answer, 403, "Forbidden", &message)?;
    same("uid", &cx.get(&one).await?["metadata"]["uid"], created["metadata"]["uid"].clone())?;

    let release = json!({ "metadata": { "finalizers": null } });
    expect(&cx.send(Request::merge_patch(one, &release)).await?, 200)?;
    cx.endpoint.poll(&Request::get(path), PATIENCE, |answer| answer.status == 404).await?;
    let gone = |answer: &Answer| answer.status == 404;
    cx.endpoint.poll(&Request::get(cx.widget_path()), PATIENCE, gone).await?;
    Ok(())
}

async fn a_definition_shows_in_discovery(cx: Context) -> Result<()> {
    let mut definition = cx.widgets(any_schema());
    definition["spec"]["names"]["shortNames"] = json!(["wd"]);
    definition["spec"]["names"]["categories"] = json!(["all"]);
    definition["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    cx.define(&definition).await?;
    let target = format!("/apis/{}/v1", cx.group());
    let listed = |answer: &Answer| answer.status == 200;
    let list = cx.endpoint.poll(&Request::get(target), PATIENCE, listed).await?.json()?;
    same("groupVersion", &list["groupVersion"], json!(format!("{}/v1", cx.group())))?;
    let hash = list["resources"][0]["storageVersionHash"].clone();
    ensure!(hash.as_str().is_some_and(|hash| hash.len() == 12), "hash {hash}");
    same(
        "resources",
        &list["resources"],
        json!([
            {
                "name": "widgets", "singularName": "widget", "namespaced": true, "kind": "Widget",
                "verbs": [
                    "delete", "deletecollection", "get", "list", "patch", "create", "update", "watch",
                ],
                "shortNames": ["wd"], "categories": ["all"], "storageVersionHash": hash,
            },
            {
                "name": "widgets/status", "singularName": "", "namespaced": true, "kind": "Widget",
                "verbs": ["get", "patch", "update"],
            },
        ]),
    )?;
    let in_groups = |answer: &Answer| {
        let group = cx.group();
        let has = |groups: &Value| {
            groups["groups"].as_array().into_iter().flatten().any(|each| each["name"] == group)
        };
        answer.json().is_ok_and(|groups| has(&groups))
    };
    cx.endpoint.poll(&Request::get("/apis"), PATIENCE, in_groups).await?;
    Ok(())
}

async fn a_definition_shows_in_openapi(cx: Context) -> Result<()> {
    let schema = json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": {
            "size": { "type": "integer", "description": "How large." },
        } } },
    });
    cx.define(&cx.widgets(schema)).await?;
    let key = format!("apis/{}/v1", cx.group());
    let listed =
        |answer: &Answer| answer.json().is_ok_and(|index| index["paths"].get(&key).is_some());
    let index = cx.endpoint.poll(&Request::get("/openapi/v3"), PATIENCE, listed).await?.json()?;
    let url = text(&index["paths"][&key], "/serverRelativeURL");
    let document = cx.get(url).await?;
    let schemas = document["components"]["schemas"].as_object().context("no schemas")?;
    let widget =
        schemas.iter().find(|(name, _)| name.ends_with(".v1.Widget")).context("no Widget")?.1;
    let size = &widget["properties"]["spec"]["properties"]["size"];
    same("size", size, json!({ "type": "integer", "description": "How large." }))?;
    same(
        "kinds",
        &widget["x-kubernetes-group-version-kind"],
        json!([
            { "group": cx.group(), "kind": "Widget", "version": "v1" },
        ]),
    )?;
    let path = format!("/apis/{}/v1/namespaces/{{namespace}}/widgets/{{name}}", cx.group());
    let forms = document["paths"][&path]["patch"]["requestBody"]["content"].clone();
    let forms: Vec<&String> = forms.as_object().context("no patch")?.keys().collect();
    ensure!(!forms.iter().any(|form| form.contains("strategic")), "{forms:?}");
    Ok(())
}

async fn versions_are_served_from_one_object(cx: Context) -> Result<()> {
    cx.define(&two_versions(&cx, "v1")).await?;
    let created = cx.create(&cx.widget_path(), &cx.widget("one", json!({ "a": 1 }))).await?;
    let second = cx.apis(&format!("{}/v2", cx.group()), "widgets");
    let read = cx.get(&format!("{second}/one")).await?;
    same("apiVersion", &read["apiVersion"], json!(format!("{}/v2", cx.group())))?;
    same("spec", &read["spec"], json!({ "a": 1 }))?;
    for same_field in ["uid", "resourceVersion"] {
        same(same_field, &read["metadata"][same_field], created["metadata"][same_field].clone())?;
    }
    let list = cx.get(&second).await?;
    same("apiVersion of the list", &list["apiVersion"], json!(format!("{}/v2", cx.group())))?;
    same(
        "apiVersion of an item",
        &list["items"][0]["apiVersion"],
        json!(format!("{}/v2", cx.group())),
    )?;
    // A body in another version than the path is not converted on the way in.
    let answer = cx.send(Request::post(second, &cx.widget("two", json!({})))).await?;
    let status = expect(&answer, 400)?;
    let message = format!(
        "the API version in the data ({0}/v1) does not match the expected API version ({0}/v2)",
        cx.group()
    );
    same("message", &status["message"], json!(message))
}

async fn a_version_that_is_not_served_is_not_found(cx: Context) -> Result<()> {
    let mut definition = two_versions(&cx, "v1");
    definition["spec"]["versions"][1]["served"] = json!(false);
    cx.define(&definition).await?;
    let answer = cx.send(Request::get(cx.apis(&format!("{}/v2", cx.group()), "widgets"))).await?;
    ensure!(answer.status == 404, "{answer}");
    Ok(())
}

async fn a_deprecated_version_warns(cx: Context) -> Result<()> {
    let mut definition = two_versions(&cx, "v1");
    definition["spec"]["versions"][0]["deprecated"] = json!(true);
    definition["spec"]["versions"][1]["deprecated"] = json!(true);
    definition["spec"]["versions"][1]["deprecationWarning"] = json!("use something else");
    cx.define(&definition).await?;
    let answer = cx.send(Request::get(cx.widget_path())).await?;
    // The default warning names a newer version only if there is one that is not deprecated.
    let warning = format!("{}/v1 Widget is deprecated", cx.group());
    same("warnings", &json!(answer.warnings()), json!([warning]))?;
    let answer = cx.send(Request::get(cx.apis(&format!("{}/v2", cx.group()), "widgets"))).await?;
    same("warnings", &json!(answer.warnings()), json!(["use something else"]))
}

async fn status_is_a_subresource_of_its_own(cx: Context) -> Result<()> {
    let mut definition = cx.widgets(any_schema());
    definition["spec"]["versions"][0]["subresources"] = json!({ "status": {} });
    cx.define(&definition).await?;
    let mut widget = cx.widget("one", json!({ "a": 1 }));
    widget["status"] = json!({ "b": 1 });
    let mut created = cx.create(&cx.widget_path(), &widget).await?;
    same("status on create", &created["status"], Value::Null)?;

    let one = format!("{}/one", cx.widget_path());
    created["spec"] = json!({ "a": 2 });
    created["status"] = json!({ "b": 2 });
    created["metadata"]["labels"] = json!({ "x": "y" });
    let mut updated =
        expect(&cx.send(Request::put(format!("{one}/status"), &created)).await?, 200)?;
    same("spec through status", &updated["spec"], json!({ "a": 1 }))?;
    same("status", &updated["status"], json!({ "b": 2 }))?;
    same("labels through status", &updated["metadata"]["labels"], Value::Null)?;
    updated["spec"] = json!({ "a": 3 });
    updated["status"] = json!({ "b": 3 });
    let updated = expect(&cx.send(Request::put(one, &updated)).await?, 200)?;
    same("spec", &updated["spec"], json!({ "a": 3 }))?;
    same("status through spec", &updated["status"], json!({ "b": 2 }))
}

async fn scale_follows_the_paths_given(cx: Context) -> Result<()> {
    let mut definition = cx.widgets(any_schema());
    definition["spec"]["versions"][0]["subresources"] = json!({
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.count",
            "statusReplicasPath": ".status.count",
            "labelSelectorPath": ".status.selector",
        },
    });
    cx.define(&definition).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({ "count": 1 }))).await?;
    let one = format!("{}/one", cx.widget_path());
    let status = json!({ "status": { "count": 2, "selector": "a=b" } });
    expect(&cx.send(Request::merge_patch(format!("{one}/status"), &status)).await?, 200)?;
    let scale = cx.get(&format!("{one}/scale")).await?;
    same("kind", &json!([scale["apiVersion"], scale["kind"]]), json!(["autoscaling/v1", "Scale"]))?;
    same("spec", &scale["spec"], json!({ "replicas": 1 }))?;
    same("status", &scale["status"], json!({ "replicas": 2, "selector": "a=b" }))?;
    let patch = json!({ "spec": { "replicas": 5 } });
    expect(&cx.send(Request::merge_patch(format!("{one}/scale"), &patch)).await?, 200)?;
    same("count", &cx.get(&one).await?["spec"]["count"], json!(5))
}

async fn scale_sets_what_nobody_has_set(cx: Context) -> Result<()> {
    let mut definition = cx.widgets(any_schema());
    definition["spec"]["versions"][0]["subresources"] = json!({
        "scale": { "specReplicasPath": ".spec.count", "statusReplicasPath": ".status.count" },
    });
    cx.define(&definition).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    let one = format!("{}/one", cx.widget_path());
    let scale = format!("{one}/scale");
    let message = "Internal error occurred: the spec replicas field \".spec.count\" does not exist";
    let answer = cx.send(Request::get(scale.as_str())).await?;
    refused(&answer, 500, "InternalError", message)?;
    let patch = |spec: Value| Request::merge_patch(scale.as_str(), &json!({ "spec": spec }));
    let message = "the spec replicas field \".spec.count\" cannot be empty";
    refused(&cx.send(patch(json!({}))).await?, 400, "BadRequest", message)?;
    expect(&cx.send(patch(json!({ "replicas": 3 }))).await?, 200)?;
    same("count", &cx.get(&one).await?["spec"]["count"], json!(3))?;
    let status = cx.send(patch(json!({ "replicas": -1 }))).await?;
    let status = expect(&status, 422)?;
    let cause = json!({
        "reason": "FieldValueInvalid",
        "message": "Invalid value: -1: should be a non-negative integer",
        "field": ".spec.count",
    });
    same("causes", &status["details"]["causes"], json!([cause]))
}

async fn printer_columns_make_the_table(cx: Context) -> Result<()> {
    let mut definition = cx.widgets(any_schema());
    definition["spec"]["versions"][0]["additionalPrinterColumns"] = json!([
        { "name": "Size", "type": "integer", "jsonPath": ".spec.size" },
        { "name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1 },
        { "name": "First", "type": "string", "jsonPath": ".spec.items[0].name" },
    ]);
    cx.define(&definition).await?;
    let spec = json!({ "size": 3, "items": [{ "name": "a" }, { "name": "b" }] });
    cx.create(&cx.widget_path(), &cx.widget("one", spec)).await?;
    let request =
        Request::get(cx.widget_path()).accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = expect(&cx.send(request).await?, 200)?;
    let columns = table["columnDefinitions"].as_array().context("no columns")?;
    let columns: Value =
        columns.iter().map(|column| json!([column["name"], column["priority"]])).collect();
    same("columns", &columns, json!([["Name", 0], ["Size", 0], ["Color", 1], ["First", 0]]))?;
    // What is not there is null, not an empty text.
    same("cells", &table["rows"][0]["cells"], json!(["one", 3, null, "a"]))
}

async fn fields_can_be_made_selectable(cx: Context) -> Result<()> {
    let mut definition = cx.widgets(json!({
        "type": "object",
        "properties": { "spec": { "type": "object", "properties": {
            "color": { "type": "string" }, "size": { "type": "integer" },
        } } },
    }));
    definition["spec"]["versions"][0]["selectableFields"] =
        json!([{ "jsonPath": ".spec.color" }, { "jsonPath": ".spec.size" }]);
    cx.define(&definition).await?;
    for (name, spec) in [
        ("a", json!({ "color": "red", "size": 1 })),
        ("b", json!({ "color": "blue", "size": 1 })),
        ("c", json!({ "size": 2 })),
    ] {
        cx.create(&cx.widget_path(), &cx.widget(name, spec)).await?;
    }
    for (selector, expected) in [
        ("spec.color%3Dred", vec!["a"]),
        ("spec.color%21%3Dred", vec!["b", "c"]),
        ("spec.size%3D1", vec!["a", "b"]),
        ("spec.size%3D1,spec.color%3Dblue", vec!["b"]),
        ("spec.color%3D", vec!["c"]),
    ] {
        let list = cx.get(&format!("{}?fieldSelector={selector}", cx.widget_path())).await?;
        ensure!(names(&list) == expected, "{selector} selects {:?}", names(&list));
    }
    let target = format!("{}?fieldSelector=spec.shape%3Dround", cx.widget_path());
    let status = expect(&cx.send(Request::get(target)).await?, 400)?;
    same("message", &status["message"], json!("field label not supported: spec.shape"))
}

async fn a_table_without_columns_tells_the_age(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    cx.create(&cx.widget_path(), &cx.widget("one", json!({}))).await?;
    let request =
        Request::get(cx.widget_path()).accept("application/json;as=Table;v=v1;g=meta.k8s.io");
    let table = expect(&cx.send(request).await?, 200)?;
    let columns = table["columnDefinitions"].as_array().context("no columns")?;
    let columns: Value = columns.iter().map(|column| column["name"].clone()).collect();
    same("columns", &columns, json!(["Name", "Age"]))?;
    let age = text(&table, "/rows/0/cells/1");
    ensure!(age.ends_with('s'), "age {age:?}");
    Ok(())
}

/// What is wrong with a definition, after its name.
async fn wrong(cx: &Context, definition: &Value) -> Result<String> {
    let answer = cx.send(Request::post(crd::PATH, definition)).await?;
    let status = expect(&answer, 422)?;
    let message = text(&status, "/message");
    let why = message.split_once(" is invalid: ").map(|(_, why)| why.to_owned());
    why.with_context(|| message.to_owned())
}

async fn what_cannot_be_selected_is_refused(cx: Context) -> Result<()> {
    let properties: serde_json::Map<String, Value> =
        (0..9).map(|number| (format!("f{number}"), json!({ "type": "string" }))).collect();
    let spec = json!({ "type": "object", "properties": properties });
    let mut definition = cx.widgets(json!({ "type": "object", "properties": { "spec": spec } }));
    let fields: Vec<Value> =
        (0..9).map(|number| json!({ "jsonPath": format!(".spec.f{number}") })).collect();
    definition["spec"]["versions"][0]["selectableFields"] = json!(fields);
    let why = "spec.selectableFields: Too many: 9: must have at most 8 items";
    same("too many", &json!(wrong(&cx, &definition).await?), json!(why))?;
    definition["spec"]["versions"][0]["selectableFields"] = json!([{ "jsonPath": ".spec.other" }]);
    let why = "spec.selectableFields[0].jsonPath: Invalid value: \".spec.other\": is an invalid \
               path: does not refer to a valid field";
    same("unknown", &json!(wrong(&cx, &definition).await?), json!(why))
}

async fn a_definition_must_make_sense(cx: Context) -> Result<()> {
    let whole = cx.widgets(any_schema());
    let changed = |change: &dyn Fn(&mut Value)| {
        let mut definition = whole.clone();
        change(&mut definition);
        definition
    };
    let name = format!("other.{}", cx.group());
    let cases = [
        (
            changed(&|definition| definition["metadata"]["name"] = json!(name)),
            format!(
                "metadata.name: Invalid value: \"{name}\": must be \
                 spec.names.plural+\".\"+spec.group"
            ),
        ),
        (
            changed(&|definition| definition["spec"]["scope"] = json!("World")),
            "spec.scope: Unsupported value: \"World\": supported values: \"Cluster\", \
             \"Namespaced\""
                .to_owned(),
        ),
        (
            changed(&|definition| {
                let version = definition["spec"]["versions"][0].as_object_mut();
                version.map(|version| version.remove("schema"));
            }),
            "spec.versions[0].schema.openAPIV3Schema: Required value".to_owned(),
        ),
        (
            changed(&|definition| definition["spec"]["preserveUnknownFields"] = json!(true)),
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                .to_owned(),
        ),
        (
            changed(&|definition| {
                definition["spec"]["versions"][0]["additionalPrinterColumns"] =
                    json!([{ "name": "", "type": "x", "jsonPath": "spec" }]);
            }),
            "[spec.additionalPrinterColumns[0].name: Required value, \
             spec.additionalPrinterColumns[0].type: Invalid value: \"x\": must be one of \
             boolean,date,integer,number,string, spec.additionalPrinterColumns[0].JSONPath: \
             Invalid value: \"spec\": must be a simple json path starting with .]"
                .to_owned(),
        ),
        (
            changed(&|definition| {
                definition["spec"]["versions"][0]["subresources"] = json!({ "scale": {
                    "specReplicasPath": "spec.a", "statusReplicasPath": ".a",
                } });
            }),
            "[spec.subresources.scale.specReplicasPath: Invalid value: \"spec.a\": must be a simple \
             json path starting with ., spec.subresources.scale.statusReplicasPath: Invalid value: \
             \".a\": should be a json path under .status]"
                .to_owned(),
        ),
    ];
    for (definition, why) in cases {
        same("problem", &json!(wrong(&cx, &definition).await?), json!(why))?;
    }
    let mut protected = whole.clone();
    protected["metadata"]["name"] = json!(format!("widgets.{}.k8s.io", cx.namespace));
    protected["spec"]["group"] = json!(format!("{}.k8s.io", cx.namespace));
    let why = "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups \
               must have approval annotation \"api-approved.kubernetes.io\", see \
               https://github.com/kubernetes/enhancements/pull/1111";
    same("protected", &json!(wrong(&cx, &protected).await?), json!(why))
}

async fn a_definition_keeps_its_names_and_scope(cx: Context) -> Result<()> {
    cx.define(&cx.widgets(any_schema())).await?;
    let path = format!("{}/widgets.{}", crd::PATH, cx.group());
    for (spec, why) in [
        (
            json!({ "scope": "Cluster" }),
            "spec.scope: Invalid value: \"Cluster\": field is immutable",
        ),
        (
            json!({ "names": { "plural": "other" } }),
            "spec.names.plural: Invalid value: \"other\": field is immutable",
        ),
    ] {
        let answer = cx.send(Request::merge_patch(path.clone(), &json!({ "spec": spec }))).await?;
        let message = format!(
            "CustomResourceDefinition.apiextensions.k8s.io \"widgets.{}\" is invalid: {why}",
            cx.group()
        );
        refused(&answer, 422, "Invalid", &message)?;
    }
    // A name that is not in the path may change, and is accepted anew.
    let names = json!({ "spec": { "names": { "shortNames": ["wg"], "categories": ["all"] } } });
    expect(&cx.send(Request::merge_patch(path.clone(), &names)).await?, 200)?;
    let is_accepted = |answer: &Answer| {
        answer.json().is_ok_and(|definition| {
            let accepted = &definition["status"]["acceptedNames"];
            accepted["shortNames"] == json!(["wg"]) && accepted["categories"] == json!(["all"])
        })
    };
    cx.endpoint.poll(&Request::get(path), PATIENCE, is_accepted).await?;
    Ok(())
}

async fn a_group_of_kubernetes_needs_approval(cx: Context) -> Result<()> {
    const ANNOTATION: &str = "api-approved.kubernetes.io";
    let group = format!("{}.k8s.io", cx.namespace);
    let mut definition = cx.widgets(any_schema());
    definition["metadata"]["name"] = json!(format!("widgets.{group}"));
    definition["spec"]["group"] = json!(group);
    definition["metadata"]["annotations"] = json!({ ANNOTATION: "yes" });
    let why = "metadata.annotations[api-approved.kubernetes.io]: Invalid value: \"yes\": protected \
               groups must have approval annotation \"api-approved.kubernetes.io\" with either a URL \
               or a reason starting with \"unapproved\", see \
               https://github.com/kubernetes/enhancements/pull/1111";
    same("neither", &json!(wrong(&cx, &definition).await?), json!(why))?;

    definition["metadata"]["annotations"] = json!({ ANNOTATION: "unapproved, a test" });
    cx.create(crd::PATH, &definition).await?;
    let path = format!("{}/widgets.{group}", crd::PATH);
    let says = async |expected: Value| {
        let said = |answer: &Answer| {
            answer.json().is_ok_and(|definition| {
                let conditions = definition["status"]["conditions"].as_array();
                conditions.into_iter().flatten().any(|condition| {
                    condition["type"] == "KubernetesAPIApprovalPolicyConformant"
                        && json!([condition["status"], condition["reason"], condition["message"]])
                            == expected
                })
            })
        };
        cx.endpoint.poll(&Request::get(path.clone()), PATIENCE, said).await
    };
    let unapproved = "not approved: \"unapproved, a test\"";
    let bypassed = says(json!(["False", "UnapprovedAnnotation", unapproved])).await;
    let patch = json!({ "metadata": { "annotations": { ANNOTATION: "https://example.com/1" } } });
    let patched = cx.send(Request::merge_patch(path.clone(), &patch)).await;
    let approved = "approved in https://example.com/1";
    let approved = says(json!(["True", "ApprovedAnnotation", approved])).await;
    // It is in no group of ours, so nobody else takes it away.
    cx.send(Request::delete(path)).await?;
    bypassed?;
    expect(&patched?, 200)?;
    approved?;
    Ok(())
}

async fn a_schema_may_restrict_names(cx: Context) -> Result<()> {
    let schema = |metadata: Value| {
        json!({
            "type": "object",
            "properties": { "metadata": { "type": "object", "properties": metadata } },
        })
    };
    let name = json!({ "type": "string", "maxLength": 3, "pattern": "^a" });
    let too_much = schema(json!({ "name": name, "labels": { "type": "object" } }));
    let why = "spec.validation.openAPIV3Schema.properties[metadata]: Forbidden: must not specify \
               anything other than name and generateName, but metadata is implicitly specified";
    same("labels", &json!(wrong(&cx, &cx.widgets(too_much)).await?), json!(why))?;

    cx.define(&cx.widgets(schema(json!({ "name": name })))).await?;
    cx.create(&cx.widget_path(), &cx.widget("abc", Value::Null)).await?;
    for (name, why) in [
        ("abcd", "Too long: may not be more than 3 bytes"),
        ("bcd", "Invalid value: \"bcd\": metadata.name in body should match '^a'"),
    ] {
        let draft = cx.widget(name, Value::Null);
        let answer = cx.send(Request::post(cx.widget_path(), &draft)).await?;
        let message = format!("Widget.{} \"{name}\" is invalid: metadata.name: {why}", cx.group());
        refused(&answer, 422, "Invalid", &message)?;
    }
    Ok(())
}
