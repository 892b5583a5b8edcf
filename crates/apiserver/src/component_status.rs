//! ComponentStatuses: how the parts of the control plane are, found out when somebody asks.
//!
//! Nothing of this is stored. Upstream calls its companions over the network, and knows them also
//! when nobody answers; ours are in the same process, and whoever can ask shows that they are
//! there. The storage is asked, whatever it is, under the name that upstream's first one has.

use kubewright_apimachinery::gvk::GroupResource;
use kubewright_apimachinery::status::Status;
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::selection::Selection;
use crate::server::Inner;

const STORAGE: &str = "etcd-0";
const NAMES: [&str; 3] = ["controller-manager", STORAGE, "scheduler"];

/// Whether a resource is this one.
pub(crate) fn concerns(resource: &Resource) -> bool {
    resource.gvk.kind == "ComponentStatus" && resource.gvk.group.is_empty()
}

/// How one part is.
pub(crate) async fn get(server: &Inner, name: &str) -> Result<Value, Refusal> {
    if !NAMES.contains(&name) {
        // Upstream names the resource by its singular here.
        return Err(Box::new(Status::not_found(&GroupResource::new("", "componentstatus"), name)));
    }
    let Value::Object(item) = item(server, name).await else { unreachable!("items are objects") };
    let mut object = json!({"kind": "ComponentStatus", "apiVersion": "v1"});
    object.as_object_mut().expect("it was just made").extend(item);
    Ok(object)
}

/// How those parts are that are wanted. They have no labels.
pub(crate) async fn list(server: &Inner, selection: &Selection) -> Value {
    let mut items = Vec::new();
    for name in NAMES {
        if selection.wants(name) {
            items.push(item(server, name).await);
        }
    }
    json!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": items})
}

async fn item(server: &Inner, name: &str) -> Value {
    let state = match name {
        STORAGE => server.health.storage(&server.health_scene()).await,
        name if server.companions.contains(&name) => Ok(()),
        _ => Err("it does not run beside this server".to_owned()),
    };
    let condition = match state {
        Ok(()) => json!({"type": "Healthy", "status": "True", "message": "ok"}),
        Err(why) => json!({"type": "Healthy", "status": "False", "message": why}),
    };
    json!({"metadata": {"name": name}, "conditions": [condition]})
}
