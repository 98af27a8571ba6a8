// Types of level_zero/ze_api.h, from the Debian package libze-dev. Written by `cargo xtask codegen`.

#[repr(C)]
#[derive(Debug)]
pub struct _ze_driver_handle_t {
    _unused: [u8; 0],
}
#[repr(C)]
#[derive(Debug)]
pub struct _ze_device_handle_t {
    _unused: [u8; 0],
}
pub const ZE_RESULT_SUCCESS: _ze_result_t = 0;
pub type _ze_result_t = ::core::ffi::c_uint;
pub const ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES: _ze_structure_type_t = 3;
pub type _ze_structure_type_t = ::core::ffi::c_uint;
pub use self::_ze_structure_type_t as ze_structure_type_t;
pub type ze_device_uuid_t = _ze_device_uuid_t;
pub const ZE_DEVICE_TYPE_GPU: _ze_device_type_t = 1;
pub type _ze_device_type_t = ::core::ffi::c_uint;
pub use self::_ze_device_type_t as ze_device_type_t;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _ze_device_uuid_t {
    pub id: [u8; 16usize],
}
const _: () = {
    ["Size of _ze_device_uuid_t"][::core::mem::size_of::<_ze_device_uuid_t>() - 16usize];
    ["Alignment of _ze_device_uuid_t"][::core::mem::align_of::<_ze_device_uuid_t>() - 1usize];
    ["Offset of field: _ze_device_uuid_t::id"][::core::mem::offset_of!(_ze_device_uuid_t, id) - 0usize];
};
pub type ze_device_property_flags_t = u32;
#[repr(C)]
#[derive(Debug, Copy, Clone)]
pub struct _ze_device_properties_t {
    pub stype: ze_structure_type_t,
    pub pNext: *mut ::core::ffi::c_void,
    pub type_: ze_device_type_t,
    pub vendorId: u32,
    pub deviceId: u32,
    pub flags: ze_device_property_flags_t,
    pub subdeviceId: u32,
    pub coreClockRate: u32,
    pub maxMemAllocSize: u64,
    pub maxHardwareContexts: u32,
    pub maxCommandQueuePriority: u32,
    pub numThreadsPerEU: u32,
    pub physicalEUSimdWidth: u32,
    pub numEUsPerSubslice: u32,
    pub numSubslicesPerSlice: u32,
    pub numSlices: u32,
    pub timerResolution: u64,
    pub timestampValidBits: u32,
    pub kernelTimestampValidBits: u32,
    pub uuid: ze_device_uuid_t,
    pub name: [::core::ffi::c_char; 256usize],
}
const _: () = {
    ["Size of _ze_device_properties_t"][::core::mem::size_of::<_ze_device_properties_t>() - 368usize];
    ["Alignment of _ze_device_properties_t"][::core::mem::align_of::<_ze_device_properties_t>() - 8usize];
    ["Offset of field: _ze_device_properties_t::stype"][::core::mem::offset_of!(_ze_device_properties_t, stype) - 0usize];
    ["Offset of field: _ze_device_properties_t::pNext"][::core::mem::offset_of!(_ze_device_properties_t, pNext) - 8usize];
    ["Offset of field: _ze_device_properties_t::type_"][::core::mem::offset_of!(_ze_device_properties_t, type_) - 16usize];
    ["Offset of field: _ze_device_properties_t::vendorId"][::core::mem::offset_of!(_ze_device_properties_t, vendorId) - 20usize];
    ["Offset of field: _ze_device_properties_t::deviceId"][::core::mem::offset_of!(_ze_device_properties_t, deviceId) - 24usize];
    ["Offset of field: _ze_device_properties_t::flags"][::core::mem::offset_of!(_ze_device_properties_t, flags) - 28usize];
    ["Offset of field: _ze_device_properties_t::subdeviceId"][::core::mem::offset_of!(_ze_device_properties_t, subdeviceId) - 32usize];
    ["Offset of field: _ze_device_properties_t::coreClockRate"][::core::mem::offset_of!(_ze_device_properties_t, coreClockRate) - 36usize];
    ["Offset of field: _ze_device_properties_t::maxMemAllocSize"]
        [::core::mem::offset_of!(_ze_device_properties_t, maxMemAllocSize) - 40usize];
    ["Offset of field: _ze_device_properties_t::maxHardwareContexts"]
        [::core::mem::offset_of!(_ze_device_properties_t, maxHardwareContexts) - 48usize];
    ["Offset of field: _ze_device_properties_t::maxCommandQueuePriority"]
        [::core::mem::offset_of!(_ze_device_properties_t, maxCommandQueuePriority) - 52usize];
    ["Offset of field: _ze_device_properties_t::numThreadsPerEU"]
        [::core::mem::offset_of!(_ze_device_properties_t, numThreadsPerEU) - 56usize];
    ["Offset of field: _ze_device_properties_t::physicalEUSimdWidth"]
        [::core::mem::offset_of!(_ze_device_properties_t, physicalEUSimdWidth) - 60usize];
    ["Offset of field: _ze_device_properties_t::numEUsPerSubslice"]
        [::core::mem::offset_of!(_ze_device_properties_t, numEUsPerSubslice) - 64usize];
    ["Offset of field: _ze_device_properties_t::numSubslicesPerSlice"]
        [::core::mem::offset_of!(_ze_device_properties_t, numSubslicesPerSlice) - 68usize];
    ["Offset of field: _ze_device_properties_t::numSlices"][::core::mem::offset_of!(_ze_device_properties_t, numSlices) - 72usize];
    ["Offset of field: _ze_device_properties_t::timerResolution"]
        [::core::mem::offset_of!(_ze_device_properties_t, timerResolution) - 80usize];
    ["Offset of field: _ze_device_properties_t::timestampValidBits"]
        [::core::mem::offset_of!(_ze_device_properties_t, timestampValidBits) - 88usize];
    ["Offset of field: _ze_device_properties_t::kernelTimestampValidBits"]
        [::core::mem::offset_of!(_ze_device_properties_t, kernelTimestampValidBits) - 92usize];
    ["Offset of field: _ze_device_properties_t::uuid"][::core::mem::offset_of!(_ze_device_properties_t, uuid) - 96usize];
    ["Offset of field: _ze_device_properties_t::name"][::core::mem::offset_of!(_ze_device_properties_t, name) - 112usize];
};
pub type zeInit_fn = ::core::option::Option<unsafe extern "C" fn(arg1: ::core::ffi::c_uint) -> _ze_result_t>;
pub type zeDriverGet_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *mut ::core::ffi::c_uint, arg2: *mut *mut _ze_driver_handle_t) -> _ze_result_t>;
pub type zeDeviceGet_fn = ::core::option::Option<
    unsafe extern "C" fn(
        arg1: *mut _ze_driver_handle_t,
        arg2: *mut ::core::ffi::c_uint,
        arg3: *mut *mut _ze_device_handle_t,
    ) -> _ze_result_t,
>;
pub type zeDeviceGetProperties_fn =
    ::core::option::Option<unsafe extern "C" fn(arg1: *mut _ze_device_handle_t, arg2: *mut _ze_device_properties_t) -> _ze_result_t>;
