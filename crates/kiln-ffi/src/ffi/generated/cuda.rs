// Types of cuda.h, from nvidia-cuda-runtime==13.0.96. Written by `cargo xtask codegen`.

#[repr(C)]
#[derive(Debug)]
pub struct CUctx_st {
    _unused: [u8; 0],
}
pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: CUdevice_attribute_enum = 75;
pub const CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: CUdevice_attribute_enum = 76;
pub type CUdevice_attribute_enum = ::core::ffi::c_uint;
pub const CUDA_SUCCESS: cudaError_enum = 0;
pub const CUDA_ERROR_NO_DEVICE: cudaError_enum = 100;
pub type cudaError_enum = ::core::ffi::c_uint;
pub type cuInit_fn = ::core::option::Option<unsafe extern "C" fn(arg1: ::core::ffi::c_uint) -> cudaError_enum>;
pub type cuGetErrorName_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: cudaError_enum, arg2: *mut *const ::core::ffi::c_char) -> cudaError_enum>;
pub type cuGetErrorString_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: cudaError_enum, arg2: *mut *const ::core::ffi::c_char) -> cudaError_enum>;
pub type cuDeviceGetCount_fn = ::core::option::Option<unsafe extern "C" fn(arg1: *mut ::core::ffi::c_int) -> cudaError_enum>;
pub type cuDeviceGet_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *mut ::core::ffi::c_int, arg2: ::core::ffi::c_int) -> cudaError_enum>;
pub type cuDeviceGetName_fn = ::core::option::Option<
    unsafe extern "C" fn(arg1: *mut ::core::ffi::c_char, arg2: ::core::ffi::c_int, arg3: ::core::ffi::c_int) -> cudaError_enum,
>;
pub type cuDeviceGetAttribute_fn = ::core::option::Option<
    unsafe extern "C" fn(arg1: *mut ::core::ffi::c_int, arg2: CUdevice_attribute_enum, arg3: ::core::ffi::c_int) -> cudaError_enum,
>;
pub type cuDeviceTotalMem_v2_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *mut usize, arg2: ::core::ffi::c_int) -> cudaError_enum>;
pub type cuDevicePrimaryCtxRetain_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *mut *mut CUctx_st, arg2: ::core::ffi::c_int) -> cudaError_enum>;
pub type cuCtxSetCurrent_fn = ::core::option::Option<unsafe extern "C" fn(arg1: *mut CUctx_st) -> cudaError_enum>;
pub type cuCtxSynchronize_fn = ::core::option::Option<unsafe extern "C" fn() -> cudaError_enum>;
pub type cuMemAlloc_v2_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *mut ::core::ffi::c_ulonglong, arg2: usize) -> cudaError_enum>;
pub type cuMemFree_v2_fn = ::core::option::Option<unsafe extern "C" fn(arg1: ::core::ffi::c_ulonglong) -> cudaError_enum>;
pub type cuMemcpyHtoD_v2_fn = ::core::option::Option<
    unsafe extern "C" fn(arg1: ::core::ffi::c_ulonglong, arg2: *const ::core::ffi::c_void, arg3: usize) -> cudaError_enum,
>;
pub type cuMemcpyDtoH_v2_fn = ::core::option::Option<
    unsafe extern "C" fn(arg1: *mut ::core::ffi::c_void, arg2: ::core::ffi::c_ulonglong, arg3: usize) -> cudaError_enum,
>;
pub type cuMemcpyDtoD_v2_fn = ::core::option::Option<
    unsafe extern "C" fn(arg1: ::core::ffi::c_ulonglong, arg2: ::core::ffi::c_ulonglong, arg3: usize) -> cudaError_enum,
>;
