// Types of hip/hip_runtime_api.h, from the Debian package libamdhip64-dev. Written by `cargo xtask codegen`.

pub const hipSuccess: hipError_t = 0;
pub const hipErrorNoDevice: hipError_t = 100;
pub type hipError_t = ::core::ffi::c_uint;
pub type hipInit_fn = ::core::option::Option<unsafe extern "C" fn(arg1: ::core::ffi::c_uint) -> hipError_t>;
pub type hipGetDeviceCount_fn = ::core::option::Option<unsafe extern "C" fn(arg1: *mut ::core::ffi::c_int) -> hipError_t>;
pub type hipGetErrorName_fn = ::core::option::Option<unsafe extern "C" fn(arg1: hipError_t) -> *const ::core::ffi::c_char>;
pub type hipGetDeviceProperties_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *mut ::core::ffi::c_void, arg2: ::core::ffi::c_int) -> hipError_t>;
