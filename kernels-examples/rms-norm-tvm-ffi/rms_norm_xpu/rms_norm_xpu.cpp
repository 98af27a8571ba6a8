#include "rms_norm.h"

#include <sycl/sycl.hpp>

#include <tvm/ffi/extra/c_env_api.h>

// Kernels have names, so that every SYCL compiler can take host and device apart.
template <typename scalar_t> class rms_norm_forward_kernel;
template <typename scalar_t> class rms_norm_grad_input_kernel;
template <typename scalar_t> class rms_norm_grad_weight_kernel;

namespace {

using namespace rms_norm_device;

constexpr int64_t kGroup = 256;

// A queue of this library's own, for callers who have none. It is never destroyed: at the end of the process its runtime may be gone.
sycl::queue &own_queue() {
  static auto *queue = new sycl::queue(sycl::property::queue::in_order());
  return *queue;
}

// What the caller works with just now, or the queue of this library.
struct Queue {
  sycl::queue *caller = nullptr;

  explicit Queue(DLDevice device) {
    if (device.device_type == kDLOneAPI) {
      caller = static_cast<sycl::queue *>(TVMFFIEnvGetStream(device.device_type, device.device_id));
    }
  }

  // Starts `work`. Nobody else could wait for what is done on a queue that nobody else knows.
  template <typename Work> void submit(Work work) {
    if (caller != nullptr) {
      work(*caller);
    } else {
      work(own_queue());
      own_queue().wait_and_throw();
    }
  }
};

// Calls `body` with a value of the type that holds elements of `tensor`.
template <typename Body> void with_scalar_type(TensorView tensor, Body body) {
  if (tensor.dtype().code == kDLBfloat) {
    return body(sycl::ext::oneapi::bfloat16{});
  }
  return tensor.dtype().bits == 16 ? body(sycl::half{}) : body(float{});
}

sycl::nd_range<1> groups(int64_t count) { return {static_cast<size_t>(count * kGroup), static_cast<size_t>(kGroup)}; }

template <typename scalar_t> float value(scalar_t x) { return static_cast<float>(x); }

} // namespace

namespace rms_norm_device {

bool reaches_host() { return own_queue().get_device().has(sycl::aspect::usm_system_allocations); }

// A group for each row.
void forward(Rows rows, TensorView input, TensorView weight, TensorView output, TensorView rstd, float eps) {
  with_scalar_type(input, [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *x = data<const scalar_t>(input);
    const auto *w = data<const scalar_t>(weight);
    auto *y = data<scalar_t>(output);
    auto *inverse = data<float>(rstd);
    const int64_t length = rows.length;
    Queue(input.device()).submit([=](sycl::queue &queue) {
      queue.parallel_for<rms_norm_forward_kernel<scalar_t>>(groups(rows.count), [=](sycl::nd_item<1> item) {
        const int64_t row = static_cast<int64_t>(item.get_group(0));
        const int64_t first = row * length;
        const int64_t lane = static_cast<int64_t>(item.get_local_id(0));
        float squares = 0.0f;
        for (int64_t i = lane; i < length; i += kGroup) {
          squares += value(x[first + i]) * value(x[first + i]);
        }
        const float sum = sycl::reduce_over_group(item.get_group(), squares, sycl::plus<float>());
        const float r = 1.0f / sycl::sqrt(sum / static_cast<float>(length) + eps);
        if (lane == 0) {
          inverse[row] = r;
        }
        for (int64_t i = lane; i < length; i += kGroup) {
          y[first + i] = static_cast<scalar_t>(value(x[first + i]) * r * value(w[i]));
        }
      });
    });
  });
}

// d input[i] = rstd * (g[i] * w[i] - input[i] * rstd^2 * mean(g * w * input)), a group for each row;
// d weight[i] = sum over rows of g[i] * input[i] * rstd, an item for each column, its sum always in the same order.
void backward(Rows rows, TensorView grad_output, TensorView input, TensorView weight, TensorView rstd, TensorView grad_input,
              TensorView grad_weight) {
  with_scalar_type(input, [&](auto tag) {
    using scalar_t = decltype(tag);
    const auto *g = data<const scalar_t>(grad_output);
    const auto *x = data<const scalar_t>(input);
    const auto *w = data<const scalar_t>(weight);
    const auto *inverse = data<const float>(rstd);
    auto *dx = data<scalar_t>(grad_input);
    auto *dw = data<scalar_t>(grad_weight);
    const auto [count, length] = rows;
    Queue(input.device()).submit([=, count = count, length = length](sycl::queue &queue) {
      queue.parallel_for<rms_norm_grad_input_kernel<scalar_t>>(groups(count), [=](sycl::nd_item<1> item) {
        const int64_t row = static_cast<int64_t>(item.get_group(0));
        const int64_t first = row * length;
        const int64_t lane = static_cast<int64_t>(item.get_local_id(0));
        float dot = 0.0f;
        for (int64_t i = lane; i < length; i += kGroup) {
          dot += value(g[first + i]) * value(w[i]) * value(x[first + i]);
        }
        const float r = inverse[row];
        const float shared =
            r * r * sycl::reduce_over_group(item.get_group(), dot, sycl::plus<float>()) / static_cast<float>(length);
        for (int64_t i = lane; i < length; i += kGroup) {
          dx[first + i] = static_cast<scalar_t>(r * (value(g[first + i]) * value(w[i]) - value(x[first + i]) * shared));
        }
      });
      queue.parallel_for<rms_norm_grad_weight_kernel<scalar_t>>(groups((length + kGroup - 1) / kGroup), [=](sycl::nd_item<1> item) {
        const int64_t column = static_cast<int64_t>(item.get_global_id(0));
        if (column >= length) {
          return;
        }
        float sum = 0.0f;
        for (int64_t row = 0; row < count; ++row) {
          sum += value(g[row * length + column]) * value(x[row * length + column]) * inverse[row];
        }
        dw[column] = static_cast<scalar_t>(sum);
      });
    });
  });
}

} // namespace rms_norm_device
