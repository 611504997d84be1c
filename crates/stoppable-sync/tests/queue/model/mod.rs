//! Random operations on hand-polled futures, against a specification that scans plain vectors.

mod op;
mod run;
mod settling;
mod spec;
mod waits;

use op::op;
use proptest::prelude::*;
use run::Run;
use spec::{Order, Spec, level};
use stoppable_sync::{AbandonPolicy, ShutdownQueue};

fn run(order: Order, capacity: Option<usize>, requeues: bool, ops: &[op::Op]) {
    let mut builder = ShutdownQueue::builder();
    if let Some(capacity) = capacity {
        builder = builder.capacity(capacity);
    }
    if requeues {
        builder = builder.abandon_policy(AbandonPolicy::Requeue);
    }
    let queue = match order {
        Order::Fifo => builder.build(),
        Order::Lifo => builder.lifo().build(),
        Order::Priority => builder.priority(|value: &u32| level(*value)).build(),
    };
    let mut run = Run::new(&queue, Spec::new(order, capacity, requeues));
    for (id, op) in ops.iter().enumerate() {
        run.apply(id, *op);
        run.compare();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..Default::default() })]

    #[test]
    fn the_queue_does_what_the_model_does(
        order in prop_oneof![2 => Just(Order::Fifo), 1 => Just(Order::Lifo), 1 => Just(Order::Priority)],
        capacity in prop_oneof![Just(Some(1)), Just(Some(2)), Just(Some(3)), Just(None)],
        requeues in any::<bool>(),
        ops in prop::collection::vec(op(), 1..120),
    ) {
        run(order, capacity, requeues, &ops);
    }
}
