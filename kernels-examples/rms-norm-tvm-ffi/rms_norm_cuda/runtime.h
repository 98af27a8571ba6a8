#pragma once

#include <tvm/ffi/error.h>

// What the host asks of the run time, CUDA's or HIP's. Not for device code: it is read by the host's compiler alone.
#if defined(ROCM_KERNEL)

#include <hip/hip_runtime_api.h>

// Throws what a call of the run time has returned, unless it went well.
inline void check(int error) {
  if (error != hipSuccess) {
    TVM_FFI_THROW(RuntimeError) << "HIP error: " << hipGetErrorString(static_cast<hipError_t>(error));
  }
}

// Makes a device the current one as long as it lives.
class DeviceGuard {
public:
  explicit DeviceGuard(int device) {
    check(hipGetDevice(&before_));
    check(hipSetDevice(device));
  }
  ~DeviceGuard() { static_cast<void>(hipSetDevice(before_)); }
  DeviceGuard(const DeviceGuard &) = delete;
  DeviceGuard &operator=(const DeviceGuard &) = delete;

private:
  int before_ = 0;
};

#else

#include <tvm/ffi/extra/cuda/device_guard.h>

using DeviceGuard = tvm::ffi::CUDADeviceGuard;

inline void check(int error) { TVM_FFI_CHECK_CUDA_ERROR(static_cast<cudaError_t>(error)); }

#endif
