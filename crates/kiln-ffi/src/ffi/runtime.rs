//! The runtime of tvm-ffi: modules, their functions, and calls.

use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

#[cfg(unix)]
use super::crash::CrashHandler;
use super::generated::tvm_ffi as c;
use super::library::{Loaded, functions};
use super::tensor::{give, refused};
use super::value::{Arguments, Returned, Value};
use crate::{FfiError, Raised};

functions! {
    /// The functions of the runtime that are used.
    Functions of c {
        version: "TVMFFIGetVersion" TVMFFIGetVersion_fn,
        release: "TVMFFIObjectDecRef" TVMFFIObjectDecRef_fn,
        global: "TVMFFIFunctionGetGlobal" TVMFFIFunctionGetGlobal_fn,
        call: "TVMFFIFunctionCall" TVMFFIFunctionCall_fn,
        take_error: "TVMFFIErrorMoveFromRaised" TVMFFIErrorMoveFromRaised_fn,
        adopt: "TVMFFITensorFromDLPackVersioned" TVMFFITensorFromDLPackVersioned_fn,
        set_allocator: "TVMFFIEnvSetDLPackManagedTensorAllocator" TVMFFIEnvSetDLPackManagedTensorAllocator_fn,
    }
}

/// A reference to an object of the runtime.
pub struct Object {
    functions: Functions,
    handle: *mut c::TVMFFIObject,
}

impl Object {
    pub(super) fn pointer(&self) -> *mut c::TVMFFIObject {
        self.handle
    }

    pub(super) fn type_index(&self) -> i32 {
        // SAFETY: the reference keeps the object alive.
        unsafe { (*self.handle).type_index }
    }
}

impl Drop for Object {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's, and goes once. Nothing can be done about a failure.
        let _code = unsafe { (self.functions.release)(self.handle.cast()) };
    }
}

/// A value that the runtime has given, with the reference in it.
pub(super) struct OwnedAny {
    raw: c::TVMFFIAny,
    object: Option<Object>,
}

impl OwnedAny {
    /// Takes over the reference in `raw`, if it holds one.
    fn new(functions: Functions, raw: c::TVMFFIAny) -> Self {
        let object = (raw.type_index >= c::kTVMFFIStaticObjectBegin).then(|| {
            // SAFETY: from this index on, values are objects.
            Object { functions, handle: unsafe { raw.__bindgen_anon_2.v_obj } }
        });
        Self { raw, object }
    }

    pub(super) fn raw(&self) -> &c::TVMFFIAny {
        &self.raw
    }

    fn into_object(self) -> Option<Object> {
        self.object
    }

    /// The text that it is, if it is one.
    pub(super) fn text(&self) -> Option<String> {
        // SAFETY: the type index says what there is: a short text in the value itself, or an object with a text behind its head.
        let bytes = unsafe {
            match self.raw.type_index {
                c::kTVMFFISmallStr => {
                    let length = (self.raw.__bindgen_anon_1.small_str_len as usize).min(8);
                    std::slice::from_raw_parts((&raw const self.raw.__bindgen_anon_2.v_bytes).cast::<u8>(), length).to_vec()
                }
                c::kTVMFFIStr => bytes_at(&*self.raw.__bindgen_anon_2.v_obj.add(1).cast::<c::TVMFFIByteArray>()),
                _ => return None,
            }
        };
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A copy of what an array of the runtime holds.
///
/// # Safety
/// It leads to as many bytes as it says, or is null.
unsafe fn bytes_at(array: &c::TVMFFIByteArray) -> Vec<u8> {
    if array.data.is_null() {
        return Vec::new();
    }
    // SAFETY: by the contract of this function.
    unsafe { std::slice::from_raw_parts(array.data.cast::<u8>(), array.size) }.to_vec()
}

/// A value for the runtime to put its result in.
fn nothing() -> c::TVMFFIAny {
    c::TVMFFIAny {
        type_index: c::kTVMFFINone,
        __bindgen_anon_1: c::TVMFFIAny__bindgen_ty_1 { zero_padding: 0 },
        __bindgen_anon_2: c::TVMFFIAny__bindgen_ty_2 { v_int64: 0 },
    }
}

/// The runtime of tvm-ffi, loaded. It stays so until the process ends.
#[derive(Clone, Copy)]
pub struct Runtime {
    functions: Functions,
    #[cfg(unix)]
    crash_handler: Option<CrashHandler>,
}

impl Runtime {
    /// Loads the runtime at `path`, and lets kernels have memory from here for what they return.
    ///
    /// # Errors
    /// When it is no such library, or lacks a function.
    pub fn load(path: &Path) -> Result<Self, FfiError> {
        #[cfg(unix)]
        let before = CrashHandler::current();
        let functions = Functions::load(Loaded::open(path.as_os_str())?)?;
        let this = Self {
            functions,
            #[cfg(unix)]
            crash_handler: CrashHandler::current().filter(|handler| Some(*handler) != before),
        };
        // SAFETY: the function gives memory of the form that the runtime wants, and stays where it is. The one before is not asked for.
        let code = unsafe { (functions.set_allocator)(Some(give), 1, std::ptr::null_mut()) };
        this.check(code)?;
        Ok(this)
    }

    /// From now on a crash ends the process at once, by its signal. The runtime's own handler writes where it happened, but asks for memory
    /// to do so: after a crash of the C library's allocator it waits without end. A handler of somebody else's stays.
    #[cfg(unix)]
    pub fn let_crashes_end(&self) {
        if let Some(handler) = self.crash_handler {
            handler.remove();
        }
    }

    /// The version that it says of itself.
    pub fn version(&self) -> [u32; 3] {
        let mut version = c::TVMFFIVersion { major: 0, minor: 0, patch: 0 };
        // SAFETY: writes the three numbers.
        unsafe { (self.functions.version)(&raw mut version) };
        [version.major, version.minor, version.patch]
    }

    /// Opens the kernel at `path`, with every function that it needs.
    ///
    /// # Errors
    /// What the system's loader says, or the runtime's.
    pub fn open(&self, path: &Path) -> Result<Module, FfiError> {
        // The runtime's loader leaves missing functions to the first call of each; here they are an error with their names.
        Loaded::open(path.as_os_str())?.keep();
        let text = path.to_str().ok_or_else(|| FfiError::Load {
            library: path.to_string_lossy().into_owned(),
            reason: "tvm-ffi takes paths of UTF-8 only".to_owned(),
        })?;
        let module = self.invoke("ffi.ModuleLoadFromFile", &[Value::Str(text)])?.into_object();
        let none = || FfiError::Load { library: text.to_owned(), reason: "the runtime gives no module".to_owned() };
        Ok(Module { runtime: *self, object: module.ok_or_else(none)? })
    }

    /// Calls a global function of the runtime.
    fn invoke(&self, name: &str, values: &[Value<'_>]) -> Result<OwnedAny, FfiError> {
        let bytes = c::TVMFFIByteArray { data: name.as_ptr().cast::<c_char>(), size: name.len() };
        let mut handle: *mut c_void = std::ptr::null_mut();
        // SAFETY: reads the name, writes one pointer.
        self.check(unsafe { (self.functions.global)(&raw const bytes, &raw mut handle) })?;
        if handle.is_null() {
            return Err(FfiError::Symbol { library: "tvm-ffi".to_owned(), name: name.to_owned() });
        }
        let function = Object { functions: self.functions, handle: handle.cast() };
        self.call(&function, values)
    }

    fn call(&self, function: &Object, values: &[Value<'_>]) -> Result<OwnedAny, FfiError> {
        let mut arguments = Arguments::new(values)?;
        let count = c_int::try_from(arguments.values.len()).unwrap_or(c_int::MAX);
        let mut result = nothing();
        // SAFETY: the function is alive, and so is everything that the arguments point to. What a kernel throws past the runtime
        // comes through, and ends the process where nobody catches it.
        let code = unsafe { (self.functions.call)(function.handle.cast(), arguments.values.as_mut_ptr(), count, &raw mut result) };
        self.check(code)?;
        Ok(OwnedAny::new(self.functions, result))
    }

    /// Gives a tensor to the runtime, which calls its deleter.
    pub(super) fn adopt(&self, managed: *mut c::DLManagedTensorVersioned) -> Result<Object, FfiError> {
        let mut handle: *mut c_void = std::ptr::null_mut();
        // SAFETY: the structure is whole; on success it is the runtime's.
        let code = unsafe { (self.functions.adopt)(managed, 0, 0, &raw mut handle) };
        if let Err(error) = self.check(code) {
            refused(managed);
            return Err(error);
        }
        Ok(Object { functions: self.functions, handle: handle.cast() })
    }

    /// Turns a code into the error that was raised.
    fn check(&self, code: c_int) -> Result<(), FfiError> {
        if code == 0 {
            return Ok(());
        }
        let mut handle: *mut c_void = std::ptr::null_mut();
        // SAFETY: writes one pointer, whose reference is then this one's.
        unsafe { (self.functions.take_error)(&raw mut handle) };
        if handle.is_null() {
            // The runtime makes -1 of whatever a kernel's function returns.
            let code = if code == -1 { "a code other than 0".to_owned() } else { format!("code {code}") };
            let message = format!("{code} was returned, and no error was raised");
            return Err(FfiError::Raised(Raised { kind: "Error".to_owned(), message, backtrace: String::new() }));
        }
        let error = Object { functions: self.functions, handle: handle.cast() };
        // SAFETY: an error object has its cell behind its head, and lives as long as `error`.
        let [kind, message, backtrace] = unsafe {
            let cell = &*error.handle.add(1).cast::<c::TVMFFIErrorCell>();
            [&cell.kind, &cell.message, &cell.backtrace].map(|array| String::from_utf8_lossy(&bytes_at(array)).into_owned())
        };
        Err(FfiError::Raised(Raised { kind, message, backtrace }))
    }
}

/// An opened kernel.
pub struct Module {
    runtime: Runtime,
    object: Object,
}

impl Module {
    /// The function called `name`; none if there is no such one.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn function(&self, name: &str) -> Result<Option<Function>, FfiError> {
        let found = self.runtime.invoke("ffi.ModuleGetFunction", &[Value::Object(&self.object), Value::Str(name), Value::Bool(false)])?;
        Ok(found.into_object().map(|object| Function { runtime: self.runtime, object }))
    }

    /// What the kernel states of the function called `name`, as JSON; none if it states nothing.
    ///
    /// # Errors
    /// What the runtime says.
    pub fn metadata(&self, name: &str) -> Result<Option<String>, FfiError> {
        let asked = [Value::Object(&self.object), Value::Str(name), Value::Bool(false)];
        Ok(self.runtime.invoke("ffi.ModuleGetFunctionMetadata", &asked)?.text())
    }
}

/// A function of a kernel.
pub struct Function {
    runtime: Runtime,
    object: Object,
}

impl Function {
    /// Calls it. Work that it starts on a device may go on afterwards.
    ///
    /// # Errors
    /// What it raises.
    pub fn call(&self, values: &[Value<'_>]) -> Result<Returned, FfiError> {
        Returned::of(&self.runtime.call(&self.object, values)?)
    }
}
