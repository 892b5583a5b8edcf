use super::*;

fn image(id: &str, size: u64, names: usize) -> Image {
    Image {
        id: id.to_owned(),
        repo_digests: vec![format!("{id}@sha256:0")],
        repo_tags: (0..names).map(|number| format!("{id}:{number}")).collect(),
        size,
        ..Image::default()
    }
}

#[test]
fn a_node_shows_its_largest_images() {
    let few = shown(vec![image("small", 1, 1), image("large", 2, 9)]);
    let names = |names: &[&str]| Some(names.iter().map(|it| (*it).to_owned()).collect());
    let large = ["large@sha256:0", "large:0", "large:1", "large:2", "large:3"];
    assert_eq!(few[0], ContainerImage { names: names(&large), size_bytes: Some(2) });
    let small = ["small@sha256:0", "small:0"];
    assert_eq!(few[1], ContainerImage { names: names(&small), size_bytes: Some(1) });
    let many = (0..60).map(|number| image(&format!("i{number}"), number, 0)).collect();
    let many = shown(many);
    assert_eq!((many.len(), many[0].size_bytes), (50, Some(59)));
}
