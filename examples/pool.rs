//! A pool: one producer, two workers, a queue of two. Every send and every item has a limit.
//!
//! ```text
//! cargo run --release --example pool
//! ```
//!
//! It shows the life of a queue's items. One that timed out is *rejected*, the others are *done*; `join` waits
//! for all and has counted them, so there is no counter to keep.

use std::time::Duration;

use stoppable::{GroupError, ShutdownQueue, TaskError, TaskGroup, TimeoutError, with_timeout};
use tokio::time::sleep;

const SEND_LIMIT: Duration = Duration::from_millis(400);
const ITEM_LIMIT: Duration = Duration::from_millis(200);

async fn produce(jobs: ShutdownQueue<u32>) -> Result<(), TaskError> {
    for n in 1..=6 {
        // No room for so long means that the workers are stuck: an error, which ends the pool.
        jobs.send_by(n, SEND_LIMIT).await?;
    }
    Ok(())
}

async fn work(jobs: ShutdownQueue<u32>) -> Result<(), TaskError> {
    while let Some(job) = jobs.recv().await? {
        match with_timeout(ITEM_LIMIT, process(*job)).await {
            Ok(()) => {
                println!("item {}: completed", *job);
                job.done();
            }
            Err(TimeoutError::Elapsed(_)) => {
                println!("item {}: timed out", *job);
                job.reject();
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

async fn process(n: u32) -> Result<(), TaskError> {
    sleep(Duration::from_millis(if n == 3 { 500 } else { 50 })).await;
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), GroupError> {
    TaskGroup::run(|group| async move {
        let jobs = ShutdownQueue::bounded(2);
        for _ in 0..2 {
            group.task("worker").spawn(work(jobs.clone()));
        }
        // Closing is a protocol: the producer has ended, nothing new, everything settled.
        group.task("producer").spawn(produce(jobs.clone())).await?;
        jobs.shutdown();
        let ended = jobs.join().await?;
        println!("completed={}, timed_out={}", ended.done, ended.rejected);
        Ok(())
    })
    .await
}
