//! What types and fields are for, in upstream's words.
//!
//! The table of built-in types has facts only; the words come from k8s-openapi, which carries
//! upstream's own descriptions in its schemas. They are gathered on first use and kept. Lists and
//! the options of subresources are not there; what can be said of them is said here.

use std::collections::HashMap;
use std::sync::LazyLock;

use k8s_openapi::schemars::SchemaGenerator;
use k8s_openapi::schemars::generate::SchemaSettings;
use serde_json::Value;

/// The description of a field. Types are named as in the table of built-in types, without
/// `k8s.io/api/` or `k8s.io/apimachinery/pkg/apis/`: `core/v1.PodSpec`, `meta/v1.ObjectMeta`.
pub fn describe(ty: &str, field: &str) -> Option<String> {
    let package = if ty.starts_with("meta/") { META } else { "io.k8s.api." };
    let text = of_field(&format!("{package}{}", ty.replace('/', ".")), field)?;
    Some(text.to_owned())
}

/// The description of a type, by its name in OpenAPI.
pub(super) fn of_type(model: &str) -> Option<&'static str> {
    DESCRIPTIONS.get(model)?.text.as_deref()
}

/// The description of a field of a type, by the type's name in OpenAPI.
pub(super) fn of_field(model: &str, field: &str) -> Option<&'static str> {
    let own = DESCRIPTIONS.get(model).and_then(|descriptions| descriptions.fields.get(field));
    let text = match (own, field) {
        (Some(text), _) => text,
        // Every object has these.
        (None, "apiVersion" | "kind") => {
            DESCRIPTIONS.get("io.k8s.api.core.v1.Pod")?.fields.get(field)?
        }
        (None, "metadata") if model.ends_with("List") => {
            DESCRIPTIONS.get(STATUS)?.fields.get(field)?
        }
        (None, _) => return None,
    };
    Some(text)
}

const META: &str = "io.k8s.apimachinery.pkg.apis.";

/// Its metadata is that of a list.
const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";

const WATCH_EVENT: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent";

struct Descriptions {
    text: Option<Box<str>>,
    fields: HashMap<Box<str>, Box<str>>,
}

static DESCRIPTIONS: LazyLock<HashMap<String, Descriptions>> = LazyLock::new(|| {
    let mut generator = SchemaSettings::draft07().into_generator();
    visit(&mut generator);
    let definitions = generator.take_definitions(false);
    let mut descriptions: HashMap<String, Descriptions> =
        definitions.into_iter().map(|(name, schema)| (name, Descriptions::of(&schema))).collect();
    // There, an event is an enum of what it may hold, and one text stands for type and field.
    if let Some(event) = descriptions.get_mut(WATCH_EVENT)
        && let Some((text, object)) = event.text.as_deref().and_then(|text| text.split_once("\n\n"))
    {
        let (text, object) = (text.into(), object.trim_end().into());
        event.text = Some(text);
        event.fields.insert("object".into(), object);
    }
    descriptions
});

impl Descriptions {
    fn of(schema: &Value) -> Self {
        let text = |schema: &Value| schema["description"].as_str().map(Box::from);
        let properties = schema["properties"].as_object().into_iter().flatten();
        Descriptions {
            text: text(schema),
            fields: properties
                .filter_map(|(name, schema)| Some((name.as_str().into(), text(schema)?)))
                .collect(),
        }
    }
}

/// Visits every type from which others can be reached.
fn visit(generator: &mut SchemaGenerator) {
    use k8s_openapi::api;
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
    use k8s_openapi::apimachinery::pkg::apis::meta;
    use k8s_openapi::kube_aggregator::pkg::apis::apiregistration;

    macro_rules! visit {
        ($($package:path { $($kind:ident)* })*) => {
            $({
                use $package as package;
                $(generator.subschema_for::<package::$kind>();)*
            })*
        };
    }
    visit! {
        api::admissionregistration::v1 {
            MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration
            ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding
            ValidatingWebhookConfiguration
        }
        api::apps::v1 { ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet }
        api::authentication::v1 { SelfSubjectReview TokenRequest TokenReview }
        api::authorization::v1 {
            LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview
            SubjectAccessReview
        }
        api::autoscaling::v1 { HorizontalPodAutoscaler Scale }
        api::autoscaling::v2 { HorizontalPodAutoscaler }
        api::batch::v1 { CronJob Job }
        api::certificates::v1 { CertificateSigningRequest }
        api::coordination::v1 { Lease }
        api::core::v1 {
            Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node
            PersistentVolume PersistentVolumeClaim Pod PodTemplate ReplicationController
            ResourceQuota Secret Service ServiceAccount
        }
        api::discovery::v1 { EndpointSlice }
        api::events::v1 { Event }
        api::flowcontrol::v1 { FlowSchema PriorityLevelConfiguration }
        api::networking::v1 { IPAddress Ingress IngressClass NetworkPolicy ServiceCIDR }
        api::node::v1 { RuntimeClass }
        api::policy::v1 { Eviction PodDisruptionBudget }
        api::rbac::v1 { ClusterRole ClusterRoleBinding Role RoleBinding }
        api::resource::v1 { DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice }
        api::scheduling::v1 { PriorityClass }
        api::storage::v1 {
            CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment
            VolumeAttributesClass
        }
        apiextensions::v1 { CustomResourceDefinition }
        apiregistration::v1 { APIService }
        meta::v1 {
            APIGroup APIGroupList APIResourceList APIVersions DeleteOptions ListMeta MicroTime
            Patch Status
        }
    }
    generator.subschema_for::<meta::v1::WatchEvent<api::core::v1::Pod>>();
}
