use super::archive::*;

/// A file with these contents, as `tar` makes it.
fn archive(files: &[(&str, &[u8])]) -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut tar = tar::Builder::new(file.reopen().expect("a file"));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append_data(&mut header, name, *bytes).expect("it is added");
    }
    tar.finish().expect("it is written");
    file
}

fn refused(files: &[(&str, &[u8])]) -> String {
    let file = archive(files);
    let opened = Archive::open(file.path()).expect("a tar file");
    match opened.images() {
        Err(ArchiveError::Wrong(why)) => why,
        other => panic!("it is not refused: {other:?}"),
    }
}

#[test]
fn what_docker_saves_is_read() {
    let manifest = br#"[{"Config":"c.json","RepoTags":["app:1"],"Layers":["l/layer.tar"]}]"#;
    let file =
        archive(&[("l/layer.tar", b"layer"), ("c.json", b"{}"), ("manifest.json", manifest)]);
    let images = Archive::open(file.path()).and_then(|it| it.images()).expect("an image");
    let [image] = images.as_slice() else { panic!("one image: {images:?}") };
    assert_eq!(image.names, ["docker.io/library/app:1"]);
    let sizes: Vec<u64> = image.blobs.iter().map(|blob| blob.size).collect();
    assert_eq!(sizes[..2], [2, 5]);
    // The sum of `{}`.
    let config = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
    assert_eq!(image.blobs[0].digest, config);
    let labels = &image.blobs[2].labels;
    assert_eq!(labels.get("containerd.io/gc.ref.content.config").map(String::as_str), Some(config));
    assert_eq!(image.target.digest, image.blobs[2].digest);
}

#[test]
fn what_is_missing_is_named() {
    let none = refused(&[("a", b"b")]);
    assert_eq!(none, "there is neither a manifest.json nor an index.json in it");
    let manifest = br#"[{"Config":"c.json","RepoTags":["app:1"],"Layers":[]}]"#;
    assert_eq!(refused(&[("manifest.json", manifest)]), "c.json is missing");
    let unnamed = br#"[{"Config":"c.json","RepoTags":null,"Layers":[]}]"#;
    let why = refused(&[("manifest.json", unnamed), ("c.json", b"{}")]);
    assert!(why.ends_with("has no name: save it with one, such as NAME:TAG"), "{why}");
}
