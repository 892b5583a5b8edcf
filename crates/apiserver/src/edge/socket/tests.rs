use super::*;

fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
    let pairs = pairs.iter().map(|(name, value)| {
        (http::HeaderName::from_static(name), HeaderValue::from_static(value))
    });
    pairs.collect()
}

const KEY: (&str, &str) = ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
const THIRTEEN: (&str, &str) = ("sec-websocket-version", "13");
const PAGE: (&str, &str) = ("origin", "http://localhost");

#[test]
fn the_key_is_answered_as_the_standard_says() {
    assert_eq!(accept(KEY.1), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[track_caller]
fn check_handshake(more: &[(&'static str, &'static str)], expected: Result<&str, (u16, &str)>) {
    check_handshake_of(Told::Watch, more, expected);
}

#[track_caller]
fn check_handshake_of(
    told: Told,
    more: &[(&'static str, &'static str)],
    expected: Result<&str, (u16, &str)>,
) {
    let found = told.handshake(&headers(more));
    let found = found.map(|headers| {
        let protocol = headers.get(SEC_WEBSOCKET_PROTOCOL).map(|value| value.to_str());
        protocol.transpose().expect("text").unwrap_or_default().to_owned()
    });
    let expected = expected.map(str::to_owned);
    assert_eq!(found.map_err(|(status, why)| (status.as_u16(), why)), expected);
}

#[test]
fn one_protocol_is_agreed_on() {
    let token =
        ("sec-websocket-protocol", "base64url.bearer.authorization.k8s.io.eA, binary.k8s.io");
    check_handshake(&[KEY, THIRTEEN, PAGE], Ok(""));
    check_handshake(&[KEY, THIRTEEN, PAGE, token], Ok("binary.k8s.io"));
    let two = ("sec-websocket-protocol", "a, b");
    check_handshake(&[KEY, THIRTEEN, PAGE, two], Err((400, "")));
}

#[test]
fn who_asks_wrongly_is_told() {
    check_handshake(&[THIRTEEN, PAGE], Err((400, "mismatch challenge/response")));
    let old = ("sec-websocket-version", "8");
    check_handshake(&[KEY, old, PAGE], Err((400, BAD_VERSION)));
    check_handshake(&[KEY, THIRTEEN], Err((403, "")));
}

#[test]
fn of_the_ways_to_send_a_log_the_first_that_we_have_is_taken() {
    let offered = |protocols| [KEY, THIRTEEN, ("sec-websocket-protocol", protocols)];
    check_handshake_of(Told::Log, &[KEY, THIRTEEN], Ok(""));
    check_handshake_of(Told::Log, &offered("binary.k8s.io"), Ok("binary.k8s.io"));
    let both = "channel.k8s.io, base64.binary.k8s.io, binary.k8s.io";
    check_handshake_of(Told::Log, &offered(both), Ok("base64.binary.k8s.io"));
    check_handshake_of(Told::Log, &offered("channel.k8s.io"), Err((403, "")));
}

#[test]
fn what_comes_of_a_log_is_a_message() {
    check_framing(Framing::Bytes, b"one\ntw", &[b"\x82\x06one\ntw"], b"");
    check_framing(Framing::Base64, b"one\n", &[b"\x81\x08b25lCg=="], b"");
    assert_eq!(Framing::Bytes.greeting(), b"\x82\0");
    assert_eq!(Framing::Base64.greeting(), b"\x81\0");
}

#[track_caller]
fn check_framing(framing: Framing, bytes: &[u8], expected: &[&[u8]], rest: &[u8]) {
    let mut bytes = BytesMut::from(bytes);
    let found: Vec<Vec<u8>> = std::iter::from_fn(|| framing.take(&mut bytes)).collect();
    assert_eq!(found, expected);
    assert_eq!(bytes, rest);
}

#[test]
fn each_event_is_a_message() {
    check_framing(Framing::Lines, b"{}\n[]\n{", &[b"\x81\x03{}\n", b"\x81\x03[]\n"], b"{");
    let two = b"\0\0\0\x02ab\0\0\0\x01c\0\0\0\x09d";
    check_framing(Framing::Lengths, two, &[b"\x82\x02ab", b"\x82\x01c"], b"\0\0\0\x09d");
}

#[test]
fn long_messages_say_how_long_they_are() {
    let long = message(Opcode::Text, &[b'x'; 126]);
    assert_eq!(long[..4], [0x81, 126, 0, 126]);
    let longer = message(Opcode::Text, &[b'x'; 0x1_0000]);
    assert_eq!(longer[..10], [0x81, 127, 0, 0, 0, 0, 0, 1, 0, 0]);
}

/// What is understood of bytes that come one by one.
#[track_caller]
fn check_heard(bytes: &[u8], expected: &[Said]) {
    let mut heard = Heard::default();
    let mut found = Vec::new();
    for byte in bytes {
        heard.bytes.extend_from_slice(&[*byte]);
        found.extend(heard.understand());
    }
    assert_eq!(found, expected);
}

#[test]
fn a_ping_is_heard_between_messages_nobody_wants() {
    let text = b"\x81\x82\x01\x02\x03\x04xy";
    let ping = b"\x89\x82\x01\x02\x01\x02ab";
    let unmasked: Vec<u8> = vec![b'a' ^ 1, b'b' ^ 2];
    let said = [text.as_slice(), ping, text, ping].concat();
    check_heard(&said, &[Said::Ping(unmasked.clone()), Said::Ping(unmasked)]);
}

#[test]
fn a_close_is_enough_and_so_is_another_protocol() {
    check_heard(b"\x88\x80\0\0\0\0", &[Said::Enough]);
    let mut heard = Heard { bytes: BytesMut::from(b"GET / HTTP/1.1".as_slice()), skip: 0 };
    assert_eq!(heard.understand(), Some(Said::Enough));
}
