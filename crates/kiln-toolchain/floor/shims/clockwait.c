/* glibc 2.30. The deadline is moved to the clock that the older functions know. It is exact but for a step of the realtime clock
   during the wait; callers look at their own clock again and go on waiting, as the C++ library does without these functions. */
struct timespec {
  long tv_sec, tv_nsec;
};
#define REALTIME 0
#define MONOTONIC 1
#define EINVAL 22
#define SECOND 1000000000L
/* Far enough for everybody, and no sum with it overflows. */
#define FAR 0x3fffffffffffffL

extern int *__errno_location(void);
extern int clock_gettime(int, struct timespec *);
extern int pthread_cond_timedwait(void *, void *, const struct timespec *);
extern int pthread_mutex_timedlock(void *, const struct timespec *);
extern int pthread_rwlock_timedrdlock(void *, const struct timespec *);
extern int pthread_rwlock_timedwrlock(void *, const struct timespec *);
extern int sem_timedwait(void *, const struct timespec *);

static int to_realtime(int clock, const struct timespec *deadline, struct timespec *out) {
  struct timespec now, real;
  long seconds, nanoseconds;
  if (clock == REALTIME) {
    *out = *deadline;
    return 0;
  }
  if (clock != MONOTONIC || deadline->tv_nsec < 0 || deadline->tv_nsec >= SECOND) return EINVAL;
  clock_gettime(MONOTONIC, &now);
  clock_gettime(REALTIME, &real);
  seconds = deadline->tv_sec < -FAR ? -FAR : deadline->tv_sec - now.tv_sec;
  if (seconds > FAR) seconds = FAR;
  seconds += real.tv_sec;
  nanoseconds = deadline->tv_nsec - now.tv_nsec + real.tv_nsec;
  while (nanoseconds >= SECOND) {
    nanoseconds -= SECOND;
    seconds++;
  }
  while (nanoseconds < 0) {
    nanoseconds += SECOND;
    seconds--;
  }
  if (seconds < 0) seconds = nanoseconds = 0;
  out->tv_sec = seconds;
  out->tv_nsec = nanoseconds;
  return 0;
}

int pthread_cond_clockwait(void *condition, void *mutex, int clock, const struct timespec *deadline) {
  struct timespec real;
  int error = to_realtime(clock, deadline, &real);
  return error ? error : pthread_cond_timedwait(condition, mutex, &real);
}

int pthread_mutex_clocklock(void *mutex, int clock, const struct timespec *deadline) {
  struct timespec real;
  int error = to_realtime(clock, deadline, &real);
  return error ? error : pthread_mutex_timedlock(mutex, &real);
}

int pthread_rwlock_clockrdlock(void *lock, int clock, const struct timespec *deadline) {
  struct timespec real;
  int error = to_realtime(clock, deadline, &real);
  return error ? error : pthread_rwlock_timedrdlock(lock, &real);
}

int pthread_rwlock_clockwrlock(void *lock, int clock, const struct timespec *deadline) {
  struct timespec real;
  int error = to_realtime(clock, deadline, &real);
  return error ? error : pthread_rwlock_timedwrlock(lock, &real);
}

int sem_clockwait(void *semaphore, int clock, const struct timespec *deadline) {
  struct timespec real;
  int error = to_realtime(clock, deadline, &real);
  if (error) {
    *__errno_location() = error;
    return -1;
  }
  return sem_timedwait(semaphore, &real);
}
