//! The worker's side of a call: the only place of Kiln that runs foreign code in its own process.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kiln_ffi::{Cuda, FfiError, Function, Layout, Module, Place, Returned, Runtime, Tensor, Value};

use super::argument::{Argument, Fill, TensorArgument};
use super::fill;
use super::protocol::{ANSWERS, After, Answer, Call, Described, Request, WireReturned, wire_place};

/// Samples of a timed call are at least this long, so that the clock does not count.
const SAMPLE: Duration = Duration::from_millis(1);
/// No more samples than this are taken.
const SAMPLES: usize = 500;
/// And no fewer.
const FEWEST: usize = 5;

/// Does what is asked, and answers in `dir`. What comes back is whether all went well; the answers say more.
///
/// # Errors
/// When the answers cannot be written.
pub fn work(request: &Request, dir: &Path) -> io::Result<bool> {
    // A kernel may go to another directory.
    let dir = std::path::absolute(dir)?;
    let answers = Answers { dir: dir.clone() };
    // What a kernel throws past the runtime, or when it is loaded, is told in its own words.
    match kiln_ffi::uncaught(|| answers.all(request)).unwrap_or_else(|error| Err(error.into())) {
        Ok(()) => answers.say(&Answer::Done).map(|()| true),
        Err(Ended::Said) => Ok(false),
        Err(Ended::Answers(cause)) => {
            // A short line may have room where results had none; without it, the kernel would be to blame.
            answers.say(&Answer::Failed { message: format!("the results cannot be written to `{}`: {cause}", dir.display()) })?;
            Ok(false)
        }
        Err(Ended::Error(FfiError::Raised(raised))) => {
            answers.say(&Answer::Raised { kind: raised.kind, message: raised.message })?;
            Ok(false)
        }
        Err(Ended::Error(error)) => {
            answers.say(&Answer::Failed { message: error.to_string() })?;
            Ok(false)
        }
    }
}

/// Sees to it that this process leaves nothing behind, and that nobody suffers from it: it ends with the one that started it, writes no
/// memory images, and is the first to go where memory runs out.
pub fn confine() {
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{Resource, Rlimit, Signal, set_parent_process_death_signal, setrlimit};
        // Where the system refuses, the process works all the same.
        let _stays = set_parent_process_death_signal(Some(Signal::KILL));
        let _writes = setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) });
        let _first = std::fs::write("/proc/self/oom_score_adj", "1000");
    }
}

/// Why work ends early.
enum Ended {
    /// The answer is written.
    Said,
    /// An answer cannot be written.
    Answers(io::Error),
    /// A library says so.
    Error(FfiError),
}

impl From<io::Error> for Ended {
    fn from(cause: io::Error) -> Self {
        Self::Answers(cause)
    }
}

impl From<FfiError> for Ended {
    fn from(error: FfiError) -> Self {
        Self::Error(error)
    }
}

/// The answers, in a file that is open only while one is written: a kernel may write into whatever is open, or close it.
struct Answers {
    dir: PathBuf,
}

impl Answers {
    /// Writes one line at once: nothing may be left behind in a buffer by a crash.
    fn say(&self, answer: &Answer) -> io::Result<()> {
        let mut line = serde_json::to_vec(answer).map_err(io::Error::other)?;
        line.push(b'\n');
        // Not even if the kernel has put a pipe there is anybody waited for.
        let at_once = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap_or(0);
        File::options().create(true).append(true).custom_flags(at_once).open(self.dir.join(ANSWERS))?.write_all(&line)
    }

    fn fail<T>(&self, message: String) -> Result<T, Ended> {
        self.say(&Answer::Failed { message })?;
        Err(Ended::Said)
    }

    fn all(&self, request: &Request) -> Result<(), Ended> {
        self.say(&Answer::Loading { what: request.runtime.clone() })?;
        let runtime = Runtime::load(Path::new(&request.runtime))?;
        for library in &request.preload {
            self.say(&Answer::Loading { what: library.clone() })?;
            kiln_ffi::load_for_others(Path::new(library))?;
        }
        self.say(&Answer::Loading { what: request.library.clone() })?;
        let module = runtime.open(Path::new(&request.library))?;
        let mut functions = Vec::new();
        for name in &request.functions {
            if module.function(name)?.is_none() {
                return self.fail(format!("the runtime does not find `{name}`, which the library exports"));
            }
            functions.push(Described { name: name.clone(), metadata: module.metadata(name)? });
        }
        runtime.let_crashes_end();
        self.say(&Answer::Loaded { version: runtime.version(), functions })?;
        for (index, call) in request.calls.iter().enumerate() {
            self.call(&runtime, &module, index, call)?;
        }
        Ok(())
    }

    fn call(&self, runtime: &Runtime, module: &Module, index: usize, call: &Call) -> Result<(), Ended> {
        let Some(function) = module.function(&call.function)? else {
            return self.fail(format!("there is no function `{}`", call.function));
        };
        let Some(arguments) = call.arguments.iter().map(|wire| wire.argument()).collect::<Option<Vec<_>>>() else {
            return self.fail("the arguments were not understood".to_owned());
        };
        let mut made = Vec::new();
        for (position, argument) in arguments.iter().enumerate() {
            let Argument::Tensor(tensor) = argument else {
                made.push(None);
                continue;
            };
            made.push(Some(self.tensor(runtime, tensor, position)?));
        }
        let values: Vec<Value<'_>> = arguments.iter().zip(&made).map(|(argument, made)| value(argument, made.as_ref())).collect();
        self.say(&Answer::Calling { call: index })?;
        if let Some(millis) = call.timed_ms {
            return self.time(runtime, &function, &values, &made, index, Duration::from_millis(millis));
        }
        let returned = function.call(&values)?;
        synchronize(&made)?;
        let returned = self.returned(index, returned)?;
        let mut tensors = Vec::new();
        for (argument, made) in made.iter().enumerate() {
            let Some(made) = made else { continue };
            let elements = made.tensor.elements()?;
            let file = format!("call{index}-argument{argument}.bin");
            std::fs::write(self.dir.join(&file), &elements)?;
            let trespass = made.tensor.trespass()?.map(str::to_owned);
            tensors.push(After { argument, changed: elements != made.before, trespass, file });
        }
        self.say(&Answer::Called { call: index, returned, tensors })?;
        Ok(())
    }

    fn tensor(&self, runtime: &Runtime, wanted: &TensorArgument, position: usize) -> Result<Made, Ended> {
        let seed = u64::try_from(position).unwrap_or(0);
        let Some(before) = fill::elements(&wanted.layout, &wanted.fill, seed) else {
            if wanted.layout.dtype().encode(0.0).is_none() {
                return self.fail(format!("argument {position}: the tensor cannot be filled"));
            }
            let bytes = wanted.layout.count().saturating_mul(wanted.layout.dtype().size());
            return Err(FfiError::Memory { bytes }.into());
        };
        let tensor = Tensor::new(runtime, wanted.layout.clone(), wanted.place)?;
        tensor.fill(&before)?;
        if wanted.layout.is_contiguous() {
            return Ok(Made { tensor, before });
        }
        // Where several elements are one, that holds what came last.
        drop(before);
        let before = tensor.elements()?;
        Ok(Made { tensor, before })
    }

    fn returned(&self, index: usize, returned: Returned) -> Result<WireReturned, Ended> {
        Ok(match returned {
            Returned::None => WireReturned::None,
            Returned::Bool(value) => WireReturned::Bool(value),
            Returned::Int(value) => WireReturned::Int(value),
            Returned::Float(value) => WireReturned::Float(value.to_bits()),
            Returned::Str(text) => WireReturned::Str(text),
            Returned::Dtype(dtype) => WireReturned::Dtype((dtype.code, dtype.bits, dtype.lanes)),
            Returned::Device(place) => WireReturned::Device(wire_place(place)),
            Returned::OtherDevice { device_type, ordinal } => WireReturned::OtherDevice(device_type, ordinal),
            Returned::Other(index) => WireReturned::Other(index),
            Returned::Tensor(tensor) => {
                let file = format!("call{index}-returned.bin");
                std::fs::write(self.dir.join(&file), &tensor.elements)?;
                let dtype = (tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
                WireReturned::Tensor { dtype, shape: tensor.shape, file }
            }
        })
    }

    /// Times calls and copies in turns, so that whatever else the machine does meets both.
    fn time(
        &self,
        runtime: &Runtime,
        function: &Function,
        values: &[Value<'_>],
        made: &[Option<Made>],
        call: usize,
        length: Duration,
    ) -> Result<(), Ended> {
        let tensors = || made.iter().flatten();
        let bytes: usize = tensors().map(|made| made.before.len()).sum();
        let place = tensors().next().map_or(Place::Host, |made| made.tensor.place());
        // Each byte of a copy is read once and written once, so a copy of half the bytes moves as many.
        let half = Layout::contiguous(kiln_ffi::Dtype { code: 1, bits: 8, lanes: 1 }, &[i64::try_from(bytes / 2).unwrap_or(0)]);
        let Ok(half) = half else { return self.fail("the tensors are too large to be copied".to_owned()) };
        let plain = TensorArgument { layout: half, fill: Fill::Value(1.0), place };
        let (from, to) = (self.tensor(runtime, &plain, 0)?, self.tensor(runtime, &plain, 1)?);
        let mut run = || -> Result<(), Ended> {
            function.call(values)?;
            Ok(())
        };
        let mut copy = || -> Result<(), Ended> { Ok(to.tensor.copy_memory(&from.tensor)?) };
        let wait = || synchronize(made);
        // What happens once, such as the start of a device, is no part of a call.
        run()?;
        wait()?;
        copy()?;
        let calls = repetitions(&mut run, &wait)?;
        let copies = repetitions(&mut copy, &wait)?;
        let started = Instant::now();
        let (mut calls_ns, mut copies_ns) = (Vec::new(), Vec::new());
        while calls_ns.len() < SAMPLES && (calls_ns.len() < FEWEST || started.elapsed() < length) {
            calls_ns.push(sample(&mut run, &wait, calls)?);
            copies_ns.push(sample(&mut copy, &wait, copies)?);
        }
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        self.say(&Answer::Timed { call, calls_ns, copies_ns, bytes })?;
        Ok(())
    }
}

/// A tensor among the arguments, with its elements before the call.
struct Made {
    tensor: Tensor,
    before: Vec<u8>,
}

fn value<'a>(argument: &'a Argument, made: Option<&'a Made>) -> Value<'a> {
    match (argument, made) {
        (Argument::Tensor(_), Some(made)) => Value::Tensor(&made.tensor),
        (Argument::None | Argument::Tensor(_), _) => Value::None,
        (Argument::Bool(value), _) => Value::Bool(*value),
        (Argument::Int(value), _) => Value::Int(*value),
        (Argument::Float(value), _) => Value::Float(*value),
        (Argument::Str(text), _) => Value::Str(text),
        (Argument::Dtype(dtype), _) => Value::Dtype(*dtype),
        (Argument::Device(place), _) => Value::Device(*place),
    }
}

/// Waits for what a call has started on a device.
fn synchronize(made: &[Option<Made>]) -> Result<(), Ended> {
    let devices: std::collections::BTreeSet<i32> = made
        .iter()
        .flatten()
        .filter_map(|made| match made.tensor.place() {
            Place::Host => None,
            Place::Cuda { ordinal } => Some(ordinal),
        })
        .collect();
    for ordinal in devices {
        let cuda = Cuda::open()?;
        cuda.enter(ordinal)?;
        cuda.synchronize()?;
    }
    Ok(())
}

/// How often to do something in one sample.
fn repetitions(run: &mut impl FnMut() -> Result<(), Ended>, wait: &impl Fn() -> Result<(), Ended>) -> Result<u32, Ended> {
    let mut count = 1_u32;
    loop {
        let nanoseconds = sample(run, wait, count)? * f64::from(count);
        if nanoseconds >= SAMPLE.as_secs_f64() * 1e9 || count >= 1 << 20 {
            return Ok(count);
        }
        count *= 2;
    }
}

/// Nanoseconds of one of `count` runs.
fn sample(run: &mut impl FnMut() -> Result<(), Ended>, wait: &impl Fn() -> Result<(), Ended>, count: u32) -> Result<f64, Ended> {
    let started = Instant::now();
    for _ in 0..count {
        run()?;
    }
    wait()?;
    Ok(started.elapsed().as_secs_f64() * 1e9 / f64::from(count))
}
