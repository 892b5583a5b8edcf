//! Metrics as text, in the form that Prometheus has read since its first days.
//!
//! Upstream offers OpenMetrics to nobody, so everyone gets this form, whatever they accept.

use std::fmt::Write as _;

use super::histogram::Histogram;

/// What everybody gets.
pub(super) const MEDIA_TYPE: &str =
    "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";

/// A page of metrics that is being written.
#[derive(Default)]
pub(super) struct Page {
    text: String,
    family: Option<Family>,
}

/// Metrics of one name.
#[derive(Debug, Clone, Copy)]
pub(super) struct Family {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) help: &'static str,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// Names and values, in the order of their names.
pub(super) type Labels<'a> = [(&'static str, &'a str)];

impl Page {
    /// Begins a family. One without samples leaves no trace.
    pub(super) fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) {
        self.family = Some(Family { name, kind, help });
    }

    pub(super) fn sample(&mut self, labels: &Labels<'_>, value: f64) {
        let name = self.head();
        self.line(name, "", labels, None, value);
    }

    pub(super) fn histogram(&mut self, labels: &Labels<'_>, histogram: &Histogram) {
        self.histogram_from(labels, histogram, 0);
    }

    /// A histogram without its first buckets.
    pub(super) fn histogram_from(
        &mut self,
        labels: &Labels<'_>,
        histogram: &Histogram,
        first: usize,
    ) {
        let name = self.head();
        let reading = histogram.read();
        let bounds = histogram.buckets.shown().chain([f64::INFINITY]);
        for (bound, count) in bounds.zip(&reading.cumulative).skip(first) {
            self.line(name, "_bucket", labels, Some(bound), *count);
        }
        self.line(name, "_sum", labels, None, reading.sum);
        self.line(name, "_count", labels, None, *reading.cumulative.last().unwrap_or(&0));
    }

    pub(super) fn finish(self) -> String {
        self.text
    }

    /// What stands before the first sample of a family.
    fn head(&mut self) -> &'static str {
        let family = self.family.as_mut().expect("samples belong to a family");
        let Family { name, kind, help } = *family;
        if !help.is_empty() {
            family.help = "";
            let kind = match kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}")
                .expect("a string takes everything");
        }
        name
    }

    fn line(
        &mut self,
        name: &str,
        suffix: &str,
        labels: &Labels<'_>,
        bound: Option<f64>,
        value: impl Number,
    ) {
        let text = &mut self.text;
        text.push_str(name);
        text.push_str(suffix);
        let mut before = '{';
        for (label, value) in labels {
            text.push(before);
            before = ',';
            text.push_str(label);
            text.push_str("=\"");
            escape(text, value);
            text.push('"');
        }
        if let Some(bound) = bound {
            text.push(before);
            before = ',';
            text.push_str("le=\"");
            bound.write(text);
            text.push('"');
        }
        if before == ',' {
            text.push('}');
        }
        text.push(' ');
        value.write(text);
        text.push('\n');
    }
}

fn escape(text: &mut String, value: &str) {
    for character in value.chars() {
        match character {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            other => text.push(other),
        }
    }
}

trait Number {
    fn write(self, text: &mut String);
}

/// Counts of histograms are written out.
impl Number for u64 {
    fn write(self, text: &mut String) {
        write!(text, "{self}").expect("a string takes everything");
    }
}

/// As Go writes it: the fewest digits, with an exponent from a million on and below a
/// ten-thousandth.
impl Number for f64 {
    fn write(self, text: &mut String) {
        if self.is_infinite() {
            text.push_str(if self > 0.0 { "+Inf" } else { "-Inf" });
            return;
        }
        let shortest = format!("{self:e}");
        let (digits, exponent) = shortest.split_once('e').expect("it was asked for");
        let exponent: i32 = exponent.parse().unwrap_or_default();
        if (-4..6).contains(&exponent) {
            write!(text, "{self}").expect("a string takes everything");
        } else {
            let sign = if exponent < 0 { '-' } else { '+' };
            write!(text, "{digits}e{sign}{:02}", exponent.abs())
                .expect("a string takes everything");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::histogram::RESPONSE_BYTES;
    use super::*;

    #[test]
    fn numbers_are_written_as_go_writes_them() {
        let check = |number: f64, expected: &str| {
            let mut text = String::new();
            number.write(&mut text);
            assert_eq!(text, expected);
        };
        check(0.0, "0");
        check(1.0, "1");
        check(-1.0, "-1");
        check(0.005, "0.005");
        check(93.18, "93.18");
        check(16_267.0, "16267");
        check(950_000.0, "950000");
        check(1_050_000.0, "1.05e+06");
        check(1e9, "1e+09");
        check(1.794_786_966_03e9, "1.79478696603e+09");
        check(0.000_012, "1.2e-05");
        check(0.000_1, "0.0001");
        check(f64::INFINITY, "+Inf");
    }

    #[test]
    fn a_family_begins_with_what_it_is_and_an_empty_one_is_not_there() {
        let mut page = Page::default();
        page.family("nothing_total", Kind::Counter, "[ALPHA] Nothing.");
        page.family("things_total", Kind::Counter, "[ALPHA] Things.");
        page.sample(&[("color", "r\"e\\d\n"), ("size", "")], 3.0);
        page.sample(&[("color", "blue"), ("size", "1")], 2_000_000.0);
        page.family("sizes", Kind::Histogram, "[STABLE] Sizes.");
        let histogram = Histogram::new(&RESPONSE_BYTES);
        for size in [0, 1000, 1001, 5_000_000_000] {
            histogram.observe(size);
        }
        page.histogram(&[("verb", "GET")], &histogram);
        let expected = r#"# HELP things_total [ALPHA] Things.
# TYPE things_total counter
things_total{color="r\"e\\d\n",size=""} 3
things_total{color="blue",size="1"} 2e+06
# HELP sizes [STABLE] Sizes.
# TYPE sizes histogram
sizes_bucket{verb="GET",le="1000"} 2
sizes_bucket{verb="GET",le="10000"} 3
sizes_bucket{verb="GET",le="100000"} 3
sizes_bucket{verb="GET",le="1e+06"} 3
sizes_bucket{verb="GET",le="1e+07"} 3
sizes_bucket{verb="GET",le="1e+08"} 3
sizes_bucket{verb="GET",le="1e+09"} 3
sizes_bucket{verb="GET",le="+Inf"} 4
sizes_sum{verb="GET"} 5.000002001e+09
sizes_count{verb="GET"} 4
"#;
        assert_eq!(page.finish(), expected);
    }
}
