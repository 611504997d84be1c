//! stoppable
