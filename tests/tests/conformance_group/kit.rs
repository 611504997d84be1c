//! What the tests of this target share.

use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use stoppable::{HandleError, OrCancelledExt, Policy, TaskError, TaskFailure, TaskGroup, ok};
use tokio::runtime::{Builder, Handle, RuntimeFlavor};
use tokio::time::{Instant, sleep};

/// Milliseconds: threefold on many threads, where time is real and the machine may be busy.
pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms * scale())
}

fn scale() -> u64 {
    let many = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    if Handle::try_current().is_ok_and(many) { 3 } else { 1 }
}

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Longer than any test takes.
pub(crate) const LONG: Duration = secs(1_000);

/// Runs a test twice: on one thread under paused time, and on four threads in real time. One that hangs
/// fails after 60 s of virtual or 20 s of real time.
#[track_caller]
pub(crate) fn both(test: impl AsyncFn()) {
    paused(&test);
    on_time(|| {
        let four = Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        four.block_on(async { tokio::time::timeout(secs(20), test()).await.expect("the test hangs") });
    });
}

/// The first half of [`both`], for scenarios that last long.
#[track_caller]
pub(crate) fn paused(test: impl AsyncFn()) {
    let one = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    one.block_on(async { tokio::time::timeout(secs(60), test()).await.expect("the test hangs") });
}

/// [`both`] in real time, for a test with threads of its own.
#[track_caller]
pub(crate) fn real(test: impl AsyncFn()) {
    for threads in [1, 4] {
        on_time(|| {
            let runtime = match threads {
                1 => Builder::new_current_thread().enable_all().build().unwrap(),
                _ => Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap(),
            };
            runtime.block_on(async { tokio::time::timeout(secs(20), test()).await.expect("the test hangs") });
        });
    }
}

/// In real time what happens first is told by sleeps, which holds only on a machine that keeps up. A failure
/// while this very process was stalled for longer than a third of the shortest step does not count, up to
/// ten times.
fn on_time(run: impl Fn()) {
    for _ in 0..10 {
        let over = AtomicBool::new(false);
        let (end, stall) = std::thread::scope(|threads| {
            let watch = threads.spawn(|| {
                let mut longest = Duration::ZERO;
                while !over.load(Ordering::SeqCst) {
                    let start = std::time::Instant::now();
                    std::thread::sleep(Duration::from_millis(1));
                    longest = longest.max(start.elapsed());
                }
                longest
            });
            let end = catch_unwind(AssertUnwindSafe(&run));
            over.store(true, Ordering::SeqCst);
            (end, watch.join().unwrap())
        });
        match end {
            Ok(()) => return,
            Err(payload) if stall < Duration::from_millis(10) => resume_unwind(payload),
            Err(_) => {}
        }
    }
    panic!("it failed ten times, on a machine that does not keep up");
}

/// Whether time stands still while somebody runs.
pub(crate) fn is_paused() -> bool {
    Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread
}

/// The time since it was made.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn ms(self) -> u64 {
        u64::try_from(self.0.elapsed().as_millis()).unwrap()
    }

    /// Now it is `ms` after the start: to 1 ms under paused time, and not earlier in real time.
    #[track_caller]
    pub(crate) fn at(self, ms: u64) {
        let (now, ms) = (self.ms(), ms * scale());
        let late = if is_paused() { 1 } else { 3_000 };
        assert!(now >= ms && now <= ms + late, "it is {now} ms, and should be {ms} ms");
    }
}

/// Computes for `ms` without a wait: the clock goes on, and no timer is looked at.
pub(crate) fn busy(time: Duration) {
    let mut advance = pin!(tokio::time::advance(time));
    // The clock moves in the first poll; what follows is a yield.
    let _ = advance.as_mut().poll(&mut Context::from_waker(Waker::noop()));
}

/// Lets every task that can run have its turn, and those it wakes.
pub(crate) async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(crate) fn bump(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Counts when it is dropped.
#[derive(Debug)]
pub(crate) struct Dropped(pub(crate) Counter);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.bump();
    }
}

/// A real failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Boom(pub(crate) &'static str);

impl fmt::Display for Boom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Boom {}

pub(crate) fn fail<T>(text: &'static str) -> Result<T, TaskError> {
    Err(Boom(text).into())
}

/// Sleeps until it is cancelled, counts that, and passes it on.
pub(crate) async fn sleeper(seen: Counter) -> Result<(), TaskError> {
    let slept = sleep(LONG).or_cancelled().await;
    if slept.is_err() {
        seen.bump();
    }
    Ok(slept?)
}

/// Fails after a time.
pub(crate) async fn fail_after(time: Duration, text: &'static str) -> Result<(), TaskError> {
    sleep(time).await;
    fail(text)
}

/// The texts of the failures that are a [`Boom`]; `nested`, `panic` or the type's text for others.
pub(crate) fn texts(failures: &[TaskFailure]) -> Vec<String> {
    let text = |failure: &TaskFailure| match failure.error() {
        Some(error) if error.is::<stoppable::GroupError>() => "nested".to_owned(),
        Some(error) => error.to_string(),
        None => format!("panic {}", failure.panic_message().unwrap()),
    };
    failures.iter().map(text).collect()
}

/// Runs `parent` as a task, and gives how it ended.
pub(crate) async fn as_task<T, F>(parent: F) -> Result<T, HandleError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, TaskError>> + Send + 'static,
{
    run_parent(None, parent).await
}

/// Runs `parent` as a task, which is cancelled `at` with the reason `outside`, and gives how it ended.
pub(crate) async fn cancelled_at<T, F>(at: Duration, parent: F) -> Result<T, HandleError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, TaskError>> + Send + 'static,
{
    run_parent(Some(at), parent).await
}

async fn run_parent<T, F>(cancel: Option<Duration>, parent: F) -> Result<T, HandleError>
where
    T: Send + 'static,
    F: Future<Output = Result<T, TaskError>> + Send + 'static,
{
    let mut end = None;
    let place = &mut end;
    let _ = TaskGroup::builder()
        .policy(Policy::Supervise)
        .run(|group| async move {
            let task = group.task("parent").spawn(parent);
            if let Some(at) = cancel {
                sleep(at).await;
                task.cancel_because("outside");
            }
            *place = Some(task.await);
            ok(())
        })
        .await;
    end.unwrap()
}

/// Counts how often the future inside is polled.
pub(crate) struct Polled<F> {
    future: Pin<Box<F>>,
    polls: Counter,
}

impl<F> Polled<F> {
    pub(crate) fn new(polls: &Counter, future: F) -> Self {
        Self { future: Box::pin(future), polls: polls.clone() }
    }
}

impl<F: Future> Future for Polled<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.polls.bump();
        self.future.as_mut().poll(cx)
    }
}

/// Panics after a time.
pub(crate) async fn panic_after(time: Duration, text: &'static str) {
    sleep(time).await;
    panic!("{text}");
}
