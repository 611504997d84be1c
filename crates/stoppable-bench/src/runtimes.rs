//! Where the sides run.

use std::time::Duration;

use futures::FutureExt;
use tokio::runtime::{Builder, Runtime};

use crate::case::{Running, RuntimeKind, Sample};

/// A peer that hangs (one is known to, now and then) costs its sample and no more.
const PATIENCE: Duration = Duration::from_secs(120);

/// The two runtimes, made when they are first needed and then kept, so that nothing of their start counts.
#[derive(Debug, Default)]
pub(crate) struct Runtimes {
    ct: Option<Runtime>,
    mt2: Option<Runtime>,
}

impl Runtimes {
    /// Runs one side as a task. `None` if it did not come to an end.
    pub(crate) fn run(&mut self, kind: RuntimeKind, side: Running) -> Option<Sample> {
        let place = match kind {
            RuntimeKind::Ct => &mut self.ct,
            RuntimeKind::Mt2 => &mut self.mt2,
            RuntimeKind::None => {
                let sample = side.now_or_never();
                return Some(sample.expect("a side that polls by hand does not wait"));
            }
        };
        let runtime = place.get_or_insert_with(|| build(kind));
        let task = runtime.spawn(side);
        let ended = runtime.block_on(async { tokio::time::timeout(PATIENCE, task).await });
        match ended {
            Ok(sample) => Some(sample.expect("a side does not panic")),
            Err(_) => {
                // What hangs in it must not disturb the next.
                if let Some(stuck) = place.take() {
                    stuck.shutdown_background();
                }
                None
            }
        }
    }
}

fn build(kind: RuntimeKind) -> Runtime {
    let mut builder = match kind {
        RuntimeKind::Mt2 => Builder::new_multi_thread(),
        RuntimeKind::Ct | RuntimeKind::None => Builder::new_current_thread(),
    };
    builder.worker_threads(2).enable_time().build().expect("a runtime starts")
}
