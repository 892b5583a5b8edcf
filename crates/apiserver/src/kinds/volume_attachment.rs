//! VolumeAttachments: a volume that is, or is to be, attached to a node.

use k8s_openapi::api::storage::v1::{VolumeAttachment, VolumeAttachmentSource, VolumeError};
use kubewright_apimachinery::field::{Error, Path};
use serde_json::json;

use super::persistent_volume::{check_driver, check_inline, default_source};
use super::{Part, Rules, check, edit, internal, ip_address, typed};

const METADATA_BYTES_MAX: usize = 256 << 10;
const MESSAGE_BYTES_MAX: usize = 1024;

pub(super) const RULES: Rules = Rules {
    default: |object| {
        if let Some(spec) = object.pointer_mut("/spec/source/inlineVolumeSpec") {
            default_source(spec);
        }
    },
    prepare_create: |object, _| object["status"] = json!({"attached": false}),
    prepare_update: |object, old, _| edit::restore(object, old, "status"),
    validate: |object| check(&typed(object)),
    validate_update: |object, old| check_update(&typed(object), &typed(old)),
    parts: &[("status", STATUS)],
    reset: &["status"],
    unconditional_update: false,
    ..Rules::PLAIN
};

const STATUS: Part = Part {
    prepare_update: ip_address::keep_all_but_status,
    validate_update: |object, old| check_update(&typed(object), &typed(old)),
    reset: &["metadata", "spec"],
    ..Part::PLAIN
};

fn check(attachment: &VolumeAttachment) -> Vec<Error> {
    let spec = &attachment.spec;
    let at = Path::new("spec");
    let mut errors = check_driver(&spec.attacher, &at.child("attacher"));
    errors.extend(check_source(&spec.source, &at.child("source")));
    errors.extend(check::dns_subdomain(&at.child("nodeName"), &spec.node_name));
    if let Some(status) = &attachment.status {
        let at = Path::new("status");
        let metadata = status.attachment_metadata.iter().flatten();
        if metadata.map(|(key, value)| key.len() + value.len()).sum::<usize>() > METADATA_BYTES_MAX
        {
            errors.push(Error::too_long(&at.child("attachmentMetadata"), METADATA_BYTES_MAX));
        }
        errors.extend(check_error(status.attach_error.as_ref(), &at.child("attachError")));
        errors.extend(check_error(status.detach_error.as_ref(), &at.child("detachError")));
    }
    if let Some(volume) = &spec.source.persistent_volume_name {
        let at = Path::new("spec.source.persistentVolumeName");
        errors.extend(check::dns_subdomain(&at, volume));
    }
    errors
}

fn check_source(source: &VolumeAttachmentSource, at: &Path<'_>) -> Vec<Error> {
    let one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (&source.inline_volume_spec, source.persistent_volume_name.as_deref()) {
        (None, None) => vec![Error::required(at, one)],
        (Some(_), Some(_)) => vec![Error::forbidden(at, one)],
        (None, Some("")) => {
            let detail = "must specify non empty persistentVolumeName";
            vec![Error::required(&at.child("persistentVolumeName"), detail)]
        }
        (None, Some(_)) => Vec::new(),
        (Some(spec), None) => check_inline(spec, &at.child("inlineVolumeSpec")),
    }
}

fn check_error(error: Option<&VolumeError>, at: &Path<'_>) -> Vec<Error> {
    let Some(error) = error else { return Vec::new() };
    let mut errors = Vec::new();
    if error.message.as_ref().is_some_and(|message| message.len() > MESSAGE_BYTES_MAX) {
        // Upstream names another limit than the one it applies.
        errors.push(Error::too_long(&at.child("message"), METADATA_BYTES_MAX));
    }
    if let Some(code) = error.error_code.filter(|code| *code < 0) {
        let detail = "must be between 0 and 2147483647, inclusive";
        errors.push(Error::invalid(&at.child("errorCode"), code, detail));
    }
    errors
}

fn check_update(new: &VolumeAttachment, old: &VolumeAttachment) -> Vec<Error> {
    let mut errors = check(new);
    if new.spec != old.spec {
        let type_name = "k8s.io/api/storage/v1.VolumeAttachmentSpec";
        let shown = internal::shown(type_name, &check::shown(&new.spec));
        errors.push(Error::invalid(&Path::new("spec"), shown, "field is immutable"));
    }
    errors
}
