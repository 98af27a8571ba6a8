//! Two sides timed in turns, and what the times say.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};

use crate::process;

/// One side of a comparison.
pub(super) struct Side {
    pub(super) name: String,
    /// Run before each, untimed.
    pub(super) prepare: Option<Box<dyn Fn() -> anyhow::Result<()>>>,
    pub(super) command: Box<dyn Fn() -> Command>,
}

/// A command as a shell reads it.
pub(super) fn shell_side(command: &str, prepare: Option<&str>) -> Side {
    let shell = |text: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", text]);
        shell
    };
    let text = command.to_owned();
    let prepare = prepare.map(|text| {
        let text = text.to_owned();
        let run: Box<dyn Fn() -> anyhow::Result<()>> = Box::new(move || process::output(&mut shell(&text)).map(drop));
        run
    });
    Side { name: command.to_owned(), prepare, command: Box::new(move || shell(&text)) }
}

/// What two sides took.
pub(super) struct Measured {
    names: [String; 2],
    /// Seconds of the first and of the second.
    pub(super) seconds: [Spread; 2],
    /// Second to first within the pairs: above 1, the first is faster.
    pub(super) ratio: Spread,
    pairs: u32,
}

impl Measured {
    /// Prints all of it.
    pub(super) fn print(&self) {
        for (name, spread) in self.names.iter().zip(&self.seconds) {
            println!("{:>10.4} s median  {:>10.4} .. {:<10.4}  {name}", spread.median, spread.low, spread.high);
        }
        println!("{:>10.4}   b / a   {:>10.4} .. {:<10.4}  {} pairs", self.ratio.median, self.ratio.low, self.ratio.high, self.pairs);
    }
}

/// Times the two in turns: A B, then B A, and so on.
pub(super) fn measure(a: &Side, b: &Side, runs: u32) -> anyhow::Result<Measured> {
    // One of each for warm caches.
    time(a)?;
    time(b)?;
    let mut pairs = Vec::new();
    for round in 0..runs {
        let pair = if round % 2 == 0 {
            let first = time(a)?;
            (first, time(b)?)
        } else {
            let second = time(b)?;
            (time(a)?, second)
        };
        pairs.push((pair.0.as_secs_f64(), pair.1.as_secs_f64()));
    }
    let (of_a, of_b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let ratios = pairs.iter().map(|pair| pair.1 / pair.0).collect();
    let spread = |numbers| Spread::of(numbers).context("no runs");
    Ok(Measured { names: [a.name.clone(), b.name.clone()], seconds: [spread(of_a)?, spread(of_b)?], ratio: spread(ratios)?, pairs: runs })
}

fn time(side: &Side) -> anyhow::Result<Duration> {
    if let Some(prepare) = &side.prepare {
        prepare()?;
    }
    let mut command = (side.command)();
    let started = Instant::now();
    let result = command.stdin(Stdio::null()).output().with_context(|| format!("cannot run `{}`", side.name))?;
    let elapsed = started.elapsed();
    if !result.status.success() {
        bail!("`{}` failed ({}):\n{}", side.name, result.status, String::from_utf8_lossy(&result.stderr).trim_end());
    }
    Ok(elapsed)
}

/// The middle and the quartiles of some numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Spread {
    pub(super) fn of(mut numbers: Vec<f64>) -> Option<Self> {
        numbers.sort_by(f64::total_cmp);
        let last = numbers.len().checked_sub(1)?;
        let at = |quarter: usize| {
            // Between the two nearest, by distance.
            let (below, part) = (quarter * last / 4, (quarter * last) % 4);
            let (low, high) = (numbers.get(below)?, numbers.get((below + 1).min(last))?);
            #[expect(clippy::cast_precision_loss, reason = "at most 3")]
            Some(low + (high - low) * part as f64 / 4.0)
        };
        Some(Self { median: at(2)?, low: at(1)?, high: at(3)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_and_quartiles() {
        assert_eq!(Spread::of(vec![3.0]), Some(Spread { median: 3.0, low: 3.0, high: 3.0 }));
        assert_eq!(Spread::of(vec![4.0, 1.0, 3.0, 2.0, 5.0]), Some(Spread { median: 3.0, low: 2.0, high: 4.0 }));
        assert_eq!(Spread::of(vec![1.0, 2.0]), Some(Spread { median: 1.5, low: 1.25, high: 1.75 }));
        assert_eq!(Spread::of(Vec::new()), None);
    }
}
