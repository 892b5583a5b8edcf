//! Markdown tables and the numbers in them.

use std::fmt::Write as _;
use std::time::Duration;

pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(header: [&str; N]) -> Self {
        Self { header: header.map(str::to_owned).to_vec(), rows: Vec::new() }
    }

    pub(crate) fn row<const N: usize>(&mut self, cells: [String; N]) {
        assert_eq!(N, self.header.len(), "a row has as many cells as the header");
        self.rows.push(cells.to_vec());
    }

    /// The first column reads from the left, figures from the right.
    pub(crate) fn to_markdown(&self) -> String {
        let mut text = String::new();
        let mut line = |cells: &[String]| {
            writeln!(text, "| {} |", cells.join(" | ")).expect("a string takes any text");
        };
        line(&self.header);
        let rules = (0..self.header.len()).map(|column| if column == 0 { "---" } else { "--:" });
        line(&rules.map(str::to_owned).collect::<Vec<_>>());
        for row in &self.rows {
            line(row);
        }
        text
    }
}

/// Thousands apart, as in `67,553`.
pub(crate) fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

pub(crate) fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1e3)
}

pub(crate) fn ratio(ours: f64, theirs: f64) -> String {
    let ratio = ours / theirs;
    if ratio < 10.0 { format!("{ratio:.2}×") } else { format!("{ratio:.0}×") }
}

/// The middle of `values`; of an even number, the lower middle.
pub(crate) fn median<T: Copy + PartialOrd>(values: &[T]) -> T {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).expect("figures are comparable"));
    sorted[(sorted.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::{Table, count, median};

    #[test]
    fn thousands_are_set_apart() {
        let check = |number, expected| assert_eq!(count(number), expected);
        check(0.0, "0");
        check(999.4, "999");
        check(1000.0, "1,000");
        check(1_234_567.0, "1,234,567");
    }

    #[test]
    fn the_median_ignores_an_outlier() {
        assert_eq!(median(&[3, 900, 2]), 3);
        assert_eq!(median(&[1, 2, 3, 4]), 2);
    }

    #[test]
    fn figures_are_aligned_to_the_right() {
        let mut table = Table::new(["engine", "writes/s"]);
        table.row(["ours".to_owned(), "10".to_owned()]);
        assert_eq!(table.to_markdown(), "| engine | writes/s |\n| --- | --: |\n| ours | 10 |\n");
    }
}
