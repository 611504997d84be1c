//! A batch: numbers squared by two workers over a queue of two, with a limit for every item and one for
//! the whole.
//!
//! ```text
//! cargo run --release --example batch -- all
//! ```
//!
//! It shows what becomes of a batch that goes well, of one slow item, of one that fails, and of a batch
//! that takes too long. Each time the group ends with all its tasks, and its report says how they did. What
//! is *expected* of one item, a timeout here, is a result; only what must end the batch is an error.

use std::time::Duration;

use clap::Parser;
use stoppable::{
    GroupError, GroupReport, Handles, ShutdownQueue, TaskError, TaskGroup, TimeoutError, with_timeout,
};
use tokio::time::sleep;

/// Squares numbers.
#[derive(Parser)]
struct Args {
    #[arg(default_value = "all", value_parser = ["normal", "item-timeout", "failure", "batch-timeout", "all"])]
    mode: String,
    /// How many numbers.
    #[arg(long, value_name = "N", default_value_t = 6)]
    items: u32,
    /// Which one is slow in the mode `item-timeout`.
    #[arg(long, value_name = "K", default_value_t = 3)]
    slow: u32,
}

/// One batch: its limits, and how its items behave.
#[derive(Clone, Copy)]
struct Plan {
    name: &'static str,
    items: u32,
    item_limit: Duration,
    whole_limit: Duration,
    takes: Duration,
    odd_one: Option<OddOne>,
}

/// The item that is not like the others.
#[derive(Clone, Copy)]
struct OddOne {
    n: u32,
    takes: Duration,
    fails: bool,
}

fn plans(args: &Args) -> [Plan; 4] {
    let ms = Duration::from_millis;
    let normal = Plan {
        name: "normal",
        items: args.items,
        item_limit: ms(50),
        whole_limit: ms(2000),
        takes: ms(10),
        odd_one: None,
    };
    let slow = OddOne { n: args.slow, takes: ms(200), fails: false };
    let invalid = OddOne { n: 1, takes: ms(10), fails: true };
    let tardy = Plan { item_limit: ms(500), takes: ms(200), ..normal };
    [
        normal,
        Plan { name: "item-timeout", odd_one: Some(slow), ..normal },
        Plan { name: "failure", odd_one: Some(invalid), ..tardy },
        Plan { name: "batch-timeout", whole_limit: ms(20), ..tardy },
    ]
}

#[derive(Debug, thiserror::Error)]
#[error("invalid item {0}")]
struct InvalidItem(u32);

/// A number and its square, or `None` where that took too long.
type Squared = (u32, Option<u64>);

async fn square(n: u32, plan: Plan) -> Result<u64, InvalidItem> {
    let odd_one = plan.odd_one.filter(|odd| odd.n == n);
    sleep(odd_one.map_or(plan.takes, |odd| odd.takes)).await;
    if odd_one.is_some_and(|odd| odd.fails) {
        return Err(InvalidItem(n));
    }
    Ok(u64::from(n).pow(2))
}

async fn worker(jobs: ShutdownQueue<u32>, plan: Plan) -> Result<Vec<Squared>, TaskError> {
    let mut squared = Vec::new();
    while let Some(job) = jobs.recv().await? {
        let result = match with_timeout(plan.item_limit, square(*job, plan)).await {
            Ok(square) => Some(square),
            Err(TimeoutError::Elapsed(_)) => None,
            // A failure ends the batch. A cancel from outside is not this item's timeout, and goes on up.
            Err(error) => return Err(error.into()),
        };
        squared.push((*job, result));
        job.done();
    }
    Ok(squared)
}

async fn producer(jobs: ShutdownQueue<u32>, items: u32) -> Result<(), TaskError> {
    for n in 1..=items {
        jobs.send(n).await?; // waits while two are queued
    }
    jobs.shutdown(); // the workers drain it, and end
    Ok(())
}

async fn batch(plan: Plan) -> (Result<Vec<Squared>, GroupError>, GroupReport) {
    TaskGroup::builder()
        .name(plan.name)
        .deadline(plan.whole_limit)
        .keep_report()
        .run_reported(|group| async move {
            let jobs = ShutdownQueue::bounded(2);
            let worker = |_| group.task("worker").spawn(worker(jobs.clone(), plan));
            let workers: Handles<_> = (0..2).map(worker).collect();
            group.task("producer").spawn(producer(jobs.clone(), plan.items));
            let mut squared = workers.collect().await?.concat();
            squared.sort_unstable();
            Ok(squared)
        })
        .await
}

async fn show(plan: Plan) {
    let (result, report) = batch(plan).await;
    let status = match &result {
        Ok(_) => "ok",
        // Nobody cancels this group but its own deadline.
        Err(error) if error.is_cancelled() => "batch-timeout",
        Err(error) => {
            let failures = error.failures().iter().filter_map(|failure| failure.error());
            println!("{}: {:?}", plan.name, failures.map(ToString::to_string).collect::<Vec<_>>());
            "failed"
        }
    };
    // However the batch ended, none of its tasks is alive, and each is in the report.
    let workers_closed = report.tasks.iter().filter(|task| task.name == "worker").count();
    let tasks_done = report.live == 0;
    println!("{}: status={status}, workers_closed={workers_closed}, tasks_done={tasks_done}", plan.name);

    if let Ok(squared) = result {
        let shown: Vec<String> = squared.iter().map(show_one).collect();
        let total: u128 = squared.iter().filter_map(|(_, square)| *square).map(u128::from).sum();
        println!("results=[{}], total={total}", shown.join(", "));
    }
}

fn show_one((n, square): &Squared) -> String {
    match square {
        Some(square) => format!("({n}, {square})"),
        None => format!("({n}, timeout)"),
    }
}

#[tokio::main]
async fn main() {
    let args = Args::parse();
    for plan in plans(&args) {
        if [plan.name, "all"].contains(&args.mode.as_str()) {
            show(plan).await;
        }
    }
}
