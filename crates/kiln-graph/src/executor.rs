//! Runs what is not up to date: a pool of threads, each of which takes the step that goes next, checks it and, if need be, runs it.

use std::num::NonZeroUsize;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use rayon::prelude::*;

use crate::cache::ActionCache;
use crate::event::Event;
use crate::graph::{Graph, Node};
use crate::history::History;
use crate::interrupt::Interrupt;
use crate::outcome::{Outcome, StepOutcome, StepState, TargetOutcome};
use crate::record::Record;
use crate::run::{Run, Settled, Tell};
use crate::schedule::{Consequence, Schedule, expected};
use crate::tokens::JobServer;
use crate::workdir::LockedWorkDir;

/// How often the interrupt is looked at while programs run.
const POLL: Duration = Duration::from_millis(20);

/// How a graph is run.
#[derive(Clone, Debug)]
pub struct Config {
    /// How many steps may run at once.
    pub jobs: NonZeroUsize,
    /// Whether to go on with what does not depend on a failed step. Otherwise nothing starts after the first failure, and
    /// what runs is let finish.
    pub keep_going: bool,
    /// Ends or suspends the run.
    pub interrupt: Interrupt,
    /// Where results of earlier runs are taken from and kept; none to run whatever is not up to date.
    pub cache: Option<ActionCache>,
    /// How much memory the steps that run may take together, in MiB; none for no limit.
    pub memory_mib: Option<u64>,
    /// The make that lets steps run, if there is one.
    pub job_server: Option<JobServer>,
    /// How long an interrupted program may take to end before its group gets SIGKILL.
    pub grace: Duration,
}

impl Default for Config {
    /// One job, stop at the first failure, three seconds of grace.
    fn default() -> Self {
        Self {
            jobs: NonZeroUsize::MIN,
            keep_going: false,
            interrupt: Interrupt::new(),
            cache: None,
            memory_mib: None,
            job_server: None,
            grace: Duration::from_secs(3),
        }
    }
}

/// Runs graphs in a work directory.
#[derive(Debug)]
pub struct Executor<'a> {
    work_dir: &'a LockedWorkDir,
    config: Config,
}

impl<'a> Executor<'a> {
    /// An executor for `work_dir`.
    pub fn new(work_dir: &'a LockedWorkDir, config: Config) -> Self {
        Self { work_dir, config }
    }

    /// Runs every step of `graph` that is not up to date and reports what happens to `observer`: one event at a time, in
    /// the order in which things happen, from several threads.
    ///
    /// After a run in which every step ended well, outputs that no graph of late had are removed (see
    /// [`LockedWorkDir::forget_old_graphs`]).
    ///
    /// # Panics
    /// When `observer` does.
    pub fn run(&self, graph: &Graph, observer: &(dyn Fn(&Event) + Sync)) -> Outcome {
        if let Err(error) = self.work_dir.note(graph) {
            tracing::warn!("cannot write to `{}`: {error}", self.work_dir.path().display());
        }
        let run = Run::new(graph, self.work_dir, &self.config);
        let records = self.load_records(graph, &run);
        let history = History::load(&self.work_dir.durations_path());
        let by_kind = self.config.jobs == NonZeroUsize::MIN;
        let (schedule, consequences) = Schedule::new(graph, |index, node: &Node| match by_kind {
            true => node.step.weight.cpu_ms.into(),
            false => expected(node, records.get(index).and_then(Option::as_ref), &history),
        });
        let pool = Pool {
            graph,
            run: &run,
            config: &self.config,
            records,
            schedule: Mutex::new(schedule),
            changed: Condvar::new(),
            durations: Mutex::new(vec![(Duration::ZERO, Duration::ZERO); graph.len()]),
            observer: Mutex::new(observer),
        };
        {
            let observer = lock(&pool.observer);
            observer(&Event::GraphStarted { steps: graph.len(), targets: graph.targets().len() });
            pool.report(*observer, &consequences);
        }
        pool.work();
        run.reuse.finish();
        pool.tell_of_cache();
        let took = run.took();
        if !took.is_empty()
            && let Err(error) = history.save(&took, &self.work_dir.durations_path(), self.work_dir)
        {
            tracing::debug!("cannot write to `{}`: {error}", self.work_dir.path().display());
        }

        let outcome = self.outcome(graph, pool);
        if outcome.is_ok()
            && let Err(error) = self.work_dir.forget_old_graphs()
        {
            tracing::warn!("cannot remove old outputs from `{}`: {error}", self.work_dir.path().display());
        }
        let counts = outcome.counts();
        observer(&Event::GraphFinished {
            ran: counts.ran,
            up_to_date: counts.up_to_date,
            cached: counts.cached,
            shared: counts.shared,
            failed: counts.failed,
            skipped: counts.skipped,
        });
        outcome
    }

    /// Loads all records and looks at all files that they name, in parallel: most of what a build with nothing to do does.
    fn load_records(&self, graph: &Graph, run: &Run<'_>) -> Vec<Option<Record>> {
        match rayon::ThreadPoolBuilder::new().num_threads(self.config.jobs.get()).build() {
            Ok(pool) => pool.install(|| graph.nodes().par_iter().map(|node| run.prepare(node)).collect()),
            Err(_) => graph.nodes().iter().map(|node| run.prepare(node)).collect(),
        }
    }

    fn outcome(&self, graph: &Graph, pool: Pool<'_>) -> Outcome {
        let (states, targets) = pool.schedule.into_inner().unwrap_or_else(PoisonError::into_inner).into_states();
        let durations = pool.durations.into_inner().unwrap_or_else(PoisonError::into_inner);
        let steps = graph.steps().zip(states).zip(durations);
        let steps = steps.map(|(((id, _), state), (duration, cpu))| StepOutcome { step: id.clone(), state, duration, cpu }).collect();
        let targets = graph.targets().zip(targets).map(|((name, _), ok)| TargetOutcome { target: name.to_owned(), ok }).collect();
        Outcome::new(steps, targets, self.work_dir.out_dir(), self.config.interrupt.is_set())
    }
}

/// The threads of one run and what they share.
///
/// Locks are taken in this order: `observer`, `schedule`. Whoever changes the schedule by the end of a step holds both, so
/// that no event of what follows can come before the event of its cause.
struct Pool<'a> {
    graph: &'a Graph,
    run: &'a Run<'a>,
    config: &'a Config,
    records: Vec<Option<Record>>,
    schedule: Mutex<Schedule>,
    /// The schedule changed: a step is ready, or none will be.
    changed: Condvar,
    /// How long each step ran, and the processor time of its programs.
    durations: Mutex<Vec<(Duration, Duration)>>,
    observer: Mutex<&'a (dyn Fn(&Event) + Sync)>,
}

impl Pool<'_> {
    /// Runs until every step is done.
    fn work(&self) {
        let threads = self.config.jobs.get().min(self.graph.len());
        thread::scope(|scope| {
            let started = (0..threads)
                .filter(|number| thread::Builder::new().name(format!("step-{number}")).spawn_scoped(scope, || self.take_steps()).is_ok())
                .count();
            if started == 0 {
                // No thread can be had: this one does the work and looks at the interrupt between steps only.
                self.take_steps();
            }
            self.supervise();
        });
    }

    /// Looks at the interrupt until every step is done.
    fn supervise(&self) {
        // Whether it was told that what runs is let end (false) or is ended (true).
        let mut told: Option<bool> = None;
        loop {
            let schedule = lock(&self.schedule);
            if schedule.is_done() {
                return;
            }
            let (schedule, _) = self.changed.wait_timeout(schedule, POLL).unwrap_or_else(PoisonError::into_inner);
            drop(schedule);
            if self.config.interrupt.is_set() {
                self.stop();
                let kills = self.config.interrupt.is_stop();
                let groups = self.config.interrupt.groups();
                let running = groups.running();
                if running > 0 && told.is_none_or(|told| kills && !told) {
                    lock(&self.observer)(&Event::Stopping { running, kills });
                    told = Some(kills);
                }
                if kills {
                    groups.terminate(self.config.grace);
                }
            }
        }
    }

    /// Takes and settles steps until none is left to take.
    fn take_steps(&self) {
        let _guard = StopOnPanic(self);
        loop {
            if self.config.interrupt.is_set() {
                self.stop();
            }
            let mut schedule = lock(&self.schedule);
            let index = loop {
                if !schedule.has_unstarted() {
                    return;
                }
                match schedule.take() {
                    Some(index) => break index,
                    None => schedule = self.changed.wait(schedule).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(schedule);
            self.settle(index);
        }
    }

    fn settle(&self, index: usize) {
        let node = &self.graph.nodes()[index];
        let (step, verb, label) = (node.id.clone(), node.step.verb, node.step.label.clone());
        let starts = |reason, command| {
            lock(&self.observer)(&Event::StepStarted { step: step.clone(), verb, label: label.clone(), reason, command });
        };
        let retries = || {
            let (step, label) = (node.id.clone(), node.step.label.clone());
            lock(&self.observer)(&Event::StepRetried { step, verb, label });
        };
        let tell = Tell { starts: &starts, retries: &retries };
        let settled = self.run.settle(index, self.records[index].as_ref(), &tell);
        let files = self.run.reuse.take_damaged();
        if !files.is_empty() {
            lock(&self.observer)(&Event::CacheDamaged { files });
        }
        self.tell_of_cache();
        let (event, state) = match settled {
            Settled::Waits(other) => {
                lock(&self.schedule).put_back(index, other);
                self.changed.notify_all();
                return;
            }
            Settled::UpToDate => (Event::StepUpToDate { step, verb, label }, StepState::UpToDate),
            Settled::Restored { reason, origin, output } => {
                (Event::StepRestored { step, verb, label, reason, origin: origin.clone(), output }, StepState::Restored(origin))
            }
            Settled::Ran(ran) => {
                lock(&self.durations)[index] = (ran.duration, ran.cpu);
                match ran.result {
                    Ok(()) => (Event::StepFinished { step, verb, label, duration: ran.duration, output: ran.output }, StepState::Ran),
                    Err(failure) => {
                        let state = StepState::Failed(failure.clone());
                        (Event::StepFailed { step, verb, label, failure, command: ran.command, output: ran.output }, state)
                    }
                }
            }
        };
        let stop = matches!(state, StepState::Failed(_)) && !self.config.keep_going;
        let observer = lock(&self.observer);
        observer(&event);
        let mut schedule = lock(&self.schedule);
        let mut consequences = schedule.finish(index, state);
        if stop {
            consequences.extend(schedule.stop());
            consequences.sort_unstable();
        }
        drop(schedule);
        self.report(*observer, &consequences);
        self.changed.notify_all();
    }

    fn tell_of_cache(&self) {
        if let Some(event) = self.run.reuse.take_unusable() {
            lock(&self.observer)(&event);
        }
    }

    /// Lets nothing start any more.
    fn stop(&self) {
        let observer = lock(&self.observer);
        let consequences = lock(&self.schedule).stop();
        self.report(*observer, &consequences);
        self.changed.notify_all();
    }

    fn report(&self, observer: &(dyn Fn(&Event) + Sync), consequences: &[Consequence]) {
        let targets: Vec<&str> = self.graph.targets().map(|(name, _)| name).collect();
        for consequence in consequences {
            match *consequence {
                Consequence::Skipped(index) => {
                    let node = &self.graph.nodes()[index];
                    observer(&Event::StepSkipped { step: node.id.clone(), verb: node.step.verb, label: node.step.label.clone() });
                }
                Consequence::Target { target, ok } => observer(&Event::TargetFinished { target: targets[target].to_owned(), ok }),
            }
        }
    }
}

/// Lets the other threads end when one of them panics (in the observer), so that the panic can go on to the caller.
struct StopOnPanic<'a, 'b>(&'a Pool<'b>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            let mut schedule = lock(&self.0.schedule);
            schedule.stop();
            schedule.abandon();
            drop(schedule);
            self.0.changed.notify_all();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
