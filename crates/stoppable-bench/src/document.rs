//! `docs/benchmarks.md` and its picture.

use std::fs;
use std::io;
use std::path::Path;

use crate::case::{Measure, RuntimeKind};
use crate::chart;
use crate::instructions::Counts;
use crate::machine;
use crate::row::Row;
use crate::table::{self, markdown};

const INTRODUCTION: &str = include_str!("docs/introduction.md");

pub(crate) fn write(directory: &Path, rows: &[Row], counts: &[Counts]) -> io::Result<()> {
    let drawn: Vec<&Row> = rows.iter().filter(|row| is_drawn(row)).collect();
    fs::write(directory.join("benchmarks.svg"), chart::svg(&drawn))?;
    fs::write(directory.join("benchmarks.md"), document(rows, counts))
}

/// One bar a case: that of one thread, where there is one. What is compared with ourselves is no peer.
fn is_drawn(row: &Row) -> bool {
    let about_two = row.key == "queue.mt";
    (row.runtime == RuntimeKind::Ct || about_two) && !row.key.starts_with("scale.")
}

fn document(rows: &[Row], counts: &[Counts]) -> String {
    let of = |wanted: &dyn Fn(&Row) -> bool| {
        markdown(table::HEAD, rows.iter().filter(|row| wanted(row)).map(table::cells))
    };
    let is_scale = |row: &Row| row.key.starts_with("scale.");
    let mut text = INTRODUCTION.trim_end().to_owned();
    let mut section =
        |title: &str, body: &str| text.push_str(&format!("\n\n## {title}\n\n{}", body.trim_end()));
    section("The machine", &format!("{}.\n\n{}.", machine::machine(), machine::versions()));
    section("What is measured", &what(rows));
    section("One thread (`ct`)", &of(&|row| row.runtime == RuntimeKind::Ct && !is_scale(row)));
    section("Two workers (`mt2`)", &of(&|row| row.runtime == RuntimeKind::Mt2));
    section("Without a runtime, polled by hand", &of(&|row| row.runtime == RuntimeKind::None));
    section("Scale: many beside a thousand of the same", &of(&is_scale));
    section("Where it is dearer than the peer", &losses(rows));
    if !counts.is_empty() {
        let table = markdown(table::COUNTS_HEAD, counts.iter().map(table::counts_cells));
        section("Instructions a unit, by callgrind", &table);
    }
    text + "\n"
}

fn what(rows: &[Row]) -> String {
    let mut known: Vec<&str> = Vec::new();
    let mut cells = Vec::new();
    for row in rows {
        if !known.contains(&row.key) {
            known.push(row.key);
            cells.push([row.key.to_owned(), row.what.to_owned(), format!("a {}", row.unit)]);
        }
    }
    markdown(["key", "case", "figures are for"], cells)
}

fn losses(rows: &[Row]) -> String {
    let lost = rows.iter().filter(|row| row.ratio > 1.0 && !row.key.starts_with("scale."));
    let line = |row: &Row| {
        let what = match row.measure {
            Measure::Nanoseconds => "time",
            Measure::Bytes => "memory",
        };
        let percent = (row.ratio - 1.0) * 100.0;
        format!("- `{}` on {}: {percent:.0} % more {what} than {}\n", row.key, row.runtime, row.peer)
    };
    let lines: String = lost.map(line).collect();
    if lines.is_empty() { "Nowhere in this run.".to_owned() } else { lines }
}
