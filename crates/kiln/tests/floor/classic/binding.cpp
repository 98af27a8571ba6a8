// The programs behind torch's C++ ABI, whose exceptions cross the border as C++ exceptions.
#include <ATen/ATen.h>
#include <torch/library.h>

#include "programs.h"
#include "registration.h"

static at::Tensor relu(const at::Tensor &input) {
  TORCH_CHECK(input.scalar_type() == at::kFloat, "relu: expected float, got ", input.scalar_type());
  at::Tensor output = at::empty_like(input);
  const float *from = input.const_data_ptr<float>();
  float *to = output.mutable_data_ptr<float>();
  for (int64_t i = 0; i < input.numel(); i++) to[i] = from[i] > 0 ? from[i] : 0.f;
  return output;
}

static std::string echo(std::string text) { return "<" + text + ">"; }

// What torch throws, caught here by its own type.
static std::string caught(const at::Tensor &input) {
  try {
    (void)at::narrow(input, 0, 100000, 1);
  } catch (const c10::IndexError &error) {
    return std::string("caught: ") + error.what_without_backtrace();
  } catch (const c10::Error &error) {
    return std::string("caught: ") + error.what_without_backtrace();
  }
  return "nothing was thrown";
}

static std::string throws(std::string kind, std::string text) {
  if (kind == "torch") TORCH_CHECK(false, "torch:", text);
  if (kind == "index") TORCH_CHECK_INDEX(false, "index:", text);
  return program_throw(kind, text);
}

TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("relu(Tensor input) -> Tensor", &relu);
  ops.def("caught(Tensor input) -> str", &caught);
  ops.def("echo(str text) -> str", &echo);
  ops.def("text(str word) -> str", &program_text);
  ops.def("files(str dir) -> str", &program_files);
  ops.def("numbers(float x) -> str", &program_numbers);
  ops.def("errors(str word) -> str", &program_errors);
  ops.def("threads(int count) -> str", &program_threads);
  ops.def("futures() -> str", &program_futures);
  ops.def("parallel_sum(int count) -> int", &program_parallel_sum);
  ops.def("throws(str kind, str text) -> str", &throws);
  ops.def("uncaught() -> int", &program_uncaught);
}
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
