//! Counts instead of times: what callgrind says one side executes. It does not jump, so it can be guarded.

use std::ffi::{OsStr, OsString};
use std::process::Command;

use serde_json::{Value, json};

use crate::case::{Case, RuntimeKind};
use crate::child::{self, COUNTED};
use crate::figures::ratio;
use crate::row::round;

/// Instructions a unit; of the first variant of a case, on one thread.
#[derive(Debug, Clone)]
pub(crate) struct Counts {
    pub(crate) key: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) runtime: RuntimeKind,
    pub(crate) ours: f64,
    pub(crate) peer: &'static str,
    pub(crate) peer_counts: f64,
    pub(crate) ratio: f64,
}

impl Counts {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "key": self.key,
            "runtime": self.runtime.to_string(),
            "ours_instructions": round(self.ours),
            "peer": self.peer,
            "peer_instructions": round(self.peer_counts),
            "ratio": round(self.ratio),
            "unit": format!("instructions a {}", self.unit),
        })
    }
}

pub(crate) fn has_valgrind() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

/// Counts all sides of the cases that are to be counted.
pub(crate) fn count(cases: &[Case]) -> Vec<Counts> {
    cases.iter().filter_map(count_case).collect()
}

fn count_case(case: &Case) -> Option<Counts> {
    let units = case.counted?;
    let runtime = case.runtimes[0];
    let variant = case.variants.first()?;
    let mut sides = Vec::new();
    for (at, side) in variant.sides().into_iter().enumerate() {
        eprintln!("counting {} {}", case.key, side.name);
        let counted = run(case, at, runtime, units);
        sides
            .push(counted.unwrap_or_else(|said| panic!("callgrind counted nothing:\n{said}")) / units as f64);
    }
    let bare = if variant.bare.is_some() { sides.pop()? } else { 0.0 };
    let ours = (sides[0] - bare).max(0.0);
    let peers = variant.peers.iter().zip(&sides[1..]).map(|(peer, counts)| (peer.name, counts - bare));
    let (peer, peer_counts) = peers.min_by(|a, b| a.1.total_cmp(&b.1))?;
    let ratio = ratio(ours, peer_counts);
    Some(Counts { key: case.key, unit: case.unit, runtime, ours, peer, peer_counts, ratio })
}

/// How many instructions one side took in all, or what the tool said.
fn run(case: &Case, side: usize, runtime: RuntimeKind, units: u64) -> Result<f64, String> {
    let toggle = OsString::from(format!("--toggle-collect={COUNTED}"));
    let words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"].map(OsStr::new);
    let tool = [words.as_slice(), &[&toggle]].concat();
    let mut command = child::command(&tool, case, 0, side, runtime, units);
    let output = command.arg("--warm").output().map_err(|error| error.to_string())?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    collected(&said).filter(|counted| *counted > 0.0).ok_or(said)
}

fn collected(said: &str) -> Option<f64> {
    let (_, counted) = said.lines().find_map(|line| line.split_once("Collected :"))?;
    counted.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_in_what_callgrind_says() {
        let said = "==7== Events    : Ir\n==7== Collected : 48091442\n==7== \n";
        assert_eq!(collected(said), Some(48_091_442.0));
        assert_eq!(collected("==7== nothing"), None);
    }
}
