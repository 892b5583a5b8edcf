//! Flags of other programs: which there are, what becomes of them here, and how they are read. The
//! two programs read theirs with different libraries of Go, which differ in what they take and in
//! how they say no.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

/// One flag.
#[derive(Clone, Copy)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    pub(crate) takes: Takes,
    pub(crate) effect: Effect,
    pub(crate) help: &'static str,
}

/// What follows the name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Takes {
    /// Nothing, or `=true` or `=false`.
    Switch,
    /// Nothing, which says `true`, or a value after `=`.
    Attached(&'static str),
    /// A value, of which the last counts; the word says what it is.
    One(&'static str),
    /// Values that commas separate, or that are given one by one.
    List(&'static str),
    /// Values that are given one by one.
    Each(&'static str),
}

/// What a flag does here.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// What it does in the original.
    Heeded,
    /// Nothing, and nobody could tell.
    Idle,
    /// Nothing, which somebody may notice: it is said on standard error.
    Ignored(&'static str),
    /// The program does not start, for it would not do as told.
    Refused(&'static str),
}

/// How flags are written, and how mistakes in them are told.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Of kube-apiserver: two dashes, `_` for `-`, some letters with one dash.
    Pflag,
    /// Of etcd: one dash or two.
    Go,
}

/// What was given.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    values: HashMap<&'static str, Vec<String>>,
    /// What is not as it was asked for: a line each.
    pub(crate) warnings: Vec<String>,
    /// What is no flag.
    pub(crate) rest: Vec<String>,
}

/// Why flags cannot be used. Displays as the original says it, where it would refuse too.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FlagError {
    #[error("unknown flag: --{0}")]
    Unknown(String),
    #[error("unknown shorthand flag: {0:?} in -{1}")]
    UnknownLetter(char, String),
    #[error("flag provided but not defined: -{0}")]
    Undefined(String),
    #[error("flag needs an argument: {0}")]
    NoValue(String),
    #[error("invalid argument {value:?} for \"--{name}\" flag: {why}")]
    Argument { name: String, value: String, why: String },
    #[error("invalid value {value:?} for flag -{name}: parse error")]
    Value { name: String, value: String },
    #[error("invalid boolean value {value:?} for -{name}: parse error")]
    Boolean { name: String, value: String },
    #[error("--{name} is not supported here: {what}")]
    Refused { name: &'static str, what: &'static str },
}

pub(crate) const fn flag(
    name: &'static str,
    takes: Takes,
    effect: Effect,
    help: &'static str,
) -> Flag {
    Flag { name, takes, effect, help }
}

/// Reads `args`. `letters` are other names of one letter.
pub(crate) fn parse(
    dialect: Dialect,
    table: &'static [Flag],
    letters: &[(char, &'static str)],
    args: Vec<String>,
) -> Result<Given, FlagError> {
    let mut given = Given::default();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let Some((dashes, body)) = dashed(&arg) else {
            given.rest.push(arg);
            // Go's own library stops at the first word that is no flag.
            if dialect == Dialect::Go {
                given.rest.extend(args);
                break;
            }
            continue;
        };
        if body.is_empty() {
            given.rest.extend(args);
            break;
        }
        let (name, value) = match body.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (body.to_owned(), None),
        };
        let (name, value) = match (dialect, dashes) {
            (Dialect::Pflag, 1) => spelled(body, letters)?,
            (Dialect::Pflag, _) => (name.replace('_', "-"), value),
            (Dialect::Go, _) => (name, value),
        };
        let Some(flag) = table.iter().find(|flag| flag.name == name) else {
            return Err(match dialect {
                Dialect::Pflag => FlagError::Unknown(name),
                Dialect::Go => FlagError::Undefined(name),
            });
        };
        let value = match (value, flag.takes) {
            (Some(value), _) => value,
            (None, Takes::Switch | Takes::Attached(_)) => "true".to_owned(),
            (None, _) => args.next().ok_or_else(|| {
                let dashes = if dialect == Dialect::Pflag { "--" } else { "-" };
                FlagError::NoValue(format!("{dashes}{name}"))
            })?,
        };
        given.take(dialect, flag, value)?;
    }
    Ok(given)
}

/// How many dashes an argument begins with, and what follows them.
fn dashed(arg: &str) -> Option<(usize, &str)> {
    match arg.strip_prefix("--") {
        Some(body) => Some((2, body)),
        // A dash by itself is a word like others.
        None => arg.strip_prefix('-').filter(|body| !body.is_empty()).map(|body| (1, body)),
    }
}

/// `v=4`, `v4` or `v` as a name and a value.
fn spelled(
    body: &str,
    letters: &[(char, &'static str)],
) -> Result<(String, Option<String>), FlagError> {
    let mut rest = body.chars();
    let letter = rest.next().unwrap_or_default();
    let Some((_, name)) = letters.iter().find(|(known, _)| *known == letter) else {
        return Err(FlagError::UnknownLetter(letter, body.to_owned()));
    };
    let rest = rest.as_str();
    let value = Some(rest.strip_prefix('=').unwrap_or(rest)).filter(|_| !rest.is_empty());
    Ok(((*name).to_owned(), value.map(str::to_owned)))
}

impl Given {
    fn take(
        &mut self,
        dialect: Dialect,
        flag: &'static Flag,
        value: String,
    ) -> Result<(), FlagError> {
        let name = flag.name;
        match flag.effect {
            // Saying no to what is not there changes nothing.
            Effect::Refused(_) | Effect::Ignored(_)
                if value.is_empty()
                    || flag.takes == Takes::Switch && boolean(&value) == Some(false) => {}
            Effect::Refused(what) => return Err(FlagError::Refused { name, what }),
            Effect::Ignored(what) => {
                self.warnings.push(format!("--{name} makes no difference here: {what}"));
            }
            Effect::Heeded | Effect::Idle => {}
        }
        let values = self.values.entry(name).or_default();
        match flag.takes {
            Takes::Switch => {
                if boolean(&value).is_none() {
                    let name = name.to_owned();
                    return Err(match dialect {
                        Dialect::Pflag => {
                            let why =
                                format!("strconv.ParseBool: parsing {value:?}: invalid syntax");
                            FlagError::Argument { name, value, why }
                        }
                        Dialect::Go => FlagError::Boolean { name, value },
                    });
                }
                *values = vec![value];
            }
            Takes::One(_) | Takes::Attached(_) => *values = vec![value],
            Takes::List(_) => {
                let items = value.split(',').filter(|item| !item.is_empty());
                values.extend(items.map(str::to_owned));
            }
            Takes::Each(_) => values.push(value),
        }
        Ok(())
    }

    /// What the environment gives where the command line gives nothing.
    pub(crate) fn fill(
        &mut self,
        table: &'static [Flag],
        from: impl Fn(&str) -> Option<String>,
    ) -> Result<(), FlagError> {
        for flag in table.iter().filter(|flag| flag.effect != Effect::Idle) {
            if !self.values.contains_key(flag.name)
                && let Some(value) = from(flag.name)
            {
                self.take(Dialect::Go, flag, value)?;
            }
        }
        Ok(())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.values.contains_key(name)
    }

    /// The value, unless it is empty, which says that there is none.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let value = self.values.get(name).and_then(|values| values.last());
        value.map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(crate) fn list(&self, name: &str) -> Vec<String> {
        self.values.get(name).cloned().unwrap_or_default()
    }

    pub(crate) fn switch(&self, name: &str) -> Option<bool> {
        self.text(name).and_then(boolean)
    }

    pub(crate) fn number(&self, dialect: Dialect, name: &str) -> Result<Option<u64>, FlagError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            let why = format!("strconv.ParseInt: parsing {text:?}: invalid syntax");
            invalid(dialect, name, text, why)
        })
    }

    pub(crate) fn duration(
        &self,
        dialect: Dialect,
        name: &str,
    ) -> Result<Option<Duration>, FlagError> {
        let Some(text) = self.text(name) else { return Ok(None) };
        let parsed = duration(text);
        parsed
            .map(Some)
            .ok_or_else(|| invalid(dialect, name, text, format!("time: invalid duration {text:?}")))
    }
}

/// A value that is not what it should be.
pub(crate) fn invalid(dialect: Dialect, name: &str, value: &str, why: String) -> FlagError {
    let (name, value) = (name.to_owned(), value.to_owned());
    match dialect {
        Dialect::Pflag => FlagError::Argument { name, value, why },
        Dialect::Go => FlagError::Value { name, value },
    }
}

/// The flags with what they are for, a line each, as those look for them who ask for help to find
/// out which there are.
pub(crate) fn help(table: &[Flag]) -> String {
    let mut text = String::new();
    let sections =
        [("Flags", Effect::Heeded), ("Flags that make no difference here", Effect::Idle)];
    for (title, effect) in sections {
        text.push_str(&format!("\n{title}:\n\n"));
        let alike = |flag: &&Flag| match flag.effect {
            Effect::Ignored(_) => effect == Effect::Idle,
            own => own == effect,
        };
        for flag in table.iter().filter(alike) {
            let word = match flag.takes {
                Takes::Switch => "",
                Takes::Attached(word)
                | Takes::One(word)
                | Takes::List(word)
                | Takes::Each(word) => word,
            };
            let name = format!("--{} {word}", flag.name);
            let line = format!("      {name:<50} {}", flag.help);
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    text
}

/// Go's `strconv.ParseBool`.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Go's `time.ParseDuration`, for what is not negative: `1h30m`, `1.5s`, `0`.
fn duration(text: &str) -> Option<Duration> {
    const UNITS: [(&str, f64); 6] =
        [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];

    if text == "0" {
        return Some(Duration::ZERO);
    }
    let (mut rest, mut seconds) = (text, 0.0);
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let unit = &rest[number..];
        let unit = &unit[..unit.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(unit.len())];
        let (_, scale) = UNITS.iter().find(|(name, _)| *name == unit)?;
        seconds += rest[..number].parse::<f64>().ok()? * scale;
        rest = &rest[number + unit.len()..];
    }
    Duration::try_from_secs_f64(seconds).ok()
}
