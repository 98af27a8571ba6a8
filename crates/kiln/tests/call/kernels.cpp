// Functions that behave, and functions that do not.

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/function.h>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>

namespace {

using tvm::ffi::Tensor;
using tvm::ffi::TensorView;

#ifndef DEVICE
#define DEVICE kDLCPU
#endif

void check(const TensorView& tensor, const char* name) {
  if (tensor.device().device_type != DEVICE) {
    TVM_FFI_THROW(ValueError) << name << " must be on device " << DEVICE;
  }
  DLDataType dtype = tensor.dtype();
  if (dtype.code != kDLFloat || dtype.bits != 32) {
    TVM_FFI_THROW(TypeError) << name << " must be float32";
  }
  if (!tensor.IsContiguous()) {
    TVM_FFI_THROW(ValueError) << name << " must be contiguous";
  }
}

int64_t count(const TensorView& tensor) {
  int64_t product = 1;
  for (int64_t i = 0; i < tensor.ndim(); ++i) product *= tensor.size(i);
  return product;
}

void relu(TensorView out, TensorView in) {
  check(out, "out");
  check(in, "in");
  if (count(out) == 0) TVM_FFI_THROW(ValueError) << "out is empty";
  const float* from = static_cast<const float*>(in.data_ptr());
  float* to = static_cast<float*>(out.data_ptr());
  for (int64_t i = 0; i < count(out); ++i) to[i] = from[i] > 0 ? from[i] : 0;
}

// Wrong by a little, where the other one is right.
void relu_off(TensorView out, TensorView in) {
  relu(out, in);
  static_cast<float*>(out.data_ptr())[1] += 0.25f;
}

Tensor scaled(TensorView in, double factor) {
  check(in, "in");
  Tensor out = Tensor::FromEnvAlloc(TVMFFIEnvTensorAlloc, in.shape(), in.dtype(), in.device());
  for (int64_t i = 0; i < count(in); ++i) {
    static_cast<float*>(out.data_ptr())[i] = static_cast<const float*>(in.data_ptr())[i] * static_cast<float>(factor);
  }
  return out;
}

std::string greet(std::string name, int64_t times, bool loudly) {
  std::printf("this is said by the kernel\n");
  std::string text;
  for (int64_t i = 0; i < times; ++i) text += (loudly ? "HELLO " : "hello ") + name + ";";
  return text;
}

int64_t answer() { return 42; }

void past_the_end(TensorView out) { static_cast<float*>(out.data_ptr())[count(out)] = 1; }

void throws(TensorView) { throw std::runtime_error("the kernel's own words"); }

void throws_a_number(TensorView) { throw 7; }

void crashes(TensorView) { *reinterpret_cast<volatile int*>(8) = 1; }

void ends(TensorView) { std::exit(0); }

void ends_at_once(TensorView) { std::_Exit(0); }

void hangs(TensorView) {
  for (;;) std::this_thread::sleep_for(std::chrono::milliseconds(50));
}

// Leaves a process behind, and says which.
void forks(TensorView) {
  int child = fork();
  if (child == 0) {
    sleep(600);
    std::_Exit(0);
  }
  std::printf("forked %d\n", child);
}

// Leaves a process in a session of its own, whose parent is gone, says which, and ends in one of several ways.
void leaves(TensorView, int64_t how) {
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("pipe");
  int between = fork();
  if (between == 0) {
    setsid();
    int process = fork();
    if (process == 0) {
      for (int file = 0; file < 256; ++file) close(file);
      sleep(600);
      std::_Exit(0);
    }
    if (write(ends[1], &process, sizeof process) < 0) std::_Exit(1);
    std::_Exit(0);
  }
  int process = 0;
  if (read(ends[0], &process, sizeof process) < 0) throw std::runtime_error("read");
  waitpid(between, nullptr, 0);
  std::fprintf(stderr, "left %d\n", process);
  if (how == 1) for (;;) pause();
  if (how == 2) *reinterpret_cast<volatile int*>(8) = 1;
  if (how == 3) std::_Exit(7);
  if (how == 4) std::raise(SIGKILL);
}

// As the system does for want of memory.
void killed(TensorView) { std::raise(SIGKILL); }

void goes_elsewhere(TensorView out) {
  if (chdir("/") != 0) throw std::runtime_error("/");
  static_cast<float*>(out.data_ptr())[0] = 7;
}

// Words of languages where others have names.
double class_of(TensorView self, int64_t lambda) { return lambda == 0 ? std::nan("") : static_cast<double>(self.ndim()); }

int64_t beyond(TensorView out) {
  for (int64_t i = 0; i < count(out); ++i) static_cast<int64_t*>(out.data_ptr())[i] = (int64_t{1} << 53) + 1;
  return (int64_t{1} << 53) + 1;
}

void half(TensorView out) {
  for (int64_t i = 0; i < count(out); ++i) static_cast<float*>(out.data_ptr())[i] = 0.5f;
}

double number() { return 0.5; }

int64_t numel(TensorView in) { return count(in); }

DLDataType dtype_of(TensorView in) { return in.dtype(); }

DLDevice device_of(TensorView in) { return in.device(); }

DLDevice pinned() { return DLDevice{kDLCUDAHost, 2}; }

tvm::ffi::Array<int64_t> numbers() { return {1, 2}; }

// Crashes in the allocator, while that keeps everybody else out.
void frees(TensorView in) { std::free(in.data_ptr()); }

void closes(TensorView out) {
  for (int file = 0; file < 256; ++file) close(file);
  half(out);
}

// Writes into whatever is open, and, if so wanted, into the file in the directory that is the last argument of this process.
void scribbles(TensorView, bool finds) {
  for (int file = 3; file < 64; ++file) {
    ssize_t ignored = write(file, "scribble scribble scribble\n", 27);
    static_cast<void>(ignored);
  }
  if (!finds) return;
  std::ifstream arguments("/proc/self/cmdline");
  std::string dir, argument;
  while (std::getline(arguments, argument, '\0')) dir = argument;
  std::ofstream(dir + "/answers.jsonl", std::ios::app) << "scribble\n";
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu, relu);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu_off, relu_off);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scaled, scaled);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(greet, greet);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(answer, answer);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(past_the_end, past_the_end);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(throws, throws);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(throws_a_number, throws_a_number);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(crashes, crashes);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(ends, ends);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(ends_at_once, ends_at_once);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(hangs, hangs);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(forks, forks);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(leaves, leaves);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(killed, killed);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(goes_elsewhere, goes_elsewhere);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(class, class_of);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(beyond, beyond);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(half, half);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(number, number);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(numel, numel);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(dtype_of, dtype_of);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(device_of, device_of);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(pinned, pinned);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(numbers, numbers);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(frees, frees);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(closes, closes);
TVM_FFI_DLL_EXPORT_TYPED_FUNC(scribbles, scribbles);

// By hand: a code, and no error.
extern "C" __attribute__((visibility("default"))) int __tvm_ffi_says_nothing(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) { return -1; }

extern "C" __attribute__((visibility("default"))) int __tvm_ffi_hangs_without(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) {
  for (;;) pause();
}

extern "C" __attribute__((visibility("default"))) int __tvm_ffi_seven(void*, const TVMFFIAny*, int32_t, TVMFFIAny*) { return 7; }

// By hand too, and without a look at how many arguments there are.
extern "C" __attribute__((visibility("default"))) int __tvm_ffi_crashes_without(void*, const TVMFFIAny*, int32_t count, TVMFFIAny*) {
  return *reinterpret_cast<volatile int*>(8L + count);
}
