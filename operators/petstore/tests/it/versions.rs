//! Pets in two versions, converted by a webhook that the API server calls over TLS.

use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use kube::{Client, ResourceExt as _};
use petstore::pet::{PetType, v1alpha1, v1beta1};
use serde_json::json;

use crate::keeper::Site;

fn days(client: Client) -> Api<v1beta1::Pet> {
    Api::default_namespaced(client)
}

/// A pet in the other version, as soon as the cluster has it converted.
async fn converted(site: &Site, pet: &str) -> v1beta1::Pet {
    let namespace = Some(site.cluster.namespace());
    let pet = site.cluster.eventually(namespace, pet, |pet| pet.is_some()).await;
    v1beta1::Pet::clone(&pet.expect("it is there"))
}

#[tokio::test]
async fn a_pet_is_read_and_written_in_both_versions() {
    let mut site = Site::start().await;
    site.convert().await;
    let (moments, days) = (site.pets(), days(site.cluster.client()));
    site.create("pet-sample1").await;
    let stored = site.stored("pet-sample1").await;

    let thor = converted(&site, "pet-sample1").await;
    let v1beta1::PetSpec { kind, birthday, .. } = &thor.spec;
    assert_eq!((*kind, birthday.to_string().as_str()), (PetType::Dog, "2021-04-01"));
    assert_eq!(thor.status, stored.status);
    assert_eq!(thor.uid(), stored.uid());

    // What is edited in one version reaches the store from the other.
    let patch = Patch::Merge(json!({"spec": {"name": "Thorbert", "kind": "reptile"}}));
    days.patch("pet-sample1", &PatchParams::default(), &patch).await.expect("edited");
    let thorbert = site.stored("pet-sample1").await;
    assert_eq!((thorbert.spec.kind, thorbert.spec.name.as_str()), (PetType::Reptile, "Thorbert"));
    assert_eq!(thorbert.spec.birthday, stored.spec.birthday);
    assert_eq!(site.shop.names().await, ["Thorbert"]);

    // One that is created in the other is listed in both.
    let birthday = jiff::civil::date(2020, 6, 25);
    let spec = v1beta1::PetSpec { name: "Tron".to_owned(), kind: PetType::Cat, birthday };
    let tron = v1beta1::Pet::new("tron", spec);
    days.create(&PostParams::default(), &tron).await.expect("created");
    site.stored("tron").await;
    let tron = moments.get("tron").await.expect("it is there");
    assert_eq!(tron.spec.birthday.to_string(), "2020-06-25T00:00:00Z");
    assert_eq!(days.list(&ListParams::default()).await.expect("a list").items.len(), 2);
    site.end().await;
}

#[tokio::test]
async fn the_time_of_a_birthday_survives_the_other_version() {
    let mut site = Site::start().await;
    site.convert().await;
    let days = days(site.cluster.client());
    let birthday: jiff::Timestamp = "2021-04-01T12:30:00Z".parse().expect("a moment");
    let spec = v1alpha1::PetSpec { name: "Thor".to_owned(), kind: PetType::Dog, birthday };
    let thor = v1alpha1::Pet::new("thor", spec);
    site.pets().create(&PostParams::default(), &thor).await.expect("created");
    site.stored("thor").await;

    let mut thor = converted(&site, "thor").await;
    thor.spec.name = "Thorbert".to_owned();
    days.replace("thor", &PostParams::default(), &thor).await.expect("replaced");
    let stored = site.stored("thor").await;
    assert_eq!(stored.spec.birthday, birthday);
    assert_eq!(stored.metadata.annotations, None);

    // Another day is another birthday.
    let patch = Patch::Merge(json!({"spec": {"birthday": "2021-04-02"}}));
    days.patch("thor", &PatchParams::default(), &patch).await.expect("edited");
    let stored = site.stored("thor").await;
    assert_eq!(stored.spec.birthday.to_string(), "2021-04-02T00:00:00Z");
    site.end().await;
}
