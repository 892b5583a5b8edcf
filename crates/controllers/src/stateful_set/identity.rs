//! What makes a pod of a StatefulSet that one and no other: its number, its name, and its claims.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};

use crate::pods;
use crate::revisions::HASH;

const POD_NAME: &str = "statefulset.kubernetes.io/pod-name";
const POD_INDEX: &str = "apps.kubernetes.io/pod-index";

/// The number of a pod, if it has the form of a name that a StatefulSet gives, and whose it is.
pub(super) fn parse(name: &str) -> Option<(&str, i32)> {
    let (parent, number) = name.rsplit_once('-')?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse().ok().map(|number| (parent, number))).flatten()
}

pub(super) fn ordinal(pod: &Pod) -> Option<i32> {
    parse(pod.metadata.name.as_deref()?).map(|(_, ordinal)| ordinal)
}

pub(super) fn is_member(set: &StatefulSet, pod: &Pod) -> bool {
    let parsed = pod.metadata.name.as_deref().and_then(parse);
    parsed.is_some_and(|(parent, _)| Some(parent) == set.metadata.name.as_deref())
}

pub(super) fn revision(pod: &Pod) -> &str {
    let labels = pod.metadata.labels.as_ref();
    labels.and_then(|labels| labels.get(HASH)).map(String::as_str).unwrap_or_default()
}

/// The pod of a number, of some template.
pub(super) fn pod(
    set: &StatefulSet,
    template: &PodTemplateSpec,
    revision: &str,
    ordinal: i32,
) -> Pod {
    let owner = set.metadata.name.as_deref().unwrap_or_default();
    let mut pod = pods::from_template(template, owner);
    pod.metadata.generate_name = None;
    pod.metadata.name = Some(format!("{owner}-{ordinal}"));
    pod.metadata.namespace.clone_from(&set.metadata.namespace);
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(HASH.to_owned(), revision.to_owned());
    if let Some(spec) = &mut pod.spec {
        spec.hostname.clone_from(&pod.metadata.name);
        spec.subdomain = set.spec.as_ref().and_then(|spec| spec.service_name.clone());
    }
    identify(set, &mut pod);
    pod
}

/// Gives a pod what it must have to be the one of its number.
pub(super) fn identify(set: &StatefulSet, pod: &mut Pod) {
    let (Some(name), Some(ordinal)) = (pod.metadata.name.clone(), ordinal(pod)) else { return };
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.to_owned(), name);
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    let claims = claims(set, ordinal);
    if claims.is_empty() {
        return;
    }
    let Some(spec) = &mut pod.spec else { return };
    let volume = |(template, claim): &(String, PersistentVolumeClaim)| Volume {
        name: template.clone(),
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: claim.metadata.name.clone().unwrap_or_default(),
            read_only: None,
        }),
        ..Volume::default()
    };
    let mut volumes: Vec<Volume> = claims.iter().map(volume).collect();
    let others = spec.volumes.take().unwrap_or_default();
    let is_claimed = |volume: &Volume| claims.iter().any(|(template, _)| *template == volume.name);
    volumes.extend(others.into_iter().filter(|volume| !is_claimed(volume)));
    spec.volumes = Some(volumes);
}

/// Whether a pod has what makes it the one of its number.
pub(super) fn is_identified(set: &StatefulSet, pod: &Pod) -> bool {
    let labels = pod.metadata.labels.as_ref();
    if labels.and_then(|labels| labels.get(POD_NAME)) != pod.metadata.name.as_ref() {
        return false;
    }
    let Some(ordinal) = ordinal(pod) else { return false };
    let volumes = pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
    claims(set, ordinal).iter().all(|(template, claim)| {
        let volume = volumes.iter().find(|volume| volume.name == *template);
        let source = volume.and_then(|volume| volume.persistent_volume_claim.as_ref());
        source.is_some_and(|source| Some(&source.claim_name) == claim.metadata.name.as_ref())
    })
}

/// The claims of a pod of this number, by the name of their template.
pub(super) fn claims(set: &StatefulSet, ordinal: i32) -> Vec<(String, PersistentVolumeClaim)> {
    let Some(spec) = &set.spec else { return Vec::new() };
    let owner = set.metadata.name.as_deref().unwrap_or_default();
    let templates = spec.volume_claim_templates.iter().flatten();
    let claim = |template: &PersistentVolumeClaim| {
        let mut claim = template.clone();
        let name = claim.metadata.name.take().unwrap_or_default();
        claim.metadata.name = Some(format!("{name}-{owner}-{ordinal}"));
        claim.metadata.namespace.clone_from(&set.metadata.namespace);
        let labels = spec.selector.match_labels.clone().unwrap_or_default();
        claim.metadata.labels.get_or_insert_default().extend(labels);
        claim.status = None;
        (name, claim)
    };
    templates.map(claim).collect()
}
