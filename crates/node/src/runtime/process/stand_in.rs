//! What stands in for images that operators use, where there are no images.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;
use kubewright::Clock;

/// Something that does for an image.
pub(super) struct StandIn {
    image: &'static str,
    pub(super) program: Program,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Program {
    /// Whatever the container says is run, as this machine has it.
    Shell,
    /// A server that shows its name, at the first port that the container names, or else at this
    /// one.
    Hello(u16),
    /// A listener that understands nobody, at such a port.
    Database(u16),
    /// A process that waits.
    Pause,
}

const STAND_INS: &[StandIn] = &[
    StandIn { image: "busybox", program: Program::Shell },
    StandIn { image: "alpine", program: Program::Shell },
    StandIn { image: "debian", program: Program::Shell },
    StandIn { image: "nginxdemos/hello", program: Program::Hello(80) },
    StandIn { image: "nginx", program: Program::Hello(80) },
    StandIn { image: "wordpress", program: Program::Hello(80) },
    StandIn { image: "registry.acme.com/app/app", program: Program::Hello(8080) },
    StandIn { image: "mysql", program: Program::Database(3306) },
    StandIn { image: "postgres", program: Program::Database(5432) },
    StandIn { image: "pause", program: Program::Pause },
];

/// What does for an image, whatever its registry and tag.
pub(super) fn of(image: &str) -> Option<&'static StandIn> {
    let name = image.split('@').next().unwrap_or_default();
    let name = match name.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => name,
    };
    STAND_INS.iter().find(|it| {
        let rest = name.strip_suffix(it.image);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    })
}

impl StandIn {
    pub(super) fn remark(&self, image: &str) -> String {
        let what = match self.program {
            Program::Shell => "the programs of this machine do",
            Program::Hello(_) => "a server that shows its name stands in",
            Program::Database(_) => "a listener that knows no SQL stands in",
            Program::Pause => "a process that waits stands in",
        };
        format!("No image is used: {what} for {image:?}")
    }
}

impl Program {
    /// The words that have the shim run it, if it is one of ours. `place` says where it listens in
    /// the place of a port.
    pub(super) fn words(
        self,
        place: impl Fn(u16) -> SocketAddr,
        container: &Container,
    ) -> Option<Vec<String>> {
        let named = container.ports.iter().flatten().next();
        let named = named.and_then(|port| u16::try_from(port.container_port).ok());
        let at = |port: u16| place(named.unwrap_or(port)).to_string();
        match self {
            Program::Shell => None,
            Program::Hello(port) => Some(vec![HELLO.to_owned(), at(port)]),
            Program::Database(port) => Some(vec![DATABASE.to_owned(), at(port)]),
            Program::Pause => Some(vec![PAUSE.to_owned()]),
        }
    }
}

const HELLO: &str = "hello";
const DATABASE: &str = "database";
const PAUSE: &str = "pause";

/// Runs one of our own programs, by its words.
pub(super) fn run(words: &[&str]) -> io::Result<()> {
    let listen = |address: &str| {
        TcpListener::bind(address)
            .map_err(|error| io::Error::new(error.kind(), format!("listen at {address}: {error}")))
    };
    match words {
        [HELLO, address, ..] => serve(listen(address)?),
        [DATABASE, address, ..] => {
            let listener = listen(address)?;
            println!("listening at {address}");
            listener.incoming().for_each(drop);
            Ok(())
        }
        [PAUSE, ..] => loop {
            thread::park();
        },
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "what is it to do?")),
    }
}

fn serve(listener: TcpListener) -> io::Result<()> {
    println!("listening at {}", listener.local_addr()?);
    for stream in listener.incoming() {
        match stream {
            // Ends with the connection, or with this process.
            Ok(stream) => drop(thread::spawn(move || answer(stream))),
            Err(error) => eprintln!("{error}"),
        }
    }
    Ok(())
}

fn answer(stream: TcpStream) -> io::Result<()> {
    let (local, peer) = (stream.local_addr()?, stream.peer_addr()?);
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut stream = stream;
    loop {
        let mut request = String::new();
        if reader.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut header = String::new();
        while reader.read_line(&mut header)? > 2 {
            header.clear();
        }
        let request = request.trim_end();
        let path = request.split(' ').nth(1).unwrap_or("/");
        let name = std::env::var("HOSTNAME").unwrap_or_default();
        let now = Clock::system().now();
        let body = page(&local.to_string(), &name, now, path);
        write!(
            stream,
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\r\n",
            body.len()
        )?;
        if !request.starts_with("HEAD ") {
            stream.write_all(body.as_bytes())?;
        }
        let bytes = body.len();
        println!("{} - - [{now:.0}] \"{request}\" 200 {bytes} \"-\" \"-\"", peer.ip());
    }
}

/// What the page says.
pub(super) fn page(address: &str, name: &str, now: Timestamp, path: &str) -> String {
    format!("Server address: {address}\nServer name: {name}\nDate: {now:.0}\nURI: {path}\n")
}
