// Calls every shim by its own name, whatever the headers of this system make of the function. `check` gives the number of faults.
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <cwchar>
#include <exception>
#include <iostream>
#include <locale.h>
#include <memory>
#include <new>
#include <semaphore.h>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int faults;
#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::fprintf(stderr, "line %d: %s\n", __LINE__, #condition);        \
      faults++;                                                           \
    }                                                                     \
  } while (0)

#define NAMED(name) __asm__(name)
extern "C" {
extern char single_threaded NAMED("__libc_single_threaded");

int call_stat(const char *, struct stat *) NAMED("stat");
int call_lstat(const char *, struct stat *) NAMED("lstat");
int call_fstat(int, struct stat *) NAMED("fstat");
int call_fstatat(int, const char *, struct stat *, int) NAMED("fstatat");
int call_stat64(const char *, struct stat64 *) NAMED("stat64");
int call_lstat64(const char *, struct stat64 *) NAMED("lstat64");
int call_fstat64(int, struct stat64 *) NAMED("fstat64");
int call_fstatat64(int, const char *, struct stat64 *, int) NAMED("fstatat64");
int call_mknod(const char *, mode_t, dev_t) NAMED("mknod");
int call_mknodat(int, const char *, mode_t, dev_t) NAMED("mknodat");

int cond_clockwait(pthread_cond_t *, pthread_mutex_t *, clockid_t, const timespec *) NAMED("pthread_cond_clockwait");
int mutex_clocklock(pthread_mutex_t *, clockid_t, const timespec *) NAMED("pthread_mutex_clocklock");
int rwlock_clockrdlock(pthread_rwlock_t *, clockid_t, const timespec *) NAMED("pthread_rwlock_clockrdlock");
int rwlock_clockwrlock(pthread_rwlock_t *, clockid_t, const timespec *) NAMED("pthread_rwlock_clockwrlock");
int call_sem_clockwait(sem_t *, clockid_t, const timespec *) NAMED("sem_clockwait");

void random_buf(void *, size_t) NAMED("arc4random_buf");
unsigned random_one() NAMED("arc4random");
unsigned random_below(unsigned) NAMED("arc4random_uniform");

long iso_strtol(const char *, char **, int) NAMED("__isoc23_strtol");
unsigned long iso_strtoul(const char *, char **, int) NAMED("__isoc23_strtoul");
long long iso_strtoll(const char *, char **, int) NAMED("__isoc23_strtoll");
unsigned long long iso_strtoull(const char *, char **, int) NAMED("__isoc23_strtoull");
long iso_strtoimax(const char *, char **, int) NAMED("__isoc23_strtoimax");
unsigned long iso_strtoumax(const char *, char **, int) NAMED("__isoc23_strtoumax");
long iso_wcstol(const wchar_t *, wchar_t **, int) NAMED("__isoc23_wcstol");
unsigned long iso_wcstoul(const wchar_t *, wchar_t **, int) NAMED("__isoc23_wcstoul");
long long iso_wcstoll(const wchar_t *, wchar_t **, int) NAMED("__isoc23_wcstoll");
unsigned long long iso_wcstoull(const wchar_t *, wchar_t **, int) NAMED("__isoc23_wcstoull");
long iso_wcstoimax(const wchar_t *, wchar_t **, int) NAMED("__isoc23_wcstoimax");
unsigned long iso_wcstoumax(const wchar_t *, wchar_t **, int) NAMED("__isoc23_wcstoumax");
long iso_strtol_l(const char *, char **, int, locale_t) NAMED("__isoc23_strtol_l");
unsigned long iso_strtoul_l(const char *, char **, int, locale_t) NAMED("__isoc23_strtoul_l");
long long iso_strtoll_l(const char *, char **, int, locale_t) NAMED("__isoc23_strtoll_l");
unsigned long long iso_strtoull_l(const char *, char **, int, locale_t) NAMED("__isoc23_strtoull_l");
long iso_wcstol_l(const wchar_t *, wchar_t **, int, locale_t) NAMED("__isoc23_wcstol_l");
unsigned long iso_wcstoul_l(const wchar_t *, wchar_t **, int, locale_t) NAMED("__isoc23_wcstoul_l");
long long iso_wcstoll_l(const wchar_t *, wchar_t **, int, locale_t) NAMED("__isoc23_wcstoll_l");
unsigned long long iso_wcstoull_l(const wchar_t *, wchar_t **, int, locale_t) NAMED("__isoc23_wcstoull_l");
int iso_sscanf(const char *, const char *, ...) NAMED("__isoc23_sscanf");
int iso_vsscanf(const char *, const char *, va_list) NAMED("__isoc23_vsscanf");
int iso_fscanf(FILE *, const char *, ...) NAMED("__isoc23_fscanf");
int iso_vfscanf(FILE *, const char *, va_list) NAMED("__isoc23_vfscanf");
int iso_scanf(const char *, ...) NAMED("__isoc23_scanf");
int iso_vscanf(const char *, va_list) NAMED("__isoc23_vscanf");
int iso_swscanf(const wchar_t *, const wchar_t *, ...) NAMED("__isoc23_swscanf");
int iso_vswscanf(const wchar_t *, const wchar_t *, va_list) NAMED("__isoc23_vswscanf");
int iso_fwscanf(FILE *, const wchar_t *, ...) NAMED("__isoc23_fwscanf");
int iso_vfwscanf(FILE *, const wchar_t *, va_list) NAMED("__isoc23_vfwscanf");
int iso_wscanf(const wchar_t *, ...) NAMED("__isoc23_wscanf");
int iso_vwscanf(const wchar_t *, va_list) NAMED("__isoc23_vwscanf");

size_t call_strlcpy(char *, const char *, size_t) NAMED("strlcpy");
size_t call_strlcat(char *, const char *, size_t) NAMED("strlcat");
size_t strlcpy_chk(char *, const char *, size_t, size_t) NAMED("__strlcpy_chk");
size_t strlcat_chk(char *, const char *, size_t, size_t) NAMED("__strlcat_chk");

int call_gettid() NAMED("gettid");
int call_tgkill(int, int, int) NAMED("tgkill");
long call_getdents64(int, void *, unsigned long) NAMED("getdents64");
int call_close_range(unsigned, unsigned, int) NAMED("close_range");
int memcmpeq(const void *, const void *, size_t) NAMED("__memcmpeq");
int call_atexit(void (*)()) NAMED("atexit");
int call_at_quick_exit(void (*)()) NAMED("at_quick_exit");
int call_atfork(void (*)(), void (*)(), void (*)()) NAMED("pthread_atfork");

void addref(void *) NAMED("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void release(void *) NAMED("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
void throw_bad_length() NAMED("_ZSt28__throw_bad_array_new_lengthv");
void make_ostringstream(void *) NAMED("_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1Ev");
void make_istringstream(void *) NAMED("_ZNSt7__cxx1119basic_istringstreamIcSt11char_traitsIcESaIcEEC1Ev");
void make_stringstream(void *) NAMED("_ZNSt7__cxx1118basic_stringstreamIcSt11char_traitsIcESaIcEEC1Ev");
void make_stringbuf(void *) NAMED("_ZNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEC1Ev");
void make_base_stringbuf(void *) NAMED("_ZNSt7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEEC2Ev");
void move_runtime_error(void *, void *) NAMED("_ZNSt13runtime_errorC1EOS_");
void move_base_runtime_error(void *, void *) NAMED("_ZNSt13runtime_errorC2EOS_");
void *assign_runtime_error(void *, void *) NAMED("_ZNSt13runtime_erroraSEOS_");
void move_logic_error(void *, void *) NAMED("_ZNSt11logic_errorC1EOS_");
void move_base_logic_error(void *, void *) NAMED("_ZNSt11logic_errorC2EOS_");
void *assign_logic_error(void *, void *) NAMED("_ZNSt11logic_erroraSEOS_");
void assert_fail(const char *, int, const char *, const char *) NAMED("_ZSt21__glibcxx_assert_failPKciS0_S0_");
void ios_library_init() NAMED("_ZSt21ios_base_library_initv");
void call_terminate(void *) NAMED("__cxa_call_terminate");
}

// Runs `body` in a child and gives what `waitpid` says and what the child wrote to its standard error.
template <typename Body>
static int in_child(std::string &said, Body body) {
  int ends[2];
  CHECK(pipe(ends) == 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    body();
    _exit(0);
  }
  close(ends[1]);
  char buffer[512];
  ssize_t got;
  said.clear();
  while ((got = read(ends[0], buffer, sizeof buffer)) > 0) said.append(buffer, got);
  close(ends[0]);
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

static void say(const char *text) { CHECK(write(2, text, std::strlen(text)) > 0); }

static void files(const std::string &dir) {
  std::string file = dir + "/file", link = dir + "/link";
  FILE *out = std::fopen(file.c_str(), "w");
  std::fputs("seven77", out);
  std::fclose(out);
  CHECK(symlink(file.c_str(), link.c_str()) == 0);
  int open_file = open(file.c_str(), O_RDONLY), open_dir = open(dir.c_str(), O_RDONLY | O_DIRECTORY);
  struct stat one {};
  CHECK(call_stat(link.c_str(), &one) == 0 && S_ISREG(one.st_mode) && one.st_size == 7);
  CHECK(call_lstat(link.c_str(), &one) == 0 && S_ISLNK(one.st_mode));
  CHECK(call_fstat(open_file, &one) == 0 && one.st_size == 7 && one.st_nlink == 1);
  CHECK(call_fstatat(open_dir, "link", &one, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(one.st_mode));
  CHECK(call_stat((dir + "/none").c_str(), &one) == -1 && errno == ENOENT);
  struct stat64 large {};
  CHECK(call_stat64(link.c_str(), &large) == 0 && large.st_size == 7);
  CHECK(call_lstat64(link.c_str(), &large) == 0 && S_ISLNK(large.st_mode));
  CHECK(call_fstat64(open_file, &large) == 0 && large.st_size == 7);
  CHECK(call_fstatat64(open_dir, "file", &large, 0) == 0 && large.st_size == 7);
  CHECK(call_mknod((dir + "/fifo").c_str(), S_IFIFO | 0600, 0) == 0);
  CHECK(call_mknodat(open_dir, "fifo2", S_IFIFO | 0600, 0) == 0);
  CHECK(call_stat((dir + "/fifo").c_str(), &one) == 0 && S_ISFIFO(one.st_mode));
  CHECK(call_stat((dir + "/fifo2").c_str(), &one) == 0 && S_ISFIFO(one.st_mode));
  char entries[4096];
  CHECK(call_getdents64(open_dir, entries, sizeof entries) > 100);
  // Old kernels do not have it; what counts is that the call arrives.
  errno = 0;
  int closed = call_close_range(open_dir, open_dir, 0);
  CHECK((closed == 0 && fcntl(open_dir, F_GETFD) == -1) || errno == ENOSYS);
  close(open_file);
}

static timespec from_now(clockid_t clock, long milliseconds) {
  timespec time;
  clock_gettime(clock, &time);
  long nanoseconds = time.tv_nsec + milliseconds % 1000 * 1000000;
  time.tv_sec += milliseconds / 1000 + nanoseconds / 1000000000;
  time.tv_nsec = nanoseconds % 1000000000;
  return time;
}

static void waiting() {
  for (clockid_t clock : {CLOCK_REALTIME, CLOCK_MONOTONIC}) {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    timespec soon = from_now(clock, 20), start = from_now(CLOCK_MONOTONIC, 0);
    pthread_mutex_lock(&mutex);
    CHECK(cond_clockwait(&condition, &mutex, clock, &soon) == ETIMEDOUT);
    timespec end = from_now(CLOCK_MONOTONIC, 0);
    CHECK((end.tv_sec - start.tv_sec) * 1000 + (end.tv_nsec - start.tv_nsec) / 1000000 >= 15);
    soon = from_now(clock, 5);
    CHECK(mutex_clocklock(&mutex, clock, &soon) == ETIMEDOUT);
    pthread_rwlock_wrlock(&lock);
    soon = from_now(clock, 5);
    int busy = rwlock_clockrdlock(&lock, clock, &soon);
    CHECK(busy == ETIMEDOUT || busy == EDEADLK);
    busy = rwlock_clockwrlock(&lock, clock, &soon);
    CHECK(busy == ETIMEDOUT || busy == EDEADLK);
    pthread_rwlock_unlock(&lock);
    CHECK(rwlock_clockrdlock(&lock, clock, &soon) == 0 && pthread_rwlock_unlock(&lock) == 0);
    CHECK(rwlock_clockwrlock(&lock, clock, &soon) == 0 && pthread_rwlock_unlock(&lock) == 0);
    soon = from_now(clock, 5);
    CHECK(call_sem_clockwait(&semaphore, clock, &soon) == -1 && errno == ETIMEDOUT);
    sem_post(&semaphore);
    CHECK(call_sem_clockwait(&semaphore, clock, &soon) == 0);
    timespec odd = {1, 2000000000};
    CHECK(cond_clockwait(&condition, &mutex, clock, &odd) == EINVAL);
    timespec far = {clock == CLOCK_MONOTONIC ? -0x7fffffffffffffff - 1 : 1, 0};
    CHECK(cond_clockwait(&condition, &mutex, clock, &far) == ETIMEDOUT);
    CHECK(call_sem_clockwait(&semaphore, 77, &soon) == -1 && errno == EINVAL);
    CHECK(cond_clockwait(&condition, &mutex, 77, &soon) == EINVAL);
    pthread_mutex_unlock(&mutex);
    CHECK(mutex_clocklock(&mutex, clock, &soon) == 0 && pthread_mutex_unlock(&mutex) == 0);
  }
}

#define LIST(name, call, first_type)               \
  static int name(first_type from, const char *format, ...) { \
    va_list list;                                  \
    va_start(list, format);                        \
    int read = call(from, format, list);           \
    va_end(list);                                  \
    return read;                                   \
  }
#define WIDE_LIST(name, call, first_type)          \
  static int name(first_type from, const wchar_t *format, ...) { \
    va_list list;                                  \
    va_start(list, format);                        \
    int read = call(from, format, list);           \
    va_end(list);                                  \
    return read;                                   \
  }
LIST(by_vsscanf, iso_vsscanf, const char *)
LIST(by_vfscanf, iso_vfscanf, FILE *)
WIDE_LIST(by_vswscanf, iso_vswscanf, const wchar_t *)
WIDE_LIST(by_vfwscanf, iso_vfwscanf, FILE *)
static int by_vscanf(const char *format, ...) {
  va_list list;
  va_start(list, format);
  int read = iso_vscanf(format, list);
  va_end(list);
  return read;
}
static int by_vwscanf(const wchar_t *format, ...) {
  va_list list;
  va_start(list, format);
  int read = iso_vwscanf(format, list);
  va_end(list);
  return read;
}

static void numbers(const std::string &dir) {
  char *end;
  wchar_t *wide_end;
  CHECK(iso_strtol("-0x10z", &end, 0) == -16 && *end == 'z');
  CHECK(iso_strtoul("77", nullptr, 8) == 63);
  CHECK(iso_strtoll("-9223372036854775808", nullptr, 10) == -0x7fffffffffffffff - 1);
  CHECK(iso_strtoull("18446744073709551615", nullptr, 10) == ~0ull);
  CHECK(iso_strtoimax("-5", nullptr, 10) == -5 && iso_strtoumax("5", nullptr, 10) == 5);
  CHECK(iso_wcstol(L"-7x", &wide_end, 10) == -7 && *wide_end == L'x');
  CHECK(iso_wcstoul(L"8", nullptr, 10) == 8 && iso_wcstoll(L"-9", nullptr, 10) == -9);
  CHECK(iso_wcstoull(L"ff", nullptr, 16) == 255 && iso_wcstoimax(L"-3", nullptr, 10) == -3);
  CHECK(iso_wcstoumax(L"4", nullptr, 10) == 4);
  locale_t c = newlocale(LC_ALL_MASK, "C", nullptr);
  CHECK(iso_strtol_l("-1", nullptr, 10, c) == -1 && iso_strtoul_l("2", nullptr, 10, c) == 2);
  CHECK(iso_strtoll_l("-3", nullptr, 10, c) == -3 && iso_strtoull_l("4", nullptr, 10, c) == 4);
  CHECK(iso_wcstol_l(L"-1", nullptr, 10, c) == -1 && iso_wcstoul_l(L"2", nullptr, 10, c) == 2);
  CHECK(iso_wcstoll_l(L"-3", nullptr, 10, c) == -3 && iso_wcstoull_l(L"4", nullptr, 10, c) == 4);
  freelocale(c);

  int a = 0, b = 0;
  double d = 0;
  CHECK(iso_sscanf("3 4 1.5", "%d %d %lf", &a, &b, &d) == 3 && a == 3 && b == 4 && d == 1.5);
  CHECK(by_vsscanf("5,6", "%d,%x", &a, &b) == 2 && a == 5 && b == 6);
  CHECK(iso_swscanf(L"7 8", L"%d %d", &a, &b) == 2 && a == 7 && b == 8);
  CHECK(by_vswscanf(L"9 10", L"%d %d", &a, &b) == 2 && a == 9 && b == 10);
  std::string file = dir + "/numbers";
  FILE *out = std::fopen(file.c_str(), "w");
  std::fputs("1 2 3 4", out);
  std::fclose(out);
  FILE *old = stdin;
  for (bool input : {false, true}) {
    FILE *narrow = std::fopen(file.c_str(), "r"), *wide = std::fopen(file.c_str(), "r");
    if (input) {
      stdin = narrow;
      CHECK(iso_scanf("%d %d", &a, &b) == 2 && a == 1 && b == 2);
      CHECK(by_vscanf("%d %d", &a, &b) == 2 && a == 3 && b == 4);
      stdin = wide;
      CHECK(iso_wscanf(L"%d %d", &a, &b) == 2 && a == 1 && b == 2);
      CHECK(by_vwscanf(L"%d %d", &a, &b) == 2 && a == 3 && b == 4);
      stdin = old;
    } else {
      CHECK(iso_fscanf(narrow, "%d %d", &a, &b) == 2 && a == 1 && b == 2);
      CHECK(by_vfscanf(narrow, "%d %d", &a, &b) == 2 && a == 3 && b == 4);
      CHECK(iso_fwscanf(wide, L"%d %d", &a, &b) == 2 && a == 1 && b == 2);
      CHECK(by_vfwscanf(wide, L"%d %d", &a, &b) == 2 && a == 3 && b == 4);
    }
    std::fclose(narrow);
    std::fclose(wide);
  }
}

static void texts() {
  char buffer[8] = "";
  std::string said;
  CHECK(call_strlcpy(buffer, "hello world", sizeof buffer) == 11 && !std::strcmp(buffer, "hello w"));
  buffer[3] = 0;
  CHECK(call_strlcat(buffer, "abcdefgh", sizeof buffer) == 11 && !std::strcmp(buffer, "helabcd"));
  CHECK(call_strlcat(buffer, "xy", 3) == 5 && call_strlcpy(nullptr, "ab", 0) == 2);
  CHECK(strlcpy_chk(buffer, "ab", sizeof buffer, sizeof buffer) == 2 && strlcat_chk(buffer, "cd", sizeof buffer, sizeof buffer) == 4);
  CHECK(!std::strcmp(buffer, "abcd"));
  CHECK(WIFSIGNALED(in_child(said, [&] { strlcpy_chk(buffer, "ab", 9, 8); })));
  CHECK(WIFSIGNALED(in_child(said, [&] { strlcat_chk(buffer, "ab", 9, 8); })));
  CHECK(!memcmpeq("ab", "ab", 2) && memcmpeq("ab", "ac", 2));
  unsigned char many[300] = {};
  random_buf(many, sizeof many);
  int other = 0;
  for (unsigned char byte : many) other += byte != 0;
  CHECK(other > 200 && random_one() != random_one());
  bool seen[3] = {};
  for (int i = 0; i < 200; i++) {
    unsigned value = random_below(3);
    CHECK(value < 3);
    if (value < 3) seen[value] = true;
  }
  CHECK(seen[0] && seen[1] && seen[2] && random_below(1) == 0 && random_below(0) == 0);
}

static int forks;
static void processes() {
  std::string said;
#ifndef WITHOUT_SHIMS_OF_OLD_SYSTEMS
  CHECK(single_threaded == 0);
#endif
  CHECK(call_gettid() == getpid() && call_tgkill(getpid(), call_gettid(), 0) == 0);
  CHECK(call_atfork([] { forks += 1; }, [] { forks += 10; }, [] { forks += 100; }) == 0);
  CHECK(WIFEXITED(in_child(said, [] { say(forks == 101 ? "in the child" : "not in the child"); })) && said == "in the child");
  CHECK(forks == 11);
  in_child(said, [] { call_atexit([] { say("at exit"); }), std::exit(0); });
  CHECK(said == "at exit");
  in_child(said, [] { call_at_quick_exit([] { say("at quick exit"); }), std::quick_exit(0); });
  CHECK(said == "at quick exit");
}

static int alive;
struct Counted {
  Counted() { alive++; }
  Counted(const Counted &) { alive++; }
  ~Counted() { alive--; }
};

// Where the shims are called by inline functions of the headers, and where they are not.
static void exceptions() {
  std::exception_ptr first;
  try {
    throw Counted();
  } catch (...) {
    first = std::current_exception();
  }
  CHECK(alive == 1);
  {
    std::exception_ptr second = first, third(second), moved(std::move(second));
    std::vector<std::exception_ptr> many(10, third);
    third = nullptr;
    CHECK(alive == 1 && many[9] == first && moved == first && !third);
    // What an inline copy and an inline destructor do.
    void *pointer;
    std::memcpy(&pointer, &first, sizeof pointer);
    void *copy = pointer;
    addref(&copy);
    CHECK(copy == pointer);
    release(&copy);
    CHECK(alive == 1);
#ifndef WITHOUT_SHIMS_OF_OLD_SYSTEMS
    CHECK(copy == nullptr);
    release(&copy);
    addref(&copy);
    CHECK(copy == nullptr && alive == 1);
#endif
  }
  try {
    std::rethrow_exception(first);
  } catch (Counted &) {
    CHECK(alive == 1);
  }
  first = nullptr;
  CHECK(alive == 0 && std::uncaught_exceptions() == 0);
  try {
    try {
      throw std::runtime_error("inner");
    } catch (...) {
      std::throw_with_nested(std::logic_error("outer"));
    }
  } catch (const std::logic_error &outer) {
    try {
      std::rethrow_if_nested(outer);
      CHECK(false);
    } catch (const std::runtime_error &inner) {
      CHECK(!std::strcmp(inner.what(), "inner"));
    }
  }
  bool caught = false;
  try {
    throw_bad_length();
  } catch (const std::bad_array_new_length &) {
    caught = true;
  }
  CHECK(caught);
  caught = false;
  try {
    struct Big {
      char bytes[1 << 20];
    };
    volatile size_t count = ~size_t(0) / 4;
    (void)std::allocator<Big>().allocate(count);
  } catch (const std::bad_alloc &) {
    caught = true;
  }
  CHECK(caught && std::uncaught_exceptions() == 0);
}

template <typename Class>
struct Raw {
  alignas(Class) char bytes[sizeof(Class)];
  Class &get() { return *reinterpret_cast<Class *>(bytes); }
  ~Raw() { get().~Class(); }
};

struct Derived : std::ostringstream {
  Derived() {}
};
struct DerivedBuffer : std::stringbuf {
  DerivedBuffer() {}
};

static void streams() {
  {
    Raw<std::ostringstream> raw;
    make_ostringstream(raw.bytes);
    raw.get() << "out " << 5;
    CHECK(raw.get().str() == "out 5");
  }
  {
    Raw<std::istringstream> raw;
    make_istringstream(raw.bytes);
    raw.get().str("7 words");
    int number = 0;
    CHECK(raw.get() >> number && number == 7);
  }
  {
    Raw<std::stringstream> raw;
    make_stringstream(raw.bytes);
    int number = 0;
    CHECK(raw.get() << 42 && raw.get() >> number && number == 42);
  }
  for (auto make : {make_stringbuf, make_base_stringbuf}) {
    Raw<std::stringbuf> raw;
    make(raw.bytes);
    raw.get().sputn("text", 4);
    CHECK(raw.get().str() == "text" && raw.get().sgetc() == 't');
  }
  std::ostringstream plain;
  Derived derived;
  DerivedBuffer buffer;
  plain << 1.5;
  derived << "derived";
  buffer.sputc('b');
  CHECK(plain.str() == "1.5" && derived.str() == "derived" && buffer.str() == "b");
  ios_library_init();
  std::cout << "cout works" << std::endl;
}

template <typename Error>
static void moves(void (*move)(void *, void *), void (*move_base)(void *, void *), void *(*assign)(void *, void *)) {
  for (auto by : {move, move_base}) {
    Error from("some text that is too long for a short string");
    Raw<Error> raw;
    by(raw.bytes, &from);
    CHECK(!std::strcmp(raw.get().what(), "some text that is too long for a short string"));
    Error to("other");
    CHECK(assign(&to, &raw.get()) == &to);
    CHECK(!std::strcmp(to.what(), "some text that is too long for a short string"));
  }
  Error inline_from("x"), inline_to(std::move(inline_from));
  inline_from = Error("y");
  CHECK(!std::strcmp(inline_to.what(), "x") && !std::strcmp(inline_from.what(), "y"));
}

// An emulator adds a line of its own about the signal.
static bool begins(const std::string &said, const char *with) {
  return said.compare(0, std::strlen(with), with) == 0;
}

static void ends() {
  std::string said;
  int status = in_child(said, [] { assert_fail("file.h", 3, "function", "condition"); });
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && begins(said, "file.h:3: function: Assertion 'condition' failed.\n"));
  status = in_child(said, [] {
    std::set_terminate([] {
      say("terminated");
      std::abort();
    });
    call_terminate(nullptr);
  });
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT && begins(said, "terminated"));
}

extern "C" __attribute__((visibility("default"))) int check(const char *dir) {
  files(dir);
  waiting();
  numbers(dir);
  texts();
  processes();
  exceptions();
  streams();
  moves<std::runtime_error>(move_runtime_error, move_base_runtime_error, assign_runtime_error);
  moves<std::logic_error>(move_logic_error, move_base_logic_error, assign_logic_error);
  ends();
  return faults;
}
