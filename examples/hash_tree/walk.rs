//! The walk: a blocking task that finds files and feeds the queue.

use std::path::{Path, PathBuf};

use stoppable::{ShutdownQueue, StopFlag, TaskError};
use tokio::runtime::Handle;
use walkdir::WalkDir;

use crate::output::Output;

/// Sends the path of every regular file below `dir`, and gives the number of directories that could not be
/// read. Symbolic links are not followed, as `find DIR -type f` does not.
pub(crate) fn walk(
    dir: &Path,
    files: &ShutdownQueue<PathBuf>,
    output: &Output,
    stop: &StopFlag,
) -> Result<usize, TaskError> {
    let runtime = Handle::current();
    let mut unread = 0;
    for entry in WalkDir::new(dir).follow_root_links(false) {
        // Where there are no files there is nothing to send, and nobody else to say that it is over.
        stop.check()?;
        match entry {
            Ok(entry) if entry.file_type().is_file() => {
                // The thread waits for room as a task would, and a cancel of this task ends the wait.
                runtime.block_on(files.send(entry.into_path()))?;
            }
            Ok(_) => {}
            Err(error) => {
                unread += 1;
                let path = error.path().unwrap_or(dir);
                match error.io_error() {
                    Some(io) => output.complain(path, io),
                    None => output.complain(path, &error),
                }
            }
        }
    }
    Ok(unread)
}
