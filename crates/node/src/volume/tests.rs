use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use k8s_openapi::api::core::v1::{Pod, Volume};
use kubewright_apimachinery::yaml;
use serde::de::DeserializeOwned;

use super::*;
use crate::environment::Sources;

fn read<T: DeserializeOwned>(text: &str) -> T {
    let value = yaml::decode(text).unwrap_or_else(|error| panic!("{error}")).value;
    serde_json::from_value(value).unwrap_or_else(|error| panic!("{error}"))
}

fn check(volume: &str, expected: &str) {
    let pod: Pod = read("metadata: {name: p, namespace: d, labels: {a: b}}");
    let mut sources = Sources::default();
    let map = read("metadata: {name: m}\ndata: {one: '1', two: '2'}\nbinaryData: {raw: AQI=}");
    sources.config_maps.insert("m".to_owned(), map);
    let volume: Volume = read(&format!("{{name: v, {volume}}}"));
    let tokens = BTreeMap::from([("v/token".to_owned(), "secret".to_owned())]);
    let told = match content(&pod, &volume, &sources, &tokens) {
        Ok(Contents::Files(files)) => {
            let files = files.iter().map(|(path, File { bytes, mode })| {
                format!("{path}={} {mode:o}", String::from_utf8_lossy(bytes).escape_debug())
            });
            files.collect::<Vec<_>>().join(", ")
        }
        Ok(other) => format!("{other:?}"),
        Err(error) => error.to_string(),
    };
    assert_eq!(told, expected);
}

#[test]
fn a_volume_holds_what_it_is_made_of() {
    check("emptyDir: {}", "Empty");
    check(
        "hostPath: {path: /x, type: DirectoryOrCreate}",
        "Host { path: \"/x\", type_: \"DirectoryOrCreate\" }",
    );
    check("persistentVolumeClaim: {claimName: c}", "Claim(\"c\")");
    check("ephemeral: {volumeClaimTemplate: {spec: {}}}", "Claim(\"p-v\")");
    check("configMap: {name: m}", "one=1 644, raw=\\u{1}\\u{2} 644, two=2 644");
    check(
        "configMap: {name: m, defaultMode: 256, items: [{key: two, path: a/b}, {key: one, path: c, mode: 511}]}",
        "a/b=2 400, c=1 777",
    );
    check("configMap: {name: none}", "configmap \"none\" not found");
    check("configMap: {name: none, optional: true}", "");
    check(
        "configMap: {name: m, items: [{key: 'no', path: x}]}",
        "references non-existent config key: no",
    );
    check(
        "projected: {sources: [{serviceAccountToken: {path: token}}, {downwardAPI: {items: \
         [{path: l, fieldRef: {fieldPath: metadata.labels}}]}}, {configMap: {name: m, items: \
         [{key: one, path: ca}]}}]}",
        "ca=1 644, l=a=\\\"b\\\" 644, token=secret 644",
    );
    check("nfs: {server: s, path: /}", "volumes of this kind are not supported by this runtime");
}

#[test]
fn a_path_of_the_machine_is_of_its_type_or_made_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    fs::write(path("file"), "").expect("a file");
    let _socket = std::os::unix::net::UnixListener::bind(path("socket")).expect("a socket");
    let check = |name: &str, type_: &str, expected: Option<&str>| {
        let path = if name.starts_with('/') { name.to_owned() } else { path(name) };
        let refused = meet(&path, type_).err().map(|error| error.to_string());
        let expected =
            expected.map(|what| format!("hostPath type check failed: {path} is not a {what}"));
        assert_eq!(refused, expected, "{path} as {type_:?}");
    };
    check("file", "File", None);
    check("file", "FileOrCreate", None);
    check("file", "Directory", Some("directory"));
    check("file", "DirectoryOrCreate", Some("directory"));
    check("none", "Directory", Some("directory"));
    check("none", "File", Some("file"));
    check("socket", "Socket", None);
    check("file", "Socket", Some("socket file"));
    check("/dev/null", "CharDevice", None);
    check("/dev/null", "BlockDevice", Some("block device"));
    check("file", "CharDevice", Some("character device"));
    check("made/below", "DirectoryOrCreate", None);
    check("made/below", "Directory", None);
    check("made/file", "FileOrCreate", None);
    check("made/file", "File", None);
    // Without a type the container runtime makes what is not there.
    check("whatever", "", None);
    check("whatever", "Directory", None);
    check("file", "", None);
    let refused = meet(&path("file"), "Other").expect_err("there is no such type").to_string();
    assert_eq!(refused, "Other is an invalid volume type");
}

#[test]
fn a_directory_changes_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("v");
    let file = |text: &str| File { bytes: text.as_bytes().to_vec(), mode: 0o600 };
    let first = Files::from([("a".to_owned(), file("1")), ("d/b".to_owned(), file("2"))]);
    write(&place, &first, "1").expect("it is written");
    let text = |path: &str| fs::read_to_string(place.join(path)).ok();
    assert_eq!(text("a").as_deref(), Some("1"));
    assert_eq!(text("d/b").as_deref(), Some("2"));
    let mode = fs::metadata(place.join("a")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = Files::from([("a".to_owned(), file("3"))]);
    write(&place, &second, "2").expect("it is written");
    assert_eq!(text("a").as_deref(), Some("3"));
    assert_eq!(text("d/b"), None);
    let left = fs::read_dir(&place).expect("it is there").count();
    assert_eq!(left, 3, "..data, its directory and a link");
    let outside = Files::from([("../x".to_owned(), file("4"))]);
    write(&place, &outside, "3").expect_err("it leads outside");
    assert_eq!(text("a").as_deref(), Some("3"));
}
