use serde_json::{Value, json};

use super::*;

fn volume(annotations: Value, phase: &str, policy: &str, claim: Value) -> PersistentVolume {
    let volume = json!({
        "metadata": { "name": "v", "annotations": annotations },
        "spec": { "persistentVolumeReclaimPolicy": policy, "claimRef": claim },
        "status": { "phase": phase },
    });
    serde_json::from_value(volume).expect("a volume")
}

fn claim(volume: Option<&str>) -> PersistentVolumeClaim {
    let metadata = json!({ "name": "c", "namespace": "n", "uid": "u" });
    let claim = json!({ "metadata": metadata, "spec": { "volumeName": volume } });
    serde_json::from_value(claim).expect("a claim")
}

fn reference() -> Value {
    json!({ "name": "c", "namespace": "n", "uid": "u" })
}

#[test]
fn a_volume_is_as_its_claim_is() {
    let free = volume(json!({}), "Pending", "Retain", json!(null));
    assert_eq!(plan(&free, None), Step::Phase("Available"));
    let kept = volume(json!({}), "Pending", "Retain", json!({ "name": "c", "namespace": "n" }));
    assert_eq!(plan(&kept, None), Step::Phase("Available"));
    let bound = volume(json!({}), "Available", "Retain", reference());
    assert_eq!(plan(&bound, Some(&claim(Some("v")))), Step::Phase("Bound"));
    assert_eq!(plan(&bound, Some(&claim(None))), Step::Nothing);
    assert_eq!(plan(&bound, Some(&claim(Some("w")))), Step::Unbind);
    let mut block = claim(None);
    block.spec.as_mut().expect("a spec").volume_mode = Some("Block".to_owned());
    assert_eq!(plan(&bound, Some(&block)), Step::Mismatch);
}

#[test]
fn a_volume_whose_claim_is_gone_is_released_and_goes_as_it_says() {
    let of =
        |annotations, phase, policy| plan(&volume(annotations, phase, policy, reference()), None);
    assert_eq!(of(json!({}), "Bound", "Delete"), Step::Phase("Released"));
    assert_eq!(of(json!({}), "Released", "Retain"), Step::Nothing);
    assert_eq!(of(json!({ PROVISIONED_BY: "p" }), "Released", "Delete"), Step::Nothing);
    let why =
        "error getting deleter volume plugin for volume \"v\": no deletable volume plugin matched";
    let failed = Step::Fail { reason: "VolumeFailedDelete", why: why.to_owned() };
    assert_eq!(of(json!({}), "Released", "Delete"), failed);
    let why = "No recycler plugin found for the volume!".to_owned();
    let failed = Step::Fail { reason: "VolumeFailedRecycle", why };
    assert_eq!(of(json!({}), "Released", "Recycle"), failed);
}

#[test]
fn a_volume_that_a_person_has_bound_stays_for_that_claim() {
    let mut own = volume(json!({ BOUND_BY_CONTROLLER: "yes" }), "Bound", "Retain", reference());
    unbind(&mut own);
    assert_eq!(json!(own.spec.as_ref().and_then(|it| it.claim_ref.clone())), json!(null));
    let mut kept = volume(json!({}), "Bound", "Retain", reference());
    unbind(&mut kept);
    let claim = kept.spec.and_then(|spec| spec.claim_ref).expect("a claim");
    assert_eq!((claim.name.as_deref(), claim.uid), (Some("c"), None));
    assert_eq!(kept.status.and_then(|status| status.phase).as_deref(), Some("Available"));
}
