use serde_json::json;

use super::*;
use crate::random;

#[track_caller]
fn check(model: &str, text: &str) -> usize {
    let model = Model::new(model);
    let short = model.shorten(text);
    assert_eq!(model.expand(&short), text);
    short.len()
}

fn pet(number: usize) -> String {
    json!({
        "apiVersion": "petstore.example.com/v1",
        "kind": "Pet",
        "metadata": {
            "name": format!("pet-{number}"),
            "namespace": "shop",
            "uid": format!("{:08x}-8b1d-4c7e-9d2f-0123456789ab", number * 7919),
            "labels": { "app.kubernetes.io/name": "pet", "shelf": (number % 7).to_string() },
        },
        "spec": { "species": "cat", "price": number },
    })
    .to_string()
}

#[test]
fn what_is_like_the_first_takes_a_fraction_of_its_room() {
    let (first, other) = (pet(1), pet(90_210));
    assert!(check(&first, &other) * 4 < other.len());
    assert!(check(&first, &first) < 9);
}

#[test]
fn a_text_is_shortened_alike_whatever_was_shortened_before() {
    let model = Model::new(&pet(1));
    let long: String = (0..PLACES * 2).map(|number| format!("{number:x}")).collect();
    for text in [pet(2), pet(3), long, pet(2), pet(4)] {
        // Before any letters are known.
        assert_eq!(model.pieces(&text), Model::new(&pet(1)).pieces(&text));
    }
}

#[test]
fn what_is_new_takes_less_room_once_it_is_known_what_is_frequent() {
    let digits = |_| ["0", "1", "2", "3", "4", "5", "6", "7"][random::below(8) as usize];
    let text = || -> String { (0..1_000).map(digits).collect() };
    let model = Model::new("");
    let lengths: Vec<usize> = (0..100)
        .map(|_| {
            let text = text();
            let short = model.shorten(&text);
            assert_eq!(model.expand(&short), text);
            short.len()
        })
        .collect();
    assert!(lengths[0] > 900, "{lengths:?}");
    assert!(lengths[99] < 500, "{lengths:?}");
    // What is quite different is not longer for it.
    let other = "ÄÖÜ{}".repeat(3);
    assert_eq!(model.expand(&model.shorten(&other)), other);
    assert!(model.shorten(&other).len() < other.len() + 4);
}

#[test]
fn any_text_comes_back_as_it_was() {
    let long = "long ".repeat(20_000);
    let texts = ["", "a", "short", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "ö→ß", &long, &pet(3)];
    for model in texts {
        for text in texts {
            check(model, text);
        }
    }
}

#[test]
fn texts_of_few_letters_come_back_as_they_were() {
    let text = |length: u64| -> String {
        (0..random::below(length))
            .map(|_| ["a", "b", "ö", "{"][random::below(4) as usize])
            .collect()
    };
    for _ in 0..500 {
        check(&text(300), &text(3_000));
    }
}
