//! What the program says: lines on standard output, complaints and progress on standard error.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stoppable::{Item, QueueStats};

use crate::hash::Digest;

/// Cheap to clone; all clones share the progress line.
#[derive(Clone)]
pub(crate) struct Output {
    /// Only on a terminal.
    progress: Option<ProgressBar>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { progress: io::stderr().is_terminal().then(progress_line) }
    }

    /// So many more bytes were hashed.
    pub(crate) fn read(&self, bytes: usize) {
        if let Some(progress) = &self.progress {
            progress.inc(bytes as u64);
        }
    }

    /// Prints the line of a file, whole, and then settles the file as done.
    pub(crate) fn hashed(&self, file: Item<PathBuf>, digest: Digest) -> io::Result<()> {
        let line = line(&digest, &file);
        let print = || {
            let mut stdout = io::stdout().lock();
            stdout.write_all(&line)?;
            stdout.flush()
        };
        // A pipe may block for long, so the progress line is held only where the two share a screen.
        if io::stdout().is_terminal() { self.beside_progress(print) } else { print() }?;
        file.done();
        Ok(())
    }

    /// Reports a file that could not be hashed, and settles it as rejected.
    pub(crate) fn failed(&self, file: Item<PathBuf>, error: &dyn Display) -> io::Result<()> {
        self.complain(&file, error);
        file.reject();
        Ok(())
    }

    pub(crate) fn complain(&self, path: &Path, error: &dyn Display) {
        let (_, name) = escape(path.as_os_str());
        self.note(format_args!("{}: {error}", String::from_utf8_lossy(&name)));
    }

    pub(crate) fn note(&self, text: fmt::Arguments<'_>) {
        // `eprintln` would panic where standard error is closed. Then there is nobody to tell.
        self.beside_progress(|| drop(writeln!(io::stderr(), "hash_tree: {text}")));
    }

    /// The books of the queue are the account of the run. What was neither hashed nor failed was still queued,
    /// or with a worker that was asked to leave.
    pub(crate) fn summary(&self, books: &QueueStats) {
        let (seen, hashed, failed) = (books.accepted, books.done, books.rejected);
        let not_reached = seen - hashed - failed;
        if let Some(progress) = &self.progress {
            progress.finish_and_clear();
        }
        self.note(format_args!(
            "{seen} files seen: {hashed} hashed, {failed} failed, {not_reached} not reached"
        ));
    }

    fn beside_progress<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.progress {
            Some(progress) => progress.suspend(print),
            None => print(),
        }
    }
}

fn progress_line() -> ProgressBar {
    let progress = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template("{spinner} {bytes} hashed in {elapsed} ({bytes_per_sec})");
    if let Ok(style) = style {
        progress.set_style(style);
    }
    progress.enable_steady_tick(Duration::from_millis(100));
    progress
}

/// As `sha256sum` writes it: a name with a line break or a backslash in it is escaped, and its line begins
/// with a backslash. All other bytes are written as they are.
fn line(digest: &Digest, path: &Path) -> Vec<u8> {
    let (escaped, name) = escape(path.as_os_str());
    let mut line = Vec::with_capacity(name.len() + 68);
    if escaped {
        line.push(b'\\');
    }
    for byte in digest {
        line.extend_from_slice(format!("{byte:02x}").as_bytes());
    }
    line.extend_from_slice(b"  ");
    line.extend_from_slice(&name);
    line.push(b'\n');
    line
}

fn escape(name: &OsStr) -> (bool, Cow<'_, [u8]>) {
    let name = name.as_encoded_bytes();
    if !name.iter().any(|byte| b"\n\r\\".contains(byte)) {
        return (false, Cow::Borrowed(name));
    }
    let mut escaped = Vec::with_capacity(name.len() + 8);
    for &byte in name {
        match byte {
            b'\n' => escaped.extend_from_slice(b"\\n"),
            b'\r' => escaped.extend_from_slice(b"\\r"),
            b'\\' => escaped.extend_from_slice(b"\\\\"),
            other => escaped.push(other),
        }
    }
    (true, Cow::Owned(escaped))
}
