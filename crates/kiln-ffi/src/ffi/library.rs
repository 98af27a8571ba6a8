//! Loading libraries and looking up their functions.

use std::ffi::{CStr, OsStr, c_char};

use libloading::Library;

use crate::FfiError;

/// The function inside the optional one that bindings of pointers are.
pub(super) trait Present {
    /// The function.
    type Function: Copy;
}

impl<F: Copy> Present for Option<F> {
    type Function = F;
}

/// A library that stays loaded until the process ends, so that its functions may be kept.
pub(super) struct Loaded {
    library: Library,
    name: String,
}

impl Loaded {
    /// Loads the library called `name`, or the one at that path, with every function that it needs.
    ///
    /// # Errors
    /// What the loader says.
    pub(super) fn open(name: &OsStr) -> Result<Self, FfiError> {
        let shown = name.to_string_lossy().into_owned();
        let failure = |reason: libloading::Error| FfiError::Load { reason: told(&reason, &shown), library: shown.clone() };
        #[cfg(unix)]
        let library = {
            use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
            // SAFETY: its initializers run, which is what its user asked for; nothing of this process is at their mercy more than
            // at that of the functions called later.
            unsafe { Library::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(failure)?.into()
        };
        #[cfg(not(unix))]
        // SAFETY: as above.
        let library = unsafe { Library::new(name) }.map_err(failure)?;
        Ok(Self { library, name: shown })
    }

    /// The function called `name`.
    ///
    /// # Errors
    /// When the library has none.
    ///
    /// # Safety
    /// `F` is the type of a function pointer, and that of the function called `name` in the interface that the library has.
    pub(super) unsafe fn function<F: Copy>(&self, name: &str) -> Result<F, FfiError> {
        // SAFETY: by the contract of this function.
        let found = unsafe { self.library.get::<F>(name) };
        match found {
            Ok(symbol) => Ok(*symbol),
            Err(_) => Err(FfiError::Symbol { library: self.name.clone(), name: name.to_owned() }),
        }
    }

    /// Leaves the library loaded for good. What runs at exit in it would otherwise meet a library that is gone.
    pub(super) fn keep(self) {
        std::mem::forget(self.library);
    }
}

/// Loads a library that others need by its name, and leaves it loaded.
///
/// # Errors
/// What the loader says.
pub fn load_for_others(path: &std::path::Path) -> Result<(), FfiError> {
    Loaded::open(path.as_os_str())?.keep();
    Ok(())
}

/// What the loader says, without the wrapping and without the name that the message has anyway.
fn told(error: &libloading::Error, name: &str) -> String {
    let cause = std::error::Error::source(error).map_or_else(|| error.to_string(), ToString::to_string);
    cause.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')).unwrap_or(&cause).trim().to_owned()
}

/// Declares the functions of a library as a struct, with the types of its header.
macro_rules! functions {
    ($(#[$doc:meta])* $name:ident of $module:ident { $($field:ident: $symbol:literal $type:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        struct $name { $($field: <$module::$type as $crate::ffi::library::Present>::Function),* }

        impl $name {
            /// Looks all functions up, and leaves the library loaded.
            fn load(library: $crate::ffi::library::Loaded) -> Result<Self, $crate::FfiError> {
                let functions = Self {
                    $(
                        // SAFETY: the type is the one that the header of the library states for this name.
                        $field: unsafe { library.function($symbol) }?
                    ),*
                };
                library.keep();
                Ok(functions)
            }
        }
    };
}

pub(super) use functions;

/// A text of C that may be absent.
///
/// # Safety
/// `text` is null, or ends with a zero byte and lives through the call.
pub(super) unsafe fn text_at(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by the contract of this function.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// The text in a buffer that C wrote into, up to its zero byte.
pub(super) fn text_in(buffer: &[u8]) -> String {
    let end = buffer.iter().position(|byte| *byte == 0).unwrap_or(buffer.len());
    String::from_utf8_lossy(buffer.get(..end).unwrap_or_default()).trim().to_owned()
}
