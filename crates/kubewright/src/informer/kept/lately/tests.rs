use super::*;

fn text(letters: &str) -> Arc<[u8]> {
    letters.as_bytes().into()
}

#[test]
fn what_was_read_is_shared_and_only_of_the_same_text() {
    let mut lately = Lately::default();
    let (one, other) = (text("a"), text("a"));
    let object = Arc::new(1);
    lately.add(&one, 1, &object);
    assert!(lately.find(&one).is_some_and(|found| Arc::ptr_eq(&found, &object)));
    assert_eq!(lately.find(&other), None);
}

#[test]
fn what_nobody_asks_for_is_forgotten() {
    let mut lately = Lately::default();
    let texts: Vec<_> = (0..100).map(|number| text(&number.to_string())).collect();
    for (number, text) in texts.iter().enumerate() {
        lately.add(text, GENERATION_BYTES / 10, &Arc::new(number));
        assert_eq!(lately.find(&texts[0]).as_deref(), Some(&0), "after {number}");
    }
    let known = texts.iter().filter(|text| lately.find(text).is_some()).count();
    assert!((10..=20).contains(&known), "{known}");
    assert_eq!(lately.find(&texts[1]), None);
}

#[test]
fn an_object_that_is_larger_than_a_generation_is_alone_in_it() {
    let mut lately = Lately::default();
    let (one, other) = (text("a"), text("b"));
    lately.add(&one, GENERATION_BYTES * 3, &Arc::new(1));
    lately.add(&other, GENERATION_BYTES * 3, &Arc::new(2));
    assert_eq!((lately.young.len(), lately.old.len()), (1, 1));
}
