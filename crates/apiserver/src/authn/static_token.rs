//! Tokens from a file: one line each, `token,user,uid,"group1,group2"`.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use crate::user::User;

/// Tokens that were agreed upon beforehand.
#[derive(Default, Clone)]
pub struct StaticTokens(HashMap<String, User>);

/// Why a file holds no tokens.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StaticTokensError {
    #[error("read line {line}, which has {found} columns instead of a token, a user and a uid")]
    Columns { line: usize, found: usize },
    #[error("read line {line}, where a quote is out of place")]
    Quote { line: usize },
}

impl StaticTokens {
    /// Reads comma-separated values. Lines without a token are passed over; of several for one
    /// token the last counts.
    pub fn parse(csv: &str) -> Result<Self, StaticTokensError> {
        let mut tokens = HashMap::new();
        for (index, line) in csv.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let fields = fields(line).ok_or(StaticTokensError::Quote { line: index + 1 })?;
            let [token, name, uid, rest @ ..] = fields.as_slice() else {
                let found = fields.len();
                return Err(StaticTokensError::Columns { line: index + 1, found });
            };
            if token.is_empty() {
                continue;
            }
            let groups = rest.first().into_iter().flat_map(|groups| groups.split(','));
            let user = User {
                name: name.clone(),
                uid: uid.clone(),
                groups: groups.map(str::to_owned).collect(),
                extra: BTreeMap::new(),
            };
            tokens.insert(token.clone(), user);
        }
        Ok(StaticTokens(tokens))
    }

    pub fn insert(&mut self, token: impl Into<String>, user: User) {
        self.0.insert(token.into(), user);
    }

    pub fn get(&self, token: &str) -> Option<&User> {
        self.0.get(token)
    }
}

/// The fields of a line; a quoted one may hold commas, and quotes by doubling them.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = Vec::new();
    let mut rest = line;
    loop {
        let Some(mut quoted) = rest.strip_prefix('"') else {
            let (field, after) = rest.split_once(',').map_or((rest, None), |(f, a)| (f, Some(a)));
            if field.contains('"') {
                return None;
            }
            fields.push(field.to_owned());
            match after {
                Some(after) => rest = after,
                None => return Some(fields),
            }
            continue;
        };
        let mut field = String::new();
        loop {
            let (text, after) = quoted.split_once('"')?;
            field.push_str(text);
            match after.strip_prefix('"') {
                Some(after) => {
                    field.push('"');
                    quoted = after;
                }
                None => {
                    quoted = after;
                    break;
                }
            }
        }
        fields.push(field);
        match quoted {
            "" => return Some(fields),
            quoted => rest = quoted.strip_prefix(',')?,
        }
    }
}

impl fmt::Debug for StaticTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StaticTokens").field("count", &self.0.len()).finish_non_exhaustive()
    }
}
