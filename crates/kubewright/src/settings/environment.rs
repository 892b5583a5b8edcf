//! What variables say of the settings.
//!
//! A variable is read as the flag it is named after would be, so that both take the same values.

use std::ffi::OsString;

use clap::{Args as _, Command, FromArgMatches as _};

use super::Layer;

const PREFIX: &str = "KUBEWRIGHT_";

/// Variables that others have agreed on, and that say the same.
const ALIASES: &[(&str, &str)] = &[
    ("namespace", "WATCH_NAMESPACE"),
    ("log-level", "RUST_LOG"),
    ("otlp-endpoint", "OTEL_EXPORTER_OTLP_ENDPOINT"),
];

/// A variable that is not understood.
#[derive(Debug, thiserror::Error)]
#[error("read the variable {name}: {cause}")]
pub struct VariableError {
    pub name: String,
    /// In the words of the flag that it is named after.
    pub cause: String,
}

pub(super) fn layer(
    environment: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Layer, VariableError> {
    let command = Layer::augment_args(Command::new("variables").no_binary_name(true));
    let mut layer = Layer::default();
    for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
        let set = names(flag).into_iter().find_map(|name| {
            let value = environment(&name).filter(|value| !value.is_empty())?;
            Some((name, value))
        });
        let Some((name, value)) = set else { continue };
        let mut argument = OsString::from(format!("--{flag}="));
        argument.push(value);
        let said = command
            .clone()
            .try_get_matches_from([argument])
            .and_then(|matches| Layer::from_arg_matches(&matches))
            .map_err(|error| VariableError { name, cause: cause(&error) })?;
        layer = said.over(layer);
    }
    Ok(layer)
}

/// The variables that a flag may come from; the first that is set counts.
fn names(flag: &str) -> Vec<String> {
    let own = format!("{PREFIX}{}", flag.replace('-', "_").to_uppercase());
    let agreed = ALIASES.iter().filter(|(known, _)| *known == flag);
    [own].into_iter().chain(agreed.map(|(_, name)| (*name).to_owned())).collect()
}

/// The first line of what clap says, which is what is wrong; the rest is about usage.
fn cause(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}
