// GLIBCXX_3.4.30, gcc 12, with -D_GLIBCXX_ASSERTIONS.
extern "C" {
int dprintf(int, const char *, ...);
[[noreturn]] void abort();

[[noreturn]] void _ZSt21__glibcxx_assert_failPKciS0_S0_(const char *file, int line, const char *function, const char *condition) {
  if (file && function && condition) dprintf(2, "%s:%d: %s: Assertion '%s' failed.\n", file, line, function, condition);
  abort();
}
}
