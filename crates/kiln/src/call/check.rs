//! Calls whose results are looked at: for people, against what a project expects, and to see that a kernel loads at all.

use std::path::Path;

use kiln_ffi::Dtype;

use super::argument::{Argument, Defaults, Tensors, extents};
use super::compare::{Tolerance, compare, numbers};
use super::protocol::{Answer, Call, Request, WireArgument, WireReturned, place};
use super::reference::{Expected, ExpectedReturn, ReferenceCall};
use super::runtime::RuntimeFiles;
use super::{CallError, Called, Ended, Kernel, Session, Signature};

/// A kernel with the runtime that it is called with.
#[derive(Clone, Debug)]
pub struct Loadable {
    /// The kernel.
    pub kernel: Kernel,
    /// The runtime.
    pub runtime: RuntimeFiles,
}

/// What a function says when it is asked what it takes.
pub enum Asked {
    /// These are arguments for it.
    Takes(Vec<Argument>),
    /// It was called without arguments.
    Called {
        /// What became of that.
        called: Box<Called>,
        /// Whether it is known that it takes none.
        takes_none: bool,
    },
}

impl Loadable {
    /// The request for a worker that answers in `dir`.
    fn request(&self, dir: &Path, calls: Vec<Call>) -> Result<Request, CallError> {
        Ok(Request {
            runtime: text_of(&self.runtime.library, dir, "runtime.so")?,
            preload: self
                .runtime
                .preload
                .iter()
                .enumerate()
                .map(|(index, path)| text_of(path, dir, &format!("preload-{index}.so")))
                .collect::<Result<_, _>>()?,
            library: text_of(&self.kernel.path, dir, "kernel.so")?,
            functions: self.kernel.functions.clone(),
            calls,
        })
    }

    /// Loads the kernel and calls nothing.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn load(&self, session: &Session<'_>) -> Result<Called, CallError> {
        session.run(|dir| self.request(dir, Vec::new()))
    }

    /// Calls a function; with `timed_ms`, again and again for so many milliseconds.
    ///
    /// # Errors
    /// As [`Session::run`], and when there is no such function.
    pub fn call(&self, session: &Session<'_>, function: &str, arguments: &[Argument], timed_ms: Option<u64>) -> Result<Called, CallError> {
        self.has(function)?;
        let needed = arguments.iter().map(memory_of).fold(0, u64::saturating_add);
        if let Some(there) = session.memory.filter(|there| needed > *there) {
            return Err(CallError::Memory { needed, there });
        }
        let arguments: Vec<_> = arguments.iter().map(WireArgument::from).collect();
        let call = Call { function: function.to_owned(), arguments, timed_ms };
        session.run(|dir| self.request(dir, vec![call]))
    }

    /// Arguments for a function whose types are known: tensors that `defaults` describes.
    ///
    /// Where the kernel states no types, the function is called without arguments: those made by the runtime's own macros then name
    /// their types. Of one that takes none, and of one that says nothing of its types, that was the call.
    ///
    /// # Errors
    /// As [`Loadable::call`]; when its types are not those of tensors.
    pub fn arguments(&self, session: &Session<'_>, function: &str, defaults: &Defaults) -> Result<Asked, CallError> {
        let called = self.call(session, function, &[], None)?;
        let stated = described(&called.answers).find(|(name, _)| *name == function).and_then(|(_, signature)| signature);
        let complained = match &called.ended {
            Ended::Raised { message, .. } => Signature::of_complaint(message),
            _ => None,
        };
        let Some(signature) = stated.or(complained) else {
            let mut called = Box::new(called);
            if called.began() && matches!(called.ended, Ended::TimedOut { .. }) {
                // Who waits for another call would wonder.
                called.doing = format!("`{function}`, called without arguments to learn what it takes,");
            }
            return Ok(Asked::Called { called, takes_none: false });
        };
        if signature.parameters.is_empty() {
            return Ok(Asked::Called { called: Box::new(called), takes_none: true });
        }
        defaults.describe(Tensors { count: signature.parameters.len(), shape: true, dtype: true })?;
        let mut arguments = Vec::new();
        for (position, kind) in signature.parameters.iter().enumerate() {
            if !Signature::is_tensor(kind) {
                return Err(CallError::Unnamed { function: function.to_owned(), position, kind: kind.clone() });
            }
            arguments.push(Argument::Tensor(defaults.tensor(position)?));
        }
        Ok(Asked::Takes(arguments))
    }

    fn has(&self, function: &str) -> Result<(), CallError> {
        if self.kernel.functions.iter().any(|known| known == function) {
            return Ok(());
        }
        Err(CallError::NoFunction { name: function.to_owned(), functions: self.kernel.functions.clone() })
    }
}

/// A path as the runtime takes it. What is no text in UTF-8 gets a link called `name` in the worker's directory.
fn text_of(path: &Path, dir: &Path, name: &str) -> Result<String, CallError> {
    let read = |source| CallError::Read { path: path.to_owned(), source };
    // A kernel may go to another directory.
    let absolute = std::path::absolute(path).map_err(read)?;
    if let Some(text) = absolute.to_str() {
        return Ok(text.to_owned());
    }
    let link = std::path::absolute(dir).map_err(read)?.join(name);
    std::os::unix::fs::symlink(&absolute, &link).map_err(read)?;
    link.to_str().map(str::to_owned).ok_or(CallError::Path { path: link })
}

/// The most bytes that a tensor takes at any time: itself, its elements before the call and after it; or, when the worker is gone, its
/// elements as they came and as numbers.
fn memory_of(argument: &Argument) -> u64 {
    let Argument::Tensor(tensor) = argument else { return 0 };
    let bytes = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
    let (elements, size, span) = (bytes(tensor.layout.count()), bytes(tensor.layout.dtype().size()), bytes(tensor.layout.bytes()));
    let worker = elements.saturating_mul(2 * size).saturating_add(span.saturating_mul(2));
    worker.max(elements.saturating_mul(size + 8))
}

/// The functions that a loaded kernel has, with what it states of their types.
pub fn described(answers: &[Answer]) -> impl Iterator<Item = (&str, Option<Signature>)> {
    let functions = answers.iter().find_map(|answer| match answer {
        Answer::Loaded { functions, .. } => Some(functions.as_slice()),
        _ => None,
    });
    functions.unwrap_or_default().iter().map(|function| {
        let signature = function.metadata.as_deref().and_then(Signature::of_metadata);
        (function.name.as_str(), signature)
    })
}

/// A tensor after a call.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorAfter {
    /// Which argument; none for what was returned.
    pub argument: Option<usize>,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its extents.
    pub shape: Vec<i64>,
    /// Whether an element differs from before; what was returned was not there before.
    pub changed: bool,
    /// Where somebody wrote beside its elements.
    pub trespass: Option<String>,
    /// Its elements; none for a type that Kiln cannot read.
    pub values: Option<Vec<f64>>,
}

impl TensorAfter {
    /// `argument 0`, or what was returned.
    pub fn name(&self) -> String {
        self.argument.map_or_else(|| "the returned tensor".to_owned(), |index| format!("argument {index}"))
    }
}

/// What a call gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The tensors among the arguments.
    pub tensors: Vec<TensorAfter>,
    /// What was returned, if that is a tensor.
    pub returned_tensor: Option<TensorAfter>,
    /// What was returned otherwise; none for what Kiln cannot read.
    pub returned: Option<Argument>,
    /// What was returned that Kiln cannot read, in words.
    pub unread: Option<String>,
}

impl Results {
    /// Where the function wrote that it had no business.
    pub fn trespass(&self) -> Option<String> {
        let found = self.tensors.iter().find_map(|tensor| Some((tensor.name(), tensor.trespass.as_ref()?)));
        found.map(|(name, place)| match place.as_str() {
            "between" => format!("it wrote between the elements of {name}, which is not contiguous"),
            place => format!("it wrote {place} the elements of {name}"),
        })
    }
}

/// Reads what the only call of a worker gave.
///
/// # Errors
/// When the worker's files cannot be read.
pub fn results(called: &Called, arguments: &[Argument]) -> Result<Results, CallError> {
    let answer = called.answers.iter().find_map(|answer| match answer {
        Answer::Called { returned, tensors, .. } => Some((returned, tensors)),
        _ => None,
    });
    let (returned, after) = answer.ok_or(CallError::Answers)?;
    let mut tensors = Vec::new();
    for after in after {
        let Some(Argument::Tensor(tensor)) = arguments.get(after.argument) else { return Err(CallError::Answers) };
        let dtype = tensor.layout.dtype();
        tensors.push(TensorAfter {
            argument: Some(after.argument),
            dtype,
            shape: tensor.layout.shape().to_vec(),
            changed: after.changed,
            trespass: after.trespass.clone(),
            values: numbers(dtype, &called.elements(&after.file, dtype, tensor.layout.shape())?),
        });
    }
    let (mut returned_tensor, mut unread) = (None, None);
    let returned = match returned {
        WireReturned::None => Some(Argument::None),
        WireReturned::Bool(value) => Some(Argument::Bool(*value)),
        WireReturned::Int(value) => Some(Argument::Int(*value)),
        WireReturned::Float(bits) => Some(Argument::Float(f64::from_bits(*bits))),
        WireReturned::Str(text) => Some(Argument::Str(text.clone())),
        WireReturned::Dtype((code, bits, lanes)) => Some(Argument::Dtype(Dtype { code: *code, bits: *bits, lanes: *lanes })),
        WireReturned::Device(wire) => Some(Argument::Device(place(*wire))),
        WireReturned::OtherDevice(kind, ordinal) => {
            unread = Some(format!("device {ordinal} of DLPack's type {kind}"));
            None
        }
        WireReturned::Other(kind) => {
            unread = Some(format!("an object of tvm-ffi's type {kind}"));
            None
        }
        WireReturned::Tensor { dtype: (code, bits, lanes), shape, file } => {
            let dtype = Dtype { code: *code, bits: *bits, lanes: *lanes };
            let values = numbers(dtype, &called.elements(file, dtype, shape)?);
            returned_tensor = Some(TensorAfter { argument: None, dtype, shape: shape.clone(), changed: true, trespass: None, values });
            None
        }
    };
    Ok(Results { tensors, returned_tensor, returned, unread })
}

/// What one call of a project's references came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// What is expected.
    AsExpected,
    /// It ended well, and it is what others are compared with.
    Alone,
    /// Something else than expected, in a sentence.
    Otherwise(String),
}

/// Makes one call of a project's references and compares. `other` gives the results of the same call by another backend's variant; none if
/// that is this one.
///
/// # Errors
/// As [`Loadable::call`]. That the kernel does otherwise than expected is what comes back, and so is that this one call cannot be made.
pub fn reference(
    kernel: &Loadable,
    session: &Session<'_>,
    wanted: &ReferenceCall,
    other: &dyn Fn() -> Result<Option<Results>, CallError>,
) -> Result<Verdict, CallError> {
    let made = made(kernel, session, wanted, other);
    // Other calls may well go.
    match made {
        Err(CallError::Reference { why, .. }) => Ok(Verdict::Otherwise(why)),
        Err(error @ (CallError::NoFunction { .. } | CallError::Memory { .. } | CallError::Answers | CallError::Read { .. })) => {
            Ok(Verdict::Otherwise(error.to_string()))
        }
        made => made,
    }
}

fn made(
    kernel: &Loadable,
    session: &Session<'_>,
    wanted: &ReferenceCall,
    other: &dyn Fn() -> Result<Option<Results>, CallError>,
) -> Result<Verdict, CallError> {
    let called = kernel.call(session, &wanted.function, &wanted.arguments, None)?;
    let verdict = |found: Option<String>| found.map_or(Verdict::AsExpected, Verdict::Otherwise);
    if let Expected::Error(text) = &wanted.expected {
        return Ok(verdict(match (&called.ended, called.problem()) {
            (Ended::Raised { message, .. }, _) if message.contains(text.as_str()) => None,
            (_, Some(problem)) => Some(format!("{problem}; expected an error with `{text}`")),
            (_, None) => Some(format!("it ended well; expected an error with `{text}`")),
        }));
    }
    if let Some(problem) = called.problem() {
        return Ok(Verdict::Otherwise(problem));
    }
    let results = results(&called, &wanted.arguments)?;
    if let Some(trespass) = results.trespass() {
        return Ok(Verdict::Otherwise(trespass));
    }
    let found = match &wanted.expected {
        Expected::Error(_) => None,
        Expected::Results { inputs, returned } => {
            let tensors = inputs.iter().filter_map(|(index, values)| {
                let tensor = results.tensors.iter().find(|tensor| tensor.argument == Some(*index))?;
                differs(tensor, None, values, wanted.tolerance)
            });
            tensors.into_iter().next().or_else(|| returned.as_ref().and_then(|returned| returns(&results, returned, wanted.tolerance)))
        }
        Expected::Backend(_) => {
            let Some(expected) = other()? else { return Ok(Verdict::Alone) };
            let pairs = results.tensors.iter().zip(&expected.tensors).chain(results.returned_tensor.iter().zip(&expected.returned_tensor));
            let tensors = pairs.filter_map(|(got, expected)| match &expected.values {
                Some(values) => differs(got, Some(&expected.shape), values, wanted.tolerance),
                None => Some(format!("{} has elements of `{}`, which cannot be compared", got.name(), expected.dtype)),
            });
            let value = match (&expected.returned, &results.returned) {
                // Each has its own.
                (Some(Argument::Device(_)), Some(Argument::Device(_))) => None,
                (Some(value), _) => returns(&results, &ExpectedReturn::Value(value.clone()), wanted.tolerance),
                (None, _) => expected.unread.as_ref().map(|what| format!("{what} was returned, which cannot be compared")),
            };
            let kinds = (results.returned_tensor.is_some() != expected.returned_tensor.is_some())
                .then(|| "one returned a tensor, and the other did not".to_owned());
            tensors.into_iter().next().or(value).or(kinds)
        }
    };
    Ok(verdict(found))
}

/// How a tensor differs from what is expected, if it does.
fn differs(got: &TensorAfter, shape: Option<&[i64]>, expected: &[f64], tolerance: Option<Tolerance>) -> Option<String> {
    let name = got.name();
    if let Some(shape) = shape.filter(|shape| *shape != got.shape) {
        return Some(format!("{name} has the shape {}, expected {}", extents(&got.shape), extents(shape)));
    }
    let Some(values) = &got.values else {
        return Some(format!("{name} has elements of `{}`, which cannot be compared", got.dtype));
    };
    let tolerance = tolerance.unwrap_or_else(|| Tolerance::of(got.dtype));
    if let Some((index, value)) = values.iter().enumerate().find(|(_, value)| !got.dtype.is_exact(**value)) {
        return Some(format!("{name}: element {index} is about {value}, and whole numbers beyond 2^53 are not compared"));
    }
    if let Some((index, value)) = expected.iter().enumerate().find(|(_, value)| !got.dtype.holds(**value)) {
        return Some(format!("{name}: element {index} is expected to be {value}, which `{}` cannot hold", got.dtype));
    }
    // Who expects 0.1 of halves expects the half that is nearest to it.
    let rounded = |value: &f64| got.dtype.encode(*value).and_then(|bytes| got.dtype.decode(&bytes)).unwrap_or(*value);
    let expected: Vec<f64> = expected.iter().map(rounded).collect();
    compare(values, &expected, tolerance).err().map(|why| format!("{name}: {why}"))
}

/// How what was returned differs from what is expected, if it does.
fn returns(results: &Results, expected: &ExpectedReturn, tolerance: Option<Tolerance>) -> Option<String> {
    match (expected, &results.returned, &results.returned_tensor) {
        (ExpectedReturn::Tensor { shape, values }, _, Some(tensor)) => differs(tensor, shape.as_deref(), values, tolerance),
        (ExpectedReturn::Tensor { .. }, _, None) => Some(format!("it returned {}, expected a tensor", shown(results))),
        (ExpectedReturn::Value(expected), Some(got), _) => {
            let number = |value: &Argument| match value {
                #[expect(clippy::cast_precision_loss, reason = "compared with a fraction")]
                Argument::Int(number) => Some(*number as f64),
                Argument::Float(number) => Some(*number),
                _ => None,
            };
            let is_float = |value: &Argument| matches!(value, Argument::Float(_));
            let is_beyond = |value: &Argument| matches!(value, Argument::Int(number) if number.unsigned_abs() > 1 << 53);
            let equal = match (number(got), number(expected)) {
                (Some(_), Some(_)) if is_float(got) != is_float(expected) && (is_beyond(got) || is_beyond(expected)) => {
                    let why = "whole numbers beyond 2^53 are not compared with fractions";
                    return Some(format!("it returned {got}, expected {expected}: {why}"));
                }
                (Some(got_number), Some(wanted)) if is_float(got) || is_float(expected) => {
                    // A whole number was not rounded.
                    let rounding = Tolerance::of(Dtype { code: if is_float(got) { 2 } else { 0 }, bits: 64, lanes: 1 });
                    compare(&[got_number], &[wanted], tolerance.unwrap_or(rounding)).is_ok()
                }
                _ => got == expected,
            };
            (!equal).then(|| format!("it returned {got}, expected {expected}"))
        }
        (ExpectedReturn::Value(expected), None, _) => Some(format!("it returned {}, expected {expected}", shown(results))),
    }
}

/// What was returned, for people.
pub fn shown(results: &Results) -> String {
    match (&results.returned, &results.returned_tensor) {
        (Some(value), _) => value.to_string(),
        (None, Some(tensor)) => format!("{}[{}]", tensor.dtype, extents(&tensor.shape)),
        (None, None) => results.unread.clone().unwrap_or_else(|| "an object of another type".to_owned()),
    }
}
