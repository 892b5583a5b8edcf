use super::Coordination::{Leader, None, Shards};
use super::*;

#[track_caller]
fn check(declared: Coordination, flags: &str, in_cluster: Coordination, outside: Coordination) {
    let said = |flag: &str| {
        let word = flags.split(' ').find_map(|word| word.strip_prefix(flag))?;
        Some(word == "=true")
    };
    let asked = Asked { leader: said("leader"), shards: said("shards") };
    let decided = [true, false].map(|is_in_cluster| declared.under(asked, is_in_cluster));
    assert_eq!(decided, [in_cluster, outside], "{declared:?} {flags}");
}

#[test]
fn what_is_asked_for_comes_before_what_is_declared() {
    check(Leader, "", Leader, None);
    check(Leader, "leader=true", Leader, Leader);
    check(Leader, "leader=false", None, None);
    check(Leader, "shards=true", Shards, Shards);
    check(Leader, "shards=false", Leader, None);
    check(Shards, "", Shards, None);
    check(Shards, "leader=true", Leader, Leader);
    check(Shards, "leader=false", Shards, None);
    check(Shards, "shards=true", Shards, Shards);
    check(Shards, "shards=false", Leader, None);
    check(Shards, "shards=false leader=false", None, None);
    check(None, "", None, None);
    check(None, "leader=true", Leader, Leader);
    check(None, "shards=true", Shards, Shards);
}
