//! The store over gRPC, and as a program that is killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use petstore::proto::pet_store_client::PetStoreClient;
use petstore::proto::{
    AddPetsRequest, DeletePetsRequest, Pet, PetType, SearchPetsRequest, UpdatePetsRequest,
};
use tonic::Code;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;

use crate::shop::{Shop, all};

fn pet(name: &str, key: &str) -> Pet {
    Pet {
        name: name.to_owned(),
        r#type: PetType::Dog.into(),
        birthday: Some(prost_types::Timestamp { seconds: 0, nanos: 0 }),
        key: key.to_owned(),
        ..Pet::default()
    }
}

#[tokio::test]
async fn pets_are_added_updated_found_and_deleted() {
    let mut shop = Shop::open().await;
    let mut store = shop.client().await;
    let pets = vec![pet("Thor", ""), pet("Tron", "")];
    let added = store.add_pets(AddPetsRequest { pets }).await.expect("added").into_inner();
    let thorbert = Pet { id: added.ids[0].clone(), ..pet("Thorbert", "") };
    let pets = vec![thorbert.clone()];
    store.update_pets(UpdatePetsRequest { pets }).await.expect("updated");
    let ids = added.ids[1..].to_vec();
    store.delete_pets(DeletePetsRequest { ids }).await.expect("deleted");
    assert_eq!(all(&mut store).await, [thorbert]);
    shop.close().await;
}

#[tokio::test]
async fn many_pets_come_in_the_order_of_their_ids() {
    let mut shop = Shop::open().await;
    let mut store = shop.client().await;
    let pets = (0..500).map(|n| pet(&format!("pet {n}"), "")).collect();
    let added = store.add_pets(AddPetsRequest { pets }).await.expect("added").into_inner();
    let mut expected = added.ids;
    expected.sort();
    let found: Vec<_> = all(&mut store).await.into_iter().map(|pet| pet.id).collect();
    assert_eq!(found, expected);
    shop.close().await;
}

#[tokio::test]
async fn what_cannot_be_done_has_a_code_of_its_own() {
    let mut shop = Shop::open().await;
    let mut store = shop.client().await;
    let nameless = AddPetsRequest { pets: vec![pet("", "")] };
    let refused = store.add_pets(nameless).await.expect_err("it has no name");
    assert_eq!((refused.code(), refused.message()), (Code::InvalidArgument, "a pet has a name"));
    let named = AddPetsRequest { pets: vec![Pet { id: "x".to_owned(), ..pet("Thor", "") }] };
    let refused = store.add_pets(named).await.expect_err("it has an id");
    assert_eq!(refused.code(), Code::InvalidArgument);
    let absent = Pet { id: "x".to_owned(), ..pet("Thor", "") };
    let refused = store.update_pets(UpdatePetsRequest { pets: vec![absent] }).await;
    assert_eq!(refused.expect_err("it is not there").code(), Code::NotFound);
    let request = SearchPetsRequest { types: vec![0], ..SearchPetsRequest::default() };
    let refused = store.search_pets(request).await.expect_err("no type");
    assert_eq!(refused.code(), Code::InvalidArgument);
    shop.close().await;
}

#[tokio::test]
async fn tools_learn_whether_it_is_well_and_what_it_serves() {
    let mut shop = Shop::open().await;
    let service = "petstore.v1.PetStore".to_owned();
    let mut health = HealthClient::new(shop.channel().await);
    let checked = health.check(HealthCheckRequest { service: service.clone() }).await;
    assert_eq!(checked.expect("an answer").into_inner().status(), ServingStatus::Serving);

    let request = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..ServerReflectionRequest::default()
    };
    let mut reflection = ServerReflectionClient::new(shop.channel().await);
    let asked = futures::stream::iter([request]);
    let answers = reflection.server_reflection_info(asked).await.expect("an answer");
    let mut answers = answers.into_inner();
    let answer = answers.message().await.expect("an answer").expect("one");
    let Some(MessageResponse::ListServicesResponse(list)) = answer.message_response else {
        panic!("no list of services: {answer:?}");
    };
    let names: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    assert!(names.contains(&service), "{names:?}");
    assert!(names.iter().any(|name| name == "grpc.health.v1.Health"), "{names:?}");
    shop.close().await;
}

/// The program, serving pets. It is killed when this goes.
struct Program {
    child: Child,
    address: String,
}

impl Program {
    fn start(dir: &Path) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_petstore"))
            .args(["service", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(dir)
            .stdout(Stdio::piped())
            .spawn()
            .expect("a program");
        let mut line = String::new();
        let told = BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line);
        told.expect("a line");
        let address = line.trim().rsplit(' ').next().expect("an address").to_owned();
        Program { child, address }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("gone");
    }
}

#[tokio::test]
async fn no_pet_is_lost_when_the_program_is_killed() {
    let dir = tempfile::tempdir().expect("a directory");
    let mut expected = Vec::new();
    for round in 0..3 {
        let program = Program::start(dir.path());
        let mut store =
            PetStoreClient::connect(program.address.clone()).await.expect("a connection");
        let pets = vec![pet("Thor", "thor"), pet(&format!("pet {round}"), "")];
        let added = store.add_pets(AddPetsRequest { pets }).await.expect("added").into_inner();
        expected.extend(added.ids);
        expected.sort();
        // It was Thor each time.
        expected.dedup();
        let found: Vec<_> = all(&mut store).await.into_iter().map(|pet| pet.id).collect();
        assert_eq!(found, expected);
    }
    assert_eq!(expected.len(), 4);
}
