//! The work: one file, on a blocking thread.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::Path;

use sha2::{Digest as _, Sha256};
use stoppable::{StopFlag, TaskError};

use crate::output::Output;

pub(crate) type Digest = [u8; 32];

/// Large enough to be quick, small enough that a stop is noticed within milliseconds.
const CHUNK: usize = 64 * 1024;

pub(crate) fn hash(path: &Path, output: &Output, stop: &StopFlag) -> Result<Digest, TaskError> {
    let mut file = File::open(path)?;
    let mut chunk = vec![0; CHUNK];
    let mut hasher = Sha256::new();
    loop {
        // A thread cannot be cancelled from outside. It has to look; this also meets the file's deadline.
        stop.check()?;
        match file.read(&mut chunk) {
            Ok(0) => return Ok(hasher.finalize().into()),
            Ok(n) => {
                hasher.update(&chunk[..n]);
                output.read(n);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
}
