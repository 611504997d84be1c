//! R10: "Tests assert zero registrations for waits and one for the root."

mod support;

use std::future::pending;

use stoppable_group::{TaskGroup, defer, ok, with_timeout};
use stoppable_scope::{OrCancelledExt, Scope, Tree, checkpoint, cleanup};
use support::{ends, ms, registrations, secs};
use tokio::time::sleep;

fn each_task(tree: &Tree, check: &mut impl FnMut(&Tree)) {
    if matches!(tree.kind, stoppable_scope::ScopeKind::Task | stoppable_scope::ScopeKind::Blocking) {
        check(tree);
    }
    tree.children.iter().for_each(|child| each_task(child, check));
}

// One for the root of each task, whatever it waits for; none for its waits.
#[tokio::test(start_paused = true)]
async fn each_task_has_one_registration_and_its_waits_none() {
    let run = TaskGroup::run(|group| async move {
        let mut first = group.spawn(pending::<()>());
        let other = group.spawn(async {
            sleep(secs(50)).or_cancelled().await?;
            ok(())
        });
        group.spawn(other);
        group.spawn(with_timeout(secs(60), async {
            with_timeout(secs(50), async {
                Scope::new().run(pending::<()>()).await?;
                ok(())
            })
            .await?;
            ok(())
        }));
        group.spawn(async { cleanup(secs(9), pending::<()>().or_cancelled()).await.map(drop) });
        let inner = group.clone();
        group.spawn(async move {
            inner.shield(pending::<()>()).await?;
            ok(())
        });
        group.spawn(TaskGroup::run(|nested| async move {
            let task = nested.spawn(pending::<()>().or_cancelled());
            task.await?;
            ok(())
        }));
        group.spawn(async {
            loop {
                sleep(ms(1)).await;
                checkpoint().await?;
            }
            #[allow(unreachable_code)]
            ok(())
        });
        for _ in 0..20 {
            sleep(ms(10)).await;
            let _ = futures::poll!(&mut first);
            let tree = group.scope().tree();
            let mut tasks = 0;
            each_task(&tree, &mut |task| {
                tasks += 1;
                let nested: usize = task.children.iter().map(own_registrations).sum();
                assert_eq!((task.registrations, nested), (1, 0), "{tree}");
            });
            assert_eq!(tasks, 10, "{tree}");
            // The body's frame, for no task is around it.
            assert_eq!(registrations(&tree), tasks + 1, "{tree}");
        }
        group.cancel(());
        ok(())
    });
    ends(run).await.unwrap();
}

/// Without those of other tasks.
fn own_registrations(tree: &Tree) -> usize {
    if tree.kind == stoppable_scope::ScopeKind::Task {
        return 0;
    }
    tree.registrations + tree.children.iter().map(own_registrations).sum::<usize>()
}

// A group in a task adds nothing to its registration, also while it joins.
#[tokio::test(start_paused = true)]
async fn a_group_in_a_task_registers_nothing() {
    let run = TaskGroup::run(|group| async move {
        for body_waits in [true, false] {
            group.spawn(TaskGroup::run(move |nested| async move {
                nested.spawn(sleep(secs(5)));
                if body_waits {
                    sleep(secs(5)).or_cancelled().await?;
                }
                ok(())
            }));
        }
        for _ in 0..3 {
            sleep(secs(1)).await;
            let tree = group.scope().tree();
            let groups: Vec<_> = tree.children.iter().flat_map(|task| &task.children).collect();
            assert_eq!(groups.len(), 2);
            assert!(groups.iter().all(|nested| nested.registrations == 0), "{tree}");
        }
        ok(())
    });
    ends(run).await.unwrap();
}

// A queued task is registered once as well; all is given back.
#[tokio::test(start_paused = true)]
async fn all_registrations_are_given_back() {
    let scope = Scope::new();
    scope
        .run(TaskGroup::builder().limit(1).run(|group| async move {
            group.spawn(sleep(secs(1)));
            let _queued = group.spawn(sleep(secs(1)));
            let _guard = defer((), secs(1), |()| sleep(ms(1)));
            sleep(ms(1)).await;
            assert!(registrations(&group.scope().tree()) <= 2);
            ok(())
        }))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(registrations(&scope.tree()), 0, "{}", scope.tree());
    assert!(scope.tree().children.is_empty());
}
