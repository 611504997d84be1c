//! What the tests share: short durations, a count of what is alive, and the events that were logged.
#![allow(dead_code)]

use std::cell::RefCell;
use std::fmt::Write as _;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use parking_lot::Mutex;
use stoppable_scope::Tree;
use tokio::runtime::{Builder, Runtime};

pub(crate) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// Fails a test that would hang. Under paused time it costs nothing.
pub(crate) async fn ends<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(secs(10_000_000), future).await.expect("the test hangs")
}

/// Both runtimes. Time is not paused.
pub(crate) fn runtimes() -> [Runtime; 2] {
    [
        Builder::new_current_thread().enable_all().build().unwrap(),
        Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap(),
    ]
}

/// Counts what is alive: each guard counts from when it is made until it is dropped.
#[derive(Debug, Clone, Default)]
pub(crate) struct Alive(Arc<AtomicUsize>);

#[derive(Debug)]
pub(crate) struct AliveGuard(Arc<AtomicUsize>);

impl Alive {
    pub(crate) fn guard(&self) -> AliveGuard {
        self.0.fetch_add(1, Ordering::SeqCst);
        AliveGuard(Arc::clone(&self.0))
    }

    pub(crate) fn now(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Drop for AliveGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A shared list of what has happened.
#[derive(Debug, Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn add(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// Panics when it is dropped, unless the thread is panicking.
#[derive(Debug)]
pub(crate) struct PanicOnDrop(pub(crate) &'static str);

impl Drop for PanicOnDrop {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            panic!("{}", self.0);
        }
    }
}

/// All wakers that are registered here and below.
pub(crate) fn registrations(tree: &Tree) -> usize {
    tree.registrations + tree.children.iter().map(registrations).sum::<usize>()
}

thread_local! {
    static EVENTS: RefCell<Option<Log>> = const { RefCell::new(None) };
}

/// Ends what [`events`] has begun.
pub(crate) struct Listening;

impl Drop for Listening {
    fn drop(&mut self) {
        EVENTS.take();
    }
}

/// The events of this thread, as `LEVEL field=value ..`, while the guard lives.
///
/// One subscriber serves the whole program: with one of a single thread, tracing asks whichever thread comes first
/// to a place in the code, and remembers for all that nobody is interested.
pub(crate) fn events() -> (Log, Listening) {
    static GLOBAL: Once = Once::new();
    GLOBAL.call_once(|| tracing::subscriber::set_global_default(Capture).unwrap());
    let log = Log::default();
    EVENTS.set(Some(log.clone()));
    (log, Listening)
}

struct Capture;

impl tracing::Subscriber for Capture {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}

    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        if !event.metadata().target().starts_with("stoppable") {
            return;
        }
        let mut line = event.metadata().level().to_string();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            let _ = write!(line, " {}={value:?}", field.name());
        });
        EVENTS.with_borrow(|log| log.iter().for_each(|log| log.add(line.as_str())));
    }

    fn enter(&self, _: &tracing::span::Id) {}

    fn exit(&self, _: &tracing::span::Id) {}
}
