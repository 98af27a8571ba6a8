// The host of the shaders, in Objective-C++ on torch's own queue of commands.

#include "torch_binding.h"

#include EMBEDDED_METALLIB_HEADER

#include <ATen/mps/MPSStream.h>
#include <ATen/ops/empty_like.h>

#include <initializer_list>
#include <string>

namespace {

// What Metal's languages call elements of `dtype`.
const char *device_type(at::ScalarType dtype, const char *op) {
  switch (dtype) {
  case at::kFloat:
    return "float";
  case at::kHalf:
    return "half";
  case at::kBFloat16:
    return "bfloat";
  default:
    TORCH_CHECK(false, op, ": unsupported dtype ", dtype, ", expected float32, float16 or bfloat16");
  }
}

// The shaders on the one device that torch uses. They live as long as the process.
id<MTLLibrary> library() {
  static id<MTLLibrary> library = [] {
    NSError *error = nil;
    id<MTLLibrary> made =
        EMBEDDED_METALLIB_NAMESPACE::createLibrary(at::mps::getCurrentMPSStream()->device(), &error);
    TORCH_CHECK(made != nil, "relu: the device does not take the shaders: ", error.localizedDescription.UTF8String);
    return made;
  }();
  return library;
}

// To torch, the address of a tensor's storage on this device is the buffer itself.
id<MTLBuffer> buffer_of(const at::Tensor &tensor) { return __builtin_bit_cast(id<MTLBuffer>, tensor.storage().data()); }

// One kernel on as many threads as the first tensor has elements.
void run(const std::string &name, std::initializer_list<const at::Tensor *> tensors) {
  const auto count = static_cast<NSUInteger>((*tensors.begin())->numel());
  if (count == 0) {
    return;
  }
  at::mps::MPSStream *stream = at::mps::getCurrentMPSStream();
  dispatch_sync(stream->queue(), ^{
    NSError *error = nil;
    id<MTLFunction> function = [library() newFunctionWithName:@(name.c_str())];
    TORCH_CHECK(function != nil, "relu: there is no shader ", name);
    id<MTLComputePipelineState> pipeline = [stream->device() newComputePipelineStateWithFunction:function error:&error];
    TORCH_CHECK(pipeline != nil, "relu: the device does not take ", name, ": ", error.localizedDescription.UTF8String);
    id<MTLComputeCommandEncoder> encoder = stream->commandEncoder();
    [encoder setComputePipelineState:pipeline];
    NSUInteger index = 0;
    for (const at::Tensor *tensor : tensors) {
      const NSUInteger offset = static_cast<NSUInteger>(tensor->storage_offset()) * tensor->element_size();
      [encoder setBuffer:buffer_of(*tensor) offset:offset atIndex:index++];
    }
    const NSUInteger width = MIN(pipeline.maxTotalThreadsPerThreadgroup, count);
    [encoder dispatchThreads:MTLSizeMake(count, 1, 1) threadsPerThreadgroup:MTLSizeMake(width, 1, 1)];
#if !__has_feature(objc_arc)
    [pipeline release];
    [function release];
#endif
  });
}

} // namespace

at::Tensor relu(const at::Tensor &input) {
  const at::Tensor source = input.contiguous();
  at::Tensor output = at::empty_like(source, at::MemoryFormat::Contiguous);
  run(std::string("forward_") + device_type(source.scalar_type(), "relu"), {&source, &output});
  return output;
}

at::Tensor relu_backward(const at::Tensor &grad_output, const at::Tensor &output) {
  TORCH_CHECK(grad_output.sizes() == output.sizes(), "relu_backward: shapes differ: ", grad_output.sizes(), " and ",
              output.sizes());
  TORCH_CHECK(grad_output.scalar_type() == output.scalar_type(), "relu_backward: dtypes differ: ",
              grad_output.scalar_type(), " and ", output.scalar_type());
  TORCH_CHECK(grad_output.device() == output.device(), "relu_backward: devices differ");
  const at::Tensor grad = grad_output.contiguous();
  const at::Tensor result = output.contiguous();
  at::Tensor grad_input = at::empty_like(grad, at::MemoryFormat::Contiguous);
  run(std::string("backward_") + device_type(grad.scalar_type(), "relu_backward"), {&grad, &result, &grad_input});
  return grad_input;
}
