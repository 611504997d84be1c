use crate::support::{program, run, text};

#[test]
fn five_complete_and_one_times_out() {
    let output = run(&mut program("pool"));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    assert_eq!(stdout.lines().last(), Some("completed=5, timed_out=1"));
    assert!(stdout.contains("item 3: timed out\n"));
}
