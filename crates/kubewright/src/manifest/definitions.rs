//! The definitions of an operator's kinds, and who converts their objects.

use serde_json::json;

use super::{Manifest, Package, Part, certificates};

pub(super) fn definitions(package: &Package) -> Vec<Manifest> {
    let mut definitions: Vec<_> = package.definitions.iter().collect();
    definitions.sort_by_key(|definition| definition.metadata.name.clone());
    definitions
        .into_iter()
        .map(|definition| {
            let mut object = json!(definition);
            // What the server writes is none of a manifest's business.
            if let Some(object) = object.as_object_mut() {
                object.remove("status");
            }
            let name = definition.metadata.name.as_ref();
            if name.is_some_and(|name| package.converted.contains(name)) {
                object["spec"]["conversion"] = json!({
                    "strategy": "Webhook",
                    "webhook": {
                        "clientConfig": {
                            "service": {
                                "name": package.names().webhook_service(),
                                "namespace": package.namespace,
                                "path": "/convert",
                            },
                            // What a run on a laptop has left goes: there can be only one of them.
                            "url": null,
                        },
                        "conversionReviewVersions": ["v1"],
                    },
                });
                certificates::annotate(package, &mut object);
            }
            Manifest::new(Part::Crds, object)
        })
        .collect()
}
