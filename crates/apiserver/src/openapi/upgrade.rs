//! OpenAPI v3 of a server that has only v2. Some is lost on the way, as it is upstream.

use serde_json::{Map, Value, json};

use super::model::REFERENCE;

/// A document of v2 as one of v3.
pub(super) fn upgrade(swagger: &Value) -> Value {
    let produces = &swagger["produces"];
    let mut document = Map::new();
    document.insert("openapi".to_owned(), "3.0.0".into());
    copy(swagger, &mut document, &["info"]);
    if let Some(paths) = swagger["paths"].as_object() {
        let paths = paths.iter().map(|(path, item)| (path.clone(), path_item(item)));
        document.insert("paths".to_owned(), Value::Object(paths.collect()));
    }
    let mut components = Map::new();
    let mut add = |name: &str, part: &str, upgrade: &dyn Fn(&Value) -> Value| {
        let parts = swagger[part].as_object().filter(|parts| !parts.is_empty());
        if let Some(parts) = parts {
            let parts = parts.iter().map(|(name, part)| (name.clone(), upgrade(part)));
            components.insert(name.to_owned(), Value::Object(parts.collect()));
        }
    };
    add("responses", "responses", &|part| response(part, produces));
    add("schemas", "definitions", &schema);
    add("securitySchemes", "securityDefinitions", &security_scheme);
    document.insert("components".to_owned(), components.into());
    copy(swagger, &mut document, &["externalDocs"]);
    document.into()
}

/// Takes over fields that are the same in both, and the extensions.
fn copy(from: &Value, to: &mut Map<String, Value>, fields: &[&str]) {
    for (name, value) in from.as_object().into_iter().flatten() {
        if fields.contains(&name.as_str()) || name.starts_with("x-") {
            to.insert(name.clone(), value.clone());
        }
    }
}

fn path_item(item: &Value) -> Value {
    let mut upgraded = Map::new();
    copy(item, &mut upgraded, &["$ref"]);
    for method in ["get", "put", "post", "delete", "options", "head", "patch"] {
        if let Some(found) = item.get(method) {
            upgraded.insert(method.to_owned(), operation(found));
        }
    }
    let parameters = item["parameters"].as_array().into_iter().flatten().map(parameter);
    add_list(&mut upgraded, "parameters", parameters.collect());
    upgraded.into()
}

fn add_list(fields: &mut Map<String, Value>, name: &str, list: Vec<Value>) {
    if !list.is_empty() {
        fields.insert(name.to_owned(), list.into());
    }
}

fn operation(operation: &Value) -> Value {
    let mut upgraded = Map::new();
    let same = ["tags", "summary", "description", "externalDocs", "operationId", "deprecated"];
    copy(operation, &mut upgraded, &same);
    let mut parameters = Vec::new();
    for found in operation["parameters"].as_array().into_iter().flatten() {
        // What is sent is no parameter any more.
        match found.get("schema").filter(|_| found["name"] == "body") {
            Some(sent) => {
                let mut body = Map::new();
                if let Some(content) = content(sent, &operation["consumes"]) {
                    body.insert("content".to_owned(), content);
                }
                upgraded.insert("requestBody".to_owned(), body.into());
            }
            None => parameters.push(parameter(found)),
        }
    }
    add_list(&mut upgraded, "parameters", parameters);
    let responses = operation["responses"].as_object().into_iter().flatten();
    let responses = responses.map(|(code, found)| {
        let upgraded = match code.starts_with("x-") {
            true => found.clone(),
            false => response(found, &operation["produces"]),
        };
        (code.clone(), upgraded)
    });
    upgraded.insert("responses".to_owned(), Value::Object(responses.collect()));
    upgraded.into()
}

/// The same schema for each media type; none without media types.
fn content(of: &Value, media_types: &Value) -> Option<Value> {
    let media_types = media_types.as_array()?.iter().filter_map(Value::as_str);
    let content: Map<String, Value> = media_types
        .map(|media_type| (media_type.to_owned(), json!({ "schema": schema(of) })))
        .collect();
    (!content.is_empty()).then(|| content.into())
}

fn response(response: &Value, produces: &Value) -> Value {
    let mut upgraded = Map::new();
    copy(response, &mut upgraded, &["description"]);
    if let Some(target) = response["$ref"].as_str() {
        let target = target.replacen("#/responses/", "#/components/responses/", 1);
        upgraded.insert("$ref".to_owned(), target.into());
    }
    if let Some(content) = response.get("schema").and_then(|of| content(of, produces)) {
        upgraded.insert("content".to_owned(), content);
    }
    upgraded.into()
}

fn parameter(parameter: &Value) -> Value {
    let mut upgraded = Map::new();
    copy(parameter, &mut upgraded, &["name", "in", "description", "required", "allowEmptyValue"]);
    if let Some(target) = parameter["$ref"].as_str() {
        let target = target.replacen("#/parameters/", "#/components/parameters/", 1);
        upgraded.insert("$ref".to_owned(), target.into());
    }
    let schema = match parameter.get("schema") {
        Some(found) => schema(found),
        None => {
            let mut plain = Map::new();
            plain.insert("type".to_owned(), parameter["type"].as_str().unwrap_or_default().into());
            for field in ["format", "uniqueItems"] {
                if let Some(value) = parameter.get(field) {
                    plain.insert(field.to_owned(), value.clone());
                }
            }
            plain.into()
        }
    };
    upgraded.insert("schema".to_owned(), schema);
    upgraded.into()
}

/// References lead elsewhere, and nothing stands beside them.
fn schema(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut upgraded = Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            ("$ref", Value::String(target)) => {
                let model = target.split_once("#/definitions/").map_or(target.as_str(), |(_, m)| m);
                format!("{REFERENCE}{model}").into()
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.iter();
                properties.map(|(name, part)| (name.clone(), self::schema(part))).collect()
            }
            ("items", Value::Array(items)) => items.iter().map(self::schema).collect(),
            ("items" | "additionalProperties" | "additionalItems", part) => self::schema(part),
            (_, other) => other.clone(),
        };
        upgraded.insert(name.clone(), value);
    }
    if upgraded.len() > 1
        && let Some(target) = upgraded.shift_remove("$ref")
    {
        upgraded.insert("allOf".to_owned(), json!([{ "$ref": target }]));
    }
    upgraded.into()
}

fn security_scheme(scheme: &Value) -> Value {
    let mut upgraded = Map::new();
    copy(scheme, &mut upgraded, &["type", "description", "name", "in"]);
    if let Some(flow) = scheme["flow"].as_str().filter(|flow| !flow.is_empty()) {
        let mut details = Map::new();
        copy(scheme, &mut details, &["authorizationUrl", "tokenUrl", "scopes"]);
        upgraded.insert("flows".to_owned(), json!({ flow: details }));
    }
    upgraded.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_and_given_has_content() {
        let swagger = json!({
            "swagger": "2.0",
            "info": { "title": "things", "version": "1" },
            "paths": { "/things/": {
                "parameters": [{ "name": "pretty", "in": "query", "type": "string" }],
                "post": {
                    "operationId": "createThing",
                    "consumes": ["application/json", "application/yaml"],
                    "produces": ["application/json"],
                    "parameters": [
                        { "name": "body", "in": "body", "required": true,
                          "schema": { "$ref": "#/definitions/Thing" } },
                        { "name": "dryRun", "in": "query", "type": "string", "uniqueItems": true },
                    ],
                    "responses": {
                        "200": { "description": "OK", "schema": { "$ref": "#/definitions/Thing" } },
                        "401": { "description": "Unauthorized" },
                    },
                    "x-kubernetes-action": "post",
                },
            } },
            "definitions": { "Thing": { "type": "object", "properties": {
                "part": { "description": "A part.", "$ref": "#/definitions/Part" },
                "parts": { "type": "array", "items": { "$ref": "#/definitions/Part" } },
            } } },
            "securityDefinitions": { "Token": { "type": "apiKey", "in": "header" } },
        });
        let thing = json!({ "schema": { "$ref": "#/components/schemas/Thing" } });
        let part = json!({ "$ref": "#/components/schemas/Part" });
        let expected = json!({
            "openapi": "3.0.0",
            "info": { "title": "things", "version": "1" },
            "paths": { "/things/": {
                "parameters": [{ "name": "pretty", "in": "query", "schema": { "type": "string" } }],
                "post": {
                    "operationId": "createThing",
                    "parameters": [{
                        "name": "dryRun", "in": "query",
                        "schema": { "type": "string", "uniqueItems": true },
                    }],
                    "requestBody": { "content": {
                        "application/json": thing, "application/yaml": thing,
                    } },
                    "responses": {
                        "200": { "description": "OK", "content": { "application/json": thing } },
                        "401": { "description": "Unauthorized" },
                    },
                    "x-kubernetes-action": "post",
                },
            } },
            "components": {
                "schemas": { "Thing": { "type": "object", "properties": {
                    "part": { "description": "A part.", "allOf": [part] },
                    "parts": { "type": "array", "items": part },
                } } },
                "securitySchemes": { "Token": { "type": "apiKey", "in": "header" } },
            },
        });
        assert_eq!(upgrade(&swagger), expected);
    }
}
