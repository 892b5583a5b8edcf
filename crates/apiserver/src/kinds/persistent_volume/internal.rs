//! The sources of a volume as upstream's own type has them, which is what the refusal of a change
//! shows. Of the sources that are no longer supported only those fields are there that are set.

use k8s_openapi::api::core::v1::PersistentVolumeSpec;
use serde_json::{Map, Value, json};

use super::super::{check, edit};

/// A member of a Go struct.
struct Member {
    name: &'static str,
    field: &'static str,
    /// What Go has where nothing was said.
    zero: Zero,
}

#[derive(Clone, Copy)]
enum Zero {
    Text,
    False,
    Null,
}

/// All sources in Go's order, by their names in Go and in JSON.
const SOURCES: [(&str, &str); 22] = [
    ("GCEPersistentDisk", "gcePersistentDisk"),
    ("AWSElasticBlockStore", "awsElasticBlockStore"),
    ("HostPath", "hostPath"),
    ("Glusterfs", "glusterfs"),
    ("NFS", "nfs"),
    ("RBD", "rbd"),
    ("Quobyte", "quobyte"),
    ("ISCSI", "iscsi"),
    ("FlexVolume", "flexVolume"),
    ("Cinder", "cinder"),
    ("CephFS", "cephfs"),
    ("FC", "fc"),
    ("Flocker", "flocker"),
    ("AzureFile", "azureFile"),
    ("VsphereVolume", "vsphereVolume"),
    ("AzureDisk", "azureDisk"),
    ("PhotonPersistentDisk", "photonPersistentDisk"),
    ("PortworxVolume", "portworxVolume"),
    ("ScaleIO", "scaleIO"),
    ("Local", "local"),
    ("StorageOS", "storageos"),
    ("CSI", "csi"),
];

const HOST_PATH: [Member; 2] =
    [member("Path", "path", Zero::Text), member("Type", "type", Zero::Null)];
const LOCAL: [Member; 2] =
    [member("Path", "path", Zero::Text), member("FSType", "fsType", Zero::Null)];
const NFS: [Member; 3] = [
    member("Server", "server", Zero::Text),
    member("Path", "path", Zero::Text),
    member("ReadOnly", "readOnly", Zero::False),
];
const CSI: [Member; 10] = [
    member("Driver", "driver", Zero::Text),
    member("VolumeHandle", "volumeHandle", Zero::Text),
    member("ReadOnly", "readOnly", Zero::False),
    member("FSType", "fsType", Zero::Text),
    member("VolumeAttributes", "volumeAttributes", Zero::Null),
    member("ControllerPublishSecretRef", "controllerPublishSecretRef", Zero::Null),
    member("NodeStageSecretRef", "nodeStageSecretRef", Zero::Null),
    member("NodePublishSecretRef", "nodePublishSecretRef", Zero::Null),
    member("ControllerExpandSecretRef", "controllerExpandSecretRef", Zero::Null),
    member("NodeExpandSecretRef", "nodeExpandSecretRef", Zero::Null),
];

const fn member(name: &'static str, field: &'static str, zero: Zero) -> Member {
    Member { name, field, zero }
}

pub(super) fn sources(spec: &PersistentVolumeSpec) -> Value {
    let tree = check::shown(spec);
    let mut shown = Map::new();
    for (name, field) in SOURCES {
        let given = tree.get(field).and_then(Value::as_object);
        let value = given.map_or(Value::Null, |given| source(field, given).into());
        shown.insert(name.to_owned(), value);
    }
    shown.into()
}

fn source(field: &str, given: &Map<String, Value>) -> Map<String, Value> {
    let members: &[Member] = match field {
        "hostPath" => &HOST_PATH,
        "local" => &LOCAL,
        "nfs" => &NFS,
        "csi" => &CSI,
        _ => {
            return given.iter().map(|(name, value)| (capitalised(name), value.clone())).collect();
        }
    };
    let member = |member: &Member| {
        let value = match (given.get(member.field), member.zero) {
            (Some(value), _) if member.name.ends_with("SecretRef") => json!({
                "Name": edit::text(value, "/name"),
                "Namespace": edit::text(value, "/namespace"),
            }),
            (Some(value), _) => value.clone(),
            (None, Zero::Text) => "".into(),
            (None, Zero::False) => false.into(),
            (None, Zero::Null) => Value::Null,
        };
        (member.name.to_owned(), value)
    };
    members.iter().map(member).collect()
}

fn capitalised(name: &str) -> String {
    let mut characters = name.chars();
    let first = characters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(characters).collect()
}
