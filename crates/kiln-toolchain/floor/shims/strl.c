/* glibc 2.38. */
typedef unsigned long size_t;

extern size_t strlen(const char *);
extern size_t strnlen(const char *, size_t);
extern void *memcpy(void *, const void *, size_t);

size_t strlcpy(char *to, const char *from, size_t size) {
  size_t length = strlen(from);
  if (size) {
    size_t copied = length < size ? length : size - 1;
    memcpy(to, from, copied);
    to[copied] = 0;
  }
  return length;
}

size_t strlcat(char *to, const char *from, size_t size) {
  size_t kept = strnlen(to, size);
  return kept == size ? size + strlen(from) : kept + strlcpy(to + kept, from, size - kept);
}

/* With fortification: `room` is what the compiler knows to be there. */
size_t __strlcpy_chk(char *to, const char *from, size_t size, size_t room) {
  if (room < size) __builtin_trap();
  return strlcpy(to, from, size);
}

size_t __strlcat_chk(char *to, const char *from, size_t size, size_t room) {
  if (room < size) __builtin_trap();
  return strlcat(to, from, size);
}
