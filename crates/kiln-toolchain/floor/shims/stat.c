/* glibc 2.33. Before, these were in the C library's own static part, on top of the functions below, which still exist. */
struct stat;
typedef unsigned long dev_t;
typedef unsigned int mode_t;

#if defined(__x86_64__)
#define STAT_VERSION 1
#elif defined(__aarch64__)
#define STAT_VERSION 0
#else
#error "the layout of struct stat of this processor is not known"
#endif
#define MKNOD_VERSION 0

extern int __xstat(int, const char *, struct stat *);
extern int __lxstat(int, const char *, struct stat *);
extern int __fxstat(int, int, struct stat *);
extern int __fxstatat(int, int, const char *, struct stat *, int);
extern int __xstat64(int, const char *, struct stat *);
extern int __lxstat64(int, const char *, struct stat *);
extern int __fxstat64(int, int, struct stat *);
extern int __fxstatat64(int, int, const char *, struct stat *, int);
extern int __xmknod(int, const char *, mode_t, dev_t *);
extern int __xmknodat(int, int, const char *, mode_t, dev_t *);

int stat(const char *path, struct stat *to) { return __xstat(STAT_VERSION, path, to); }
int lstat(const char *path, struct stat *to) { return __lxstat(STAT_VERSION, path, to); }
int fstat(int file, struct stat *to) { return __fxstat(STAT_VERSION, file, to); }
int fstatat(int dir, const char *path, struct stat *to, int flags) { return __fxstatat(STAT_VERSION, dir, path, to, flags); }
int stat64(const char *path, struct stat *to) { return __xstat64(STAT_VERSION, path, to); }
int lstat64(const char *path, struct stat *to) { return __lxstat64(STAT_VERSION, path, to); }
int fstat64(int file, struct stat *to) { return __fxstat64(STAT_VERSION, file, to); }
int fstatat64(int dir, const char *path, struct stat *to, int flags) { return __fxstatat64(STAT_VERSION, dir, path, to, flags); }
int mknod(const char *path, mode_t mode, dev_t device) { return __xmknod(MKNOD_VERSION, path, mode, &device); }
int mknodat(int dir, const char *path, mode_t mode, dev_t device) { return __xmknodat(MKNOD_VERSION, dir, path, mode, &device); }
