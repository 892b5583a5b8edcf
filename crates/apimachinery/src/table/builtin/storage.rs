//! Volumes, claims, and who provides them.

use serde_json::{Value, json};

use super::printer_of;
use crate::table::Doc::Text;
use crate::table::fields::Fields;
use crate::table::{AGE, BuiltinPrinter, Column, NAME, boolean, integer, of, text};

// Storage capacities of CSI drivers are shown with their name and creation time only, although
// upstream has columns for them.
pub(super) const PRINTERS: &[BuiltinPrinter] = &[
    printer_of("", "PersistentVolume", VOLUME, volume),
    printer_of("", "PersistentVolumeClaim", CLAIM, claim),
    printer_of("storage.k8s.io", "StorageClass", STORAGE_CLASS, storage_class),
    printer_of("storage.k8s.io", "VolumeAttributesClass", ATTRIBUTES_CLASS, attributes_class),
    printer_of("storage.k8s.io", "VolumeAttachment", ATTACHMENT, attachment),
    printer_of("storage.k8s.io", "CSINode", CSI_NODE, csi_node),
    printer_of("storage.k8s.io", "CSIDriver", CSI_DRIVER, csi_driver),
];

const VOLUME: &[Column] = &[
    NAME,
    text("Capacity", of("core/v1.PersistentVolumeSpec", "capacity")),
    text("Access Modes", of("core/v1.PersistentVolumeSpec", "accessModes")),
    text("Reclaim Policy", of("core/v1.PersistentVolumeSpec", "persistentVolumeReclaimPolicy")),
    text("Status", of("core/v1.PersistentVolumeStatus", "phase")),
    text("Claim", of("core/v1.PersistentVolumeSpec", "claimRef")),
    text("StorageClass", Text("StorageClass of the pv")),
    text("VolumeAttributesClass", Text("VolumeAttributesClass of the pv")),
    text("Reason", of("core/v1.PersistentVolumeStatus", "reason")),
    AGE,
    text("VolumeMode", of("core/v1.PersistentVolumeSpec", "volumeMode")).wide(),
];

fn volume(object: Fields<'_>) -> Value {
    let claim = match object.has("spec.claimRef") {
        true => format!(
            "{}/{}",
            object.text("spec.claimRef.namespace"),
            object.text("spec.claimRef.name")
        ),
        false => String::new(),
    };
    json!([
        object.name(),
        object.scalar("spec.capacity.storage", "0"),
        access_modes(object, "spec.accessModes"),
        object.text("spec.persistentVolumeReclaimPolicy"),
        phase(object),
        claim,
        class(object),
        object.scalar("spec.volumeAttributesClassName", "<unset>"),
        object.text("status.reason"),
        object.age(),
        object.text_or("spec.volumeMode", "<unset>"),
    ])
}

const CLAIM: &[Column] = &[
    NAME,
    text("Status", of("core/v1.PersistentVolumeClaimStatus", "phase")),
    text("Volume", of("core/v1.PersistentVolumeClaimSpec", "volumeName")),
    text("Capacity", of("core/v1.PersistentVolumeClaimStatus", "capacity")),
    text("Access Modes", of("core/v1.PersistentVolumeClaimStatus", "accessModes")),
    text("StorageClass", Text("StorageClass of the pvc")),
    text("VolumeAttributesClass", Text("VolumeAttributesClass of the pvc")),
    AGE,
    text("VolumeMode", of("core/v1.PersistentVolumeClaimSpec", "volumeMode")).wide(),
];

fn claim(object: Fields<'_>) -> Value {
    let volume = object.text("spec.volumeName");
    let (capacity, modes) = match volume {
        "" => Default::default(),
        _ => (
            object.scalar("status.capacity.storage", "0"),
            access_modes(object, "status.accessModes"),
        ),
    };
    json!([
        object.name(),
        phase(object),
        volume,
        capacity,
        modes,
        class(object),
        object.scalar("spec.volumeAttributesClassName", "<unset>"),
        object.age(),
        object.text_or("spec.volumeMode", "<unset>"),
    ])
}

fn phase(object: Fields<'_>) -> &str {
    match object.has("metadata.deletionTimestamp") {
        true => "Terminating",
        false => object.text("status.phase"),
    }
}

fn class(object: Fields<'_>) -> &str {
    let annotations = object.map("metadata.annotations");
    match annotations.get("volume.beta.kubernetes.io/storage-class") {
        Some(class) => class,
        None => object.text("spec.storageClassName"),
    }
}

fn access_modes(object: Fields<'_>, path: &str) -> String {
    let modes = object.texts(path);
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let short: Vec<_> = short
        .into_iter()
        .filter(|(mode, _)| modes.contains(mode))
        .map(|(_, short)| short)
        .collect();
    short.join(",")
}

const STORAGE_CLASS: &[Column] = &[
    NAME,
    text("Provisioner", of("storage/v1.StorageClass", "provisioner")),
    text("ReclaimPolicy", of("storage/v1.StorageClass", "reclaimPolicy")),
    text("VolumeBindingMode", of("storage/v1.StorageClass", "volumeBindingMode")),
    text("AllowVolumeExpansion", of("storage/v1.StorageClass", "allowVolumeExpansion")),
    AGE,
];

fn storage_class(object: Fields<'_>) -> Value {
    let annotations = object.map("metadata.annotations");
    let default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .iter()
    .any(|key| annotations.get(key) == Some(&"true"));
    json!([
        format!("{}{}", object.name(), if default { " (default)" } else { "" }),
        object.text("provisioner"),
        object.text_or("reclaimPolicy", "Delete"),
        object.text_or("volumeBindingMode", "Immediate"),
        object.flag("allowVolumeExpansion"),
        object.age(),
    ])
}

const ATTRIBUTES_CLASS: &[Column] =
    &[NAME, text("DriverName", of("storage/v1.VolumeAttributesClass", "driverName")), AGE];

fn attributes_class(object: Fields<'_>) -> Value {
    json!([object.name(), object.text("driverName"), object.age()])
}

const ATTACHMENT: &[Column] = &[
    NAME,
    text("Attacher", of("storage/v1.VolumeAttachmentSpec", "attacher")).as_name(),
    text("PV", of("storage/v1.VolumeAttachmentSource", "persistentVolumeName")),
    text("Node", of("storage/v1.VolumeAttachmentSpec", "nodeName")),
    boolean("Attached", of("storage/v1.VolumeAttachmentStatus", "attached")),
    AGE,
];

fn attachment(object: Fields<'_>) -> Value {
    json!([
        object.name(),
        object.text("spec.attacher"),
        object.text("spec.source.persistentVolumeName"),
        object.text("spec.nodeName"),
        object.flag("status.attached"),
        object.age(),
    ])
}

const CSI_NODE: &[Column] = &[
    NAME,
    integer("Drivers", Text("Drivers indicates the number of CSI drivers registered on the node")),
    AGE,
];

fn csi_node(object: Fields<'_>) -> Value {
    json!([object.name(), object.count("spec.drivers"), object.age()])
}

const CSI_DRIVER: &[Column] = &[
    NAME,
    boolean("AttachRequired", of("storage/v1.CSIDriverSpec", "attachRequired")),
    boolean("PodInfoOnMount", of("storage/v1.CSIDriverSpec", "podInfoOnMount")),
    boolean("StorageCapacity", of("storage/v1.CSIDriverSpec", "storageCapacity")),
    text("TokenRequests", of("storage/v1.CSIDriverSpec", "tokenRequests")),
    boolean("RequiresRepublish", of("storage/v1.CSIDriverSpec", "requiresRepublish")),
    text("Modes", of("storage/v1.CSIDriverSpec", "volumeLifecycleModes")),
    AGE,
];

fn csi_driver(object: Fields<'_>) -> Value {
    let audiences: Vec<_> =
        object.items("spec.tokenRequests").map(|request| request.text("audience")).collect();
    let modes = object.texts("spec.volumeLifecycleModes");
    json!([
        object.name(),
        !object.has("spec.attachRequired") || object.flag("spec.attachRequired"),
        object.flag("spec.podInfoOnMount"),
        object.flag("spec.storageCapacity"),
        if audiences.is_empty() { "<unset>".to_owned() } else { audiences.join(",") },
        object.flag("spec.requiresRepublish"),
        if modes.is_empty() { "<none>".to_owned() } else { modes.join(",") },
        object.age(),
    ])
}
