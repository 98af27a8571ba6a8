//! What functions take and give.

use std::ffi::CString;

use super::generated::tvm_ffi as c;
use super::runtime::{Object, OwnedAny};
use super::tensor::{HostTensor, Place, Tensor, copied};
use crate::{Dtype, FfiError};

/// An argument.
pub enum Value<'a> {
    /// Nothing.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Str(&'a str),
    /// An element type.
    Dtype(Dtype),
    /// A device.
    Device(Place),
    /// A tensor.
    Tensor(&'a Tensor),
    /// An object of the runtime.
    Object(&'a Object),
}

/// What a function has returned.
#[derive(Clone, Debug, PartialEq)]
pub enum Returned {
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
    /// A device that tensors can be made on.
    Device(Place),
    /// Another device.
    OtherDevice {
        /// DLPack's number of its type.
        device_type: u32,
        /// Which one.
        ordinal: i32,
    },
    /// A tensor.
    Tensor(HostTensor),
    /// Something else, by the runtime's number of its type.
    Other(i32),
}

/// Arguments in the runtime's form, with what they point to.
pub(super) struct Arguments {
    pub(super) values: Vec<c::TVMFFIAny>,
    _texts: Vec<CString>,
}

impl Arguments {
    /// The arguments as the runtime takes them. They borrow from `values` and must not outlive them.
    ///
    /// # Errors
    /// When a text has a zero byte.
    pub(super) fn new(values: &[Value<'_>]) -> Result<Self, FfiError> {
        let mut texts = Vec::new();
        let mut made = Vec::new();
        for value in values {
            let (index, content) = match value {
                Value::None => (c::kTVMFFINone, c::TVMFFIAny__bindgen_ty_2 { v_int64: 0 }),
                Value::Bool(value) => (c::kTVMFFIBool, c::TVMFFIAny__bindgen_ty_2 { v_int64: i64::from(*value) }),
                Value::Int(value) => (c::kTVMFFIInt, c::TVMFFIAny__bindgen_ty_2 { v_int64: *value }),
                Value::Float(value) => (c::kTVMFFIFloat, c::TVMFFIAny__bindgen_ty_2 { v_float64: *value }),
                Value::Str(text) => {
                    let text = CString::new(*text).map_err(|_| FfiError::ZeroByte { text: (*text).to_owned() })?;
                    let content = c::TVMFFIAny__bindgen_ty_2 { v_c_str: text.as_ptr() };
                    // Its text stays where it is when the list grows.
                    texts.push(text);
                    (c::kTVMFFIRawStr, content)
                }
                Value::Dtype(dtype) => {
                    let v_dtype = c::DLDataType { code: dtype.code, bits: dtype.bits, lanes: dtype.lanes };
                    let mut content = c::TVMFFIAny__bindgen_ty_2 { v_uint64: 0 };
                    content.v_dtype = v_dtype;
                    (c::kTVMFFIDataType, content)
                }
                Value::Device(place) => (c::kTVMFFIDevice, c::TVMFFIAny__bindgen_ty_2 { v_device: place.device() }),
                Value::Tensor(tensor) => (c::kTVMFFITensor, c::TVMFFIAny__bindgen_ty_2 { v_obj: tensor.object().pointer() }),
                Value::Object(object) => (object.type_index(), c::TVMFFIAny__bindgen_ty_2 { v_obj: object.pointer() }),
            };
            made.push(c::TVMFFIAny {
                type_index: index,
                __bindgen_anon_1: c::TVMFFIAny__bindgen_ty_1 { zero_padding: 0 },
                __bindgen_anon_2: content,
            });
        }
        Ok(Self { values: made, _texts: texts })
    }
}

impl Returned {
    /// What a returned value is, copied.
    pub(super) fn of(any: &OwnedAny) -> Result<Self, FfiError> {
        let raw = any.raw();
        let content = raw.__bindgen_anon_2;
        // SAFETY: the type index says which of the contents is meant; objects are alive as long as `any`.
        Ok(unsafe {
            match raw.type_index {
                c::kTVMFFINone => Self::None,
                c::kTVMFFIBool => Self::Bool(content.v_int64 != 0),
                c::kTVMFFIInt => Self::Int(content.v_int64),
                c::kTVMFFIFloat => Self::Float(content.v_float64),
                c::kTVMFFISmallStr | c::kTVMFFIStr => Self::Str(any.text().unwrap_or_default()),
                c::kTVMFFIDataType => {
                    let c::DLDataType { code, bits, lanes } = content.v_dtype;
                    Self::Dtype(Dtype { code, bits, lanes })
                }
                c::kTVMFFIDevice => {
                    let device = content.v_device;
                    let other = Self::OtherDevice { device_type: device.device_type, ordinal: device.device_id };
                    Place::of(device).map_or(other, Self::Device)
                }
                c::kTVMFFITensor => Self::Tensor(copied(content.v_obj.add(1).cast::<c::DLTensor>())?),
                other => Self::Other(other),
            }
        })
    }
}
