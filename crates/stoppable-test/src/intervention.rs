use std::fmt;

/// What happens to the future at the point that is swept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Intervention {
    /// It is dropped, as by a `select!`, an abort or a foreign timeout. Nothing is asked or honoured.
    Drop,
    /// Its scope is cancelled: it is asked, and cut if it goes on waiting.
    Cancel,
    /// The deadline around it is reached: it is asked, and cut if it goes on waiting.
    Expire,
}

impl Intervention {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Drop, Self::Cancel, Self::Expire];
}

impl fmt::Display for Intervention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Drop => "drop",
            Self::Cancel => "cancel",
            Self::Expire => "expire",
        })
    }
}
