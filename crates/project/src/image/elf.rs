//! What a program says of itself: for which machine it is, and whether it needs others.

/// A program of Linux.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elf {
    /// As images call it.
    pub architecture: &'static str,
    /// The program that must load it; none if it is static.
    pub interpreter: Option<String>,
}

/// Why a file is no program that can be put into an image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ElfError {
    #[error("it is no program of Linux (no ELF file of 64 bits, little-endian)")]
    Format,
    #[error("it is for machine {0}, which is none of amd64, arm64, riscv64, ppc64le")]
    Machine(u16),
}

const PT_INTERP: u32 = 3;

impl Elf {
    /// Reads what is needed of the headers.
    ///
    /// # Errors
    /// It is not such a file.
    pub fn parse(bytes: &[u8]) -> Result<Self, ElfError> {
        let is_elf = bytes.starts_with(b"\x7fELF\x02\x01");
        if !is_elf {
            return Err(ElfError::Format);
        }
        let architecture = match half(bytes, 18)? {
            62 => "amd64",
            183 => "arm64",
            243 => "riscv64",
            21 => "ppc64le",
            other => return Err(ElfError::Machine(other)),
        };
        let start = word(bytes, 32)?;
        let (size, count) = (usize::from(half(bytes, 54)?), usize::from(half(bytes, 56)?));
        let mut interpreter = None;
        for at in (0..count).filter_map(|n| start.checked_add(n.checked_mul(size)?)) {
            if u32_at(bytes, at)? == PT_INTERP {
                let (from, length) = (word(bytes, at + 8)?, word(bytes, at + 32)?);
                let end = from.checked_add(length).ok_or(ElfError::Format)?;
                let text = bytes.get(from..end).ok_or(ElfError::Format)?;
                let text = String::from_utf8_lossy(text);
                interpreter = Some(text.trim_end_matches('\0').to_owned());
            }
        }
        Ok(Elf { architecture, interpreter })
    }
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], ElfError> {
    let end = at.checked_add(N).ok_or(ElfError::Format)?;
    let slice = bytes.get(at..end).ok_or(ElfError::Format)?;
    slice.try_into().map_err(|_| ElfError::Format)
}

fn half(bytes: &[u8], at: usize) -> Result<u16, ElfError> {
    Ok(u16::from_le_bytes(take(bytes, at)?))
}

fn u32_at(bytes: &[u8], at: usize) -> Result<u32, ElfError> {
    Ok(u32::from_le_bytes(take(bytes, at)?))
}

fn word(bytes: &[u8], at: usize) -> Result<usize, ElfError> {
    usize::try_from(u64::from_le_bytes(take(bytes, at)?)).map_err(|_| ElfError::Format)
}
