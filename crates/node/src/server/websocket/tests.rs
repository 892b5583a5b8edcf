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
        carry(server, vec![(0, theirs_in), (1, theirs_out)], true).await.expect("it is carried");
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
