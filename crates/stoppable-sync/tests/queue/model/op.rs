use proptest::prelude::*;

/// `usize` at the end: which of those that are there, or how many.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    TrySend,
    StartSend,
    StartSendMany(usize),
    PollSend(usize),
    DropSend(usize),
    TryReserve,
    StartReserve,
    StartReserveMany(usize),
    PollReserve(usize),
    DropReserve(usize),
    UsePermit(usize),
    DropPermit(usize),
    TryRecv,
    StartRecv,
    StartRecvMany(usize),
    /// With an age that never comes, or has come.
    StartRecvBatch(usize, bool),
    PollRecv(usize),
    DropRecv(usize),
    Done(usize),
    Reject(usize),
    DropItem(usize),
    Requeue(usize),
    Detach(usize),
    TaskDone,
    BatchDone(usize),
    DropBatch(usize),
    SplitBatch(usize),
    Cancel(usize),
    Resize(usize),
    StartJoin,
    PollJoin(usize),
    DropJoin(usize),
    AddProducer,
    DropProducer,
    Shutdown,
    ShutdownImmediate,
}

pub(super) fn op() -> impl Strategy<Value = Op> {
    let at = || 0..8_usize;
    let few = || 0..5_usize;
    let some = || 1..5_usize;
    let sending = prop_oneof![
        6 => Just(Op::TrySend),
        8 => Just(Op::StartSend),
        4 => few().prop_map(Op::StartSendMany),
        8 => at().prop_map(Op::PollSend),
        3 => at().prop_map(Op::DropSend),
        2 => Just(Op::TryReserve),
        3 => Just(Op::StartReserve),
        3 => few().prop_map(Op::StartReserveMany),
        4 => at().prop_map(Op::PollReserve),
        2 => at().prop_map(Op::DropReserve),
        3 => at().prop_map(Op::UsePermit),
        2 => at().prop_map(Op::DropPermit),
    ];
    let receiving = prop_oneof![
        5 => Just(Op::TryRecv),
        8 => Just(Op::StartRecv),
        3 => some().prop_map(Op::StartRecvMany),
        4 => (some(), any::<bool>()).prop_map(|(max, due)| Op::StartRecvBatch(max, due)),
        9 => at().prop_map(Op::PollRecv),
        4 => at().prop_map(Op::DropRecv),
    ];
    let settling = prop_oneof![
        5 => at().prop_map(Op::Done),
        1 => at().prop_map(Op::Reject),
        2 => at().prop_map(Op::DropItem),
        3 => at().prop_map(Op::Requeue),
        1 => at().prop_map(Op::Detach),
        1 => Just(Op::TaskDone),
        3 => at().prop_map(Op::BatchDone),
        1 => at().prop_map(Op::DropBatch),
        2 => at().prop_map(Op::SplitBatch),
        2 => Just(Op::StartJoin),
        2 => at().prop_map(Op::PollJoin),
        1 => at().prop_map(Op::DropJoin),
    ];
    let rest = prop_oneof![
        12 => at().prop_map(Op::Cancel),
        8 => some().prop_map(Op::Resize),
        4 => Just(Op::AddProducer),
        3 => Just(Op::DropProducer),
        2 => Just(Op::Shutdown),
        2 => Just(Op::ShutdownImmediate),
    ];
    prop_oneof![46 => sending, 33 => receiving, 24 => settling, 6 => rest]
}
