//! TLS on a socket, without buffers between: as much as there is is read at once, and decrypted
//! where it lies.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use anyhow::{Context, Result, bail, ensure};
use rustls::ClientConfig;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::unbuffered::{ConnectionState, UnbufferedStatus};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// What is read at a time, at most.
const READ_BYTES: usize = 128 << 10;

/// The longest record, with room for what surrounds it.
const RECORD_BYTES: usize = (16 << 10) + 512;

pub(super) struct Wire {
    stream: TcpStream,
    tls: UnbufferedClientConnection,
    incoming: Box<[u8]>,
    /// What of it has come and was not looked at.
    unread: Range<usize>,
    outgoing: Vec<u8>,
}

/// What the connection waits for.
#[derive(Debug, PartialEq, Eq)]
enum Waits {
    /// That what is outgoing goes.
    Transmission,
    /// For the other end, to be secured.
    Handshake,
    /// For nothing: it may be used.
    Nothing,
}

impl Wire {
    pub(super) async fn connect(address: SocketAddr, config: Arc<ClientConfig>) -> Result<Self> {
        let stream = TcpStream::connect(address).await.context("connect")?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(address.ip().into());
        let mut wire = Wire {
            stream,
            tls: UnbufferedClientConnection::new(config, name)?,
            incoming: vec![0; READ_BYTES].into(),
            unread: 0..0,
            outgoing: Vec::new(),
        };
        wire.secure().await.context("secure a connection")?;
        Ok(wire)
    }

    async fn secure(&mut self) -> Result<()> {
        loop {
            match self.look(|_| bail!("data came before its time"))? {
                Waits::Transmission => self.transmit().await?,
                Waits::Handshake => self.fill().await?,
                Waits::Nothing => return Ok(()),
            }
        }
    }

    pub(super) async fn send(&mut self, bytes: &[u8]) -> Result<()> {
        let records = bytes.len() / (16 << 10) + 1;
        self.outgoing.resize(bytes.len() + records * 64, 0);
        let unread = &mut self.incoming[self.unread.clone()];
        let UnbufferedStatus { discard, state } = self.tls.process_tls_records(unread);
        self.unread.start += discard;
        let ConnectionState::WriteTraffic(mut traffic) = state? else {
            bail!("the connection cannot be used now");
        };
        let length = traffic.encrypt(bytes, &mut self.outgoing).context("encrypt a request")?;
        self.outgoing.truncate(length);
        self.transmit().await
    }

    /// Waits for something to come, and hands over all that has.
    pub(super) async fn receive(&mut self, take: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        self.fill().await?;
        if self.look(take)? == Waits::Transmission {
            self.transmit().await?;
        }
        Ok(())
    }

    async fn fill(&mut self) -> Result<()> {
        if self.unread.is_empty() {
            self.unread = 0..0;
        } else if self.incoming.len() - self.unread.end < RECORD_BYTES {
            let length = self.unread.len();
            self.incoming.copy_within(self.unread.clone(), 0);
            self.unread = 0..length;
        }
        let read = self.stream.read(&mut self.incoming[self.unread.end..]).await?;
        ensure!(read > 0, "the server hung up");
        self.unread.end += read;
        Ok(())
    }

    /// Looks at all that has come.
    fn look(&mut self, mut take: impl FnMut(&[u8]) -> Result<()>) -> Result<Waits> {
        loop {
            let unread = &mut self.incoming[self.unread.clone()];
            let UnbufferedStatus { discard, state } = self.tls.process_tls_records(unread);
            let waits = match state? {
                ConnectionState::ReadTraffic(mut records) => {
                    while let Some(record) = records.next_record() {
                        take(record?.payload)?;
                    }
                    None
                }
                ConnectionState::EncodeTlsData(mut data) => {
                    let length = self.outgoing.len();
                    self.outgoing.resize(length + RECORD_BYTES, 0);
                    let encoded = data.encode(&mut self.outgoing[length..]);
                    self.outgoing.truncate(length + encoded.context("encode a record")?);
                    None
                }
                ConnectionState::TransmitTlsData(data) => {
                    data.done();
                    Some(Waits::Transmission)
                }
                ConnectionState::BlockedHandshake => Some(Waits::Handshake),
                ConnectionState::WriteTraffic(_) => Some(Waits::Nothing),
                state => bail!("the connection ends: {state:?}"),
            };
            self.unread.start += discard;
            if let Some(waits) = waits {
                return Ok(waits);
            }
        }
    }

    async fn transmit(&mut self) -> Result<()> {
        self.stream.write_all(&self.outgoing).await?;
        self.outgoing.clear();
        Ok(())
    }
}
