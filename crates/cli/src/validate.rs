//! `kubewright validate`: what kube-apiserver would say of manifests, without a cluster.
//!
//! Definitions among the manifests are judged first and then used to judge custom resources. The
//! order of files does not matter, as it would not after a second `kubectl apply`.

mod source;
mod verdict;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;

use self::verdict::{Definitions, Verdict};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Files, folders with `.yaml`, `.yml` and `.json` files, or `-` for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Pass over kinds that are neither built in nor defined by one of the manifests.
    #[arg(long)]
    skip_unknown: bool,
}

/// Exits with 1 if an object would be refused.
pub(crate) fn run(args: &Args) -> Result<ExitCode> {
    let manifests = source::read(&args.paths)?;
    let definitions = Definitions::of(manifests.iter().filter_map(|m| m.object.as_ref().ok()));
    let (mut accepted, mut refused, mut skipped) = (0, 0, 0);
    for manifest in &manifests {
        let file = manifest.file.display();
        let object = match &manifest.object {
            Ok(object) => object,
            Err(problem) => {
                refused += 1;
                say!("{file}: {problem}");
                continue;
            }
        };
        let name = verdict::name(&object.value);
        match verdict::judge(object, &definitions) {
            Verdict::Accepted { warnings } => {
                accepted += 1;
                say!("{file}: {name} ok");
                warnings.iter().for_each(|warning| say!("{file}: {name} warning: {warning}"));
            }
            Verdict::Refused(complaints) => {
                refused += 1;
                complaints.iter().for_each(|complaint| say!("{file}: {name} {complaint}"));
            }
            Verdict::Unknown if args.skip_unknown => {
                skipped += 1;
                say!("{file}: {name} skipped");
            }
            Verdict::Unknown => {
                refused += 1;
                say!(
                    "{file}: {name} is of a kind that is neither built in nor defined here: add \
                     its CustomResourceDefinition, or --skip-unknown"
                );
            }
        }
    }
    say!("{accepted} accepted, {refused} refused, {skipped} skipped");
    Ok(if refused == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
