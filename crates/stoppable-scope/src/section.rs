use std::marker::PhantomData;

use crate::ambient;

/// While it lives the code around it is in a cleanup section: no frame drops it.
///
/// Begin and end it while being polled. The frames around notice by comparing a count of the thread
/// before and after they poll, so nothing is shared, and what belongs to another task does not count.
#[derive(Debug)]
#[doc(hidden)]
pub struct Section(PhantomData<()>);

impl Section {
    /// Begins a section.
    #[must_use]
    pub fn begin() -> Self {
        ambient::count_section(1);
        Self(PhantomData)
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        ambient::count_section(-1);
    }
}
