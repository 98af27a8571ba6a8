//! Arguments of calls, as people write them.

use std::fmt;

use kiln_ffi::{Dtype, Layout, Place};

use super::CallError;
use super::fill::misfit;

/// The elements of a tensor before a call.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Fill {
    /// Numbers between -1 and 1, small whole numbers for types without fractions: the same in every run.
    #[default]
    Random,
    /// 0, 1, 2 and so on.
    Range,
    /// One number everywhere.
    Value(f64),
    /// These, in the order of a contiguous tensor.
    Values(Vec<f64>),
}

/// A tensor to be made.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorArgument {
    /// Shape, strides and element type.
    pub layout: Layout,
    /// What it holds.
    pub fill: Fill,
    /// Where it lies.
    pub place: Place,
}

/// An argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Str(String),
    /// An element type.
    Dtype(Dtype),
    /// A device.
    Device(Place),
    /// A tensor.
    Tensor(TensorArgument),
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Str(text) => write!(f, "{text:?}"),
            Self::Dtype(dtype) => write!(f, "{dtype}"),
            Self::Device(place) => f.write_str(&place_name(*place)),
            Self::Tensor(tensor) => {
                let layout = &tensor.layout;
                write!(f, "{}[{}]", layout.dtype(), extents(layout.shape()))?;
                if !layout.is_contiguous() {
                    write!(f, " by {}", extents(layout.strides()))?;
                }
                if tensor.place == Place::Host { Ok(()) } else { write!(f, " on {}", place_name(tensor.place)) }
            }
        }
    }
}

/// `2x3`.
pub fn extents(numbers: &[i64]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join("x")
}

/// `cpu`, `cuda:0`.
pub fn place_name(place: Place) -> String {
    match place {
        Place::Host => "cpu".to_owned(),
        Place::Cuda { ordinal } => format!("cuda:{ordinal}"),
    }
}

/// Reads `2x3`, or `2,3`; an empty text is the shape of a tensor with one element and no extents.
///
/// # Errors
/// When it is no list of numbers.
pub fn parse_extents(text: &str) -> Result<Vec<i64>, CallError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |_| CallError::argument(text, "it must be extents, such as `4x8`");
    text.split(['x', ',']).map(|number| number.trim().parse::<i64>().map_err(wrong)).collect()
}

/// Reads `cpu`, `cuda` or `cuda:1`.
///
/// # Errors
/// When it is another device.
pub fn parse_place(text: &str) -> Result<Place, CallError> {
    let wrong = || CallError::argument(text, "it must be `cpu`, `cuda` or `cuda:N`: tensors of other devices cannot be made yet");
    match text.split_once(':') {
        None if text == "cpu" => Ok(Place::Host),
        None if text == "cuda" => Ok(Place::Cuda { ordinal: 0 }),
        Some(("cpu", "0")) => Ok(Place::Host),
        Some(("cuda", ordinal)) => {
            let ordinal = ordinal.parse::<i32>().ok().filter(|ordinal| *ordinal >= 0).ok_or_else(wrong)?;
            Ok(Place::Cuda { ordinal })
        }
        _ => Err(wrong()),
    }
}

/// What tensors are like that do not say so themselves.
#[derive(Clone, Debug, PartialEq)]
pub struct Defaults {
    /// Shapes: that of the first tensor and so on; the last one counts for all that follow.
    pub shapes: Vec<Vec<i64>>,
    /// Element types, likewise.
    pub dtypes: Vec<Dtype>,
    /// Where tensors lie.
    pub place: Place,
}

impl Defaults {
    /// The shape of tensors when nobody names one.
    const SHAPE: [i64; 2] = [8, 16];

    /// Sees that all that is said here is said of a tensor.
    ///
    /// # Errors
    /// When a shape or an element type is left over.
    pub fn describe(&self, tensors: Tensors) -> Result<(), CallError> {
        // The first that nobody takes: all of them, or those behind the last tensor.
        let left = |is_used: bool| if is_used { tensors.count } else { 0 };
        let shape = self.shapes.get(left(tensors.shape)).map(|shape| format!("--shape {}", extents(shape)));
        let dtype = || self.dtypes.get(left(tensors.dtype)).map(|dtype| format!("--dtype {dtype}"));
        match shape.or_else(dtype) {
            None => Ok(()),
            Some(option) => Err(CallError::argument(&option, "there is no tensor that it could describe")),
        }
    }

    /// The tensor at `position` among the tensors.
    ///
    /// # Errors
    /// When there is no such tensor.
    pub fn tensor(&self, position: usize) -> Result<TensorArgument, CallError> {
        let shape = nth(&self.shapes, position).cloned().unwrap_or_else(|| Self::SHAPE.to_vec());
        let dtype = nth(&self.dtypes, position).copied().unwrap_or(Dtype::FLOAT32);
        let layout = Layout::contiguous(dtype, &shape).map_err(|error| CallError::argument(&extents(&shape), &error.to_string()))?;
        Ok(TensorArgument { layout, fill: Fill::Random, place: self.place })
    }
}

/// The tensors of a call, as far as [`Defaults`] are for them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tensors {
    /// How many there are.
    pub count: usize,
    /// Whether one of them does not say its own shape.
    pub shape: bool,
    /// Whether one of them does not say its own element type.
    pub dtype: bool,
}

/// The entry at `position`, or the last one.
fn nth<T>(list: &[T], position: usize) -> Option<&T> {
    list.get(position).or_else(|| list.last())
}

/// Reads the arguments of a command line, in order.
///
/// A number, `true`, `false`, `none`; `int:1`, `float:1`, `str:TEXT`, `dtype:float16`, `device:cpu`; `tensor`, or
/// `tensor:SHAPE[:DTYPE][:WORD]..`, where a word is `zeros`, `ones`, `range`, `random`, `=NUMBER`, `strides=1x4` or a device.
///
/// # Errors
/// When one cannot be read, or `defaults` say more than there are tensors for.
pub fn parse_arguments(texts: &[String], defaults: &Defaults) -> Result<Vec<Argument>, CallError> {
    let mut tensors = Tensors::default();
    let arguments = texts.iter().map(|text| parse_argument(text, defaults, &mut tensors)).collect::<Result<_, _>>()?;
    defaults.describe(tensors)?;
    Ok(arguments)
}

fn parse_argument(text: &str, defaults: &Defaults, tensors: &mut Tensors) -> Result<Argument, CallError> {
    let wrong = |why: &str| CallError::argument(text, why);
    let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
    match (kind, rest) {
        ("tensor", rest) => parse_tensor(text, rest, defaults, tensors).map(Argument::Tensor),
        ("str", Some(rest)) => Ok(Argument::Str(rest.to_owned())),
        ("int", Some(rest)) => rest.parse().map(Argument::Int).map_err(|_| wrong("it must be a whole number of 64 bits")),
        ("float", Some(rest)) => parse_fraction(rest).map(Argument::Float).map_err(wrong),
        ("dtype", Some(rest)) => rest.parse().map(Argument::Dtype).map_err(|error: kiln_ffi::DtypeError| wrong(&error.hint())),
        ("device", Some(rest)) => parse_place(rest).map(Argument::Device),
        ("none", None) => Ok(Argument::None),
        ("true", None) => Ok(Argument::Bool(true)),
        ("false", None) => Ok(Argument::Bool(false)),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Ok(Argument::Int(number)),
            (_, Ok(_)) if text.trim_start_matches(['-', '+']).bytes().all(|byte| byte.is_ascii_digit()) => {
                Err(wrong("whole numbers have 64 bits; `float:` before it makes it a fraction"))
            }
            (_, Ok(_)) => parse_fraction(text).map(Argument::Float).map_err(wrong),
            _ => Err(wrong("a text is written `str:TEXT`, a tensor `tensor:4x8:float32`")),
        },
    }
}

/// Reads a number that may have a fraction.
///
/// # Errors
/// With what it must be, when it is none, or is too large.
pub fn parse_fraction(text: &str) -> Result<f64, &'static str> {
    match text.parse::<f64>() {
        Ok(number) if number.is_infinite() && text.bytes().any(|byte| byte.is_ascii_digit()) => {
            Err("it is larger than numbers of 64 bits can be: an infinity is written `inf`")
        }
        Ok(number) => Ok(number),
        Err(_) => Err("it must be a number"),
    }
}

fn parse_tensor(text: &str, words: Option<&str>, defaults: &Defaults, tensors: &mut Tensors) -> Result<TensorArgument, CallError> {
    let wrong = |why: &str| CallError::argument(text, why);
    let default = defaults.tensor(tensors.count)?;
    tensors.count += 1;
    let Some(words) = words else {
        (tensors.shape, tensors.dtype) = (true, true);
        return Ok(default);
    };
    let mut words = words.split(':').peekable();
    let shape = parse_extents(words.next().unwrap_or_default())?;
    let (mut dtype, mut fill, mut place, mut strides) = (None, None, None, None);
    while let Some(word) = words.next() {
        let is_new = match word {
            "random" => fill.replace(Fill::Random).is_none(),
            "range" => fill.replace(Fill::Range).is_none(),
            "zeros" => fill.replace(Fill::Value(0.0)).is_none(),
            "ones" => fill.replace(Fill::Value(1.0)).is_none(),
            "cpu" => place.replace(Place::Host).is_none(),
            "cuda" => {
                let ordinal = words.peek().and_then(|word| word.parse::<i32>().ok()).filter(|ordinal| *ordinal >= 0);
                if ordinal.is_some() {
                    words.next();
                }
                place.replace(Place::Cuda { ordinal: ordinal.unwrap_or(0) }).is_none()
            }
            _ => match (word.strip_prefix('='), word.strip_prefix("strides="), word.parse::<Dtype>()) {
                (Some(number), ..) => {
                    let number = parse_fraction(number).map_err(|why| wrong(&format!("`{word}`: {why}")))?;
                    fill.replace(Fill::Value(number)).is_none()
                }
                (_, Some(list), _) => strides.replace(parse_extents(list)?).is_none(),
                (.., Ok(named)) => dtype.replace(named).is_none(),
                _ => {
                    return Err(wrong(&format!(
                        "`{word}` is neither a dtype, a device, `zeros`, `ones`, `range`, `random`, `=NUMBER` nor `strides=..`"
                    )));
                }
            },
        };
        if !is_new {
            return Err(wrong(&format!("`{word}` says again what was said before it")));
        }
    }
    tensors.dtype |= dtype.is_none();
    let (dtype, fill, place) = (dtype.unwrap_or(default.layout.dtype()), fill.unwrap_or_default(), place.unwrap_or(default.place));
    let layout = match strides {
        Some(strides) => Layout::strided(dtype, &shape, &strides),
        None => Layout::contiguous(dtype, &shape),
    };
    let layout = layout.map_err(|error| wrong(&error.to_string()))?;
    match misfit(&layout, &fill) {
        Some(value) => Err(wrong(&format!("`{dtype}` cannot hold {value}"))),
        None => Ok(TensorArgument { layout, fill, place }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defaults(shapes: &[&[i64]]) -> Defaults {
        Defaults { shapes: shapes.iter().map(|shape| shape.to_vec()).collect(), dtypes: Vec::new(), place: Place::Host }
    }

    fn shown(text: &str) -> String {
        let defaults = if text == "tensor" { defaults(&[&[2, 3]]) } else { defaults(&[]) };
        match parse_arguments(&[text.to_owned()], &defaults) {
            Ok(arguments) => arguments[0].to_string(),
            Err(error) => format!("{error}"),
        }
    }

    #[test]
    fn arguments_are_read_as_written() {
        for (text, read) in [
            ("3", "3"),
            ("-3", "-3"),
            ("float:3", "3.0"),
            ("1e-5", "1e-5"),
            ("nan", "NaN"),
            ("true", "true"),
            ("none", "none"),
            ("str:3:4", "\"3:4\""),
            ("str:", "\"\""),
            ("dtype:bf16", "bfloat16"),
            ("device:cuda:1", "cuda:1"),
            ("tensor", "float32[2x3]"),
            ("tensor:", "float32[]"),
            ("tensor:0x4", "float32[0x4]"),
            ("tensor:4,2:half:zeros", "float16[4x2]"),
            ("tensor:2x2:strides=1x2", "float32[2x2] by 1x2"),
            ("tensor:2:int8:=7:cuda:1", "int8[2] on cuda:1"),
            ("tensor:2:cuda:ones", "float32[2] on cuda:0"),
            ("tensor:2:ones:half", "float16[2]"),
            ("tensor:4294967296x4294967296x0", "float32[4294967296x4294967296x0]"),
            ("9223372036854775807", "9223372036854775807"),
            ("float:9223372036854775808", "9.223372036854776e18"),
            ("-inf", "-inf"),
        ] {
            assert_eq!(shown(text), read, "{text}");
        }
        for (text, why) in [
            ("", "a text is written `str:TEXT`"),
            ("hello", "a text is written `str:TEXT`"),
            ("tensor:2:zeroes", "`zeroes` is neither a dtype"),
            ("tensor:2x", "it must be extents"),
            ("tensor:-2", "no negative extents"),
            ("tensor:2:uint8:=256", "`uint8` cannot hold 256"),
            ("tensor:=2.5:int8:2", "it must be extents"),
            ("tensor:2:int8:=2.5", "`int8` cannot hold 2.5"),
            ("tensor:200:int8:range", "`int8` cannot hold 199"),
            ("tensor:2:half:=1e5", "`float16` cannot hold 100000"),
            ("tensor:2:strides=1x1", "2 strides for 1 extents"),
            ("int:99999999999999999999", "64 bits"),
            ("dtype:float8", "the types are"),
            ("device:xpu", "it must be `cpu`"),
            ("device:cuda:-1", "it must be `cpu`"),
            ("tensor:99999999999999x99999999999", "too large"),
            ("tensor:2:cuda:-1", "`-1` is neither a dtype"),
            ("tensor:4x8:float32:float16", "`float16` says again what was said before it"),
            ("tensor:4x8:zeros:ones", "`ones` says again what"),
            ("tensor:4x8:=1:random", "`random` says again what"),
            ("tensor:4:cpu:cuda:1", "`cuda` says again what"),
            ("tensor:4:strides=1:strides=1", "`strides=1` says again what"),
            ("9223372036854775808", "whole numbers have 64 bits"),
            ("-9223372036854775809", "whole numbers have 64 bits"),
            ("1e400", "an infinity is written `inf`"),
            ("float:-1e400", "an infinity is written `inf`"),
            ("tensor:2:=1e400", "`=1e400`: it is larger than"),
            ("tensor:2:=one", "`=one`: it must be a number"),
        ] {
            assert!(shown(text).contains(why), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn the_last_default_goes_on() {
        let texts = ["tensor", "1", "tensor", "tensor"].map(str::to_owned);
        let arguments = parse_arguments(&texts, &defaults(&[&[2, 3], &[4]])).unwrap();
        let all: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        assert_eq!(all, ["float32[2x3]", "1", "float32[4]", "float32[4]"]);
        let none = Defaults { shapes: Vec::new(), dtypes: Vec::new(), place: Place::Host };
        assert_eq!(none.tensor(3).unwrap().layout.shape(), [8, 16]);
    }
    #[test]
    fn nothing_is_said_of_no_tensor() {
        let dtypes = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect::<Vec<Dtype>>();
        let told = |texts: &[&str], shapes: &[&[i64]], names: &[&str]| {
            let defaults = Defaults { dtypes: dtypes(names), ..defaults(shapes) };
            let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
            parse_arguments(&texts, &defaults).err().map(|error| error.to_string())
        };
        assert_eq!(told(&["tensor:4", "tensor"], &[&[1], &[2]], &["half", "int8"]), None);
        assert_eq!(told(&["tensor:4", "tensor:2"], &[], &["half"]), None);
        let left = |option: &str| Some(format!("`{option}`: there is no tensor that it could describe"));
        assert_eq!(told(&["1", "tensor"], &[&[1], &[2, 3]], &[]), left("--shape 2x3"));
        assert_eq!(told(&["1"], &[&[1]], &[]), left("--shape 1"));
        assert_eq!(told(&["tensor:4"], &[&[1]], &["half"]), left("--shape 1"));
        assert_eq!(told(&["tensor:4:int8"], &[], &["half"]), left("--dtype float16"));
        assert_eq!(told(&["tensor"], &[], &["half", "bf16"]), left("--dtype bfloat16"));
    }
}
