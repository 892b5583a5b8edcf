use super::frame::*;
use super::*;

/// The beginning of what client-go sends to open the streams of an exec, as its library wrote it.
const OPENED_BY_GO: &str = include_str!("../../data/spdy-exec.hex");

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).expect("ASCII"), 16);
    digits.chunks(2).map(|pair| byte(pair).expect("hexadecimal")).collect()
}

#[tokio::test]
async fn frames_of_go_are_read() {
    let sent = bytes(OPENED_BY_GO);
    let (mut decoder, mut from) = (Decoder::default(), sent.as_slice());
    let mut opened = Vec::new();
    while let Some(frame) = decoder.read(&mut from).await.expect("a frame") {
        if let Frame::Open { id, headers, .. } = frame {
            opened.push(format!("{id} {}", headers["streamtype"]));
        }
    }
    assert_eq!(opened, ["1 error", "3 stdin", "5 stdout", "7 stderr"]);
}

#[tokio::test]
async fn what_is_written_can_be_read() {
    let headers = HashMap::from([("streamtype".to_owned(), "data".to_owned())]);
    let frames = [
        Frame::Open { id: 1, headers: headers.clone(), is_last: false },
        Frame::Data { id: 1, bytes: b"hello".to_vec(), is_last: false },
        Frame::Opened { id: 1 },
        Frame::Open { id: 3, headers, is_last: true },
        Frame::Data { id: 1, bytes: Vec::new(), is_last: true },
        Frame::Ping { id: 7 },
        Frame::Reset { id: 3 },
        Frame::GoAway,
    ];
    let mut encoder = Encoder::default();
    let sent: Vec<u8> = frames.iter().flat_map(|frame| encoder.encode(frame)).collect();
    let (mut decoder, mut from) = (Decoder::default(), sent.as_slice());
    for expected in frames {
        assert_eq!(decoder.read(&mut from).await.expect("a frame"), Some(expected));
    }
    assert_eq!(decoder.read(&mut from).await.expect("the end"), None);
}

#[tokio::test]
async fn streams_go_both_ways_and_end() {
    let (client, server) = tokio::io::duplex(1024);
    let (opened, mut streams) = mpsc::channel(4);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        carry(server, opened).await.expect("it is carried");
    });
    let mut encoder = Encoder::default();
    let (mut from, mut to) = tokio::io::split(client);
    let open = Frame::Open { id: 1, headers: HashMap::new(), is_last: false };
    to.write_all(&encoder.encode(&open)).await.expect("it is sent");
    let data = Frame::Data { id: 1, bytes: b"ping".to_vec(), is_last: true };
    to.write_all(&encoder.encode(&data)).await.expect("it is sent");
    let mut stream = streams.recv().await.expect("it is opened").io;
    let mut heard = String::new();
    stream.read_to_string(&mut heard).await.expect("it ends");
    assert_eq!(heard, "ping");
    stream.write_all(b"pong").await.expect("it is heard");
    drop(stream);
    drop(streams);
    let mut decoder = Decoder::default();
    let mut answers = Vec::new();
    while let Some(frame) = decoder.read(&mut from).await.expect("a frame") {
        answers.push(frame);
    }
    let pong = Frame::Data { id: 1, bytes: b"pong".to_vec(), is_last: false };
    let end = Frame::Data { id: 1, bytes: Vec::new(), is_last: true };
    assert_eq!(answers, [Frame::Opened { id: 1 }, pong, end]);
    while tasks.join_next().await.is_some() {}
}

/// A command's runtime once closed its connection without a farewell to each stream, and whoever had
/// run the command waited for ever.
#[tokio::test]
async fn streams_end_with_a_reset_and_with_the_connection() {
    let (client, server) = tokio::io::duplex(1024);
    let (streams, carrying) = open(client, vec![HashMap::new(), HashMap::new()]);
    let [mut first, mut second]: [DuplexStream; 2] = streams.try_into().expect("two streams");
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        carrying.await.expect("it is carried");
    });
    let (_from, mut to) = tokio::io::split(server);
    let mut encoder = Encoder::default();
    let data = Frame::Data { id: 1, bytes: b"last words".to_vec(), is_last: false };
    to.write_all(&encoder.encode(&data)).await.expect("it is sent");
    to.write_all(&encoder.encode(&Frame::Reset { id: 1 })).await.expect("it is sent");
    let mut heard = String::new();
    first.read_to_string(&mut heard).await.expect("it ends");
    assert_eq!(heard, "last words");
    to.shutdown().await.expect("it is closed");
    let n_bytes = second.read_to_string(&mut heard).await.expect("it ends too");
    assert_eq!(n_bytes, 0);
    drop((first, second));
    while tasks.join_next().await.is_some() {}
}
