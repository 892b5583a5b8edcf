//! Formats by name, as schemas and names have them.

use super::strings::text;
use super::{Body, Table};
use crate::cel::value::{Failure, Outcome, Val};
use crate::name::{self, Rule};
use crate::schema::{Format, Uri};

pub struct NamedFormat {
    pub(in crate::cel) name: &'static str,
    /// What checking a text is taken to cost: the length of a pattern.
    pub(in crate::cel) pattern_size: u64,
    check: fn(&str) -> Vec<String>,
}

/// By the name that `format.named` takes, which is also that of a function.
const FORMATS: &[(&str, &str, NamedFormat)] = &[
    (
        "dns1123Label",
        "format.dns1123Label",
        NamedFormat {
            name: "DNS1123Label",
            pattern_size: 30,
            check: |text| Rule::Label.check(text),
        },
    ),
    (
        "dns1123Subdomain",
        "format.dns1123Subdomain",
        NamedFormat {
            name: "DNS1123Subdomain",
            pattern_size: 60,
            check: |text| Rule::Subdomain.check(text),
        },
    ),
    (
        "dns1035Label",
        "format.dns1035Label",
        NamedFormat {
            name: "DNS1035Label",
            pattern_size: 30,
            check: |text| Rule::Label1035.check(text),
        },
    ),
    (
        "qualifiedName",
        "format.qualifiedName",
        NamedFormat { name: "QualifiedName", pattern_size: 60, check: name::label_key },
    ),
    (
        "dns1123LabelPrefix",
        "format.dns1123LabelPrefix",
        NamedFormat {
            name: "DNS1123LabelPrefix",
            pattern_size: 30,
            check: |text| Rule::Label.check_prefix(text),
        },
    ),
    (
        "dns1123SubdomainPrefix",
        "format.dns1123SubdomainPrefix",
        NamedFormat {
            name: "DNS1123SubdomainPrefix",
            pattern_size: 60,
            check: |text| Rule::Subdomain.check_prefix(text),
        },
    ),
    (
        "dns1035LabelPrefix",
        "format.dns1035LabelPrefix",
        NamedFormat {
            name: "DNS1035LabelPrefix",
            pattern_size: 30,
            check: |text| Rule::Label1035.check_prefix(text),
        },
    ),
    (
        "labelValue",
        "format.labelValue",
        NamedFormat { name: "LabelValue", pattern_size: 40, check: name::label_value },
    ),
    (
        "uri",
        "format.uri",
        NamedFormat {
            name: "URI",
            pattern_size: 1103,
            check: |text| Uri::parse_request(text).err().into_iter().collect(),
        },
    ),
    (
        "uuid",
        "format.uuid",
        NamedFormat {
            name: "uuid",
            pattern_size: 70,
            check: |text| of_schema("uuid", text, "does not match the UUID format"),
        },
    ),
    (
        "byte",
        "format.byte",
        NamedFormat {
            name: "byte",
            pattern_size: 84,
            check: |text| of_schema("byte", text, "invalid base64"),
        },
    ),
    (
        "date",
        "format.date",
        NamedFormat {
            name: "date",
            pattern_size: 71,
            check: |text| of_schema("date", text, "invalid date"),
        },
    ),
    (
        "datetime",
        "format.datetime",
        NamedFormat {
            name: "datetime",
            pattern_size: 71,
            check: |text| of_schema("datetime", text, "invalid datetime"),
        },
    ),
];

fn of_schema(format: &str, text: &str, complaint: &str) -> Vec<String> {
    match Format::new(format).accepts(text) {
        true => Vec::new(),
        false => vec![complaint.to_owned()],
    }
}

pub(super) fn declare(table: &mut Table) {
    use Body::Typed;
    const F: &str = "kubernetes.NamedFormat";
    table.member(
        "validate",
        "format-validate",
        &format!("{F}, string -> optional(list(string))"),
        Typed(validate),
    );
    table.global("format.named", "format-named", &format!("string -> optional({F})"), Typed(named));
    macro_rules! constants {
        ($($index:literal)*) => {
            $(table.global(
                FORMATS[$index].1,
                FORMATS[$index].1,
                &format!("-> {F}"),
                Typed(|_| Ok(Val::Format(&FORMATS[$index].2))),
            );)*
        };
    }
    constants!(0 1 2 3 4 5 6 7 8 9 10 11 12);
}

fn named<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let name = text(args, 0)?;
    let found = FORMATS.iter().find(|(known, ..)| *known == name);
    Ok(found.map_or(Val::NONE, |(_, _, format)| Val::some(Val::Format(format))))
}

fn validate<'v>(args: &[Val<'v>]) -> Outcome<'v> {
    let Val::Format(format) = &args[0] else { return Err(Failure::NO_SUCH_OVERLOAD) };
    let complaints = (format.check)(text(args, 1)?);
    Ok(match complaints.is_empty() {
        true => Val::NONE,
        false => Val::some(Val::list(complaints.into_iter().map(Val::text).collect())),
    })
}
