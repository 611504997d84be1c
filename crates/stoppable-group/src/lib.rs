//! stoppable-group
