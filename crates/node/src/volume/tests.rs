use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
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
            let files = files.iter().map(|(path, File { bytes, mode, .. })| {
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
    check("emptyDir: {}", "Empty { medium: \"\" }");
    check("emptyDir: {medium: Memory}", "Empty { medium: \"Memory\" }");
    check(
        "hostPath: {path: /x, type: DirectoryOrCreate}",
        "Host { path: \"/x\", type_: \"DirectoryOrCreate\" }",
    );
    check("persistentVolumeClaim: {claimName: c}", "Claim { name: \"c\", is_own: false }");
    check("ephemeral: {volumeClaimTemplate: {spec: {}}}", "Claim { name: \"p-v\", is_own: true }");
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
    let file = |text: &str| File { bytes: text.as_bytes().to_vec(), mode: 0o600, owner: None };
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

/// A container put a link there that led to a directory of the machine, and the next change of the
/// volume removed that directory, as root (CVE-2017-1002102).
#[test]
fn a_link_of_somebody_else_is_neither_read_nor_followed() {
    let directory = tempfile::tempdir().expect("a directory");
    let (place, victim) = (directory.path().join("v"), directory.path().join("victim"));
    let files = |text: &str| {
        Files::from([(
            "a".to_owned(),
            File { bytes: text.as_bytes().to_vec(), mode: 0o600, owner: None },
        )])
    };
    let hostile = |target: &str| {
        fs::remove_file(place.join("..data")).expect("it was there");
        std::os::unix::fs::symlink(target, place.join("..data")).expect("a link");
    };
    write(&place, &files("0"), "10").expect("it is written");
    for (number, target) in
        ["../victim", &victim.to_string_lossy(), "..", "..11/../../victim"].into_iter().enumerate()
    {
        fs::create_dir_all(&victim).expect("a directory");
        fs::write(victim.join("a"), "1").expect("a file");
        hostile(target);
        // It holds what is wanted, but not here.
        write(&place, &files("1"), &format!("2{number}")).expect("it is written");
        assert_eq!(fs::read_to_string(victim.join("a")).expect("it is there"), "1", "{target}");
        let current = fs::read_link(place.join("..data")).expect("a link");
        assert_eq!(current.to_string_lossy(), format!("..2{number}"));
    }
    // The directory itself may be a link.
    std::os::unix::fs::symlink(&victim, place.join("..99")).expect("a link");
    hostile("..99");
    write(&place, &files("2"), "30").expect("it is written");
    assert_eq!(fs::read_to_string(victim.join("a")).expect("it is there"), "1");
    assert_eq!(fs::read_to_string(place.join("a")).expect("it is there"), "2");
}

#[test]
fn places_of_mounts_are_read_as_the_kernel_writes_them() {
    let mountinfo = "24 1 0:22 / /proc rw - proc proc rw\n\
                     30 24 8:1 /a /with\\040blank\\134and\\011tab rw shared:1 - ext4 /dev/a rw\n";
    let expected = ["/proc", "/with blank\\and\ttab"].map(std::path::PathBuf::from);
    assert_eq!(mount::mounts(mountinfo), expected);
}

#[test]
fn a_part_of_a_volume_is_made_and_is_never_outside() {
    let directory = tempfile::tempdir().expect("a directory");
    let (volume, outside) = (directory.path().join("v"), directory.path().join("outside"));
    make(&volume, None).expect("it is made");
    fs::create_dir(&outside).expect("a directory");
    fs::write(volume.join("file"), "text").expect("a file");
    let link = |target: &str, name: &str| {
        std::os::unix::fs::symlink(target, volume.join(name)).expect("a link");
    };
    link("one", "within");
    link("../outside", "out");
    link(&outside.to_string_lossy(), "far");
    link("nowhere", "dangling");
    let check = |path: &str, expected: Option<&str>| {
        let found = part(&volume, path).ok().map(|part| part.path);
        assert_eq!(found, expected.map(|it| volume.join(it)), "{path}");
    };
    check("one/two", Some("one/two"));
    check("within/./three", Some("one/three"));
    check("file", Some("file"));
    for path in ["out", "out/made", "far", "far/made", "dangling/x", "../outside", "/etc"] {
        check(path, None);
    }
    assert_eq!(fs::read_dir(&outside).expect("it is there").count(), 0);
    let mode = fs::metadata(volume.join("one/two")).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o777, "as the volume is");
    assert_eq!(super::read(&volume, "file").expect("it is read"), "text");
    super::read(&volume, "out/x").expect_err("it leads outside");
}

/// Runs a test again where it may mount; in there it is `true`. Says so if that is not to be had.
fn may_mount(name: &str) -> bool {
    let in_namespace = "KUBEWRIGHT_TEST_MOUNTS";
    if std::env::var_os(in_namespace).is_some() {
        return true;
    }
    let output = std::process::Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount"])
        .arg(std::env::current_exe().expect("this program"))
        .args([&format!("volume::tests::{name}"), "--exact", "--nocapture"])
        .env(in_namespace, "1")
        .output();
    let told = match &output {
        Ok(output) if output.status.success() => {
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(told.contains("1 passed"), "{told}");
            return false;
        }
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(error) => format!("unshare: {error}"),
    };
    assert!(told.starts_with("unshare: "), "{told}");
    eprintln!("skipped: there is no mount namespace to be had: {told}");
    false
}

/// What a sibling does while a container is made (CVE-2017-1002101): the directory that was looked
/// at is replaced by a link that leads out of the volume.
#[test]
fn a_part_stays_what_it_was_when_a_link_takes_its_name() {
    if !may_mount("a_part_stays_what_it_was_when_a_link_takes_its_name") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    make(&at("v"), None).expect("it is made");
    fs::create_dir_all(at("v/data/deep")).expect("a directory");
    fs::write(at("v/data/deep/whose"), "the volume's").expect("a file");
    fs::create_dir_all(at("host/deep")).expect("a directory");
    fs::write(at("host/deep/whose"), "the machine's").expect("a file");
    let found = part(&at("v"), "data/deep").expect("it is there");
    fs::rename(at("v/data"), at("v/away")).expect("it is renamed");
    std::os::unix::fs::symlink(at("host"), at("v/data")).expect("a link");
    for _ in 0..2 {
        found.bind(&at("pod/parts/c/0")).expect("it is mounted, also where something is already");
        let whose = fs::read_to_string(at("pod/parts/c/0/whose")).expect("it is there");
        assert_eq!(whose, "the volume's");
    }
    // Looked for again it is refused.
    assert!(part(&at("v"), "data/deep").is_err());
    let file = part(&at("v"), "away/deep/whose").expect("it is there");
    file.bind(&at("pod/parts/c/0")).expect("a file takes the place of a directory");
    remove(&at("pod")).expect("it is removed");
    assert!(!at("pod").exists());
    let kept = fs::read_to_string(at("v/away/deep/whose")).expect("what was mounted stays");
    assert_eq!(kept, "the volume's");
}

/// A part of a disk shows what is mounted on the disk later, be it another pod's: undone with the
/// part, that was undone on the disk, too.
#[test]
fn what_is_mounted_in_a_volume_outlives_its_parts() {
    if !may_mount("what_is_mounted_in_a_volume_outlives_its_parts") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    fs::create_dir_all(at("disk")).expect("a directory");
    keep_in_memory(&at("disk"), 1 << 20, "mode=755").expect("it is mounted");
    // As all that is mounted on machines with systemd.
    rustix::mount::mount_change(at("disk"), rustix::mount::MountPropagationFlags::SHARED)
        .expect("it is shared");
    fs::create_dir_all(at("disk/data/later")).expect("a directory");
    for container in ["c", "d"] {
        let found = part(&at("disk"), "data").expect("it is there");
        found.bind(&at(&format!("pod/parts/{container}/0"))).expect("it is mounted");
    }
    keep_in_memory(&at("disk/data/later"), 65536, "mode=755").expect("it is mounted");
    fs::write(at("disk/data/later/file"), "kept").expect("a file");
    assert!(at("pod/parts/c/0/later/file").exists(), "it is seen in the part");
    remove(&at("pod")).expect("it is removed");
    assert_eq!(fs::read_to_string(at("disk/data/later/file")).expect("it is there"), "kept");
    remove(&at("disk")).expect("it is removed");
}

/// In a volume that can only be read, a runtime cannot make what another one is mounted at.
#[test]
fn volumes_in_others_have_a_place_there() {
    let pod: Pod = read(
        "{metadata: {name: p}, spec: {
           initContainers: [{name: i, volumeMounts: [
             {name: conf, mountPath: /etc/app}, {name: x, mountPath: /etc/app/first}]}],
           containers: [{name: c, volumeMounts: [
             {name: conf, mountPath: /etc/app/}, {name: cache, mountPath: /etc/app/a/cache},
             {name: deep, mountPath: /etc/app/a/cache/deep}, {name: z, mountPath: /etc/application}]},
             {name: d, volumeMounts: [
             {name: conf, mountPath: /conf/key, subPath: key}, {name: x, mountPath: /conf/key/no}]}]}}",
    );
    let places = super::nested(&pod, "conf");
    assert_eq!(places, ["a/cache", "first"].map(std::path::PathBuf::from));
    let directory = tempfile::tempdir().expect("a directory");
    let volume = directory.path().join("v");
    let text = || File { bytes: b"text".to_vec(), mode: 0o644, owner: None };
    let files = |name: &str| Files::from([(name.to_owned(), text())]);
    for (stamp, key) in [("1", "one"), ("2", "two")] {
        super::write(&volume, &files(key), stamp).expect("it is written");
        super::make_places(&volume, &places).expect("they are made, once");
        assert!(volume.join("a/cache").is_dir() && volume.join(key).exists());
    }
    assert!(!volume.join("one").exists());
    super::make_places(&volume, &["two/x".into()]).expect_err("a file is there");
}

/// Whatever claim a pod named was mounted, bound to it or not, and whosever it was.
#[test]
fn a_claim_is_the_pods_or_is_not_mounted() {
    let pod: Pod = read(
        "{metadata: {name: p, namespace: d, uid: pod-1}, spec: {containers: [
           {name: c, volumeMounts: [{name: data, mountPath: /data}]}]}}",
    );
    let check = |claim: &str, volume: &str, is_own: bool, expected: &str| {
        let claim = read(&format!("{{metadata: {{name: c, namespace: d, uid: u-1}}, {claim}}}"));
        let volume = read(&format!("{{metadata: {{name: v, {volume}}}"));
        let found = bound(&pod, &claim, is_own).and_then(|name| {
            assert_eq!(name, "v");
            backing(&pod, "data", &claim, &volume)
        });
        let told = found.map_or_else(|why| why, |backing| format!("{backing:?}"));
        assert_eq!(told, expected);
    };
    let claim = "spec: {volumeName: v}, status: {phase: Bound}";
    let volume = "}, spec: {claimRef: {uid: u-1}, local: {path: /disk}}";
    check(claim, volume, false, "Local { path: \"/disk\" }");
    check(
        claim,
        "}, spec: {claimRef: {uid: u-1}, hostPath: {path: /x, type: Directory}}",
        false,
        "Host { path: \"/x\", type_: \"Directory\" }",
    );
    check(
        claim,
        "annotations: {pv.kubernetes.io/provisioned-by: kubewright.dev/local-path}}, \
         spec: {claimRef: {uid: u-1}, hostPath: {path: /x, type: DirectoryOrCreate}}",
        false,
        "Provided { path: \"/x\" }",
    );
    check(
        claim,
        "}, spec: {claimRef: {uid: u-1}, nfs: {server: s, path: /}}",
        false,
        "volume \"v\" is not on this machine",
    );
    for phase in ["Pending", "Lost"] {
        check(
            &format!("spec: {{volumeName: v}}, status: {{phase: {phase}}}"),
            volume,
            false,
            "error processing PVC d/c: PVC is not bound",
        );
    }
    check(
        "status: {phase: Bound}",
        volume,
        false,
        "error processing PVC d/c: PVC has empty pvc.Spec.VolumeName",
    );
    check(
        claim,
        "}, spec: {local: {path: /disk}}",
        false,
        "error processing PVC d/c: found PV object v but it has a nil pv.Spec.ClaimRef indicating \
         it is not yet bound to the claim",
    );
    check(
        claim,
        "}, spec: {claimRef: {uid: u-2}, local: {path: /disk}}",
        false,
        "error processing PVC d/c: found PV object v but its pv.Spec.ClaimRef.UID u-2 does not \
         point to claim.UID u-1",
    );
    check(
        claim,
        "}, spec: {volumeMode: Block, claimRef: {uid: u-1}, local: {path: /dev/x}}",
        false,
        "volume data has volumeMode Block, but is specified in volumeMounts",
    );
    let none = "PVC d/c was not created for pod d/p (pod is not owner)";
    check(claim, volume, true, none);
    let own = |uid: &str, metadata: &str| -> PersistentVolumeClaim {
        read(&format!(
            "{{metadata: {{name: c, namespace: d, uid: u-1, {metadata} ownerReferences: [
               {{apiVersion: v1, kind: Pod, name: p, uid: {uid}, controller: true}}]}}, {claim}}}"
        ))
    };
    assert_eq!(bound(&pod, &own("pod-1", ""), true), Ok("v"));
    assert_eq!(bound(&pod, &own("pod-2", ""), true), Err(none.to_owned()));
    let deleted = "deletionTimestamp: '2026-01-01T00:00:00Z',";
    let gone = Err("error processing PVC d/c: PVC is being deleted".to_owned());
    assert_eq!(bound(&pod, &own("pod-1", deleted), true), gone);
    let kept = format!("{deleted} finalizers: [kubernetes.io/pvc-protection],");
    assert_eq!(bound(&pod, &own("pod-1", &kept), true), Ok("v"));
}

#[test]
fn a_disk_is_given_to_a_group_with_all_that_is_there() {
    let directory = tempfile::tempdir().expect("a directory");
    let (disk, outside) = (directory.path().join("disk"), directory.path().join("outside"));
    for place in [disk.join("deep"), outside.clone()] {
        fs::create_dir_all(place).expect("a directory");
    }
    fs::write(disk.join("deep/file"), "").expect("a file");
    fs::write(outside.join("file"), "").expect("a file");
    std::os::unix::fs::symlink(&outside, disk.join("link")).expect("a link");
    let mode = |place: &Path| fs::metadata(place).expect("it is there").mode() & 0o7777;
    for (place, bits) in [(disk.join("deep/file"), 0o600), (outside.join("file"), 0o600)] {
        fs::set_permissions(place, fs::Permissions::from_mode(bits)).expect("it is its owner's");
    }
    let before = mode(&outside);
    // A group that whoever runs this is in.
    let group = Some(fs::metadata(&disk).expect("it is there").gid());
    assert!(!is_given(&disk, group));
    give(&disk, group, WRITE).expect("it is given");
    assert!(is_given(&disk, group) && !is_given(&disk, group.map(|it| it + 1)));
    assert_eq!(mode(&disk.join("deep")) & 0o2770, 0o2770);
    assert_eq!(mode(&disk.join("deep/file")), 0o660);
    assert_eq!((mode(&outside), mode(&outside.join("file"))), (before, 0o600));
}

#[test]
fn a_directory_of_a_claim_is_everybodys() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("volumes/pvc-1");
    let text = path.to_string_lossy();
    make_for_all(&text).expect("it is made");
    let mode = || fs::metadata(&path).expect("it is there").mode() & 0o777;
    assert_eq!(mode(), 0o777);
    // Whoever has it may think otherwise.
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("it is ours");
    make_for_all(&text).expect("it is there");
    assert_eq!(mode(), 0o700);
}

#[test]
fn a_volume_is_taken_for_what_it_is() {
    let check = |containers: &str, mode: &str, expected: Option<&str>| {
        let pod: Pod = read(&format!("{{metadata: {{name: p}}, spec: {{{containers}}}}}"));
        let claim = read("metadata: {name: c, uid: u-1}");
        let volume = read(&format!(
            "{{metadata: {{name: v}}, spec: {{volumeMode: {mode}, claimRef: {{uid: u-1}}, \
             local: {{path: /x}}}}}}"
        ));
        let refused = backing(&pod, "data", &claim, &volume).err();
        assert_eq!(refused.as_deref(), expected);
    };
    let device = "containers: [{name: c, volumeDevices: [{name: data, devicePath: /dev/x}]}]";
    let why = "volume data has volumeMode Filesystem, but is specified in volumeDevices";
    check(device, "Filesystem", Some(why));
    check(device, "Block", Some("block devices are not supported by this runtime"));
    check("containers: [{name: c}]", "Filesystem", None);
}

/// A mount was shown as if nobody had asked for more.
#[test]
fn what_is_mounted_in_a_volume_is_not_made_read_only() {
    let check = |mount: &str, expected: Option<&str>| {
        let mount = read(&format!("{{name: v, mountPath: /v, {mount}}}"));
        assert_eq!(refuse_recursive(&mount).err().as_deref(), expected, "{mount:?}");
    };
    check("readOnly: false", None);
    check("readOnly: true, recursiveReadOnly: IfPossible", None);
    check(
        "readOnly: true, recursiveReadOnly: Enabled",
        Some(
            "volume \"v\" requested recursive read-only mode, but it is not supported by the runtime",
        ),
    );
    check(
        "recursiveReadOnly: Enabled",
        Some("volume \"v\" requested recursive read-only mode, but it is not read-only"),
    );
    check(
        "readOnly: true, recursiveReadOnly: Enabled, mountPropagation: HostToContainer",
        Some(
            "volume \"v\" requested recursive read-only mode, but it is not compatible with \
             propagation \"HostToContainer\"",
        ),
    );
}

/// Tokens were readable for everybody in a container, whoever it ran as.
#[test]
fn a_token_is_for_whom_the_pod_runs_as() {
    let check = |spec: &str, expected: (u32, Option<u32>)| {
        let pod: Pod = read(&format!("{{metadata: {{name: p}}, spec: {{{spec}}}}}"));
        let volume: Volume = read(
            "{name: v, projected: {defaultMode: 420, sources: [{serviceAccountToken: {path: t}}]}}",
        );
        let found = content(&pod, &volume, &Sources::default(), &BTreeMap::new());
        let Ok(Contents::Files(files)) = found else { panic!("it has files") };
        assert_eq!((files["t"].mode, files["t"].owner), expected, "{spec}");
    };
    let containers = "containers: [{name: a}, {name: b}]";
    check(containers, (0o644, None));
    check(&format!("securityContext: {{runAsUser: 7}}, {containers}"), (0o600, Some(7)));
    check(&format!("securityContext: {{fsGroup: 8}}, {containers}"), (0o600, None));
    let own = "containers: [{name: a, securityContext: {runAsUser: 7}},
                            {name: b, securityContext: {runAsUser: 9}}]";
    check(own, (0o644, None));
    let one = "containers: [{name: a, securityContext: {runAsUser: 7}}, {name: b}]";
    check(one, (0o644, None));
    check(&format!("securityContext: {{runAsUser: 7}}, {one}"), (0o600, Some(7)));
    let init = "initContainers: [{name: i, securityContext: {runAsUser: 1}}]";
    check(&format!("securityContext: {{runAsUser: 7}}, {init}, {one}"), (0o644, None));
}

#[test]
fn a_volume_in_memory_is_there_once_and_goes_with_its_pod() {
    if !may_mount("a_volume_in_memory_is_there_once_and_goes_with_its_pod") {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let (pod, place) = (directory.path().join("pod"), directory.path().join("pod/volumes/v"));
    let group = Some(rustix::process::getegid().as_raw());
    make_in_memory(&place, group, 65536).expect("it is mounted");
    let found = rustix::fs::statfs(&place).expect("it is there");
    // As the kernel numbers tmpfs.
    assert_eq!(found.f_type, 0x0102_1994);
    assert_eq!(found.f_blocks * u64::try_from(found.f_bsize).expect("a size"), 65536);
    assert_eq!(fs::metadata(&place).expect("it is there").mode() & 0o7777, 0o2777);
    // The next agent finds what is there.
    fs::write(place.join("file"), "kept").expect("it is writable");
    make_in_memory(&place, group, 65536).expect("it is there");
    assert_eq!(fs::read_to_string(place.join("file")).expect("it is there"), "kept");
    remove(&pod).expect("it is removed");
    assert!(!pod.exists());
    // Containers know a directory that has something in it.
    fs::create_dir_all(place.join("before")).expect("a directory");
    keep_in_memory(&place, 65536, "mode=755").expect("it is left alone");
    assert!(place.join("before").exists());
}

#[test]
fn a_volume_in_memory_holds_no_more_than_anybody_allows() {
    let check = |containers: &str, empty: &str, expected: i64| {
        let pod: Pod = read(&format!("{{metadata: {{name: p}}, spec: {{{containers}}}}}"));
        let volume: Volume = read(&format!("{{name: v, {empty}}}"));
        assert_eq!(memory_bytes(&pod, &volume, 1 << 30), expected, "{containers} {empty}");
    };
    let small = "emptyDir: {medium: Memory, sizeLimit: 1Mi}";
    check("containers: [{name: a}]", "emptyDir: {medium: Memory}", 1 << 30);
    check("containers: [{name: a}]", small, 1 << 20);
    check("containers: [{name: a}]", "emptyDir: {sizeLimit: 4Gi}", 1 << 30);
    let limited = "{name: a, resources: {limits: {memory: 64Ki}}}";
    check(&format!("containers: [{limited}]"), small, 64 << 10);
    check(&format!("containers: [{limited}, {{name: b}}]"), small, 1 << 20);
    check(
        &format!("resources: {{limits: {{memory: 128Ki}}}}, containers: [{limited}]"),
        "secret: {secretName: s}",
        128 << 10,
    );
    // Containers that run first may need more than the others, or may use what there is.
    let first = |container: &str| format!("initContainers: [{container}], containers: [{limited}]");
    check(&first("{name: i, resources: {limits: {memory: 128Ki}}}"), small, 128 << 10);
    check(&first("{name: i}"), small, 1 << 20);
    let lasting = "{name: i, restartPolicy: Always, resources: {limits: {memory: 32Ki}}}";
    check(&first(lasting), small, 96 << 10);
    check(&first(&format!("{lasting}, {{name: j}}")), small, 96 << 10);
}
