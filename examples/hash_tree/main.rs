//! SHA-256 of every file below a directory, in the format of `sha256sum`, by several workers.
//!
//! ```text
//! cargo run --release --example hash_tree -- DIR
//! ```
//!
//! It shows a pipeline on real input that can be stopped at any moment. A walker feeds a bounded queue, and
//! waits when the workers are behind. The workers hash on blocking threads, each file under a deadline. Ctrl-C
//! or SIGTERM cancels the group, and structure does the rest: the walk, the waits and the threads hear of it,
//! the group returns once all have left, and the queue's books tell what was done and what was not reached.
//!
//! A file that cannot be read is an expected result of that file: it is reported, and the others go on. What
//! must end the run (standard output is gone, a bug) is an error of a task, which ends the group.

mod hash;
mod output;
mod signals;
mod walk;

use std::io::{self, ErrorKind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use stoppable::{GroupError, ShutdownQueue, TaskError, TaskGroup, TimeoutError, with_timeout};
use tokio::runtime;

use crate::output::Output;
use crate::signals::{Signals, StopSignal};

/// Prints the SHA-256 of every regular file below DIR, as `sha256sum` does.
#[derive(Parser)]
struct Args {
    dir: PathBuf,
    /// How many files are hashed at once; as many as there are processors by default.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    workers: Option<u16>,
    /// How long one file may take.
    #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds)]
    timeout: Duration,
}

fn seconds(text: &str) -> Result<Duration, TaskError> {
    Ok(Duration::try_from_secs_f64(text.parse()?)?)
}

impl Args {
    fn workers(&self) -> usize {
        let given = self.workers.map(usize::from);
        given.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
    }
}

/// How a run ended that nothing went wrong with.
enum Ended {
    /// Every file was looked at; this many directories could not be.
    Complete {
        unread_dirs: usize,
    },
    Interrupted(StopSignal),
}

async fn hash_tree(
    args: &Args,
    files: &ShutdownQueue<PathBuf>,
    output: &Output,
) -> Result<Ended, GroupError> {
    TaskGroup::builder()
        .name("hash_tree")
        .run(|group| async move {
            // First of all, so that from here on a signal is ours.
            let mut signals = Signals::new()?;

            let (dir, found, out) = (args.dir.clone(), files.clone(), output.clone());
            let walk = group.task("walk").spawn_blocking(move |stop| walk::walk(&dir, &found, &out, &stop));
            for _ in 0..args.workers() {
                let worker = worker(group.clone(), files.clone(), args.timeout, output.clone());
                group.task("worker").spawn(worker);
            }

            // The protocol of closing: the producer has ended, nothing new comes, everything is settled.
            let complete = async {
                let unread_dirs = walk.await?;
                files.shutdown();
                files.join().await?;
                Ok(Ended::Complete { unread_dirs })
            };
            tokio::select! {
                ended = complete => ended,
                signal = signals.recv() => {
                    group.cancel(signal.name());
                    Ok(Ended::Interrupted(signal))
                }
            }
        })
        .await
}

async fn worker(
    group: TaskGroup,
    files: ShutdownQueue<PathBuf>,
    limit: Duration,
    output: Output,
) -> Result<(), TaskError> {
    while let Some(file) = files.recv().await? {
        let result = hash_one(file.to_path_buf(), limit, output.clone()).await?;
        // Standard output may block, so it is written to from a thread too. The item goes along and is settled
        // there: whatever happens meanwhile, a line that is out and a file that is done are the same thing.
        let output = output.clone();
        let report = move |_stop| match result {
            Ok(digest) => output.hashed(file, digest),
            Err(error) => output.failed(file, &error),
        };
        group.task("report").spawn_blocking(report).await?;
    }
    Ok(())
}

/// The inner error is this file's own, the outer one ends the worker.
async fn hash_one(
    path: PathBuf,
    limit: Duration,
    output: Output,
) -> Result<Result<hash::Digest, String>, TaskError> {
    // A group of its own: so the thread is below the timeout, hears of it, and has left when this returns.
    let hashing = TaskGroup::run(|group| async move {
        let digest = group.task("hash").spawn_blocking(move |stop| hash::hash(&path, &output, &stop));
        Ok(digest.await?)
    });
    match with_timeout(limit, hashing).await {
        Ok(digest) => Ok(Ok(digest)),
        Err(TimeoutError::Elapsed(_)) => Ok(Err(format!("took longer than {limit:?}"))),
        Err(TimeoutError::Failed(error)) => match error.find::<io::Error>() {
            Some(error) => Ok(Err(error.to_string())),
            None => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let output = Output::new();
    if let Err(error) = args.dir.symlink_metadata() {
        output.complain(&args.dir, &error);
        return ExitCode::from(2);
    }
    // One thread for what waits; what works is on blocking threads.
    let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            output.note(format_args!("no runtime: {error}"));
            return ExitCode::FAILURE;
        }
    };
    let files = ShutdownQueue::bounded(2 * args.workers());
    let ended = runtime.block_on(hash_tree(&args, &files, &output));
    // A thread that hangs in a read was waited for long enough. It must not hold the exit.
    runtime.shutdown_background();

    let status = match ended {
        Ok(Ended::Complete { unread_dirs }) => {
            ExitCode::from(u8::from(unread_dirs > 0 || files.stats().rejected > 0))
        }
        Ok(Ended::Interrupted(signal)) => {
            output.note(format_args!("interrupted by {}", signal.name()));
            signal.exit_code()
        }
        // `| head -1` has seen enough. Neither do we say more.
        Err(error) if error.find::<io::Error>().is_some_and(|io| io.kind() == ErrorKind::BrokenPipe) => {
            return ExitCode::SUCCESS;
        }
        Err(error) => {
            output.note(format_args!("{error}"));
            ExitCode::FAILURE
        }
    };
    output.summary(&files.stats());
    status
}
