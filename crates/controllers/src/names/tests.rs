use super::*;

#[track_caller]
fn check(list: &str, expected: &[&str]) {
    let names = Names::parse(list).expect("all names are known");
    let included: Vec<&str> = NAMES.iter().copied().filter(|name| names.includes(name)).collect();
    assert_eq!(included, expected);
}

#[test]
fn a_star_is_all_of_them() {
    check("*", NAMES);
    assert_eq!(Names::parse("*"), Ok(Names::all()));
}

#[test]
fn a_name_alone_is_only_this_one() {
    check("namespace-controller", &[NAMESPACE]);
}

#[test]
fn a_minus_takes_one_away() {
    let others: Vec<&str> =
        NAMES.iter().copied().filter(|name| *name != GARBAGE_COLLECTOR).collect();
    check("*,-garbage-collector-controller", &others);
}

#[test]
fn the_first_word_counts() {
    check("-namespace,namespace", &[]);
    check("namespace,-namespace", &[NAMESPACE]);
}

#[test]
fn old_names_are_still_taken() {
    check("garbagecollector, serviceaccount", &[SERVICE_ACCOUNT, GARBAGE_COLLECTOR]);
    check("resourcequota", &[RESOURCE_QUOTA]);
}

#[test]
fn an_unknown_name_is_told() {
    let error = Names::parse("*,-nonsense").expect_err("nobody is called that");
    assert_eq!(error.to_string(), "\"nonsense\" is not in the list of known controllers");
}
