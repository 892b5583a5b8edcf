//! The protobuf forms of documents, which client-go's older half and its descendants ask for.
//!
//! The messages are those of gnostic. They follow the JSON closely: a field per keyword, pairs of
//! name and value for maps, a wrapper wherever JSON allows two things. So they are written down as
//! data, as far as our documents go, and one walk over a document and its shape gives the bytes.

use kubewright_apimachinery::yaml;
use serde_json::Value;

/// The bytes of an OpenAPI v2 document.
pub(super) fn v2(document: &Value) -> Vec<u8> {
    V2_DOCUMENT.encode(document)
}

/// The bytes of an OpenAPI v3 document.
pub(super) fn v3(document: &Value) -> Vec<u8> {
    V3_DOCUMENT.encode(document)
}

/// What a value becomes.
enum Shape {
    Text,
    Flag,
    Number,
    Integer,
    /// Anything, as YAML.
    Any,
    /// Repeated, once per item.
    List(&'static Shape),
    Message(&'static Message),
    /// A message that repeats this field for each pair of name and value.
    Map(u32, &'static Shape),
    /// A message with only this field.
    In(u32, &'static Shape),
    /// One message for the thing itself, or another for a reference to it.
    OrReference(&'static Shape),
    /// A schema, or yes or no.
    OrFlag(&'static Shape),
    /// A scalar; other values are lost, in upstream's form too.
    Scalar,
    /// A parameter of v2, which has a message for each place.
    Parameter,
}

/// Keywords by their numbers, ascending, and the number of what begins with `x-`.
struct Message {
    fields: &'static [(&'static str, u32, Shape)],
    extensions: u32,
}

impl Message {
    fn encode(&self, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        let Value::Object(object) = value else { return out };
        for (name, number, shape) in self.fields {
            if let Some(value) = object.get(*name) {
                shape.write(*number, value, &mut out);
            }
        }
        for (name, value) in object.iter().filter(|(name, _)| name.starts_with("x-")) {
            named(self.extensions, name, value, &Shape::Any, &mut out);
        }
        out
    }
}

impl Shape {
    /// Writes a field, unless it is what a reader takes for granted.
    fn write(&self, number: u32, value: &Value, out: &mut Vec<u8>) {
        match self {
            Shape::Text => match value.as_str() {
                None | Some("") => {}
                Some(text) => bytes(number, text.as_bytes(), out),
            },
            Shape::Flag => {
                if value == &Value::Bool(true) {
                    flag(number, true, out);
                }
            }
            Shape::Number => match value.as_f64() {
                None | Some(0.0) => {}
                Some(value) => double(number, value, out),
            },
            Shape::Integer => match value.as_i64() {
                None | Some(0) => {}
                Some(value) => {
                    tag(number, 0, out);
                    varint(value.cast_unsigned(), out);
                }
            },
            Shape::List(of) => match value {
                Value::Array(items) => {
                    items.iter().for_each(|item| of.write_item(number, item, out));
                }
                // A single type where a list of them could stand.
                item => of.write_item(number, item, out),
            },
            shape => bytes(number, &shape.message(value), out),
        }
    }

    /// Writes one of many, which counts even when it is empty.
    fn write_item(&self, number: u32, value: &Value, out: &mut Vec<u8>) {
        match (self, value) {
            (Shape::Text, Value::String(text)) => bytes(number, text.as_bytes(), out),
            _ => self.write(number, value, out),
        }
    }

    fn message(&self, value: &Value) -> Vec<u8> {
        let mut out = Vec::new();
        match self {
            Shape::Any => bytes(2, yaml::to_string(value).as_bytes(), &mut out),
            Shape::Message(message) => return message.encode(value),
            Shape::Map(number, of) => {
                for (name, value) in value.as_object().into_iter().flatten() {
                    named(*number, name, value, of, &mut out);
                }
            }
            Shape::In(number, of) => of.write(*number, value, &mut out),
            Shape::OrReference(of) => match value.get("$ref") {
                Some(_) => Shape::Message(&REFERENCE).write(2, value, &mut out),
                None => of.write(1, value, &mut out),
            },
            Shape::OrFlag(of) => match value {
                Value::Bool(value) => flag(2, *value, &mut out),
                schema => of.write(1, schema, &mut out),
            },
            Shape::Scalar => match value {
                Value::Number(value) => double(1, value.as_f64().unwrap_or_default(), &mut out),
                Value::Bool(value) => flag(2, *value, &mut out),
                Value::String(text) => bytes(3, text.as_bytes(), &mut out),
                _ => {}
            },
            Shape::Parameter => {
                let place = value.get("in").and_then(Value::as_str);
                match place {
                    Some("body") => Shape::Message(&BODY_PARAMETER).write(1, value, &mut out),
                    Some("path") => NON_BODY_PATH.write(2, value, &mut out),
                    _ => NON_BODY_QUERY.write(2, value, &mut out),
                }
            }
            Shape::Text | Shape::Flag | Shape::Number | Shape::Integer | Shape::List(_) => {}
        }
        out
    }
}

/// A pair of name and value.
fn named(number: u32, name: &str, value: &Value, shape: &Shape, out: &mut Vec<u8>) {
    let mut pair = Vec::new();
    bytes(1, name.as_bytes(), &mut pair);
    shape.write(2, value, &mut pair);
    bytes(number, &pair, out);
}

fn tag(number: u32, wire: u32, out: &mut Vec<u8>) {
    varint(u64::from(number << 3 | wire), out);
}

fn varint(mut value: u64, out: &mut Vec<u8>) {
    while value > 0x7f {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn bytes(number: u32, content: &[u8], out: &mut Vec<u8>) {
    tag(number, 2, out);
    varint(content.len() as u64, out);
    out.extend_from_slice(content);
}

fn flag(number: u32, value: bool, out: &mut Vec<u8>) {
    tag(number, 0, out);
    out.push(value.into());
}

fn double(number: u32, value: f64, out: &mut Vec<u8>) {
    tag(number, 1, out);
    out.extend_from_slice(&value.to_le_bytes());
}

use Shape::{Any, Flag, In, Integer, List, Number, OrFlag, OrReference, Parameter, Scalar, Text};

const TEXTS: Shape = List(&Text);

/// A schema of v3. Not a constant, since schemas hold schemas.
macro_rules! schema {
    () => {
        OrReference(&Shape::Message(&V3_SCHEMA))
    };
}

static REFERENCE: Message = Message { fields: &[("$ref", 1, Text)], extensions: 0 };

static EXTERNAL_DOCS: Message =
    Message { fields: &[("description", 1, Text), ("url", 2, Text)], extensions: 3 };

static V3_DOCUMENT: Message = Message {
    fields: &[
        ("openapi", 1, Text),
        ("info", 2, Shape::Message(&V3_INFO)),
        ("paths", 4, Shape::Map(1, &Shape::Message(&V3_PATH_ITEM))),
        ("components", 5, Shape::Message(&COMPONENTS)),
    ],
    extensions: 9,
};

static V3_INFO: Message =
    Message { fields: &[("title", 1, Text), ("version", 6, Text)], extensions: 7 };

static V3_PATH_ITEM: Message = Message {
    fields: &[
        ("get", 4, Shape::Message(&V3_OPERATION)),
        ("put", 5, Shape::Message(&V3_OPERATION)),
        ("post", 6, Shape::Message(&V3_OPERATION)),
        ("delete", 7, Shape::Message(&V3_OPERATION)),
        ("options", 8, Shape::Message(&V3_OPERATION)),
        ("head", 9, Shape::Message(&V3_OPERATION)),
        ("patch", 10, Shape::Message(&V3_OPERATION)),
        ("parameters", 13, List(&OrReference(&Shape::Message(&V3_PARAMETER)))),
    ],
    extensions: 14,
};

static V3_OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("parameters", 6, List(&OrReference(&Shape::Message(&V3_PARAMETER)))),
        ("requestBody", 7, OrReference(&Shape::Message(&REQUEST_BODY))),
        ("responses", 8, Shape::Map(2, &OrReference(&Shape::Message(&V3_RESPONSE)))),
    ],
    extensions: 13,
};

static V3_PARAMETER: Message = Message {
    fields: &[
        ("name", 1, Text),
        ("in", 2, Text),
        ("description", 3, Text),
        ("required", 4, Flag),
        ("schema", 10, schema!()),
    ],
    extensions: 14,
};

static REQUEST_BODY: Message =
    Message { fields: &[("content", 2, MEDIA_TYPES), ("required", 3, Flag)], extensions: 4 };

static V3_RESPONSE: Message =
    Message { fields: &[("description", 1, Text), ("content", 3, MEDIA_TYPES)], extensions: 5 };

const MEDIA_TYPES: Shape = Shape::Map(1, &Shape::Message(&MEDIA_TYPE));

static MEDIA_TYPE: Message = Message { fields: &[("schema", 1, schema!())], extensions: 5 };

static COMPONENTS: Message = Message {
    fields: &[
        ("schemas", 1, Shape::Map(1, &schema!())),
        ("securitySchemes", 7, Shape::Map(1, &OrReference(&Shape::Message(&SECURITY_SCHEME)))),
    ],
    extensions: 10,
};

static SECURITY_SCHEME: Message = Message {
    fields: &[("type", 1, Text), ("description", 2, Text), ("name", 3, Text), ("in", 4, Text)],
    extensions: 9,
};

static V3_SCHEMA: Message = Message {
    fields: &[
        ("nullable", 1, Flag),
        ("externalDocs", 6, Shape::Message(&EXTERNAL_DOCS)),
        ("example", 7, Any),
        ("title", 9, Text),
        ("multipleOf", 10, Number),
        ("maximum", 11, Number),
        ("exclusiveMaximum", 12, Flag),
        ("minimum", 13, Number),
        ("exclusiveMinimum", 14, Flag),
        ("maxLength", 15, Integer),
        ("minLength", 16, Integer),
        ("pattern", 17, Text),
        ("maxItems", 18, Integer),
        ("minItems", 19, Integer),
        ("uniqueItems", 20, Flag),
        ("maxProperties", 21, Integer),
        ("minProperties", 22, Integer),
        ("required", 23, TEXTS),
        ("enum", 24, List(&Any)),
        ("type", 25, Text),
        ("allOf", 26, List(&schema!())),
        ("oneOf", 27, List(&schema!())),
        ("anyOf", 28, List(&schema!())),
        ("not", 29, Shape::Message(&V3_SCHEMA)),
        ("items", 30, In(1, &schema!())),
        ("properties", 31, Shape::Map(1, &schema!())),
        ("additionalProperties", 32, OrFlag(&schema!())),
        ("default", 33, Scalar),
        ("description", 34, Text),
        ("format", 35, Text),
    ],
    extensions: 36,
};

static V2_DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Text),
        ("info", 2, Shape::Message(&V2_INFO)),
        ("paths", 8, Shape::Map(2, &Shape::Message(&V2_PATH_ITEM))),
        ("definitions", 9, Shape::Map(1, &Shape::Message(&V2_SCHEMA))),
        ("parameters", 10, Shape::Map(1, &Parameter)),
        ("security", 12, List(&Shape::Map(1, &In(1, &TEXTS)))),
        ("securityDefinitions", 13, Shape::Map(1, &In(2, &Shape::Message(&API_KEY)))),
    ],
    extensions: 16,
};

static V2_INFO: Message =
    Message { fields: &[("title", 1, Text), ("version", 2, Text)], extensions: 7 };

static V2_PATH_ITEM: Message = Message {
    fields: &[
        ("get", 2, Shape::Message(&V2_OPERATION)),
        ("put", 3, Shape::Message(&V2_OPERATION)),
        ("post", 4, Shape::Message(&V2_OPERATION)),
        ("delete", 5, Shape::Message(&V2_OPERATION)),
        ("options", 6, Shape::Message(&V2_OPERATION)),
        ("head", 7, Shape::Message(&V2_OPERATION)),
        ("patch", 8, Shape::Message(&V2_OPERATION)),
        ("parameters", 9, List(&OrReference(&Parameter))),
    ],
    extensions: 10,
};

static V2_OPERATION: Message = Message {
    fields: &[
        ("tags", 1, TEXTS),
        ("description", 3, Text),
        ("operationId", 5, Text),
        ("produces", 6, TEXTS),
        ("consumes", 7, TEXTS),
        ("parameters", 8, List(&OrReference(&Parameter))),
        ("responses", 9, Shape::Map(1, &OrReference(&Shape::Message(&V2_RESPONSE)))),
        ("schemes", 10, TEXTS),
    ],
    extensions: 13,
};

static BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", 1, Text),
        ("name", 2, Text),
        ("in", 3, Text),
        ("required", 4, Flag),
        ("schema", 5, Shape::Message(&V2_SCHEMA)),
    ],
    extensions: 6,
};

const NON_BODY_QUERY: Shape = In(3, &Shape::Message(&QUERY_PARAMETER));
const NON_BODY_PATH: Shape = In(4, &Shape::Message(&PATH_PARAMETER));

static QUERY_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 6, Text),
        ("uniqueItems", 20, Flag),
    ],
    extensions: 23,
};

static PATH_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Flag),
        ("in", 2, Text),
        ("description", 3, Text),
        ("name", 4, Text),
        ("type", 5, Text),
        ("uniqueItems", 19, Flag),
    ],
    extensions: 22,
};

static V2_RESPONSE: Message = Message {
    fields: &[("description", 1, Text), ("schema", 2, In(1, &Shape::Message(&V2_SCHEMA)))],
    extensions: 5,
};

static API_KEY: Message = Message {
    fields: &[("type", 1, Text), ("name", 2, Text), ("in", 3, Text), ("description", 4, Text)],
    extensions: 5,
};

static V2_SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Text),
        ("format", 2, Text),
        ("title", 3, Text),
        ("description", 4, Text),
        ("default", 5, Any),
        ("multipleOf", 6, Number),
        ("maximum", 7, Number),
        ("exclusiveMaximum", 8, Flag),
        ("minimum", 9, Number),
        ("exclusiveMinimum", 10, Flag),
        ("maxLength", 11, Integer),
        ("minLength", 12, Integer),
        ("pattern", 13, Text),
        ("maxItems", 14, Integer),
        ("minItems", 15, Integer),
        ("uniqueItems", 16, Flag),
        ("maxProperties", 17, Integer),
        ("minProperties", 18, Integer),
        ("required", 19, TEXTS),
        ("enum", 20, List(&Any)),
        ("additionalProperties", 21, OrFlag(&Shape::Message(&V2_SCHEMA))),
        ("type", 22, In(1, &TEXTS)),
        ("items", 23, In(1, &Shape::Message(&V2_SCHEMA))),
        ("properties", 25, Shape::Map(1, &Shape::Message(&V2_SCHEMA))),
        ("externalDocs", 29, Shape::Message(&EXTERNAL_DOCS)),
        ("example", 30, Any),
    ],
    extensions: 31,
};
