//! `tests/reference.toml`: what a project expects of its kernels.
//!
//! | key of `[[call]]` | type | meaning |
//! |---|---|---|
//! | `name` | string | for messages; the function's name by default |
//! | `function` | string | the function |
//! | `inputs` | list | its arguments, in order: numbers, texts, truth values, and tables |
//! | `expected` | list of tables | tensors after the call: `input` (an index), `values` (in the order of a contiguous tensor) |
//! | `returns` | value or table | what it returns: a number, a text, a truth value, or a table: `none = true`, a `dtype`, a `device`, or a tensor by its `values` and, if wanted, its `shape` |
//! | `error` | string | it must raise an error whose message has this text |
//! | `against` | string | the backend whose variant gives what is expected, of all tensors and of what is returned |
//! | `tolerance` | table | `absolute` and `relative`, how far apart fractions may be; by default what the type's rounding comes to |
//!
//! A table among the inputs is a tensor (`shape`, and `dtype`, `strides`, `fill`, `values`, `device`), an element type (`dtype`
//! alone), a device (`device` alone), or `{ none = true }`. `fill` is `"random"`, `"range"`, `"zeros"`, `"ones"` or a number.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use kiln_ffi::{Dtype, Layout, Place};
use kiln_format::{BackendName, LineColumn, SourceFile};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::CallError;
use super::argument::{Argument, Fill, TensorArgument, parse_fraction, parse_place};
use super::compare::Tolerance;
use super::fill::misfit;
use crate::small_file;

/// Where the file is, in a project.
pub const FILE: &str = "tests/reference.toml";

/// One call, and what is expected of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceCall {
    /// For messages.
    pub name: String,
    /// The function.
    pub function: String,
    /// Its arguments.
    pub arguments: Vec<Argument>,
    /// What is expected.
    pub expected: Expected,
    /// How far apart fractions may be.
    pub tolerance: Option<Tolerance>,
}

/// What is expected of a call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expected {
    /// These results.
    Results {
        /// Elements of tensors, by argument.
        inputs: Vec<(usize, Vec<f64>)>,
        /// What is returned; none if that does not count.
        returned: Option<ExpectedReturn>,
    },
    /// An error whose message has this text.
    Error(String),
    /// The results of another backend's variant.
    Backend(BackendName),
}

/// What a call is expected to return.
#[derive(Clone, Debug, PartialEq)]
pub enum ExpectedReturn {
    /// A value.
    Value(Argument),
    /// A tensor.
    Tensor {
        /// Its extents, if they count.
        shape: Option<Vec<i64>>,
        /// Its elements.
        values: Vec<f64>,
    },
}

/// A fault and where it stands in the text.
type Fault = (Option<Range<usize>>, String);
type Value<'a> = Spanned<DeValue<'a>>;

/// Reads the file of a project; none if there is none. `place` is where tensors lie that do not say so.
///
/// # Errors
/// When the file cannot be read, or says what cannot be meant.
pub fn read(project: &Path, place: Place) -> Result<Option<Vec<ReferenceCall>>, CallError> {
    let path = project.join(FILE);
    match small_file::read_text(&path) {
        Ok(text) => parse(&text, place).map(Some).map_err(|fault| located(&path, &text, fault)),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(CallError::Read { path, source }),
    }
}

/// Reads the file at `path`.
///
/// # Errors
/// As [`read`]; when there is none.
pub fn read_file(path: &Path, place: Place) -> Result<Vec<ReferenceCall>, CallError> {
    let text = small_file::read_text(path).map_err(|source| CallError::Read { path: path.to_owned(), source })?;
    parse(&text, place).map_err(|fault| located(path, &text, fault))
}

/// The project that a path is of: the nearest directory above with a `build.toml`, if it is near.
pub fn project_of(path: &Path) -> Option<PathBuf> {
    let path = fs::canonicalize(path).ok()?;
    // `build/<variant>/<library>` is three below.
    path.ancestors().take(4).find(|dir| dir.join(crate::project::BUILD_TOML).is_file()).map(Path::to_owned)
}

fn located(path: &Path, text: &str, (span, why): Fault) -> CallError {
    let place = span.map(|span| {
        let LineColumn { line, column } = SourceFile::new(path.display().to_string(), text).line_column(span.start);
        format!("line {line}, column {column}: ")
    });
    CallError::Reference { path: path.to_owned(), why: format!("{}{why}", place.unwrap_or_default()) }
}

/// Reads the text of the file.
fn parse(text: &str, place: Place) -> Result<Vec<ReferenceCall>, Fault> {
    let (table, errors) = DeTable::parse_recoverable(text);
    if let Some(error) = errors.first() {
        return Err((error.span(), error.message().replace('\n', ", ")));
    }
    let mut calls = Vec::new();
    for (key, value) in table.get_ref() {
        if key.get_ref() != "call" {
            return Err((Some(key.span()), format!("there is no table `{}`, only `[[call]]`", key.get_ref())));
        }
        for call in list(value, "call")? {
            calls.push(parse_call(call, place)?);
        }
    }
    if calls.is_empty() { Err((None, "it has no `[[call]]`".to_owned())) } else { Ok(calls) }
}

fn parse_call(value: &Value<'_>, place: Place) -> Result<ReferenceCall, Fault> {
    let fields = Fields::new(value, "a call", &["name", "function", "inputs", "expected", "returns", "error", "against", "tolerance"])?;
    let function = match fields.get("function") {
        Some(function) => text(function, "function")?,
        None => return Err((Some(value.span()), "a call needs a `function`".to_owned())),
    };
    let mut arguments = Vec::new();
    for input in fields.get("inputs").map_or(Ok([].as_slice()), |inputs| list(inputs, "inputs"))? {
        arguments.push(parse_input(input, place)?);
    }
    let tolerance = fields.get("tolerance").map(parse_tolerance).transpose()?;
    let mut inputs = Vec::new();
    for expected in fields.get("expected").map_or(Ok([].as_slice()), |expected| list(expected, "expected"))? {
        inputs.push(parse_expected(expected, &arguments)?);
    }
    let returned = fields.get("returns").map(parse_returns).transpose()?;
    let error = fields.get("error").map(|error| text(error, "error")).transpose()?;
    let against = fields.get("against").map(|name| Ok((name.span(), text(name, "against")?))).transpose()?;
    let has_results = !inputs.is_empty() || returned.is_some();
    let expected = match (error, against, has_results) {
        (Some(error), None, false) => Expected::Error(error),
        (None, Some((span, name)), false) => Expected::Backend(name.parse().map_err(|error| (Some(span), format!("`against`: {error}")))?),
        (None, None, true) => Expected::Results { inputs, returned },
        (None, None, false) => {
            let why = "nothing is expected of this call: it needs `expected`, `returns`, `error` or `against`";
            return Err((Some(value.span()), why.to_owned()));
        }
        _ => {
            let why =
                "a call has results (`expected`, `returns`), an `error`, or another backend's results (`against`), and only one of these";
            return Err((Some(value.span()), why.to_owned()));
        }
    };
    let name = fields.get("name").map(|name| text(name, "name")).transpose()?.unwrap_or_else(|| function.clone());
    Ok(ReferenceCall { name, function, arguments, expected, tolerance })
}

fn parse_input(value: &Value<'_>, place: Place) -> Result<Argument, Fault> {
    if let Some(scalar) = scalar(value)? {
        return Ok(scalar);
    }
    let fields = Fields::new(value, "an input", &["shape", "dtype", "strides", "fill", "values", "device", "none"])?;
    let dtype = match fields.get("dtype") {
        None => None,
        Some(name) => {
            let parsed = text(name, "dtype")?.parse::<Dtype>();
            Some(parsed.map_err(|error| (Some(name.span()), format!("{error}: {}", error.hint())))?)
        }
    };
    let device = match fields.get("device") {
        None => None,
        Some(name) => Some(parse_place(&text(name, "device")?).map_err(|error| (Some(name.span()), error.to_string()))?),
    };
    let others = |names: &[&str]| names.iter().any(|name| fields.get(name).is_some());
    let Some(shape) = fields.get("shape") else {
        return match (dtype, device) {
            (Some(dtype), None) if !others(&["strides", "fill", "values", "none"]) => Ok(Argument::Dtype(dtype)),
            (None, Some(device)) if !others(&["strides", "fill", "values", "none"]) => Ok(Argument::Device(device)),
            (None, None) if !others(&["strides", "fill", "values"]) => match fields.get("none") {
                Some(none) => nothing(none).map(|()| Argument::None),
                None => Err((Some(value.span()), "a tensor needs a `shape`".to_owned())),
            },
            _ => Err((Some(value.span()), "a tensor needs a `shape`".to_owned())),
        };
    };
    if others(&["none"]) {
        return Err((Some(value.span()), "a tensor is not none".to_owned()));
    }
    let extents = integers(shape, "shape")?;
    let dtype = dtype.unwrap_or(Dtype::FLOAT32);
    let layout = match fields.get("strides") {
        None => Layout::contiguous(dtype, &extents),
        Some(strides) => Layout::strided(dtype, &extents, &integers(strides, "strides")?),
    };
    let layout = layout.map_err(|error| (Some(value.span()), error.to_string()))?;
    let fill = match (fields.get("fill"), fields.get("values")) {
        (None, None) => Fill::Random,
        (Some(fill), None) => match fill.get_ref() {
            DeValue::String(word) => match word.as_ref() {
                "random" => Fill::Random,
                "range" => Fill::Range,
                "zeros" => Fill::Value(0.0),
                "ones" => Fill::Value(1.0),
                other => {
                    return Err((Some(fill.span()), format!("`fill` is `{other}`: it is a number, or one of random, range, zeros, ones")));
                }
            },
            _ => Fill::Value(element(fill, "fill", dtype)?),
        },
        (None, Some(values)) => {
            let numbers = elements(values, "values", dtype)?;
            fit(values, &layout, &numbers)?;
            Fill::Values(numbers)
        }
        (Some(_), Some(values)) => return Err((Some(values.span()), "a tensor has `fill` or `values`, not both".to_owned())),
    };
    // Numbers were held against the type where they stand: this is about a range that is too long.
    if let Some(last) = misfit(&layout, &fill) {
        let span = fields.get("fill").unwrap_or(value).span();
        return Err((Some(span), format!("`fill` comes to {last}, which `{dtype}` cannot hold")));
    }
    Ok(Argument::Tensor(TensorArgument { layout, fill, place: device.unwrap_or(place) }))
}

fn parse_expected(value: &Value<'_>, arguments: &[Argument]) -> Result<(usize, Vec<f64>), Fault> {
    let fields = Fields::new(value, "what is expected", &["input", "values"])?;
    let (Some(input), Some(values)) = (fields.get("input"), fields.get("values")) else {
        return Err((Some(value.span()), "what is expected of a tensor needs `input` and `values`".to_owned()));
    };
    let index = integer(input, "input")?;
    let position = usize::try_from(index).ok();
    let tensor = position.and_then(|position| arguments.get(position));
    let (Some(position), Some(Argument::Tensor(tensor))) = (position, tensor) else {
        return Err((Some(input.span()), format!("input {index} is no tensor of this call")));
    };
    let numbers = elements(values, "values", tensor.layout.dtype())?;
    fit(values, &tensor.layout, &numbers)?;
    Ok((position, numbers))
}

/// Sees that a tensor can have these elements.
fn fit(value: &Value<'_>, layout: &Layout, numbers: &[f64]) -> Result<(), Fault> {
    if numbers.len() != layout.count() {
        return Err((Some(value.span()), format!("there are {} values for {} elements", numbers.len(), layout.count())));
    }
    // Of numbers that are none, each would differ from itself.
    let bits: Vec<u64> = numbers.iter().map(|number| number.to_bits()).collect();
    match layout.contradiction(&bits) {
        None => Ok(()),
        Some((one, other)) => {
            let why = format!("elements {one} and {other} lie in the same place by the tensor's `strides`, and have different values");
            Err((Some(value.span()), why))
        }
    }
}

/// Sees that it is `none = true`.
fn nothing(value: &Value<'_>) -> Result<(), Fault> {
    match value.get_ref() {
        DeValue::Boolean(true) => Ok(()),
        DeValue::Boolean(false) => Err((Some(value.span()), "`none` is always `true`".to_owned())),
        _ => wrong(value, "none", "`true`"),
    }
}

fn parse_returns(value: &Value<'_>) -> Result<ExpectedReturn, Fault> {
    if let Some(scalar) = scalar(value)? {
        return Ok(ExpectedReturn::Value(scalar));
    }
    let fields = Fields::new(value, "what is returned", &["shape", "values", "dtype", "device", "none"])?;
    if let Some(values) = fields.get("values") {
        if let Some(other) = ["dtype", "device", "none"].iter().find_map(|name| fields.get(name)) {
            return Err((Some(other.span()), "of a returned tensor, `shape` and `values` are compared".to_owned()));
        }
        let shape = fields.get("shape").map(|shape| integers(shape, "shape")).transpose()?;
        return Ok(ExpectedReturn::Tensor { shape, values: numbers(values, "values")? });
    }
    if fields.get("shape").is_some() {
        return Err((Some(value.span()), "a returned tensor needs `values`".to_owned()));
    }
    // What is no tensor is written as among the inputs.
    parse_input(value, Place::Host).map(ExpectedReturn::Value)
}

fn parse_tolerance(value: &Value<'_>) -> Result<Tolerance, Fault> {
    let fields = Fields::new(value, "a tolerance", &["absolute", "relative"])?;
    let part = |name: &str| {
        let Some(value) = fields.get(name) else { return Ok(0.0) };
        let part = number(value, name)?;
        if part >= 0.0 && part.is_finite() { Ok(part) } else { Err((Some(value.span()), format!("`{name}` is {part}"))) }
    };
    Ok(Tolerance { absolute: part("absolute")?, relative: part("relative")? })
}

/// A table of known keys.
struct Fields<'a, 'i> {
    table: &'a DeTable<'i>,
}

impl<'a, 'i> Fields<'a, 'i> {
    fn new(value: &'a Value<'i>, what: &str, known: &[&str]) -> Result<Self, Fault> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err((Some(value.span()), format!("{what} is a table, not {}", value.get_ref().type_str())));
        };
        match table.keys().find(|key| !known.contains(&key.get_ref().as_ref())) {
            None => Ok(Self { table }),
            Some(key) => Err((Some(key.span()), format!("{what} has no `{}`: its keys are {}", key.get_ref(), known.join(", ")))),
        }
    }

    fn get(&self, name: &str) -> Option<&'a Value<'i>> {
        self.table.iter().find(|(key, _)| key.get_ref() == name).map(|(_, value)| value)
    }
}

fn wrong<T>(value: &Value<'_>, name: &str, wanted: &str) -> Result<T, Fault> {
    Err((Some(value.span()), format!("`{name}` must be {wanted}, not {}", value.get_ref().type_str())))
}

fn list<'a, 'i>(value: &'a Value<'i>, name: &str) -> Result<&'a [Value<'i>], Fault> {
    match value.get_ref() {
        DeValue::Array(list) => Ok(list.as_ref()),
        _ => wrong(value, name, "a list"),
    }
}

fn text(value: &Value<'_>, name: &str) -> Result<String, Fault> {
    match value.get_ref() {
        DeValue::String(text) if !text.is_empty() => Ok(text.clone().into_owned()),
        DeValue::String(_) => Err((Some(value.span()), format!("`{name}` is empty"))),
        _ => wrong(value, name, "a string"),
    }
}

fn integer(value: &Value<'_>, name: &str) -> Result<i64, Fault> {
    match value.get_ref() {
        DeValue::Integer(digits) => i64::from_str_radix(digits.as_str(), digits.radix())
            .map_err(|_| (Some(value.span()), format!("`{name}` has more than 64 bits"))),
        _ => wrong(value, name, "a whole number"),
    }
}

fn number(value: &Value<'_>, name: &str) -> Result<f64, Fault> {
    match value.get_ref() {
        #[expect(clippy::cast_precision_loss, reason = "smaller ones have as many digits")]
        DeValue::Integer(_) => match integer(value, name)? {
            number if number.unsigned_abs() > 1 << 53 => Err((Some(value.span()), format!("`{name}` has a number beyond 2^53"))),
            number => Ok(number as f64),
        },
        DeValue::Float(digits) => parse_fraction(digits.as_str()).map_err(|why| (Some(value.span()), format!("`{name}`: {why}"))),
        _ => wrong(value, name, "a number"),
    }
}

fn integers(value: &Value<'_>, name: &str) -> Result<Vec<i64>, Fault> {
    list(value, name)?.iter().map(|entry| integer(entry, name)).collect()
}

fn numbers(value: &Value<'_>, name: &str) -> Result<Vec<f64>, Fault> {
    list(value, name)?.iter().map(|entry| truth(entry).map_or_else(|| number(entry, name), Ok)).collect()
}

/// The elements of a tensor of this type.
fn elements(value: &Value<'_>, name: &str, dtype: Dtype) -> Result<Vec<f64>, Fault> {
    list(value, name)?.iter().map(|entry| truth(entry).map_or_else(|| element(entry, name, dtype), Ok)).collect()
}

fn truth(value: &Value<'_>) -> Option<f64> {
    match value.get_ref() {
        DeValue::Boolean(value) => Some(f64::from(u8::from(*value))),
        _ => None,
    }
}

/// A number that an element of this type can be.
fn element(value: &Value<'_>, name: &str, dtype: Dtype) -> Result<f64, Fault> {
    let number = number(value, name)?;
    // A fraction may be written for a whole number, but has no digits for all of them.
    if !dtype.is_float() && number.abs() > 2_f64.powi(53) {
        return Err((Some(value.span()), format!("`{name}` has a number beyond 2^53")));
    }
    if dtype.holds(number) { Ok(number) } else { Err((Some(value.span()), format!("`{name}` has {number}, which `{dtype}` cannot hold"))) }
}

/// A value that is written as itself.
fn scalar(value: &Value<'_>) -> Result<Option<Argument>, Fault> {
    Ok(Some(match value.get_ref() {
        DeValue::Boolean(value) => Argument::Bool(*value),
        DeValue::Integer(_) => Argument::Int(integer(value, "a number")?),
        DeValue::Float(_) => Argument::Float(number(value, "a number")?),
        DeValue::String(text) => Argument::Str(text.clone().into_owned()),
        DeValue::Table(_) => return Ok(None),
        other => return Err((Some(value.span()), format!("{} is neither a value nor a table", other.type_str()))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "\
[[call]]
name = \"a row\"
function = \"relu\"
inputs = [{ shape = [2], fill = \"zeros\" }, { shape = [2], dtype = \"half\", values = [-1, 2.5], strides = [3], device = \"cuda\" }, 3, 1e-5, true, \"t\"]
expected = [{ input = 0, values = [0, 2.5] }]
returns = { values = [true, 0x10, inf] }
tolerance = { relative = 1e-3 }

[[call]]
function = \"f\"
inputs = [{ dtype = \"int8\" }, { device = \"cpu\" }, { none = true }]
error = \"must be\"

[[call]]
function = \"g\"
against = \"cpu\"
";

    fn fault(text: &str) -> String {
        match parse(text, Place::Host) {
            Ok(calls) => format!("{calls:?}"),
            Err(fault) => located(Path::new("r.toml"), text, fault).to_string(),
        }
    }

    #[test]
    fn all_of_it_is_read() {
        let calls = parse(ONE, Place::Host).unwrap();
        let shown: Vec<String> = calls[0].arguments.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["float32[2]", "float16[2] by 3 on cuda:0", "3", "1e-5", "true", "\"t\""]);
        let Expected::Results { inputs, returned: Some(ExpectedReturn::Tensor { shape: None, values }) } = &calls[0].expected else {
            panic!("{:?}", calls[0])
        };
        assert_eq!((inputs.as_slice(), values.as_slice()), ([(0, vec![0.0, 2.5])].as_slice(), [1.0, 16.0, f64::INFINITY].as_slice()));
        assert_eq!((calls[0].name.as_str(), calls[1].name.as_str()), ("a row", "f"));
        assert_eq!(calls[0].tolerance, Some(Tolerance { absolute: 0.0, relative: 1e-3 }));
        assert_eq!(calls[1].expected, Expected::Error("must be".to_owned()));
        assert_eq!(calls[2].expected, Expected::Backend(BackendName::Cpu));
        let shared = "[[call]]\nfunction = \"f\"\ninputs = [{ shape = [2, 2], strides = [0, 1], values = [1, nan, 1, nan] }]\n";
        for (returns, value) in [
            ("{ none = true }", Argument::None),
            ("{ dtype = \"bf16\" }", Argument::Dtype("bfloat16".parse().unwrap())),
            ("{ device = \"cuda:1\" }", Argument::Device(Place::Cuda { ordinal: 1 })),
        ] {
            let calls = parse(&format!("{shared}returns = {returns}\n"), Place::Host).unwrap();
            let expected = Expected::Results { inputs: Vec::new(), returned: Some(ExpectedReturn::Value(value)) };
            assert_eq!(calls[0].expected, expected, "{returns}");
        }
    }

    #[test]
    fn faults_have_their_place() {
        for (text, said) in [
            ("", "`r.toml`: it has no `[[call]]`"),
            ("[[call]]\nfunction = ", "`r.toml`: line 2, column 12: "),
            ("[[calls]]\n", "line 1, column 3: there is no table `calls`"),
            ("[[call]]\nfunktion = \"f\"", "line 2, column 1: a call has no `funktion`"),
            ("[[call]]\nerror = \"x\"", "a call needs a `function`"),
            ("[[call]]\nfunction = \"f\"", "nothing is expected of this call"),
            ("[[call]]\nfunction = \"f\"\nerror = \"x\"\nreturns = 1", "only one of these"),
            ("[[call]]\nfunction = \"f\"\nagainst = \"abacus\"", "line 3, column 11: `against`: "),
            ("[[call]]\nfunction = \"f\"\ninputs = [{ shape = [2], values = [1] }]", "column 35: there are 1 values for 2 elements"),
            ("[[call]]\nfunction = \"f\"\ninputs = [{ shape = [2], fill = \"one\" }]", "`fill` is `one`"),
            ("[[call]]\nfunction = \"f\"\ninputs = [{ values = [1] }]", "a tensor needs a `shape`"),
            ("[[call]]\nfunction = \"f\"\ninputs = [[1]]", "array is neither a value nor a table"),
            ("[[call]]\nfunction = \"f\"\ninputs = [1]\nexpected = [{ input = 0, values = [] }]", "input 0 is no tensor of this call"),
            ("[[call]]\nfunction = \"f\"\ninputs = [{ shape = [-1] }]\nerror = \"x\"", "no negative extents"),
            ("[[call]]\nfunction = \"f\"\ninputs = [99999999999999999999]\nerror = \"x\"", "more than 64 bits"),
            (
                "[[call]]\nfunction = \"f\"\nreturns = { values = [9007199254740993] }",
                "line 3, column 23: `values` has a number beyond 2^53",
            ),
            (
                "[[call]]\nfunction = \"f\"\ninputs = [{ shape = [2], dtype = \"uint8\" }]\nexpected = [{ input = 0, values = [1, 256] }]",
                "line 4, column 39: `values` has 256, which `uint8` cannot hold",
            ),
            (
                "[[call]]\nfunction = \"f\"\ninputs = [{ shape = [2], dtype = \"int32\", values = [1, 2.5] }]",
                "line 3, column 56: `values` has 2.5, which `int32` cannot hold",
            ),
            (
                "[[call]]\nfunction = \"f\"\ninputs = [{ shape = [2], dtype = \"half\", fill = 65520 }]",
                "line 3, column 49: `fill` has 65520, which `float16` cannot hold",
            ),
            (
                "[[call]]\nfunction = \"f\"\ninputs = [{ shape = [129], dtype = \"int8\", fill = \"range\" }]",
                "line 3, column 51: `fill` comes to 128, which `int8` cannot hold",
            ),
            (
                "[[call]]\nfunction = \"f\"\ninputs = [{ shape = [1], dtype = \"int64\", values = [9007199254740994.0] }]",
                "line 3, column 53: `values` has a number beyond 2^53",
            ),
            ("[[call]]\nfunction = \"f\"\nreturns = { shape = [1] }", "a returned tensor needs `values`"),
            ("[[call]]\nfunction = \"f\"\nreturns = { values = [1], none = true }", "of a returned tensor, `shape` and `values`"),
            ("[[call]]\nfunction = \"f\"\nreturns = { dtype = \"half\", device = \"cpu\" }", "a tensor needs a `shape`"),
            ("[[call]]\nfunction = \"f\"\nreturns = {}", "a tensor needs a `shape`"),
            ("[[call]]\nfunction = \"f\"\nreturns = { none = false }", "line 3, column 20: `none` is always `true`"),
            ("[[call]]\nfunction = \"f\"\nreturns = 1\ninputs = [{ none = false }]", "line 4, column 20: `none` is always `true`"),
            ("[[call]]\nfunction = \"f\"\nreturns = { none = 1 }", "`none` must be `true`, not integer"),
            ("[[call]]\nfunction = \"f\"\nreturns = 1e400", "`a number`: it is larger than numbers of 64 bits can be"),
            ("[[call]]\nfunction = \"f\"\nreturns = { values = [-1e400] }", "`values`: it is larger than numbers of 64 bits can be"),
            (
                "[[call]]\nfunction = \"f\"\ninputs = [{ shape = [2, 2], strides = [0, 1], values = [1, 2, 3, 2] }]\nreturns = 1",
                "line 3, column 56: elements 0 and 2 lie in the same place by the tensor's `strides`, and have different values",
            ),
            (
                "[[call]]\nfunction = \"f\"\ninputs = [{ shape = [2], strides = [0] }]\nexpected = [{ input = 0, values = [1, 2] }]",
                "line 4, column 35: elements 0 and 1 lie in the same place",
            ),
            ("[[call]]\nfunction = \"f\"\nreturns = 1\ntolerance = { absolute = -1 }", "`absolute` is -1"),
            ("[[call]]\nfunction = \"f\"\nreturns = 1\ntolerance = { absolute = nan }", "`absolute` is NaN"),
            ("[[call]]\nfunction = \"f\"\nreturns = 1\ntolerance = { relative = inf }", "`relative` is inf"),
            (
                "[[call]]\nfunction = \"f\"\nreturns = 1\ntolerance = { relativ = 1 }",
                "a tolerance has no `relativ`: its keys are absolute, relative",
            ),
            ("[[call]]\nfunction = \"f\"\nreturns = 1\ntolerance = 1", "a tolerance is a table, not integer"),
            ("[[call]]\nfunction = \"f\"\nreturns = 1\ninputs = [{ shape = [1], typ = 1 }]", "line 4, column 26: an input has no `typ`"),
            (
                "[[call]]\nfunction = \"f\"\nreturns = 1\ninputs = [{ shape = [1], dtype = \"float8\" }]",
                "`float8` is no dtype: the types are",
            ),
            ("[[call]]\nfunction = \"f\"\nreturns = 1\ninputs = [{ shape = [1], fill = true }]", "`fill` must be a number, not boolean"),
            ("[[call]]\nfunction = \"\"\nreturns = 1", "`function` is empty"),
            ("call = 1", "`call` must be a list, not integer"),
            ("[[call]]\nfunction = \"f\"\nfunction = \"g\"\nreturns = 1", "duplicate key"),
            ("[[call]]\nfunction = 3\nreturns = 1", "`function` must be a string, not integer"),
        ] {
            let told = fault(text);
            assert!(told.contains(said), "{text}: {told}");
        }
    }
}
