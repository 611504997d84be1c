/// How the future of a [`Round`](crate::Round) ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum End<T> {
    /// It finished with this: its answer to the request, or what it had by then.
    Finished(T),
    /// It was asked, and went on waiting, so it was cut. Its cleanup sections have run.
    Cut,
    /// It was dropped where it was, without being asked.
    Dropped,
}

impl<T> End<T> {
    /// What it finished with, if it did.
    ///
    /// # Examples
    ///
    /// ```
    /// use stoppable_test::End;
    ///
    /// assert_eq!(End::Finished(3).finished(), Some(3));
    /// assert_eq!(End::<u32>::Cut.finished(), None);
    /// ```
    pub fn finished(self) -> Option<T> {
        match self {
            Self::Finished(output) => Some(output),
            Self::Cut | Self::Dropped => None,
        }
    }

    /// Whether the future was dropped before it finished.
    pub fn is_unfinished(&self) -> bool {
        !matches!(self, Self::Finished(_))
    }
}
