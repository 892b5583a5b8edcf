//! Messages of DNS, as much of them as is needed: a question is read, an answer is written.

#[cfg(test)]
mod tests;

use std::net::{Ipv4Addr, Ipv6Addr};

/// What a message takes that is not known to take more.
pub(super) const UDP_BYTES_MAX: usize = 512;
const NAME_BYTES_MAX: usize = 255;
const LABEL_BYTES_MAX: usize = 63;
const HEADER_BYTES: usize = 12;
/// Names that refer to each other in a circle end nowhere.
const REFERRALS_MAX: u32 = 16;
const CLASS_INTERNET: u16 = 1;

pub(super) const A: u16 = 1;
pub(super) const CNAME: u16 = 5;
pub(super) const SOA: u16 = 6;
pub(super) const PTR: u16 = 12;
pub(super) const TXT: u16 = 16;
pub(super) const AAAA: u16 = 28;
pub(super) const SRV: u16 = 33;
const OPT: u16 = 41;
/// Any kind at all.
pub(super) const ANY: u16 = 255;

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) id: u16,
    /// Whether others may be asked.
    pub(super) is_recursive: bool,
    /// In small letters, without a dot at the end.
    pub(super) name: String,
    pub(super) kind: u16,
    /// How long an answer may be.
    pub(super) bytes_max: usize,
    /// As it was asked, which answers repeat.
    section: Vec<u8>,
}

/// What is answered.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Answer {
    pub(super) code: Code,
    pub(super) records: Vec<Record>,
    /// The zone that knows that there is nothing more.
    pub(super) authority: Option<Record>,
    /// What will be asked next, most likely.
    pub(super) more: Vec<Record>,
    /// The name that it all comes to, of which others know more.
    pub(super) elsewhere: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Code {
    #[default]
    Success = 0,
    Failure = 2,
    /// There is no such name.
    NoName = 3,
    NotImplemented = 4,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) seconds: u32,
    pub(super) data: Data,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Data {
    A(Ipv4Addr),
    Aaaa(Ipv6Addr),
    Cname(String),
    Ptr(String),
    Srv { weight: u16, port: u16, target: String },
    Txt(String),
    Soa { server: String, mailbox: String, seconds: u32 },
}

/// Why a message is no question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum NoQuestion {
    /// It cannot be answered, since it is not known by whom and what it was.
    Garbage,
    /// It is a message of another kind, with this number.
    Other(u16),
}

impl Question {
    pub(super) fn read(bytes: &[u8]) -> Result<Self, NoQuestion> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(NoQuestion::Garbage)?;
        let number = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
        let (id, flags) = (number(0), number(2));
        if flags & 0x8000 != 0 {
            return Err(NoQuestion::Garbage);
        }
        if flags & 0x7800 != 0 || number(4) != 1 {
            return Err(NoQuestion::Other(id));
        }
        let (name, after) = read_name(bytes, HEADER_BYTES, false).ok_or(NoQuestion::Garbage)?;
        let rest = bytes.get(after..after + 4).ok_or(NoQuestion::Garbage)?;
        let kind = u16::from_be_bytes([rest[0], rest[1]]);
        if u16::from_be_bytes([rest[2], rest[3]]) != CLASS_INTERNET {
            return Err(NoQuestion::Other(id));
        }
        Ok(Question {
            id,
            is_recursive: flags & 0x0100 != 0,
            name,
            kind,
            bytes_max: room(bytes.get(after + 4..).unwrap_or_default()),
            section: bytes[HEADER_BYTES..after + 4].to_vec(),
        })
    }

    /// The answer, no longer than `bytes_max`. What does not fit is left out, and it is said so.
    pub(super) fn answer(&self, answer: &Answer, bytes_max: usize) -> Vec<u8> {
        let whole = self.write(answer, false);
        if whole.len() <= bytes_max {
            return whole;
        }
        self.write(&Answer { code: answer.code, ..Answer::default() }, true)
    }

    fn write(&self, answer: &Answer, is_cut: bool) -> Vec<u8> {
        let flags = 0x8000
            | 0x0400
            | u16::from(is_cut) << 9
            | u16::from(self.is_recursive) << 8
            | 0x0080
            | answer.code as u16;
        let count = |records: usize| u16::try_from(records).unwrap_or(u16::MAX);
        let authorities = usize::from(answer.authority.is_some());
        let counts = [1, count(answer.records.len()), count(authorities), count(answer.more.len())];
        let mut bytes = self.id.to_be_bytes().to_vec();
        bytes.extend(flags.to_be_bytes());
        bytes.extend(counts.iter().flat_map(|count| count.to_be_bytes()));
        bytes.extend(&self.section);
        let records = answer.records.iter().chain(&answer.authority).chain(&answer.more);
        for record in records {
            record.write(&mut bytes);
        }
        bytes
    }
}

/// A question for another server.
pub(super) fn question(id: u16, name: &str, kind: u16) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    // Whoever is asked may ask others.
    bytes.extend([0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0]);
    write_name(&mut bytes, name);
    bytes.extend(kind.to_be_bytes());
    bytes.extend(CLASS_INTERNET.to_be_bytes());
    bytes
}

/// The addresses that another server has answered with, and the names that led to them; none if that
/// is no answer.
pub(super) fn read_answer(bytes: &[u8]) -> Option<Vec<Record>> {
    let number = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
    let mut at = HEADER_BYTES;
    for _ in 0..number(4)? {
        at = read_name(bytes, at, true)?.1 + 4;
    }
    let mut records = Vec::new();
    for _ in 0..number(6)? {
        let (name, after) = read_name(bytes, at, true)?;
        let (kind, length) = (number(after)?, usize::from(number(after + 8)?));
        let seconds = bytes.get(after + 4..after + 8)?.try_into().ok()?;
        let data = after + 10;
        at = data + length;
        let found = bytes.get(data..at)?;
        let data = match kind {
            A => Data::A(<[u8; 4]>::try_from(found).ok()?.into()),
            AAAA => Data::Aaaa(<[u8; 16]>::try_from(found).ok()?.into()),
            CNAME => Data::Cname(read_name(bytes, data, true)?.0),
            _ => continue,
        };
        records.push(Record { name, seconds: u32::from_be_bytes(seconds), data });
    }
    Some(records)
}

/// The answer to a message that is no question of ours.
pub(super) fn refusal(id: u16, code: Code) -> Vec<u8> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend((0x8000 | code as u16).to_be_bytes());
    bytes.extend([0; 8]);
    bytes
}

impl Record {
    fn write(&self, bytes: &mut Vec<u8>) {
        let mut data = Vec::new();
        let kind = self.data.write(&mut data);
        write_name(bytes, &self.name);
        bytes.extend(kind.to_be_bytes());
        bytes.extend(CLASS_INTERNET.to_be_bytes());
        bytes.extend(self.seconds.to_be_bytes());
        bytes.extend(u16::try_from(data.len()).unwrap_or(u16::MAX).to_be_bytes());
        bytes.extend(data);
    }
}

impl Data {
    /// Writes it, and gives its kind.
    fn write(&self, bytes: &mut Vec<u8>) -> u16 {
        match self {
            Data::A(address) => bytes.extend(address.octets()),
            Data::Aaaa(address) => bytes.extend(address.octets()),
            Data::Cname(name) | Data::Ptr(name) => write_name(bytes, name),
            Data::Srv { weight, port, target } => {
                bytes.extend([0, 0]);
                bytes.extend(weight.to_be_bytes());
                bytes.extend(port.to_be_bytes());
                write_name(bytes, target);
            }
            Data::Txt(text) => {
                let text = &text.as_bytes()[..text.len().min(255)];
                bytes.push(text.len() as u8);
                bytes.extend(text);
            }
            Data::Soa { server, mailbox, seconds } => {
                write_name(bytes, server);
                write_name(bytes, mailbox);
                for number in [1, 7200, 1800, 86400, *seconds] {
                    bytes.extend(number.to_be_bytes());
                }
            }
        }
        self.kind()
    }

    pub(super) fn kind(&self) -> u16 {
        match self {
            Data::A(_) => A,
            Data::Aaaa(_) => AAAA,
            Data::Cname(_) => CNAME,
            Data::Ptr(_) => PTR,
            Data::Srv { .. } => SRV,
            Data::Txt(_) => TXT,
            Data::Soa { .. } => SOA,
        }
    }
}

/// The name at a place, and where it ends. It may refer to an earlier one for its end; not in
/// questions, which come first.
fn read_name(bytes: &[u8], mut at: usize, may_refer: bool) -> Option<(String, usize)> {
    let mut name = String::new();
    let (mut end, mut referrals) = (None, 0);
    loop {
        let length = usize::from(*bytes.get(at)?);
        at += 1;
        match length {
            0 => return Some((name, end.unwrap_or(at))),
            0xc0.. if may_refer && referrals < REFERRALS_MAX => {
                let low = usize::from(*bytes.get(at)?);
                end.get_or_insert(at + 1);
                referrals += 1;
                at = (length & 0x3f) << 8 | low;
            }
            1..=LABEL_BYTES_MAX => {
                let label = bytes.get(at..at + length)?;
                if !name.is_empty() {
                    name.push('.');
                }
                // Names of the cluster are ASCII; of others it does not matter here how they look.
                name.push_str(&String::from_utf8_lossy(label).to_ascii_lowercase());
                at += length;
            }
            _ => return None,
        }
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
    }
}

fn write_name(bytes: &mut Vec<u8>, name: &str) {
    for label in name.split('.').filter(|label| !label.is_empty()) {
        let label = &label.as_bytes()[..label.len().min(LABEL_BYTES_MAX)];
        bytes.push(label.len() as u8);
        bytes.extend(label);
    }
    bytes.push(0);
}

/// How long an answer may be, by what is said after the question.
fn room(after: &[u8]) -> usize {
    match after {
        // A name of nothing, a kind, and in the place of a class, how much may be sent.
        [0, high, low, size_high, size_low, ..] if [*high, *low] == OPT.to_be_bytes() => {
            usize::from(u16::from_be_bytes([*size_high, *size_low])).max(UDP_BYTES_MAX)
        }
        _ => UDP_BYTES_MAX,
    }
}
