//! Memory of tensors: of this process, or of a CUDA device.

use std::alloc::{alloc, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;

use crate::FfiError;
use crate::ffi::cuda::Cuda;

/// Where DLPack and the usual libraries let memory begin, in bytes.
const ALIGNMENT: usize = 256;
/// How much stands on either side of memory of this process, to see whether somebody writes past it, in bytes.
const GUARD: usize = 256;
/// What stands there: no small number, and no common value of a float.
const MARK: u8 = 0xA5;

/// Memory that lives until its last owner goes, whoever that is: a kernel may keep a tensor.
pub(super) enum Memory {
    /// Of this process.
    Host(HostMemory),
    /// Of a CUDA device.
    Cuda { cuda: Cuda, address: u64, bytes: usize },
}

/// Memory of this process, with marks before and behind it.
pub(super) struct HostMemory {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: whoever has it may read, write and free it from any thread; the runtime, to which the address is given, decides when.
unsafe impl Send for HostMemory {}
// SAFETY: as above; shared owners never hold references into it.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Memory of `bytes` bytes, filled with marks.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn new(bytes: usize) -> Result<Self, FfiError> {
        let layout = Self::layout(bytes).ok_or(FfiError::Memory { bytes })?;
        // SAFETY: the layout has a size above zero, the guards' at least.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(FfiError::Memory { bytes })?;
        // SAFETY: the memory was just given, with this size.
        unsafe { start.write_bytes(MARK, layout.size()) };
        Ok(Self { start, bytes })
    }

    fn layout(bytes: usize) -> Option<std::alloc::Layout> {
        std::alloc::Layout::from_size_align(bytes.checked_add(2 * GUARD)?, ALIGNMENT).ok()
    }

    /// Where the memory begins, behind the first guard.
    pub(super) fn address(&self) -> *mut u8 {
        // SAFETY: the guard lies in the same allocation.
        unsafe { self.start.add(GUARD) }.as_ptr()
    }

    /// A copy of what it holds.
    ///
    /// # Errors
    /// When there is no memory for it.
    pub(super) fn read(&self) -> Result<Vec<u8>, FfiError> {
        // SAFETY: the memory has that many bytes, initialized by `new`.
        unsafe { copy_of(self.address(), self.bytes) }
    }

    /// Puts `bytes` at the beginning.
    pub(super) fn write(&self, bytes: &[u8]) {
        let count = bytes.len().min(self.bytes);
        // SAFETY: at most as many bytes as there are; the source is other memory.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.address(), count) };
    }

    /// Whether the marks before and behind are as they were.
    pub(super) fn guards(&self) -> (bool, bool) {
        let intact = |start: *const u8| {
            // SAFETY: both guards lie in the allocation and are initialized. No reference is made: a kernel may have left a thread
            // that writes there.
            (0..GUARD).all(|at| unsafe { start.add(at).read_volatile() } == MARK)
        };
        // SAFETY: the second guard lies in the same allocation, behind the memory.
        let behind = unsafe { self.address().add(self.bytes) };
        (intact(self.start.as_ptr()), intact(behind))
    }

    /// What memory holds before anybody writes to it.
    pub(super) fn mark() -> u8 {
        MARK
    }
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if let Some(layout) = Self::layout(self.bytes) {
            // SAFETY: allocated in `new` with the same layout, and freed once.
            unsafe { dealloc(self.start.as_ptr(), layout) };
        }
    }
}

/// A copy of `bytes` bytes of this process's memory.
///
/// # Errors
/// When there is no memory for it.
///
/// # Safety
/// There are that many initialized bytes at `start`.
pub(super) unsafe fn copy_of(start: *const u8, bytes: usize) -> Result<Vec<u8>, FfiError> {
    let mut copy = room(bytes)?;
    // SAFETY: by the contract of this function; the list has room for as many. No reference is made to where they come from: a kernel may
    // have left a thread that writes there.
    unsafe {
        std::ptr::copy_nonoverlapping(start, copy.as_mut_ptr(), bytes);
        copy.set_len(bytes);
    }
    Ok(copy)
}

/// An empty list with room for `bytes` bytes: where there is none, that is an error like others and not the end of the process.
///
/// # Errors
/// When there is none.
pub(super) fn room(bytes: usize) -> Result<Vec<u8>, FfiError> {
    let mut list = Vec::new();
    list.try_reserve_exact(bytes).map_err(|_| FfiError::Memory { bytes })?;
    Ok(list)
}

impl Memory {
    /// The address for DLPack: null where there is nothing, as torch has it.
    pub(super) fn address(&self) -> *mut c_void {
        match self {
            Self::Host(memory) if memory.bytes == 0 => std::ptr::null_mut(),
            Self::Host(memory) => memory.address().cast(),
            // An address of the device is never used here.
            Self::Cuda { address, .. } => std::ptr::with_exposed_provenance_mut(*address as usize),
        }
    }

    /// A copy of what it holds.
    ///
    /// # Errors
    /// When the device fails.
    pub(super) fn read(&self) -> Result<Vec<u8>, FfiError> {
        match self {
            Self::Host(memory) => memory.read(),
            Self::Cuda { cuda, address, bytes } => cuda.read(*address, *bytes),
        }
    }

    /// Puts `bytes` at the beginning.
    ///
    /// # Errors
    /// When the device fails.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<(), FfiError> {
        match self {
            Self::Host(memory) => {
                memory.write(bytes);
                Ok(())
            }
            Self::Cuda { cuda, address, bytes: room } => cuda.write(*address, bytes.get(..*room).unwrap_or(bytes)),
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if let Self::Cuda { cuda, address, .. } = self {
            cuda.free(*address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writing_past_the_end_shows() {
        let memory = HostMemory::new(8).unwrap();
        memory.write(&[1; 8]);
        assert_eq!((memory.read(), memory.guards()), (Ok(vec![1; 8]), (true, true)));
        // SAFETY: the guards belong to the allocation.
        unsafe { memory.address().add(8).write(0) };
        assert_eq!(memory.guards(), (true, false));
        // SAFETY: as above.
        unsafe { memory.address().sub(1).write(0) };
        assert_eq!(memory.guards(), (false, false));
        assert_eq!(memory.address() as usize % ALIGNMENT, 0);
        assert_eq!(HostMemory::new(usize::MAX).err(), Some(FfiError::Memory { bytes: usize::MAX }));
    }
}
