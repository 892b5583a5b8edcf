use serde_json::{Value, json};

use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).expect("a time")
}

/// A node that was made at second 0, and whose status says that it was heard of then.
fn node(heartbeat: Option<(i64, &str)>) -> Node {
    let conditions: Value = match heartbeat {
        Some((second, status)) => json!([{
            "type": "Ready", "status": status, "lastHeartbeatTime": at(second).to_string(),
        }]),
        None => json!([]),
    };
    let metadata = json!({ "name": "node", "creationTimestamp": at(0).to_string() });
    let node = json!({ "metadata": metadata, "status": { "conditions": conditions } });
    serde_json::from_value(node).expect("a node")
}

/// When a node is seen, what its status says, and when its lease was renewed.
type Sight<'a> = (i64, Option<(i64, &'a str)>, Option<i64>);

/// A node as it is seen at some seconds, with its lease; how long its silence is borne in the end.
#[track_caller]
fn check(seen: &[Sight<'_>], expected: Option<i64>) {
    let (mut pulse, mut health) = (None, None);
    for (now, heartbeat, lease) in seen {
        let node = node(*heartbeat);
        let next = Pulse::of(&node, lease.map(at), pulse, at(*now));
        health = Some(next.health(&node, at(*now)));
        pulse = Some(next);
    }
    let left = match health {
        Some(Health::Alive(left)) => Some(left.as_secs()),
        _ => None,
    };
    assert_eq!(left, expected);
}

#[test]
fn a_node_is_alive_while_its_status_or_its_lease_changes() {
    let ready = Some((1, "True"));
    check(&[(5, ready, None)], Some(50));
    check(&[(5, ready, None), (35, ready, None)], Some(20));
    check(&[(5, ready, None), (35, Some((30, "True")), None)], Some(50));
    check(&[(5, ready, Some(1)), (35, ready, Some(2))], Some(50));
    check(&[(5, ready, Some(1)), (35, ready, Some(1))], Some(20));
    check(&[(5, ready, None), (56, ready, None)], None);
}

#[test]
fn a_new_node_has_longer() {
    check(&[(20, None, None)], Some(40));
    check(&[(20, None, None), (61, None, None)], None);
    check(&[(20, None, None), (55, Some((50, "True")), None)], Some(50));
}

#[test]
fn what_is_not_heard_of_is_unknown() {
    let silent = node(Some((1, "True")));
    let pulse = Pulse::of(&silent, None, None, at(0));
    let Health::Falls(conditions) = pulse.health(&silent, at(51)) else { panic!("it is silent") };
    let unknown = |kind: &str, heartbeat: i64, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "Unknown", "reason": reason, "message": message,
            "lastHeartbeatTime": at(heartbeat).to_string(), "lastTransitionTime": at(51).to_string(),
        })
    };
    let never = |kind: &str| {
        unknown(kind, 0, "NodeStatusNeverUpdated", "Kubelet never posted node status.")
    };
    let expected = json!([
        unknown("Ready", 1, "NodeStatusUnknown", "Kubelet stopped posting node status."),
        never("MemoryPressure"),
        never("DiskPressure"),
        never("PIDPressure"),
    ]);
    assert_eq!(json!(conditions), expected);
    let mut fallen = silent;
    fallen.status.get_or_insert_default().conditions = Some(conditions);
    assert_eq!(pulse.health(&fallen, at(60)), Health::Silent);
}
