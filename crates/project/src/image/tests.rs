//! Images by value.

use std::path::Path;

use super::*;

fn contents() -> Contents {
    Contents {
        architecture: "amd64".to_owned(),
        layers: vec![surroundings(), vec![File::new("pets", 0o555, b"a program".to_vec())]],
        entrypoint: vec!["/pets".to_owned()],
        labels: vec![("org.opencontainers.image.version".to_owned(), "1".to_owned())],
    }
}

fn alone(image: &Image) -> Index {
    Index::of(vec![image.clone()]).expect("one image")
}

fn reference() -> Reference {
    "registry.example.com/team/pets:1".parse().expect("a name")
}

#[test]
fn equal_contents_give_equal_bytes() {
    let (one, two) = (Image::of(&contents()), Image::of(&contents()));
    let archive = |image: &Image| archive::write(&alone(image), &reference());
    assert_eq!(archive(&one), archive(&two));
    let mut other = contents();
    other.layers[1][0].bytes = Some(b"another".to_vec());
    let other = Image::of(&other);
    assert_ne!(one.manifest.digest, other.manifest.digest);
    assert_eq!(one.layers[0], other.layers[0], "what stays the same is sent once");
}

#[test]
fn an_archive_is_read_as_it_was_written() {
    let image = alone(&Image::of(&contents()));
    let bytes = archive::write(&image, &reference());
    let (read, name) = archive::read(&bytes).expect("it is an image");
    assert_eq!(read, image);
    assert_eq!(name.as_deref(), Some("registry.example.com/team/pets:1"));
    let mut damaged = bytes.clone();
    let at = bytes.windows(7).position(|it| it == b"\"User\":").expect("the configuration");
    damaged[at + 1] = b'u';
    let error = archive::read(&damaged).expect_err("it is damaged");
    assert!(matches!(error, archive::ArchiveError::Damaged { .. }), "{error}");
    archive::read(b"#!/bin/sh").expect_err("it is no archive");
}

/// What is the same on all of them is there once.
#[test]
fn a_name_leads_to_an_image_for_each_machine() {
    let of = |architecture: &str| {
        Image::of(&Contents { architecture: architecture.to_owned(), ..contents() })
    };
    let images = |all: &[&str]| Index::of(all.iter().map(|it| of(it)).collect());
    let both = images(&["arm64", "amd64"]).expect("two images");
    assert_eq!(Some(&both), images(&["amd64", "arm64"]).ok().as_ref());
    // Two layers that are equal, a configuration for each.
    assert_eq!((both.blobs().count(), both.manifests().count()), (2 + 2, 2));
    let list: Value = serde_json::from_slice(&both.root().bytes).expect("JSON");
    assert_eq!(list["mediaType"], both.root().media_type);
    let machines = ["amd64", "arm64"];
    for (machine, manifest) in machines.iter().zip(list["manifests"].as_array().expect("a list")) {
        let platform = json!({"architecture": machine, "os": "linux"});
        assert_eq!(manifest["platform"], platform);
        assert_eq!(manifest["digest"], of(machine).manifest.digest);
    }
    let archive = archive::write(&both, &reference());
    assert_eq!(archive::read(&archive).expect("images").0, both);

    let twice = images(&["arm64", "arm64"]).expect_err("which of them");
    assert_eq!(twice, IndexError::Twice("arm64".to_owned()));
    assert_eq!(images(&[]), Err(IndexError::Empty));
    // One image needs no list.
    assert_eq!(alone(&of("arm64")).root(), &of("arm64").manifest);
}

/// By a program that has read many archives.
#[test]
fn tar_reads_what_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image.tar");
    std::fs::write(&path, archive::write(&alone(&Image::of(&contents())), &reference()))
        .expect("written");
    let Ok(output) = std::process::Command::new("tar").arg("-tvf").arg(&path).output() else {
        eprintln!("skipped: there is no `tar`");
        return;
    };
    let listed = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    for name in ["oci-layout", "index.json", "manifest.json", "blobs/sha256/"] {
        assert!(listed.contains(name), "{listed}");
    }
}

#[test]
fn names_of_images_are_understood() {
    let check = |name: &str, expected: &str| {
        assert_eq!(name.parse::<Reference>().expect(name).to_string(), expected);
    };
    check("pets", "docker.io/library/pets:latest");
    check("team/pets:1", "docker.io/team/pets:1");
    check("localhost:5000/pets", "localhost:5000/pets:latest");
    check("r.example.com/a/b:v1.0-rc", "r.example.com/a/b:v1.0-rc");
    for name in ["", "Pets", "pets:", "pets@sha256:00", "a//b", "pets:a b"] {
        name.parse::<Reference>().expect_err(name);
        check_image(name).expect_err(name);
    }
    let digest = format!("sha256:{}", "0a".repeat(32));
    for name in ["pets", "r:5000/a/pets:1", &format!("pets@{digest}"), &format!("a/b:1@{digest}")] {
        check_image(name).expect(name);
    }
    check_image(&format!("Pets@{digest}")).expect_err("a capital letter");
}

#[test]
fn a_program_says_what_it_is() {
    let this = std::env::current_exe().expect("this program");
    let bytes = std::fs::read(&this).expect("read");
    let elf = Elf::parse(&bytes).expect("it runs here");
    assert!(["amd64", "arm64"].contains(&elf.architecture));
    assert_eq!(Elf::parse(b"#!/bin/sh"), Err(ElfError::Format));
    for length in 0..bytes.len().min(2000) {
        // Whatever is cut off, it ends in an answer.
        let _ = Elf::parse(&bytes[..length]);
    }
    if elf.interpreter.is_some() {
        let error = program::read(&this, false).expect_err("it needs others");
        assert!(error.to_string().contains("rustup target add"), "{error}");
        program::read(&this, true).expect("it is taken if somebody says so");
    }
    program::read(Path::new("/nonexistent"), false).expect_err("there is none");
}

#[test]
fn musl_is_chosen_where_there_is_musl() {
    use program::Linkage;
    let musl = "x86_64-unknown-linux-musl".to_owned();
    let gnu = "x86_64-unknown-linux-gnu".to_owned();
    let choose = |given, installed: &[String]| Linkage::choose(given, installed, "x86_64");
    assert_eq!(choose(None, &[gnu.clone(), musl.clone()]), Linkage::Musl { target: musl });
    assert_eq!(choose(None, &[]), Linkage::Gnu { target: gnu });
    assert!(matches!(choose(Some("x"), &[]), Linkage::Given { .. }));
    // Also for another machine it is to need no other.
    let other = "aarch64-unknown-linux-gnu";
    assert_eq!(choose(Some(other), &[]), Linkage::Gnu { target: other.to_owned() });
}

#[test]
fn flags_of_the_caller_stay_and_folders_may_have_spaces() {
    use program::{Linkage, flags};
    let target = || "x".to_owned();
    let (musl, gnu) = (Linkage::Musl { target: target() }, Linkage::Gnu { target: target() });
    let home = Path::new("/code of ann/pets");
    let remap = "--remap-path-prefix=/code of ann/pets=/src";
    let check = |given: &[(&str, &str)], linkage: &Linkage, expected: &[&str]| {
        let given = |name: &str| {
            let found = given.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let flags = flags(given, linkage, home);
        assert_eq!(flags.split('\u{1f}').collect::<Vec<_>>(), expected);
    };
    check(&[], &musl, &[remap]);
    check(&[], &gnu, &["-C", "target-feature=+crt-static", remap]);
    let plain = ("RUSTFLAGS", " -C  debuginfo=1 ");
    check(&[plain], &musl, &["-C", "debuginfo=1", remap]);
    let encoded = ("CARGO_ENCODED_RUSTFLAGS", "--cfg\u{1f}a=\"b c\"");
    check(&[encoded], &musl, &["--cfg", "a=\"b c\"", remap]);
    // As Cargo has it.
    check(&[plain, encoded], &musl, &["--cfg", "a=\"b c\"", remap]);
    check(&[plain, ("CARGO_ENCODED_RUSTFLAGS", "")], &musl, &[remap]);
    let libraries = "--remap-path-prefix=/users/ann/.cargo=/cargo";
    check(&[("HOME", "/users/ann")], &musl, &[libraries, remap]);
    let elsewhere = ("CARGO_HOME", "/var/cargo");
    let libraries = "--remap-path-prefix=/var/cargo=/cargo";
    check(&[("HOME", "/users/ann"), elsewhere], &musl, &[libraries, remap]);
}
