//! Whatever is read as YAML reads the same once written.

#![no_main]

use kubewright_apimachinery::{json, yaml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &str| {
    let _ = yaml::documents(input);
    let Ok(decoded) = yaml::decode(input) else { return };
    let text = yaml::to_string(&decoded.value);
    let mut again = yaml::decode(&text).expect("what was written is YAML").value;
    let mut value = decoded.value;
    json::sort_keys(&mut again);
    json::sort_keys(&mut value);
    assert_eq!(json::to_string(&again), json::to_string(&value), "{text}");
});
