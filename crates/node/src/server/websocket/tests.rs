use super::*;

/// A message as a client sends it.
fn masked(kind: u8, bytes: &[u8]) -> Vec<u8> {
    let mut encoded = encode(kind, bytes);
    encoded[1] |= 0x80;
    let at = encoded.len() - bytes.len();
    let mask = [1, 2, 3, 4];
    encoded[at..].iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
    encoded.splice(at..at, mask);
    encoded
}

fn channel(number: u8, io: DuplexStream, greeting: Option<Vec<u8>>) -> Channel {
    Channel { number, io, greeting }
}

#[test]
fn a_key_is_answered_as_the_standard_says() {
    assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
}

#[tokio::test]
async fn messages_of_any_length_are_read() {
    for length in [0, 5, 125, 126, 300, 70_000] {
        let bytes = vec![7; length];
        let sent = masked(BINARY, &bytes);
        let message = read(&mut sent.as_slice()).await.expect("a message");
        assert_eq!(message, Some(Message::Data(bytes)));
    }
}

#[tokio::test]
async fn channels_go_both_ways_and_one_can_end() {
    let (mut client, server) = tokio::io::duplex(4096);
    let (mut stdin, theirs_in) = tokio::io::duplex(1024);
    let (mut stdout, theirs_out) = tokio::io::duplex(1024);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let channels = vec![channel(0, theirs_in, None), channel(1, theirs_out, None)];
        carry(server, channels, Form::Closable).await.expect("it is carried");
    });
    client.write_all(&masked(BINARY, b"\0in")).await.expect("it is sent");
    client.write_all(&masked(BINARY, &[CLOSE, 0])).await.expect("it is sent");
    let mut heard = String::new();
    stdin.read_to_string(&mut heard).await.expect("it ends");
    assert_eq!(heard, "in");
    stdout.write_all(b"out").await.expect("it is heard");
    let message = encode(BINARY, b"\x01out");
    let mut answer = vec![0; message.len()];
    client.read_exact(&mut answer).await.expect("an answer");
    assert_eq!(answer, message);
    drop((stdin, stdout));
    let mut rest = Vec::new();
    client.read_to_end(&mut rest).await.expect("the end");
    assert_eq!(rest, encode(CLOSED, &1000_u16.to_be_bytes()));
    while tasks.join_next().await.is_some() {}
}

#[test]
fn messages_have_the_form_of_their_protocol() {
    let (binary, text) = (encode(BINARY, b"\x01foo\n"), encode(TEXT, b"1Zm9vCg=="));
    for (protocol, form, expected) in [
        ("", Form::Binary, &binary),
        ("channel.k8s.io", Form::Binary, &binary),
        ("v4.channel.k8s.io", Form::Binary, &binary),
        ("v5.channel.k8s.io", Form::Closable, &binary),
        ("base64.channel.k8s.io", Form::Base64, &text),
        ("v4.base64.channel.k8s.io", Form::Base64, &text),
    ] {
        assert_eq!(Form::of(protocol), form, "{protocol}");
        assert_eq!(form.encode(1, b"foo\n"), *expected, "{protocol}");
        // What is sent is understood.
        let said = Some(Said::On(1, b"foo\n".to_vec()));
        assert_eq!(form.decode(&expected[2..]), said, "{protocol}");
    }
}

#[test]
fn what_is_not_understood_is_passed_over() {
    assert_eq!(Form::Closable.decode(&[CLOSE, 0]), Some(Said::All(0)));
    assert_eq!(Form::Closable.decode(&[CLOSE]), None);
    assert_eq!(Form::Binary.decode(&[CLOSE, 0]), Some(Said::On(CLOSE, vec![0])));
    assert_eq!(Form::Binary.decode(b""), None);
    assert_eq!(Form::Base64.decode(b"0?"), None);
}

/// Clients take the first message of a forwarded port for its number, and nothing else.
#[tokio::test]
async fn a_greeting_is_a_message_of_its_own() {
    let (mut client, server) = tokio::io::duplex(4096);
    let (mut ours, theirs) = tokio::io::duplex(1024);
    ours.write_all(b"at once").await.expect("it is heard");
    drop(ours);
    let channels = vec![channel(2, theirs, Some(80_u16.to_le_bytes().to_vec()))];
    carry(server, channels, Form::Binary).await.expect("it is carried");
    let mut heard = Vec::new();
    client.read_to_end(&mut heard).await.expect("the end");
    let expected = [
        encode(BINARY, &[2, 80, 0]),
        encode(BINARY, b"\x02at once"),
        encode(CLOSED, &1000_u16.to_be_bytes()),
    ];
    assert_eq!(heard, expected.concat());
}
