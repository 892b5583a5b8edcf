use std::net::TcpListener;

use super::*;

#[cfg(target_endian = "little")]
#[test]
fn listeners_are_read_from_the_kernels_tables() {
    let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1
   1: 00000000:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4712 1
   2: 0100007F:1F90 0100007F:8124 01 00000000:00000000 00:00000000 00000000     0        0 4713 1
   3: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A \
00000000:00000000 00:00000000 00000000     0        0 4714 1
";
    let expected = [("127.0.0.1:8080", 4711), ("0.0.0.0:22", 4712), ("[::1]:80", 4714)];
    let expected = expected.map(|(place, inode)| (place.parse().expect("a place"), inode));
    assert_eq!(listeners(table), expected);
}

#[test]
fn who_listens_is_known_by_what_it_holds_open() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let place = listener.local_addr().expect("a place");
    let own = i32::try_from(std::process::id()).expect("a number");
    assert!(of(&[own]).contains(&place));
    assert!(!of(&[]).contains(&place));
}
