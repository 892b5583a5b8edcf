//! Definitions of well-known projects: what is generated of them compiles, and keeps an object that
//! has every field.
//!
//! They come in the packages of these projects, as Go modules and as wheels of Python, so this needs
//! Go and pip, and is built by cargo: only if `KUBEWRIGHT_PROJECTS` is `all`, which the long lane has.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use kubewright_project::scaffold::{self, Init, Library, License};
use kubewright_project::{apply, definition, import};
use serde_json::{Map, Value, json};

/// What the project is called here, its module, and where its definitions are.
const PROJECTS: [(&str, &str, &str); 9] = [
    ("gateway_api", "sigs.k8s.io/gateway-api@v1.6.0", "config/crd/standard"),
    ("cert_manager", "github.com/cert-manager/cert-manager@v1.21.2", "deploy/crds"),
    ("keda", "github.com/kedacore/keda/v2@v2.21.0", "config/crd/bases"),
    (
        "prometheus",
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd",
    ),
    ("argo_cd", "github.com/argoproj/argo-cd/v3@v3.5.6", "manifests/crds"),
    ("istio", "istio.io/api@v1.31.1", "kubernetes"),
    ("cilium", "github.com/cilium/cilium@v1.20.2", "pkg/k8s/apis/cilium.io/client/crds/v2"),
    ("cluster_api", "sigs.k8s.io/cluster-api@v1.11.0", "config/crd/bases"),
    ("flux", "github.com/fluxcd/source-controller@v1.7.0", "config/crd/bases"),
];

/// The same of what is on PyPI.
const WHEELS: [(&str, &str, &str); 1] = [(
    "dask",
    "dask-kubernetes==2026.3.0",
    "dask_kubernetes/operator/deployment/helm/dask-kubernetes-operator/crds",
)];

/// What is larger has whole pods in it, several times. It is built apart, so that it can be tried
/// alone, and neither crate is too much for the compiler.
const DEFINITION_MAX: usize = 400_000;

fn is_large(definition: &Value) -> bool {
    definition.to_string().len() > DEFINITION_MAX
}

#[test]
fn types_of_well_known_kinds_compile_and_keep_every_field() {
    check("imports", |definition| !is_large(definition));
}

#[test]
fn types_of_large_well_known_kinds_do_so_too() {
    check("large-imports", is_large);
}

/// Builds a project with types of the definitions that are meant, and holds each against an object.
fn check(package: &str, is_meant: impl Fn(&Value) -> bool) {
    if std::env::var("KUBEWRIGHT_PROJECTS").as_deref() != Ok("all") {
        eprintln!("skipped: set KUBEWRIGHT_PROJECTS to `all` to import well-known kinds");
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let folders = modules(place.path()).into_iter().chain(wheels(place.path()));
    let root = place.path().join(package);
    begin(&root, package);
    let mut library = String::new();
    let mut tests = KEEP.to_owned();
    let library_name = package.replace('-', "_");
    for ((name, _, definitions), folder) in PROJECTS.iter().chain(&WHEELS).zip(folders) {
        let mut modules = String::new();
        for source in definitions_in(&folder.join(definitions)).into_iter().filter(&is_meant) {
            let module = import::module_name(&source);
            let text = import::generate(&source, &import::Options::default()).expect("generated");
            for (path, kind, version) in kinds(&text) {
                let sample = format!("{name}-{module}-{version}.json");
                let object = sample_of(&source, &version);
                fs::write(root.join("tests").join(&sample), object.to_string()).expect("written");
                let path = format!("{library_name}::{name}::{module}{path}::{kind}");
                let test = format!("{name}_{module}_{version}");
                tests += &format!(
                    "#[test]\nfn {test}() {{\n    keep::<{path}>(include_str!({sample:?}));\n}}\n"
                );
            }
            write(&root.join("src").join(name).join(format!("{module}.rs")), &text);
            modules += &format!("pub mod {module};\n");
        }
        if !modules.is_empty() {
            library += &format!("pub mod {name};\n");
            write(&root.join("src").join(format!("{name}.rs")), &modules);
        }
    }
    write(&root.join("src/lib.rs"), &library);
    write(&root.join("tests/it.rs"), &tests);
    let count = tests.matches("#[test]").count();
    let text = crate::guestbook::cargo_test(&root);
    assert!(text.contains(&format!("test result: ok. {count} passed")), "{text}");
    eprintln!("{count} versions of kinds compile and keep every field");
}

/// What tests of imported kinds have in common.
const KEEP: &str = "\
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

fn keep<K: DeserializeOwned + Serialize + kube::Resource<DynamicType = ()>>(text: &str) {
    let object: Value = serde_json::from_str(text).expect(\"JSON\");
    let read: K = serde_json::from_str(text).unwrap_or_else(|error| {
        panic!(\"{error}: {}\", text.chars().skip(error.column().saturating_sub(200)).take(300).collect::<String>())
    });
    assert_eq!(K::api_version(&()), object[\"apiVersion\"].as_str().expect(\"a version\"));
    compare(\"\", &object, &serde_json::to_value(&read).expect(\"it is written\"));
}

/// Says where two values differ.
fn compare(path: &str, left: &Value, right: &Value) {
    match (left, right) {
        (Value::Object(left), Value::Object(right)) => {
            let keys: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
            for key in keys {
                let missing = Value::from(\"(missing)\");
                let part = |it: &serde_json::Map<String, Value>| it.get(key).unwrap_or(&missing).clone();
                compare(&format!(\"{path}.{key}\"), &part(left), &part(right));
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            left.iter().zip(right).for_each(|(left, right)| compare(&format!(\"{path}[]\"), left, right));
        }
        (left, right) => assert_eq!(left, right, \"{path}\"),
    }
}

";

/// Where the modules of Go are on this machine.
fn modules(place: &Path) -> Vec<PathBuf> {
    let modules = PROJECTS.map(|(_, module, _)| module);
    let mut go = Command::new("go");
    go.args(["mod", "download", "-json"]).args(modules).current_dir(place);
    let output = go.output().expect("Go is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let told: Vec<Value> = serde_json::Deserializer::from_str(&text)
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("Go prints JSON");
    let folder = |module: &str| {
        let (path, version) = module.split_once('@').expect("a version");
        let found = told.iter().find(|it| it["Path"] == path && it["Version"] == version);
        PathBuf::from(found.and_then(|it| it["Dir"].as_str()).expect("a folder"))
    };
    modules.map(folder).to_vec()
}

/// Where the wheels of Python are, each in a folder of its own: they are archives.
fn wheels(place: &Path) -> Vec<PathBuf> {
    let folder = |(name, package, _): (&str, &str, &str)| {
        let folder = place.join("wheels").join(name);
        let python = |words: &[&str], path: &Path| {
            let output = Command::new("python3").args(words).arg(path).output();
            let output = output.expect("Python is installed");
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        };
        let download = ["-m", "pip", "download", "--quiet", "--no-deps", package, "--dest"];
        python(&download, &folder);
        let entries = fs::read_dir(&folder).expect("a folder");
        let wheel = entries.map(|it| it.expect("an entry").path()).next().expect("a wheel");
        python(&["-m", "zipfile", "-e", wheel.to_str().expect("a path")], &folder);
        folder
    };
    WHEELS.map(folder).to_vec()
}

/// A project that has what generated types need.
fn begin(root: &Path, package: &str) {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("a folder");
    let wanted = Init {
        name: package.to_owned(),
        domain: "my.domain".to_owned(),
        repository: None,
        license: License::None,
        owner: None,
        namespaced: false,
        library: Library::Path(crates),
    };
    fs::create_dir_all(root).expect("a folder");
    apply(root, &scaffold::init(root, &wanted).expect("a plan")).expect("applied");
    for unused in ["src/main.rs", "tests/it/main.rs"] {
        fs::remove_file(root.join(unused)).expect("removed");
    }
    fs::remove_dir(root.join("tests/it")).expect("removed");
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("written");
}

/// The definitions in the files of a folder, in order.
fn definitions_in(folder: &Path) -> Vec<Value> {
    let files = fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("a file").path()).collect();
    files.retain(|file| file.extension().is_some_and(|end| end == "yaml"));
    files.sort();
    // Beside definitions there is what uses them.
    let found = files.iter().filter_map(|file| definition::read(file).ok()).flatten();
    let definitions: Vec<_> = found.map(|source| source.definition).collect();
    assert!(!definitions.is_empty(), "{folder:?} has no definitions");
    definitions
}

/// The kinds in a generated source, each with the path of its module, and its version.
fn kinds(text: &str) -> Vec<(String, String, String)> {
    let mut kinds = Vec::new();
    let mut path = String::new();
    let mut kind = None;
    let mut lines = text.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("pub mod ").and_then(|it| it.strip_suffix(" {")) {
            path = format!("::{name}");
        }
        if let Some(name) =
            line.strip_prefix("impl Resource for ").and_then(|it| it.strip_suffix(" {"))
        {
            kind = Some(name.to_owned());
        }
        if line.starts_with("fn version(") {
            let version = lines.next().and_then(|it| it.split('"').nth(1)).expect("a version");
            let kind = kind.take().expect("the version of a kind");
            kinds.push((path.clone(), kind, version.to_owned()));
        }
    }
    assert!(!kinds.is_empty(), "{text}");
    kinds
}

/// An object with every field of a version.
fn sample_of(definition: &Value, version: &str) -> Value {
    let spec = &definition["spec"];
    let versions = spec["versions"].as_array().expect("versions");
    let found = versions.iter().find(|it| it["name"] == version).expect("the version");
    let mut object = full(&found["schema"]["openAPIV3Schema"]);
    let group = spec["group"].as_str().expect("a group");
    object["apiVersion"] = format!("{group}/{version}").into();
    object["kind"] = spec["names"]["kind"].clone();
    object["metadata"] = json!({"name": "sample", "labels": {"a": "b"}});
    object
}

/// A value with all that a schema allows; of what excludes each other, the first.
fn full(schema: &Value) -> Value {
    let is = |flag: &str| schema[flag] == true;
    if let Some(first) = schema["enum"].as_array().and_then(|values| values.first()) {
        return first.clone();
    }
    if is("x-kubernetes-int-or-string") {
        return json!("1");
    }
    match schema["type"].as_str() {
        Some("array") => json!([full(&schema["items"])]),
        Some("boolean") => json!(true),
        Some("integer") => json!(3),
        Some("number") => json!(1.5),
        Some("string") => match schema["format"].as_str() {
            Some("date-time") => json!("2030-01-01T00:00:00Z"),
            Some("byte") => json!("YWJj"),
            _ => json!("text"),
        },
        Some("object") => object(schema),
        _ => json!({"anything": [1, "two"]}),
    }
}

fn object(schema: &Value) -> Value {
    let mut fields = Map::new();
    if schema["x-kubernetes-embedded-resource"] == true {
        let resource = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "a"}});
        fields.extend(resource.as_object().cloned().unwrap_or_default());
    }
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let excluded = excluded(schema, properties);
    for (name, property) in properties {
        if !excluded.contains(&name.as_str()) {
            fields.entry(name.clone()).or_insert_with(|| full(property));
        }
    }
    match &schema["additionalProperties"] {
        Value::Object(each) => {
            fields.insert("key".to_owned(), full(&Value::Object(each.clone())));
        }
        Value::Bool(true) => {
            fields.insert("key".to_owned(), json!("value"));
        }
        _ if schema["x-kubernetes-preserve-unknown-fields"] == true => {
            fields.insert("unknown".to_owned(), json!({"deep": [1, "two"]}));
        }
        _ => {}
    }
    Value::Object(fields)
}

/// Fields that are left out because another one is there.
fn excluded<'a>(schema: &'a Value, properties: &'a Map<String, Value>) -> Vec<&'a str> {
    let names: Vec<&str> = properties.keys().map(String::as_str).collect();
    if schema["maxProperties"] == 1 {
        return names.into_iter().skip(1).collect();
    }
    let branches = schema["oneOf"].as_array().map(Vec::as_slice).unwrap_or_default();
    let required = |branch: &'a Value| {
        branch["required"].as_array().into_iter().flatten().filter_map(Value::as_str)
    };
    let chosen: BTreeMap<&str, ()> =
        branches.iter().flat_map(required).take(1).map(|name| (name, ())).collect();
    let others = branches.iter().flat_map(required);
    others.filter(|name| !chosen.contains_key(name)).collect()
}
