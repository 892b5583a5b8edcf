//! The bundle, by the rules of `operator-sdk bundle validate`.

use std::path::{Path, PathBuf};
use std::process::Command;

use kubewright_project::package::{self, olm};

use crate::package::pets;

#[test]
fn bundles_are_valid() {
    let Some(program) = build() else { return };
    let place = tempfile::tempdir().expect("a folder");
    let icon = Some(("image/svg+xml".to_owned(), olm::base64(b"<svg/>")));
    let options = olm::Options { icon, ..olm::Options::default() };
    let folder = place.path().join("olm");
    let judge = |files: &package::Files| {
        package::write(files, &folder).expect("written");
        let output = Command::new(&program).arg(folder.join("bundle")).output();
        let output = output.expect("the program runs");
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let model = pets();
    let mut files = olm::bundle(&model, &options).expect("a bundle");
    let (is_valid, told) = judge(&files);
    assert!(is_valid && !told.contains("error:"), "{told}");

    // So that silence means something.
    files.remove(Path::new("bundle/manifests/pets.example.com.yaml"));
    let (is_valid, told) = judge(&files);
    assert!(!is_valid && told.contains("not found in bundle"), "{told}");
}

/// The program, where there is Go with all that it is made of. Nothing is fetched here.
fn build() -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/olm");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bundle-rules");
    let build = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .env("GOPROXY", "off")
        .env("GOFLAGS", "-mod=readonly")
        .current_dir(&source)
        .output();
    match build {
        Ok(output) if output.status.success() => return Some(program),
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).into_owned();
            // What is not in the cache of modules cannot be had; anything else is our mistake.
            assert!(why.contains("module lookup disabled"), "{why}");
            eprintln!("skipped: `go mod download` in {} brings the modules", source.display());
        }
        Err(_) => eprintln!("skipped: there is no `go`"),
    }
    None
}
