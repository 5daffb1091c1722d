// The wall clock of a process that this library is preloaded into is a number in a
// file: the microseconds since 1970, as a 64-bit integer, which a test moves. The file
// is named by LATCHKEY_TEST_CLOCK. All other clocks go on.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *micros;

__attribute__((constructor)) static void open_clock(void) {
  const char *path = getenv("LATCHKEY_TEST_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *page = mmap(0, sizeof *micros, PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) micros = page;
  close(file);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
  (void)zone;
  if (!micros) return syscall(SYS_gettimeofday, now, 0);
  int64_t us = *micros;
  now->tv_sec = us / 1000000;
  now->tv_usec = us % 1000000;
  return 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  if (!micros || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) {
    return syscall(SYS_clock_gettime, clock, now);
  }
  int64_t us = *micros;
  now->tv_sec = us / 1000000;
  now->tv_nsec = us % 1000000 * 1000;
  return 0;
}

time_t time(time_t *to) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (to) *to = now.tv_sec;
  return now.tv_sec;
}
