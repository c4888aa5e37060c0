//! Tables: as text for people, as JSON for programs, as Markdown for the document.

use std::fmt::Write as _;

use serde::Serialize;

use crate::rounds::{Measure, Pairs, median};

/// The rows of one bench.
#[derive(Clone, Debug, Serialize)]
pub struct Table {
    /// Which bench.
    pub bench: &'static str,
    /// One row for each thing measured.
    pub rows: Vec<Row>,
}

/// One thing measured on one database.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// `PostgreSQL` or `SQLite`.
    pub database: &'static str,
    /// What, and with how many clients.
    pub title: String,
    /// What is counted.
    pub unit: &'static str,
    /// Medians of our rounds.
    pub ours: Figure,
    /// Medians of the baseline's rounds.
    pub raw: Figure,
    /// Which of the two's figures are divided.
    pub compares: Compares,
    /// Ours divided by the baseline, round by round.
    pub ratio: Spread,
}

/// What a ratio is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Compares {
    /// Units a second: more is better.
    Rate,
    /// Median latencies: less is better.
    P50,
}

/// Medians of one side.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Figure {
    /// Units a second.
    pub per_second: f64,
    /// Latency of one call in milliseconds, median.
    pub p50_ms: f64,
    /// Latency of one call in milliseconds, 99th percentile.
    pub p99_ms: f64,
    /// Processor time in milliseconds for a thousand units, ours or the baseline's with its clients and PostgreSQL.
    pub cpu_ms: f64,
}

/// Where a ratio lies.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Spread {
    /// Median.
    pub median: f64,
    /// Least.
    pub min: f64,
    /// Greatest.
    pub max: f64,
}

impl Row {
    /// A row about how much is done.
    pub(crate) fn of(database: &'static str, title: String, unit: &'static str, pairs: &Pairs) -> Self {
        Self::comparing(Compares::Rate, database, title, unit, pairs)
    }

    /// A row about how long something takes.
    pub(crate) fn of_p50(database: &'static str, title: String, unit: &'static str, pairs: &Pairs) -> Self {
        Self::comparing(Compares::P50, database, title, unit, pairs)
    }

    fn comparing(compares: Compares, database: &'static str, title: String, unit: &'static str, pairs: &Pairs) -> Self {
        let figure_of = |m: &Measure| match compares {
            Compares::Rate => m.rate,
            Compares::P50 => m.p50_ms,
        };
        let ratios: Vec<f64> = pairs.ours.iter().zip(&pairs.raw).map(|(o, r)| figure_of(o) / figure_of(r)).collect();
        let ratio = Spread {
            min: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            max: ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            median: median(ratios),
        };
        Self { database, title, unit, ours: figure(&pairs.ours), raw: figure(&pairs.raw), compares, ratio }
    }

    fn cells(&self) -> [String; 9] {
        let of = if self.compares == Compares::P50 { "p50: " } else { "" };
        let latency = |f: &Figure| format!("{} / {}", digits(f.p50_ms), digits(f.p99_ms));
        [
            self.database.to_owned(),
            self.title.clone(),
            self.unit.to_owned(),
            digits(self.ours.per_second),
            digits(self.raw.per_second),
            format!("{of}{:.2} ({:.2}–{:.2})", self.ratio.median, self.ratio.min, self.ratio.max),
            latency(&self.ours),
            latency(&self.raw),
            format!("{} / {}", digits(self.ours.cpu_ms), digits(self.raw.cpu_ms)),
        ]
    }
}

const HEAD: [&str; 9] = [
    "database",
    "what",
    "unit",
    "ours /s",
    "raw /s",
    "ours ÷ raw",
    "ours p50 / p99 ms",
    "raw p50 / p99 ms",
    "CPU ms for 1,000, ours / raw",
];

fn figure(side: &[Measure]) -> Figure {
    let of = |f: fn(&Measure) -> f64| median(side.iter().map(f).collect());
    Figure { per_second: of(|m| m.rate), p50_ms: of(|m| m.p50_ms), p99_ms: of(|m| m.p99_ms), cpu_ms: of(|m| m.cpu_ms) }
}

/// Three significant digits, thousands set apart: no run is more exact than that.
fn digits(value: f64) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    if value < 10.0 {
        return format!("{value:.2}");
    }
    if value < 100.0 {
        return format!("{value:.1}");
    }
    let scale = 10_f64.powf(value.log10().floor() - 2.0);
    let plain = format!("{:.0}", (value / scale).round() * scale);
    let mut out = String::new();
    for (i, digit) in plain.chars().enumerate() {
        if i > 0 && (plain.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A table in aligned columns.
pub fn text(table: &Table) -> String {
    let lines: Vec<[String; 9]> =
        std::iter::once(HEAD.map(str::to_owned)).chain(table.rows.iter().map(Row::cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..HEAD.len()).map(width).collect();
    let mut out = format!("{}\n", table.bench);
    for line in &lines {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count());
            let (left, right) = if column < 3 { ("", pad.as_str()) } else { (pad.as_str(), "") };
            let _ = write!(out, "{left}{cell}{right}  ");
        }
        out.truncate(out.trim_end().len());
        out.push('\n');
    }
    out
}

/// A table for the document.
pub(crate) fn markdown(table: &Table) -> String {
    let mut out = format!("| {} |\n|---|---|---|--:|--:|--:|--:|--:|--:|\n", HEAD.join(" | "));
    for row in &table.rows {
        let _ = writeln!(out, "| {} |", row.cells().join(" | "));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: &[f64], raw: &[f64]) -> Row {
        let side = |rates: &[f64]| {
            rates.iter().map(|rate| Measure { rate: *rate, p50_ms: 0.5, p99_ms: 12.0, cpu_ms: 80.0 }).collect()
        };
        Row::of("SQLite", "append, 1 client".into(), "events", &Pairs { ours: side(ours), raw: side(raw) })
    }

    #[test]
    fn a_ratio_is_taken_round_by_round() {
        let row = row(&[50.0, 90.0, 40.0], &[100.0, 100.0, 50.0]);
        assert!((row.ratio.median - 0.8).abs() < 1e-9);
        assert!((row.ratio.min - 0.5).abs() < 1e-9 && (row.ratio.max - 0.9).abs() < 1e-9);
        assert!((row.ours.per_second - 50.0).abs() < 1e-9);
    }

    #[test]
    fn a_row_about_time_divides_the_medians_of_time() {
        let side = |p50_ms| vec![Measure { rate: 100.0, p50_ms, p99_ms: 9.0, cpu_ms: 1.0 }];
        let pairs = Pairs { ours: side(3.0), raw: side(2.0) };
        let row = Row::of_p50("PostgreSQL", "a page".into(), "pages", &pairs);
        assert!((row.ratio.median - 1.5).abs() < 1e-9);
        assert!(text(&Table { bench: "journal", rows: vec![row] }).contains("p50: 1.50 (1.50–1.50)"));
    }

    #[test]
    fn figures_have_three_digits() {
        let shown: Vec<_> = [0.256, 12.34, 123.4, 9_876.0, 1_234_567.0, f64::NAN].map(digits).to_vec();
        assert_eq!(shown, ["0.26", "12.3", "123", "9,880", "1,230,000", "–"]);
    }

    #[test]
    fn a_table_has_a_line_for_each_row() {
        let table = Table { bench: "seam", rows: vec![row(&[5000.0], &[10_000.0])] };
        assert!(text(&table).contains("SQLite    append, 1 client  events"), "{}", text(&table));
        assert!(text(&table).contains("0.50 (0.50–0.50)"));
        assert_eq!(markdown(&table).lines().count(), 3);
        assert!(markdown(&table).ends_with("| 0.50 / 12.0 | 0.50 / 12.0 | 80.0 / 80.0 |\n"));
    }
}
