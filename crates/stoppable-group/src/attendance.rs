//! Who is here, as a count: in one word, so that a task which ends well takes no lock.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Those who live are counted in the low bits, those who have ended well in the upper half.
const LIVE: u64 = CLOSED - 1;
/// Nobody comes any more.
const CLOSED: u64 = 1 << 30;
/// No task is taken any more; what ends the others still is.
const REFUSING: u64 = 1 << 31;
const ONE_OK: u64 = 1 << 32;
/// So many who ended well are moved out at a time, long before the upper half is full.
const CARRY: u64 = if cfg!(test) { 4 } else { 1 << 31 };

#[derive(Debug, Default)]
pub(crate) struct Attendance {
    word: AtomicU64,
    /// How many of those who live do not hold the group open.
    services: AtomicUsize,
}

/// The group takes no more tasks.
#[derive(Debug)]
pub(crate) struct Closed;

/// What is left after somebody has gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    /// Nobody, or only services.
    pub(crate) idle: bool,
    /// Some of those who ended well have to be counted elsewhere.
    pub(crate) full: bool,
}

impl Attendance {
    /// Counts a task in.
    pub(crate) fn enter(&self) -> Result<(), Closed> {
        self.enter_unless(CLOSED | REFUSING)
    }

    /// Counts in who ends what others have left.
    pub(crate) fn enter_last(&self) -> Result<(), Closed> {
        self.enter_unless(CLOSED)
    }

    fn enter_unless(&self, bits: u64) -> Result<(), Closed> {
        let enter = |word| (word & bits == 0).then_some(word + 1);
        match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, enter) {
            Ok(_) => Ok(()),
            Err(_) => Err(Closed),
        }
    }

    /// Counts somebody out.
    pub(crate) fn leave(&self) -> Left {
        let before = self.word.fetch_sub(1, Ordering::AcqRel);
        self.left(before)
    }

    /// Counts somebody out who has ended well.
    pub(crate) fn leave_well(&self) -> Left {
        let before = self.word.fetch_add(ONE_OK - 1, Ordering::AcqRel);
        self.left(before)
    }

    fn left(&self, before: u64) -> Left {
        let idle = (before & LIVE) as usize <= 1 + self.services.load(Ordering::Acquire);
        Left { idle, full: before >> 32 >= CARRY }
    }

    /// Moves some of those who ended well out, to be counted elsewhere. Tells how many.
    #[cold]
    pub(crate) fn carry(&self) -> u64 {
        let carry = |word: u64| (word >> 32 >= CARRY).then(|| word - CARRY * ONE_OK);
        match self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, carry) {
            Ok(_) => CARRY,
            Err(_) => 0,
        }
    }

    pub(crate) fn live(&self) -> usize {
        (self.word.load(Ordering::Acquire) & LIVE) as usize
    }

    /// Those who ended well and were not carried.
    pub(crate) fn ended_well(&self) -> u64 {
        self.word.load(Ordering::Acquire) >> 32
    }

    /// Whether nobody is left, or only services.
    pub(crate) fn is_idle(&self) -> bool {
        self.live() <= self.services.load(Ordering::Acquire)
    }

    /// One of those who live does not hold the group open.
    pub(crate) fn add_service(&self) {
        self.services.fetch_add(1, Ordering::AcqRel);
    }

    pub(crate) fn remove_service(&self) {
        self.services.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn refuse(&self) {
        self.word.fetch_or(REFUSING, Ordering::AcqRel);
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.word.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Takes nobody any more, if nobody is left.
    pub(crate) fn close_if_empty(&self) -> bool {
        let close = |word| (word & LIVE == 0).then_some(word | CLOSED);
        self.word.fetch_update(Ordering::AcqRel, Ordering::Acquire, close).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_ended_well_is_counted_beyond_the_word() {
        let here = Attendance::default();
        let mut carried = 0;
        for _ in 0..11 {
            here.enter().unwrap();
            let left = here.leave_well();
            assert!(left.idle);
            carried += if left.full { here.carry() } else { 0 };
        }
        assert!(carried > 0, "nothing was carried");
        assert_eq!(carried + here.ended_well(), 11);
        assert_eq!(here.live(), 0);
    }

    #[test]
    fn services_do_not_hold_it_open() {
        let here = Attendance::default();
        here.enter().unwrap();
        here.enter().unwrap();
        here.add_service();
        assert!(!here.is_idle());
        assert!(here.leave().idle);
        assert!(here.is_idle() && here.live() == 1);
        here.remove_service();
        assert!(!here.is_idle());
    }

    #[test]
    fn a_refusing_one_takes_who_ends_the_others_and_a_closed_one_nobody() {
        let here = Attendance::default();
        here.enter().unwrap();
        assert!(!here.close_if_empty());
        here.refuse();
        assert!(here.enter().is_err());
        here.enter_last().unwrap();
        assert_eq!(here.live(), 2);
        assert_eq!(here.leave(), Left { idle: false, full: false });
        assert_eq!(here.leave(), Left { idle: true, full: false });
        assert!(here.close_if_empty() && here.is_closed());
        assert!(here.enter().is_err() && here.enter_last().is_err());
        assert_eq!(here.live(), 0);
    }
}
