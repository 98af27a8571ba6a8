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
/// When one cannot be read.
pub fn parse_arguments(texts: &[String], defaults: &Defaults) -> Result<Vec<Argument>, CallError> {
    let mut tensors = 0;
    texts
        .iter()
        .map(|text| {
            let argument = parse_argument(text, defaults, tensors)?;
            tensors += usize::from(matches!(argument, Argument::Tensor(_)));
            Ok(argument)
        })
        .collect()
}

fn parse_argument(text: &str, defaults: &Defaults, position: usize) -> Result<Argument, CallError> {
    let wrong = |why: &str| CallError::argument(text, why);
    let (kind, rest) = text.split_once(':').map_or((text, None), |(kind, rest)| (kind, Some(rest)));
    match (kind, rest) {
        ("tensor", rest) => parse_tensor(text, rest, defaults, position).map(Argument::Tensor),
        ("str", Some(rest)) => Ok(Argument::Str(rest.to_owned())),
        ("int", Some(rest)) => rest.parse().map(Argument::Int).map_err(|_| wrong("it must be a whole number of 64 bits")),
        ("float", Some(rest)) => rest.parse().map(Argument::Float).map_err(|_| wrong("it must be a number")),
        ("dtype", Some(rest)) => rest.parse().map(Argument::Dtype).map_err(|error: kiln_ffi::DtypeError| wrong(&error.hint())),
        ("device", Some(rest)) => parse_place(rest).map(Argument::Device),
        ("none", None) => Ok(Argument::None),
        ("true", None) => Ok(Argument::Bool(true)),
        ("false", None) => Ok(Argument::Bool(false)),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Ok(Argument::Int(number)),
            (_, Ok(number)) => Ok(Argument::Float(number)),
            _ => Err(wrong("a text is written `str:TEXT`, a tensor `tensor:4x8:float32`")),
        },
    }
}

fn parse_tensor(text: &str, words: Option<&str>, defaults: &Defaults, position: usize) -> Result<TensorArgument, CallError> {
    let wrong = |why: &str| CallError::argument(text, why);
    let default = defaults.tensor(position)?;
    let Some(words) = words else { return Ok(default) };
    let mut words = words.split(':').peekable();
    let shape = parse_extents(words.next().unwrap_or_default())?;
    let mut dtype = default.layout.dtype();
    if let Some(named) = words.peek().and_then(|word| word.parse().ok()) {
        dtype = named;
        words.next();
    }
    let (mut fill, mut place, mut strides) = (Fill::Random, default.place, None);
    while let Some(word) = words.next() {
        match word {
            "random" => fill = Fill::Random,
            "range" => fill = Fill::Range,
            "zeros" => fill = Fill::Value(0.0),
            "ones" => fill = Fill::Value(1.0),
            "cpu" => place = Place::Host,
            "cuda" => {
                let ordinal = words.peek().and_then(|word| word.parse::<i32>().ok());
                if ordinal.is_some() {
                    words.next();
                }
                place = Place::Cuda { ordinal: ordinal.unwrap_or(0) };
            }
            _ => match (word.strip_prefix('='), word.strip_prefix("strides=")) {
                (Some(number), _) => fill = Fill::Value(number.parse().map_err(|_| wrong("behind `=` stands a number"))?),
                (_, Some(list)) => strides = Some(parse_extents(list)?),
                _ => {
                    return Err(wrong(&format!(
                        "`{word}` is neither a dtype, a device, `zeros`, `ones`, `range`, `random`, `=NUMBER` nor `strides=..`"
                    )));
                }
            },
        }
    }
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

    fn defaults() -> Defaults {
        Defaults { shapes: vec![vec![2, 3], vec![4]], dtypes: Vec::new(), place: Place::Host }
    }

    fn shown(text: &str) -> String {
        match parse_arguments(&[text.to_owned()], &defaults()) {
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
        ] {
            assert!(shown(text).contains(why), "{text}: {}", shown(text));
        }
    }

    #[test]
    fn the_last_default_goes_on() {
        let texts = ["tensor", "1", "tensor", "tensor"].map(str::to_owned);
        let arguments = parse_arguments(&texts, &defaults()).unwrap();
        let all: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        assert_eq!(all, ["float32[2x3]", "1", "float32[4]", "float32[4]"]);
        let none = Defaults { shapes: Vec::new(), dtypes: Vec::new(), place: Place::Host };
        assert_eq!(none.tensor(3).unwrap().layout.shape(), [8, 16]);
    }
}
