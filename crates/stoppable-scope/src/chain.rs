//! The sources of an error of which only the type is known.
//!
//! `TimeoutError<E>` has to be an error for all that a body may fail with, also for boxed errors, which
//! are none themselves; so its `source` cannot ask for `E: Error`. Whoever makes a `Failed(E)` knows how
//! `E` shows its sources, and leaves that here.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::error::Error;

use parking_lot::RwLock;

use crate::task_error::TaskFailureError;

type SourceOf = for<'a> fn(&'a dyn Any) -> Option<&'a (dyn Error + 'static)>;

static KNOWN: RwLock<Option<HashMap<TypeId, SourceOf>>> = RwLock::new(None);

/// Remembers how errors of type `E` show their sources.
pub(crate) fn learn<E: TaskFailureError<M>, M>() {
    let id = TypeId::of::<E>();
    if KNOWN.read().as_ref().is_some_and(|known| known.contains_key(&id)) {
        return;
    }
    let source_of: SourceOf = |error| error.downcast_ref::<E>()?.as_error().source();
    KNOWN.write().get_or_insert_default().insert(id, source_of);
}

/// The source of `error`, where its type is known.
pub(crate) fn source<E: 'static>(error: &E) -> Option<&(dyn Error + 'static)> {
    let source_of = *KNOWN.read().as_ref()?.get(&TypeId::of::<E>())?;
    source_of(error)
}
