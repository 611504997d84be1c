//! What can cross threads, and that errors are errors for every value.

use std::error::Error;

use stoppable_sync::queue::{
    BatchItems, Items, Join, JoinBy, ProducerSink, Recv, RecvBatch, RecvBy, RecvMany, RecvRef, Reserve,
    ReserveMany, Send as Sending, SendBy, SendMany,
};
use stoppable_sync::{
    Batch, Item, ItemRef, JoinByError, Leftovers, Permit, PermitVoidError, Producer, QueueStats, RecvByError,
    RequeueError, ReserveError, ReserveManyError, SendByError, SendError, SendManyError, ShutdownQueue,
    SinkError, TaskDoneError, TryRecvError, TryReserveError, TrySendError, WeakQueue,
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
    send_sync::<Producer<Job>>();
    send_sync::<WeakQueue<Job>>();
    send_sync::<ProducerSink<Job>>();
    is_static::<ProducerSink<Job>>();
    send_sync::<Items<Job>>();
    is_static::<Items<Job>>();
    send_sync::<Batch<u32>>();
    send::<Batch<Job>>();
    is_static::<Batch<Job>>();
    send::<BatchItems<Job>>();
    send::<SendMany<'_, Job>>();
    send_sync::<ReserveMany<'_, Job>>();
    send_sync::<RecvMany<'_, Job>>();
    send_sync::<RecvBatch<'_, Job>>();
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
    unpin::<Items<std::marker::PhantomPinned>>();
    unpin::<ProducerSink<std::marker::PhantomPinned>>();
    unpin::<SendMany<'_, std::marker::PhantomPinned>>();
}

#[test]
fn errors_are_errors_for_every_value() {
    error::<SendError<Job>>();
    error::<SendByError<Job>>();
    error::<TrySendError<Job>>();
    error::<PermitVoidError<Job>>();
    error::<RequeueError<Item<Job>>>();
    error::<SinkError<Job>>();
    error::<SendManyError>();
    error::<ReserveManyError>();
    error::<ReserveError>();
    error::<TryReserveError>();
    error::<TryRecvError>();
    error::<RecvByError>();
    error::<JoinByError>();
    error::<TaskDoneError>();
    assert_eq!(format!("{:?}", TrySendError::Full(Job(0.into()))), "Full(..)");
}
