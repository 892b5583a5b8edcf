use k8s_openapi::api::core::v1::Pod;
use kubewright_apimachinery::yaml;

use super::*;

fn pod(text: &str) -> Pod {
    let value = yaml::decode(text).expect("YAML").value;
    serde_json::from_value(value).expect("a pod")
}

fn check(pod_text: &str, container: &str, is_init: bool, expected: &str) {
    let stages = yaml::decode(
        "- {owner: DaemonSet, readyAfter: 3s}
- {container: broken, runsFor: 2s, exitCode: 7}",
    );
    let stages = serde_json::from_value(stages.expect("YAML").value).expect("stages");
    let fake = Fake::new(Clock::starting_at(Timestamp::UNIX_EPOCH), stages);
    let Stage { start_after, ready_after, runs_for, exit_code, .. } =
        fake.stage(&pod(pod_text), container, is_init);
    let runs_for = runs_for.map_or_else(|| "ever".to_owned(), |time| format!("{time:#}"));
    let told = format!(
        "starts after {start_after:#}, ready after {ready_after:#}, runs for {runs_for}, \
         exits {exit_code}"
    );
    assert_eq!(told, expected);
}

#[tokio::test]
async fn stages_and_annotations_say_what_containers_do() {
    let plain = "metadata: {name: a}";
    check(plain, "main", false, "starts after 0s, ready after 0s, runs for ever, exits 0");
    check(plain, "setup", true, "starts after 0s, ready after 0s, runs for 0s, exits 0");
    check(plain, "broken", false, "starts after 0s, ready after 0s, runs for 2s, exits 7");
    let owned = |kind: &str| {
        format!(
            "metadata: {{name: a, ownerReferences: [{{apiVersion: v1, kind: {kind}, name: o, \
             uid: u, controller: true}}]}}"
        )
    };
    check(&owned("Job"), "main", false, "starts after 0s, ready after 0s, runs for 1s, exits 0");
    let daemon = owned("DaemonSet");
    check(&daemon, "main", false, "starts after 0s, ready after 3s, runs for ever, exits 0");
    let annotated = "metadata: {name: a, annotations: {fake.kubewright.dev/exit-code: '1', \
                     fake.kubewright.dev/start-after: 4s, fake.kubewright.dev/runs-for.other: 1m}}";
    check(annotated, "main", false, "starts after 4s, ready after 0s, runs for 0s, exits 1");
    check(annotated, "other", false, "starts after 4s, ready after 0s, runs for 1m, exits 1");
}

#[test]
fn addresses_are_given_once_and_given_back() {
    let mut state = State::default();
    assert_eq!(state.address("a").to_string(), "10.128.0.2");
    assert_eq!(state.address("b").to_string(), "10.128.0.3");
    assert_eq!(state.address("a").to_string(), "10.128.0.2");
    state.take("c", Ipv4Addr::new(10, 128, 0, 4));
    assert_eq!(state.address("d").to_string(), "10.128.0.5");
    state.give_back("a");
    assert_eq!(state.taken.len(), 3);
}

#[test]
fn agents_of_other_names_give_other_addresses() {
    let fake =
        |name: &str| Fake::new(Clock::starting_at(Timestamp::UNIX_EPOCH), Vec::new()).called(name);
    let all = |name: &str| -> HashSet<Ipv4Addr> {
        let fake = fake(name);
        let mut state = fake.state();
        (0..1000).map(|pod| state.address(&format!("{name}-{pod}"))).collect()
    };
    let (one, other) = (all("fake-1"), all("machine"));
    assert_eq!((one.len(), other.len()), (1000, 1000));
    assert!(one.is_disjoint(&other));
    assert!(one.iter().chain(&other).all(|ip| ip.octets()[0] == 10 && ip.octets()[1] >= 128));
    assert_eq!(all("fake-1"), one);
}
