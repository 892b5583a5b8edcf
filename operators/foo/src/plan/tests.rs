use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;

use super::*;
use crate::kind::FooSpec;

fn foo(deployment_name: Option<&str>, replicas: Option<i32>) -> Foo {
    let deployment_name = deployment_name.map(str::to_owned);
    let mut foo = Foo::new("example-foo", FooSpec { deployment_name, replicas });
    foo.metadata.uid = Some("u1".to_owned());
    foo
}

#[test]
fn without_a_name_there_is_nothing_to_make() {
    assert_eq!(plan(&foo(None, None), None), Step::Refuse);
    assert_eq!(plan(&foo(Some(""), None), None), Step::Refuse);
}

#[test]
fn replicas_are_those_that_are_asked_for_and_else_one() {
    let check = |replicas: Option<i32>, expected: i32| {
        let Step::Apply(made) = plan(&foo(Some("web"), replicas), None) else {
            panic!("it is not made")
        };
        assert_eq!(made.metadata.name.as_deref(), Some("web"));
        assert_eq!(made.spec.and_then(|spec| spec.replicas), Some(expected));
    };
    check(Some(3), 3);
    check(None, 1);
}

#[test]
fn a_deployment_is_its_owners() {
    let foo = foo(Some("web"), None);
    let check = |owner: Option<&str>, is_ours: bool| {
        let mut found = deployment(&foo, "web");
        found.metadata.owner_references = owner
            .map(|uid| vec![OwnerReference { uid: uid.to_owned(), ..OwnerReference::default() }]);
        assert_eq!(plan(&foo, Some(&found)) != Step::Yield, is_ours);
    };
    check(Some("u1"), true);
    check(Some("u2"), false);
    check(None, false);
}
