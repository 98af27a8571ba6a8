// The programs behind torch's stable ABI.
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#include <torch/headeronly/core/ScalarType.h>

#include "programs.h"
#include "registration.h"

using torch::stable::Tensor;

static Tensor relu(const Tensor &input) {
  STD_TORCH_CHECK(input.scalar_type() == torch::headeronly::ScalarType::Float, "relu: expected float");
  Tensor output = torch::stable::empty_like(input);
  const float *from = static_cast<const float *>(input.data_ptr());
  float *to = static_cast<float *>(output.data_ptr());
  for (int64_t i = 0; i < input.numel(); i++) to[i] = from[i] > 0 ? from[i] : 0.f;
  return output;
}

static std::string echo(std::string text) { return "<" + text + ">"; }

// What torch refuses, caught here.
static std::string caught(const Tensor &input) {
  try {
    torch::stable::narrow(const_cast<Tensor &>(input), 0, 100000, 1);
  } catch (const std::exception &error) {
    return std::string("caught: ") + error.what();
  }
  return "nothing was thrown";
}

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, m) {
  m.def("relu(Tensor input) -> Tensor");
  m.def("caught(Tensor input) -> str");
  m.def("echo(str text) -> str");
  m.def("text(str word) -> str");
  m.def("files(str dir) -> str");
  m.def("numbers(float x) -> str");
  m.def("errors(str word) -> str");
  m.def("threads(int count) -> str");
  m.def("futures() -> str");
  m.def("parallel_sum(int count) -> int");
  m.def("throws(str kind, str text) -> str");
  m.def("uncaught() -> int");
}

STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CompositeExplicitAutograd, m) {
  m.impl("relu", TORCH_BOX(&relu));
  m.impl("caught", TORCH_BOX(&caught));
  m.impl("echo", TORCH_BOX(&echo));
  m.impl("text", TORCH_BOX(&program_text));
  m.impl("files", TORCH_BOX(&program_files));
  m.impl("numbers", TORCH_BOX(&program_numbers));
  m.impl("errors", TORCH_BOX(&program_errors));
  m.impl("threads", TORCH_BOX(&program_threads));
  m.impl("futures", TORCH_BOX(&program_futures));
  m.impl("parallel_sum", TORCH_BOX(&program_parallel_sum));
  m.impl("throws", TORCH_BOX(&program_throw));
  m.impl("uncaught", TORCH_BOX(&program_uncaught));
}
REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
