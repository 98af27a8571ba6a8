// Loads an extension and calls its functions through the C interface of tvm-ffi. Argument: the extension.
#include <dlfcn.h>

#include <cstdio>
#include <string>

#include <tvm/ffi/c_api.h>

using Function = int (*)(void *self, const TVMFFIAny *args, int32_t count, TVMFFIAny *result);

static TVMFFIAny of(DLTensor *tensor) {
  TVMFFIAny any{};
  any.type_index = kTVMFFIDLTensorPtr;
  any.v_ptr = tensor;
  return any;
}

// A short text is in the value itself.
static std::string text(const TVMFFIAny &any) {
  const TVMFFIByteArray bytes =
      any.type_index == kTVMFFISmallStr ? TVMFFISmallBytesGetContentByteArray(&any) : *TVMFFIBytesGetByteArrayPtr(any.v_obj);
  return std::string(bytes.data, bytes.size);
}

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : nullptr;
  if (!library) {
    std::puts(argc == 2 ? dlerror() : "one argument");
    return 2;
  }
  const auto name = reinterpret_cast<Function>(dlsym(library, "__tvm_ffi_name"));
  const auto twice = reinterpret_cast<Function>(dlsym(library, "__tvm_ffi_twice"));
  if (!name || !twice) return 2;

  TVMFFIAny result{};
  if (name(nullptr, nullptr, 0, &result) != 0) return 3;
  std::puts(text(result).c_str());

  float from[] = {1, -2, 3}, to[] = {0, 0, 0};
  int64_t shape[] = {3}, strides[] = {1};
  DLTensor in{from, {kDLCPU, 0}, 1, {kDLFloat, 32, 1}, shape, strides, 0};
  DLTensor out = in;
  out.data = to;
  const TVMFFIAny args[] = {of(&in), of(&out)};
  result = TVMFFIAny{};
  if (twice(nullptr, args, 2, &result) != 0) return 4;
  std::printf("%g %g %g\n", to[0], to[1], to[2]);

  // A wrong type is an error with a message, and not the end of the process.
  in.dtype.bits = 64;
  if (twice(nullptr, args, 2, &result) == 0) return 5;
  TVMFFIObjectHandle error = nullptr;
  TVMFFIErrorMoveFromRaised(&error);
  const TVMFFIByteArray message = TVMFFIErrorGetCellPtr(error)->message;
  std::puts(std::string(message.data, message.size).c_str());
  return 0;
}
