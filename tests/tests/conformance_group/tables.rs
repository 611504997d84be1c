//! The tables and the tests say the same.

use crate::support::compare;

/// Every row there has to be.
#[rustfmt::skip]
const IDS: &[&str] = &[
    "G-01", "G-02", "G-04", "G-05", "G-06", "G-07", "G-09", "G-10", "G-11", "G-12", "G-14", "G-15", "G-16",
    "G-17", "G-19", "G-20", "G-21", "G-22", "G-24", "G-25", "G-26", "G-27", "G-29", "G-30", "G-31", "G-32",
    "G-34", "G-35", "G-36", "G-37", "G-39", "G-40", "G-41", "G-42", "G-44", "G-45", "G-46", "G-47", "G-49",
    "G-50", "G-51", "G-52", "G-54", "G-55", "G-56", "G-57", "G-59", "G-60", "G-61", "G-62", "G-64", "G-65",
    "G-66", "G-67", "G-69", "G-70", "G-71", "G-72", "G-74", "G-75", "G-76", "G-77", "G-79", "G-80", "G-81",
    "G-82", "G-84", "G-85", "G-86", "G-87", "G-89", "G-90", "G-91", "T-01", "T-02", "T-04", "T-05", "T-06",
    "T-07", "T-09", "T-10", "T-11", "T-12", "T-14", "T-15", "T-16", "T-17", "T-19", "T-20", "T-21", "T-22",
    "T-24", "T-25", "T-26", "T-27", "T-29", "T-30", "T-31", "T-32", "T-34", "T-35", "T-36", "T-37", "T-39",
    "T-40", "T-41", "T-42", "T-44", "T-45", "T-46", "T-47", "T-49", "T-50", "T-51", "T-52", "T-54", "T-55",
    "T-56", "T-57", "T-59", "T-60", "T-61", "T-62", "S-01", "S-02", "S-04", "S-05", "S-06", "S-07", "S-09",
    "S-10", "S-11", "S-12", "S-14", "S-15", "S-16", "S-17", "S-19", "S-20", "S-21", "S-22", "S-24", "S-25",
    "S-26", "S-27", "S-29", "S-30", "S-31", "S-32", "S-34", "S-35", "S-36", "S-37", "S-39", "S-40", "S-41",
    "S-42", "S-44", "S-45", "S-46", "S-47", "S-49", "S-50", "S-51", "S-52", "S-54", "S-55", "S-56", "W-01",
    "W-02", "W-04", "W-05", "W-06", "W-07", "W-09", "W-10", "W-11", "W-12", "W-14", "W-15", "W-16", "W-17",
    "W-19", "W-20", "W-21", "W-22", "W-24", "W-25", "W-26", "W-27", "W-29", "W-30", "W-31", "W-32", "W-34",
    "W-35", "W-36", "W-37", "W-39", "W-40", "W-41", "W-42", "B-02", "B-04", "B-05", "B-07", "B-08", "B-09",
    "B-10", "B-11", "B-13", "B-15", "B-16", "B-17", "B-18", "B-20", "B-22", "B-25", "B-26", "B-27", "B-28",
    "B-29", "B-30", "B-31", "B-32", "B-33", "B-34", "B-36", "B-37", "B-55", "B-57", "B-59", "B-61", "B-62",
    "B-63", "B-73", "B-74", "B-76", "B-79", "B-80", "B-81", "B-82", "B-84", "B-85", "B-90", "B-91", "B-92",
    "B-96", "B-99", "B-100", "B-101", "B-102", "B-103", "B-104", "B-105", "B-106", "B-109", "B-111",
    "B-112", "B-115", "B-116", "B-118", "B-119", "B-120",
];

macro_rules! table {
    ($file:literal) => {
        ($file, include_str!(concat!("../../conformance/", $file)))
    };
}

macro_rules! source {
    ($file:literal) => {
        ($file, include_str!($file))
    };
}

const TABLES: [(&str, &str); 8] = [
    table!("groups.md"),
    table!("timeouts.md"),
    table!("scopes.md"),
    table!("waits.md"),
    table!("bugs-group.md"),
    table!("bugs-deadline.md"),
    table!("bugs-shield.md"),
    table!("bugs-later.md"),
];

const TESTED: [(&str, &str); 5] = [
    source!("groups.rs"),
    source!("timeouts.rs"),
    source!("scopes.rs"),
    source!("waits.rs"),
    source!("bugs.rs"),
];

/// A row that is `tested` has a test, and no other has one.
#[test]
fn every_row_has_its_test_and_every_test_its_row() {
    compare(&TABLES, &TESTED, IDS);
}

/// A row that is `overruled, pinned` has a test of what holds instead, in `overruled.rs`.
#[test]
fn every_row_that_is_pinned_has_its_test() {
    let tables = TABLES.map(|(file, text)| (file, text.replace("overruled, pinned:", "tested, pinned:")));
    let tables = tables.each_ref().map(|(file, text)| (*file, text.as_str()));
    let mut sources = TESTED.to_vec();
    sources.push(source!("overruled.rs"));
    compare(&tables, &sources, IDS);
}
