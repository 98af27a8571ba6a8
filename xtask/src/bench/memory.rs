//! What compilers that take much memory take together, with a budget that holds nine of them and with one that holds one.

use std::cell::Cell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use anyhow::ensure;

use super::suites::{Bench, again};
use super::timing::{Measured, Side, measure};
use crate::process;

/// What each compiler takes, in MiB, while it waits for [`HELD_MS`].
const EACH_MIB: u64 = 250;
/// Long enough that all that may run at once do.
const HELD_MS: u64 = 2000;
/// What a compiler is counted as that has its memory, in MiB: it gets it page by page, and gives it back when it compiles.
const FULL_MIB: u64 = 200;
/// How many units, the binding not counted: more than fit.
const UNITS: usize = 11;
/// Budgets in MiB, and how many compilers fit.
const BUDGETS: [(u64, usize); 2] = [(2457, 9), (400, 1)];

/// Stands in front of the real compiler.
const LAUNCHER: &str = r"
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
int main(int count, char **args) {
  size_t size = (size_t)EACH_MIB << 20;
  char *block = malloc(size);
  if (!block || count < 2) return 1;
  memset(block, 1, size);
  struct timespec held = {HELD_MS / 1000, HELD_MS % 1000 * 1000000L};
  nanosleep(&held, 0);
  execv(args[1], args + 1);
  return 127;
}
";

/// What was seen of one side.
#[derive(Debug, Default)]
struct Seen {
    /// How many compilers had their memory at once.
    at_once: AtomicUsize,
    /// What all programs of the build had in memory together, in MiB.
    together: AtomicUsize,
    /// What one program of it had.
    one: AtomicUsize,
}

/// Builds in turns with both budgets, and sees that they are kept.
///
/// # Errors
/// When a budget is not kept, or is not used.
pub(super) fn run(bench: &Bench, runs: u32) -> anyhow::Result<Measured> {
    let project = bench.project("memory", UNITS, false)?;
    let launcher = launcher(&project.dir)?;
    let build = |budget: u64| {
        let budget = format!("{budget}M");
        let mut command = bench.build(&project.dir, &["--torch", "2.13", "--no-cache", "-j", "12", "--memory", &budget, "--launcher"]);
        command.arg(&launcher);
        command
    };
    // The first time, nobody knows what they take.
    process::output(&mut build(BUDGETS[1].0))?;
    let value = Rc::new(Cell::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    let sides = [0, 1].map(|side| {
        let (budget, fit) = BUDGETS[side];
        let (project, value, now) = (project.clone(), Rc::clone(&value), Arc::clone(&now));
        let prepare: Box<dyn Fn() -> anyhow::Result<()>> = Box::new(move || {
            value.set(value.get() + 1);
            now.store(side, Ordering::Relaxed);
            (0..UNITS).try_for_each(|unit| project.edit(unit, value.get()))
        });
        let name = format!("{budget} MiB, room for {fit} of {UNITS} compilers of {EACH_MIB} MiB");
        Side { name, prepare: Some(prepare), command: Box::new(again(build(budget))) }
    });
    let (seen, done) = ([Seen::default(), Seen::default()], AtomicBool::new(false));
    let measured = thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                look(&project.dir, &seen[now.load(Ordering::Relaxed)]);
                thread::sleep(Duration::from_millis(10));
            }
        });
        let measured = measure(&sides[0], &sides[1], runs);
        done.store(true, Ordering::Relaxed);
        measured
    })?;
    for ((budget, fit), seen) in BUDGETS.iter().zip(&seen) {
        let [at_once, together, one] = [&seen.at_once, &seen.together, &seen.one].map(|number| number.load(Ordering::Relaxed));
        println!("{budget} MiB: {at_once} at once, {together} MiB together, {one} MiB one of them");
        ensure!(at_once == *fit, "{at_once} compilers ran at once with {budget} MiB, which holds {fit}");
        let error = (one as u64).saturating_sub(EACH_MIB);
        ensure!(together as u64 <= budget + error, "{together} MiB were taken of {budget} MiB");
    }
    Ok(measured)
}

/// Compiles what stands in front of the compiler.
fn launcher(dir: &Path) -> anyhow::Result<PathBuf> {
    let (source, program) = (dir.with_extension("c"), dir.with_extension("launcher"));
    fs::write(&source, LAUNCHER)?;
    let mut cc = std::process::Command::new("cc");
    // Optimised, memory that nobody reads is memory that nobody takes.
    cc.arg("-O0").args([format!("-DEACH_MIB={EACH_MIB}"), format!("-DHELD_MS={HELD_MS}")]).arg("-o").arg(&program).arg(&source);
    process::output(&mut cc)?;
    Ok(program)
}

/// Adds what the programs that run in `dir` have in memory just now.
fn look(dir: &Path, seen: &Seen) {
    let Ok(processes) = fs::read_dir("/proc") else { return };
    let processes = processes.filter_map(Result::ok).map(|entry| entry.path());
    let here = processes.filter(|process| fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == *dir));
    let all: Vec<u64> = here.filter_map(|process| resident_mib(&process)).collect();
    let keep = |most: &AtomicUsize, number: u64| most.fetch_max(usize::try_from(number).unwrap_or(usize::MAX), Ordering::Relaxed);
    keep(&seen.at_once, all.iter().filter(|mib| **mib >= FULL_MIB).count() as u64);
    keep(&seen.together, all.iter().sum());
    keep(&seen.one, all.iter().copied().max().unwrap_or_default());
}

/// What a process has in memory, in MiB; nothing for one that has ended.
fn resident_mib(process: &Path) -> Option<u64> {
    let status = fs::read_to_string(process.join("status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kib / 1024)
}
