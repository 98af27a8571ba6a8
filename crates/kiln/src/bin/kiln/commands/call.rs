//! `kiln call` and `kiln bench-kernel`.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use kiln::Event;
use kiln::call::argument::{Argument, Defaults, extents, parse_arguments, parse_extents, parse_place};
use kiln::call::bench::{Times, time};
use kiln::call::check::{Asked, Loadable, Results, TensorAfter, Verdict, described, reference, results, shown};
use kiln::call::library::Wanted;
use kiln::call::protocol::Answer;
use kiln::call::reference::{Expected, FILE, ReferenceCall, project_of, read, read_file};
use kiln::call::runtime::{Choice, RuntimeError, provide};
use kiln::call::{CallError, Called, Ended, Session, Signature, Worker, find};
use kiln_ffi::Place;
use kiln_format::BackendName;
use kiln_graph::Interrupt;
use kiln_toolchain::{Catalog, Provisioner};
use serde_json::{Value, json};

use super::scratch::Scratch;
use super::settings_of;
use crate::args::{BenchKernel, Call, Callable, ReportFormat};
use crate::exit::{Exit, Failure};
use crate::human::{Detail, HumanReporter, counted};
use crate::memory;
use crate::printer::{Printer, one_line};
use crate::settings::Settings;
use crate::signals;

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let exit = if error.is_usage() { Exit::Usage } else { Exit::Failure };
        Self { exit, causes: kiln::build_error::causes(&error), hint: error.hint(), ..Self::new(error.code(), error.to_string()) }
    }
}

/// Of no kernel's own doing.
const SIGKILL: i32 = 9;

/// The hidden command: the worker's side.
pub(crate) fn work(dir: &Path) -> Result<Exit, Failure> {
    let failure = |cause: std::io::Error| Failure::new("worker", "the process that calls cannot work").caused_by(cause.to_string());
    let request = serde_json::from_reader(std::io::stdin().lock()).map_err(|cause| failure(cause.into()))?;
    kiln::call::work::confine();
    let well = kiln::call::work::work(&request, dir).map_err(failure)?;
    Ok(if well { Exit::Success } else { Exit::Failure })
}

/// How a worker is started: this program, by its hidden command.
pub(super) fn worker() -> Result<Worker, Failure> {
    let failure = |cause: std::io::Error| Failure::new("worker", "this program is not found").caused_by(cause.to_string());
    Ok(Worker { program: std::env::current_exe().map_err(failure)?, args: vec!["call-guard".into()] })
}

/// The hidden command between the two: starts the worker, ends what that has left, and ends as it did.
pub(crate) fn guard(dir: &Path) -> Result<Exit, Failure> {
    let failure = |cause: std::io::Error| Failure::new("worker", "the process that calls cannot be started").caused_by(cause.to_string());
    let program = std::env::current_exe().map_err(failure)?;
    let status = kiln::call::guard::guard(Command::new(program).arg("call-worker").arg(dir)).map_err(failure)?;
    signals::end_like(status)
}

/// What both commands work with.
struct Context<'a> {
    args: &'a Callable,
    settings: &'a Settings,
    printer: &'a Printer,
    session: &'a Session<'a>,
    defaults: Defaults,
    kernel: Loadable,
    /// Finds the kernel of another backend's variant.
    other: &'a dyn Fn(BackendName) -> Result<Loadable, Failure>,
}

pub(crate) fn run(args: &Call, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    with_context(&args.callable, settings, printer, |context| context.call(args))
}

pub(crate) fn bench(args: &BenchKernel, settings: &Settings, printer: &Printer) -> Result<Exit, Failure> {
    with_context(&args.callable, settings, printer, |context| context.bench(args))
}

fn with_context(
    args: &Callable,
    settings: &Settings,
    printer: &Printer,
    work: impl FnOnce(&Context<'_>) -> Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let defaults = Defaults {
        shapes: args.shapes.iter().map(|text| parse_extents(text)).collect::<Result<_, _>>()?,
        dtypes: args
            .dtypes
            .iter()
            .map(|text| text.parse().map_err(|error: kiln_ffi::DtypeError| Failure::usage(error.to_string()).hint(error.hint())))
            .collect::<Result<_, _>>()?,
        place: parse_place(&args.device)?,
    };
    let wanted = Wanted::variant(args.variant.clone(), defaults.place != Place::Host);
    let kernel = find(&args.path, &wanted, settings.machine)?;

    let interrupt = Interrupt::new();
    signals::listen(&interrupt, || ())?;
    let project = project_of(&args.path);
    let kiln_toml = project.as_deref().map(settings_of).unwrap_or_default();
    let scratch = Scratch::new("kiln-call-", settings)?;
    // A user without a home, who names a runtime, needs no place for others.
    let cache_dir = settings.cache_dir(project.as_deref()).unwrap_or_else(|_| scratch.path().join("cache"));
    let network = || settings.network(&cache_dir, project.as_deref().map(|dir| (dir, &kiln_toml)));
    let human = HumanReporter::new(printer, Detail::default(), None);
    let fetching = |event| human.event(&Event::Fetch(event));
    let catalog = Catalog::embedded()?;
    let provisioner =
        Provisioner::new(&catalog, settings.provision_options(cache_dir.clone()), &network, &fetching).interrupted_by(interrupt.clone());
    let choice = args.runtime.as_deref().map_or(Choice::Newest, |text| match Choice::parse(text) {
        Choice::Path(path) => Choice::Path(settings.environment.current_dir.join(path)),
        choice => choice,
    });
    let loadable = |kernel| {
        let provided = signals::unless_stuck(&interrupt, printer, || provide(&choice, &kernel, settings.machine, &catalog, &provisioner));
        let runtime = provided.map_err(runtime_failure)?;
        Ok::<_, Failure>(Loadable { kernel, runtime })
    };
    let kernel = loadable(kernel)?;
    let other = |backend: BackendName| {
        let dir = project.as_deref().unwrap_or(&args.path);
        let cuda = match backend {
            BackendName::Cpu => false,
            BackendName::Cuda => true,
            other => return Err(Failure::new("reference", format!("`against = \"{other}\"`: its kernels cannot be called yet"))),
        };
        loadable(find(dir, &Wanted::variant(None, cuda), settings.machine)?)
    };
    let worker = worker()?;
    let session = Session {
        worker: &worker,
        scratch: scratch.path(),
        timeout: Duration::from_secs(args.timeout),
        interrupt: &interrupt,
        keeps_output: false,
        memory: memory::budget(None, Path::new("/"))?.map(|mib| mib << 20),
    };
    work(&Context { args, settings, printer, session: &session, defaults, kernel, other: &other })
}

fn runtime_failure(error: RuntimeError) -> Failure {
    match error {
        RuntimeError::Toolchain(error @ kiln_toolchain::Error::Offline { .. }) => {
            Failure::from(error).hint("run it once without `--offline`, or name a runtime with `--runtime PATH`")
        }
        RuntimeError::Toolchain(error) => error.into(),
        RuntimeError::Call(error) => error.into(),
        error @ RuntimeError::Unknown { .. } => {
            Failure { exit: Exit::Usage, ..Failure::new("usage", error.to_string()) }.hint("`--runtime` also takes the path of a library")
        }
    }
}

/// How a worker ended, for programs.
fn ended_json(ended: &Ended) -> Value {
    match ended {
        Ended::Done => json!({"how": "done"}),
        Ended::Raised { kind, message } => json!({"how": "raised", "kind": kind, "message": message}),
        Ended::Failed { message } => json!({"how": "failed", "message": message}),
        Ended::Killed { signal } => json!({"how": "killed", "signal": signal}),
        Ended::Exited { code } => json!({"how": "exited", "code": code}),
        Ended::TimedOut { limit } => json!({"how": "timed-out", "seconds": limit.as_secs_f64()}),
        Ended::Interrupted => json!({"how": "interrupted"}),
    }
}

fn interrupted() -> Failure {
    Failure { exit: Exit::Interrupted, ..Failure::new("interrupted", "the call was interrupted") }
}

impl Context<'_> {
    fn call(&self, args: &Call) -> Result<Exit, Failure> {
        if args.list {
            return self.list();
        }
        let says_how = !self.args.arguments.is_empty() || !self.args.shapes.is_empty() || !self.args.dtypes.is_empty();
        if args.function.is_none() && says_how {
            return Err(Failure::usage("arguments are for one function: name it with `--function`"));
        }
        let references = match &args.reference {
            Some(path) => Some((path.clone(), read_file(path, self.defaults.place)?)),
            None if says_how => None,
            None => match project_of(&self.args.path) {
                Some(project) => read(&project, self.defaults.place)?.map(|calls| (project.join(FILE), calls)),
                None => None,
            },
        };
        let wanted = |call: &ReferenceCall| args.function.as_ref().is_none_or(|function| *function == call.function);
        match (references, &args.function) {
            (Some((path, mut calls)), function) if args.reference.is_some() || function.is_none() || calls.iter().any(wanted) => {
                calls.retain(wanted);
                self.check(&path, &calls)
            }
            (_, Some(function)) => self.call_one(function),
            (_, None) => self.list(),
        }
    }

    fn list(&self) -> Result<Exit, Failure> {
        let called = self.kernel.load(self.session)?;
        if let Some(failure) = self.failed(&called, None) {
            return Err(failure);
        }
        self.loaded();
        match self.args.format {
            ReportFormat::Human => {
                let line = |(name, signature): (&str, Option<Signature>)| {
                    let signature = signature.map(|signature| signature.to_string()).unwrap_or_default();
                    format!("{}\n", one_line(&format!("{name}{signature}")))
                };
                self.printer.text(&described(&called.answers).map(line).collect::<String>());
            }
            ReportFormat::Json => {
                let functions: Vec<Value> = described(&called.answers)
                    .map(|(name, signature)| {
                        let signature = signature.map(|signature| json!({"parameters": signature.parameters, "result": signature.result}));
                        json!({"name": name, "signature": signature})
                    })
                    .collect();
                let object = json!({"kernel": self.name(), "runtime": self.kernel.runtime.name, "functions": functions});
                self.printer.stdout(|out| pretty(out, &object));
            }
        }
        Ok(Exit::Success)
    }

    fn call_one(&self, function: &str) -> Result<Exit, Failure> {
        let (arguments, called) = match self.arguments(function)? {
            Asked::Takes(arguments) => {
                self.printer.status("Calling", &written(function, &arguments));
                let called = self.kernel.call(self.session, function, &arguments, None)?;
                if let Some(failure) = self.failed(&called, Some((function, &arguments))) {
                    return Err(failure);
                }
                (arguments, called)
            }
            Asked::Called { called, takes_none } => {
                self.called_without(function, &called, takes_none)?;
                (Vec::new(), *called)
            }
        };
        let call = written(function, &arguments);
        // Of what cannot be read, programs are told too.
        let report = |error: &CallError| self.report_problem(&error.to_string(), &called.ended, Some((function, &arguments)));
        let results = results(&called, &arguments).inspect_err(report)?;
        match self.args.format {
            ReportFormat::Human => {
                let tensors = results.tensors.iter().chain(&results.returned_tensor);
                let tensors: String = tensors.map(|tensor| format!("  {}\n", tensor_text(tensor))).collect();
                self.printer.text(&format!("{call} returned {}\n{tensors}", shown(&results)));
            }
            ReportFormat::Json => self.printer.stdout(|out| pretty(out, &self.results_json(function, &arguments, &results))),
        }
        match results.trespass() {
            None => Ok(Exit::Success),
            Some(trespass) => Err(Failure::new("call", format!("`{function}` ended well, but {trespass}"))),
        }
    }

    /// The failure of a kernel, in its own words or how it ended; programs get that as a report too.
    fn failed(&self, called: &Called, call: Option<(&str, &[Argument])>) -> Option<Failure> {
        let problem = called.problem()?;
        if called.ended == Ended::Interrupted {
            return Some(interrupted());
        }
        self.report_problem(&problem, &called.ended, call);
        Some(Failure::new("call", problem))
    }

    /// The report of a call that failed, for programs.
    fn report_problem(&self, problem: &str, ended: &Ended, call: Option<(&str, &[Argument])>) {
        if self.args.format != ReportFormat::Json {
            return;
        }
        let (function, arguments) = call.map(|(function, arguments)| (function, texts(arguments))).unzip();
        let object = json!({
            "kernel": self.name(), "runtime": self.kernel.runtime.name, "function": function, "arguments": arguments,
            "problem": problem, "ended": ended_json(ended),
        });
        self.printer.stdout(|out| pretty(out, &object));
    }

    /// The arguments as given, else a tensor for each parameter.
    fn arguments(&self, function: &str) -> Result<Asked, Failure> {
        if self.args.arguments.is_empty() {
            let asked = self.kernel.arguments(self.session, function, &self.defaults)?;
            return if self.session.interrupt.is_set() { Err(interrupted()) } else { Ok(asked) };
        }
        Ok(Asked::Takes(parse_arguments(&self.args.arguments, &self.defaults)?))
    }

    /// What went wrong with a function that was called without arguments, when it was asked what it takes.
    fn called_without(&self, function: &str, called: &Called, takes_none: bool) -> Result<(), Failure> {
        const HINT: &str = "it was called without arguments, for nothing says what it takes: name them in order with `--arg`, such as `--arg tensor:4x8 --arg 1e-5`";
        if let Some(failure) = self.failed(called, Some((function, &[]))) {
            if !takes_none && called.began() && matches!(called.ended, Ended::TimedOut { .. }) {
                return Err(failure.hint("`--arg` names its arguments in order, `--timeout` gives it more time"));
            }
            // Others would have failed with any arguments.
            let may_be_for_want = match called.ended {
                Ended::Raised { .. } => called.began(),
                Ended::Killed { signal } => called.began() && signal != SIGKILL,
                _ => false,
            };
            return Err(if may_be_for_want && !takes_none { failure.hint(HINT) } else { failure });
        }
        if self.args.shapes.is_empty() && self.args.dtypes.is_empty() {
            return Ok(());
        }
        Err(Failure::usage(format!("`{function}` takes no tensor that `--shape` or `--dtype` could describe")))
    }

    fn check(&self, path: &Path, calls: &[ReferenceCall]) -> Result<Exit, Failure> {
        if calls.is_empty() {
            return Err(Failure::new("reference", format!("`{}` has no call of this function", path.display())));
        }
        let mut verdicts = Vec::new();
        for call in calls {
            let verdict = reference(&self.kernel, self.session, call, &|| self.of_other(call))?;
            if self.session.interrupt.is_set() {
                return Err(interrupted());
            }
            if self.args.format == ReportFormat::Human {
                let what = written(&call.function, &call.arguments);
                let name = if call.name == call.function { what } else { format!("{}: {what}", call.name) };
                self.printer.text(&match &verdict {
                    Verdict::AsExpected => format!("ok      {name}\n"),
                    Verdict::Alone => format!("alone   {name}: others are compared with this\n"),
                    Verdict::Otherwise(problem) => format!("failed  {name}: {problem}\n"),
                });
            }
            verdicts.push((call, verdict));
        }
        if self.args.format == ReportFormat::Json {
            let list: Vec<Value> = verdicts
                .iter()
                .map(|(call, verdict)| {
                    let problem = if let Verdict::Otherwise(problem) = verdict { Some(problem) } else { None };
                    let (ok, compared) = (problem.is_none(), *verdict != Verdict::Alone);
                    json!({"name": call.name, "function": call.function, "ok": ok, "compared": compared, "problem": problem})
                })
                .collect();
            self.printer.stdout(|out| pretty(out, &json!({"kernel": self.name(), "runtime": self.kernel.runtime.name, "calls": list})));
        }
        let failed = verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Otherwise(_))).count();
        let alone = verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Alone).count();
        if failed > 0 {
            let are = if failed == 1 { "is" } else { "are" };
            return Err(Failure::new(
                "reference",
                format!("{failed} of {} {are} not as `{}` expects", counted(verdicts.len() as u64, "call"), path.display()),
            ));
        }
        let alone = if alone > 0 { format!(", {alone} of them for others to be compared with") } else { String::new() };
        self.printer.status("Checked", &format!("{} with {}{alone}", counted(verdicts.len() as u64, "call"), self.kernel.runtime.name));
        Ok(Exit::Success)
    }

    /// What the other backend's variant makes of a call; none if that is the one that is called. Its tensors lie where that backend has
    /// them.
    fn of_other(&self, call: &ReferenceCall) -> Result<Option<Results>, CallError> {
        let Expected::Backend(backend) = &call.expected else { return Err(CallError::Answers) };
        let refused = |why: String| CallError::Reference { path: PathBuf::from(FILE), why };
        let kernel = (self.other)(*backend).map_err(|failure| refused(failure.message))?;
        if kernel.kernel.path.canonicalize().ok() == self.kernel.kernel.path.canonicalize().ok() {
            return Ok(None);
        }
        let place = if *backend == BackendName::Cuda { Place::Cuda { ordinal: 0 } } else { Place::Host };
        let moved = |argument: &Argument| match argument {
            Argument::Tensor(tensor) => Argument::Tensor(kiln::call::argument::TensorArgument { place, ..tensor.clone() }),
            Argument::Device(_) => Argument::Device(place),
            other => other.clone(),
        };
        let arguments: Vec<Argument> = call.arguments.iter().map(moved).collect();
        let nothing = |why: String| refused(format!("the variant for {backend} gives nothing to compare with: {why}"));
        let called = kernel.call(self.session, &call.function, &arguments, None).map_err(|error| nothing(error.to_string()))?;
        match called.problem() {
            None => results(&called, &arguments).map(Some).map_err(|error| nothing(error.to_string())),
            Some(problem) => Err(nothing(problem)),
        }
    }

    fn bench(&self, args: &BenchKernel) -> Result<Exit, Failure> {
        let function = match (&args.function, self.kernel.kernel.functions.as_slice()) {
            (Some(function), _) => function.clone(),
            (None, [only]) => only.clone(),
            (None, several) => {
                let names = several.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                return Err(Failure::usage(format!("there are several functions: {names}")).hint("name one with `--function`"));
            }
        };
        let arguments = match self.arguments(&function)? {
            Asked::Takes(arguments) => arguments,
            Asked::Called { called, takes_none } => {
                self.called_without(&function, &called, takes_none)?;
                Vec::new()
            }
        };
        let call = written(&function, &arguments);
        self.printer.status("Timing", &call);
        let called = self.kernel.call(self.session, &function, &arguments, Some(args.time))?;
        if let Some(failure) = self.failed(&called, Some((&function, &arguments))) {
            return Err(failure);
        }
        let timed = called.answers.iter().find_map(|answer| match answer {
            Answer::Timed { calls_ns, copies_ns, bytes, .. } => Some((Times::of(calls_ns)?, Times::of(copies_ns)?, *bytes)),
            _ => None,
        });
        let (calls, copies, bytes) = timed.ok_or(CallError::Answers)?;
        let rate = |times: &Times| format!("{:.2} GB/s", times.rate(bytes) / 1e9);
        let line = |times: &Times| format!("{} (p10 {}, p90 {})", time(times.median), time(times.low), time(times.high));
        self.printer.stdout(|out| match self.args.format {
            ReportFormat::Human => {
                writeln!(out, "{call}: {} of {} samples", line(&calls), calls.samples)?;
                if bytes == 0 {
                    return Ok(());
                }
                writeln!(out, "  {bytes} bytes of tensors: {}", rate(&calls))?;
                writeln!(out, "  a copy that moves as many: {}, {}", line(&copies), rate(&copies))
            }
            ReportFormat::Json => {
                let figures = |times: &Times| {
                    let rate = (bytes > 0).then(|| times.rate(bytes));
                    json!({"median_ns": times.median, "p10_ns": times.low, "p90_ns": times.high, "samples": times.samples, "bytes_per_s": rate})
                };
                let object = json!({
                    "kernel": self.name(), "runtime": self.kernel.runtime.name, "function": function, "arguments": texts(&arguments),
                    "bytes": bytes, "call": figures(&calls), "copy": figures(&copies),
                });
                pretty(out, &object)
            }
        });
        Ok(Exit::Success)
    }

    fn loaded(&self) {
        self.printer.status("Loaded", &format!("{} with {}", self.name(), self.kernel.runtime.name));
    }

    /// The kernel for people: from here, if it lies below.
    fn name(&self) -> String {
        let path = &self.kernel.kernel.path;
        path.strip_prefix(&self.settings.environment.current_dir).unwrap_or(path).display().to_string()
    }

    fn results_json(&self, function: &str, arguments: &[Argument], results: &Results) -> Value {
        let tensor = |tensor: &TensorAfter| {
            let figures = tensor.values.as_deref().and_then(Figures::of);
            json!({
                "argument": tensor.argument, "dtype": tensor.dtype.to_string(), "shape": tensor.shape, "changed": tensor.changed,
                "min": figures.map(|f| f.min), "max": figures.map(|f| f.max), "mean": figures.map(|f| f.mean),
                "not_numbers": figures.map(|f| f.not_numbers),
            })
        };
        let returned = match (&results.returned, &results.returned_tensor) {
            (_, Some(returned)) => tensor(returned),
            (Some(Argument::Bool(value)), _) => json!(value),
            (Some(Argument::Int(value)), _) => json!(value),
            // JSON has no such numbers.
            (Some(Argument::Float(value)), _) if !value.is_finite() => json!(value.to_string()),
            (Some(Argument::Float(value)), _) => json!(value),
            (Some(Argument::Str(text)), _) => json!(text),
            (Some(other @ (Argument::Dtype(_) | Argument::Device(_))), _) => json!(other.to_string()),
            _ => Value::Null,
        };
        json!({
            "kernel": self.name(), "runtime": self.kernel.runtime.name, "function": function, "arguments": texts(arguments),
            "returned": returned, "tensors": results.tensors.iter().map(tensor).collect::<Vec<_>>(),
            "problem": results.trespass(),
        })
    }
}

/// `relu(float32[8x16], float32[8x16])`.
fn written(function: &str, arguments: &[Argument]) -> String {
    format!("{function}({})", texts(arguments).join(", "))
}

fn texts(arguments: &[Argument]) -> Vec<String> {
    arguments.iter().map(ToString::to_string).collect()
}

fn pretty(out: &mut impl Write, value: &Value) -> std::io::Result<()> {
    writeln!(out, "{}", serde_json::to_string_pretty(value).map_err(std::io::Error::other)?)
}

/// What the elements of a tensor come to.
#[derive(Clone, Copy)]
struct Figures {
    min: f64,
    max: f64,
    mean: f64,
    not_numbers: usize,
}

impl Figures {
    /// None without a number.
    fn of(values: &[f64]) -> Option<Self> {
        let numbers = || values.iter().copied().filter(|value| !value.is_nan());
        let count = numbers().count();
        #[expect(clippy::cast_precision_loss, reason = "a mean for people")]
        let mean = numbers().sum::<f64>() / count as f64;
        let (min, max) = numbers().fold((f64::INFINITY, f64::NEG_INFINITY), |(min, max), value| (min.min(value), max.max(value)));
        (count > 0).then_some(Self { min, max, mean, not_numbers: values.len() - count })
    }
}

fn tensor_text(tensor: &TensorAfter) -> String {
    let what = format!("{}: {}[{}]", tensor.name(), tensor.dtype, extents(&tensor.shape));
    let changed = match (tensor.argument, tensor.changed) {
        (None, _) => "",
        (_, true) => ", changed",
        (_, false) => ", unchanged",
    };
    let figures = match tensor.values.as_deref().map(Figures::of) {
        None => ", of elements that cannot be read".to_owned(),
        Some(None) => String::new(),
        Some(Some(Figures { min, max, mean, not_numbers })) => {
            let nan = if not_numbers > 0 { format!(", {not_numbers} that are no numbers") } else { String::new() };
            format!(", from {min:.6} to {max:.6}, mean {mean:.6}{nan}")
        }
    };
    format!("{what}{changed}{figures}")
}
