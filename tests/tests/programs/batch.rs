use crate::support::{program, run, text};

const NORMAL: &str = "\
normal: status=ok, workers_closed=2, tasks_done=true
results=[(1, 1), (2, 4), (3, 9), (4, 16), (5, 25), (6, 36)], total=91
";
const ITEM_TIMEOUT: &str = "\
item-timeout: status=ok, workers_closed=2, tasks_done=true
results=[(1, 1), (2, 4), (3, timeout), (4, 16), (5, 25), (6, 36)], total=82
";
const FAILURE: &str = "\
failure: [\"invalid item 1\"]
failure: status=failed, workers_closed=2, tasks_done=true
";
const BATCH_TIMEOUT: &str = "\
batch-timeout: status=batch-timeout, workers_closed=2, tasks_done=true
";

fn batch(args: &[&str]) -> String {
    let output = run(program("batch").args(args));
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stderr), "");
    text(&output.stdout)
}

#[test]
fn each_mode_ends_as_it_should() {
    assert_eq!(batch(&["normal"]), NORMAL);
    assert_eq!(batch(&["item-timeout"]), ITEM_TIMEOUT);
    assert_eq!(batch(&["failure"]), FAILURE);
    assert_eq!(batch(&["batch-timeout"]), BATCH_TIMEOUT);
}

#[test]
fn all_modes_print_the_same_every_time() {
    let expected = [NORMAL, ITEM_TIMEOUT, FAILURE, BATCH_TIMEOUT].concat();
    for run in 0..20 {
        assert_eq!(batch(&["all"]), expected, "in run {run}");
    }
    assert_eq!(batch(&[]), expected);
}

#[test]
fn without_items_every_mode_ends_well() {
    for mode in ["normal", "item-timeout", "failure", "batch-timeout"] {
        let expected = format!("{mode}: status=ok, workers_closed=2, tasks_done=true\nresults=[], total=0\n");
        assert_eq!(batch(&[mode, "--items", "0"]), expected);
    }
}

#[test]
fn the_slow_item_may_be_any_or_none() {
    let slow = |k| batch(&["item-timeout", "--items", "3", "--slow", k]);
    assert!(slow("1").ends_with("results=[(1, timeout), (2, 4), (3, 9)], total=13\n"));
    for none in ["0", "4", "4294967295"] {
        assert!(slow(none).ends_with("results=[(1, 1), (2, 4), (3, 9)], total=14\n"));
    }
}

#[test]
fn many_items_end_with_the_limit_of_the_whole() {
    // Ten thousand of 0.01 s by two workers are 50 s; the limit is 2 s.
    let output = batch(&["normal", "--items", "10000"]);
    assert_eq!(output, "normal: status=batch-timeout, workers_closed=2, tasks_done=true\n");
    assert_eq!(batch(&["failure", "--items", "4294967295"]), FAILURE);
}

#[test]
fn a_mode_that_does_not_exist_is_a_usage_error() {
    let output = run(program("batch").arg("slow"));
    assert_eq!(output.status.code(), Some(2));
}
