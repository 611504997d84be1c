//! `hash_tree`, when it is left in the middle.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{Tree, assert_right, lines, program, sha256sum, signal, summary, text, wait};

/// A command that was interrupted has to be gone by then.
const SOON: Duration = Duration::from_secs(2);

/// Four files that take for ever, and many that are done at once.
fn endless_tree() -> Tree {
    let tree = Tree::new();
    for n in 0..4 {
        tree.sparse(&format!("endless {n}"), 64 << 30);
    }
    for n in 0..3000 {
        tree.file(format!("small {n}"), format!("{n}"));
    }
    tree
}

fn start(tree: &Tree, workers: &str) -> Child {
    let mut program = program("hash_tree");
    piped(program.args(["--workers", workers, "."]).current_dir(tree.path()))
}

fn piped(program: &mut Command) -> Child {
    program.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn read_all(mut from: impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    from.read_to_end(&mut all).unwrap();
    all
}

fn interrupted_by(name: &str, status: i32) {
    let tree = endless_tree();
    // Two of the six are not kept busy by what is endless.
    let mut child = start(&tree, "6");
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut printed = Vec::new();
    stdout.read_until(b'\n', &mut printed).unwrap();
    signal(&child, name);
    // Its reader stays, so that nothing but the signal ends it.
    let rest = thread::spawn(move || read_all(stdout));
    assert_eq!(wait(&mut child, SOON).code(), Some(status));

    printed.extend(rest.join().unwrap());
    let printed = lines(&printed);
    assert_right(&printed, &sha256sum(tree.path(), "."), false);
    let stderr = read_all(child.stderr.take().unwrap());
    assert!(text(&stderr).contains(&format!("hash_tree: interrupted by SIG{name}\n")));
    let [seen, hashed, failed, not_reached] = summary(&stderr);
    assert_eq!((hashed, failed), (printed.len(), 0), "{}", text(&stderr));
    assert_eq!(seen, hashed + failed + not_reached);
    assert!(seen <= 3004);
}

#[test]
fn ctrl_c_ends_it_at_once_with_all_accounted_for() {
    interrupted_by("INT", 130);
}

#[test]
fn sigterm_ends_it_at_once_with_all_accounted_for() {
    interrupted_by("TERM", 143);
}

#[test]
fn a_walk_that_waits_for_room_is_ended_too() {
    let tree = Tree::new();
    for n in 0..100 {
        tree.sparse(&format!("endless {n}"), 64 << 30);
    }
    let mut child = start(&tree, "1");
    let open_files = format!("/proc/{}/fd", child.id());
    let hashing = || {
        let open = fs::read_dir(&open_files).unwrap();
        open.filter_map(|fd| fs::read_link(fd.ok()?.path()).ok())
            .any(|to| to.starts_with(tree.path()) && to.is_file())
    };
    while !hashing() {
        thread::sleep(Duration::from_millis(1));
    }
    signal(&child, "INT");
    assert_eq!(wait(&mut child, SOON).code(), Some(130));
    assert_eq!(read_all(child.stdout.take().unwrap()), b"");
    let [seen, hashed, failed, not_reached] = summary(&read_all(child.stderr.take().unwrap()));
    assert_eq!((hashed, failed), (0, 0));
    // One with the worker, two in the queue.
    assert!((1..=3).contains(&seen), "{seen}");
    assert_eq!(seen, not_reached);
}

#[test]
fn a_reader_that_does_not_read_cannot_hold_the_exit() {
    let tree = endless_tree();
    let mut child = start(&tree, "6");
    let mut stdout = BufReader::with_capacity(1, child.stdout.take().unwrap());
    let mut printed = Vec::new();
    stdout.read_until(b'\n', &mut printed).unwrap();
    // From here nobody reads. The pipe is full once a thread sleeps in the write to it.
    let threads = format!("/proc/{}/task", child.id());
    let writing = || {
        let threads = fs::read_dir(&threads).unwrap();
        threads.flatten().any(|thread| {
            fs::read_to_string(thread.path().join("wchan")).is_ok_and(|place| place.contains("pipe_write"))
        })
    };
    let mut patience = 400;
    while !writing() && patience > 0 {
        thread::sleep(Duration::from_millis(5));
        patience -= 1;
    }
    signal(&child, "TERM");
    assert_eq!(wait(&mut child, SOON).code(), Some(143));

    printed.extend(read_all(stdout));
    let printed = lines(&printed);
    assert_right(&printed, &sha256sum(tree.path(), "."), false);
    let [seen, hashed, failed, not_reached] = summary(&read_all(child.stderr.take().unwrap()));
    assert_eq!((hashed, failed), (printed.len(), 0));
    assert_eq!(seen, hashed + failed + not_reached);
}

#[test]
fn a_closed_standard_output_ends_it_quietly() {
    let tree = endless_tree();
    let mut child = start(&tree, "6");
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    // The pipe is closed with the reader, as by `head -1`.
    assert_eq!(wait(&mut child, SOON).code(), Some(0));
    assert_eq!(text(&read_all(child.stderr.take().unwrap())), "");
}
