// Types of tvm/ffi/c_api.h and tvm/ffi/extra/c_env_api.h, from apache-tvm-ffi==0.1.9. Written by `cargo xtask codegen`.

#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct DLPackVersion {
    pub major: u32,
    pub minor: u32,
}
const _: () = {
    ["Size of DLPackVersion"][::core::mem::size_of::<DLPackVersion>() - 8usize];
    ["Alignment of DLPackVersion"][::core::mem::align_of::<DLPackVersion>() - 4usize];
    ["Offset of field: DLPackVersion::major"][::core::mem::offset_of!(DLPackVersion, major) - 0usize];
    ["Offset of field: DLPackVersion::minor"][::core::mem::offset_of!(DLPackVersion, minor) - 4usize];
};
pub const kDLCPU: DLDeviceType = 1;
pub const kDLCUDA: DLDeviceType = 2;
pub type DLDeviceType = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct DLDevice {
    pub device_type: DLDeviceType,
    pub device_id: i32,
}
const _: () = {
    ["Size of DLDevice"][::core::mem::size_of::<DLDevice>() - 8usize];
    ["Alignment of DLDevice"][::core::mem::align_of::<DLDevice>() - 4usize];
    ["Offset of field: DLDevice::device_type"][::core::mem::offset_of!(DLDevice, device_type) - 0usize];
    ["Offset of field: DLDevice::device_id"][::core::mem::offset_of!(DLDevice, device_id) - 4usize];
};
pub const kDLInt: DLDataTypeCode = 0;
pub const kDLUInt: DLDataTypeCode = 1;
pub const kDLFloat: DLDataTypeCode = 2;
pub const kDLBfloat: DLDataTypeCode = 4;
pub const kDLBool: DLDataTypeCode = 6;
pub type DLDataTypeCode = ::core::ffi::c_uint;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct DLDataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}
const _: () = {
    ["Size of DLDataType"][::core::mem::size_of::<DLDataType>() - 4usize];
    ["Alignment of DLDataType"][::core::mem::align_of::<DLDataType>() - 2usize];
    ["Offset of field: DLDataType::code"][::core::mem::offset_of!(DLDataType, code) - 0usize];
    ["Offset of field: DLDataType::bits"][::core::mem::offset_of!(DLDataType, bits) - 1usize];
    ["Offset of field: DLDataType::lanes"][::core::mem::offset_of!(DLDataType, lanes) - 2usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct DLTensor {
    pub data: *mut ::core::ffi::c_void,
    pub device: DLDevice,
    pub ndim: i32,
    pub dtype: DLDataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}
const _: () = {
    ["Size of DLTensor"][::core::mem::size_of::<DLTensor>() - 48usize];
    ["Alignment of DLTensor"][::core::mem::align_of::<DLTensor>() - 8usize];
    ["Offset of field: DLTensor::data"][::core::mem::offset_of!(DLTensor, data) - 0usize];
    ["Offset of field: DLTensor::device"][::core::mem::offset_of!(DLTensor, device) - 8usize];
    ["Offset of field: DLTensor::ndim"][::core::mem::offset_of!(DLTensor, ndim) - 16usize];
    ["Offset of field: DLTensor::dtype"][::core::mem::offset_of!(DLTensor, dtype) - 20usize];
    ["Offset of field: DLTensor::shape"][::core::mem::offset_of!(DLTensor, shape) - 24usize];
    ["Offset of field: DLTensor::strides"][::core::mem::offset_of!(DLTensor, strides) - 32usize];
    ["Offset of field: DLTensor::byte_offset"][::core::mem::offset_of!(DLTensor, byte_offset) - 40usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct DLManagedTensorVersioned {
    pub version: DLPackVersion,
    pub manager_ctx: *mut ::core::ffi::c_void,
    pub deleter: ::core::option::Option<unsafe extern "C" fn(self_: *mut DLManagedTensorVersioned)>,
    pub flags: u64,
    pub dl_tensor: DLTensor,
}
const _: () = {
    ["Size of DLManagedTensorVersioned"][::core::mem::size_of::<DLManagedTensorVersioned>() - 80usize];
    ["Alignment of DLManagedTensorVersioned"][::core::mem::align_of::<DLManagedTensorVersioned>() - 8usize];
    ["Offset of field: DLManagedTensorVersioned::version"][::core::mem::offset_of!(DLManagedTensorVersioned, version) - 0usize];
    ["Offset of field: DLManagedTensorVersioned::manager_ctx"][::core::mem::offset_of!(DLManagedTensorVersioned, manager_ctx) - 8usize];
    ["Offset of field: DLManagedTensorVersioned::deleter"][::core::mem::offset_of!(DLManagedTensorVersioned, deleter) - 16usize];
    ["Offset of field: DLManagedTensorVersioned::flags"][::core::mem::offset_of!(DLManagedTensorVersioned, flags) - 24usize];
    ["Offset of field: DLManagedTensorVersioned::dl_tensor"][::core::mem::offset_of!(DLManagedTensorVersioned, dl_tensor) - 32usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct TVMFFIVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}
const _: () = {
    ["Size of TVMFFIVersion"][::core::mem::size_of::<TVMFFIVersion>() - 12usize];
    ["Alignment of TVMFFIVersion"][::core::mem::align_of::<TVMFFIVersion>() - 4usize];
    ["Offset of field: TVMFFIVersion::major"][::core::mem::offset_of!(TVMFFIVersion, major) - 0usize];
    ["Offset of field: TVMFFIVersion::minor"][::core::mem::offset_of!(TVMFFIVersion, minor) - 4usize];
    ["Offset of field: TVMFFIVersion::patch"][::core::mem::offset_of!(TVMFFIVersion, patch) - 8usize];
};
pub const kTVMFFINone: TVMFFITypeIndex = 0;
pub const kTVMFFIInt: TVMFFITypeIndex = 1;
pub const kTVMFFIBool: TVMFFITypeIndex = 2;
pub const kTVMFFIFloat: TVMFFITypeIndex = 3;
pub const kTVMFFIOpaquePtr: TVMFFITypeIndex = 4;
pub const kTVMFFIDataType: TVMFFITypeIndex = 5;
pub const kTVMFFIDevice: TVMFFITypeIndex = 6;
pub const kTVMFFIRawStr: TVMFFITypeIndex = 8;
pub const kTVMFFISmallStr: TVMFFITypeIndex = 11;
pub const kTVMFFIStaticObjectBegin: TVMFFITypeIndex = 64;
pub const kTVMFFIStr: TVMFFITypeIndex = 65;
pub const kTVMFFITensor: TVMFFITypeIndex = 70;
pub type TVMFFITypeIndex = ::core::ffi::c_int;
pub type TVMFFIObjectHandle = *mut ::core::ffi::c_void;
#[repr(C)]
#[derive(Copy, Clone)]
pub struct TVMFFIObject {
    pub combined_ref_count: u64,
    pub type_index: i32,
    pub __padding: u32,
    pub __bindgen_anon_1: TVMFFIObject__bindgen_ty_1,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union TVMFFIObject__bindgen_ty_1 {
    pub deleter: ::core::option::Option<unsafe extern "C" fn(self_: *mut ::core::ffi::c_void, flags: ::core::ffi::c_int)>,
    pub __ensure_align: i64,
}
const _: () = {
    ["Size of TVMFFIObject__bindgen_ty_1"][::core::mem::size_of::<TVMFFIObject__bindgen_ty_1>() - 8usize];
    ["Alignment of TVMFFIObject__bindgen_ty_1"][::core::mem::align_of::<TVMFFIObject__bindgen_ty_1>() - 8usize];
    ["Offset of field: TVMFFIObject__bindgen_ty_1::deleter"][::core::mem::offset_of!(TVMFFIObject__bindgen_ty_1, deleter) - 0usize];
    ["Offset of field: TVMFFIObject__bindgen_ty_1::__ensure_align"]
        [::core::mem::offset_of!(TVMFFIObject__bindgen_ty_1, __ensure_align) - 0usize];
};
const _: () = {
    ["Size of TVMFFIObject"][::core::mem::size_of::<TVMFFIObject>() - 24usize];
    ["Alignment of TVMFFIObject"][::core::mem::align_of::<TVMFFIObject>() - 8usize];
    ["Offset of field: TVMFFIObject::combined_ref_count"][::core::mem::offset_of!(TVMFFIObject, combined_ref_count) - 0usize];
    ["Offset of field: TVMFFIObject::type_index"][::core::mem::offset_of!(TVMFFIObject, type_index) - 8usize];
    ["Offset of field: TVMFFIObject::__padding"][::core::mem::offset_of!(TVMFFIObject, __padding) - 12usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub struct TVMFFIAny {
    pub type_index: i32,
    pub __bindgen_anon_1: TVMFFIAny__bindgen_ty_1,
    pub __bindgen_anon_2: TVMFFIAny__bindgen_ty_2,
}
#[repr(C)]
#[derive(Copy, Clone)]
pub union TVMFFIAny__bindgen_ty_1 {
    pub zero_padding: u32,
    pub small_str_len: u32,
}
const _: () = {
    ["Size of TVMFFIAny__bindgen_ty_1"][::core::mem::size_of::<TVMFFIAny__bindgen_ty_1>() - 4usize];
    ["Alignment of TVMFFIAny__bindgen_ty_1"][::core::mem::align_of::<TVMFFIAny__bindgen_ty_1>() - 4usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_1::zero_padding"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_1, zero_padding) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_1::small_str_len"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_1, small_str_len) - 0usize];
};
#[repr(C)]
#[derive(Copy, Clone)]
pub union TVMFFIAny__bindgen_ty_2 {
    pub v_int64: i64,
    pub v_float64: f64,
    pub v_ptr: *mut ::core::ffi::c_void,
    pub v_c_str: *const ::core::ffi::c_char,
    pub v_obj: *mut TVMFFIObject,
    pub v_dtype: DLDataType,
    pub v_device: DLDevice,
    pub v_bytes: [::core::ffi::c_char; 8usize],
    pub v_uint64: u64,
}
const _: () = {
    ["Size of TVMFFIAny__bindgen_ty_2"][::core::mem::size_of::<TVMFFIAny__bindgen_ty_2>() - 8usize];
    ["Alignment of TVMFFIAny__bindgen_ty_2"][::core::mem::align_of::<TVMFFIAny__bindgen_ty_2>() - 8usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_int64"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_int64) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_float64"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_float64) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_ptr"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_ptr) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_c_str"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_c_str) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_obj"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_obj) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_dtype"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_dtype) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_device"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_device) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_bytes"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_bytes) - 0usize];
    ["Offset of field: TVMFFIAny__bindgen_ty_2::v_uint64"][::core::mem::offset_of!(TVMFFIAny__bindgen_ty_2, v_uint64) - 0usize];
};
const _: () = {
    ["Size of TVMFFIAny"][::core::mem::size_of::<TVMFFIAny>() - 16usize];
    ["Alignment of TVMFFIAny"][::core::mem::align_of::<TVMFFIAny>() - 8usize];
    ["Offset of field: TVMFFIAny::type_index"][::core::mem::offset_of!(TVMFFIAny, type_index) - 0usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct TVMFFIByteArray {
    pub data: *const ::core::ffi::c_char,
    pub size: usize,
}
const _: () = {
    ["Size of TVMFFIByteArray"][::core::mem::size_of::<TVMFFIByteArray>() - 16usize];
    ["Alignment of TVMFFIByteArray"][::core::mem::align_of::<TVMFFIByteArray>() - 8usize];
    ["Offset of field: TVMFFIByteArray::data"][::core::mem::offset_of!(TVMFFIByteArray, data) - 0usize];
    ["Offset of field: TVMFFIByteArray::size"][::core::mem::offset_of!(TVMFFIByteArray, size) - 8usize];
};
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct TVMFFIErrorCell {
    pub kind: TVMFFIByteArray,
    pub message: TVMFFIByteArray,
    pub backtrace: TVMFFIByteArray,
    pub update_backtrace:
        ::core::option::Option<unsafe extern "C" fn(self_: TVMFFIObjectHandle, backtrace: *const TVMFFIByteArray, update_mode: i32)>,
    pub cause_chain: TVMFFIObjectHandle,
    pub extra_context: TVMFFIObjectHandle,
}
const _: () = {
    ["Size of TVMFFIErrorCell"][::core::mem::size_of::<TVMFFIErrorCell>() - 72usize];
    ["Alignment of TVMFFIErrorCell"][::core::mem::align_of::<TVMFFIErrorCell>() - 8usize];
    ["Offset of field: TVMFFIErrorCell::kind"][::core::mem::offset_of!(TVMFFIErrorCell, kind) - 0usize];
    ["Offset of field: TVMFFIErrorCell::message"][::core::mem::offset_of!(TVMFFIErrorCell, message) - 16usize];
    ["Offset of field: TVMFFIErrorCell::backtrace"][::core::mem::offset_of!(TVMFFIErrorCell, backtrace) - 32usize];
    ["Offset of field: TVMFFIErrorCell::update_backtrace"][::core::mem::offset_of!(TVMFFIErrorCell, update_backtrace) - 48usize];
    ["Offset of field: TVMFFIErrorCell::cause_chain"][::core::mem::offset_of!(TVMFFIErrorCell, cause_chain) - 56usize];
    ["Offset of field: TVMFFIErrorCell::extra_context"][::core::mem::offset_of!(TVMFFIErrorCell, extra_context) - 64usize];
};
pub type TVMFFISafeCallType = ::core::option::Option<
    unsafe extern "C-unwind" fn(
        handle: *mut ::core::ffi::c_void,
        args: *const TVMFFIAny,
        num_args: i32,
        result: *mut TVMFFIAny,
    ) -> ::core::ffi::c_int,
>;
pub type TVMFFIGetVersion_fn = ::core::option::Option<unsafe extern "C" fn(arg1: *mut TVMFFIVersion)>;
pub type TVMFFIObjectDecRef_fn = ::core::option::Option<unsafe extern "C" fn(arg1: *mut ::core::ffi::c_void) -> ::core::ffi::c_int>;
pub type TVMFFIFunctionGetGlobal_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *const TVMFFIByteArray, arg2: *mut *mut ::core::ffi::c_void) -> ::core::ffi::c_int>;
pub type TVMFFIFunctionCall_fn = ::core::option::Option<
    unsafe extern "C-unwind" fn(
        arg1: *mut ::core::ffi::c_void,
        arg2: *mut TVMFFIAny,
        arg3: ::core::ffi::c_int,
        arg4: *mut TVMFFIAny,
    ) -> ::core::ffi::c_int,
>;
pub type TVMFFIErrorMoveFromRaised_fn = ::core::option::Option<unsafe extern "C" fn(arg1: *mut *mut ::core::ffi::c_void)>;
pub type TVMFFIErrorSetRaisedFromCStr_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *const ::core::ffi::c_char, arg2: *const ::core::ffi::c_char)>;
pub type TVMFFIStringFromByteArray_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *const TVMFFIByteArray, arg2: *mut TVMFFIAny) -> ::core::ffi::c_int>;
pub type TVMFFITensorFromDLPackVersioned_fn = ::core::option::Option<
    unsafe extern "C" fn(
        arg1: *mut DLManagedTensorVersioned,
        arg2: ::core::ffi::c_int,
        arg3: ::core::ffi::c_int,
        arg4: *mut *mut ::core::ffi::c_void,
    ) -> ::core::ffi::c_int,
>;
pub type TVMFFIEnvSetDLPackManagedTensorAllocator_fn = ::core::option::Option<
    unsafe extern "C" fn(
        arg1: ::core::option::Option<
            unsafe extern "C" fn(
                arg1: *mut DLTensor,
                arg2: *mut *mut DLManagedTensorVersioned,
                arg3: *mut ::core::ffi::c_void,
                arg4: ::core::option::Option<
                    unsafe extern "C" fn(
                        arg1: *mut ::core::ffi::c_void,
                        arg2: *const ::core::ffi::c_char,
                        arg3: *const ::core::ffi::c_char,
                    ),
                >,
            ) -> ::core::ffi::c_int,
        >,
        arg2: ::core::ffi::c_int,
        arg3: *mut ::core::option::Option<
            unsafe extern "C" fn(
                arg1: *mut DLTensor,
                arg2: *mut *mut DLManagedTensorVersioned,
                arg3: *mut ::core::ffi::c_void,
                arg4: ::core::option::Option<
                    unsafe extern "C" fn(
                        arg1: *mut ::core::ffi::c_void,
                        arg2: *const ::core::ffi::c_char,
                        arg3: *const ::core::ffi::c_char,
                    ),
                >,
            ) -> ::core::ffi::c_int,
        >,
    ) -> ::core::ffi::c_int,
>;
