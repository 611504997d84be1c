//! Measures stoppable beside what a user would pick instead.
//!
//! ```sh
//! cargo run --release -p stoppable-bench                      # everything
//! cargo run --release -p stoppable-bench -- queue             # one area, or one key
//! cargo run --release -p stoppable-bench -- --json out.json
//! cargo run --release -p stoppable-bench -- --instructions    # counts, by callgrind
//! cargo run --release -p stoppable-bench -- --guard crates/stoppable-bench/guard.json
//! cargo run --release -p stoppable-bench -- --docs docs       # docs/benchmarks.md and its picture
//! ```
//!
//! Areas: `group`, `wait`, `timeout`, `queue`, `poll` (without a runtime), `scale`. A case is a line in a file of
//! `cases/`; all go through one loop, in `measuring`.

mod case;
mod cases;
mod chart;
mod child;
mod document;
mod figures;
mod guard;
mod handwritten;
mod instructions;
mod machine;
mod measuring;
mod row;
mod runtimes;
mod table;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Parser;
use serde_json::Value;

use crate::case::Case;
use crate::child::ChildArgs;
use crate::instructions::Counts;
use crate::measuring::Effort;
use crate::row::Row;
use crate::runtimes::Runtimes;

/// Measures stoppable beside what a user would pick instead.
#[derive(Debug, Parser)]
struct Args {
    /// An area or a key: group, wait, timeout, queue, poll, scale, queue.64 ...; all if there is none.
    area: Option<String>,
    /// Write the results there too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only see that everything runs; the figures say nothing.
    #[arg(long)]
    quick: bool,
    /// How often each side is run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    rounds: Option<u16>,
    /// Count instructions under callgrind instead of measuring time.
    #[arg(long)]
    instructions: bool,
    /// Count instructions, and fail if a ratio has moved from the one in this file.
    #[arg(long, value_name = "FILE")]
    guard: Option<PathBuf>,
    /// Count instructions, and write their ratios to this file.
    #[arg(long, value_name = "FILE")]
    renew: Option<PathBuf>,
    /// Write `benchmarks.md` and `benchmarks.svg` into this directory.
    #[arg(long, value_name = "DIR")]
    docs: Option<PathBuf>,
    #[command(flatten)]
    child: ChildArgs,
}

impl Args {
    fn effort(&self) -> Effort {
        let effort = if self.quick { Effort::QUICK } else { Effort::FULL };
        Effort { rounds: self.rounds.map_or(effort.rounds, usize::from), ..effort }
    }

    fn only_counts(&self) -> bool {
        self.instructions || self.guard.is_some() || self.renew.is_some()
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let mut cases = cases::all();
    if let Some(key) = &args.child.child {
        match cases.iter().find(|case| case.key == key) {
            Some(case) => child::be_child(&args.child, case),
            None => return fail(&format!("no case has the key `{key}`")),
        }
        return ExitCode::SUCCESS;
    }
    if let Some(area) = &args.area {
        cases.retain(|case| case::is_in(case.key, area));
        if cases.is_empty() {
            return fail(&format!("no area and no case is called `{area}`; see --help"));
        }
    }
    let done = if args.only_counts() { run_counts(&args, &cases) } else { run_times(&args, &cases) };
    done.unwrap_or_else(|error| fail(&error.to_string()))
}

fn fail(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

fn run_times(args: &Args, cases: &[Case]) -> io::Result<ExitCode> {
    let effort = args.effort();
    let mut runtimes = Runtimes::default();
    let mut rows: Vec<Row> = Vec::new();
    for case in cases {
        eprintln!("measuring {}", case.key);
        rows.extend(measuring::measure(case, &mut runtimes, &effort));
    }
    print!("{}", table::plain(table::HEAD, rows.iter().map(table::cells)));
    write_json(args.json.as_deref(), rows.iter().map(Row::to_json))?;
    if let Some(directory) = &args.docs {
        let counts = if instructions::has_valgrind() { instructions::count(cases) } else { Vec::new() };
        document::write(directory, &rows, &counts)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn run_counts(args: &Args, cases: &[Case]) -> io::Result<ExitCode> {
    if !instructions::has_valgrind() {
        println!("valgrind not found: skipped");
        return Ok(ExitCode::SUCCESS);
    }
    let counts = instructions::count(cases);
    print!("{}", table::plain(table::COUNTS_HEAD, counts.iter().map(table::counts_cells)));
    write_json(args.json.as_deref(), counts.iter().map(Counts::to_json))?;
    if let Some(file) = &args.renew {
        guard::renew(file, &counts)?;
    }
    let Some(file) = &args.guard else { return Ok(ExitCode::SUCCESS) };
    let complaints = guard::check(file, args.area.as_deref(), &counts)?;
    for complaint in &complaints {
        println!("{complaint}");
    }
    if complaints.is_empty() {
        println!("no ratio has moved");
        return Ok(ExitCode::SUCCESS);
    }
    println!("if that is meant: cargo run --release -p stoppable-bench -- --renew {}", file.display());
    Ok(ExitCode::FAILURE)
}

fn write_json(file: Option<&Path>, objects: impl Iterator<Item = Value>) -> io::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let list = Value::Array(objects.collect());
    fs::write(file, serde_json::to_string_pretty(&list)? + "\n")
}
