//! The texts of section 2 of the design compile as they stand there. Text (a) comes with the lifecycle.

use std::time::Duration;

use stoppable::prelude::*;
use stoppable::{Item, ok};

type Error = TaskError;

const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

async fn fetch_user(id: u32) -> Result<String, std::io::Error> {
    Ok(format!("user {id}"))
}

async fn fetch_orders(id: u32) -> Result<Vec<u32>, std::num::ParseIntError> {
    Ok(vec![id, "8".parse()?])
}

async fn fan_out(id: u32, budget: Duration) -> Result<(String, Vec<u32>), Error> {
    let (user, orders) = with_timeout(
        budget,
        TaskGroup::run(|group| async move {
            let user = group.spawn(fetch_user(id));
            let orders = group.spawn(fetch_orders(id));
            Ok((user.await?, orders.await?))
        }),
    )
    .await?;
    Ok((user, orders))
}

#[tokio::test(start_paused = true)]
async fn b_fan_out_under_one_deadline() {
    assert_eq!(fan_out(7, secs(1)).await.unwrap(), ("user 7".to_owned(), vec![7, 8]));
}

async fn handle(job: &u32) -> Result<(), std::io::Error> {
    if *job == 13 { Err(std::io::Error::other("unlucky")) } else { Ok(()) }
}

async fn consume(jobs: ShutdownQueue<u32>) -> Result<(), Error> {
    while let Some(job) = jobs.recv().await? {
        // None: closed and drained. Err: cancelled
        handle(&job).await?; // a failure here must not count as done
        job.done();
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn c_a_consumer() {
    let jobs = ShutdownQueue::bounded(10);
    for n in [1, 2, 13, 4] {
        jobs.send(n).await.unwrap();
    }
    jobs.shutdown();
    assert!(consume(jobs.clone()).await.is_err());
    let stats = jobs.stats();
    assert_eq!((stats.done, stats.abandoned, stats.len), (2, 1, 1));
}

struct Conn;

impl Conn {
    async fn query(&self, sql: &str) -> Result<usize, std::io::Error> {
        Ok(sql.len())
    }

    async fn close(self) -> Result<(), std::io::Error> {
        Ok(())
    }
}

async fn open() -> Result<Conn, std::io::Error> {
    Ok(Conn)
}

async fn cleanup_however_we_leave(sql: &str) -> Result<(), Error> {
    let conn = defer(open().await?, secs(2), |conn| async move { conn.close().await });
    conn.query(sql).or_cancelled().await??; // outer: cancelled. Inner: the query's own error
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn d_cleanup_that_happens_however_we_leave() {
    TaskGroup::run(|_group| async move {
        cleanup_however_we_leave("select 1").await?;
        ok(())
    })
    .await
    .unwrap();
}

#[test]
fn the_prelude_shadows_nothing_of_tokio() {
    // Both globs at once: a name in both would be ambiguous where it is used.
    #[allow(unused_imports)]
    use tokio::{sync::*, task::*, time::*};
    let _: fn(Duration) -> Sleep = sleep;
    let _: Option<JoinSet<()>> = None;
    let _: Option<Item<()>> = None;
    let _ = timeout::<std::future::Ready<()>>;
}
