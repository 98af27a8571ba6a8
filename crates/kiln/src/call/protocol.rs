//! What the two processes of a call say to each other.
//!
//! The request is one JSON object on the worker's standard input. The answers are JSON objects too, a line each, in a file of the
//! session's directory: a kernel may print whatever it likes. What was written before a crash is there after it.

use kiln_ffi::{Dtype, Layout, Place};
use serde::{Deserialize, Serialize};

use super::argument::{Argument, Fill, TensorArgument};

/// The file of the answers, in the session's directory.
pub const ANSWERS: &str = "answers.jsonl";

/// What a worker is to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Request {
    /// The runtime of tvm-ffi.
    pub runtime: String,
    /// Libraries that the kernel needs and that the loader does not find by itself.
    pub preload: Vec<String>,
    /// The kernel.
    pub library: String,
    /// The functions that it exports.
    pub functions: Vec<String>,
    /// What to call, in order; the first call that fails is the last.
    pub calls: Vec<Call>,
}

/// One call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    /// The function.
    pub function: String,
    /// Its arguments.
    pub arguments: Vec<WireArgument>,
    /// How long to go on calling, in milliseconds, if it is to be timed.
    pub timed_ms: Option<u64>,
}

/// An argument, in a form that JSON keeps: fractions as the bits of a double.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WireArgument {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(u64),
    /// A text.
    Str(String),
    /// An element type.
    Dtype(String),
    /// A device.
    Device(WirePlace),
    /// A tensor.
    Tensor {
        /// The element type.
        dtype: String,
        /// The extents.
        shape: Vec<i64>,
        /// The strides.
        strides: Vec<i64>,
        /// The elements.
        fill: WireFill,
        /// Where it lies.
        place: WirePlace,
    },
}

/// [`Fill`], likewise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WireFill {
    /// [`Fill::Random`].
    Random,
    /// [`Fill::Range`].
    Range,
    /// [`Fill::Value`].
    Value(u64),
    /// [`Fill::Values`].
    Values(Vec<u64>),
}

/// The ordinal of a CUDA device; none for the host.
pub type WirePlace = Option<i32>;

/// What a worker says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Answer {
    /// It starts to load the runtime, then the kernel.
    Loading {
        /// What.
        what: String,
    },
    /// Everything is loaded.
    Loaded {
        /// The version that the runtime says of itself.
        version: [u32; 3],
        /// What is known of each function, in the order of the request.
        functions: Vec<Described>,
    },
    /// A call begins.
    Calling {
        /// Its index.
        call: usize,
    },
    /// A call ended well.
    Called {
        /// Its index.
        call: usize,
        /// What it returned.
        returned: WireReturned,
        /// What became of the tensors among the arguments.
        tensors: Vec<After>,
    },
    /// A call was timed.
    Timed {
        /// Its index.
        call: usize,
        /// Nanoseconds of one call, by sample.
        calls_ns: Vec<f64>,
        /// Nanoseconds of copying as many bytes as the tensors have, by sample.
        copies_ns: Vec<f64>,
        /// Bytes of the tensors together.
        bytes: u64,
    },
    /// A call, or loading, raised an error.
    Raised {
        /// Its kind.
        kind: String,
        /// Its message.
        message: String,
    },
    /// Something of ours failed: memory, a device, the loader.
    Failed {
        /// Why.
        message: String,
    },
    /// Everything was done; the process ends now.
    Done,
}

/// What a kernel states of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// Its name.
    pub name: String,
    /// Its metadata, as JSON in a text.
    pub metadata: Option<String>,
}

/// What a call returned.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum WireReturned {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(u64),
    /// A text.
    Str(String),
    /// An element type, by DLPack's code, bits and lanes.
    Dtype((u8, u8, u16)),
    /// A device.
    Device(WirePlace),
    /// A device of another kind, by DLPack's number, and which one.
    OtherDevice(u32, i32),
    /// A tensor, whose elements are in a file.
    Tensor {
        /// DLPack's code, bits and lanes.
        dtype: (u8, u8, u16),
        /// The extents.
        shape: Vec<i64>,
        /// The file.
        file: String,
    },
    /// Something else, by the runtime's number of its type.
    Other(i32),
}

/// A tensor after a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct After {
    /// Which argument.
    pub argument: usize,
    /// Whether an element differs from before.
    pub changed: bool,
    /// Where somebody wrote beside its elements, if anybody did.
    pub trespass: Option<String>,
    /// The file with its elements.
    pub file: String,
}

/// The place in the form of a request.
pub fn wire_place(place: Place) -> WirePlace {
    match place {
        Place::Host => None,
        Place::Cuda { ordinal } => Some(ordinal),
    }
}

/// The place of a request.
pub fn place(wire: WirePlace) -> Place {
    wire.map_or(Place::Host, |ordinal| Place::Cuda { ordinal })
}

impl From<&Argument> for WireArgument {
    fn from(argument: &Argument) -> Self {
        match argument {
            Argument::None => Self::None,
            Argument::Bool(value) => Self::Bool(*value),
            Argument::Int(value) => Self::Int(*value),
            Argument::Float(value) => Self::Float(value.to_bits()),
            Argument::Str(text) => Self::Str(text.clone()),
            Argument::Dtype(dtype) => Self::Dtype(dtype.to_string()),
            Argument::Device(place) => Self::Device(wire_place(*place)),
            Argument::Tensor(TensorArgument { layout, fill, place }) => Self::Tensor {
                dtype: layout.dtype().to_string(),
                shape: layout.shape().to_vec(),
                strides: layout.strides().to_vec(),
                fill: match fill {
                    Fill::Random => WireFill::Random,
                    Fill::Range => WireFill::Range,
                    Fill::Value(value) => WireFill::Value(value.to_bits()),
                    Fill::Values(values) => WireFill::Values(values.iter().map(|value| value.to_bits()).collect()),
                },
                place: wire_place(*place),
            },
        }
    }
}

impl WireArgument {
    /// The argument; none when it names what there is not.
    pub fn argument(&self) -> Option<Argument> {
        Some(match self {
            Self::None => Argument::None,
            Self::Bool(value) => Argument::Bool(*value),
            Self::Int(value) => Argument::Int(*value),
            Self::Float(bits) => Argument::Float(f64::from_bits(*bits)),
            Self::Str(text) => Argument::Str(text.clone()),
            Self::Dtype(name) => Argument::Dtype(name.parse().ok()?),
            Self::Device(wire) => Argument::Device(place(*wire)),
            Self::Tensor { dtype, shape, strides, fill, place: wire } => Argument::Tensor(TensorArgument {
                layout: Layout::strided(dtype.parse::<Dtype>().ok()?, shape, strides).ok()?,
                fill: match fill {
                    WireFill::Random => Fill::Random,
                    WireFill::Range => Fill::Range,
                    WireFill::Value(bits) => Fill::Value(f64::from_bits(*bits)),
                    WireFill::Values(values) => Fill::Values(values.iter().map(|bits| f64::from_bits(*bits)).collect()),
                },
                place: place(*wire),
            }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::argument::{Defaults, parse_arguments};

    #[test]
    fn arguments_survive_the_way() {
        let defaults = Defaults { shapes: Vec::new(), dtypes: Vec::new(), place: Place::Host };
        let texts = [
            "none",
            "true",
            "-7",
            "inf",
            "str:ü",
            "dtype:bool",
            "device:cuda:3",
            "tensor:2x3:half:=-0:strides=1x2:cuda:1",
            "tensor:0:range",
        ];
        for argument in parse_arguments(&texts.map(str::to_owned), &defaults).unwrap() {
            let text = serde_json::to_string(&WireArgument::from(&argument)).unwrap();
            assert_eq!(serde_json::from_str::<WireArgument>(&text).unwrap().argument(), Some(argument), "{text}");
        }
        let nan = serde_json::to_string(&WireArgument::from(&Argument::Float(f64::NAN))).unwrap();
        let Some(Argument::Float(back)) = serde_json::from_str::<WireArgument>(&nan).unwrap().argument() else { panic!("{nan}") };
        assert!(back.is_nan());
    }
}
