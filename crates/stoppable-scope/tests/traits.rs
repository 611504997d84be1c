//! Which types are `Send`, `Sync` and `Unpin`: part of the interface, so a test at compile time.

use std::future::Ready;
use std::marker::PhantomPinned;
use std::rc::Rc;

use stoppable_scope::{
    Cancelled, Checkpoint, Cleanup, Deadline, Elapsed, InScope, IsError, Limit, Name, OrCancelled, Reason,
    Request, RescheduleError, Scope, ScopeCancelled, ScopeId, ScopeKind, ScopeRun, Stopping, TaskError,
    Timeout, TimeoutError, TimeoutHandle, Tree, WaitPoint, WithoutDeadline,
};

/// "yes": the bound holds. "no": two impls would fit if it did, so this compiles only if it does not.
macro_rules! has {
    ($($ty:ty => $send:ident $sync:ident $unpin:ident;)*) => {$(
        has!(@ $send Send $ty);
        has!(@ $sync Sync $ty);
        has!(@ $unpin Unpin $ty);
    )*};
    (@ yes $bound:ident $ty:ty) => {
        const _: fn() = || {
            fn is<T: ?Sized + $bound>() {}
            is::<$ty>();
        };
    };
    (@ no $bound:ident $ty:ty) => {
        const _: fn() = || {
            trait Ambiguous<A> {
                fn some() {}
            }
            impl<T: ?Sized> Ambiguous<()> for T {}
            struct Is;
            impl<T: ?Sized + $bound> Ambiguous<Is> for T {}
            let _ = <$ty as Ambiguous<_>>::some;
        };
    };
}

type Plain = Ready<()>;
type Pinned = PhantomPinned;
type NotSend = Ready<Rc<()>>;

// type => Send Sync Unpin
has! {
    Scope => yes yes yes;
    Deadline => yes yes yes;
    Limit => yes yes yes;
    Cancelled => yes yes yes;
    Request => yes yes yes;
    Reason => yes yes yes;
    ScopeId => yes yes yes;
    ScopeKind => yes yes yes;
    Name => yes yes yes;
    Elapsed => yes yes yes;
    RescheduleError => yes yes yes;
    TaskError => yes yes yes;
    TimeoutError<std::io::Error> => yes yes yes;
    TimeoutError<TaskError> => yes yes yes;
    TimeoutError<Rc<()>> => no no yes;
    TimeoutHandle => yes yes yes;
    Tree => yes yes yes;
    WaitPoint => yes yes yes;
    Stopping => yes yes yes;
    ScopeCancelled => yes yes yes;
    Checkpoint => yes yes yes;
    OrCancelled<Plain> => yes yes yes;
    ScopeRun<Plain> => yes yes yes;
    InScope<Plain> => yes yes yes;
    Cleanup<Plain> => yes yes yes;
    WithoutDeadline<Plain> => yes yes yes;
    Timeout<Plain, IsError> => yes yes yes;
    OrCancelled<NotSend> => no no yes;
    ScopeRun<NotSend> => no no yes;
    InScope<NotSend> => no no yes;
    Cleanup<NotSend> => no no yes;
    WithoutDeadline<NotSend> => no no yes;
    Timeout<NotSend, IsError> => no no yes;
    OrCancelled<Pinned> => yes yes no;
    ScopeRun<Pinned> => yes yes no;
    InScope<Pinned> => yes yes no;
    Cleanup<Pinned> => yes yes no;
    WithoutDeadline<Pinned> => yes yes no;
    Timeout<Pinned, IsError> => yes yes no;
}

#[test]
fn futures_stay_small() {
    // What a wait adds to the future it wraps: it is held by every async fn around.
    let added = |size: usize| size - std::mem::size_of::<Plain>();
    assert!(added(std::mem::size_of::<OrCancelled<Plain>>()) <= 40);
    assert!(std::mem::size_of::<Cancelled>() == std::mem::size_of::<usize>());
    assert!(std::mem::size_of::<Scope>() == std::mem::size_of::<usize>());
}

#[test]
fn stopping_is_static() {
    fn needs_static<T: 'static + Send + Future<Output = ()>>(_: T) {}
    needs_static(Scope::new().stopping());
}
