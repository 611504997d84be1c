//! Blocking tasks: the stop flag, the second that a thread has after a cancel, and threads that do not return.
//! Real time, for threads sleep in it.

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use stoppable_group::{HandleError, Outcome, TaskError, TaskGroup, ok, with_timeout};
use stoppable_scope::{Deadline, Scope};
use support::{ms, runtimes, secs};
use tokio::time::sleep;

/// Until something is so, for the other thread has to see it.
fn until(what: impl Fn() -> bool) {
    let started = Instant::now();
    while !what() {
        assert!(started.elapsed() < secs(20), "it does not come");
        thread::sleep(ms(1));
    }
}

#[test]
fn values_errors_and_panics_of_a_thread_are_those_of_its_task() {
    for runtime in runtimes() {
        runtime.block_on(async {
            let error = TaskGroup::builder()
                .policy(stoppable_group::Policy::Supervise)
                .run(|group| async move {
                    assert_eq!(group.spawn_blocking(|_| ok(5)).await?, 5);
                    group.spawn_blocking(|_| {}).await?;
                    group.task("bad").spawn_blocking(|_| Err::<(), TaskError>("E".into()));
                    let bomb = group.task("bomb").spawn_blocking(|stop| {
                        assert!(stop.is_cancelled(), "boom");
                    });
                    let failure = bomb.await.unwrap_err();
                    assert_eq!(failure.failure().unwrap().panic_message(), Some("boom"));
                    ok(())
                })
                .await
                .unwrap_err();
            assert_eq!(error.failures().len(), 2);
            assert!(error.failures().iter().all(|failure| failure.site().file() == file!()));
        });
    }
}

// B-111 (a): a loop that looks at its flag is joined soon after the cancel, and is a cancelled task.
#[test]
fn a_thread_that_looks_at_its_flag_leaves() {
    for runtime in runtimes() {
        let live = Arc::new(AtomicUsize::new(0));
        let seen = live.clone();
        let started = Instant::now();
        let (result, report) = runtime.block_on(TaskGroup::builder().run_reported(|group| async move {
            group.spawn_blocking(move |stop| {
                seen.fetch_add(1, Ordering::SeqCst);
                let left = loop {
                    if let Err(cancelled) = stop.check() {
                        break cancelled;
                    }
                    thread::sleep(ms(10));
                };
                assert!(stop.is_stopping() && stop.scope().is_cancelled());
                seen.fetch_sub(1, Ordering::SeqCst);
                Err::<(), _>(left)
            });
            sleep(ms(100)).await;
            group.cancel("stop");
            ok(())
        }));
        result.unwrap();
        assert_eq!((live.load(Ordering::SeqCst), report.cancelled, report.live), (0, 1, 0));
        assert!(started.elapsed() < ms(900), "{:?}", started.elapsed());
    }
}

// "A blocking thread that outlasts its grace is reported as abandoned and is not counted as live": after one
// second where nobody gave a grace, else after that. B-111 (b).
#[test]
fn a_thread_that_does_not_return_is_abandoned_at_the_end_of_its_grace() {
    for (grace, least, most) in
        [(None, 1000, 1900), (Some(ms(100)), 100, 900), (Some(Duration::ZERO), 0, 800)]
    {
        let mut soonest = [Duration::MAX; 2];
        for (at, runtime) in runtimes().into_iter().chain(runtimes()).enumerate() {
            let release = Arc::new(AtomicBool::new(false));
            let kept = release.clone();
            let (log, _guard) = support::events();
            let (asked, report, error) = runtime.block_on(async {
                let (result, report) = TaskGroup::builder()
                    .run_reported(|group| async move {
                        let mut task = group.task("deaf");
                        if let Some(grace) = grace {
                            task = task.grace(grace);
                        }
                        let begun = Arc::new(AtomicBool::new(false));
                        let seen = begun.clone();
                        let task = task.spawn_blocking(move |_| {
                            seen.store(true, Ordering::SeqCst);
                            until(|| kept.load(Ordering::SeqCst));
                            Err::<(), TaskError>("nobody hears of it".into())
                        });
                        while !begun.load(Ordering::SeqCst) {
                            sleep(ms(1)).await;
                        }
                        group.cancel(());
                        ok((Instant::now(), task))
                    })
                    .await;
                let (asked, task) = result.unwrap();
                (asked.elapsed(), report, task.await.unwrap_err())
            });
            assert!(asked >= ms(least), "{grace:?} {asked:?}");
            // The machine may have stalled; once in two, on each runtime, it has not.
            soonest[at % 2] = soonest[at % 2].min(asked);
            assert_eq!((report.abandoned, report.live, report.ended()), (1, 0, 1));
            assert!(matches!(report.tasks[0].outcome, Outcome::Abandoned));
            assert!(matches!(&error, HandleError::Abandoned { task } if task == "deaf"), "{error}");
            let warned = log.lines().iter().any(|line| line.starts_with("WARN") && line.contains("deaf"));
            // On several threads it may be said on another one.
            assert!(warned || log.lines().is_empty(), "{:?}", log.lines());
            release.store(true, Ordering::SeqCst);
        }
        assert!(soonest.iter().all(|asked| *asked < ms(most)), "{grace:?} {soonest:?}");
    }
}

// The flag sees a deadline by the clock, whether or not a timer can fire: the runtime's thread is busy.
#[test]
fn the_flag_sees_a_deadline_by_the_clock() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let seen_after = Arc::new(std::sync::Mutex::new(None));
    let seen = seen_after.clone();
    let result = runtime.block_on(with_timeout(
        ms(100),
        TaskGroup::run(|group| async move {
            let started = Instant::now();
            let done = Arc::new(AtomicBool::new(false));
            let said = done.clone();
            group.spawn_blocking(move |stop| {
                assert!(Deadline::current().remaining().is_some(), "the ambient scope is the task's");
                until(|| stop.is_cancelled());
                *seen.lock().unwrap() = Some(started.elapsed());
                said.store(true, Ordering::SeqCst);
            });
            tokio::task::yield_now().await;
            // No timer fires meanwhile.
            until(|| done.load(Ordering::SeqCst));
            ok(())
        }),
    ));
    let after = seen_after.lock().unwrap().unwrap();
    assert!((ms(50)..ms(5000)).contains(&after), "{after:?}");
    drop(result);
}

// The ambient scope inside is the task's own, and what is spawned from there is the group's.
#[test]
fn the_ambient_scope_is_there_on_the_thread() {
    for runtime in runtimes() {
        let value = runtime.block_on(TaskGroup::run(|group| async move {
            let inner = group.clone();
            let task = group.task("thread").spawn_blocking(move |_| {
                let scope = Scope::current().unwrap();
                let spawned = inner.spawn(async { ok(4) });
                ok((scope.name().clone(), scope.id(), spawned))
            });
            let id = task.scope().id();
            let (name, inside, spawned) = task.await?;
            assert_eq!((name.as_str(), inside), ("thread", id));
            ok(spawned.await?)
        }));
        assert_eq!(value.unwrap(), 4);
    }
}

// Cancelled before it was polled it does not get a thread.
#[test]
fn one_that_is_cancelled_before_does_not_start() {
    for runtime in runtimes() {
        let ran = Arc::new(AtomicBool::new(false));
        let (result, report) = runtime.block_on(TaskGroup::builder().limit(1).run_reported(|group| {
            let ran = ran.clone();
            async move {
                let _first = group.spawn(std::future::pending::<()>());
                let queued = group.spawn_blocking(move |_| ran.store(true, Ordering::SeqCst));
                sleep(ms(5)).await;
                queued.cancel();
                assert!(matches!(queued.await, Err(HandleError::NotStarted { .. })));
                group.cancel(());
                ok(())
            }
        }));
        result.unwrap();
        assert_eq!((report.not_started, ran.load(Ordering::SeqCst)), (1, false));
    }
}

// Where all threads are taken, work that waits for one need not begin after a cancel, and its task is told so.
#[test]
fn one_that_waits_for_a_thread_does_not_start_after_a_cancel() {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    let (release, ran) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (kept, seen) = (release.clone(), ran.clone());
    let (_, report) = runtime.block_on(TaskGroup::builder().run_reported(|group| async move {
        let holder = tokio::task::spawn_blocking(move || until(|| kept.load(Ordering::SeqCst)));
        let waiting = group.task("waiting").spawn_blocking(move |_| seen.store(true, Ordering::SeqCst));
        sleep(ms(20)).await;
        let started = Instant::now();
        let error = waiting.shutdown().await.unwrap_err();
        assert!(started.elapsed() < ms(800), "no thread has to be waited for: {:?}", started.elapsed());
        assert!(matches!(error, HandleError::NotStarted { .. }), "{error}");
        release.store(true, Ordering::SeqCst);
        holder.await?;
        ok(())
    }));
    assert_eq!((report.abandoned, report.not_started), (0, 1));
    assert!(!ran.load(Ordering::SeqCst));
}

// A thread counts for the limit of the group.
#[test]
fn threads_take_places_of_the_group() {
    for runtime in runtimes() {
        let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let seen = most.clone();
        runtime
            .block_on(TaskGroup::builder().limit(2).run(|group| async move {
                for _ in 0..8 {
                    let (now, most) = (now.clone(), most.clone());
                    group.spawn_blocking(move |_| {
                        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        thread::sleep(ms(5));
                        now.fetch_sub(1, Ordering::SeqCst);
                    });
                }
                ok(())
            }))
            .unwrap();
        assert!(seen.load(Ordering::SeqCst) <= 2);
    }
}
