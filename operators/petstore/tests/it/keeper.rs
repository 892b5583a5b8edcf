//! The operator in a cluster, beside a store that fails whenever it hurts.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::Method;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt as _;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams,
};
use kubewright::condition::{Conditions as _, READY};
use kubewright_testing::{Cluster, Running, yaml};
use petstore::keeper::{FINALIZER, operator};
use petstore::pet::v1alpha1::Pet;
use petstore::proto::{DeletePetsRequest, UpdatePetsRequest};
use serde_json::json;
use tokio::sync::{Mutex, MutexGuard, watch};

use crate::shop::{Shop, all};

/// A cluster, a store, and the operator between them.
pub(crate) struct Site {
    pub(crate) cluster: Cluster,
    pub(crate) shop: Shop,
    running: Option<Running>,
    converter: Option<Running>,
    _turn: Option<MutexGuard<'static, ()>>,
}

/// A cluster has pets converted in one place, and tests may share a cluster.
static TURN: Mutex<()> = Mutex::const_new(());

impl Site {
    pub(crate) async fn start() -> Self {
        let (cluster, shop) = (Cluster::from_env().await, Shop::open().await);
        let turn = if cluster.is_virtual() { None } else { Some(TURN.lock().await) };
        let mut site = Site { cluster, shop, running: None, converter: None, _turn: turn };
        site.run().await;
        site
    }

    /// Has pets converted by this process.
    pub(crate) async fn convert(&mut self) {
        let operator = operator(self.shop.address());
        self.converter = Some(self.cluster.call_webhooks(operator).await);
    }

    async fn run(&mut self) {
        self.running = Some(self.cluster.run(operator(self.shop.address())).await);
    }

    /// Ends the operator in the middle of whatever it does.
    fn kill(&mut self) {
        self.running = None;
    }

    pub(crate) fn pets(&self) -> Api<Pet> {
        Api::default_namespaced(self.cluster.client())
    }

    /// Creates the samples, or one of them.
    pub(crate) async fn create(&self, sample: &str) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
        let text = std::fs::read_to_string(folder.join(sample).with_extension("yaml"));
        for object in yaml(&text.expect("a sample")) {
            let pet: Pet = serde_json::from_value(object).expect("a pet");
            self.pets().create(&PostParams::default(), &pet).await.expect("created");
        }
    }

    async fn edit(&self, pet: &str, patch: serde_json::Value) {
        let patch = Patch::Merge(patch);
        self.pets().patch(pet, &PatchParams::default(), &patch).await.expect("edited");
    }

    async fn delete(&self, pet: &str) {
        self.pets().delete(pet, &DeleteParams::default()).await.expect("deleted");
    }

    async fn until(&self, pet: &str, is_so: impl Fn(Option<&Pet>) -> bool) -> Option<Arc<Pet>> {
        self.cluster.eventually(Some(self.cluster.namespace()), pet, is_so).await
    }

    /// Waits until the operator has said something of a pet as it is described now.
    async fn told(&self, pet: &str, status: &str, reason: &str) -> Arc<Pet> {
        let is_told = |pet: Option<&Pet>| {
            let ready = pet.and_then(ready);
            ready.is_some_and(|ready| {
                (ready.status.as_str(), ready.reason.as_str()) == (status, reason)
                    && ready.observed_generation == pet.and_then(|pet| pet.metadata.generation)
            })
        };
        self.until(pet, is_told).await.expect("a pet")
    }

    pub(crate) async fn stored(&self, pet: &str) -> Arc<Pet> {
        self.told(pet, "True", "Stored").await
    }

    async fn gone(&self, pet: &str) {
        self.until(pet, |pet| pet.is_none()).await;
    }

    /// Stops the operator, and says what it has told people about a pet, in alphabetical order.
    async fn events(&mut self, pet: &str) -> Vec<String> {
        // What is still to be written is, before it ends.
        self.running.take().expect("it runs").stop().await;
        let events: Api<Event> = Api::default_namespaced(self.cluster.client());
        let events = events.list(&ListParams::default()).await.expect("events");
        let about = |event: &Event| {
            event.regarding.as_ref().is_some_and(|about| about.name.as_deref() == Some(pet))
        };
        let part = |part: Option<String>| part.unwrap_or_default();
        let told = events.items.into_iter().filter(about);
        let told = told.map(|it| [part(it.type_), part(it.reason), part(it.action)].join(" "));
        let mut told: Vec<_> = told.collect();
        told.sort();
        told
    }

    /// Lets the operator write no status, and says when it has tried.
    fn refuse_status(&self) -> Refusal {
        let (is_on, tried) = (Arc::new(AtomicBool::new(true)), watch::Sender::new(false));
        let (watched, still) = (tried.subscribe(), Arc::clone(&is_on));
        self.cluster.faults().answer(500, usize::MAX, move |request| {
            let is_status =
                request.method == Method::PATCH && request.uri.path().ends_with("/status");
            let is_refused = is_status && still.load(Ordering::SeqCst);
            if is_refused {
                tried.send_replace(true);
            }
            is_refused
        });
        Refusal { is_on, tried: watched }
    }

    /// Leaves the cluster as it was.
    pub(crate) async fn end(mut self) {
        if self.running.is_none() {
            self.run().await;
        }
        let all = ListParams::default();
        let pets = self.pets().list(&all).await.expect("pets");
        self.pets().delete_collection(&DeleteParams::default(), &all).await.expect("deleted");
        for pet in pets {
            self.gone(&pet.name_any()).await;
        }
        self.running.expect("it runs").stop().await;
        if let Some(converter) = self.converter {
            // Else the cluster would look for it where it was.
            let definitions: Api<CustomResourceDefinition> = Api::all(self.cluster.client());
            let nobody = json!({"spec": {"conversion": {"strategy": "None", "webhook": null}}});
            let (patch, params) = (Patch::Merge(nobody), PatchParams::default());
            let forgotten = definitions.patch("pets.petstore.example.com", &params, &patch).await;
            forgotten.expect("forgotten");
            converter.stop().await;
        }
        self.shop.close().await;
        self.cluster.shutdown().await;
    }
}

struct Refusal {
    is_on: Arc<AtomicBool>,
    tried: watch::Receiver<bool>,
}

impl Refusal {
    async fn tried(&mut self) {
        self.tried.wait_for(|tried| *tried).await.expect("its sender is in the faults");
    }

    fn end(self) {
        self.is_on.store(false, Ordering::SeqCst);
    }
}

fn ready(pet: &Pet) -> Option<&Condition> {
    pet.status.as_ref()?.conditions.find(READY)
}

fn id(pet: &Pet) -> Option<&str> {
    pet.status.as_ref()?.id.as_deref()
}

#[tokio::test]
async fn samples_come_to_the_store_and_are_left_alone() {
    let mut site = Site::start().await;
    site.create("pet-sample1").await;
    site.create("pet-sample2").await;
    let thor = site.stored("pet-sample1").await;
    site.stored("pet-sample2").await;
    assert_eq!(site.shop.names().await, ["Thor", "Tron"]);
    assert_eq!(thor.metadata.finalizers.as_deref(), Some(&[FINALIZER.to_owned()][..]));
    let id = uuid::Uuid::parse_str(id(&thor).expect("an id"));
    assert!(id.is_ok());

    // One that starts looks at all of them, and finds nothing to do.
    site.events("pet-sample1").await;
    site.run().await;
    site.edit("pet-sample1", json!({"metadata": {"labels": {"seen": "again"}}})).await;
    site.stored("pet-sample1").await;
    assert_eq!(site.events("pet-sample1").await, ["Normal Added Reconcile"]);
    site.end().await;
}

#[tokio::test]
async fn what_is_edited_reaches_the_store() {
    let mut site = Site::start().await;
    site.create("pet-sample1").await;
    let before = site.stored("pet-sample1").await;
    site.edit("pet-sample1", json!({"spec": {"name": "Thorbert"}})).await;
    let after = site.stored("pet-sample1").await;
    assert_eq!(site.shop.names().await, ["Thorbert"]);
    assert_eq!(id(&before), id(&after));
    let told = site.events("pet-sample1").await;
    assert_eq!(told, ["Normal Added Reconcile", "Normal Updated Reconcile"]);
    site.end().await;
}

#[tokio::test]
async fn deleting_all_pets_empties_the_store() {
    let site = Site::start().await;
    site.create("pet-sample1").await;
    site.create("pet-sample2").await;
    site.stored("pet-sample1").await;
    site.stored("pet-sample2").await;
    let (delete, all) = (DeleteParams::default(), ListParams::default());
    site.pets().delete_collection(&delete, &all).await.expect("deleted");
    site.gone("pet-sample1").await;
    site.gone("pet-sample2").await;
    assert_eq!(site.shop.names().await, [""; 0]);
    site.end().await;
}

#[tokio::test]
async fn what_others_do_in_the_store_is_undone() {
    let site = Site::start().await;
    site.create("pet-sample1").await;
    let before = site.stored("pet-sample1").await;
    let mut store = site.shop.client().await;
    let mut pets = all(&mut store).await;
    pets[0].name = "Nonsense".to_owned();
    store.update_pets(UpdatePetsRequest { pets }).await.expect("updated");
    // Nobody tells the operator; it looks when it looks.
    site.edit("pet-sample1", json!({"spec": {"type": "bird"}})).await;
    site.stored("pet-sample1").await;
    assert_eq!(site.shop.names().await, ["Thor"]);

    let ids = vec![id(&before).expect("an id").to_owned()];
    store.delete_pets(DeletePetsRequest { ids }).await.expect("deleted");
    site.edit("pet-sample1", json!({"spec": {"type": "dog"}})).await;
    let after = site.stored("pet-sample1").await;
    assert_eq!(site.shop.names().await, ["Thor"]);
    assert_ne!(id(&before), id(&after));
    site.end().await;
}

/// The store has answered, and the operator is gone before it could write the id down. The next
/// one knows nothing of it.
#[tokio::test]
async fn a_crash_between_the_store_and_the_status_leaves_one_pet() {
    let mut site = Site::start().await;
    let mut refusal = site.refuse_status();
    site.create("pet-sample1").await;
    refusal.tried().await;
    site.kill();
    refusal.end();
    let before = all(&mut site.shop.client().await).await;
    assert_eq!(before.len(), 1);
    assert_eq!(id(&site.pets().get("pet-sample1").await.expect("it is there")), None);

    site.edit("pet-sample1", json!({"spec": {"name": "Thorbert"}})).await;
    site.run().await;
    let thor = site.stored("pet-sample1").await;
    assert_eq!(id(&thor), Some(before[0].id.as_str()));
    assert_eq!(site.shop.names().await, ["Thorbert"]);
    site.end().await;
}

#[tokio::test]
async fn a_pet_whose_id_was_never_written_leaves_the_store_too() {
    let mut site = Site::start().await;
    let mut refusal = site.refuse_status();
    site.create("pet-sample1").await;
    refusal.tried().await;
    site.kill();
    refusal.end();
    assert_eq!(site.shop.names().await, ["Thor"]);

    site.delete("pet-sample1").await;
    site.run().await;
    site.gone("pet-sample1").await;
    assert_eq!(site.shop.names().await, [""; 0]);
    site.end().await;
}

#[tokio::test]
async fn a_store_that_is_down_is_waited_for() {
    let mut site = Site::start().await;
    site.create("pet-sample1").await;
    site.stored("pet-sample1").await;
    site.shop.close().await;

    site.edit("pet-sample1", json!({"spec": {"name": "Thorbert"}})).await;
    site.create("pet-sample2").await;
    let thor = site.told("pet-sample1", "False", "StoreUnavailable").await;
    let tron = site.told("pet-sample2", "False", "StoreUnavailable").await;
    assert!(id(&thor).is_some() && id(&tron).is_none());

    site.shop.reopen().await;
    site.stored("pet-sample1").await;
    site.stored("pet-sample2").await;
    assert_eq!(site.shop.names().await, ["Thorbert", "Tron"]);
    let told = site.events("pet-sample2").await;
    assert_eq!(told, ["Normal Added Reconcile", "Warning StoreUnavailable Reconcile"]);
    site.end().await;
}

#[tokio::test]
async fn a_pet_is_held_until_it_has_left_a_store_that_is_down() {
    let mut site = Site::start().await;
    site.create("pet-sample1").await;
    site.stored("pet-sample1").await;
    site.shop.close().await;

    site.delete("pet-sample1").await;
    // Deletion is a change of what is wanted, so this is of after it.
    let held = site.told("pet-sample1", "False", "StoreUnavailable").await;
    assert!(held.metadata.deletion_timestamp.is_some());
    assert_eq!(held.metadata.finalizers.as_deref(), Some(&[FINALIZER.to_owned()][..]));

    site.shop.reopen().await;
    site.gone("pet-sample1").await;
    assert_eq!(site.shop.names().await, [""; 0]);
    let told = site.events("pet-sample1").await;
    assert_eq!(
        told,
        ["Normal Added Reconcile", "Normal Deleted Delete", "Warning StoreUnavailable Delete"]
    );
    site.end().await;
}

#[tokio::test]
async fn a_pet_that_the_store_refuses_waits_for_a_change() {
    let site = Site::start().await;
    site.create("pet-sample1").await;
    site.stored("pet-sample1").await;
    // A rule that the store has, and the cluster does not know.
    site.edit("pet-sample1", json!({"spec": {"name": "Thor".repeat(26)}})).await;
    let refused = site.told("pet-sample1", "False", "Refused").await;
    let message = ready(&refused).map(|ready| ready.message.as_str());
    assert_eq!(message, Some("the store refuses it: a pet's name has at most 100 characters"));
    site.edit("pet-sample1", json!({"spec": {"name": "Thorbert"}})).await;
    site.stored("pet-sample1").await;
    assert_eq!(site.shop.names().await, ["Thorbert"]);
    site.end().await;
}

/// Objects that a type cannot hold are passed over by the operator, and keep others from being
/// converted: the schema must be no wider than the type.
#[tokio::test]
async fn a_birthday_that_is_accepted_is_understood() {
    let site = Site::start().await;
    let check = async |birthday: &str, is_accepted: bool| {
        let pet = json!({
            "apiVersion": "petstore.example.com/v1alpha1", "kind": "Pet",
            "metadata": {"name": "thor"},
            "spec": {"name": "Thor", "type": "dog", "birthday": birthday},
        });
        let resource = ApiResource::erase::<Pet>(&());
        let pets: Api<DynamicObject> =
            Api::default_namespaced_with(site.cluster.client(), &resource);
        let pet = serde_json::from_value(pet).expect("an object");
        let created = pets.create(&PostParams::default(), &pet).await;
        assert_eq!(created.is_ok(), is_accepted, "{birthday}: {created:?}");
        if is_accepted {
            site.stored("thor").await;
            site.delete("thor").await;
            site.gone("thor").await;
        }
    };
    check("2021-04-01T00:00:00Z", true).await;
    check("2021-04-01t23:59:59.123456789z", true).await;
    check("0000-01-01T00:00:00+23:59", true).await;
    check("8999-12-31T23:59:59-23:59", true).await;
    check("2021-04-01", false).await;
    check("2021-02-29T00:00:00Z", false).await;
    check("2021-04-01T00:00:00", false).await;
    check("2021-04-01T00:00:00+99:99", false).await;
    check("2021-04-01T00:00:00.1234567891Z", false).await;
    check("9999-12-31T23:59:59Z", false).await;
    site.end().await;
}

#[tokio::test]
async fn what_cannot_be_is_refused_with_what_to_do() {
    let site = Site::start().await;
    let sample = yaml(petstore::SAMPLES[0]).remove(0);
    let check = async |change: serde_json::Value, told: &str| {
        let refusal = site.cluster.refusal(&sample, change).await;
        assert!(refusal.contains(told), "{refusal}");
    };
    let typo = json!({"spec": {"birthdate": "2021-04-01T00:00:00Z"}});
    check(typo, r#"strict decoding error: unknown field "spec.birthdate""#).await;
    check(json!({"spec": {"birthday": null}}), "spec.birthday: Required value").await;
    let fish = r#"spec.type: Unsupported value: "fish": supported values: "dog", "cat", "bird""#;
    check(json!({"spec": {"type": "fish"}}), fish).await;
    let nameless = "must not be empty: say what the pet is called";
    check(json!({"spec": {"name": ""}}), nameless).await;
    let day = json!({"spec": {"birthday": "2021-04-01"}});
    check(day, "spec.birthday in body must be of type date-time").await;
    site.end().await;
}

/// The names that those who operate it look for, and its rights.
#[test]
fn its_manifests_are_named_as_the_original_and_give_its_rights() {
    let store = "http://petstore.petstore-system.svc:6742".parse().expect("an address");
    let manifests = petstore::keeper::package(&store).render().expect("manifests");
    let of = |kind: &'static str| manifests.iter().filter(move |it| it.kind() == kind);
    let deployment = &of("Deployment").next().expect("a Deployment").object;
    assert_eq!(deployment["metadata"]["name"], "petstore-operator-controller-manager");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["name"], "manager");
    let rules: Vec<_> = of("ClusterRole")
        .flat_map(|role| role.object["rules"].as_array().cloned().unwrap_or_default())
        .flat_map(|rule| rule["resources"].as_array().cloned().unwrap_or_default())
        .collect();
    for resource in ["pets", "pets/status", "pets/finalizers"] {
        assert!(rules.contains(&json!(resource)), "{resource} is not in {rules:?}");
    }
}

#[tokio::test]
async fn the_store_can_be_installed() {
    let cluster = Cluster::start().await;
    cluster.apply_folder(Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy")).await;
    cluster.shutdown().await;
}

#[test]
fn its_samples_are_those_of_its_folder() {
    let store = "http://petstore.petstore-system.svc:6742".parse().expect("an address");
    let manifests = petstore::keeper::package(&store).render().expect("manifests");
    let samples = manifests.iter().filter(|it| it.part == kubewright::manifest::Part::Samples);
    let told: Vec<_> = samples.map(|it| (it.name(), &it.object["spec"]["name"])).collect();
    assert_eq!(told, [("pet-sample1", &json!("Thor")), ("pet-sample2", &json!("Tron"))]);
}
