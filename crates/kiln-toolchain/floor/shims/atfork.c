/* In the C library's own static part before glibc 2.34, and in some later ones. */
extern int __register_atfork(void (*)(void), void (*)(void), void (*)(void), void *);
extern void *__dso_handle __attribute__((visibility("hidden")));

int pthread_atfork(void (*before)(void), void (*in_parent)(void), void (*in_child)(void)) {
  return __register_atfork(before, in_parent, in_child, __dso_handle);
}
