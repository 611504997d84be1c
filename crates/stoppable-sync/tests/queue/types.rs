//! What can cross threads, and that errors are errors for every value.

use std::error::Error;

use stoppable_sync::queue::{Join, JoinBy, Recv, RecvBy, RecvRef, Reserve, Send as Sending, SendBy};
use stoppable_sync::{
    Item, ItemRef, JoinByError, Leftovers, Permit, PermitVoidError, QueueStats, RecvByError, RequeueError,
    ReserveError, SendByError, SendError, ShutdownQueue, TaskDoneError, TryRecvError, TryReserveError,
    TrySendError,
};

/// Sent, but not shared, between threads; without `Debug`.
struct Job(#[allow(dead_code)] std::cell::Cell<u32>);

fn send_sync<T: Send + Sync>() {}
fn send<T: Send>() {}
fn unpin<T: Unpin>() {}
fn is_static<T: 'static>() {}
fn error<E: Error>() {}

#[test]
fn handles_and_futures_cross_threads() {
    send_sync::<ShutdownQueue<Job>>();
    send_sync::<Permit<'_, Job>>();
    send_sync::<QueueStats>();
    send_sync::<Item<u32>>();
    send::<Item<Job>>();
    is_static::<Item<Job>>();
    send::<ItemRef<'_, Job>>();
    send::<Leftovers<Job>>();
    send::<Sending<'_, Job>>();
    send::<SendBy<'_, Job>>();
    send_sync::<Recv<'_, Job>>();
    send::<RecvBy<'_, Job>>();
    send_sync::<RecvRef<'_, Job>>();
    send_sync::<Reserve<'_, Job>>();
    send_sync::<Join<'_, Job>>();
    send::<JoinBy<'_, Job>>();
    unpin::<Sending<'_, std::marker::PhantomPinned>>();
    unpin::<Recv<'_, std::marker::PhantomPinned>>();
}

#[test]
fn errors_are_errors_for_every_value() {
    error::<SendError<Job>>();
    error::<SendByError<Job>>();
    error::<TrySendError<Job>>();
    error::<PermitVoidError<Job>>();
    error::<RequeueError<Item<Job>>>();
    error::<ReserveError>();
    error::<TryReserveError>();
    error::<TryRecvError>();
    error::<RecvByError>();
    error::<JoinByError>();
    error::<TaskDoneError>();
    assert_eq!(format!("{:?}", TrySendError::Full(Job(0.into()))), "Full(..)");
}
