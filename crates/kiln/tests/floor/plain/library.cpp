#include "programs.h"

#include <algorithm>
#include <any>
#include <charconv>
#include <chrono>
#include <cmath>
#include <codecvt>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <limits>
#include <locale>
#include <map>
#include <memory>
#include <memory_resource>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <system_error>
#include <typeinfo>
#include <unordered_map>
#include <variant>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <math.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

namespace fs = std::filesystem;

std::string program_text(std::string word) {
  Faults faults;
  std::vector<std::string> list;
  for (int i = 0; i < 1000; i++) list.push_back(word + std::to_string(i));
  std::map<std::string, int> sorted;
  std::unordered_map<std::string, int> hashed;
  std::set<size_t> sizes;
  std::deque<std::string> queue;
  for (const auto &entry : list) {
    sorted[entry]++;
    hashed[entry]++;
    sizes.insert(entry.size());
    queue.push_front(entry);
  }
  std::sort(list.begin(), list.end(), std::greater<>());
  EXPECT(list.front() == word + "999" && sorted.size() == 1000 && hashed.size() == 1000 && sizes.size() == 3 && queue.back() == word + "0");

  std::regex pairs("([a-z]+)([0-9]+)");
  std::smatch match;
  std::string rest = "abc12 def345", found;
  while (std::regex_search(rest, match, pairs)) {
    found += match[2].str() + match[1].str() + ";";
    rest = match.suffix();
  }
  EXPECT(found == "12abc;345def;" && std::regex_replace(std::string("abc12 def345"), pairs, "$2") == "12 345");
  bool refused = false;
  try {
    std::regex broken("(");
  } catch (const std::regex_error &error) {
    refused = error.code() == std::regex_constants::error_paren;
  }
  EXPECT(refused);

  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << std::hex << 255 << ' ' << std::boolalpha << true << ' ' << std::fixed << std::setprecision(3) << 1.5 << ' ' << std::dec << 7;
  EXPECT(out.str() == "ff true 1.500 7");
  std::stringstream both("12 words");
  int number = 0;
  std::string text;
  both >> number >> text;
  EXPECT(number == 12 && text == "words" && both.eof());
  std::tm time{};
  std::istringstream when("2024-03-05 10:11:12");
  when >> std::get_time(&time, "%Y-%m-%d %H:%M:%S");
  EXPECT(when && time.tm_year == 124 && time.tm_mon == 2 && time.tm_sec == 12);
  std::ostringstream shown;
  shown << std::put_time(&time, "%H:%M") << std::put_money(1234.0L);
  EXPECT(shown.str() == "10:111234");
  std::locale classic = std::locale::classic();
  EXPECT(std::use_facet<std::ctype<char>>(classic).toupper('a') == 'A' && std::isalpha('z', classic));
  EXPECT(std::use_facet<std::numpunct<char>>(std::locale()).decimal_point() == '.');
  bool unknown = false;
  try {
    std::locale none("no-such-locale");
  } catch (const std::runtime_error &) {
    unknown = true;
  }
  EXPECT(unknown);
  std::wstring_convert<std::codecvt_utf8<wchar_t>> converter;
  EXPECT(converter.from_bytes("\xc3\xa4!") == L"\u00e4!" && converter.to_bytes(L"\u00e4") == "\xc3\xa4");
  std::wostringstream wide;
  wide << L"wide " << 3;
  EXPECT(wide.str() == L"wide 3");
  std::cout << "[extension] to cout " << word << std::endl;
  std::cerr << "[extension] to cerr " << word << std::endl;
  return faults.text;
}

std::string program_files(std::string dir) {
  Faults faults;
  fs::path root = fs::path(dir) / "of the extension";
  fs::create_directories(root / "deep" / "er");
  {
    std::ofstream out(root / "a.txt");
    out << "hello " << std::setprecision(10) << 3.14159265 << std::endl;
  }
  EXPECT(fs::copy_file(root / "a.txt", root / "deep" / "b.txt"));
  size_t files = 0, bytes = 0;
  for (const auto &entry : fs::recursive_directory_iterator(root)) {
    if (entry.is_regular_file()) {
      files++;
      bytes += fs::file_size(entry.path());
    }
  }
  EXPECT(files == 2 && bytes == 2 * 17);
  std::ifstream in(root / "deep" / "b.txt");
  std::string word;
  double value = 0;
  in >> word >> value;
  EXPECT(word == "hello" && value == 3.14159265);
  struct stat by_name {}, by_number {}, of_dir {};
  std::string name = (root / "a.txt").string();
  int file = ::open(name.c_str(), O_RDONLY);
  EXPECT(::stat(name.c_str(), &by_name) == 0 && ::fstat(file, &by_number) == 0 && ::lstat(root.c_str(), &of_dir) == 0);
  EXPECT(by_name.st_ino == by_number.st_ino && by_name.st_size == 17 && S_ISDIR(of_dir.st_mode));
  ::close(file);
  fs::create_symlink("a.txt", root / "link");
  EXPECT(fs::read_symlink(root / "link") == "a.txt" && fs::canonical(root / "link").filename() == "a.txt");
  EXPECT(fs::last_write_time(root / "a.txt") <= fs::file_time_type::clock::now() && fs::space(root).capacity > 0);
  EXPECT(fs::relative(root / "deep", root) == "deep" && fs::path("a/../b").lexically_normal() == "b");
  std::error_code code;
  EXPECT(fs::file_size(root / "none", code) == static_cast<uintmax_t>(-1) && code == std::errc::no_such_file_or_directory);
  try {
    fs::rename(root / "none", root / "other");
    EXPECT(!"renamed");
  } catch (const fs::filesystem_error &error) {
    EXPECT(error.path1() == root / "none" && error.code().value() == ENOENT && std::strstr(error.what(), "none"));
  }
  EXPECT(fs::remove_all(root) == 6 && !fs::exists(root));
  return faults.text;
}

std::string program_numbers(double x) {
  Faults faults;
  std::mt19937_64 generator(1);
  std::normal_distribution<double> normal;
  EXPECT(std::isfinite(normal(generator)) && std::random_device()() != std::random_device()());
  double y = std::pow(x, 1.5) + std::exp(x) + std::log(x) + std::log2(x) + std::exp2(x) + std::hypot(x, 2.0) + std::fmod(x * 7, 3.0) +
             std::lgamma(x) + std::sqrt(x) + ::exp10(x);
  float single = static_cast<float>(x);
  float z = std::pow(single, 1.5f) + std::exp(single) + std::log(single) + ::powf(single, 2.f) + ::expf(single) + ::logf(single) +
            ::fmodf(single, 2.f) + ::hypotf(single, 1.f) + ::log2f(single) + ::exp2f(single);
  double sine, cosine;
  ::sincos(x, &sine, &cosine);
  y += sine + cosine + static_cast<double>(::expl(x) + ::powl(x, 2.0L));
  EXPECT(std::isfinite(y) && std::isfinite(z) && std::abs(sine * sine + cosine * cosine - 1) < 1e-15);
  char buffer[64];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, y).ptr;
  double back = 0;
  std::from_chars(buffer, end, back);
  EXPECT(back == y);
  int integer = 0;
  std::from_chars("1234", "1234" + 4, integer);
  EXPECT(integer == 1234 && std::stoi("42") == 42 && std::strtol("7", nullptr, 10) == 7 && std::strtoull("0x9", nullptr, 0) == 9);
  EXPECT(std::stod("1.5") == 1.5 && std::strtof("2.5", nullptr) == 2.5f && std::atoi("3") == 3);
  int one = 0, two = 0;
  EXPECT(std::sscanf("5 6", "%d %d", &one, &two) == 2 && one + two == 11);
  std::complex<double> turned = std::exp(std::complex<double>(0, M_PI));
  EXPECT(std::abs(turned + 1.0) < 1e-15);
  return faults.text;
}

namespace {
struct Mine : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <typename Error, typename Body>
bool throws(Body body) {
  try {
    body();
  } catch (const Error &) {
    return true;
  }
  return false;
}
}  // namespace

std::string program_errors(std::string word) {
  Faults faults;
  std::variant<int, std::string> variant = word;
  std::any any = word;
  std::optional<std::string> optional;
  std::vector<int> list;
  EXPECT(throws<std::bad_optional_access>([&] { (void)optional.value(); }));
  EXPECT(throws<std::bad_variant_access>([&] { (void)std::get<int>(variant); }));
  EXPECT(throws<std::bad_any_cast>([&] { (void)std::any_cast<int>(any); }));
  EXPECT(throws<std::invalid_argument>([&] { (void)std::stoi(word); }));
  EXPECT(throws<std::out_of_range>([&] { (void)list.at(5); }));
  EXPECT(throws<std::length_error>([&] { list.reserve(static_cast<size_t>(-1)); }));
  EXPECT(throws<std::length_error>([&] { word.resize(static_cast<size_t>(-1)); }));
  // gcc throws the more special bad_array_new_length.
  EXPECT(throws<std::bad_alloc>([&] {
    volatile long count = -1;
    // Compilers may leave out what is only made and removed.
    int *volatile made = new int[count];
    delete[] made;
  }));
  EXPECT(throws<std::bad_alloc>([&] {
    volatile size_t count = std::numeric_limits<size_t>::max() / 8;
    int *volatile made = new int[count];
    delete[] made;
  }));
  EXPECT(throws<std::bad_cast>([&] { (void)std::use_facet<std::ctype<char16_t>>(std::locale::classic()); }));
  EXPECT(throws<std::bad_function_call>([] { std::function<void()>()(); }));

  std::pmr::monotonic_buffer_resource memory;
  std::pmr::vector<int> from_memory(&memory);
  for (int i = 0; i < 100; i++) from_memory.push_back(i);
  EXPECT(from_memory.back() == 99);
  std::exception_ptr kept;
  try {
    throw Mine("kept");
  } catch (...) {
    kept = std::current_exception();
  }
  std::vector<std::exception_ptr> copies(5, kept);
  kept = nullptr;
  try {
    std::rethrow_exception(copies.back());
  } catch (const Mine &mine) {
    EXPECT(!std::strcmp(mine.what(), "kept"));
  }
  copies.clear();
  try {
    try {
      throw Mine("inner");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("outer"));
    }
  } catch (const std::exception &outer) {
    EXPECT(throws<Mine>([&] { std::rethrow_if_nested(outer); }));
  }
  try {
    throw std::system_error(std::make_error_code(std::errc::io_error), "x");
  } catch (const std::system_error &error) {
    EXPECT(error.code() == std::errc::io_error && error.code().category() == std::generic_category());
  }
  struct alignas(64) Aligned {
    char bytes[64];
  };
  auto aligned = std::make_unique<Aligned>();
  EXPECT(reinterpret_cast<uintptr_t>(aligned.get()) % 64 == 0);
  EXPECT(::dlsym(RTLD_DEFAULT, "malloc") != nullptr && typeid(Mine).name() != nullptr);
  EXPECT(std::uncaught_exceptions() == 0);
  return faults.text;
}

std::string program_throw(std::string kind, std::string text) {
  if (kind == "mine") throw Mine("mine:" + text);
  if (kind == "files") (void)fs::file_size("/no-such-file/" + text);
  throw std::out_of_range("range:" + text);
}

int64_t program_uncaught() { return std::uncaught_exceptions(); }
