//! How items end, in the queue and in the specification.

use super::op::Op;
use super::run::{Run, take_at};
use super::spec::{Entry, Phase};

impl Run<'_> {
    fn abandon(&mut self, mut entry: Entry) {
        if self.spec.is_open() && self.spec.requeues && entry.abandons < 3 {
            entry.abandons += 1;
            self.spec.put_back(entry);
        } else {
            self.spec.in_flight -= 1;
            self.spec.abandoned += 1;
        }
    }

    pub(super) fn settle(&mut self, op: Op) {
        match op {
            Op::Done(at) => {
                if let Some((item, _)) = take_at(&mut self.items, at) {
                    item.done();
                    self.spec.in_flight -= 1;
                    self.spec.done += 1;
                }
            }
            Op::Reject(at) => {
                if let Some((item, _)) = take_at(&mut self.items, at) {
                    item.reject();
                    self.spec.in_flight -= 1;
                    self.spec.rejected += 1;
                }
            }
            Op::DropItem(at) => {
                if let Some((item, entry)) = take_at(&mut self.items, at) {
                    drop(item);
                    self.abandon(entry);
                }
            }
            Op::Requeue(at) => {
                if let Some((item, entry)) = take_at(&mut self.items, at) {
                    match item.requeue() {
                        Ok(()) => {
                            assert_ne!(self.spec.phase, Phase::Stopped);
                            self.spec.put_back(entry);
                        }
                        Err(error) => {
                            assert_eq!(self.spec.phase, Phase::Stopped);
                            self.items.push((error.into_item(), entry));
                        }
                    }
                }
            }
            Op::Detach(at) => {
                if let Some((item, entry)) = take_at(&mut self.items, at) {
                    assert_eq!(item.detach(), entry.value);
                    self.detached += 1;
                }
            }
            Op::TaskDone => {
                assert_eq!(self.queue.task_done().is_ok(), self.detached > 0);
                if self.detached > 0 {
                    self.detached -= 1;
                    self.spec.in_flight -= 1;
                    self.spec.done += 1;
                }
            }
            Op::BatchDone(at) => {
                if let Some((batch, entries)) = take_at(&mut self.batches, at) {
                    batch.done();
                    self.spec.in_flight -= entries.len() as u64;
                    self.spec.done += entries.len() as u64;
                }
            }
            Op::DropBatch(at) => {
                if let Some((batch, entries)) = take_at(&mut self.batches, at) {
                    drop(batch);
                    for entry in entries {
                        self.abandon(entry);
                        self.spec.settle();
                    }
                }
            }
            Op::SplitBatch(at) => {
                if let Some((batch, entries)) = take_at(&mut self.batches, at) {
                    for (item, entry) in batch.into_iter().zip(entries) {
                        self.got(item, entry);
                    }
                }
            }
            other => panic!("{other:?} settles nothing"),
        }
    }
}
