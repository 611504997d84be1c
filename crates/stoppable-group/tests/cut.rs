//! R2: ask, then cut; who is cut after having answered is logged.

mod support;

use std::future::{pending, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Poll;

use stoppable_group::{HandleError, Outcome, TaskGroup, ok, with_timeout};
use stoppable_scope::{OrCancelledExt, Scope, cleanup};
use support::{Alive, Log, ends, events, ms, secs};
use tokio::time::{Instant, sleep};

// "A task cancelled before its first poll never runs and is reported so."
#[tokio::test(start_paused = true)]
async fn a_task_cancelled_before_its_first_poll_never_runs() {
    let (ran, alive) = (Arc::new(AtomicBool::new(false)), Alive::default());
    let (seen, guard) = (ran.clone(), alive.guard());
    let (result, report) = TaskGroup::builder()
        .run_reported(|group| async move {
            let handle = group.task("late").spawn(async move {
                let _guard = guard;
                seen.store(true, Ordering::Relaxed);
            });
            assert!(handle.cancel());
            match handle.await.unwrap_err() {
                HandleError::NotStarted { task, .. } => assert_eq!(task, "late"),
                other => panic!("{other}"),
            }
            ok(())
        })
        .await;
    result.unwrap();
    assert_eq!((ran.load(Ordering::Relaxed), alive.now()), (false, 0));
    assert_eq!((report.not_started, report.ended()), (1, 1));
    assert!(matches!(report.tasks[0].outcome, Outcome::NotStarted(_)));
    assert_eq!(report.tasks[0].site.file(), file!());
}

// "stoppable waits answer, and the code after them runs. Cut: where it then still waits, it is dropped".
#[tokio::test(start_paused = true)]
async fn a_task_answers_and_is_cut_at_its_next_wait() {
    let (log, alive) = (Log::default(), Alive::default());
    let (seen, guard) = (log.clone(), alive.guard());
    let started = Instant::now();
    let run = with_timeout(
        secs(1),
        TaskGroup::run(|group| async move {
            group.spawn(async move {
                let _guard = guard;
                let answer = pending::<()>().or_cancelled().await;
                seen.add(answer.unwrap_err().to_string());
                let again = pending::<()>().or_cancelled().await;
                seen.add(format!("again {}", again.is_err()));
                pending::<()>().await;
                seen.add("never");
            });
            ok(())
        }),
    );
    assert!(ends(run).await.unwrap_err().is_elapsed());
    assert_eq!(log.lines(), ["cancelled: its deadline has elapsed", "again true"]);
    assert_eq!((alive.now(), started.elapsed()), (0, secs(1)));
}

// "Who is cut after having answered is logged with name, spawn site and last stoppable wait, and the hint".
#[tokio::test(start_paused = true)]
async fn a_cut_after_an_answer_is_a_warning_with_name_site_and_last_wait() {
    let (log, _guard) = events();
    let wait = std::sync::Mutex::new(0);
    let site = line!() + 4;
    TaskGroup::run(|group| {
        *wait.lock().unwrap() = line!() + 3;
        async move {
            group.task("upload").spawn(async {
                let _ = pending::<()>().or_cancelled().await;
                pending::<()>().await;
            });
            sleep(ms(1)).await;
            group.cancel("enough");
            ok(())
        }
    })
    .await
    .unwrap();
    let warnings: Vec<_> = log.lines().into_iter().filter(|line| line.starts_with("WARN")).collect();
    assert_eq!(warnings.len(), 1, "{:?}", log.lines());
    for part in ["upload", &format!("{}:{}", file!(), site), "last_wait", "enough", "`cleanup` or `defer`"] {
        assert!(warnings[0].contains(part), "{part} in {}", warnings[0]);
    }
    assert!(warnings[0].contains(&format!("{}:{}:", file!(), wait.lock().unwrap())), "{}", warnings[0]);
}

// A cut without an answer is what tokio would do, and no warning; a cut at the end of a grace is one.
#[tokio::test(start_paused = true)]
async fn a_plain_cut_is_quiet_and_the_end_of_a_grace_is_not() {
    for grace in [None, Some(secs(2))] {
        let (log, _guard) = events();
        TaskGroup::run(|group| async move {
            let task = group.task("stubborn");
            let task = if let Some(grace) = grace { task.grace(grace) } else { task };
            task.spawn(pending::<()>());
            sleep(ms(1)).await;
            group.cancel(());
            ok(())
        })
        .await
        .unwrap();
        let warned = log.lines().iter().any(|l| l.starts_with("WARN") && l.contains("end of its grace"));
        assert_eq!(warned, grace.is_some(), "{:?}", log.lines());
    }
}

// "in each task below by the task's root": tasks of nested groups too. B-11, G-66.
#[tokio::test(start_paused = true)]
async fn a_cancel_reaches_every_leaf() {
    let (alive, started) = (Alive::default(), Instant::now());
    let permits = Arc::new(tokio::sync::Semaphore::new(4));
    let (seen, pool) = (alive.clone(), permits.clone());
    TaskGroup::run(|group| async move {
        group.task("supervisor").spawn(TaskGroup::run(move |inner| async move {
            for _ in 0..4 {
                let (guard, pool) = (seen.guard(), pool.clone());
                inner.spawn(async move {
                    let _guard = guard;
                    let _permit = pool.acquire_owned().await;
                    sleep(secs(60)).await;
                });
            }
            ok(())
        }));
        sleep(ms(100)).await;
        group.cancel(());
        ok(())
    })
    .await
    .unwrap();
    assert_eq!((alive.now(), started.elapsed()), (0, ms(100)));
    assert_eq!(permits.available_permits(), 4);
}

// "tasks are cut before whoever waits for the group": nobody around sees the group end while a task lives.
#[tokio::test(start_paused = true)]
async fn tasks_are_cut_before_whoever_waits_for_them() {
    let log = Log::default();
    struct Note(Log, &'static str);
    impl Drop for Note {
        fn drop(&mut self) {
            self.0.add(self.1);
        }
    }
    let seen = log.clone();
    let run = with_timeout(secs(1), async move {
        let _outer = Note(seen.clone(), "around");
        TaskGroup::run(|group| async move {
            let _body = Note(seen.clone(), "body");
            for _ in 0..2 {
                let note = Note(seen.clone(), "task");
                group.spawn(async move {
                    let _note = note;
                    let _ = pending::<()>().or_cancelled().await;
                    let _ = cleanup(secs(1), sleep(ms(5))).await;
                });
            }
            ok(())
        })
        .await?;
        ok(())
    });
    assert!(ends(run).await.unwrap_err().is_elapsed());
    assert_eq!(log.lines(), ["body", "task", "task", "around"]);
}

// R3: "a loop which swallows it comes to rest and is cut", on a current_thread runtime.
#[tokio::test(start_paused = true)]
async fn a_loop_that_swallows_the_cancel_is_cut() {
    let rounds = Arc::new(AtomicUsize::new(0));
    let seen = rounds.clone();
    let run = with_timeout(
        secs(1),
        TaskGroup::run(|group| async move {
            group.spawn(async move {
                loop {
                    let _ = sleep(secs(9)).or_cancelled().await;
                    seen.fetch_add(1, Ordering::Relaxed);
                }
                #[allow(unreachable_code)]
                ok(())
            });
            loop {
                let _ = sleep(secs(9)).or_cancelled().await;
            }
            #[allow(unreachable_code)]
            ok(())
        }),
    );
    assert!(ends(run).await.unwrap_err().is_elapsed());
    assert!(rounds.load(Ordering::Relaxed) <= 128, "{rounds:?}");
}

// The same while waiting for a handle, which is a stoppable wait.
#[tokio::test(start_paused = true)]
async fn a_loop_that_swallows_it_on_a_handle_is_cut() {
    let run = with_timeout(
        secs(1),
        TaskGroup::run(|group| async move {
            let mut other = group.task("other").grace(secs(1)).spawn(pending::<()>());
            loop {
                let _ = (&mut other).await;
            }
            #[allow(unreachable_code)]
            ok(())
        }),
    );
    let started = Instant::now();
    assert!(ends(run).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(2));
}

// "One that refuses costs no wake-ups while it refuses": polls are counted during the grace.
#[tokio::test(start_paused = true)]
async fn a_stubborn_task_costs_no_polls_during_its_grace() {
    let polls = Arc::new(AtomicUsize::new(0));
    let (seen, after) = (polls.clone(), polls.clone());
    TaskGroup::run(|group| async move {
        group.task("stubborn").grace(secs(100)).spawn(poll_fn::<(), _>(move |_| {
            seen.fetch_add(1, Ordering::Relaxed);
            Poll::Pending
        }));
        sleep(ms(1)).await;
        group.cancel(());
        cleanup(secs(1000), sleep(secs(1))).await?;
        let asked = after.load(Ordering::Relaxed);
        for _ in 0..50 {
            cleanup(secs(1000), sleep(ms(900))).await?;
        }
        assert_eq!(after.load(Ordering::Relaxed), asked);
        ok(())
    })
    .await
    .unwrap();
    // The last one may come with the end of the grace.
    assert!(polls.load(Ordering::Relaxed) <= 4, "{polls:?}");
}

// A result that is there when the task is asked is kept: polled first, then cut. G-52, our choice.
#[tokio::test(start_paused = true)]
async fn a_result_that_is_there_is_kept() {
    let value = TaskGroup::run(|group| async move {
        let (send, recv) = tokio::sync::oneshot::channel();
        let task = group.spawn(async move { ok(recv.await?) });
        let answering = group.task("waiter").spawn(async move {
            // In a cleanup section, for the group is cancelled.
            ok(cleanup(secs(1), task).await??)
        });
        sleep(ms(1)).await;
        group.cancel(());
        send.send(8).unwrap();
        ok(cleanup(secs(1), answering).await??)
    });
    assert_eq!(ends(value).await.unwrap(), 8);
}

// R3: "until `uncancel` takes the request back": tasks that are in a grace go on, new ones are taken again.
#[tokio::test(start_paused = true)]
async fn a_group_works_again_after_an_uncancel() {
    let value = TaskGroup::builder().grace(secs(5)).run(|group| async move {
        let task = group.spawn(async {
            sleep(secs(10)).await;
            ok(1)
        });
        sleep(secs(1)).await;
        group.cancel("too early");
        let refused = group.spawn(async { ok(9) });
        cleanup(secs(9), sleep(secs(1))).await?;
        assert_eq!(group.scope().uncancel(), 0);
        assert!(matches!(refused.await, Err(HandleError::Refused { cancelled: Some(_), .. })));
        let again = group.spawn(async { ok(2) });
        ok(task.await? + again.await?)
    });
    assert_eq!(ends(value).await.unwrap(), 3);
}

// G-86: "child tokens hang off the group's scope": tasks are cancelled although the host is in a section.
#[tokio::test(start_paused = true)]
async fn tasks_are_cancelled_although_their_spawner_is_in_a_section() {
    let started = Instant::now();
    let run = with_timeout(
        secs(1),
        TaskGroup::run(|group| async move {
            let cut_at = Arc::new(parking_lot::Mutex::new(None));
            struct At(Arc<parking_lot::Mutex<Option<Instant>>>);
            impl Drop for At {
                fn drop(&mut self) {
                    *self.0.lock() = Some(Instant::now());
                }
            }
            let at = At(cut_at.clone());
            cleanup(secs(9), async {
                group.spawn(async move {
                    let _at = at;
                    pending::<()>().await;
                });
                sleep(secs(3)).await;
            })
            .await?;
            assert_eq!(cut_at.lock().unwrap() - started, secs(1));
            ok(())
        }),
    );
    // The body went on to its end: its value does not count, for a task was cut.
    assert!(ends(run).await.unwrap_err().is_elapsed());
    assert_eq!(started.elapsed(), secs(3));
}

// B-61: a group inside a cleanup section is not reached at all.
#[tokio::test(start_paused = true)]
async fn a_group_inside_a_section_is_not_reached() {
    let started = Instant::now();
    let run = with_timeout(
        ms(10),
        TaskGroup::run(|group| async move {
            group.spawn(async {
                cleanup(
                    secs(1),
                    TaskGroup::run(|inner| async move {
                        inner.task("K").spawn(async {
                            sleep(ms(200)).or_cancelled().await?;
                            Err::<(), stoppable_group::TaskError>("E".into())
                        });
                        ok(())
                    }),
                )
                .await??;
                ok(())
            });
            ok(())
        }),
    );
    let error = ends(run).await.unwrap_err().into_failed().unwrap();
    assert!(error.to_string().contains("task `K` failed: E"), "{error}");
    assert_eq!(started.elapsed(), ms(200));
}

// G-80: a cancel while the group waits for its tasks: they are cut and the waiting goes on until they end.
#[tokio::test(start_paused = true)]
async fn a_scope_around_hears_while_the_group_joins() {
    let scope = Scope::new();
    let remote = scope.clone();
    let started = Instant::now();
    let run = scope.run(TaskGroup::run(|group| async move {
        group.spawn(async {
            let answer = pending::<()>().or_cancelled().await;
            cleanup(secs(9), sleep(secs(2))).await?;
            answer?;
            ok(())
        });
        drop(tokio::spawn(async move {
            sleep(secs(1)).await;
            remote.cancel("now");
        }));
        ok(())
    }));
    assert!(ends(run).await.unwrap().unwrap_err().is_cancelled());
    assert_eq!(started.elapsed(), secs(3));
}
