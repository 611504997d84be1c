//! Keeps instruction ratios where they are: those of today against committed ones.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::case::is_in;
use crate::instructions::Counts;

/// So much may a ratio move, up or down, before somebody has to look.
const TOLERANCE: f64 = 0.05;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Guarded {
    key: String,
    ratio: f64,
}

/// Writes the ratios as the ones that are to hold.
pub(crate) fn renew(file: &Path, counts: &[Counts]) -> io::Result<()> {
    let guarded: Vec<_> = counts.iter().map(guarded).collect();
    fs::write(file, serde_json::to_string_pretty(&guarded)? + "\n")
}

/// Compares with what is committed, in one area or all. Gives one line for each case that moved, is new or is gone.
pub(crate) fn check(file: &Path, area: Option<&str>, counts: &[Counts]) -> io::Result<Vec<String>> {
    let mut committed: Vec<Guarded> = serde_json::from_str(&fs::read_to_string(file)?)?;
    committed.retain(|known| area.is_none_or(|area| is_in(&known.key, area)));
    let today: Vec<_> = counts.iter().map(guarded).collect();
    Ok(compare(&committed, &today))
}

fn guarded(counts: &Counts) -> Guarded {
    Guarded { key: counts.key.to_owned(), ratio: (counts.ratio * 1e4).round() / 1e4 }
}

fn compare(committed: &[Guarded], today: &[Guarded]) -> Vec<String> {
    let of = |all: &[Guarded], key: &str| all.iter().find(|known| known.key == key).map(|known| known.ratio);
    let mut complaints = Vec::new();
    for Guarded { key, ratio } in today {
        let Some(before) = of(committed, key) else {
            complaints.push(format!("{key}: not guarded yet, its ratio is {ratio}"));
            continue;
        };
        let moved = ratio / before - 1.0;
        if moved.abs() > TOLERANCE {
            let way = if moved > 0.0 { "dearer" } else { "cheaper" };
            complaints.push(format!("{key}: {:.1} % {way}, from {before} to {ratio}", moved.abs() * 100.0));
        }
    }
    let gone = committed.iter().filter(|known| of(today, &known.key).is_none());
    complaints.extend(gone.map(|gone| format!("{}: guarded, but no longer measured", gone.key)));
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(of: &[(&str, f64)]) -> Vec<Guarded> {
        of.iter().map(|(key, ratio)| Guarded { key: (*key).to_owned(), ratio: *ratio }).collect()
    }

    #[test]
    fn what_stays_within_the_tolerance_is_quiet() {
        let before = ratios(&[("a", 1.0), ("b", 0.5)]);
        assert!(compare(&before, &ratios(&[("a", 1.049), ("b", 0.476)])).is_empty());
    }

    #[test]
    fn what_moves_further_is_named_with_how_far() {
        let before = ratios(&[("a", 1.0), ("b", 0.5)]);
        let complaints = compare(&before, &ratios(&[("a", 1.1), ("b", 0.4)]));
        assert_eq!(complaints, ["a: 10.0 % dearer, from 1 to 1.1", "b: 20.0 % cheaper, from 0.5 to 0.4"]);
    }

    #[test]
    fn what_is_new_or_gone_is_named() {
        let complaints = compare(&ratios(&[("old", 1.0)]), &ratios(&[("new", 2.0)]));
        assert_eq!(complaints.len(), 2);
        assert!(complaints[0].starts_with("new: not guarded") && complaints[1].starts_with("old: guarded"));
    }
}
