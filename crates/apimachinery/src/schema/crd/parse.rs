//! From the JSON of a definition to its types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use super::{
    ClientConfig, Conversion, Definition, Names, PrinterColumn, Scale, Schema, SelectableField,
    Service, Spec, Status, Subresources, Version,
};
use crate::schema::ParseError;
use crate::schema::parse::{Fields, structural};

pub(super) fn definition(value: &Value) -> Result<Definition, ParseError> {
    let fields = Fields::of(value, "definition")?;
    let metadata = match fields.get("metadata") {
        None => Map::new(),
        Some(metadata) => Fields::of(metadata, "metadata")?.0.clone(),
    };
    Ok(Definition {
        metadata,
        spec: fields.object("spec")?.map(spec).transpose()?.unwrap_or_default(),
        status: fields.object("status")?.map(status).transpose()?.unwrap_or_default(),
    })
}

fn spec(fields: Fields<'_>) -> Result<Spec, ParseError> {
    Ok(Spec {
        group: fields.owned_text("group")?,
        names: fields.object("names")?.map(names).transpose()?.unwrap_or_default(),
        scope: fields.owned_text("scope")?,
        versions: match fields.get("versions") {
            None => None,
            Some(_) => Some(fields.objects("versions", version)?),
        },
        conversion: fields.object("conversion")?.map(conversion).transpose()?,
        preserve_unknown_fields: fields.flag("preserveUnknownFields")?,
    })
}

fn names(fields: Fields<'_>) -> Result<Names, ParseError> {
    Ok(Names {
        plural: fields.owned_text("plural")?,
        singular: fields.owned_text("singular")?,
        short_names: fields.texts("shortNames")?,
        kind: fields.owned_text("kind")?,
        list_kind: fields.owned_text("listKind")?,
        categories: fields.texts("categories")?,
    })
}

fn version(fields: Fields<'_>) -> Result<Version, ParseError> {
    Ok(Version {
        name: fields.owned_text("name")?,
        served: fields.flag("served")?,
        storage: fields.flag("storage")?,
        deprecated: fields.flag("deprecated")?,
        deprecation_warning: fields.text("deprecationWarning")?.map(str::to_owned),
        schema: fields.object("schema")?.map(schema).transpose()?,
        subresources: fields.object("subresources")?.map(subresources).transpose()?,
        printer_columns: fields.objects("additionalPrinterColumns", printer_column)?,
        selectable_fields: fields.objects("selectableFields", |fields| {
            Ok(SelectableField { json_path: fields.owned_text("jsonPath")? })
        })?,
    })
}

fn schema(fields: Fields<'_>) -> Result<Schema, ParseError> {
    Ok(Schema { open_api_v3_schema: fields.get("openAPIV3Schema").map(structural).transpose()? })
}

fn subresources(fields: Fields<'_>) -> Result<Subresources, ParseError> {
    let scale = |scale: Fields<'_>| {
        Ok(Scale {
            spec_replicas_path: scale.owned_text("specReplicasPath")?,
            status_replicas_path: scale.owned_text("statusReplicasPath")?,
            label_selector_path: scale.text("labelSelectorPath")?.map(str::to_owned),
        })
    };
    Ok(Subresources {
        status: fields.object("status")?.is_some(),
        scale: fields.object("scale")?.map(scale).transpose()?,
    })
}

fn printer_column(fields: Fields<'_>) -> Result<PrinterColumn, ParseError> {
    Ok(PrinterColumn {
        name: fields.owned_text("name")?,
        type_: fields.owned_text("type")?,
        format: fields.owned_text("format")?,
        description: fields.owned_text("description")?,
        priority: fields.integer("priority")?.unwrap_or(0),
        json_path: fields.owned_text("jsonPath")?,
    })
}

fn conversion(fields: Fields<'_>) -> Result<Conversion, ParseError> {
    let strategy = fields.owned_text("strategy")?;
    let Some(webhook) = fields.object("webhook")? else {
        return Ok(Conversion { strategy, ..Conversion::default() });
    };
    Ok(Conversion {
        strategy,
        client_config: webhook.object("clientConfig")?.map(client_config).transpose()?,
        review_versions: webhook.texts("conversionReviewVersions")?,
    })
}

fn client_config(fields: Fields<'_>) -> Result<ClientConfig, ParseError> {
    let service = |service: Fields<'_>| {
        Ok(Service {
            namespace: service.owned_text("namespace")?,
            name: service.owned_text("name")?,
            path: service.text("path")?.map(str::to_owned),
            port: service.integer("port")?.unwrap_or(0),
        })
    };
    let not_base64 = || ParseError { keyword: "caBundle".to_owned(), expected: "base64" };
    let ca_bundle = fields.text("caBundle")?.unwrap_or_default();
    Ok(ClientConfig {
        url: fields.text("url")?.map(str::to_owned),
        service: fields.object("service")?.map(service).transpose()?,
        ca_bundle: STANDARD.decode(ca_bundle).map_err(|_| not_base64())?,
    })
}

fn status(fields: Fields<'_>) -> Result<Status, ParseError> {
    let is_established = |condition: &Value| {
        condition.get("type").and_then(Value::as_str) == Some("Established")
            && condition.get("status").and_then(Value::as_str) == Some("True")
    };
    Ok(Status {
        established: fields.list("conditions")?.iter().any(is_established),
        accepted_names: fields.object("acceptedNames")?.map(names).transpose()?.unwrap_or_default(),
        stored_versions: fields.texts("storedVersions")?,
    })
}

impl<'v> Fields<'v> {
    fn object(self, keyword: &str) -> Result<Option<Fields<'v>>, ParseError> {
        self.get(keyword).map(|value| Fields::of(value, keyword)).transpose()
    }

    fn objects<T>(
        self,
        keyword: &str,
        read: impl Fn(Fields<'v>) -> Result<T, ParseError>,
    ) -> Result<Vec<T>, ParseError> {
        self.list(keyword)?.iter().map(|value| read(Fields::of(value, keyword)?)).collect()
    }
}
