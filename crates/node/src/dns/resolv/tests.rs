use super::*;

#[test]
fn the_last_search_counts_and_all_servers_do() {
    let text = "# made by somebody\nnameserver 192.0.2.1\nnameserver 192.0.2.2 ; the other\n\
                search a.test\nsearch corp.test. lab.test\noptions ndots:1 rotate\n";
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let expected = ResolvConf {
        servers: words(&["192.0.2.1", "192.0.2.2"]),
        searches: words(&["corp.test", "lab.test"]),
        options: words(&["ndots:1", "rotate"]),
    };
    assert_eq!(resolv_conf(text), expected);
}
