/* glibc 2.30 (gettid, tgkill, getdents64) and 2.34 (close_range): thin covers of system calls. */
extern long syscall(long, ...);

#if defined(__x86_64__)
#define GETTID 186
#define TGKILL 234
#define GETDENTS64 217
#elif defined(__aarch64__)
#define GETTID 178
#define TGKILL 131
#define GETDENTS64 61
#else
#error "the system calls of this processor are not known"
#endif
#define CLOSE_RANGE 436

int gettid(void) { return (int)syscall(GETTID); }
int tgkill(int process, int thread, int signal) { return (int)syscall(TGKILL, process, thread, signal); }
long getdents64(int dir, void *buffer, unsigned long size) { return syscall(GETDENTS64, dir, buffer, size); }
int close_range(unsigned first, unsigned last, int flags) { return (int)syscall(CLOSE_RANGE, first, last, flags); }
