//! `docs/performance.md`, written from what was measured.

use std::fmt::Write as _;
use std::fs;

use super::plan_scale;
use super::suites::{Bench, Suite};
use crate::workspace::Workspace;

const HEAD: &str = "\
# How fast it is

Written by `cargo xtask bench performance`, which anyone can run again. Kiln and CMake with ninja build the same generated sources with the
same compiler, in turns and in one run; each number is a median. The ratio is that of the pairs, and says more than the times, which are
those of one machine. Above 1, Kiln is faster.

After an edit, ninja compiles what has changed and links. Kiln also compiles the binding again, because an extension of a project without
git is named after its sources; it links against the floor, and checks what it has linked.

";

/// Runs every suite and writes the page.
pub(super) fn write(workspace: &Workspace, runs: u32) -> anyhow::Result<()> {
    let bench = Bench::new(workspace)?;
    let mut text = HEAD.to_owned();
    let processors = std::thread::available_parallelism()?;
    writeln!(text, "{processors} processors, {runs} pairs.\n")?;
    text += "| | Kiln | the other | ratio | quartiles |\n|---|---|---|---|---|\n";
    for suite in Suite::ALL {
        println!("{}", suite.title());
        let measured = suite.run(&bench, runs)?;
        measured.print();
        let [ours, others] = measured.seconds.map(|spread| spread.median);
        let ratio = measured.ratio;
        writeln!(
            text,
            "| {} | {ours:.3} s | {others:.3} s | {:.2} | {:.2} .. {:.2} |",
            suite.title(),
            ratio.median,
            ratio.low,
            ratio.high
        )?;
    }
    text += "\n## Plans\n\nThe graph alone, which nothing runs: every step with its arguments, inputs and outputs.\n\n";
    text += "| units | variants | | steps | time | memory |\n|---|---|---|---|---|---|\n";
    for planned in plan_scale::run(workspace)? {
        let plan_scale::Planned { units, variants, shared, steps, seconds, memory_mib } = planned;
        let how = if shared { "all shared" } else { "none shared" };
        writeln!(text, "| {units} | {variants} | {how} | {steps} | {seconds:.3} s | {memory_mib} MiB |")?;
    }
    Ok(fs::write(workspace.root.join("docs/performance.md"), text)?)
}
