// A kernel and host code that asks a new system for much. Without a GPU the launch fails, which the runtime tells.
#include <cuda_runtime.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

static __global__ void twice(float *values) { values[threadIdx.x] *= 2; }

static std::string launch() {
  twice<<<1, 1>>>(nullptr);
  std::ostringstream said;
  said << "the launch: " << cudaGetErrorString(cudaGetLastError()) << ' ' << std::pow(2.0, 0.5) << ' ' << std::hypot(3.0, 4.0);
  throw std::runtime_error(said.str());
}

extern "C" __attribute__((visibility("default"))) int check(const char *dir) {
  int version = 0, faults = 0;
  if (cudaRuntimeGetVersion(&version) != cudaSuccess || version / 1000 != 13) faults |= 1;
  try {
    launch();
    faults |= 2;
  } catch (const std::exception &error) {
    if (std::string(error.what()).find("the launch: ") != 0) faults |= 4;
  }
  if (std::uncaught_exceptions() != 0) faults |= 8;
  if (!std::filesystem::is_directory(dir)) faults |= 16;
  auto shared = std::make_shared<int>(0);
  std::thread([shared] { *shared = 7; }).join();
  if (*shared != 7) faults |= 32;
  return faults;
}
