use super::*;

fn profile() -> Profile {
    Profile {
        name: "n1".to_owned(),
        labels: BTreeMap::from([("zone".to_owned(), "a".to_owned())]),
        taints: Vec::new(),
        machine: Machine::simulated(),
        runtime_version: "fake://1".to_owned(),
        port: 10250,
    }
}

fn told(conditions: &[NodeCondition]) -> Vec<String> {
    let told = conditions.iter().map(|condition| {
        let seconds = |time: &Option<Time>| time.as_ref().map_or(-1, |time| time.0.as_second());
        let (heard, since) =
            (seconds(&condition.last_heartbeat_time), seconds(&condition.last_transition_time));
        format!("{}={} since {since}, heard {heard}", condition.type_, condition.status)
    });
    told.collect()
}

#[test]
fn a_condition_that_has_not_changed_keeps_its_time() {
    let at = |second| Timestamp::from_second(second).expect("a time");
    let mut old =
        profile().status(&[], &Findings::default(), at(100)).conditions.expect("conditions");
    old[3].status = "Unknown".to_owned();
    let other = NodeCondition {
        type_: "Frozen".to_owned(),
        status: "True".to_owned(),
        ..NodeCondition::default()
    };
    old.push(other);
    let new = profile().status(&old, &Findings::default(), at(160)).conditions.expect("conditions");
    let expected = [
        "Frozen=True since -1, heard -1",
        "MemoryPressure=False since 100, heard 160",
        "DiskPressure=False since 100, heard 160",
        "PIDPressure=False since 100, heard 160",
        "Ready=True since 160, heard 160",
    ];
    assert_eq!(told(&new), expected);
}

#[test]
fn a_node_shows_what_it_should_whatever_others_add() {
    let now = Timestamp::from_second(100).expect("a time");
    let check = |change: fn(&mut NodeStatus), expected: bool| {
        let mut node = profile().node(now);
        change(node.status.as_mut().expect("a status"));
        assert_eq!(profile().is_shown(&node, &Findings::default()), expected);
    };
    check(|_| {}, true);
    check(
        |status| {
            let capacity = status.capacity.get_or_insert_default();
            capacity.insert("example.com/gpu".to_owned(), Quantity("1".to_owned()));
            let frozen = NodeCondition { type_: "Frozen".to_owned(), ..NodeCondition::default() };
            status.conditions.get_or_insert_default().push(frozen);
        },
        true,
    );
    check(|status| status.conditions.as_mut().expect("some")[3].status = "Unknown".into(), false);
    check(|status| drop(status.conditions.as_mut().expect("some").pop()), false);
    check(|status| status.addresses = None, false);
    check(|status| drop(status.allocatable.as_mut().expect("some").remove("cpu")), false);
    check(
        |status| {
            let capacity = status.capacity.get_or_insert_default();
            capacity.insert("cpu".to_owned(), Quantity("999".to_owned()));
        },
        false,
    );
    check(|status| status.node_info.as_mut().expect("some").kubelet_version = "v1".into(), false);
}

#[test]
fn a_node_shows_the_images_that_it_has() {
    let now = Timestamp::from_second(100).expect("a time");
    let image = ContainerImage { names: Some(vec!["i:1".to_owned()]), size_bytes: Some(7) };
    let found = Findings { images: vec![image], trouble: None };
    let mut node = profile().node(now);
    assert!(!profile().is_shown(&node, &found));
    node.status = Some(profile().status(&[], &found, now));
    assert!(profile().is_shown(&node, &found));
    // Nobody knows which there are: what was known stays.
    assert!(profile().is_shown(&node, &Findings::default()));
}

#[test]
fn a_node_that_can_run_nothing_says_why() {
    let at = |second| Timestamp::from_second(second).expect("a time");
    let well = profile().node(at(100));
    let trouble = Some("container runtime is down".to_owned());
    let found = Findings { trouble, ..Findings::default() };
    assert!(!profile().is_shown(&well, &found));
    let old = well.status.and_then(|status| status.conditions).expect("conditions");
    let new = profile().status(&old, &found, at(160)).conditions.expect("conditions");
    assert_eq!(told(&new[2..])[0], "PIDPressure=False since 100, heard 160");
    assert_eq!(told(&new[3..]), ["Ready=False since 160, heard 160"]);
    let (reason, message) = (new[3].reason.as_deref(), new[3].message.as_deref());
    assert_eq!(reason, Some("KubeletNotReady"));
    assert_eq!(message, Some("container runtime is down"));
}

#[test]
fn a_node_has_the_labels_that_all_nodes_have() {
    let labels = profile().labels();
    assert_eq!(labels["kubernetes.io/hostname"], "n1");
    assert_eq!(labels["zone"], "a");
    assert_eq!(labels["kubernetes.io/os"], labels["beta.kubernetes.io/os"]);
}

#[test]
fn a_machine_is_described_by_its_files() {
    assert_eq!(machine::memory("MemTotal:       8131544 kB\nMemFree: 1 kB\n"), "8131544Ki");
    assert_eq!(machine::memory(""), "0");
    assert_eq!(machine::os_image("NAME=x\nPRETTY_NAME=\"Debian 12\"\n"), "Debian 12");
}
