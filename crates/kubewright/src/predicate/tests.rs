use k8s_openapi::api::core::v1::ConfigMap;

use super::*;

fn map(version: &str, label: &str) -> ConfigMap {
    let mut map = ConfigMap::default();
    map.metadata.resource_version = Some(version.to_owned());
    map.metadata.labels.get_or_insert_default().insert("app".to_owned(), label.to_owned());
    map
}

#[test]
fn predicates_can_be_joined_and_turned_round() {
    let (labels, version) = (labels::<ConfigMap>, resource_version::<ConfigMap>);
    let check = |predicate: Predicate<ConfigMap>, expected: [bool; 3]| {
        let old = map("1", "a");
        let changes = [map("1", "a"), map("2", "a"), map("2", "b")];
        assert_eq!(changes.map(|new| predicate.holds(&old, &new)), expected);
    };
    check(version(), [false, true, true]);
    check(labels(), [false, false, true]);
    check(version().and(labels()), [false, false, true]);
    check(version().or(labels()), [false, true, true]);
    check(!labels(), [true, true, false]);
    check(version().and(!labels()), [false, true, false]);
}
