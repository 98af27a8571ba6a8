//! Tensors, handed over by DLPack.

use std::ffi::{c_char, c_int, c_void};
use std::sync::Arc;

use super::cuda::Cuda;
use super::generated::tvm_ffi as c;
use super::memory::{HostMemory, Memory, copy_of, room};
use super::runtime::{Object, Runtime};
use crate::{Dtype, FfiError, Layout};

/// The newest DLPack whose structures are those of `generated`.
const DLPACK: c::DLPackVersion = c::DLPackVersion { major: 1, minor: 0 };

/// Where a tensor lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Memory of this process.
    Host,
    /// Memory of a CUDA device.
    Cuda {
        /// Which one.
        ordinal: i32,
    },
}

impl Place {
    pub(super) fn device(self) -> c::DLDevice {
        match self {
            Self::Host => c::DLDevice { device_type: c::kDLCPU, device_id: 0 },
            Self::Cuda { ordinal } => c::DLDevice { device_type: c::kDLCUDA, device_id: ordinal },
        }
    }

    pub(super) fn of(device: c::DLDevice) -> Result<Self, FfiError> {
        match device.device_type {
            c::kDLCPU => Ok(Self::Host),
            c::kDLCUDA => Ok(Self::Cuda { ordinal: device.device_id }),
            other => Err(FfiError::Place { device_type: i32::try_from(other).unwrap_or(i32::MAX) }),
        }
    }
}

/// A tensor that a kernel can be given, and whose memory can be read afterwards.
pub struct Tensor {
    layout: Layout,
    place: Place,
    memory: Arc<Memory>,
    object: Object,
}

/// What DLPack's structure points to, kept for as long as anybody has the tensor.
struct Owned {
    managed: c::DLManagedTensorVersioned,
    shape: Vec<i64>,
    strides: Vec<i64>,
    _memory: Arc<Memory>,
}

impl Tensor {
    /// A tensor at `place`, known to `runtime`. What it holds is no number that means anything.
    ///
    /// # Errors
    /// When there is no memory or no such device, or the runtime refuses the tensor.
    pub fn new(runtime: &Runtime, layout: Layout, place: Place) -> Result<Self, FfiError> {
        let memory = Arc::new(allocate(place, layout.bytes())?);
        let managed = managed(&layout, place, Arc::clone(&memory));
        let object = runtime.adopt(managed)?;
        let this = Self { layout, place, memory, object };
        if place != Place::Host {
            this.memory.write(&marks(this.layout.bytes())?)?;
        }
        Ok(this)
    }

    /// How its elements lie.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Where it lies.
    pub fn place(&self) -> Place {
        self.place
    }

    /// Gives it elements, which lie one after the other in `elements`.
    ///
    /// # Errors
    /// When the device fails.
    pub fn fill(&self, elements: &[u8]) -> Result<(), FfiError> {
        if self.layout.is_contiguous() {
            return self.memory.write(elements);
        }
        let mut bytes = marks(self.layout.bytes())?;
        self.layout.scatter(elements, &mut bytes);
        self.memory.write(&bytes)
    }

    /// Its elements, one after the other.
    ///
    /// # Errors
    /// When the device fails.
    pub fn elements(&self) -> Result<Vec<u8>, FfiError> {
        Ok(self.layout.gather(self.memory.read()?))
    }

    /// Where somebody wrote that had no business there, if anybody did: `before` it, `behind` it, or `between` its elements. Of
    /// what lies around memory of a device, nothing is known.
    ///
    /// # Errors
    /// When the device fails.
    pub fn trespass(&self) -> Result<Option<&'static str>, FfiError> {
        if let Memory::Host(memory) = &*self.memory {
            match memory.guards() {
                (false, _) => return Ok(Some("before")),
                (_, false) => return Ok(Some("behind")),
                (true, true) => {}
            }
        }
        if self.layout.is_contiguous() {
            return Ok(None);
        }
        let mut bytes = self.memory.read()?;
        self.layout.scatter(&marks(self.layout.count() * self.layout.dtype().size())?, &mut bytes);
        Ok(bytes.iter().any(|byte| *byte != HostMemory::mark()).then_some("between"))
    }

    /// Copies what `other` holds as a whole, gaps included, as far as there is room: what a kernel that only copies would do.
    ///
    /// # Errors
    /// When the device fails.
    pub fn copy_memory(&self, other: &Self) -> Result<(), FfiError> {
        match (&*self.memory, &*other.memory) {
            (Memory::Host(to), Memory::Host(from)) => {
                let count = self.layout.bytes().min(other.layout.bytes());
                // SAFETY: both have that many bytes, and are of two tensors.
                unsafe { std::ptr::copy(from.address(), to.address(), count) };
                Ok(())
            }
            (Memory::Cuda { cuda, address: to, bytes }, Memory::Cuda { address: from, bytes: room, .. }) => {
                cuda.copy(*to, *from, *bytes.min(room))?;
                cuda.synchronize()
            }
            _ => self.memory.write(&other.memory.read()?),
        }
    }

    pub(super) fn object(&self) -> &Object {
        &self.object
    }
}

/// So many bytes that no kernel has written.
fn marks(bytes: usize) -> Result<Vec<u8>, FfiError> {
    let mut marks = room(bytes)?;
    marks.resize(bytes, HostMemory::mark());
    Ok(marks)
}

fn allocate(place: Place, bytes: usize) -> Result<Memory, FfiError> {
    match place {
        Place::Host => Ok(Memory::Host(HostMemory::new(bytes)?)),
        Place::Cuda { ordinal } => {
            let cuda = Cuda::open()?;
            cuda.enter(ordinal)?;
            Ok(Memory::Cuda { cuda, address: cuda.allocate(bytes)?, bytes })
        }
    }
}

/// The structure of DLPack for a tensor. Whoever takes it calls its deleter.
fn managed(layout: &Layout, place: Place, memory: Arc<Memory>) -> *mut c::DLManagedTensorVersioned {
    let dtype = layout.dtype();
    let dl_tensor = c::DLTensor {
        data: memory.address(),
        device: place.device(),
        ndim: i32::try_from(layout.shape().len()).unwrap_or(i32::MAX),
        dtype: c::DLDataType { code: dtype.code, bits: dtype.bits, lanes: dtype.lanes },
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed =
        c::DLManagedTensorVersioned { version: DLPACK, manager_ctx: std::ptr::null_mut(), deleter: Some(release), flags: 0, dl_tensor };
    let owned = Box::new(Owned { managed, shape: layout.shape().to_vec(), strides: layout.strides().to_vec(), _memory: memory });
    let owned = Box::into_raw(owned);
    // SAFETY: the box was just made; what its fields point to is on the heap and is not moved until `release` takes the box back.
    unsafe {
        (*owned).managed.manager_ctx = owned.cast();
        (*owned).managed.dl_tensor.shape = (*owned).shape.as_mut_ptr();
        (*owned).managed.dl_tensor.strides = (*owned).strides.as_mut_ptr();
        &raw mut (*owned).managed
    }
}

/// The deleter of tensors.
extern "C" fn release(managed: *mut c::DLManagedTensorVersioned) {
    // SAFETY: DLPack calls the deleter once, with the structure that `managed` made; its context is the box that holds it.
    drop(unsafe { Box::from_raw((*managed).manager_ctx.cast::<Owned>()) });
}

/// Frees a tensor that the runtime has refused.
pub(super) fn refused(managed: *mut c::DLManagedTensorVersioned) {
    release(managed);
}

/// What tells the runtime why there is no memory.
type SetError = Option<unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char)>;

/// Gives kernels memory for tensors that they return.
pub(super) extern "C" fn give(
    prototype: *mut c::DLTensor,
    out: *mut *mut c::DLManagedTensorVersioned,
    context: *mut c_void,
    set_error: SetError,
) -> c_int {
    // SAFETY: the runtime's contract: the prototype is a tensor without data, with `ndim` extents.
    let made = unsafe { layout_at(prototype) }.and_then(|(layout, place)| {
        let memory = Arc::new(allocate(place, layout.bytes()).map_err(|error| error.to_string())?);
        Ok(managed(&layout, place, memory))
    });
    match made {
        Ok(tensor) => {
            // SAFETY: the runtime's contract: it has room for the pointer.
            unsafe { out.write(tensor) };
            0
        }
        Err(reason) => {
            let reason = std::ffi::CString::new(reason).unwrap_or_default();
            if let Some(set_error) = set_error {
                // SAFETY: both texts end with a zero byte and outlive the call, which copies them.
                unsafe { set_error(context, c"RuntimeError".as_ptr(), reason.as_ptr()) };
            }
            -1
        }
    }
}

/// What a tensor is like.
///
/// # Safety
/// `tensor` leads to a tensor, whose shape and strides have as many numbers as it has extents, or whose strides are null.
unsafe fn layout_at(tensor: *const c::DLTensor) -> Result<(Layout, Place), String> {
    // SAFETY: by the contract of this function.
    let (tensor, shape, strides) = unsafe {
        let tensor = *tensor;
        let ndim = usize::try_from(tensor.ndim).unwrap_or(0);
        let numbers = |start: *const i64| match (start.is_null(), ndim) {
            (true, _) | (_, 0) => None,
            (false, _) => Some(std::slice::from_raw_parts(start, ndim).to_vec()),
        };
        (tensor, numbers(tensor.shape).unwrap_or_default(), numbers(tensor.strides))
    };
    let dtype = Dtype { code: tensor.dtype.code, bits: tensor.dtype.bits, lanes: tensor.dtype.lanes };
    let layout = match strides {
        Some(strides) => Layout::strided(dtype, &shape, &strides),
        None => Layout::contiguous(dtype, &shape),
    };
    let place = Place::of(tensor.device).map_err(|error| error.to_string())?;
    Ok((layout.map_err(|error| error.to_string())?, place))
}

/// A tensor that a kernel has returned, copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostTensor {
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its extents.
    pub shape: Vec<i64>,
    /// Its elements, one after the other.
    pub elements: Vec<u8>,
}

/// Copies what a tensor holds.
///
/// # Safety
/// As for `layout_at`, and its memory is there.
pub(super) unsafe fn copied(tensor: *const c::DLTensor) -> Result<HostTensor, FfiError> {
    // SAFETY: by the contract of this function.
    let (layout, place) = unsafe { layout_at(tensor) }
        .map_err(|reason| FfiError::Raised(crate::Raised { kind: "ValueError".to_owned(), message: reason, backtrace: String::new() }))?;
    // SAFETY: as above.
    let (data, offset) = unsafe { ((*tensor).data, (*tensor).byte_offset) };
    let start = data.cast::<u8>().wrapping_add(usize::try_from(offset).unwrap_or(0));
    let memory = match (layout.bytes(), place) {
        (0, _) => Vec::new(),
        // SAFETY: a tensor in memory of the process has as many bytes as its layout says.
        (bytes, Place::Host) => unsafe { copy_of(start, bytes) }?,
        (bytes, Place::Cuda { ordinal }) => {
            let cuda = Cuda::open()?;
            cuda.enter(ordinal)?;
            cuda.synchronize()?;
            cuda.read(start.addr() as u64, bytes)?
        }
    };
    Ok(HostTensor { dtype: layout.dtype(), elements: layout.gather(memory), shape: layout.shape().to_vec() })
}
