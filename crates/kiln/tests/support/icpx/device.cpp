// Compiles SYCL to SPIR-V with the compiler inside Intel's SYCL runtime: the device half of `sycl-shim`. The runtime leaves the images
// in the working directory where `SYCL_DUMP_IMAGES` says so.
//
// sycl-device SOURCE [OPTION]...

#include <sycl/sycl.hpp>

#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

namespace oneapi = sycl::ext::oneapi::experimental;

int main(int count, char **arguments) {
  if (count < 2) {
    std::cerr << "sycl-device SOURCE [OPTION]...\n";
    return 64;
  }
  std::ifstream file(arguments[1], std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::vector<std::string> options(arguments + 2, arguments + count);
  std::string log;
  try {
    const sycl::queue queue;
    auto source = oneapi::create_kernel_bundle_from_source(queue.get_context(), oneapi::source_language::sycl, text);
    oneapi::build(source, oneapi::properties{oneapi::build_options{options}, oneapi::save_log{&log}});
  } catch (const std::exception &error) {
    std::cerr << log << error.what() << '\n';
    return 1;
  }
  std::cerr << log;
  return 0;
}
