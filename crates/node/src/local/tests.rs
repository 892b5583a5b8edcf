//! Addresses that are added and taken away, in a network of the test's own.

use std::process::Command;

use super::*;

#[test]
fn an_address_of_a_network_is_told_from_one_of_nowhere() {
    let routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT
eth0\t00000000\t0100A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
lo\t000012C6\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
";
    let check = |address: &str, expected: Option<&str>| {
        let address = address.parse().expect("an address");
        assert_eq!(network_of(address, routes).as_deref(), expected, "{address}");
    };
    check("10.0.0.7", Some("10.0.0.0/24 of eth0"));
    check("10.0.1.7", None);
    check("198.18.0.1", None);
    check("192.168.0.9", None);
}

#[test]
fn a_label_is_of_one_directory_and_no_longer_than_the_kernel_takes() {
    let (one, other) = (label(Path::new("/one")), label(Path::new("/other")));
    assert_ne!(one, other);
    assert!(one.starts_with("lo:") && one.len() < 16, "{one}");
}

/// What the child of the next test does, where it may.
const INSIDE: &str = "KUBEWRIGHT_TEST_NETWORK_OF_ITS_OWN";

#[test]
fn addresses_come_and_go_and_are_found_again_and_no_others_are_touched() {
    if std::env::var_os(INSIDE).is_some() {
        return inside();
    }
    let test = "local::tests::addresses_come_and_go_and_are_found_again_and_no_others_are_touched";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net"])
        .arg(std::env::current_exe().expect("this program"))
        .args([test, "--exact", "--nocapture"])
        .env(INSIDE, "1")
        .output();
    match output {
        Ok(output) if output.status.success() => {}
        Ok(output) => {
            let told = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(told.starts_with("unshare: "), "{told}");
            eprintln!("skipped: there is no network namespace to be had: {told}");
        }
        Err(error) => eprintln!("skipped: there is no unshare: {error}"),
    }
}

fn inside() {
    let directory = Path::new("/of/a/cluster");
    let ours = LocalAddresses::of(directory).expect("the right to");
    let other = LocalAddresses::of(Path::new("/of/another")).expect("the right to");
    let (first, second) = (Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2));
    ours.add(first).expect("added");
    ours.add(first).expect("twice is once");
    assert!(matches!(other.add(first), Err(AddError::Taken(_))));
    other.add(second).expect("added");
    let third = Ipv4Addr::new(198, 18, 0, 3);
    assert_eq!(other.add_one_of([first, third].into_iter()), Some(third));
    assert_eq!(other.add_one_of([first, second].into_iter()), Some(second));
    assert_eq!(other.add_one_of([first].into_iter()), None);
    // As if it were killed.
    std::mem::forget(ours);
    let again = LocalAddresses::of(directory).expect("the right to");
    assert_eq!(*again.held(), BTreeSet::from([first]));
    drop(again);
    let left = other.netlink.addresses().expect("listed");
    let left: Vec<Ipv4Addr> = left.iter().map(|it| it.address).collect();
    assert!(left.contains(&second) && !left.contains(&first), "{left:?}");
}
