//! Programs that were built, and trees of files to run them on.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{env, process, thread};

/// The program, as an example of the workspace, built in the profile and the target folder of this test.
pub(crate) fn program(name: &str) -> Command {
    static BUILT: OnceLock<Vec<PathBuf>> = OnceLock::new();
    let built = BUILT.get_or_init(build);
    let path = built.iter().find(|path| path.file_name().is_some_and(|file| file == name));
    Command::new(path.unwrap_or_else(|| panic!("no `{name}` among {built:?}")))
}

fn build() -> Vec<PathBuf> {
    let this = env::current_exe().unwrap();
    // target/[triple/]profile/deps/this
    let folder = this.ancestors().nth(2).unwrap();
    let profile = match folder.file_name().unwrap().to_str().unwrap() {
        "debug" => "dev",
        other => other,
    };
    let target = folder.ancestors().find(|path| path.join("CACHEDIR.TAG").exists()).unwrap();
    let cargo = env::var_os("CARGO").unwrap_or_else(|| env!("CARGO").into());
    let output = Command::new(cargo)
        // The whole workspace, so that its features are those it is tested with, and nothing is built twice.
        .args([
            "build",
            "--workspace",
            "--quiet",
            "--message-format=json-render-diagnostics",
            "--profile",
            profile,
        ])
        .args(["--example", "batch", "--example", "pool", "--example", "hash_tree"])
        .arg("--target-dir")
        .arg(target)
        .args(["--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the programs do not build");
    let messages = text(&output.stdout);
    let executables = messages.split("\"executable\":\"").skip(1);
    executables.filter_map(|rest| rest.split('"').next()).map(PathBuf::from).collect()
}

pub(crate) fn run(program: &mut Command) -> Output {
    program.stdin(Stdio::null()).output().unwrap()
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Lines, as a set: the order is that in which the workers were ready.
pub(crate) fn lines(bytes: &[u8]) -> BTreeSet<Vec<u8>> {
    let lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let set: BTreeSet<Vec<u8>> = lines.iter().cloned().collect();
    assert_eq!(set.len(), lines.len(), "no line comes twice");
    set
}

/// Every line of `printed` is one of `right`, whole, and with `all` there is each of them.
pub(crate) fn assert_right(printed: &BTreeSet<Vec<u8>>, right: &BTreeSet<Vec<u8>>, all: bool) {
    let show = |line: Option<&Vec<u8>>| line.map(|line| text(line));
    assert_eq!(show(printed.difference(right).next()), None, "printed, and not right");
    assert_eq!(show(right.difference(printed).next()).filter(|_| all), None, "not printed");
}

/// What `find` and `sha256sum` say of the same tree, from the same folder. What is very large is left out.
pub(crate) fn sha256sum(cwd: &Path, dir: &str) -> BTreeSet<Vec<u8>> {
    let mut shell = Command::new("sh");
    shell.args(["-c", "find \"$0\" -type f -size -999M -print0 | xargs -0 -r sha256sum", dir]);
    let output = run(shell.current_dir(cwd).env("LC_ALL", "C"));
    lines(&output.stdout)
}

/// A folder that is removed in the end.
pub(crate) struct Tree(PathBuf);

impl Tree {
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("stoppable-programs-{}-{count}", process::id()));
        fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn dir(&self, name: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(&path).unwrap();
        path
    }

    pub(crate) fn file(&self, name: impl AsRef<[u8]>, content: impl AsRef<[u8]>) {
        let path = self.0.join(std::ffi::OsStr::from_bytes(name.as_ref()));
        fs::write(path, content).unwrap();
    }

    /// A file of this size that occupies no room. 64 GiB of it keep a worker busy for longer than a test.
    pub(crate) fn sparse(&self, name: &str, size: u64) {
        File::create(self.0.join(name)).unwrap().set_len(size).unwrap();
    }

    pub(crate) fn link(&self, name: &str, to: &str) {
        std::os::unix::fs::symlink(to, self.0.join(name)).unwrap();
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The numbers of the summary: seen, hashed, failed, not reached.
pub(crate) fn summary(stderr: &[u8]) -> [usize; 4] {
    let stderr = text(stderr);
    let line = stderr.lines().last().unwrap_or_default();
    let words: Vec<&str> = line.split(' ').collect();
    let ["hash_tree:", seen, "files", "seen:", hashed, "hashed,", failed, "failed,", rest, "not", "reached"] =
        words[..]
    else {
        panic!("no summary at the end of: {stderr}");
    };
    [seen, hashed, failed, rest].map(|number| number.parse().unwrap())
}

pub(crate) fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    let sent = Command::new("sh").args(["-c", "kill -s \"$0\" \"$1\"", name, &pid]).status().unwrap();
    assert!(sent.success());
}

/// Its status, if it ends within `limit`; killed otherwise.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> ExitStatus {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        if begun.elapsed() > limit {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("still running after {limit:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
}
