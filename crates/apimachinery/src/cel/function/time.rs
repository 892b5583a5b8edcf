//! What calendars and clocks show of timestamps, and the parts of durations.

use jiff::tz::TimeZone;

use super::{Body, Table};
use crate::cel::value::{Failure, Outcome, Timestamp, Val, Zone};

pub(super) fn declare(table: &mut Table) {
    use Body::Typed;
    /// The name of a function, of its overloads, and what it shows.
    const GETTERS: &[(&str, &str, super::Function)] = &[
        ("getFullYear", "timestamp_to_year", |args| {
            show(args, |at, years| i64::from(at.year()) + years)
        }),
        ("getMonth", "timestamp_to_month", |args| show(args, |at, _| i64::from(at.month()) - 1)),
        ("getDayOfYear", "timestamp_to_day_of_year", |args| {
            show(args, |at, _| i64::from(at.day_of_year()) - 1)
        }),
        ("getDayOfMonth", "timestamp_to_day_of_month", |args| {
            show(args, |at, _| i64::from(at.day()) - 1)
        }),
        ("getDate", "timestamp_to_day_of_month_1_based", |args| {
            show(args, |at, _| i64::from(at.day()))
        }),
        ("getDayOfWeek", "timestamp_to_day_of_week", |args| {
            show(args, |at, _| i64::from(at.weekday().to_sunday_zero_offset()))
        }),
        ("getHours", "timestamp_to_hours", |args| show(args, |at, _| i64::from(at.hour()))),
        ("getMinutes", "timestamp_to_minutes", |args| show(args, |at, _| i64::from(at.minute()))),
        ("getSeconds", "timestamp_to_seconds_tz", |args| {
            show(args, |at, _| i64::from(at.second()))
        }),
        ("getMilliseconds", "timestamp_to_milliseconds", |args| {
            show(args, |at, _| i64::from(at.subsec_nanosecond()) / 1_000_000)
        }),
    ];
    for (name, id, body) in GETTERS {
        table.member(name, *id, "timestamp -> int", Typed(*body));
        table.member(name, format!("{id}_with_tz"), "timestamp, string -> int", Typed(*body));
    }
    let mut part = |name: &'static str, id: &'static str, body| {
        table.member(name, id, "duration -> int", Typed(body));
    };
    part("getHours", "duration_to_hours", |args| whole(args, 3_600_000_000_000));
    part("getMinutes", "duration_to_minutes", |args| whole(args, 60_000_000_000));
    part("getSeconds", "duration_to_seconds", |args| whole(args, 1_000_000_000));
    part("getMilliseconds", "duration_to_milliseconds", |args| whole(args, 1_000_000));
}

fn show<'v>(args: &[Val<'v>], part: fn(jiff::civil::DateTime, i64) -> i64) -> Outcome<'v> {
    let (Val::Timestamp(at), zone) = (&args[0], args.get(1)) else {
        return Err(Failure::NO_SUCH_OVERLOAD);
    };
    let at: &Timestamp = at;
    let zone = match zone {
        Some(Val::String(name)) => self::zone(name)?,
        _ => Zone::East(0),
    };
    let (civil, years) = at.civil(&zone);
    Ok(Val::Int(part(civil, years)))
}

/// `+02:00`, or the name of a place.
fn zone(name: &str) -> Result<Zone, Failure> {
    let Some((hours, minutes)) = name.split_once(':') else {
        return match name {
            "" | "UTC" | "Local" => Ok(Zone::East(0)),
            _ if name.contains("..") || name.starts_with(['/', '\\']) => {
                Err(Failure::new("time: invalid location name"))
            }
            _ => TimeZone::get(name)
                .map(Zone::Place)
                .map_err(|_| Failure::new(format!("unknown time zone {name}"))),
        };
    };
    let number = |text: &str| {
        text.parse::<i32>().map(i64::from).map_err(|_| {
            let quoted = crate::json::go_quote(text);
            Failure::new(format!("strconv.Atoi: parsing {quoted}: invalid syntax"))
        })
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let minutes = if name.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    Ok(Zone::East(minutes * 60))
}

fn whole<'v>(args: &[Val<'v>], unit_nanos: i64) -> Outcome<'v> {
    match &args[0] {
        Val::Duration(nanos) => Ok(Val::Int(nanos / unit_nanos)),
        _ => Err(Failure::NO_SUCH_OVERLOAD),
    }
}
