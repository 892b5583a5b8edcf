//! The system's own classes, which no recording can try to make: they are there.

use serde_json::json;

use super::validate;

fn check(name: &str, value: i64, is_default: bool, expected: &[&str]) {
    let class = json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name},
        "value": value, "globalDefault": is_default,
    });
    let errors: Vec<String> = validate(&class).iter().map(ToString::to_string).collect();
    assert_eq!(errors, expected, "{name}");
}

#[test]
fn the_system_s_classes_are_what_they_are() {
    let reserved = "metadata.name: Forbidden: priority class names with 'system-' prefix are \
                    reserved for system use only. error:";
    check("system-node-critical", 2_000_001_000, false, &[]);
    check("system-cluster-critical", 2_000_000_000, false, &[]);
    let value = "value of system-node-critical PriorityClass must be 2000001000";
    check("system-node-critical", 1, false, &[&format!("{reserved} {value}")]);
    let default = "globalDefault of system-cluster-critical PriorityClass must be false";
    check("system-cluster-critical", 2_000_000_000, true, &[&format!("{reserved} {default}")]);
}
