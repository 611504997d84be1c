//! The rows as a table, for the terminal and for the document.

use crate::instructions::Counts;
use crate::row::{Row, Verdict};

pub(crate) const HEAD: [&str; 8] =
    ["key", "runtime", "load", "ours min / median", "peer", "its min / median", "ratio", "limit"];
pub(crate) const COUNTS_HEAD: [&str; 5] = ["key", "ours", "peer", "its", "ratio"];

pub(crate) fn cells(row: &Row) -> [String; 8] {
    let (ours, peer) = (row.ours, row.peer_figures);
    let unit = row.measure.short();
    [
        row.key.to_owned(),
        row.runtime.to_string(),
        row.variant.to_owned(),
        format!("{} / {} {unit}", short(ours.min), short(ours.median)),
        row.peer.to_owned(),
        format!("{} / {} {unit}", short(peer.min), short(peer.median)),
        format!("{:.2}", row.ratio),
        limit(row),
    ]
}

pub(crate) fn counts_cells(counts: &Counts) -> [String; 5] {
    [
        counts.key.to_owned(),
        short(counts.ours),
        counts.peer.to_owned(),
        short(counts.peer_counts),
        format!("{:.3}", counts.ratio),
    ]
}

fn limit(row: &Row) -> String {
    let (Some(must), Some(limits)) = (row.must(), row.limits) else { return String::new() };
    let said = match row.verdict() {
        Verdict::Aim => "aim met",
        Verdict::Must => "met",
        Verdict::Missed => "**missed**",
        Verdict::Unjudged => "",
    };
    format!("≤ {must}, aim {}: {said}", limits.aim)
}

fn short(value: f64) -> String {
    if value < 100.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

/// Columns as wide as their widest cell.
pub(crate) fn plain<const N: usize>(head: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> String {
    let rows: Vec<_> = [head.map(str::to_owned)].into_iter().chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |row: &[String; N]| {
        let cells: Vec<_> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(|row| line(row) + "\n").collect()
}

pub(crate) fn markdown<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let line = |row: &[String; N]| format!("| {} |\n", row.join(" | "));
    let rule = format!("|{}\n", "---|".repeat(N));
    line(&head.map(str::to_owned)) + &rule + &rows.into_iter().map(|row| line(&row)).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_columns_are_aligned() {
        let table = plain(["a", "b"], [["long".to_owned(), "x".to_owned()]]);
        assert_eq!(table, "a     b\nlong  x\n");
    }

    #[test]
    fn markdown_has_a_rule_below_the_head() {
        let table = markdown(["a", "b"], [["1".to_owned(), "2".to_owned()]]);
        assert_eq!(table, "| a | b |\n|---|---|\n| 1 | 2 |\n");
    }
}
