use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{Tree, assert_right, lines, program, run, sha256sum, summary, text};

fn hash_tree(cwd: &Path, args: &[&str]) -> Output {
    run(program("hash_tree").args(args).current_dir(cwd))
}

/// `dir`, seen from `cwd`, gives what `find` and `sha256sum` give, and a clean end.
fn assert_same(cwd: &Path, dir: &str) -> usize {
    let output = hash_tree(cwd, &["--", dir]);
    let expected = sha256sum(cwd, dir);
    assert_right(&lines(&output.stdout), &expected, true);
    assert_eq!(summary(&output.stderr), [expected.len(), expected.len(), 0, 0]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    expected.len()
}

#[test]
fn odd_names_are_written_as_sha256sum_does() {
    let tree = Tree::new();
    let names: [&[u8]; 12] = [
        b"plain",
        b"with space",
        b" ",
        b"line\nbreak",
        b"return\rhere",
        b"back\\slash",
        b"\\n",
        b"all\\of\nthem\r",
        b"not utf-8 \xff\xfe",
        "ünïcödé ☃".as_bytes(),
        b"-dash",
        b"*quote'\"$",
    ];
    for name in names {
        tree.file(name, name);
    }
    tree.file("empty", "");
    let odd = tree.dir("odd\n\\dir/deep/er");
    fs::write(odd.join("file"), "deep").unwrap();
    assert_eq!(assert_same(tree.path(), "."), names.len() + 2);
}

#[test]
fn what_is_no_regular_file_is_skipped() {
    let tree = Tree::new();
    tree.file("file", "content");
    tree.link("to-file", "file");
    tree.link("loop", ".");
    tree.link("dangling", "nowhere");
    tree.link("itself", "itself");
    let fifo = Command::new("mkfifo").arg(tree.path().join("fifo")).status().unwrap();
    assert!(fifo.success());
    let _socket = std::os::unix::net::UnixListener::bind(tree.path().join("socket")).unwrap();
    assert_eq!(assert_same(tree.path(), "."), 1);
}

#[test]
fn the_root_is_taken_as_find_takes_it() {
    let tree = Tree::new();
    tree.dir("dir/sub");
    tree.file("dir/a", "a");
    tree.file("dir/sub/b", "b");
    tree.file("-dash", "dash");
    tree.link("to-dir", "dir");
    tree.link("to-file", "dir/a");
    for (root, files) in [
        ("dir", 2),
        ("dir/", 2),
        ("dir//", 2),
        ("./dir", 2),
        ("dir/../dir", 2),
        ("dir/a", 1),
        ("to-dir", 0),
        ("to-dir/", 2),
        ("to-file", 0),
    ] {
        assert_eq!(assert_same(tree.path(), root), files, "{root}");
    }
    assert_same(tree.path(), tree.path().to_str().unwrap());
    // `find` takes this for an option, so there is nothing to compare with.
    let dash = hash_tree(tree.path(), &["--", "-dash"]);
    assert!(text(&dash.stdout).ends_with("  -dash\n"));
}

#[test]
fn an_empty_tree_prints_nothing() {
    let tree = Tree::new();
    tree.dir("empty/er");
    let output = hash_tree(tree.path(), &["."]);
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), ""));
}

#[test]
fn many_small_files_and_a_large_one() {
    let tree = Tree::new();
    for n in 0..2000 {
        if n % 100 == 0 {
            tree.dir(&format!("{}", n / 100));
        }
        tree.file(format!("{}/{n}", n / 100), format!("{n}"));
    }
    let one = hash_tree(tree.path(), &["--workers", "1", "."]);
    assert_eq!(summary(&one.stderr), [2000, 2000, 0, 0]);
    tree.sparse("large", 40 << 20);
    assert_eq!(assert_same(tree.path(), "."), 2001);
}

#[test]
fn what_cannot_be_read_is_reported_and_the_rest_is_hashed() {
    let tree = Tree::new();
    tree.file("good", "good");
    tree.file("secret\n", "bad");
    let closed = tree.dir("closed");
    for path in [tree.path().join("secret\n"), closed.clone()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let mut program = program("hash_tree");
    if fs::metadata(tree.path()).unwrap().uid() == 0 {
        // Root reads everything. Somebody else does not, and may not even find the program where it is.
        let copy = Tree::new();
        let path = copy.path().join("hash_tree");
        fs::copy(program.get_program(), &path).unwrap();
        let mut as_nobody = Command::new(path);
        as_nobody.uid(65534).gid(65534);
        assert_unreadable(as_nobody.current_dir(tree.path()));
    } else {
        assert_unreadable(program.current_dir(tree.path()));
    }
    fs::set_permissions(closed, fs::Permissions::from_mode(0o700)).unwrap();
}

fn assert_unreadable(program: &mut Command) {
    let output = run(program.arg("."));
    let stderr = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(text(&output.stdout).ends_with("  ./good\n"));
    assert_eq!(output.stdout.iter().filter(|byte| **byte == b'\n').count(), 1);
    assert!(stderr.contains("hash_tree: ./secret\\n: Permission denied"), "{stderr}");
    assert!(stderr.contains("hash_tree: ./closed: Permission denied"), "{stderr}");
    assert_eq!(summary(&output.stderr), [2, 1, 1, 0]);
}

#[test]
fn a_file_that_takes_too_long_fails_alone() {
    let tree = Tree::new();
    tree.sparse("endless", 64 << 30);
    tree.file("small", "small");
    let output = hash_tree(tree.path(), &["--timeout", "0.3", "."]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).ends_with("  ./small\n"));
    assert!(text(&output.stderr).contains("./endless: took longer than 300ms"));
    assert_eq!(summary(&output.stderr), [2, 1, 1, 0]);
}

#[test]
fn a_root_that_is_missing_is_an_error_and_none_is_a_usage_error() {
    let tree = Tree::new();
    let missing = hash_tree(tree.path(), &["missing"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).starts_with("hash_tree: missing: No such file"));
    for usage in [&[][..], &["--workers", "0", "."], &["--timeout", "-1", "."], &["--timeout", "soon", "."]] {
        let output = hash_tree(tree.path(), usage);
        assert_eq!(output.status.code(), Some(2), "{usage:?}");
        assert!(output.stdout.is_empty());
        assert!(text(&output.stderr).starts_with("error:"));
    }
}
