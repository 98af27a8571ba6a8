// The host of the shaders, in C++ by metal-cpp. Torch's stable ABI has no access to torch's own queue of commands, so these ops work on
// one of their own: they wait for what torch has queued before they read, and for their own work before they return.

#define METALCPP_SYMBOL_VISIBILITY_HIDDEN
#define NS_PRIVATE_IMPLEMENTATION
#define MTL_PRIVATE_IMPLEMENTATION
#include <Foundation/Foundation.hpp>
#include <Metal/Metal.hpp>
#include <dispatch/dispatch.h>

#include "arguments.h"
#include "sizes.h"
#include "torch_binding.h"

#include EMBEDDED_METALLIB_HEADER

#include <torch/csrc/stable/device.h>
#include <torch/csrc/stable/ops.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string>

namespace {

using namespace rms_norm_arguments;
using torch::headeronly::IntHeaderOnlyArrayRef;
using torch::headeronly::ScalarType;
using torch::stable::Tensor;

// What Metal's languages call elements of `dtype`.
const char *device_type(ScalarType dtype, const char *op) {
  switch (dtype) {
  case ScalarType::Float:
    return "float";
  case ScalarType::Half:
    return "half";
  case ScalarType::BFloat16:
    return "bfloat";
  default:
    STD_TORCH_CHECK(false, op, ": unsupported dtype, expected float32, float16 or bfloat16");
  }
}

void check_device_arguments(const Tensor &input, const Tensor &weight, const char *op) {
  check_arguments(input, weight, op);
  STD_TORCH_CHECK(weight.get_device_index() == input.get_device_index(), op, ": weight and input must be on the same device");
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  const Rows rows = rows_of(input);
  STD_TORCH_CHECK(rows.count <= kMost && rows.length <= kMost - kGroup, op, ": input has too many rows, or too long ones");
}

// Waits until the device has done what torch asked of it: one element that goes to the host comes behind all of it.
void wait_for_torch(const Tensor &tensor) {
  if (tensor.numel() == 0) {
    return;
  }
  Tensor host = torch::stable::empty({1}, tensor.scalar_type(), std::nullopt, torch::stable::Device(torch::headeronly::DeviceType::CPU));
  Tensor flat = torch::stable::flatten(tensor, 0, -1);
  torch::stable::copy_(host, torch::stable::narrow(flat, 0, 0, 1), /*non_blocking=*/false);
}

std::string text(const NS::Error *error) {
  return error == nullptr ? "no reason was given" : error->localizedDescription()->utf8String();
}

// The shaders on one device, and a queue for them. They live as long as the process.
struct Shaders {
  MTL::Library *library = nullptr;
  MTL::CommandQueue *queue = nullptr;

  explicit Shaders(MTL::Device *device) {
    namespace embedded = EMBEDDED_METALLIB_NAMESPACE;
    // The bytes live as long as the extension: nothing is copied, and nothing is freed.
    dispatch_data_t data = dispatch_data_create(embedded::metallib_data, embedded::metallib_data_len, nullptr, ^{
    });
    NS::Error *error = nullptr;
    library = device->newLibrary(data, &error);
    dispatch_release(data);
    STD_TORCH_CHECK(library != nullptr, "rms_norm: the device does not take the shaders: ", text(error));
    queue = device->newCommandQueue();
    STD_TORCH_CHECK(queue != nullptr, "rms_norm: the device has no queue");
  }
};

// Macs have one device that torch uses.
Shaders &shaders_of(MTL::Device *device) {
  static Shaders shaders(device);
  return shaders;
}

// To torch, the address of a tensor's storage on this device is the buffer itself; that of an element is so many bytes behind it.
struct Place {
  MTL::Buffer *buffer;
  NS::UInteger offset;
};

Place place_of(const Tensor &tensor) {
  const auto offset = static_cast<size_t>(tensor.storage_offset()) * tensor.element_size();
  const auto *address = static_cast<const char *>(tensor.const_data_ptr()) - offset;
  return {reinterpret_cast<MTL::Buffer *>(const_cast<char *>(address)), offset};
}

// One kernel with its tensors, in groups of `kGroup` threads, until it is done.
void run(const std::string &name, std::initializer_list<const Tensor *> tensors, Sizes sizes, uint32_t groups) {
  NS::AutoreleasePool *pool = NS::AutoreleasePool::alloc()->init();
  MTL::Device *device = place_of(**tensors.begin()).buffer->device();
  Shaders &shaders = shaders_of(device);
  MTL::Function *function = shaders.library->newFunction(NS::String::string(name.c_str(), NS::UTF8StringEncoding));
  STD_TORCH_CHECK(function != nullptr, "rms_norm: there is no shader ", name);
  NS::Error *error = nullptr;
  MTL::ComputePipelineState *pipeline = device->newComputePipelineState(function, &error);
  function->release();
  STD_TORCH_CHECK(pipeline != nullptr, "rms_norm: the device does not take the shader ", name, ": ", text(error));
  MTL::CommandBuffer *commands = shaders.queue->commandBuffer();
  MTL::ComputeCommandEncoder *encoder = commands->computeCommandEncoder();
  encoder->setComputePipelineState(pipeline);
  NS::UInteger index = 0;
  for (const Tensor *tensor : tensors) {
    const Place place = place_of(*tensor);
    encoder->setBuffer(place.buffer, place.offset, index++);
  }
  encoder->setBytes(&sizes, sizeof(sizes), index);
  encoder->dispatchThreadgroups(MTL::Size(groups, 1, 1), MTL::Size(kGroup, 1, 1));
  encoder->endEncoding();
  commands->commit();
  commands->waitUntilCompleted();
  const bool failed = commands->status() != MTL::CommandBufferStatusCompleted;
  const std::string reason = failed ? text(commands->error()) : "";
  pipeline->release();
  pool->release();
  STD_TORCH_CHECK(!failed, "rms_norm: ", name, " failed: ", reason);
}

} // namespace

std::tuple<Tensor, Tensor> rms_norm_forward(const Tensor &input, const Tensor &weight, double eps) {
  check_device_arguments(input, weight, "rms_norm_forward");
  const Tensor source = torch::stable::contiguous(input);
  const Tensor scale = torch::stable::contiguous(weight);
  const IntHeaderOnlyArrayRef sizes = source.sizes();
  Tensor output = torch::stable::new_empty(source, sizes);
  Tensor rstd = torch::stable::new_empty(source, IntHeaderOnlyArrayRef(sizes.data(), sizes.size() - 1), ScalarType::Float);
  const Rows rows = rows_of(source);
  const std::string type = device_type(source.scalar_type(), "rms_norm_forward");
  if (rows.count == 0) {
    return {output, torch::stable::zero_(rstd)};
  }
  wait_for_torch(source);
  const Sizes all{static_cast<uint32_t>(rows.count), static_cast<uint32_t>(rows.length), static_cast<float>(eps)};
  run("forward_" + type, {&source, &scale, &output, &rstd}, all, all.count);
  return {output, rstd};
}

std::tuple<Tensor, Tensor> rms_norm_backward(const Tensor &grad_output, const Tensor &input, const Tensor &weight,
                                             const Tensor &rstd) {
  check_device_arguments(input, weight, "rms_norm_backward");
  STD_TORCH_CHECK(same_sizes(grad_output, input), "rms_norm_backward: grad_output and input must have the same shape");
  STD_TORCH_CHECK(grad_output.scalar_type() == input.scalar_type(),
                  "rms_norm_backward: grad_output and input must have the same dtype");
  const Tensor grad = torch::stable::contiguous(grad_output);
  const Tensor source = torch::stable::contiguous(input);
  const Tensor scale = torch::stable::contiguous(weight);
  const Tensor saved = torch::stable::contiguous(rstd);
  const Rows rows = rows_of(source);
  STD_TORCH_CHECK(saved.scalar_type() == ScalarType::Float && (rows.count == 0 || saved.numel() == rows.count),
                  "rms_norm_backward: rstd must hold one float for each row of input");
  Tensor grad_input = torch::stable::new_empty(source, source.sizes());
  Tensor grad_weight = torch::stable::new_empty(scale, scale.sizes());
  const std::string type = device_type(source.scalar_type(), "rms_norm_backward");
  if (rows.count == 0) {
    return {grad_input, torch::stable::zero_(grad_weight)};
  }
  wait_for_torch(grad);
  const Sizes all{static_cast<uint32_t>(rows.count), static_cast<uint32_t>(rows.length), 0.0f};
  run("grad_input_" + type, {&grad, &source, &scale, &saved, &grad_input}, all, all.count);
  run("grad_weight_" + type, {&grad, &source, &saved, &grad_weight}, all, (all.length + kGroup - 1) / kGroup);
  return {grad_input, grad_weight};
}
