//! Which types are `Send`, `Sync`, `Unpin` and `Clone`: a table, checked by the compiler.

use std::cell::Cell;
use std::rc::Rc;

use stoppable_group::{
    Close, Deferred, GroupBuilder, GroupError, GroupReport, GroupRun, HandleError, Outcome, Policy, Root,
    Shield, SpawnWhenFree, StopFlag, TaskBuilder, TaskError, TaskFailure, TaskGroup, TaskHandle, TaskReport,
    ok,
};

fn send<T: Send>() {}
fn sync<T: Sync>() {}
fn unpin<T: Unpin>() {}
fn clone<T: Clone>() {}
fn send_value<T: Send>(value: T) -> T {
    value
}

/// `Send` and not `Sync`.
type OnlySend = Cell<u8>;

#[test]
fn handles_are_send_and_sync_and_all_but_the_task_handle_clone() {
    macro_rules! table {
        ($($check:ident: $($kind:ty),*;)*) => { $($($check::<$kind>();)*)* };
    }
    table! {
        send: TaskGroup, TaskHandle<OnlySend>, Root, StopFlag, TaskBuilder<'static>, GroupBuilder, Shield<OnlySend>,
            Deferred<OnlySend>, Close, GroupError, HandleError, TaskFailure, GroupReport, TaskReport, Outcome, Policy,
            SpawnWhenFree<std::future::Ready<()>, ()>;
        sync: TaskGroup, TaskHandle<OnlySend>, Root, StopFlag, TaskBuilder<'static>, GroupBuilder, Shield<OnlySend>,
            GroupError, HandleError, TaskFailure, GroupReport, TaskReport, Outcome, Policy;
        unpin: TaskGroup, TaskHandle<OnlySend>, Root, Shield<OnlySend>, Deferred<OnlySend>, Close, GroupError,
            SpawnWhenFree<std::future::Ready<()>, ()>;
        clone: TaskGroup, Root, StopFlag, TaskBuilder<'static>, GroupError, HandleError, TaskFailure, GroupReport,
            TaskReport, Outcome, Policy;
    }
}

// `GroupRun` is `Send` when the body is, although tasks and their values need not be `Sync`.
#[tokio::test]
async fn the_future_of_a_group_is_send_when_its_body_is() {
    let run = send_value(TaskGroup::run(|group| async move {
        let only_send = group.spawn(async { ok(Cell::new(1)) });
        ok(only_send.await?.get())
    }));
    assert_eq!(tokio::spawn(run).await.unwrap().unwrap(), 1);
    let reported = send_value(TaskGroup::builder().run_reported(|_| async { ok(Cell::new(2)) }));
    assert_eq!(tokio::spawn(reported).await.unwrap().0.unwrap().get(), 2);
}

// A body that is not `Send` may borrow, and give what is not `Send`.
#[tokio::test]
async fn a_body_need_not_be_send_nor_static() {
    let shared = Rc::new(3);
    let borrowed = &shared;
    let run: GroupRun<_, _, Rc<i32>> = TaskGroup::run(|group| async move {
        let sum = group.spawn(async { ok(1) }).await?;
        Ok::<_, TaskError>(Rc::new(sum + **borrowed))
    });
    assert_eq!(*run.await.unwrap(), 4);
}
