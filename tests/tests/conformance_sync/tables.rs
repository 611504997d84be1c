//! The tables have every row, and every row that says so has its test.

use crate::support::{compare, faults};

const TABLES: [(&str, &str); 4] = [
    ("queues.md", include_str!("../../conformance/queues.md")),
    ("locks.md", include_str!("../../conformance/locks.md")),
    ("bugs-queue.md", include_str!("../../conformance/bugs-queue.md")),
    ("bugs-lock.md", include_str!("../../conformance/bugs-lock.md")),
];

const SOURCES: [(&str, &str); 9] = [
    ("queue_basics.rs", include_str!("queue_basics.rs")),
    ("queue_leaving.rs", include_str!("queue_leaving.rs")),
    ("queue_closing.rs", include_str!("queue_closing.rs")),
    ("queue_orders.rs", include_str!("queue_orders.rs")),
    ("queue_bugs.rs", include_str!("queue_bugs.rs")),
    ("locks.rs", include_str!("locks.rs")),
    ("signals.rs", include_str!("signals.rs")),
    ("semaphores.rs", include_str!("semaphores.rs")),
    ("lock_bugs.rs", include_str!("lock_bugs.rs")),
];

/// All rows there are. Numbers have gaps.
#[rustfmt::skip]
const IDS: [&str; 114] = [
    "Q-01", "Q-02", "Q-04", "Q-05", "Q-06", "Q-07", "Q-09", "Q-10", "Q-11", "Q-12", "Q-14", "Q-15",
    "Q-16", "Q-17", "Q-19", "Q-20", "Q-21", "Q-22", "Q-24", "Q-25", "Q-26", "Q-27", "Q-29", "Q-30",
    "Q-31", "Q-32", "Q-34", "Q-35", "Q-36", "Q-37", "Q-39", "Q-40", "Q-41", "Q-42", "Q-44", "Q-45",
    "Q-46", "Q-47", "Q-49", "Q-50", "Q-51", "Q-52", "Q-54", "Q-55", "Q-56", "Q-57", "Q-59", "Q-60",
    "Q-61", "Q-62", "Q-64", "Q-65", "Q-66", "Q-67", "Q-69", "Q-70", "Q-71", "Q-72", "Q-74", "Q-75",
    "Q-76", "Q-77", "W-17",
    "L-01", "L-02", "L-04", "L-05", "L-06", "L-07", "L-09", "L-10", "L-11", "L-12", "L-14", "L-15",
    "L-16", "L-17", "L-19", "L-20", "L-21", "L-22", "L-24", "L-25", "L-26", "L-27", "L-29", "L-30",
    "L-31", "L-32", "L-34", "L-35", "L-36", "L-37",
    "B-39", "B-41", "B-43", "B-45", "B-47", "B-49", "B-50", "B-51", "B-52", "B-53", "B-54", "B-93",
    "B-94", "B-95",
    "B-65", "B-66", "B-68", "B-69", "B-70", "B-71", "B-72",
];

#[test]
fn every_row_is_here_and_has_its_test() {
    compare(&TABLES, &SOURCES, &IDS);
}

#[test]
fn the_comparison_finds_what_does_not_agree() {
    let table = "\
| id | source | decision |
|---|---|---|
| Q-01 | a \\| b | tested |
| Q-02 | b | n/a: the type system rules it out |
| Q-03 | c | overruled: by the design |

### B-01 A scenario

- **Decision:** waiting for its part
";
    let test = "#[test]\nfn q_01_works() {}\n";
    let ids = ["B-01", "Q-01", "Q-02", "Q-03"];
    let found = |table: &str, test: &str| faults(&[("t.md", table)], &[("t.rs", test)], &ids);
    assert!(found(table, test).is_empty());
    assert!(found(table, &format!("{test}#[tokio::test(x = 1)]\nasync fn q_03_x() {{}}")).is_empty());

    for (from, to, fault) in [
        ("| Q-02", "| Q-22", "Q-02 is in no table"),
        ("| Q-02", "| Q-22", "Q-22 is invented"),
        ("| Q-02", "| Q-01", "t.md: Q-01 stands here a second time"),
        ("| tested", "| maybe", "t.md: Q-01 has no decision, but `maybe`"),
        ("| a ", "| a | ", "t.md: Q-01 has no decision, but ``"),
        ("- **Decision", "**Decision", "t.md: B-01 has no decision, but ``"),
        (": the type system rules it out", "", "t.md: Q-02 is `n/a` without a reason"),
    ] {
        let found = found(&table.replace(from, to), test);
        assert!(found.iter().any(|found| found == fault), "{fault} in {found:?}");
    }
    for (from, to, fault) in [
        (test, "", "Q-01 is `tested` but has no test"),
        ("#[test]", "#[test]\n#[ignore]", "Q-01 is `tested` but has no test"),
        ("#[test]", "// #[test]", "Q-01 is `tested` but has no test"),
        ("q_01_works", "q_02_works", "Q-02 has a test but is not `tested`"),
        ("q_01_works", "q_09_works", "t.rs: `q_09_works` belongs to no row"),
        ("q_01_works", "works", "t.rs: `works` belongs to no row"),
    ] {
        let found = found(table, &test.replace(from, to));
        assert!(found.iter().any(|found| found == fault), "{fault} in {found:?}");
    }
}
