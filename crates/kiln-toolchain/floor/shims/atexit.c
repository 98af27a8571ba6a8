/* In the C library's own static part: they tell it which library the function belongs to. */
extern int __cxa_atexit(void (*)(void *), void *, void *);
extern int __cxa_at_quick_exit(void (*)(void *), void *);
extern void *__dso_handle __attribute__((visibility("hidden")));

int atexit(void (*function)(void)) { return __cxa_atexit((void (*)(void *))function, 0, __dso_handle); }
int at_quick_exit(void (*function)(void)) { return __cxa_at_quick_exit((void (*)(void *))function, __dso_handle); }
