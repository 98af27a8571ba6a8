// GLIBCXX_3.4.29, gcc 11. The ABI has the same function under its own name (CXXABI_1.3.8).
extern "C" {
[[noreturn]] void __cxa_throw_bad_array_new_length();
[[noreturn]] void _ZSt28__throw_bad_array_new_lengthv() { __cxa_throw_bad_array_new_length(); }
}
