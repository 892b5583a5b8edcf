use super::*;

#[test]
fn pods_of_two_autoscalers_are_nobodys() {
    let selectors = Selectors::default();
    let pods = || [BTreeMap::from([("app".to_owned(), "web".to_owned())])].into_iter();
    let check = |name: &str, namespace: &str, selector: &str, expected: Option<&str>| {
        let selector = Selector::parse(selector).expect("a selector");
        let key = ObjectKey::new(Some(namespace), name);
        assert_eq!(selectors.sharers(&key, selector, pods()).as_deref(), expected);
    };
    check("a", "n", "app=web", None);
    check("b", "n", "app=other", None);
    check("c", "m", "app=web", None);
    check("b", "n", "app in (web,other)", Some("[{a n} {b n}]"));
    selectors.forget(&ObjectKey::new(Some("n"), "a"));
    check("b", "n", "app in (web,other)", None);
}
