/* glibc 2.36, on top of getrandom (2.25). */
typedef unsigned long size_t;
#define EINTR 4

extern int *__errno_location(void);
extern long getrandom(void *, size_t, unsigned);
extern void abort(void) __attribute__((noreturn));

void arc4random_buf(void *buffer, size_t size) {
  char *at = buffer;
  while (size) {
    long got = getrandom(at, size, 0);
    if (got < 0) {
      if (*__errno_location() == EINTR) continue;
      abort();
    }
    at += got;
    size -= got;
  }
}

unsigned arc4random(void) {
  unsigned value;
  arc4random_buf(&value, sizeof value);
  return value;
}

unsigned arc4random_uniform(unsigned bound) {
  unsigned least, value;
  if (bound < 2) return 0;
  /* Values below this one would make the first numbers likelier. */
  least = -bound % bound;
  do value = arc4random();
  while (value < least);
  return value % bound;
}
