/* glibc 2.32: whether the process has one thread only. "No" is always right: it costs an atomic operation. */
char __libc_single_threaded = 0;
