//! This program again, to run one side alone: in fresh memory, or where instructions are counted.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

use crate::case::{Case, RuntimeKind};
use crate::runtimes::Runtimes;

/// What a child is told to run.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ChildArgs {
    /// Run one side of this case, and print what it cost.
    #[arg(long, hide = true)]
    pub(crate) child: Option<String>,
    #[arg(long, hide = true, default_value_t = 0)]
    variant: usize,
    #[arg(long, hide = true, default_value_t = 0)]
    side: usize,
    #[arg(long, hide = true, value_enum, default_value_t = RuntimeKind::Ct)]
    kind: RuntimeKind,
    #[arg(long, hide = true, default_value_t = 1000)]
    units: u64,
    /// Run it shortly beforehand, so that what happens once is not counted.
    #[arg(long, hide = true)]
    warm: bool,
}

/// The part of a child that callgrind looks at.
pub(crate) const COUNTED: &str = "*counted_section*";

#[inline(never)]
fn counted_section(args: &ChildArgs, runtimes: &mut Runtimes, case: &Case) -> Option<f64> {
    let side = case.variants[args.variant].sides()[args.side];
    std::hint::black_box(runtimes.run(args.kind, side.run(args.units))).map(|sample| sample.per_unit())
}

/// In the child.
pub(crate) fn be_child(args: &ChildArgs, case: &Case) {
    let mut runtimes = Runtimes::default();
    if args.warm {
        let side = case.variants[args.variant].sides()[args.side];
        runtimes.run(args.kind, side.run(args.units.div_ceil(4)));
    }
    if let Some(cost) = counted_section(args, &mut runtimes, case) {
        println!("{cost}");
    }
}

/// How this program, or `tool` with this program as its last argument, runs one side.
pub(crate) fn command(
    tool: &[&OsStr],
    case: &Case,
    variant: usize,
    side: usize,
    kind: RuntimeKind,
    units: u64,
) -> Command {
    let this = std::env::current_exe().expect("a program knows where it is");
    let mut words = tool.to_vec();
    words.push(this.as_os_str());
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).args(["--child", case.key, "--kind", &kind.to_string()]);
    command.args(["--variant", &variant.to_string(), "--side", &side.to_string()]);
    command.args(["--units", &units.to_string()]).stderr(Stdio::piped());
    command
}

/// The cost of a unit in a process of its own. `None` if it hung.
pub(crate) fn sample(case: &Case, variant: usize, side: usize, kind: RuntimeKind, units: u64) -> Option<f64> {
    let output = command(&[], case, variant, side, kind, units).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}
