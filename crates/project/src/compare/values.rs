//! Changes of what a schema says about single values: choices, patterns, limits, combinations.

use kubewright_apimachinery::schema::{Constraints, Structural};

use super::Hurt::{Clients, Stored};
use super::schema::listed;
use super::{Findings, Place};

pub(super) fn compare(old: &Structural, new: &Structural, at: &Place, findings: &mut Findings) {
    let none = Constraints::default();
    let before = old.constraints.as_deref().unwrap_or(&none);
    let after = new.constraints.as_deref().unwrap_or(&none);
    choices(before, after, at, findings);
    format(old, new, before, after, at, findings);
    pattern(before, after, at, findings);
    limits(before, after, at, findings);
    combinations(before, after, at, findings);
}

fn choices(before: &Constraints, after: &Constraints, at: &Place, findings: &mut Findings) {
    let (was, is) = (&before.enumeration, &after.enumeration);
    match (was.is_empty(), is.is_empty()) {
        (true, false) => {
            let message = format!("must be one of {}", listed(is));
            findings.breaking(at, &[Clients], "enum-added", message);
        }
        (false, true) => {
            let message = "may be any value: clients must be ready to read it".to_owned();
            findings.warning(at, &[Clients], "enum-removed", message);
        }
        _ => {
            let gone: Vec<_> = was.iter().filter(|value| !is.contains(value)).collect();
            if !gone.is_empty() {
                let message = format!("may no longer be {}", listed(gone));
                findings.breaking(at, &[Clients], "enum-narrowed", message);
            }
            let new: Vec<_> = is.iter().filter(|value| !was.contains(value)).collect();
            if !new.is_empty() {
                let message = format!("may be {}: clients must be ready to read it", listed(new));
                findings.warning(at, &[Clients], "enum-widened", message);
            }
        }
    }
}

fn format(
    old: &Structural,
    new: &Structural,
    before: &Constraints,
    after: &Constraints,
    at: &Place,
    findings: &mut Findings,
) {
    // A format that nobody knows restricts nothing.
    let known = |schema: &Structural, constraints: &Constraints| {
        let format = constraints.format.as_ref()?;
        format.is_recognized(schema.type_.as_ref()).then(|| format.name.to_string())
    };
    match (known(old, before), known(new, after)) {
        (was, Some(is)) if was.as_ref() != Some(&is) => {
            let is_wider = was.as_deref() == Some("int32") && is == "int64";
            let was = was.unwrap_or_else(|| "any".to_owned());
            if is_wider {
                let message = "was int32, is int64: clients must be ready to read more".to_owned();
                findings.warning(at, &[Clients], "format-widened", message);
            } else {
                let message = format!("had the format {was}, must have the format {is}");
                findings.breaking(at, &[Clients], "format-changed", message);
            }
        }
        (Some(was), None) => {
            let message = format!("need not have the format {was} any more");
            findings.warning(at, &[Clients], "format-removed", message);
        }
        _ => {}
    }
}

fn pattern(before: &Constraints, after: &Constraints, at: &Place, findings: &mut Findings) {
    let text = |constraints: &Constraints| {
        constraints.pattern.as_ref().map(|pattern| pattern.text.to_string())
    };
    match (text(before), text(after)) {
        (None, Some(is)) => {
            let message = format!("must match {is:?}");
            findings.breaking(at, &[Clients], "pattern-added", message);
        }
        // Whether one pattern takes all that the other takes is not decided here.
        (Some(was), Some(is)) if was != is => {
            let message = format!("had to match {was:?}, must match {is:?}: it may take less");
            findings.breaking(at, &[Clients], "pattern-changed", message);
        }
        (Some(was), None) => {
            let message = format!("need not match {was:?} any more");
            findings.compatible(at, "pattern-removed", message);
        }
        _ => {}
    }
}

/// One limit, as a number that may not be passed; which way is the caller's to say.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limit {
    number: f64,
    is_exclusive: bool,
}

fn limits(before: &Constraints, after: &Constraints, at: &Place, findings: &mut Findings) {
    let count = |number: Option<i64>| {
        number.map(|number| Limit { number: number as f64, is_exclusive: false })
    };
    let of =
        |number: Option<f64>, is_exclusive| number.map(|number| Limit { number, is_exclusive });
    let lower = [
        ("minLength", count(before.min_length), count(after.min_length)),
        ("minItems", count(before.min_items), count(after.min_items)),
        ("minProperties", count(before.min_properties), count(after.min_properties)),
        (
            "minimum",
            of(before.minimum, before.exclusive_minimum),
            of(after.minimum, after.exclusive_minimum),
        ),
    ];
    for (word, was, is) in lower {
        // Nothing is shorter than nothing.
        let floor = |limit: Option<Limit>| limit.filter(|it| word == "minimum" || it.number > 0.0);
        limit(word, floor(was), floor(is), |new, old| new > old, at, findings);
    }
    let upper = [
        ("maxLength", count(before.max_length), count(after.max_length)),
        ("maxItems", count(before.max_items), count(after.max_items)),
        ("maxProperties", count(before.max_properties), count(after.max_properties)),
        (
            "maximum",
            of(before.maximum, before.exclusive_maximum),
            of(after.maximum, after.exclusive_maximum),
        ),
    ];
    for (word, was, is) in upper {
        limit(word, was, is, |new, old| new < old, at, findings);
    }
    if !before.unique_items && after.unique_items {
        let message = "may have no equal elements".to_owned();
        findings.breaking(at, &[Stored, Clients], "limit-added", message);
    }
    if let Some(step) = after.multiple_of
        && before.multiple_of != Some(step)
        && before.multiple_of.is_none_or(|was| was % step != 0.0)
    {
        let message = format!("must be a multiple of {step}");
        findings.breaking(at, &[Clients], "limit-tightened", message);
    }
}

fn limit(
    word: &str,
    was: Option<Limit>,
    is: Option<Limit>,
    is_tighter: impl Fn(f64, f64) -> bool,
    at: &Place,
    findings: &mut Findings,
) {
    let shown = |limit: Limit| {
        let exclusive = if limit.is_exclusive { " (exclusive)" } else { "" };
        format!("{}{exclusive}", limit.number)
    };
    match (was, is) {
        (None, Some(is)) => {
            let message = format!("has {word} {} now", shown(is));
            findings.breaking(at, &[Clients], "limit-added", message);
        }
        (Some(was), Some(is)) if was != is => {
            let message = format!("{word} was {}, is {}", shown(was), shown(is));
            let is_tighter = is_tighter(is.number, was.number)
                || (is.number == was.number && is.is_exclusive && !was.is_exclusive);
            if is_tighter {
                findings.breaking(at, &[Clients], "limit-tightened", message);
            } else {
                findings.compatible(at, "limit-loosened", message);
            }
        }
        (Some(was), None) => {
            let message = format!("{word} {} is gone", shown(was));
            findings.compatible(at, "limit-removed", message);
        }
        _ => {}
    }
}

fn combinations(before: &Constraints, after: &Constraints, at: &Place, findings: &mut Findings) {
    let combined = [
        ("allOf", &before.all_of, &after.all_of),
        ("anyOf", &before.any_of, &after.any_of),
        ("oneOf", &before.one_of, &after.one_of),
    ];
    for (word, was, is) in combined {
        if was == is {
            continue;
        }
        if is.is_empty() {
            findings.compatible(at, "combination-removed", format!("{word} is gone"));
            continue;
        }
        // One more alternative takes whatever was taken.
        let is_wider = word == "anyOf" && !was.is_empty() && was.iter().all(|it| is.contains(it));
        let message = format!("{word} has changed: it may take less");
        if is_wider {
            findings.compatible(at, "combination-widened", format!("{word} has more choices"));
        } else {
            findings.breaking(at, &[Stored, Clients], "combination-changed", message);
        }
    }
    if before.not != after.not {
        match &after.not {
            Some(_) => {
                let message = "`not` has changed: it may take less".to_owned();
                findings.breaking(at, &[Stored, Clients], "combination-changed", message);
            }
            None => findings.compatible(at, "combination-removed", "`not` is gone".to_owned()),
        }
    }
}
