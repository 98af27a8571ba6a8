// The programs behind tvm-ffi, whose functions turn C++ exceptions into errors of the caller.
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/error.h>
#include <tvm/ffi/function.h>
#include <tvm/ffi/string.h>

#include "programs.h"

using tvm::ffi::String;
using tvm::ffi::TensorView;

static void relu(TensorView input, TensorView output) {
  if (input.dtype().code != kDLFloat || input.dtype().bits != 32 || input.numel() != output.numel()) {
    TVM_FFI_THROW(TypeError) << "relu: expected float";
  }
  const float *from = static_cast<const float *>(input.data_ptr());
  float *to = static_cast<float *>(output.data_ptr());
  for (int64_t i = 0; i < input.numel(); i++) to[i] = from[i] > 0 ? from[i] : 0.f;
}

static String echo(String text) { return "<" + std::string(text) + ">"; }

// What tvm-ffi throws, caught here by its own type.
static String caught() {
  try {
    tvm::ffi::Function::GetGlobalRequired("a function that nobody has");
  } catch (const tvm::ffi::Error &error) {
    return "caught: " + error.message();
  }
  return "nothing was thrown";
}

static String text(String word) { return program_text(word); }
static String files(String dir) { return program_files(dir); }
static String numbers(double x) { return program_numbers(x); }
static String errors(String word) { return program_errors(word); }
static String threads(int64_t count) { return program_threads(count); }
static String futures() { return program_futures(); }
static String throws(String kind, String text) {
  if (kind == "tvm") TVM_FFI_THROW(IndexError) << "tvm:" << text;
  return program_throw(kind, text);
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(relu, relu)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(echo, echo)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(caught, caught)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(text, text)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(files, files)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(numbers, numbers)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(errors, errors)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(threads, threads)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(futures, futures)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(parallel_sum, program_parallel_sum)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(throws, throws)
TVM_FFI_DLL_EXPORT_TYPED_FUNC(uncaught, program_uncaught)
