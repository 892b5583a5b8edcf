use super::*;

#[test]
fn indexes_are_written_as_ranges() {
    let check = |text: &str, below: u32, expected: &str| {
        assert_eq!(Indexes::parse(text, below).to_string(), expected);
    };
    check("", 5, "");
    check("0,1,2,4", 9, "0-2,4");
    check("0,1", 9, "0,1");
    check("3-5,7,8", 6, "3-5");
    check("x,2,9-y", 9, "2");
}

#[test]
fn indexes_are_found_joined_and_compared() {
    let some = Indexes::parse("1,3-5", 9);
    assert_eq!((some.len(), some.contains(4), some.contains(2)), (4, true, false));
    assert_eq!(some.union(&[2, 7].into_iter().collect()).to_string(), "1-5,7");
    assert_eq!(some.common(&Indexes::parse("0-3,5-8", 9)), 3);
}
