use super::{PAGE_KEYS_MAX, limit_next};

#[test]
fn pages_hold_many_small_objects_or_few_large_ones() {
    let check = |keys, bytes, expected| assert_eq!(limit_next(keys, bytes), expected);
    check(500, 500 * 1024, 8 * 1024);
    check(500, 500 * 100, PAGE_KEYS_MAX);
    check(500, 500 * 1_500_000, 5);
    check(3, 3 * 20_000_000, 1);
    check(0, 0, PAGE_KEYS_MAX);
}
