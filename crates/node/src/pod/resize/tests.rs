use kubewright_apimachinery::yaml;

use super::*;

fn pod(text: &str) -> Pod {
    let text = format!("metadata: {{name: p, generation: 3}}\n{text}");
    let value = yaml::decode(&text).unwrap_or_else(|error| panic!("{error}")).value;
    serde_json::from_value(value).expect("a pod")
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("a time")
}

fn rejection(message: &str) -> Rejection {
    Rejection { reason: "OutOfcpu".to_owned(), message: message.to_owned() }
}

/// What is allocated to a pod that asks for 2 processors and at most 4, when its status is this.
fn check_recalled(status: &str, expected: &str) {
    let spec =
        "spec: {containers: [{name: a, resources: {requests: {cpu: '2'}, limits: {cpu: '4'}}}]}";
    let pod = pod(&format!("{spec}\nstatus: {{{status}}}"));
    let own = Allocation::recalled(&pod);
    let text = |list: &Option<BTreeMap<String, Text>>| {
        let amount = list.as_ref().and_then(|list| list.get(CPU));
        amount.map_or("-".to_owned(), |amount| amount.0.clone())
    };
    let ResourceRequirements { requests, limits, .. } = &own.0["a"];
    assert_eq!(format!("{} to {}", text(requests), text(limits)), expected);
    assert_eq!(own.is_wanted(&pod), expected == "2 to 4");
    assert!(own.is_wanted(&own.applied(&pod)));
}

#[test]
fn what_was_allocated_is_told_by_status() {
    let shown = |allocated: &str| {
        format!(
            "containerStatuses: [{{name: a, image: '', imageID: '', ready: true, restartCount: 0,
               allocatedResources: {{cpu: '{allocated}'}},
               resources: {{requests: {{cpu: '1'}}, limits: {{cpu: '3'}}}}}}]"
        )
    };
    let conditions = |types: &[&str]| {
        let all = types.iter().map(|type_| format!("{{type: {type_}, status: 'True'}}"));
        format!("conditions: [{}]", all.collect::<Vec<_>>().join(", "))
    };
    // It has never run.
    check_recalled("phase: Pending", "2 to 4");
    // Somebody asked while no agent was there.
    check_recalled(&shown("1"), "1 to 3");
    check_recalled(&format!("{}, {}", shown("1"), conditions(&[PENDING])), "1 to 3");
    check_recalled(&format!("{}, {}", shown("2"), conditions(&[IN_PROGRESS])), "2 to 4");
    // One is being done, and the next is pending.
    let both = conditions(&[PENDING, IN_PROGRESS]);
    check_recalled(&format!("{}, {both}", shown("1500m")), "1500m to 3");
}

#[test]
fn amounts_are_the_same_however_they_are_written() {
    let of = |resources: &str| {
        let pod = pod(&format!("spec: {{containers: [{{name: a, resources: {resources}}}]}}"));
        Allocation::wanted(&pod).0.remove("a").expect("a container")
    };
    let same = |a: &str, b: &str| is_same(Some(&of(a)), Some(&of(b)));
    assert!(same("{requests: {cpu: '1'}}", "{requests: {cpu: 1000m}, limits: {}}"));
    assert!(!same("{requests: {cpu: '1'}}", "{limits: {cpu: '1'}}"));
    assert!(!same("{requests: {cpu: '1'}}", "{requests: {cpu: '1', memory: '0'}}"));
    assert!(is_same(None, Some(&of("{}"))));
}

#[test]
fn a_resize_that_waits_is_told_of_once() {
    let first = Pending::deferred(&rejection("used: 1"), 2, None, at(1));
    assert!(first.is_news(None));
    // Looked at again, and nothing has changed.
    assert_eq!(Pending::deferred(&rejection("used: 1"), 2, Some(&first), at(5)), first);
    // Another reason of the same kind shows, and is not said again.
    let other = Pending::deferred(&rejection("used: 2"), 2, Some(&first), at(7));
    assert!(!other.is_news(Some(&first)));
    let condition = other.condition();
    assert_eq!(condition.reason.as_deref(), Some("Deferred"));
    assert_eq!(condition.message.as_deref(), Some("used: 2"));
    assert_eq!(condition.observed_generation, Some(2));
    assert_eq!(condition.last_transition_time, Some(Time(at(1))));
    // Another wish is.
    let wish = Pending::deferred(&rejection("used: 2"), 3, Some(&other), at(9));
    assert!(wish.is_news(Some(&other)));
}

#[test]
fn a_resize_that_fails_keeps_its_generation() {
    let mut progress = Progress::begun(4, at(1));
    assert_eq!(progress.condition().reason, None);
    assert!(progress.fail("no", at(2)));
    assert!(!progress.fail("no", at(3)));
    assert!(progress.fail("never", at(4)));
    let condition = progress.condition();
    assert_eq!(condition.reason.as_deref(), Some("Error"));
    assert_eq!(condition.message.as_deref(), Some("never"));
    assert_eq!(condition.observed_generation, Some(4));
    assert_eq!(condition.last_transition_time, Some(Time(at(2))));
    let status = PodStatus { conditions: Some(vec![condition]), ..PodStatus::default() };
    assert_eq!(Progress::recalled(&status, at(9)), Some(progress));
}

#[test]
fn who_asks_for_less_or_matters_more_is_first() {
    let turn = |spec: &str, class: &str, has: &str, since: Option<i64>| {
        let of = |cpu: &str| {
            let resources = format!("resources: {{requests: {{cpu: '{cpu}'}}}}");
            let container = format!("containers: [{{name: a, {resources}}}]");
            pod(&format!("spec: {{{container}{spec}}}\nstatus: {{qosClass: {class}}}"))
        };
        let pending = since.map(|since| Pending::deferred(&rejection(""), 1, None, at(since)));
        let standing = Standing { allocated: None, pending };
        Turn::of(&of("2"), &Allocation::wanted(&of(has)), &standing)
    };
    let order = [
        turn("", "Burstable", "3", None),
        turn(", priority: 10", "Burstable", "1", None),
        turn("", "Guaranteed", "1", None),
        turn("", "Burstable", "1", Some(1)),
        turn("", "Burstable", "1", Some(2)),
        turn("", "Burstable", "1", None),
    ];
    assert!(order.is_sorted(), "{order:?}");
    assert_eq!(order.iter().collect::<std::collections::BTreeSet<_>>().len(), order.len());
}

#[test]
fn some_resources_need_another_process() {
    let wants = |cpu: &str, memory: &str| {
        let resources = format!("{{requests: {{cpu: '{cpu}'}}, limits: {{memory: {memory}}}}}");
        let policy = "[{resourceName: memory, restartPolicy: RestartContainer}, \
                       {resourceName: cpu, restartPolicy: NotRequired}]";
        let container = format!("{{name: a, resizePolicy: {policy}, resources: {resources}}}");
        pod(&format!("spec: {{containers: [{container}]}}"))
            .spec
            .expect("a spec")
            .containers
            .remove(0)
    };
    let before = wants("1", "64Mi");
    let needs = |after: &Container| {
        needs_restart(after, before.resources.as_ref(), after.resources.as_ref())
    };
    assert!(!needs(&wants("2", "64Mi")));
    assert!(needs(&wants("1", "128Mi")));
}

#[test]
fn events_say_what_a_resize_is_about() {
    let pod = pod("spec: {initContainers: [{name: i}], containers: [{name: a,
           resources: {requests: {cpu: 100m}, limits: {memory: 1Gi}}}]}");
    let note = |event: Event| {
        let told = format!("{event:?}");
        told.split("note: ").nth(1).unwrap_or_default().trim_end_matches(" }").replace('\\', "")
    };
    let about = "{\"initContainers\":[{\"name\":\"i\",\"resources\":{}}],\"containers\":[{\"name\":\"a\",\
                 \"resources\":{\"limits\":{\"memory\":\"1Gi\"},\"requests\":{\"cpu\":\"100m\"}}}]";
    assert_eq!(note(started(&pod)), format!("\"Pod resize started: {about},\"generation\":3}}\""));
    assert_eq!(
        note(deferred(&pod, &rejection("why"))),
        format!("\"Pod resize OutOfcpu: {about},\"generation\":3,\"error\":\"why\"}}\"")
    );
    assert_eq!(
        note(completed(&pod, 2)),
        format!("\"Pod resize completed: {about},\"generation\":2}}\"")
    );
    assert_eq!(
        note(failed(&pod, 2, "no")),
        format!("\"Pod resize error: {about},\"generation\":2,\"error\":\"no\"}}\"")
    );
}
