//! stoppable-test
