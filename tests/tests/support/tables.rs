//! Compares the conformance tables with the tests, so that no row is missing, invented or dropped.
//!
//! A table is Markdown: rows `| Q-19 | .. | decision |`, or scenarios `### B-39 ..` with a line
//! `- **Decision:** ..`. A decision begins with one of [`DECISIONS`]; a row that is `tested` has one or more
//! tests, one that is `overruled` may have some, no other row has any. A test belongs to the row that its
//! name begins with: `q_19_..`. Seen are functions that stand under a `test` attribute and under neither
//! `ignore` nor `cfg`; not what a macro names.

use std::collections::{BTreeMap, BTreeSet};

/// The words a decision begins with. All but the first need a reason.
const DECISIONS: [&str; 5] = ["tested", "n/a", "overruled", "optional", "waiting"];

/// `tables` and `sources` are names and texts of files, `ids` are the rows that there have to be.
///
/// # Panics
///
/// With a list of all that does not agree.
pub(crate) fn compare(tables: &[(&str, &str)], sources: &[(&str, &str)], ids: &[&str]) {
    let faults = faults(tables, sources, ids);
    assert!(faults.is_empty(), "tables and tests do not agree:\n{}", faults.join("\n"));
}

pub(crate) fn faults(tables: &[(&str, &str)], sources: &[(&str, &str)], ids: &[&str]) -> Vec<String> {
    let mut faults = Vec::new();

    let mut rows = BTreeMap::new();
    for (file, text) in tables {
        for (id, decision) in rows_of(text) {
            let word = DECISIONS.into_iter().find(|word| begins_with_word(&decision, word));
            match word {
                None => faults.push(format!("{file}: {id} has no decision, but `{decision}`")),
                Some(word) if word != "tested" && decision.len() < word.len() + 10 => {
                    faults.push(format!("{file}: {id} is `{decision}` without a reason"));
                }
                Some(_) => {}
            }
            if rows.insert(id.clone(), word).is_some() {
                faults.push(format!("{file}: {id} stands here a second time"));
            }
        }
    }
    let known: BTreeSet<_> = ids.iter().map(|id| (*id).to_owned()).collect();
    faults.extend(known.iter().filter(|id| !rows.contains_key(*id)).map(|id| format!("{id} is in no table")));
    faults.extend(rows.keys().filter(|id| !known.contains(*id)).map(|id| format!("{id} is invented")));

    let mut tested = BTreeSet::new();
    for (file, text) in sources {
        for test in tests_of(text) {
            match row_of(test).filter(|id| rows.contains_key(id)) {
                None => faults.push(format!("{file}: `{test}` belongs to no row")),
                Some(id) => drop(tested.insert(id)),
            }
        }
    }
    for (id, word) in &rows {
        match (*word == Some("tested"), tested.contains(id)) {
            (true, false) => faults.push(format!("{id} is `tested` but has no test")),
            (false, true) if *word != Some("overruled") => {
                faults.push(format!("{id} has a test but is not `tested`"))
            }
            _ => {}
        }
    }
    faults
}

/// Id and decision of each row. A row without a decision has an empty one.
fn rows_of(text: &str) -> Vec<(String, String)> {
    let mut rows: Vec<(String, String)> = Vec::new();
    let mut columns = 0;
    let mut in_scenario = false;
    for line in text.lines() {
        if let Some(cells) = cells_of(line) {
            if cells[0] == "id" {
                columns = if cells.last() == Some(&"decision") { cells.len() } else { 0 };
            } else if is_id(cells[0]) {
                // A row that lacks a cell, or has one too many, has its decision in the wrong place.
                let decision = if cells.len() == columns { cells[columns - 1] } else { "" };
                rows.push((cells[0].to_owned(), decision.to_owned()));
            }
        } else if let Some(title) = line.strip_prefix("### ") {
            let id = title.split_whitespace().next().unwrap_or_default();
            in_scenario = is_id(id);
            if in_scenario {
                rows.push((id.to_owned(), String::new()));
            }
        } else if let Some(decision) = line.strip_prefix("- **Decision:** ") {
            if let Some((_, last)) = rows.last_mut().filter(|(_, last)| in_scenario && last.is_empty()) {
                *last = decision.to_owned();
            }
        }
    }
    rows
}

/// The cells of a line of a table. `\|` is a bar inside a cell.
fn cells_of(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim_end().strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = Vec::new();
    let mut start = 0;
    for (at, _) in inner.match_indices('|') {
        if !inner[..at].ends_with('\\') {
            cells.push(inner[start..at].trim());
            start = at + 1;
        }
    }
    cells.push(inner[start..].trim());
    Some(cells)
}

/// The names of the tests that run.
fn tests_of(source: &str) -> Vec<&str> {
    let mut tests = Vec::new();
    let (mut is_test, mut is_off) = (false, false);
    for line in source.lines().map(str::trim) {
        if let Some(attribute) = line.strip_prefix("#[") {
            let name: &str = attribute.split(['(', ']', ' ']).next().unwrap_or_default();
            is_test |= name == "test" || name.ends_with("::test");
            is_off |= name == "ignore" || name == "cfg";
        } else if !line.starts_with("//") {
            if let Some(name) = function_of(line).filter(|_| is_test && !is_off) {
                tests.push(name);
            }
            (is_test, is_off) = (false, false);
        }
    }
    tests
}

fn function_of(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line);
    line.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// `q_19_cancelled_reader_loses_no_item` belongs to Q-19.
fn row_of(test: &str) -> Option<String> {
    let mut parts = test.splitn(3, '_');
    let id = format!("{}-{}", parts.next()?.to_uppercase(), parts.next()?);
    parts.next().filter(|what| !what.is_empty() && is_id(&id))?;
    Some(id)
}

fn is_id(text: &str) -> bool {
    text.split_once('-').is_some_and(|(letter, number)| {
        letter.len() == 1
            && letter.chars().all(|c| c.is_ascii_uppercase())
            && !number.is_empty()
            && number.chars().all(|c| c.is_ascii_digit())
    })
}

fn begins_with_word(text: &str, word: &str) -> bool {
    text.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric()))
}
