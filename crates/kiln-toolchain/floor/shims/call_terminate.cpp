// CXXABI_1.3.15, gcc 13: an exception wants to leave a function that is noexcept.
extern "C" void *__cxa_begin_catch(void *) noexcept;
namespace std {
[[noreturn]] void terminate() noexcept;
}

extern "C" [[noreturn]] void __cxa_call_terminate(void *exception) noexcept {
  if (exception) __cxa_begin_catch(exception);
  std::terminate();
}
