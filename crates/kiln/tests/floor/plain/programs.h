// Programs that use much of the C++ and C libraries and nothing of torch. Each gives what was wrong, or nothing.
#pragma once
#include <cstdint>
#include <string>

std::string program_text(std::string word);
std::string program_files(std::string dir);
std::string program_numbers(double x);
std::string program_errors(std::string word);
std::string program_threads(int64_t count);
std::string program_futures();
int64_t program_parallel_sum(int64_t count);

// Throws an exception of its own, of the C++ library, or of its filesystem part.
std::string program_throw(std::string kind, std::string text);
// The count of this extension's view.
int64_t program_uncaught();

struct Faults {
  std::string text;
  void check(bool good, const char *what, int line) {
    if (!good) text += "line " + std::to_string(line) + ": " + what + "\n";
  }
};
#define EXPECT(condition) faults.check(static_cast<bool>(condition), #condition, __LINE__)
