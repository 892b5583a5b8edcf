//! `kubewright diff-crd`: what a changed definition breaks.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use kubewright_project::compare::{self, Severity};
use kubewright_project::definition::{self, Source};
use serde_json::json;

/// Exits with 0 if nothing is as bad as --fail-on says, with 1 if something is, and with 2 if the
/// definitions could not be compared.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A file with definitions as they were; `-` for standard input.
    old: PathBuf,
    /// A file with definitions as they are to be.
    new: PathBuf,
    /// From how bad a change on the exit code is 1.
    #[arg(long, value_name = "SEVERITY", default_value = "breaking")]
    fail_on: FailOn,
    /// How to print what was found.
    #[arg(long, short, value_name = "FORMAT", default_value = "text")]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Breaking,
    Warning,
    Never,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let (old, new) = (definition::read(&args.old)?, definition::read(&args.new)?);
    let pairs = pairs(&old, &new, &args.old, &args.new)?;
    let mut worst = Severity::Compatible;
    let mut documents = Vec::new();
    for (name, before, after) in pairs {
        let findings = match (before, after) {
            (Some(before), Some(after)) => {
                let places = || {
                    let place = |it: &Source| format!("{}, line {}", it.file.display(), it.line);
                    format!("compare {} with {}", place(before), place(after))
                };
                compare::compare(&before.definition, &after.definition).with_context(places)?
            }
            (Some(_), None) => vec![compare::gone(&name)],
            (None, _) => Vec::new(),
        };
        worst = worst.max(compare::worst(&findings));
        match args.output {
            Output::Text => {
                say!("{name}");
                say!("{}", compare::text(&findings).trim_end());
            }
            Output::Json => {
                let mut document = compare::json(&findings);
                document["definition"] = json!(name);
                documents.push(document);
            }
        }
    }
    if args.output == Output::Json {
        let all = json!({"worst": worst, "definitions": documents});
        say!("{}", serde_json::to_string_pretty(&all).context("print what was found")?);
    }
    let fails = match args.fail_on {
        FailOn::Breaking => worst >= Severity::Breaking,
        FailOn::Warning => worst >= Severity::Warning,
        FailOn::Never => false,
    };
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

type Pair<'a> = (String, Option<&'a Source>, Option<&'a Source>);

/// Definitions by name. Of one in each file the names may differ: that is a finding.
fn pairs<'a>(
    old: &'a [Source],
    new: &'a [Source],
    old_file: &Path,
    new_file: &Path,
) -> Result<Vec<Pair<'a>>> {
    if let ([before], [after]) = (old, new) {
        return Ok(vec![(definition::name(&before.definition), Some(before), Some(after))]);
    }
    for (sources, file) in [(old, old_file), (new, new_file)] {
        let mut names: Vec<_> = sources.iter().map(|it| definition::name(&it.definition)).collect();
        names.sort();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("{} has the definition {} twice", file.display(), twice[0]);
        }
    }
    let find = |sources: &'a [Source], wanted: &str| {
        sources.iter().find(|it| definition::name(&it.definition) == wanted)
    };
    let of = |source: &'a Source| {
        let name = definition::name(&source.definition);
        (name.clone(), find(old, &name), find(new, &name))
    };
    let added = new.iter().filter(|it| find(old, &definition::name(&it.definition)).is_none());
    Ok(old.iter().chain(added).map(of).collect())
}
